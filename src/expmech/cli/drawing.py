"""A release that is settled: charged first, then read, drawn and kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from expmech.cli.asked import Request
from expmech.cli.common import plain, sealed, shown_passes
from expmech.cli.notices import announce
from expmech.data.rows import TableRows
from expmech.data.source import Source
from expmech.ledger import Charge, Entry, Ledger, LedgerError, show_amount
from expmech.markup import visible
from expmech.release import Release
from expmech.release.accuracy import LEVEL
from expmech.statistics import Settled, Statistic, public_count, settle

_FEW = (
    " A group of few rows, or of none, gives a value that says little: release the count of each"
    " group beside it."
)

Answers = Mapping[str, Any]
"""What the rows of each group answered; without groups there is one, without a name."""


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


def delivered(
    ledger: Ledger, charge: Charge, pending: Pending, answers: Answers | None = None
) -> dict[str, Any]:
    """Draw the value of a charge, put it into the outbox and return what the outbox then holds."""
    try:
        record = drawn(pending, answers) | {"charge": charge.number}
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
        statement += rows_of_each(request.units.max_rows, request.units.column)
    ready = _settle(request, statistic, next(iter(parts.values())), source.notes)
    return Pending(request=request, statement=visible(statement), settled=ready, parts=parts)


def rows_of_each(max_rows: object, column: object) -> str:
    """Return how the name of a release ends where people have several rows."""
    return f", at most {max_rows} rows of each {column}"


def read_together(pending: Sequence[Pending]) -> list[Answers]:
    """Read what several releases of one table ask for, in one pass where that can be. Charge first.

    Their groups are the same.
    """
    requests = [one.settled.request for one in pending]
    with shown_passes() as progress:
        found = {
            name: rows.shown(progress).find_each(requests)
            for name, rows in pending[0].parts.items()
        }
    return [{name: each[k] for name, each in found.items()} for k in range(len(pending))]


def drawn(pending: Pending, answers: Answers | None = None) -> dict[str, Any]:
    """Read, unless the answers are there, and draw; return the record of the release."""
    request, settled = pending.request, pending.settled
    announce(settled)
    with shown_passes() as progress:  # a regression reads its rows while it draws
        found = {
            name: settled.release(
                rows.shown(progress).find(settled.request) if answers is None else answers[name]
            )
            for name, rows in pending.parts.items()
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
        if request.by is not None:
            told["words"] += _FEW
        return told
    told["level"] = float(LEVEL)
    for part in ("lower", "upper", "scale"):
        ends = {name: plain(getattr(one, part)) for name, one in near.items()}
        told[part] = ends[""] if request.by is None else ends
    noisy = {name: list(one.noisy) for name, one in near.items() if one.noisy is not None}
    if noisy:
        told["noisy"] = noisy[""] if request.by is None else noisy
    return told


def _settle(
    request: Request, statistic: Statistic, rows: TableRows, premises: tuple[str, ...]
) -> Settled:
    """Settle once: under add-remove, where there are groups, nothing public tells them apart."""
    return settle(
        statistic,
        epsilon=request.row_epsilon,
        premises=premises,
        notes=(*request.notes, *rows.notes(statistic.request(request.epsilon))),
        count=public_count(rows, request.adjacency),
        sampler=request.sampler,
        timing=request.timing,
        budget_seconds=request.budget_seconds,
    )
