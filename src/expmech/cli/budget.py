"""`expmech budget`: make a ledger, show what is left, list what was charged."""

from __future__ import annotations

import json
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from expmech.cli.common import output, user_errors
from expmech.cli.options import Json
from expmech.cli.place import of_units
from expmech.cli.showing import show as show_release
from expmech.cli.words import left_in_words, promise
from expmech.data.source import open_source
from expmech.errors import ExpmechError, ParameterError
from expmech.ledger import Ledger, show_amount
from expmech.strict_json import read_json

app = typer.Typer(no_args_is_help=True, help="The privacy budget of a data set.")

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]
Composition = Annotated[
    str | None,
    typer.Option(
        "--composition",
        help="basic (epsilons add up, and deltas of releases) or concentrated (the default with a"
        " delta).",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", help="Column of people with several rows: the budget is theirs."),
]


@app.command()
def init(
    ledger: LedgerPath,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The data set the budget is for.")
    ],
    epsilon: Annotated[str, typer.Option("--epsilon", help="Total epsilon, as a decimal.")],
    delta: Annotated[
        str,
        typer.Option("--delta", help="Total delta; it pays for a tighter sum of many releases."),
    ] = "0",
    adjacency: Annotated[
        str, typer.Option("--adjacency", help="replace or add-remove, for every release.")
    ] = "replace",
    composition: Composition = None,
    table: Annotated[
        str | None, typer.Option("--table", help="Table name, for PostgreSQL and Spark.")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", help="One SELECT that releases will read.")
    ] = None,
    unit: Unit = None,
    again: Annotated[
        bool, typer.Option("--again", help="Make it although the data set has a budget already.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make the ledger of a data set; it is made once and never overwritten."""
    with user_errors():
        relation = adjacency
        with closing(open_source(source, table=table, query=query)) as opened:
            identity, members = opened.identity, opened.members
            if unit is not None:
                opened.column(unit)
                relation = of_units(unit, adjacency)
        made = Ledger.create(
            ledger,
            data_set=identity,
            epsilon=epsilon,
            delta=delta,
            adjacency=relation,
            composition=composition,
            members=members,
            again=again,
        )
        _show(made, as_json)


@app.command()
def show(ledger: LedgerPath, as_json: Json = False) -> None:
    """Show the total, what each release cost and what is left, in numbers and in words."""
    with user_errors():
        _show(Ledger(ledger), as_json)


@app.command()
def recover(
    ledger: LedgerPath,
    charge: Annotated[int | None, typer.Option("--charge", help="Of this charge only.")] = None,
    as_json: Json = False,
) -> None:
    """Show again what was released: a value is kept here before it is printed."""
    with user_errors():
        opened = Ledger(ledger)
        kept = {
            number: read_json(text, name=f"The value of charge {number}")
            for number, text in opened.outbox().items()
            if charge in (None, number)
        }
        if charge is not None and not kept:
            raise ParameterError(f"The ledger {ledger} keeps no value of charge {charge}.")
    if as_json:
        output.print_json(json.dumps(list(kept.values())))
        return
    for number, record in kept.items():
        output.print(f"Charge {number}", markup=False)
        show_release(record, as_json=False)
    for one in opened.history():
        if one.run and one.number not in opened.outbox():
            output.print(
                f"Charge {one.number}, {one.statement}, has no value yet: ask for the same release"
                f" with --redeem {one.number}, or run its plan again.",
                markup=False,
            )


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
                "rho": show_amount(charge.rho),
                "adjacency": charge.adjacency,
                "statement": charge.statement,
                "groups": list(charge.parallel),
                "certificate": _as_json(charge.certificate),
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


def _as_json(certificate: str) -> Any:
    """Return a certificate, or the note of a caller's own that stands in its place."""
    try:
        return read_json(certificate, name="`certificate`") if certificate else None
    except ExpmechError:
        return certificate


def _show(ledger: Ledger, as_json: bool) -> None:
    spent, left = ledger.spent, ledger.left
    amounts = {"total": ledger.total, "spent": spent, "left": left}
    if any(amount < 0 for amount in left):
        raise ParameterError(
            f"The ledger {ledger.path} is overspent: it was changed by other means than this"
            " program."
        )
    if as_json:
        output.print_json(json.dumps(_described(ledger, amounts)))
        return
    output.print(f"Budget of {ledger.data_set}, made {ledger.created}", markup=False)
    for name, pair in amounts.items():
        text = f"epsilon = {show_amount(pair[0])}, delta = {show_amount(pair[1])}"
        output.print(f"  {name:<8}{text}", markup=False)
    output.print(f"  {'promise':<8}{promise(ledger)}", markup=False)
    charges = ledger.history()
    if charges:
        table = Table("number", "released", "epsilon", "cost here")
        for charge, cost in zip(charges, ledger.costs(), strict=True):
            amounts_shown = (show_amount(charge.epsilon), show_amount(cost))
            table.add_row(str(charge.number), charge.statement, *amounts_shown)
        output.print(table)
    for sentence in left_in_words(ledger):
        output.print(sentence, markup=False)


def _described(ledger: Ledger, amounts: dict[str, tuple[Fraction, Fraction]]) -> dict[str, Any]:
    pairs = {
        name: {"epsilon": show_amount(pair[0]), "delta": show_amount(pair[1])}
        for name, pair in amounts.items()
    }
    costs = [
        {
            "number": charge.number,
            "statement": charge.statement,
            "epsilon": show_amount(charge.epsilon),
            "cost": show_amount(cost),
        }
        for charge, cost in zip(ledger.history(), ledger.costs(), strict=True)
    ]
    return {
        "data_set": ledger.data_set,
        "created": ledger.created,
        "adjacency": ledger.adjacency,
        "composition": ledger.limits.composition,
        **pairs,
        "costs": costs,
        "left_in_words": left_in_words(ledger),
    }
