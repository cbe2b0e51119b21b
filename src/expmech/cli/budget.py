"""`expmech budget`: make a ledger, show what is left, list what was charged."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from expmech.cli.common import output, user_errors
from expmech.cli.options import Json
from expmech.data.source import open_source
from expmech.errors import ParameterError
from expmech.ledger import Ledger, show_amount

app = typer.Typer(no_args_is_help=True, help="The privacy budget of a data set.")

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]


@app.command()
def init(
    ledger: LedgerPath,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The data set the budget is for.")
    ],
    epsilon: Annotated[str, typer.Option("--epsilon", help="Total epsilon, as a decimal.")],
    delta: Annotated[str, typer.Option("--delta", help="Total delta.")] = "0",
    table: Annotated[
        str | None, typer.Option("--table", help="Table name, for PostgreSQL and Spark.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the ledger of a data set; it is made once and never overwritten."""
    with user_errors():
        with closing(open_source(source, table=table)) as opened:
            identity = opened.identity
        Ledger.create(ledger, data_set=identity, epsilon=epsilon, delta=delta)
        _show(Ledger(ledger), as_json)


@app.command()
def show(ledger: LedgerPath, as_json: Json = False) -> None:
    """Show the total, what was spent and what is left."""
    with user_errors():
        _show(Ledger(ledger), as_json)


@app.command()
def history(ledger: LedgerPath, as_json: Json = False) -> None:
    """List every charge, oldest first."""
    with user_errors():
        charges = Ledger(ledger).history()
    if as_json:
        listed = [
            {
                "number": charge.number,
                "time": charge.time,
                "epsilon": show_amount(charge.epsilon),
                "delta": show_amount(charge.delta),
                "statement": charge.statement,
                "groups": list(charge.parallel),
                "certificate": json.loads(charge.certificate or "null"),
            }
            for charge in charges
        ]
        output.print_json(json.dumps(listed))
        return
    table = Table("number", "time", "epsilon", "delta", "statement", "groups")
    for charge in charges:
        amounts = (show_amount(charge.epsilon), show_amount(charge.delta))
        table.add_row(
            str(charge.number), charge.time, *amounts, charge.statement, ", ".join(charge.parallel)
        )
    output.print(table)


def _show(ledger: Ledger, as_json: bool) -> None:
    spent, left = ledger.spent, ledger.left
    amounts = {"total": ledger.total, "spent": spent, "left": left}
    if any(amount < 0 for amount in left):
        raise ParameterError(
            f"The ledger {ledger.path} is overspent: it was changed by other means than this"
            " program."
        )
    if as_json:
        record = {
            name: {"epsilon": show_amount(pair[0]), "delta": show_amount(pair[1])}
            for name, pair in amounts.items()
        }
        output.print_json(
            json.dumps({"data_set": ledger.data_set, "created": ledger.created, **record})
        )
        return
    output.print(f"Budget of {ledger.data_set}, made {ledger.created}", markup=False)
    for name, pair in amounts.items():
        output.print(
            f"  {name:<8}epsilon = {show_amount(pair[0])}, delta = {show_amount(pair[1])}",
            markup=False,
        )
