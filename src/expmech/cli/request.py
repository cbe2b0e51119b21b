"""One release from the command line: settle what is public, charge, then read and draw."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.cli.common import new_file, parse_epsilon, plain, sealed, stopped
from expmech.cli.notices import announce, warn_of
from expmech.cli.options import Budgeted, ReleaseOptions, TableOptions
from expmech.cli.parsing import split
from expmech.cli.shared import Shared
from expmech.cli.showing import show
from expmech.data.rows import TableRows
from expmech.data.source import Source, open_source
from expmech.data.text_format import TextFormat, text_ending
from expmech.errors import ExpmechError, ParameterError, validate_choice
from expmech.ledger import SINGLE, Charge, Entry, Ledger, LedgerError, exact_amount, show_amount
from expmech.release import Certificate, Release
from expmech.release.accuracy import LEVEL
from expmech.samplers import Metropolis, Sampler, names, validate_sampler
from expmech.samplers.base import CONSTANT
from expmech.statistics import Settled, Statistic, public_count, settle
from expmech.statistics.base import check_missing
from expmech.statistics.keys import canonical_key

_OWNER = "release"
_BEFORE = "stopped: nothing was released and nothing was charged."
_CHARGING = "stopped while the ledger was charged: see what it says. Nothing was released."
_CHARGED = (
    "stopped before the value was shown. Charge {0} stays, as how long a draw takes may depend on"
    " the data: `expmech budget recover` shows the value if it was drawn, else ask for the same"
    " release with --redeem {0}."
)
_RELEASED = "stopped after the draw: the value may have been printed or written; a charge stands."


class Request:
    """What a release asks for, checked before the table is touched."""

    def __init__(self, budgeted: Budgeted, place: TableOptions, asked: ReleaseOptions) -> None:
        self.epsilon = parse_epsilon(budgeted.epsilon, owner=_OWNER)
        self.delta = exact_amount(asked.delta or "0", name="--delta", owner=_OWNER, zero=True)
        self.adjacency = validate_adjacency(budgeted.adjacency, name="--adjacency", owner=_OWNER)
        self.sampler = choose(asked.sampler, asked.delta)
        self.missing = check_missing(asked.missing, self.adjacency, owner=_OWNER)
        self.by, self.groups = _groups(asked, self.adjacency)
        self.timing, self.as_json, self.file = budgeted.timing, budgeted.as_json, asked.output
        self.redeem, self.budget_seconds = asked.redeem, budgeted.budget_seconds
        self.verbose = asked.verbose
        self._place, self.ledger_file = place, asked.ledger
        if self.redeem is not None and asked.ledger is None:
            raise ParameterError("`--redeem` needs --ledger: a charge of it is redeemed.")

    @property
    def shared(self) -> Shared:
        """What the statistic is told."""
        composed = self.ledger_file is not None and Ledger(self.ledger_file).wants_bounded_range
        return Shared(
            self.adjacency,
            missing=self.missing,
            sampler_named=self.sampler != "auto",
            bounded_range=composed and self.timing != CONSTANT,
        )

    def open(self) -> Source:
        """Open the table; its schema is public."""
        return open_table(self._place)

    def ledger(self, source: Source) -> Ledger | None:
        """Return the ledger; raise where it is another's or of the other adjacency."""
        if self.ledger_file is None:
            return None
        ledger = Ledger(self.ledger_file, data_set=source.names)
        ledger.require_adjacency(self.adjacency)
        return ledger

    def entry(self, statement: str, certificate: Certificate, *, run: str = "") -> Entry:
        """Return what is charged, once for all groups: they are disjoint."""
        return Entry(
            epsilon=self.epsilon,
            delta=self.delta,
            statement=statement,
            certificate=certificate.to_json(),
            adjacency=self.adjacency,
            groups=tuple(self.groups),
            run=run,
        )


def open_table(place: TableOptions) -> Source:
    """Open a table; text is read as the public options say."""
    if place.table is not None or not text_ending(place.source):
        return open_source(place.source, table=place.table)
    listed: list[str] | int | None = None
    if place.names is not None:
        listed = int(place.names) if place.names.isdecimal() else split(place.names)
    written = TextFormat(
        delimiter=place.delimiter,
        quote=place.quote or None,
        header=listed is None,
        names=listed,
        encoding=place.encoding,
        decimal=place.decimal,
    )
    return open_source(place.source, text_format=written)


def _groups(asked: ReleaseOptions, adjacency: Adjacency) -> tuple[str | None, list[str]]:
    if (asked.by is None) != (asked.groups is None):
        raise ParameterError(
            "`--by` and `--groups` belong together: a column, and the public list of its groups."
        )
    if asked.by is None or asked.groups is None:
        return None, []
    if adjacency != Adjacency.ADD_REMOVE:
        raise ParameterError(
            "`--by` needs --adjacency add-remove: under 'replace' a row can change group, which"
            " costs twice and moves the group sizes."
        )
    groups = split(asked.groups)
    if not groups:
        raise ParameterError(f"`--groups` must name at least one group; got {asked.groups!r}.")
    if len({canonical_key(group) for group in groups}) != len(groups):
        raise ParameterError(f"`--groups` must differ from each other; got {asked.groups}.")
    return asked.by, groups


def choose(sampler: str | None, delta: str | None) -> Sampler | str:
    """Return the sampler asked for by name, or the Metropolis chain of a delta."""
    if sampler is not None:
        validate_choice(
            sampler, name="--sampler", owner=_OWNER, choices=[*names(), Metropolis.name()]
        )
    if delta is None:
        if sampler == Metropolis.name():
            return Metropolis(pure=True)
        return validate_sampler(sampler or "auto")
    if sampler not in (None, Metropolis.name()):
        raise ParameterError(f"`--delta` belongs to --sampler Metropolis; got {sampler!r}.")
    return Metropolis(delta=float(exact_amount(delta, name="--delta", owner=_OWNER)))


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
        rows.check(statistic.request(request.epsilon))
    statement = statistic.name if request.by is None else f"{statistic.name} by {request.by}"
    ready = _settle(request, statistic, next(iter(parts.values())))
    return Pending(request=request, statement=statement, settled=ready, parts=parts)


def drawn(pending: Pending) -> dict[str, Any]:
    """Read and draw; return the record of the release. Charge first."""
    request, settled = pending.request, pending.settled
    announce(settled)
    parts = pending.parts.items()
    found = {name: settled.release(rows.find(settled.request)) for name, rows in parts}
    values = {name: plain(one.value) for name, one in found.items()}
    record: dict[str, Any] = {
        "statement": pending.statement,
        "value": values[""] if request.by is None else values,
        "accuracy": _accuracy(request, settled, found),
        "certificate": json.loads(settled.certificate.to_json()),
    }
    if request.by is not None:
        record["groups"] = request.groups
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


def _settle(request: Request, statistic: Statistic, rows: TableRows) -> Settled:
    """Settle once: under add-remove, where there are groups, nothing public tells them apart."""
    return settle(
        statistic,
        epsilon=request.epsilon,
        count=public_count(rows, request.adjacency),
        sampler=request.sampler,
        timing=request.timing,
        budget_seconds=request.budget_seconds,
    )
