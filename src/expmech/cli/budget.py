"""`expmech budget`: make a ledger, show what is left, list what was charged."""

from __future__ import annotations

import json
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from expmech.certificates.card import usual_name
from expmech.cli.columns import of_units
from expmech.cli.common import user_errors
from expmech.cli.console import output, warn
from expmech.cli.options import Json, TableOptions, add_command
from expmech.cli.records import show as show_release
from expmech.cli.settings import open_table, settings_of
from expmech.core.adjacency import Adjacency, unit_of
from expmech.core.errors import ExpmechError, ParameterError
from expmech.core.strict_json import read_json
from expmech.ledger import Amount, Ledger
from expmech.ledger.amounts import show_amount
from expmech.theory.concentrated import rho_of_bounded_range, rho_of_pure

_LARGE_DELTA = Fraction(1, 1000)

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="The privacy budget of a data set."
)

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]
_CHOICE = {
    True: "Under replace, releases hide what any one row says, and the number of rows is public."
    " The other choice, --adjacency add-remove, also hides whether a row is there at all: groups,"
    " people with several rows and dropped rows need it.",
    False: "Under add-remove, releases hide whether any one {unit} is in the table, and the number"
    " of rows is confidential. The other choice, --adjacency replace, hides only what a row says"
    " and makes the number of rows public, so that it cannot serve groups or dropped rows.",
}
_TAB = "\t"
_KINDS = 3  # the latest different releases of which the remaining number is shown
_USUAL = Fraction(1, 10)  # epsilon of the release that is shown where there was none yet


def init(
    table: TableOptions,
    ledger: LedgerPath,
    epsilon: Annotated[str, typer.Option("--epsilon", help="Total epsilon, as a decimal.")],
    delta: Annotated[
        str,
        typer.Option("--delta", help="Total delta; it pays for a tighter sum of many releases."),
    ] = "0",
    adjacency: Annotated[
        str, typer.Option("--adjacency", help="add-remove or replace, for every release.")
    ] = str(Adjacency.ADD_REMOVE),
    composition: Annotated[
        str | None,
        typer.Option(
            "--composition",
            help="basic (epsilons add up, and deltas of releases) or concentrated (the default with"
            " a delta).",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Make it although the data set has a budget already.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make the ledger of a data set; it is made once and never overwritten.

    The ledger notes SOURCE and the options of the table, so that releases with --ledger need not
    repeat them. Under add-remove, the default, one row more or less stays hidden, and so does the
    number of rows. Under replace one row that is another stays hidden, and the number of rows is
    public.
    """
    with user_errors():
        relation = adjacency
        with closing(open_table(table)) as opened:
            identity, members = opened.identity, opened.members
            if table.unit is not None:
                opened.column(table.unit)
                relation = of_units(table.unit, adjacency)
            elif table.max_rows is not None:
                raise ParameterError("`--max-rows` needs --unit: the column that names people.")
        created = Ledger.create(
            ledger,
            data_set=identity,
            epsilon=epsilon,
            delta=delta,
            adjacency=relation,
            composition=composition,
            members=members,
            again=again,
            settings=settings_of(table, ledger),
        )
        if created.total[1] > _LARGE_DELTA:
            warn(
                f"delta = {show_amount(created.total[1])} is large: a release may show a whole"
                " record with that probability. Usual values are far below 1 over the number of"
                " people in the table."
            )
        _show(created, as_json)
        if not as_json:
            chosen = _CHOICE[relation == Adjacency.REPLACE]
            output.print(chosen.format(unit=table.unit or "row"))


add_command(app, "init", {}, init, lambda own: init(**own))


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
        output.print(f"Charge {number}")
        show_release(record)
    drawn = opened.outbox()
    for waiting in opened.history():
        if waiting.run and waiting.number not in drawn:
            output.print(
                f"Charge {waiting.number}, {usual_name(waiting.statement)}, has no value yet:"
                f" ask for the same release with --redeem {waiting.number}, or run its plan again.",
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
                "groups": list(charge.groups),
                "certificate": _as_json(charge.certificate),
            }
            for charge in charges
        ]
        output.print_json(json.dumps(listed))
        return
    grouped = any(charge.groups for charge in charges)
    table = _table("number", "time (UTC)", "epsilon", "delta", "statement", *["groups"] * grouped)
    for charge in charges:
        amounts = (show_amount(charge.epsilon), show_amount(charge.delta))
        time = charge.time.removesuffix("+00:00").replace("T", " ")
        groups = [", ".join(charge.groups)] * grouped
        table.add_row(str(charge.number), time, *amounts, usual_name(charge.statement), *groups)
    output.print(table)


def _table(*heads: str) -> Table:
    """Return a table whose cells go on in the next line where a terminal is narrow."""
    return Table(*(Column(head, overflow="fold") for head in heads))


def _as_json(certificate: str) -> Any:
    """Return a certificate, or the caller's own note in its place."""
    try:
        return read_json(certificate, name="`certificate`") if certificate else None
    except ExpmechError:
        return certificate


def _show(ledger: Ledger, as_json: bool) -> None:
    left = ledger.left
    if any(amount < 0 for amount in left):
        raise ParameterError(
            f"The ledger {ledger.path} is overspent: it was changed by other means than this"
            " program."
        )
    amounts = {
        name: {"epsilon": show_amount(pair[0]), "delta": show_amount(pair[1])}
        for name, pair in (("total", ledger.total), ("spent", ledger.spent), ("left", left))
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
    adjacency, composition = ledger.adjacency, ledger.limits.composition
    sentences = remaining_releases(ledger)
    if as_json:
        described = {
            "data_set": ledger.data_set,
            "created": ledger.created,
            "adjacency": adjacency,
            "composition": composition,
            "settings": ledger.settings,
            **amounts,
            "costs": costs,
            "left_in_words": sentences,
        }
        output.print_json(json.dumps(described))
        return
    output.print(f"Budget of {ledger.data_set}, made {ledger.created}")
    for name, pair in amounts.items():
        text = f"epsilon = {pair['epsilon']}, delta = {pair['delta']}"
        output.print(f"  {name:<8}{text}")
    promise = f"{describe_adjacency(adjacency)}; {composition} composition"
    output.print(f"  {'promise':<8}{promise}")
    first = {"source": ledger.settings["source"]} if "source" in ledger.settings else {}
    noted = [
        str(value)
        if name == "source"
        else f"{name.replace('_', '-')} {'tab' if value == _TAB else value}"
        for name, value in (first | ledger.settings).items()
    ]
    if noted:
        output.print(f"  {'table':<8}{', '.join(noted)}")
    if costs:
        table = _table("number", "released", "epsilon", "cost here")
        for cost in costs:
            named = cost | {"statement": usual_name(str(cost["statement"]))}
            table.add_row(*map(str, named.values()))
        output.print(table)
    for sentence in sentences:
        output.print(sentence)


def describe_adjacency(adjacency: str) -> str:
    """Return the change of a table that an observer of all releases cannot detect."""
    unit = unit_of(adjacency)
    if unit is not None:
        return f"one {unit} added or removed with all its rows"
    if adjacency in list(Adjacency):
        return Adjacency(adjacency).promise
    return "the neighbours that the first release names"


def remaining_releases(ledger: Ledger) -> list[str]:
    """Return sentences: how many more of the latest releases there can be, or of a usual one."""
    kinds: dict[tuple[str, Fraction], Amount] = {}
    for charge in reversed(ledger.history()):
        kinds.setdefault(
            (usual_name(charge.statement) or "a release", charge.epsilon), charge.amount
        )
    if not kinds:
        rho = rho_of_bounded_range if ledger.wants_bounded_range else rho_of_pure
        usual = Amount(epsilon=_USUAL, rho=rho(_USUAL))
        kinds = {("a quantile", _USUAL): usual}
    sentences = []
    for (statement, epsilon), amount in list(kinds.items())[:_KINDS]:
        release, times = f"{statement} at epsilon = {show_amount(epsilon)}", ledger.times(amount)
        often = "one more" if times == 1 else f"about {times} more"
        if times and not ledger.history():
            sentences.append(f"This is enough for about {times} releases such as {release}.")
        elif times:
            sentences.append(f"What is left is enough for {often}: {release}.")
        else:
            sentences.append(f"Not enough is left for: {release}.")
    return sentences
