"""`expmech release`: one command per statistic, on the one road of a release.

Options are read into a :class:`ReleaseCommand`, and a plan file is read into the same ones. What is
public is prepared, the ledger is charged, and only then are rows read and values drawn; a value
that was charged for is in the ledger's outbox before it is shown.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expmech.certificates.accuracy import LEVEL
from expmech.certificates.card import plain
from expmech.certificates.mechanism import Release
from expmech.certificates.progress import LONG, announcement
from expmech.certificates.timing import CONSTANT
from expmech.cli.columns import CommonSettings, StatisticCommand, join, read_list
from expmech.cli.common import new_file, parse_epsilon, shown_passes, user_errors
from expmech.cli.console import MISTAKE, complaints, output
from expmech.cli.endings import Ending, ending, warn_of
from expmech.cli.options import (
    BudgetOptions,
    IntervalOptions,
    Json,
    ReleaseOptions,
    TableOptions,
    group_of,
)
from expmech.cli.records import joined, record_json, show, with_digest
from expmech.cli.searches import BoundedCommand, LimitedCommand, SearchCommand, bounds_search
from expmech.cli.settings import complete, open_table, row_limit
from expmech.cli.statistics import STATISTICS
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ExpmechError, ParameterError, validate_choice, validate_integer
from expmech.core.strict_json import read_json
from expmech.ledger import Charge, Entry, Ledger, LedgerError, exact_amount
from expmech.ledger.amounts import show_amount
from expmech.ledger.outbox import SINGLE
from expmech.tables.aggregates import validate_different
from expmech.tables.engines.rows import TableRows, together
from expmech.tables.keys import canonical_key
from expmech.tables.release import PreparedRelease, ReleaseRequest, make_units
from expmech.tables.searches import AUTO, row_limit_search
from expmech.tables.sources.source import Source
from expmech.tables.statistics.base import Statistic, check_missing

if TYPE_CHECKING:
    from expmech.exponential.samplers import Sampler
    from expmech.tables.intervals import QuantileInterval

Record = dict[str, Any]
Aggregates = Mapping[str, Any]
"""The aggregate of each group; without groups there is one, without a name."""

RECORDS = {"place": TableOptions, "budget": BudgetOptions, "options": ReleaseOptions}
_OWNER = "release"
_MOST_CELLS = 1 << 20
_MOST_ROWS = 1 << 31
_FEW = (
    " A group of few rows, or of none, gives a value that says little: release the count of each"
    " group beside it."
)

_NO_INTERVAL = (
    "`--interval-share` of a quantile needs one level and one column of numbers between public"
    " bounds, without --by, --unit, --sampler and --delta."
)

_LIST_FIRST = (
    "`--groups` must list the groups of {by}. Where nobody knows them, find them by a release of"
    " its own: `expmech release count ... --by {by} --universe text:20 --output shown.json`, then"
    " give them as --groups @shown.json."
)


@dataclass(frozen=True, kw_only=True)
class ReleaseCommand:
    """What a command line, or an entry of a plan file, asks for; no table was touched yet.

    With ``bounded`` the statistics stand in for those between bounds, or of rows within a limit,
    that are found first, in this order.
    """

    request: ReleaseRequest
    statistics: tuple[Statistic, ...]
    place: TableOptions
    options: ReleaseOptions
    as_json: bool = False
    check: Fraction | None = None
    """What is spent besides on how many values are usable numbers."""
    bounded: tuple[SearchCommand, ...] = ()
    interval: IntervalOptions | None = None
    """An interval of the one quantile, bought with a share of its epsilon."""

    @property
    def before(self) -> tuple[ReleaseCommand, ...]:
        """Return the releases of a row limit and of private bounds that the command needs."""
        return tuple(
            replace(
                self,
                request=each.request(self.request),
                statistics=each.search.statistics,
                bounded=(),
                check=None,
            )
            for each in self.bounded
        )

    @property
    def adjacency(self) -> Adjacency:
        """Return the neighbours of every statistic of the command."""
        return self.statistics[0].adjacency

    def prepare(self, source: Source) -> list[PreparedRelease]:
        """Prepare what is public of each statistic; together they spend the epsilon asked for.

        Where people have several rows, it is of the rows that count.
        """
        source = source if self.request.units is None else self.request.units.bound(source)
        share = self.request.share(len(self.statistics))
        prepared = [share.prepare(statistic, source) for statistic in self.statistics]
        if self.interval is not None:
            interval = self.quantile_interval(self.interval, prepared[0])
            notes = (interval.note, *self.request.notes)
            prepared = [
                replace(self.request, epsilon=epsilon, notes=notes).prepare(part, source)
                for part, epsilon in interval.parts
            ]
        if self.check is None:
            return prepared
        columns = dict.fromkeys(
            column for each in prepared for column in each.aggregation.number_columns
        )
        if not columns:
            raise ParameterError(
                "`--check` counts the values that are usable numbers, and"
                f" {prepared[0].statement} reads no column as numbers: leave it out."
            )
        from expmech.tables.statistics import UsableOf

        usable = UsableOf(columns=tuple(columns), adjacency=self.adjacency, named=True)
        asked = replace(self.request, epsilon=self.check, delta=Fraction(0), sampler="auto")
        return [*prepared, asked.prepare(usable, source)]

    def quantile_interval(
        self, asked: IntervalOptions, prepared: PreparedRelease
    ) -> QuantileInterval:
        """Return the interval that is asked for: a quantile with its two ends."""
        from expmech.tables.intervals import QuantileInterval

        (quantile,) = self.statistics
        return QuantileInterval.plan(
            quantile,  # type: ignore[arg-type]
            epsilon=self.request.epsilon,
            share=asked.interval_share,
            rows=asked.rows if prepared.count is None else prepared.count,
            owner="a quantile",
            spelt=("--interval-share", "--rows"),
        )

    def cards(self, records: Sequence[Record], prepared: Sequence[PreparedRelease]) -> list[Record]:
        """Return what a reader is shown: a quantile and its two ends, if all are there, as one."""
        if self.interval is None or len(records) < len(prepared):
            return list(records)
        return [
            joined(records[:3], self.quantile_interval(self.interval, prepared[0])),
            *records[3:],
        ]

    def ledger(self, source: Source) -> Ledger | None:
        """Return the ledger; raise where it is another's or of the other adjacency."""
        if self.options.ledger is None:
            return None
        ledger = Ledger(self.options.ledger, data_set=source.names, members=source.members)
        ledger.require_adjacency(self.request.relation(self.adjacency))
        return ledger


@dataclass(frozen=True, kw_only=True)
class ReleaseLine:
    """The options of a release as they were given; what no table decides was checked.

    ``epsilon`` and ``notes`` are those of the statistic, after what was found before it.
    """

    statistic: StatisticCommand
    place: TableOptions
    budget: BudgetOptions
    options: ReleaseOptions
    own: Mapping[str, Any]
    adjacency: Adjacency
    missing: str
    epsilon: Fraction
    notes: tuple[str, ...] = ()

    def later(
        self, epsilon: Fraction, notes: tuple[str, ...], redeem: int | None, **changed: Any
    ) -> ReleaseLine:
        """Return the line of what follows a search: the rest of epsilon, and what was found."""
        options = replace(self.options, redeem=redeem)
        notes = (*notes, *self.notes)
        return replace(self, epsilon=epsilon, notes=notes, options=options, **changed)

    def command(self) -> ReleaseCommand:
        """Return what is asked for; a row limit, then bounds, that nobody knows are found first."""
        if self.interval is not None and self.place.unit is not None:
            raise ParameterError(_NO_INTERVAL)
        if self.place.max_rows == AUTO and self.place.unit is not None:
            search = row_limit_search(
                self.place.unit,
                epsilon=self.epsilon,
                share=self.options.max_rows_share,
                name="--max-rows-share",
                owner=_OWNER,
            )
            return LimitedCommand(search=search, line=self).stand_in()
        bounds = bounds_search(
            self.own,
            self.options.bounds_share,
            epsilon=self.epsilon,
            adjacency=self.adjacency,
            missing=self.missing,
            owner=_OWNER,
        )
        if bounds is None:
            return self.between_bounds()
        if self.interval is not None:
            raise ParameterError(_NO_INTERVAL)
        return BoundedCommand(search=bounds, line=self).stand_in()

    @property
    def interval(self) -> IntervalOptions | None:
        """Return the interval of a quantile, if one is asked for."""
        given = self.own.get("interval")
        asked = isinstance(given, IntervalOptions) and given.interval_share is not None
        return given if asked else None

    def _check_interval(self, statistics: Sequence[Statistic]) -> None:
        """Raise where there can be no interval, or ``--rows`` is missing or too much."""
        options, interval = self.options, self.interval
        if interval is None:
            return
        from expmech.tables.statistics import QuantileOf

        first = statistics[0]
        one = len(statistics) == 1 and isinstance(first, QuantileOf) and not first.dates
        if not one or options.by or options.sampler or options.delta:
            raise ParameterError(_NO_INTERVAL)
        if self.adjacency.count_is_public is (interval.rows is None):
            return
        raise ParameterError(
            "`--rows` of a quantile must be given with --interval-share under add-remove, where the"
            " number of rows is confidential: how many values there are at least, from what is"
            " publicly known. Under replace it is left out."
        )

    def between_bounds(self) -> ReleaseCommand:
        """Return what is asked for, whose bounds are known; raise where options contradict."""
        options, place, timing = self.options, self.place, self.budget.timing
        delta = exact_amount(options.delta or "0", name="--delta", owner=_OWNER, zero=True)
        rho = None if options.ledger is None else Ledger(options.ledger).rho_budget(options.redeem)
        by = tuple(options.by or ())
        if len(by) > 1 and not options.groups:
            raise ParameterError(
                "`--groups` must be given once for each --by, in order: groups that nobody listed"
                f" take one --by; got {len(by)}."
            )
        unlisted = bool(by) and not options.groups
        if unlisted and self.statistic.name != "count":
            raise ParameterError(_LIST_FIRST.format(by=by[0]))
        limit = None
        if place.max_rows is not None:  # without --unit it is refused, whatever it is
            limit = 1 if place.max_rows == AUTO else row_limit(place.max_rows, owner=_OWNER)
        common = CommonSettings(
            self.adjacency,
            missing=self.missing,
            sampler_named=options.sampler is not None or options.delta is not None,
            bounded_range=rho is not None and timing != CONSTANT,
            by=by[0] if unlisted else None,
            delta=delta,
        )
        made = self.statistic.of_table(common, **self.own)
        statistics = made if isinstance(made, tuple) else (made,)
        self._check_interval(statistics)
        own_delta = all(each.takes_delta for each in statistics)
        request = ReleaseRequest(
            epsilon=self.epsilon,
            delta=delta,
            sampler=choose(options.sampler, None if own_delta else options.delta),
            timing=timing,
            budget_seconds=self.budget.budget_seconds,
            by=() if unlisted else by,
            groups={} if unlisted else _groups(options, self.adjacency),
            units=make_units(place.unit, limit, self.adjacency, spelt=("`--unit`", "`--max-rows`")),
            notes=self.notes,
            concentrated=rho,
        )
        if request.units is not None and options.delta is not None and not own_delta:
            raise ParameterError("`--unit` needs a pure release: leave --delta out.")
        check = None
        if options.check is not None:
            check = parse_epsilon(options.check, owner=_OWNER, name="--check")
        return ReleaseCommand(
            request=request,
            statistics=statistics,
            place=place,
            options=options,
            as_json=self.budget.as_json,
            check=check,
            interval=self.interval,
        )


def read_command(
    statistic: StatisticCommand,
    *,
    place: TableOptions,
    budget: BudgetOptions,
    options: ReleaseOptions,
    own: dict[str, Any],
) -> ReleaseCommand:
    """Check the options of a release before the table is touched."""
    place, adjacency = complete(place, budget.adjacency, options.ledger, owner=_OWNER)
    missing = check_missing(options.missing, adjacency, owner=_OWNER)
    epsilon = parse_epsilon(budget.epsilon, owner=_OWNER)
    if options.redeem is not None and options.ledger is None:
        raise ParameterError("`--redeem` needs --ledger: a charge of it is redeemed.")
    limit_is_found = place.max_rows == AUTO and place.unit is not None
    if options.max_rows_share is not None and not limit_is_found:
        raise ParameterError(
            f"`--max-rows-share` of {_OWNER} belongs to --max-rows auto: give both, or leave it"
            " out."
        )
    return ReleaseLine(
        statistic=statistic,
        place=place,
        budget=budget,
        options=options,
        own=own,
        adjacency=adjacency,
        missing=missing,
        epsilon=epsilon,
    ).command()


def run(command: ReleaseCommand) -> None:
    """Release, write and print; what was charged for is printed even where writing fails."""
    options, bounds = command.options, list[Record]()
    with (
        ending() as end,
        closing(open_table(command.place)) as source,
        new_file(options.output) as file,
    ):
        try:
            while command.bounded:
                command, found = _find_first(command, source, end)
                bounds += found
                end.searching = True
            prepared = command.prepare(source)
            records = _release(command, prepared, source, end)
            end.searching = False
        except BaseException as error:  # Ctrl-C too
            for note in command.request.notes if bounds else ():
                error.add_note(
                    f"The {note}. Give this in public (--bounds, --max-rows) to release the rest"
                    " alone."
                )
            raise
        written = [*bounds, *records]
        several = len(bounds) + len(prepared) > 1
        try:
            if file is not None and written:
                text = record_json(written if several else written[0], indent=2, sort_keys=True)
                file.write(text + "\n")
                file.flush()
        finally:
            end.printing = True
            shown = written if command.as_json or options.verbose else records
            if command.interval and not command.as_json:
                cards = command.cards(records, prepared)
                shown = [*cards[:1], *records] if options.verbose else cards
            _show(command, shown, several=several)
        if len(records) < (1 if command.options.redeem is not None else len(prepared)):
            raise typer.Exit(MISTAKE)


def _find_first(
    command: ReleaseCommand, source: Source, end: Ending
) -> tuple[ReleaseCommand, list[Record]]:
    """Release a row limit or private bounds; return the command for them, and their records.

    What public quantities or the ledger refuse of the whole is refused before the first charge.
    """
    ledger, number = command.ledger(source), command.options.redeem
    (first, *_), (bounded, *_) = command.before, command.bounded
    prepared, *between = (each.prepare(source) for each in command.before)
    later = [*itertools.chain(*between), *command.prepare(source)]
    complaints.print(bounded.announcement(prepared), markup=False)
    if ledger is not None and number is not None:
        records, own = _redeemed_bounds(ledger, number, bounded, prepared, end)
        end.searching = False
        return bounded.after([each["value"] for each in records], own), records
    if ledger is not None:
        ledger.require_all([each.entry() for each in (*prepared, *later)])
    records = _release(first, prepared, source, end)
    if len(records) < len(prepared):
        raise typer.Exit(MISTAKE)
    end.searching = False  # where none are found, nothing is to come
    return bounded.after([each["value"] for each in records], None), records


def _redeemed_bounds(
    ledger: Ledger,
    number: int,
    bounded: SearchCommand,
    prepared: Sequence[PreparedRelease],
    end: Ending,
) -> tuple[list[Record], int | None]:
    """Return the bounds that belong to a charge, and the charge if it is that of the statistic.

    Bounds of one run were charged together, so their numbers follow each other.
    """
    kept, history = ledger.outbox(), ledger.history()
    entries = [each.entry(SINGLE) for each in prepared]
    runs = [history[k : k + len(entries)] for k in range(len(history) - len(entries) + 1)]
    runs = [
        charges
        for charges in runs
        if all(
            each.run and each.is_for(entry) for each, entry in zip(charges, entries, strict=True)
        )
    ]
    for charges in runs:
        if all(each.number != number for each in charges):
            continue
        if _never_followed(charges, history, kept, bounded):
            return [_kept_record(kept, each) for each in charges], None
        records = list[Record]()
        for charge, each, entry in zip(charges, prepared, entries, strict=True):
            if charge.number in kept and charge.number != number:
                records.append(_kept_record(kept, charge))
            else:
                redeem = partial(_redeem_one, ledger, charge.number, entry)
                records.append(deliver(ledger, end.charged(ledger, redeem)[0], each))
        return records, None
    certificates = [each.certificate for each in history if each.number == number]
    for charges in reversed(runs):
        if certificates and all(each.number in kept for each in charges):
            records = [_kept_record(kept, each) for each in charges]
            if bounded.stands_in(certificates[0], [each["value"] for each in records]):
                return records, number
    raise LedgerError(
        f"Charge {number} was made for another release: no"
        f" {' and '.join(each.statement for each in prepared)} with this share of epsilon was"
        " charged for it. Ask for the same one, with the same options."
    )


def _never_followed(
    charges: Sequence[Charge],
    history: Sequence[Charge],
    kept: Mapping[int, str],
    bounded: SearchCommand,
) -> bool:
    """Return whether bounds are kept of which no later charge says that it was made for them."""
    if any(each.number not in kept for each in charges):
        return False
    values = [_kept_record(kept, each)["value"] for each in charges]
    later = (each for each in history if each.number > charges[-1].number)
    return not any(bounded.stands_in(each.certificate, values) for each in later)


def _kept_record(kept: Mapping[int, str], charge: Charge) -> Record:
    return read_json(kept[charge.number], name=f"The value of {charge.number}")  # type: ignore[no-any-return]


def _redeem_one(ledger: Ledger, number: int, entry: Entry) -> list[Charge]:
    return [ledger.redeem(number, entry)]


def _release(
    command: ReleaseCommand, prepared: Sequence[PreparedRelease], source: Source, end: Ending
) -> list[Record]:
    """Charge, aggregate, draw, in this order; return the records of the releases.

    What was charged for is in the ledger's outbox before it is returned.
    """
    ledger = command.ledger(source)
    warn_of(command.request, [each.certificate for each in prepared])
    charges: Sequence[Charge | None] = [None] * len(prepared)
    if ledger is not None and command.options.redeem is None:
        entries = [each.entry(SINGLE) for each in prepared]
        charges = end.charged(ledger, lambda: ledger.charge_all(entries))
    elif ledger is not None and command.options.redeem is not None:
        number = command.options.redeem
        statements = {charge.number: charge.statement for charge in ledger.history()}
        same = [each for each in prepared if each.statement == statements.get(number)]
        prepared = [(same or prepared)[0]]  # the ledger refuses another one
        entry = prepared[0].entry(SINGLE)
        charges = end.charged(ledger, lambda: [ledger.redeem(number, entry)])
    aggregates: Sequence[Aggregates | None] = [None] * len(prepared)
    if len(prepared) > 1 and command.options.missing != "error":
        aggregates = aggregate_together(prepared)  # else a row of one column may refuse others
    records = []
    for each, charge, computed in zip(prepared, charges, aggregates, strict=True):
        try:
            records.append(deliver(ledger, charge, each, computed))
        except ExpmechError as error:
            if len(prepared) == 1:
                raise
            # of several columns the others are not held up by it
            complaints.print(f"error: {each.statement}: {error}", style="red", markup=False)
    return records


def aggregate_together(prepared: Sequence[PreparedRelease]) -> list[Aggregates]:
    """Aggregate for several releases of one table, in one pass where that can be. Charge first."""
    aggregations = [each.aggregation for each in prepared]
    with shown_passes() as progress:
        computed = {
            group: replace(rows, progress=progress).aggregate_each(aggregations)
            for group, rows in prepared[0].parts.items()
        }
    return [{group: each[k] for group, each in computed.items()} for k in range(len(prepared))]


def deliver(
    ledger: Ledger | None,
    charge: Charge | None,
    prepared: PreparedRelease,
    aggregates: Aggregates | None = None,
) -> Record:
    """Draw the value; if it was charged for, keep it in the outbox and return what that holds."""
    record = draw(prepared, aggregates)
    if ledger is None or charge is None:
        return with_digest(record)
    try:
        epsilon, delta = ledger.left
        left = {"epsilon": show_amount(epsilon), "delta": show_amount(delta)}
        record = with_digest(record | {"charge": charge.number, "left": left})
        text = record_json(record)
        kept = ledger.deliver(charge.number, text)
    except LedgerError as error:
        # not shown either: a value that nobody keeps could be drawn a second time
        raise LedgerError(
            f"The value of charge {charge.number} could not be kept and was not shown: {error} Make"
            f" room, then ask for the same release with --redeem {charge.number}."
        ) from None
    return record if kept == text else read_json(kept, name=f"The value of {charge.number}")


def draw(prepared: PreparedRelease, aggregates: Aggregates | None = None) -> Record:
    """Aggregate, unless that was done for several at once, and draw; return the record."""
    request, seconds = prepared.request, prepared.public.seconds
    if seconds >= LONG and not complaints.is_terminal:  # no progress bar is shown
        complaints.print(announcement(seconds))
    grouped = together(prepared.parts, prepared.aggregation)
    if aggregates is None and grouped is not None:
        source = next(iter(prepared.parts.values())).source
        whole = TableRows(source=source).aggregate(grouped)
        aggregates = dict(zip(prepared.parts, whole, strict=True))
    with shown_passes() as progress:  # a regression reads its rows while it draws
        releases = {
            group: prepared.release(
                replace(rows, progress=progress).aggregate(prepared.aggregation)
                if aggregates is None
                else aggregates[group]
            )
            for group, rows in prepared.parts.items()
        }
    values = {group: plain(release.value) for group, release in releases.items()}
    record: Record = {
        "statement": prepared.statement,
        "value": values.get("", values),  # without groups, or of one law, there is one part
        "accuracy": _accuracy(prepared, releases),
        "certificate": prepared.certificate,
    }
    if prepared.public.reading:
        record["reading"] = list(prepared.public.reading)
    if request.by:
        record["groups"] = list(request.groups)
    if request.units is not None:
        unit = {"column": request.units.column, "max_rows": request.units.max_rows}
        record["unit"] = unit | {"epsilon": show_amount(request.epsilon)}
        if request.units.counted:
            record["unit"]["counted"] = True
    return record


def _accuracy(prepared: PreparedRelease, releases: dict[str, Release]) -> dict[str, Any]:
    """Return how far the truth may be, in the shape of the value, and what that means."""
    grouped = "" not in releases
    near = {
        name: release.accuracy for name, release in releases.items() if release.accuracy is not None
    }
    jointly = any(interval.joint_lower is not None for interval in near.values())
    statement = prepared.nearness(has_interval=bool(near), jointly=jointly)
    accuracy: dict[str, Any] = {"statement": statement}
    if not near:
        if grouped:
            accuracy["statement"] += _FEW
        return accuracy
    accuracy["level"] = float(LEVEL)
    for part in ("lower", "upper", "scale", "joint_lower", "joint_upper"):
        ends = {name: plain(getattr(interval, part)) for name, interval in near.items()}
        if part.startswith("joint") and None in ends.values():
            continue  # there is one number
        accuracy[part] = ends if grouped else ends[""]
    noisy = {
        name: list(interval.noisy) for name, interval in near.items() if interval.noisy is not None
    }
    if noisy:
        accuracy["noisy"] = noisy if grouped else noisy[""]
    return accuracy


def _show(command: ReleaseCommand, records: Sequence[Record], *, several: bool) -> None:
    try:
        if command.as_json and several:
            output.print_json(record_json(records))
            return
        for place, record in enumerate(records):
            if command.as_json:
                output.print_json(record_json(record))
                continue
            if place:
                output.print()
            show(record, verbose=command.options.verbose)
    except OSError as error:
        raise unshown(records, command.options.ledger, error) from None


def unshown(records: Sequence[Record], ledger: Path | None, error: OSError) -> ExpmechError:
    """Return the error of values that could not be printed: how they are shown again."""
    where = "" if ledger is None else f" expmech budget recover {ledger} shows the value again."
    statements = ", ".join(record["statement"] for record in records)
    return ExpmechError(f"{statements} cannot be printed: {error.strerror}.{where}")


def _groups(options: ReleaseOptions, adjacency: Adjacency) -> dict[str, tuple[str, ...]]:
    """Return the groups that were listed: their names, and the value of each in every column.

    With several columns every value of one is crossed with every value of the others. A row has one
    value in each column, so that it is in one group at most.
    """
    by, texts = options.by or [], options.groups or []
    if len(by) != len(texts):
        raise ParameterError(
            "`--by` and `--groups` belong together: a column, and the public list of its groups,"
            f" as often and in the same order; got {len(by)} and {len(texts)}."
        )
    if not by:
        return {}
    validate_different(by)
    if adjacency != Adjacency.ADD_REMOVE:
        raise ParameterError(
            "`--by` needs --adjacency add-remove: under 'replace' a row can change group, which"
            " costs twice and moves the group sizes."
        )
    lists = [read_list(text, "--groups") for text in texts]
    for text, groups in zip(texts, lists, strict=True):
        if not groups:
            raise ParameterError(f"`--groups` must name at least one group; got {text!r}.")
        if len({canonical_key(group) for group in groups}) != len(groups):
            raise ParameterError(f"`--groups` must differ from each other; got {text}.")
    if len(by) == 1:
        return {group: (group,) for group in lists[0]}
    cells = math.prod(map(len, lists))
    if cells > _MOST_CELLS:
        raise ParameterError(f"`--groups` must cross to at most {_MOST_CELLS} groups; got {cells}.")
    return {join(values, ", "): values for values in itertools.product(*lists)}


def choose(sampler: str | None, delta: str | None) -> Sampler | str:
    """Return the sampler of this name, or the Metropolis chain of a delta."""
    if sampler is None and delta is None:
        return "auto"
    from expmech.exponential.samplers import Metropolis
    from expmech.exponential.samplers.registry import names, validate_sampler

    if sampler is not None:
        choices = [*names(), Metropolis.name()]
        validate_choice(sampler, name="--sampler", owner=_OWNER, choices=choices)
        if delta is None and sampler != Metropolis.name():
            return validate_sampler(sampler)
    if delta is None:
        return Metropolis(pure=True)
    if sampler not in (None, Metropolis.name()):
        raise ParameterError(f"`--delta` belongs to --sampler Metropolis; got {sampler!r}.")
    return Metropolis(delta=float(exact_amount(delta, name="--delta", owner=_OWNER)))


@user_errors()
def _work(name: str, **given: Any) -> None:
    run(read_command(STATISTICS[name], **given))


app = typer.Typer(
    cls=group_of(RECORDS, {name: each.of_table for name, each in STATISTICS.items()}, _work),
    add_completion=False,
    no_args_is_help=True,
    invoke_without_command=True,
)


@app.callback()
def whole(
    context: typer.Context,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A TOML file of releases, all or none.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --plan: check and show costs, read no record.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="With --plan: charge for a second run of it.")
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", help="With --dry-run: a public guess of the number of rows, for the errors."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Release one statistic of a table, or all that a plan lists."""
    if plan is None:
        if context.invoked_subcommand is None:
            raise typer.BadParameter("a statistic, or --plan FILE, is needed.")
        if dry_run or again or as_json or rows is not None:
            raise typer.BadParameter(
                "--dry-run, --again and --rows belong to --plan; --json comes last."
            )
        return
    if context.invoked_subcommand is not None:
        raise typer.BadParameter("--plan stands alone: the plan names its statistics.")
    if rows is not None and not dry_run:
        raise typer.BadParameter("--rows belongs to --dry-run.")
    from expmech.cli.plan_file import run_plan

    with user_errors():
        if rows is not None:
            validate_integer(rows, name="--rows", owner=_OWNER, low=2, high=_MOST_ROWS)
        run_plan(plan, dry_run=dry_run, again=again, as_json=as_json, rows=rows)
