"""Releases from the command line: settle what is public, charge, then read and draw."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from expmech.cli.asked import Request
from expmech.cli.common import MISTAKE, complaints, new_file, output, sealed
from expmech.cli.drawing import Answers, Pending, delivered, drawn, read_together, settled
from expmech.cli.endings import Ending, ending
from expmech.cli.notices import warn_of
from expmech.cli.shared import Made
from expmech.cli.showing import show
from expmech.data.source import Source
from expmech.errors import ExpmechError
from expmech.ledger import SINGLE, Ledger

Record = dict[str, Any]


def answer(request: Request, made: Made) -> None:
    """Release, write and print; what was charged for is printed even where writing fails."""
    with ending() as end, closing(request.open()) as source, new_file(request.file) as file:
        asked = request.divided(made)
        pending = [settled(one, statistic, source) for one, statistic in asked]
        records = release(request, pending, source, end)
        several = len(pending) > 1
        try:
            if file is not None and records:
                told = records if several else records[0]
                file.write(json.dumps(told, indent=2, sort_keys=True) + "\n")
                file.flush()
        finally:
            end.printing = True
            _show(request, records, several=several)
        if len(records) < (1 if request.redeem is not None else len(pending)):
            raise typer.Exit(MISTAKE)


def _show(request: Request, records: Sequence[Record], *, several: bool) -> None:
    try:
        if several and request.as_json:
            output.print_json(json.dumps(records))
            return
        for record in records:
            show(record, request.as_json, verbose=request.verbose)
    except OSError as error:
        raise unshown(records, request.ledger_file, error) from None


def unshown(records: Sequence[Record], ledger: Path | None, error: OSError) -> ExpmechError:
    """Return the error of values that could not be printed: where they can be found again."""
    where = "" if ledger is None else f" expmech budget recover {ledger} shows the value again."
    names = ", ".join(record["statement"] for record in records)
    return ExpmechError(f"{names} cannot be printed: {error.strerror}.{where}")


def release(
    request: Request, pending: Sequence[Pending], source: Source, end: Ending
) -> list[Record]:
    """Charge, read, draw, in this order; return the sealed records of the releases.

    What was charged for is in the ledger's outbox before it is returned.
    """
    ledger = request.ledger(source)
    certificates = [one.settled.certificate for one in pending]
    warn_of(certificates, request.epsilon, request.whom)
    if ledger is None:
        answers = _read(request, pending)
        return list(drawn_each(pending, lambda k: sealed(drawn(pending[k], answers[k]))))
    if request.redeem is None:
        entries = [one.entry(SINGLE) for one in pending]
        charges = end.charged(ledger, lambda: ledger.charge_all(entries))
    else:
        number, one = request.redeem, _redeemed(ledger, request.redeem, pending)
        pending, entry = [one], one.entry(SINGLE)
        charges = end.charged(ledger, lambda: [ledger.redeem(number, entry)])
    answers = _read(request, pending)
    return list(
        drawn_each(pending, lambda k: delivered(ledger, charges[k], pending[k], answers[k]))
    )


def _read(request: Request, pending: Sequence[Pending]) -> Sequence[Answers | None]:
    """Read for several at once, unless a row of one column may refuse the release of that one."""
    if len(pending) == 1 or request.missing == "error":
        return [None] * len(pending)
    return read_together(pending)


def drawn_each(pending: Sequence[Pending], draw: Callable[[int], Record]) -> Iterator[Record]:
    """Return the records that can be drawn; one of several that fails does not hold up others."""
    for k, one in enumerate(pending):
        try:
            record = draw(k)
        except ExpmechError as error:
            if len(pending) == 1:
                raise
            text = f"error: {one.statement}: {error}"
            complaints.print(text, style="red", markup=False)
            continue
        yield record


def _redeemed(ledger: Ledger, number: int, pending: Sequence[Pending]) -> Pending:
    """Return the release that a charge was made for, by its statement; the ledger checks it."""
    statements = {charge.number: charge.statement for charge in ledger.history()}
    same = [one for one in pending if one.statement == statements.get(number)]
    return (same or list(pending))[0]
