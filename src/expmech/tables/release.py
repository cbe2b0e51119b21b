"""The one road of a release: prepare what is public, charge, aggregate, draw, post-process.

Estimators, :func:`release` and the command line walk it alike. The order is that of the guarantee:
nothing but public quantities decides what is charged, and no row is read before the charge.

>>> import pyarrow
>>> from expmech.core.adjacency import Adjacency
>>> from expmech.tables.sources.opening import open_frame
>>> from expmech.tables.statistics import CountOf
>>> visits = open_frame(pyarrow.table({"who": ["a", "a", "b"]}), name="visits")
>>> count = CountOf(adjacency=Adjacency.ADD_REMOVE)
>>> release(visits, count, epsilon=1000, unit="who", max_rows=1).value
2
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from expmech.certificates.certificate import Certificate, epsilon_up
from expmech.certificates.mechanism import CertificateContext, Mechanism, PreparedDraw, Release
from expmech.certificates.plan import within_ranks
from expmech.certificates.timing import AUTO, CONSTANT
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError, ParameterError, validate_integer
from expmech.core.markup import visible
from expmech.core.rounding import EPSILON_MIN
from expmech.ledger import Entry, Ledger, exact_amount
from expmech.ledger.amounts import show_amount
from expmech.ledger.outbox import charges_noted
from expmech.tables.aggregates import Aggregation, Rows
from expmech.tables.engines.rows import TableRows, together
from expmech.tables.reading import DATES_IN_MEMORY, NUMBERS_IN_MEMORY
from expmech.tables.searches import AUTO as AUTO_LIMIT
from expmech.tables.searches import release_after, row_limit_search
from expmech.tables.sources.source import Source
from expmech.tables.sources.units import MOST_ROWS, Units
from expmech.tables.statistics.base import Statistic, one_of_several
from expmech.theory.concentrated import RhoBudget

if TYPE_CHECKING:
    from expmech.exponential.samplers import Sampler

LEAST_ROWS = 2
LONGEST = 60.0
"""Seconds that a named chain may take unless a budget says otherwise."""

_COVERS = (
    "In at least 95% of releases the interval contains the exact value computed from the table,"
    " with values clipped to their bounds.{missing} The interval follows from the noise and from"
    " what was released, not from the data."
)
_ALL_AT_ONCE = (
    " The wider intervals cover all numbers of a release at once in at least 95% of releases."
)
_CHANGED = (
    "The rows do not fit the certificate that was charged: their number changed after it was"
    " counted. Nothing was released."
)


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """What a caller asks of a release, checked before a row is read.

    ``epsilon`` is what one row spends or, with ``units``, one unit with all its rows. ``groups``
    are disjoint parts of the table: the name of each, and its public value in each column of
    ``by``. ``owner`` is whom errors name, and ``notes`` are added to the certificate.
    ``concentrated`` is what a ledger has that counts in rho.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    sampler: Sampler | str = "auto"
    timing: str = AUTO
    budget_seconds: float | None = None
    by: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    units: Units | None = None
    owner: str | None = None
    notes: tuple[str, ...] = ()
    concentrated: RhoBudget | None = None

    @property
    def row_epsilon(self) -> Fraction:
        """Return the epsilon of a row: all of it, unless a unit has several rows."""
        return self.epsilon if self.units is None else self.units.of_a_row(self.epsilon)

    def relation(self, adjacency: Adjacency) -> str:
        """Return the neighbours a ledger counts: tables that differ by a row, or by a unit."""
        return str(adjacency) if self.units is None else self.units.adjacency

    def share(self, count: int) -> ReleaseRequest:
        """Return the request for one of ``count`` statistics that share epsilon equally."""
        if count == 1:
            return self
        if self.delta:
            raise ParameterError("`--delta` belongs to one column: ask for each column by itself.")
        if self.epsilon / count < EPSILON_MIN:
            raise ParameterError(
                "`--epsilon` of release must leave each column at least 2^-20; got"
                f" {show_amount(self.epsilon)} for {count} columns."
            )
        note = one_of_several(count, "call", show_amount(self.epsilon))
        return dataclasses.replace(self, epsilon=self.epsilon / count, notes=(note, *self.notes))

    def prepare_rows(
        self, statistic: Statistic, count: int | None, **public: Any
    ) -> PreparedRelease:
        """Prepare what is public of rows, made once for equal public arguments.

        ``count`` is the number of rows where it is public, else None; ``public`` are further
        arguments of :func:`remembered_release`.
        """
        timed = self.budget_seconds is not None or self.sampler != "auto"
        asked = [value for name, value in vars(self).items() if name != "groups"]
        plain = not timed and _is_plain((statistic, count, *asked, *public.values()))
        made = remembered_release if plain else remembered_release.__wrapped__
        return made(self, statistic, count, spelling=repr(statistic) if plain else "", **public)

    def prepare(self, statistic: Statistic, source: Source) -> PreparedRelease:
        """Check columns and prepare what is public; raise where a release cannot be.

        Under add-remove, where there are groups, nothing public distinguishes them, so one
        certificate serves all of them.
        """
        if statistic.adjacency.count_is_public and not source.keeps_all:
            raise ParameterError(
                "`query` needs 'add-remove' adjacency unless it only computes columns: how many"
                " rows its result has depends on the data."
            )
        elsewhere = source.unit_elsewhere
        if elsewhere is not None and (self.units is None or self.units.column != elsewhere):
            raise ParameterError(
                f"`unit` must be {elsewhere!r}, which was found in another table: a row of that one"
                " may belong to many rows of this one."
            )
        if self.units is not None:
            statistic = statistic.for_units(self.units.column, self.units.max_rows)
        if self.concentrated is not None and self.units is None:  # else K rows cost K^2 rho
            statistic = statistic.with_rho(self.concentrated)
        whole = statistic.over_groups(self.by, self.groups) if self.groups else None
        statistic = whole or statistic
        groups = self.groups if whole is None and self.groups else {"": ()}
        parts = {
            name: TableRows(source=source, by=self.by if name else (), group=values)
            for name, values in groups.items()
        }
        aggregation = statistic.aggregation(self.row_epsilon)
        numbers = [str(column) for column in aggregation.number_columns]
        for name in numbers:
            source.require_numbers(name)
        grouped = together(parts, aggregation)
        if grouped is not None:
            TableRows(source=source).check(grouped)
        for rows in parts.values() if grouped is None else ():
            rows.check(aggregation)
        first = next(iter(parts.values()))
        notes = () if self.units is None else self.units.notes(self.epsilon)
        statement = " by ".join(filter(None, (statistic.name, " and ".join(self.by))))
        if self.units is not None:
            statement += self.units.statement
        noted = dataclasses.replace(self, notes=(*self.notes, *notes, *aggregation.engine_notes))
        prepared = noted.prepare_rows(
            statistic,
            public_count(first, statistic.adjacency),
            premises=source.notes,
            statement=visible(statement),
            reading=source.reading(numbers, [str(name) for name in aggregation.date_columns]),
        )
        # Groups in another order make an equal request: what is remembered may have that one.
        prepared = dataclasses.replace(prepared, parts=parts, request=noted)
        if self.units and prepared.certificate.delta and not statistic.takes_delta:
            raise ParameterError("`unit` needs a pure release: name no sampler with a delta.")
        return prepared


@dataclass(frozen=True, kw_only=True)
class PreparedRelease:
    """A statistic with its budget, everything public decided: charge it, then aggregate and draw.

    ``public`` is the draw, prepared before a row is read: an aggregate of rows is put in it later
    and changes nothing of what it says. ``count`` is the number of rows where it is public.
    ``certificate`` is the one the release will carry. ``parts`` are the rows of each group of a
    table; without groups there is one part, without a name.
    """

    statistic: Statistic
    request: ReleaseRequest
    count: int | None
    public: PreparedDraw
    certificate: Certificate
    statement: str
    parts: Mapping[str, TableRows] = field(default_factory=dict)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism, before a row is read."""
        return self.public.mechanism

    @cached_property
    def aggregation(self) -> Aggregation:
        """What will be computed from the rows."""
        return self.statistic.aggregation(self.request.row_epsilon)

    def entry(self, run: str = "") -> Entry:
        """Return what a ledger is charged, once for all groups: they are disjoint."""
        epsilon = self.request.epsilon
        if self.certificate.epsilon != epsilon_up(self.request.row_epsilon):
            epsilon = Fraction(repr(self.certificate.epsilon))  # what Gaussian noise has at delta
        return Entry(
            epsilon=epsilon,
            delta=self.request.delta or self.certificate.delta,
            statement=self.statement,
            certificate=self.certificate.to_json(),
            adjacency=self.request.relation(self.statistic.adjacency),
            groups=tuple(self.request.groups),
            run=run,
        )

    def release(self, aggregate: Any) -> Release:
        """Draw the value from an aggregate of the rows; it may leave."""
        return self.with_aggregate(aggregate).release()

    def study(self, aggregate: Any, seed: int | Sequence[int]) -> Release:
        """Draw the value from a seeded stream: never a release."""
        return self.with_aggregate(aggregate).study(seed)

    @np.errstate(all="ignore")  # whatever the caller's state: a record must not make a warning
    def with_aggregate(self, aggregate: Any) -> PreparedDraw:
        """Return the draw from an aggregate; raise where a public number of rows has changed."""
        public = self.statistic.adjacency.count_is_public
        if public and self.statistic.count_of(aggregate) not in (None, self.count):
            raise DataError(_CHANGED)
        return self.public.with_data(self.statistic.data(aggregate, self.request.row_epsilon))

    def nearness(self, *, has_interval: bool, jointly: bool = False) -> str:
        """Return what can be said in public about how far a release is from the truth."""
        if has_interval:
            statement = self.statistic.missing_statement
            general = _COVERS.format(missing=f" {statement}" if statement else "")
            return (self.statistic.covers or general) + (_ALL_AT_ONCE if jointly else "")
        if self.public.accuracy_statement:
            return self.public.accuracy_statement
        if self.statistic.shortfall is None:
            return self.statistic.no_interval
        plan = self.mechanism.plan(self.request.row_epsilon, timing=self.request.timing)
        if plan.excess_loss is None:
            return self.statistic.no_interval
        sentence = self.statistic.shortfall.format(plan.excess_loss[1])
        return f"In at least 95% of releases {sentence}. {self.statistic.no_interval}"


@lru_cache(maxsize=64)
@np.errstate(all="ignore")  # of public numbers here: bounds of 1e308 may underflow
def remembered_release(
    request: ReleaseRequest,
    statistic: Statistic,
    count: int | None,
    *,
    spelling: str,
    statement: str | None = None,
    premises: tuple[str, ...] = (),
    reading: tuple[str, ...] | None = None,
) -> PreparedRelease:
    """Certify before a row is read; ``premises`` come first among the assumptions.

    ``reading`` is None for rows in memory, whose values are read alike whatever their type.

    What is forecast to take longer than the budget of seconds is refused, and without one a named
    chain of constant length that would take over a minute. ``spelling`` keeps apart what is equal
    and written differently, such as 0.0 and -0.0.
    """
    seconds, name, epsilon = request.budget_seconds, statistic.name, request.row_epsilon
    if seconds is None and not isinstance(request.sampler, str):
        seconds = LONGEST if request.sampler.timing == CONSTANT else None
    public = statistic.public_mechanism(epsilon, count, request.timing).prepare(
        epsilon=epsilon,
        sampler=request.sampler,
        timing=request.timing,
        budget_seconds=seconds,
        stand_in=True,
        context=CertificateContext(
            statistic=name,
            owner=request.owner,
            postprocessing=statistic.postprocessing,
            premises=premises,
            notes=(*statistic.notes, *request.notes),
        ),
    )
    if statement is None:
        statement = name if request.owner is None else f"{request.owner}: {name}"
    ranks = statistic.rank_error(epsilon, public.certificate.domain.get("count"))
    sentences = _in_memory(statistic.aggregation(epsilon)) if reading is None else reading
    public = dataclasses.replace(
        public,
        accuracy_statement="" if ranks is None else within_ranks(ranks),
        reading=tuple(filter(None, (statistic.missing_statement, *sentences))),
    )
    return PreparedRelease(
        statistic=statistic,
        request=request,
        count=count,
        public=public,
        certificate=public.certificate,
        statement=statement,
    )


def _in_memory(aggregation: Aggregation) -> Iterator[str]:
    """Yield how an aggregation reads the values of arrays, lists and frames."""
    if aggregation.number_columns:
        yield NUMBERS_IN_MEMORY
    if aggregation.date_columns:
        yield DATES_IN_MEMORY


_PLAIN = {type(None), bool, int, float, str, Fraction, Decimal, date, datetime, Adjacency}


def _is_plain(value: Any) -> bool:
    """Tell whether a value is a number, text, or a frozen record of the library of such values.

    Equal ones that are written alike are then the same. A class or a function outside the library
    may be equal to another one that does something else: nothing that holds one is remembered.
    """
    if type(value) is tuple:
        return set(map(type, value)) <= _PLAIN or all(map(_is_plain, value))
    parameters = vars(type(value)).get("__dataclass_params__")
    if parameters is None:  # or a number or a text of NumPy, as the classes of labels are
        numpy = isinstance(value, np.generic) and type(value).__module__ == "numpy"
        return type(value) in _PLAIN or (numpy and value.dtype.kind in "biufU")
    ours = type(value).__module__.startswith("expmech.") and parameters.frozen and parameters.eq
    return ours and all(_is_plain(getattr(value, part.name)) for part in dataclasses.fields(value))


def make_units(
    unit: str | None,
    max_rows: int | None,
    adjacency: Adjacency,
    *,
    spelt: tuple[str, str] = ("`unit`", "`max_rows`"),
) -> Units | None:
    """Return the bound on the rows of a unit, or None; ``spelt`` are the names that errors use."""
    column, limit = spelt
    if (unit is None) != (max_rows is None):
        raise ParameterError(
            f"{column} and {limit} belong together: a column that names people, and how many rows"
            " of each count."
        )
    if unit is None or max_rows is None:
        return None
    if adjacency != Adjacency.ADD_REMOVE:
        relation = "--adjacency add-remove" if "--" in column else "'add-remove' adjacency"
        raise ParameterError(
            f"{column} needs {relation}: neighbours differ by one unit more or less."
        )
    most = validate_integer(max_rows, name=limit.strip("`"), owner="release", low=1, high=MOST_ROWS)
    return Units(column=unit, max_rows=most)


def public_count(rows: Rows, adjacency: Adjacency, *, least: int = LEAST_ROWS) -> int | None:
    """Return the number of rows where it is public; refuse a table too small for a statistic."""
    if not adjacency.count_is_public:
        return None
    count = rows.count()
    if count == 0:
        raise DataError("The table has no rows.")
    if count < least:
        raise DataError("The table has one row: at least two are needed for a statistic of many.")
    return count


@contextmanager
def charged(ledger: Ledger | None, prepared: Sequence[PreparedRelease]) -> Iterator[None]:
    """Charge all releases at once, before the work inside; an error inside names the charges."""
    if ledger is None:
        yield
        return
    charges = ledger.charge_all([each.entry() for each in prepared])
    with charges_noted(ledger.path, charges):
        yield


def release_all(
    prepared: Sequence[PreparedRelease],
    rows: Rows,
    *,
    ledger: Ledger | None,
    seed: int | None = None,
    before: int = 0,
) -> list[Release]:
    """Charge all releases at once, then aggregate and draw, in this order.

    With a seed they are studies, for which nothing is charged; ``before`` is how many of the same
    seed there were already.
    """
    with charged(ledger if seed is None else None, prepared), np.errstate(all="ignore"):
        aggregations = [each.aggregation for each in prepared]
        first = [aggregations.index(aggregation) for aggregation in aggregations]
        computed = {k: rows.aggregate(aggregations[k]) for k in dict.fromkeys(first)}  # equal: once
        pairs = [(each, computed[k]) for each, k in zip(prepared, first, strict=True)]
        if seed is None:
            return [each.release(part) for each, part in pairs]
        return [each.study(part, (seed, before + k)) for k, (each, part) in enumerate(pairs)]


def account_of(ledger: Ledger | str | Path | None, source: Source | None = None) -> Ledger | None:
    """Return the ledger that was given, if any; raise where it is that of another table."""
    if ledger is None or (source is None and isinstance(ledger, Ledger)):
        return ledger
    path = ledger.path if isinstance(ledger, Ledger) else Path(ledger)
    if source is None:
        return Ledger(path)
    return Ledger(path, data_set=source.names, members=source.members)


def release(
    source: Source,
    statistic: Statistic,
    *,
    epsilon: Any,
    ledger: Ledger | str | Path | None = None,
    unit: str | None = None,
    max_rows: int | str | None = None,
    max_rows_share: Any = None,
    sampler: Sampler | str = "auto",
    timing: str = AUTO,
    budget_seconds: float | None = None,
) -> Release:
    """Release one statistic of a table, computed where the rows are.

    Parameters
    ----------
    source : Source
        A table, from :func:`~expmech.tables.sources.open_source` or
        :func:`~expmech.tables.sources.open_frame`.
    statistic : Statistic
        What is released: one of :mod:`expmech.tables.statistics`.
    epsilon : number or str
        Budget: a number, or decimal text.
    ledger : Ledger, path or None
        Charged before a row is read; a ledger of another data set or adjacency refuses. An error
        after that, Ctrl-C too, has a note that names the charge.
    unit : str or None
        Where people have several rows: the column that names them. Epsilon is then that of one
        unit added or removed, which the certificate says.
    max_rows : int, "auto" or None
        How many rows of each unit count; given together with ``unit``. "auto" finds the number by a
        release before, about a 95% quantile of rows per unit: the certificate says what it is.
    max_rows_share : number or str, optional
        With "auto" the share of epsilon that the limit costs. Default: 0.2.
    sampler, timing, budget_seconds
        As for the estimators.

    Returns
    -------
    Release
        ``value``, ``certificate`` and ``accuracy``; ``bounds`` holds the release of the row limit.

    Raises
    ------
    ParameterError
        Where an argument breaks its rule; nothing was charged.
    LedgerError
        Where the ledger refuses; nothing was charged.

    Examples
    --------
    >>> import pyarrow
    >>> from expmech.tables.sources import open_frame
    >>> from expmech.tables.statistics import CountOf
    >>> source = open_frame(pyarrow.table({"age": [30, 40, 50]}), name="people")
    >>> count = CountOf(adjacency=Adjacency.ADD_REMOVE)
    >>> release(source, count, epsilon=1.0).certificate.epsilon
    1.0
    """
    account = account_of(ledger, source)
    request = ReleaseRequest(
        epsilon=exact_amount(epsilon, name="epsilon", owner="release"),
        sampler=sampler,
        timing=timing,
        budget_seconds=budget_seconds,
        concentrated=None if account is None else account.rho_budget(),
    )

    def prepare(limit: Any, notes: tuple[str, ...]) -> list[PreparedRelease]:
        units = make_units(unit, limit, statistic.adjacency)
        asked = dataclasses.replace(request, units=units, notes=notes)
        return [asked.prepare(statistic, source if units is None else units.bound(source))]

    def draw(prepared: Sequence[PreparedRelease], before: int = 0) -> list[Release]:
        return release_all(prepared, prepared[0].parts[""], ledger=account)

    if max_rows == AUTO_LIMIT and unit is not None:
        search = row_limit_search(
            unit,
            epsilon=request.epsilon,
            share=max_rows_share,
            name="max_rows_share",
            owner="release",
        )
        request = dataclasses.replace(request, epsilon=search.rest)
        asked = ReleaseRequest(epsilon=search.search_epsilon, timing=timing, units=search.units)
        first = asked.prepare(search.statistics[0], search.units.bound(source))
        (released,) = release_after(search, [first], prepare, draw, account)
        return released
    if max_rows_share is not None:
        raise ParameterError(
            '`max_rows_share` of release belongs to max_rows="auto": give both, or leave it out.'
        )
    # without a unit "auto" is refused as any limit is
    (released,) = draw(prepare(1 if max_rows == AUTO_LIMIT else max_rows, ()))
    return released
