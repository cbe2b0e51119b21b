"""One release from the command line: settle what is public, charge, then read and draw."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expmech.cli.asked import Request
from expmech.cli.common import new_file, plain, sealed, shown_passes, stopped
from expmech.cli.notices import announce, warn_of
from expmech.cli.showing import show
from expmech.data.rows import TableRows
from expmech.data.source import Source
from expmech.errors import ExpmechError
from expmech.ledger import SINGLE, Charge, Entry, Ledger, LedgerError, show_amount
from expmech.release import Release
from expmech.release.accuracy import LEVEL
from expmech.statistics import Settled, Statistic, public_count, settle

_BEFORE = "stopped: nothing was released and nothing was charged."
_CHARGING = "stopped while the ledger was charged: see what it says. Nothing was released."
_CHARGED = (
    "stopped before the value was shown. Charge {0} stays, as how long a draw takes may depend on"
    " the data: `expmech budget recover` shows the value if it was drawn, else ask for the same"
    " release with --redeem {0}."
)
_RELEASED = "stopped after the draw: the value may have been printed or written; a charge stands."


def answer(request: Request, statistic: Statistic) -> None:
    """Release, write and print; what was charged for is printed even where writing fails."""
    with closing(request.open()) as source, new_file(request.file) as file:
        with stopped(_BEFORE):
            record = release(request, statistic, source)
        try:
            if file is not None:
                file.write(json.dumps(record, indent=2, sort_keys=True) + "\n")
                file.flush()
        finally:
            try:
                with stopped(_RELEASED):
                    show(record, request.as_json, verbose=request.verbose)
            except OSError as error:
                raise unshown(record, request.ledger_file, error) from None


def unshown(record: dict[str, Any], ledger: Path | None, error: OSError) -> ExpmechError:
    """Return the error of a value that could not be printed: where it can be found again."""
    where = "" if ledger is None else f" expmech budget recover {ledger} shows the value again."
    return ExpmechError(f"{record['statement']} cannot be printed: {error.strerror}.{where}")


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A release that is settled: everything public is known, no row was read."""

    request: Request
    statement: str
    settled: Settled
    parts: dict[str, TableRows]

    def entry(self, run: str) -> Entry:
        """Return what is charged before it is drawn."""
        return self.request.entry(self.statement, self.settled.certificate, run=run)


def release(request: Request, statistic: Statistic, source: Source) -> dict[str, Any]:
    """Settle, charge, read, draw, in this order; return the sealed record of the release.

    What was charged for is in the ledger's outbox before it is returned.
    """
    pending = settled(request, statistic, source)
    ledger = request.ledger(source)
    warn_of(pending.settled.certificate)
    if ledger is None:
        return sealed(drawn(pending))
    entry = pending.entry(SINGLE)
    with stopped(_CHARGING):
        if request.redeem is None:
            (charge,) = ledger.charge_all([entry])
        else:
            charge = ledger.redeem(request.redeem, entry)
    return delivered(ledger, charge, pending)


def delivered(ledger: Ledger, charge: Charge, pending: Pending) -> dict[str, Any]:
    """Draw the value of a charge, put it into the outbox and return what the outbox then holds."""
    try:
        with stopped(_CHARGED.format(charge.number)):
            record = drawn(pending) | {"charge": charge.number}
            epsilon, delta = ledger.left
            record["left"] = {"epsilon": show_amount(epsilon), "delta": show_amount(delta)}
            text = ledger.deliver(charge.number, json.dumps(sealed(record)))
    except LedgerError as error:
        # not shown either: a value that nobody keeps could be drawn a second time
        raise LedgerError(
            f"The value of charge {charge.number} could not be kept and was not shown: {error} Make"
            f" room, then ask for the same release with --redeem {charge.number}."
        ) from None
    found: dict[str, Any] = json.loads(text)
    return found


def settled(request: Request, statistic: Statistic, source: Source) -> Pending:
    """Check columns and settle what is public; raise where a release cannot be."""
    parts = {
        name: TableRows(source=source, by=request.by, group=name) for name in request.groups or [""]
    }
    for rows in parts.values():
        rows.check(statistic.request(request.row_epsilon))
    statement = statistic.name if request.by is None else f"{statistic.name} by {request.by}"
    if request.units is not None:
        statement += f", at most {request.units.max_rows} rows of each {request.units.column}"
    own = () if request.units is None else request.units.notes(request.epsilon)
    ready = _settle(request, statistic, next(iter(parts.values())), (*source.notes, *own))
    return Pending(request=request, statement=statement, settled=ready, parts=parts)


def drawn(pending: Pending) -> dict[str, Any]:
    """Read and draw; return the record of the release. Charge first."""
    request, settled = pending.request, pending.settled
    announce(settled)
    parts = pending.parts.items()
    with shown_passes() as progress:
        found = {
            name: settled.release(rows.shown(progress).find(settled.request))
            for name, rows in parts
        }
    values = {name: plain(one.value) for name, one in found.items()}
    record: dict[str, Any] = {
        "statement": pending.statement,
        "value": values[""] if request.by is None else values,
        "accuracy": _accuracy(request, settled, found),
        "certificate": json.loads(settled.certificate.to_json()),
    }
    if request.by is not None:
        record["groups"] = request.groups
    if request.units is not None:
        told = {"column": request.units.column, "max_rows": request.units.max_rows}
        record["unit"] = told | {"epsilon": show_amount(request.epsilon)}
    return record


def _accuracy(request: Request, settled: Settled, found: dict[str, Release]) -> dict[str, Any]:
    """Return how far the truth may be, in the shape of the value, and what that means."""
    near = {name: one.accuracy for name, one in found.items() if one.accuracy is not None}
    told: dict[str, Any] = {"words": settled.nearness(has_interval=bool(near))}
    if not near:
        return told
    told["level"] = float(LEVEL)
    for part in ("lower", "upper", "scale"):
        ends = {name: plain(getattr(one, part)) for name, one in near.items()}
        told[part] = ends[""] if request.by is None else ends
    return told


def _settle(
    request: Request, statistic: Statistic, rows: TableRows, notes: tuple[str, ...]
) -> Settled:
    """Settle once: under add-remove, where there are groups, nothing public tells them apart."""
    return settle(
        statistic,
        epsilon=request.row_epsilon,
        notes=(*notes, *rows.notes(statistic.request(request.epsilon))),
        count=public_count(rows, request.adjacency),
        sampler=request.sampler,
        timing=request.timing,
        budget_seconds=request.budget_seconds,
    )
