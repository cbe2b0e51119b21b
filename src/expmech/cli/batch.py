"""`expmech release --plan`: many releases, charged together or not at all, that can be continued.

Page: docs/plan_file.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from expmech.adjacency import Adjacency
from expmech.cli.common import MISTAKE, complaints, new_file, output
from expmech.cli.drawing import Pending, delivered, settled
from expmech.cli.endings import ending
from expmech.cli.notices import warn_of
from expmech.cli.options import TableOptions
from expmech.cli.planned import Planned, read_plan
from expmech.cli.request import unshown
from expmech.cli.showing import show
from expmech.data.source import Source
from expmech.errors import ExpmechError
from expmech.ledger import Amount, Charge, Entry, Ledger, LedgerError, show_amount
from expmech.ledger.entries import price
from expmech.samplers.plan import show_number, show_seconds
from expmech.statistics import plan as plan_statistic
from expmech.statistics import public_count
from expmech.strict_json import read_json


def run_plan(path: Path, *, dry_run: bool, again: bool, as_json: bool) -> None:
    """Check everything public, charge all releases at once, then draw those without a value."""
    planned = read_plan(path)
    with ending() as end, ExitStack() as opened:
        sources = _open(planned, opened)
        both = list(zip(planned.asked, sources, strict=True))
        pending = [settled(request, statistic, source) for (request, statistic), source in both]
        (ledger, *_) = [request.ledger(source) for (request, _), source in both]
        if ledger is None:
            raise LedgerError(f"{path} names no ledger.")
        charges = _begun(ledger, planned, again=again)
        _check_same(pending, charges)
        if dry_run:
            _forecast(ledger, planned, pending, charges, as_json=as_json)
            return
        with new_file(planned.output) as file:
            entries = _entries(ledger, planned, pending)
            charges = end.charged(ledger, lambda: charges or ledger.charge_all(entries))
            records = _draw(ledger, pending, charges, as_json=as_json)
            if file is not None:
                file.write(json.dumps(records, indent=2, sort_keys=True) + "\n")
        if len(records) < len(charges):
            complaints.print(
                f"error: {len(records)} of {len(charges)} values were released. Run the plan again"
                " once the cause is mended: nothing is charged a second time.",
                style="red",
                markup=False,
            )
            raise typer.Exit(MISTAKE)


def _open(planned: Planned, opened: ExitStack) -> list[Source]:
    """Return the source of each release: queries and bounds on units may differ between them."""
    found: dict[tuple[TableOptions, Adjacency], Source] = {}
    for request, _ in planned.asked:
        key = (request.place, request.adjacency)
        if key not in found:
            found[key] = opened.enter_context(closing(request.open()))
    return [found[request.place, request.adjacency] for request, _ in planned.asked]


def _begun(ledger: Ledger, planned: Planned, *, again: bool) -> list[Charge]:
    """Return the charges of the latest run of this plan that has values to come, or none.

    Where the latest run is complete, running the plan anew must be asked for: it costs again.
    """
    runs = _runs(ledger, planned)
    if not runs:
        return []
    latest = runs[max(runs)]
    shown = ledger.outbox()
    if any(charge.number not in shown for charge in latest):
        return latest
    if not again:
        raise LedgerError(
            f"All values of this plan were released already, by charges {latest[0].number} to"
            f" {latest[-1].number}: `expmech budget recover {ledger.path}` shows them. --again"
            " charges for new ones. Nothing was charged."
        )
    return []


def _runs(ledger: Ledger, planned: Planned) -> dict[int, list[Charge]]:
    """Return the charges of every run of this plan, by the number of the run."""
    runs: dict[int, list[Charge]] = {}
    for charge in ledger.history():
        digest, _, place = charge.run.partition("/")
        if place and digest == planned.digest:
            runs.setdefault(int(place.partition(":")[0]), []).append(charge)
    return runs


def _entries(ledger: Ledger, planned: Planned, pending: Sequence[Pending]) -> list[Entry]:
    number = max(_runs(ledger, planned), default=0) + 1
    return [one.entry(f"{planned.digest}/{number}:{k}") for k, one in enumerate(pending)]


def _check_same(pending: Sequence[Pending], charges: Sequence[Charge]) -> None:
    """Raise unless every charge, if there are any, was made for the release at its place.

    The number of rows is in certificates where it is public: a table that changed since is found.
    """
    if not charges:
        return
    made = [(charge.statement, charge.certificate, charge.parallel) for charge in charges]
    entries = [one.entry("") for one in pending]
    if made != [(one.statement, one.certificate, one.groups) for one in entries]:
        raise LedgerError(
            "The plan was charged for, and what it asks for has changed since: the table has"
            " another number of rows, or the program is another version. Nothing was drawn."
        )


def _draw(
    ledger: Ledger, pending: Sequence[Pending], charges: Sequence[Charge], *, as_json: bool
) -> list[dict[str, Any]]:
    """Show what is in the outbox; draw, keep and then show what is not."""
    shown, records = ledger.outbox(), []
    for one, charge in zip(pending, charges, strict=True):
        try:
            if charge.number in shown:
                record = read_json(shown[charge.number], name=f"The value of {charge.number}")
            else:
                warn_of([one.settled.certificate], one.request.epsilon, one.request.whom)
                record = delivered(ledger, charge, one)
        except ExpmechError as error:  # the others are not held up by it
            text = f"error: {one.statement}, charge {charge.number}: {error}"
            complaints.print(text, style="red", markup=False)
            continue
        records.append(record)
        if not as_json:
            try:
                show(record, as_json=False)
            except OSError as error:
                raise unshown([record], ledger.path, error) from None
    if as_json:
        try:
            output.print_json(json.dumps(records))
        except OSError as error:
            raise unshown(records, ledger.path, error) from None
    return records


def _forecast(
    ledger: Ledger,
    planned: Planned,
    pending: Sequence[Pending],
    charges: Sequence[Charge],
    *,
    as_json: bool,
) -> None:
    """Print what each release costs and takes; raise where the budget does not suffice."""
    if not charges:
        ledger.require_all(_entries(ledger, planned, pending))
    costs = _costs(ledger, pending) if not charges else [Fraction(0)] * len(pending)
    seconds = [len(one.parts) * one.settled.public.seconds for one in pending]
    rows = []
    for one, cost, time in zip(pending, costs, seconds, strict=True):
        epsilon = show_amount(one.request.epsilon)
        rows.append((one.statement, epsilon, show_amount(cost), _work_of(one), time))
    if as_json:
        names = ("statement", "epsilon", "cost", "evaluations", "seconds")
        output.print_json(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
        return
    table = Table("release", "epsilon", "cost here", "evaluations", "time to draw")
    for *texts, time in rows:
        table.add_row(*texts, show_seconds(time))
    output.print(table)
    output.print(
        f"The draws take about {show_seconds(sum(seconds))}, by a public forecast; reading the"
        " table is not in it.",
        markup=False,
    )
    total = show_amount(sum(costs, Fraction(0)))
    ending = "It was charged already and can be continued." if charges else "Nothing was charged."
    output.print(f"Together epsilon = {total}. {ending}", markup=False)


def _costs(ledger: Ledger, pending: Sequence[Pending]) -> list[Fraction]:
    """Return what each release would add to the epsilon spent, by the composition in force."""
    spent = sum((charge.amount for charge in ledger.history()), Amount())
    amounts = [price(one.entry(""), owner="release").amount for one in pending]
    return ledger.limits.costs(amounts, spent)


def _work_of(one: Pending) -> str:
    """Return the forecast of a draw, from public quantities."""
    statistic, request = one.settled.statistic, one.request
    count = public_count(next(iter(one.parts.values())), request.adjacency)
    plan = plan_statistic(
        statistic, epsilon=request.row_epsilon, count=count, timing=request.timing
    )
    option = plan.recommended
    if option is None or option.forecast is None:
        return "unknown"
    return show_number(option.forecast.typical)
