"""Releases in one line: a mean, a median, a count of an array, a series, a frame or a file.

Each function makes one statistic of :mod:`expmech.tables.statistics` and takes the road of every
release: what is public is prepared, the ledger is charged, and only then is a value read.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from expmech.certificates.mechanism import Release
from expmech.certificates.timing import AUTO, UNPROTECTED
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.errors import (
    DataError,
    ParameterError,
    ParameterTypeError,
    validate_integer,
    validate_list,
)
from expmech.domains.regions import decimal_fraction
from expmech.ledger import exact_amount
from expmech.tables.arrays import ArrayRows, DeferredRows
from expmech.tables.dates import public_days, read_days, refuse_plain_numbers
from expmech.tables.expressions import Node
from expmech.tables.grammar import parse_condition
from expmech.tables.intervals import QuantileInterval
from expmech.tables.reading import frame_columns, read_column, refuse_declared
from expmech.tables.release import (
    PreparedRelease,
    ReleaseRequest,
    account_of,
    public_count,
    release_all,
)
from expmech.tables.scaling import Bounds, validate_bounds
from expmech.tables.searches import (
    DEFAULT_SHARE,
    STAND_IN,
    BoundsSearch,
    are_private,
    parse_share,
    release_after,
)
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.source import Source
from expmech.tables.statistics import (
    CountOf,
    GroupsOf,
    HistogramIn,
    Mean,
    QuantileOf,
    QuantilesOf,
    Statistic,
    SumOf,
    VarianceOf,
)
from expmech.tables.statistics.base import check_missing
from expmech.tables.statistics.quantiles import near_levels
from expmech.tables.statistics.sums import ColumnStatistic

__all__ = ["count", "histogram", "mean", "median", "quantiles", "sum", "variance"]

_Made = TypeVar("_Made", bound=Statistic)

_UNNAMED = "x"  # what certificates call an array
_DATES = {"mean": "bounds", "median": "bounds", "quantiles": "bounds", "histogram": "edges"}
"""The argument by which a function is told that a column holds dates."""


def mean(
    data: Any,
    *,
    epsilon: Any,
    bounds: Any,
    column: str | None = None,
    adjacency: str = "replace",
    missing: str = "auto",
    bounds_share: Any = DEFAULT_SHARE,
    ledger: Any = None,
    random_state: int | None = None,
) -> Release:
    """Release the mean of a column of numbers.

    Parameters
    ----------
    data : array, list, series, frame, path or Source
        The confidential data: a one-dimensional array or list, a pandas or Polars series, a frame,
        the path of a CSV or Parquet file, or a table that
        :func:`~expmech.tables.sources.open_source` opened.
    epsilon : float, int, Fraction or str
        The budget of this release: a number, or decimal text.
    bounds : pair of float, pair of dates, or "private"
        Public bounds ``(lower, upper)`` of a value, from what it can be and never from the data.
        Values outside are clipped. Dates, as text "2020-01-31" or as objects, say that the column
        holds dates. "private" finds bounds of numbers with a share of epsilon, by a release that is
        charged first.
    column : str, optional
        The column of a frame, a file or a table.
    adjacency : {"replace", "add-remove"}, default "replace"
        Which data sets are neighbours. "replace": one row is changed, and the number of rows is
        public. "add-remove": one row more or less, and the number of rows is confidential.
    missing : str, default "auto"
        What a value that is no number counts as: "middle" or "lower" of the bounds; "skip" leaves
        it out (add-remove only); "error" refuses, which is then an assumption. "auto" is "middle"
        under "replace", where the number of values is public, and "skip" under "add-remove".
    bounds_share : float, int, Fraction or str, default 0.2
        With private bounds: the share of epsilon that is spent on them.
    ledger : Ledger or path, optional
        A :class:`~expmech.Ledger` or the path of one, charged before a value is read.
    random_state : int, optional
        None for a release. A whole number makes it a study, which may not be published.

    Returns
    -------
    Release
        ``value``, ``accuracy`` with the 95% interval, and ``certificate``. Private bounds are in
        ``bounds``, with a certificate of their own.

    Raises
    ------
    ParameterError
        An argument breaks its rule; nothing was charged.
    DataError
        There is no such file or column; nothing was charged. Or no private bounds were found; the
        share of epsilon for them was spent.
    LedgerError
        The ledger refuses; nothing was charged.

    Examples
    --------
    >>> import expmech as em
    >>> ages = [31, 48, 52, 77, 64, 23, 40, 35]
    >>> release = em.mean(ages, epsilon=1.0, bounds=(0, 100))
    >>> release.accuracy.lower <= release.value <= release.accuracy.upper
    True
    >>> str(em.mean(ages, epsilon=1.0, bounds=(0, 100), random_state=1)).splitlines()[:2]
    ['Mean of x', '  22 (95% interval 0 to 60)']
    """
    given = _Arguments("mean", data, column, adjacency, epsilon, ledger, random_state, bounds_share)
    reading = given.reading(missing)
    pair, dates = given.bounds_or_dates(bounds)
    return given.release(
        lambda name, pair: Mean(
            columns=(name,), bounds=(pair,), named=True, dates=dates, **reading
        ),
        bounds=pair,
        missing=reading["missing"],
        dates=dates,
    )


def sum(
    data: Any,
    *,
    epsilon: Any,
    bounds: Any,
    column: str | None = None,
    adjacency: str = "replace",
    missing: str = "auto",
    bounds_share: Any = DEFAULT_SHARE,
    ledger: Any = None,
    random_state: int | None = None,
) -> Release:
    """Release the sum of a column of numbers.

    Parameters
    ----------
    data, epsilon, bounds, column, adjacency, missing, bounds_share, ledger, random_state
        As for :func:`mean`. Under "add-remove" the noise grows with the larger bound, under
        "replace" with the distance of the bounds.

    Returns
    -------
    Release
        ``value``, ``accuracy`` with the 95% interval, and ``certificate``.

    Examples
    --------
    >>> import expmech as em
    >>> release = em.sum([3, 0, 5, 2], epsilon=1.0, bounds=(0, 10))
    >>> release.accuracy.lower <= release.value <= release.accuracy.upper
    True
    """
    given = _Arguments("sum", data, column, adjacency, epsilon, ledger, random_state, bounds_share)
    return given.numbers(SumOf, bounds, missing)


def variance(
    data: Any,
    *,
    epsilon: Any,
    bounds: Any,
    column: str | None = None,
    adjacency: str = "replace",
    missing: str = "auto",
    bounds_share: Any = DEFAULT_SHARE,
    ledger: Any = None,
    random_state: int | None = None,
) -> Release:
    """Release the variance of a column of numbers: the mean squared distance from its mean.

    Parameters
    ----------
    data, epsilon, bounds, column, adjacency, missing, bounds_share, ledger, random_state
        As for :func:`mean`.

    Returns
    -------
    Release
        ``value``, ``accuracy`` with the 95% interval, and ``certificate``.

    Examples
    --------
    >>> import expmech as em
    >>> release = em.variance([3, 0, 5, 2], epsilon=1.0, bounds=(0, 10))
    >>> 0 <= release.value <= 25
    True
    """
    given = _Arguments(
        "variance", data, column, adjacency, epsilon, ledger, random_state, bounds_share
    )
    return given.numbers(VarianceOf, bounds, missing)


def median(
    data: Any,
    *,
    epsilon: Any,
    bounds: Any,
    column: str | None = None,
    step: Any = None,
    interval_share: Any = None,
    rows: int | None = None,
    adjacency: str = "replace",
    missing: str = "auto",
    bounds_share: Any = DEFAULT_SHARE,
    ledger: Any = None,
    random_state: int | None = None,
) -> Release:
    """Release the median of a column of numbers; with a share of epsilon, its 95% interval too.

    Parameters
    ----------
    data, epsilon, bounds, column, adjacency, missing, bounds_share, ledger, random_state
        As for :func:`mean`.
    step : float, int, Fraction or str, optional
        The answer is a multiple of this public number, 1 for whole numbers. Much better where all
        values are multiples of it. Default: one of 2^18 points between the bounds; one day for
        dates.
    interval_share : float, int, Fraction or str, optional
        The share of epsilon, below 1, that buys a 95% interval in the units of the column: two more
        quantiles that enclose the median. The interval holds for any data. With few rows it is
        wide, and refused where it would be all of the bounds; a `step` makes it shorter.
    rows : int, optional
        With ``interval_share`` under "add-remove": how many values there are at least, from what is
        publicly known. With fewer values the interval may miss more often; privacy is the same.

    Returns
    -------
    Release
        ``value``, ``accuracy_statement``, which says how near it is, and ``certificate``. With
        ``interval_share`` also ``accuracy`` with the interval, and ``ends``, two further releases
        with their certificates: the three together cost epsilon.

    Raises
    ------
    ParameterError
        An argument breaks its rule, or the interval would be all of the bounds; nothing was
        charged.

    Examples
    --------
    >>> import expmech as em
    >>> release = em.median([31, 48, 52, 77], epsilon=1.0, bounds=(0, 100), step=1)
    >>> 0 <= release.value <= 100
    True
    >>> ages = [20 + k % 60 for k in range(1000)]
    >>> release = em.median(ages, epsilon=1.0, bounds=(0, 100), step=1, interval_share=0.5)
    >>> release.accuracy.lower <= release.value <= release.accuracy.upper
    True
    >>> [end.certificate.epsilon for end in release.ends]
    [0.25, 0.25]
    """
    given = _Arguments(
        "median", data, column, adjacency, epsilon, ledger, random_state, bounds_share
    )
    pair, dates = given.bounds_or_dates(bounds)
    lattice = given.lattice(step, dates=dates) | given.reading(missing)
    if interval_share is not None and (pair is None or dates):
        raise ParameterError(
            "`interval_share` of median needs public bounds that are numbers; got"
            f" {bounds!r}. Private bounds can be found first, by `expmech release bounds`."
        )
    guessed = interval_share is not None and not given.relation.count_is_public
    if rows is None and guessed:
        raise ParameterError(
            "`rows` of median must be given with `interval_share` under 'add-remove',"
            " where the number of rows is confidential: how many values there are at least,"
            " from what is publicly known."
        )
    if rows is not None and not guessed:
        raise ParameterError(
            "`rows` of median is for `interval_share` under 'add-remove' adjacency;"
            f" leave it out; got {rows!r}."
        )

    def plan(statistic: QuantileOf, epsilon: Fraction, count: int | None) -> QuantileInterval:
        least = count if rows is None else rows
        return QuantileInterval.plan(
            statistic, epsilon=epsilon, share=interval_share, rows=least, owner="median"
        )

    return given.release(
        lambda name, pair: QuantileOf(column=name, bounds=pair, q=Fraction(1, 2), **lattice),
        bounds=pair,
        missing=lattice["missing"],
        dates=dates,
        step=lattice["step"],
        plan=None if interval_share is None else plan,
    )


def quantiles(
    data: Any,
    q: Any = (0.25, 0.5, 0.75),
    *,
    epsilon: Any,
    bounds: Any,
    column: str | None = None,
    step: Any = None,
    adjacency: str = "replace",
    missing: str = "auto",
    bounds_share: Any = DEFAULT_SHARE,
    ledger: Any = None,
    random_state: int | None = None,
) -> Release:
    """Release several quantiles of a column by one draw; the quartiles by default.

    They come in order, and together cost what one quantile would.

    Parameters
    ----------
    data : array, list, series, frame, path or Source
        As for :func:`mean`.
    q : sequence of float or str, default (0.25, 0.5, 0.75)
        Which quantiles, strictly between 0 and 1: numbers, decimal text, or fractions as "1/3".
    epsilon, bounds, column, adjacency, missing, bounds_share, ledger, random_state
        As for :func:`mean`.
    step : float, int, Fraction or str, optional
        As for :func:`median`.

    Returns
    -------
    Release
        ``value``, a dict of the quantiles by their levels, ``accuracy_statement``, which says how
        near they are, and ``certificate``.

    Examples
    --------
    >>> import expmech as em
    >>> release = em.quantiles([31, 48, 52, 77], epsilon=1.0, bounds=(0, 100))
    >>> list(release.value)
    ['0.25', '0.5', '0.75']
    """
    given = _Arguments(
        "quantiles", data, column, adjacency, epsilon, ledger, random_state, bounds_share
    )
    if isinstance(q, str) or not np.iterable(q) or not len(list(q)):
        raise ParameterTypeError(
            f"`q` of quantiles must be a list of numbers strictly between 0 and 1; got {q!r}."
        )
    exact = [exact_amount(level, name="q", owner="quantiles") for level in q]
    levels = tuple(sorted(set(near_levels(exact))))
    pair, dates = given.bounds_or_dates(bounds)
    lattice = given.lattice(step, dates=dates) | given.reading(missing)
    texts = tuple(f"{float(level):g}" for level in levels)
    return given.release(
        lambda name, pair: QuantilesOf(
            column=name, bounds=pair, levels=levels, texts=texts, **lattice
        ),
        bounds=pair,
        missing=lattice["missing"],
        dates=dates,
        step=lattice["step"],
    )


def histogram(
    data: Any,
    *,
    epsilon: Any,
    edges: Sequence[Any] | None = None,
    categories: Sequence[Any] | None = None,
    universe: str | None = None,
    delta: Any = None,
    consistent: bool = False,
    column: str | None = None,
    adjacency: str = "replace",
    ledger: Any = None,
    random_state: int | None = None,
) -> Release:
    """Release how many rows are in each of public cells, or have each of public values.

    Where nobody can list the values, ``universe`` or ``delta`` show those with large counts.

    Parameters
    ----------
    data, epsilon, column, adjacency, ledger, random_state
        As for :func:`mean`.
    edges : sequence of float or of dates, optional
        Public rising numbers or dates. Each cell holds its lower edge, and the last one both.
    categories : sequence, optional
        Public values to be counted, in the place of edges.
    universe : str, optional
        Public set of possible values, in the place of a list: ``text:20`` (texts of up to 20
        bytes), ``int:32`` or a pattern such as ``[A-Z]{2}[0-9]{4}``. A value that is shown may be
        invented, with the small probability that the certificate states.
    delta : number or str, optional
        In the place of a list, too: only values that rows have are shown, and the guarantee is
        (epsilon, delta).
    consistent : bool, default False
        Move the noisy counts of a list or of edges to the nearest ones from 0 up that keep their
        total. It costs nothing.

    Returns
    -------
    Release
        ``value``, a dict of counts by cell. The last cell, "other", has the rows that are in no
        other: missing values too. ``accuracy`` has a 95% interval for each count. Values that
        nobody listed come with the largest count first, and there is no cell of others.

    Examples
    --------
    >>> import expmech as em
    >>> list(em.histogram([31, 48, 52, 77], epsilon=1.0, edges=[0, 40, 65, 120]).value)
    ['[0, 40)', '[40, 65)', '[65, 120]', 'other']
    >>> list(em.histogram(["yes", "no", "yes"], epsilon=1.0, categories=["yes", "no"]).value)
    ['yes', 'no', 'other']
    >>> towns = ["Bern"] * 400 + ["Chur"] * 300 + ["Soglio"]
    >>> list(em.histogram(towns, epsilon=1.0, universe="text:8", random_state=1).value)
    ['Bern', 'Chur']
    """
    given = _Arguments("histogram", data, column, adjacency, epsilon, ledger, random_state)
    listed = universe is None and delta is None
    if not listed and (edges is not None or categories is not None or consistent):
        raise ParameterError(
            "`universe` and `delta` of histogram are for values that nobody listed: leave `edges`,"
            " `categories` and `consistent` out, or these."
        )
    if not listed:
        allowed = Fraction(0)
        if delta is not None:
            allowed = exact_amount(delta, name="delta", owner="histogram")
        return given.release(
            lambda name, _: GroupsOf(
                column=name, adjacency=given.relation, universe=universe, delta=allowed
            ),
            compared=True,
        )
    cells: dict[str, Any] = {"consistent": consistent}
    dates = False
    if edges is not None:
        try:
            days = public_days(list(edges), name="edges", owner="histogram")
            dates = days is not None
            cells["edges"] = days or tuple(float(edge) for edge in edges)
        except (TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterTypeError(
                f"`edges` of histogram must be rising numbers, or dates; got {edges!r}."
            ) from None
    if categories is not None:
        cells["categories"] = validate_list(categories, name="categories", owner="histogram")
    return given.release(
        lambda name, _: HistogramIn(
            column=name, named=True, adjacency=given.relation, dates=dates, **cells
        ),
        compared=categories is not None,
        dates=dates,
    )


def count(
    data: Any,
    *,
    epsilon: Any,
    where: str | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    random_state: int | None = None,
) -> Release:
    """Release the number of rows, or of those for which a condition holds.

    Parameters
    ----------
    data : array, series, frame, path or Source
        Of an array or a series of booleans the true ones are counted:
        ``em.count(people["age"] >= 65, epsilon=0.1)``. Of any other data the rows are counted.
    epsilon, ledger, random_state
        As for :func:`mean`.
    where : str, optional
        A condition on a row of a file or a table, such as ``"age >= 65 and sex = 'f'"``.
    adjacency : {"replace", "add-remove"}, optional
        As for :func:`mean`. Default: "replace" where booleans or a condition are counted; else
        "add-remove", because "replace" makes the number of all rows public.

    Returns
    -------
    Release
        ``value``, ``accuracy`` with the 95% interval, and ``certificate``.

    Examples
    --------
    >>> import expmech as em
    >>> import numpy as np
    >>> ages = np.array([31, 48, 52, 77])
    >>> release = em.count(ages >= 50, epsilon=1.0)
    >>> 0 <= release.value <= 4
    True
    >>> em.count(ages, epsilon=1.0).certificate.adjacency
    'add-remove'
    """
    given = _Arguments("count", data, None, adjacency, epsilon, ledger, random_state)
    in_engine = isinstance(data, (str, os.PathLike, Source))
    if where is not None and not (in_engine and isinstance(where, str)):
        raise ParameterError(
            "`where` of count must be text, and is for files and tables. Of data in memory give"
            " the condition as booleans: em.count(ages >= 65, epsilon=0.1)."
        )
    if isinstance(data, (list, tuple)):
        raise ParameterTypeError(
            "`data` of count must be an array, a series, a frame or a file, whose type says"
            " whether it holds booleans; got a list. Use numpy.array(...)."
        )
    text = where or ""
    condition = None if where is None else parse_condition(where)
    kind = str(getattr(data, "dtype", "")).lower()  # as it is declared
    if not in_engine and kind in ("bool", "boolean", "bool[pyarrow]"):
        text = f"{_name_of(data)} is true"
        truth = Node("one_of", (Node("column", value=0),), (1.0,))
        condition = Node("holds", (truth,))
    relation = given.relation
    if adjacency is None and condition is None:
        relation = Adjacency.ADD_REMOVE
    return given.release(lambda *_: CountOf(adjacency=relation, where=condition, text=text))


@dataclass(frozen=True)
class _Arguments:
    """What every function takes, checked in public, and the release of a statistic made of it."""

    owner: str
    data: Any
    column: str | None
    adjacency: str | None
    epsilon: Any
    ledger: Any
    random_state: int | None
    bounds_share: Any = DEFAULT_SHARE

    def numbers(self, kind: type[ColumnStatistic], bounds: Any, missing: str) -> Release:
        """Release a statistic of numbers alone: a sum or a variance of dates means nothing."""
        reading = self.reading(missing)
        pair, dates = self.bounds_or_dates(bounds)
        if dates:
            raise ParameterError(
                f"`bounds` of {self.owner} must be numbers; got dates. Dates have a mean, quantiles"
                " and histograms."
            )
        return self.release(
            lambda name, pair: kind(columns=(name,), bounds=(pair,), named=True, **reading),
            bounds=pair,
            missing=reading["missing"],
        )

    @property
    def relation(self) -> Adjacency:
        return validate_adjacency(self.adjacency or Adjacency.REPLACE, owner=self.owner)

    def reading(self, missing: str) -> dict[str, Any]:
        rule = check_missing(missing, self.relation, owner=self.owner)
        return {"adjacency": self.relation, "missing": rule}

    def lattice(self, step: Any, *, dates: bool) -> dict[str, Any]:
        multiple = Fraction(1) if dates else None
        if step is not None:
            multiple = decimal_fraction(step, name="step", owner=self.owner)
        return {"step": multiple, "dates": dates}

    def bounds_or_dates(self, bounds: Any) -> tuple[Bounds | None, bool]:
        """Return a pair of numbers, None where it is to be found, and whether it is of dates."""
        if are_private(bounds):
            return None, False
        if isinstance(bounds, str) or not np.iterable(bounds) or len(list(bounds)) != 2:
            raise ParameterError(
                f"`bounds` of {self.owner} must be a pair (LOWER, UPPER); got {bounds!r}. Bounds"
                " are public: they come from what a value can be, never from the data. Where nobody"
                ' knows them, bounds="private" finds them with a share of epsilon.'
            )
        pair = list(bounds)
        days = public_days(pair, name="bounds", owner=self.owner)
        if days is None and any(isinstance(bound, str) for bound in pair):
            raise ParameterTypeError(
                f"`bounds` of {self.owner} must be numbers, or dates such as '2020-01-31'; got"
                f" {bounds!r}."
            )
        return validate_bounds(days or pair, name=self.owner), days is not None

    def release(
        self,
        make: Callable[[str, Bounds], _Made],
        *,
        bounds: Bounds | None = STAND_IN,
        missing: str = "",
        compared: bool = False,
        dates: bool = False,
        step: Fraction | None = None,
        plan: Callable[[_Made, Fraction, int | None], QuantileInterval] | None = None,
    ) -> Release:
        """Prepare, charge, aggregate and draw; ``compared`` values are read as they are.

        Where ``bounds`` are None, they are found first, with a share of epsilon. ``plan`` makes an
        interval of a statistic, its epsilon and the number of rows where that is public.
        """
        amount = exact_amount(self.epsilon, name="epsilon", owner=self.owner)
        share = parse_share(self.bounds_share, name="bounds_share", owner=self.owner)
        seed = self.random_state
        if seed is not None:
            validate_integer(seed, name="random_state", owner=self.owner, low=0, high=2**63)
            if self.ledger is not None:
                raise ParameterError(
                    f"`ledger` of {self.owner} must be None when `random_state` is given: what is"
                    " drawn from a seed is a study, so no budget is charged for it."
                )
        with self._opened() as source:
            rows: DeferredRows | None = None
            if source is not None:
                name = "" if self.owner == "count" else self._column_of(source)
            else:
                values = self._values()
                name = _name_of(values)
                if dates:
                    refuse_plain_numbers(values, owner=self.owner)
                elif not compared and self.owner != "count":
                    refuse_declared(values, owner=self.owner, dates=_DATES.get(self.owner, ""))
                rows = _in_memory(values, name, compared=compared, dates=dates)

            def prepare(
                statistics: Sequence[Statistic], epsilon: Fraction, notes: tuple[str, ...] = ()
            ) -> list[PreparedRelease]:
                return [self._prepare(each, epsilon, notes, source, rows) for each in statistics]

            def draw(prepared: Sequence[PreparedRelease], before: int = 0) -> list[Release]:
                read = prepared[0].parts[""] if rows is None else rows
                return release_all(prepared, read, ledger=account, seed=seed, before=before)

            if bounds is not None:
                statistic = make(name, bounds)
                (whole,) = prepared = prepare([statistic], amount)
                if plan is None:
                    account = account_of(self.ledger, source)
                    return draw(prepared)[0]
                interval = plan(statistic, amount, whole.count)
                prepared = [
                    public
                    for part, epsilon in interval.parts
                    for public in prepare([part], epsilon, (interval.note,))
                ]
                account = account_of(self.ledger, source)
                return interval.joined(draw(prepared))
            search = BoundsSearch(
                columns=(name,),
                labels=(name,),
                epsilon=amount,
                share=share,
                adjacency=self.relation,
                missing=missing,
                owner=self.owner,
                step=step,
            )
            account = account_of(self.ledger, source)
            (released,) = release_after(
                search,
                prepare(search.statistics, search.column_epsilon, search.notes),
                lambda pairs, notes: prepare([make(name, pairs[0])], search.rest, notes),
                draw,
                account,
            )
            return released

    def _prepare(
        self,
        statistic: Statistic,
        epsilon: Fraction,
        notes: tuple[str, ...],
        source: Source | None,
        rows: DeferredRows | None,
    ) -> PreparedRelease:
        """Return the public half of a release, of a table or of rows in memory."""
        timing = AUTO if self.random_state is None else UNPROTECTED
        request = ReleaseRequest(epsilon=epsilon, timing=timing, owner=self.owner, notes=notes)
        if source is not None:
            return request.prepare(statistic, source)
        count = None if rows is None else public_count(rows, statistic.adjacency, least=1)
        return request.prepare_rows(statistic, count)

    @contextmanager
    def _opened(self) -> Iterator[Source | None]:
        """Open a file while its statistic is released; None for data in memory."""
        if not isinstance(self.data, (str, os.PathLike)):
            yield self.data if isinstance(self.data, Source) else None
            return
        source = open_source(os.fspath(self.data))
        try:
            yield source
        finally:
            source.close()

    def _column_of(self, source: Source) -> str:
        if self.column is None:
            raise ParameterError(
                f"`column` of {self.owner} must name a column of the file or table; got None."
            )
        return self.column

    def _values(self) -> Any:
        """Return the column of data in memory; only its form is looked at."""
        data = self.data
        if hasattr(data, "columns") and hasattr(data, "shape"):
            return data if self.owner == "count" else self._column_of_frame()
        if self.column is not None:
            raise ParameterError(
                f"`column` of {self.owner} is for frames, files and tables; the data are one"
                " column."
            )
        if isinstance(data, (list, tuple)):
            return data
        if not hasattr(data, "shape") or not hasattr(data, "dtype"):
            raise ParameterTypeError(
                f"`data` of {self.owner} must be an array, a list, a series, a frame, a path or a"
                f" Source; got {type(data).__name__}."
            )
        if len(data.shape) != 1:
            raise ParameterError(
                f"`data` of {self.owner} must be one column; got {len(data.shape)} dimensions. Take"
                " a column such as x[:, 0]; the estimators take several columns at once."
            )
        return data

    def _column_of_frame(self) -> Any:
        names = frame_columns(self.data)
        if self.column in names:
            return self.data[self.column]
        near = difflib.get_close_matches(str(self.column), [str(name) for name in names], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise DataError(
            f"`column` of {self.owner} must name a column of the frame; got {self.column!r}.{hint}"
        )


def _in_memory(values: Any, name: str, *, compared: bool, dates: bool) -> DeferredRows:
    """Return rows that are read after the charge."""

    def read() -> ArrayRows:
        if compared:
            return ArrayRows(raw=values)
        if hasattr(values, "columns"):  # whose rows are counted
            return ArrayRows(raw=range(values.shape[0]))
        numbers = read_days(values) if dates else read_column(values)
        return ArrayRows(numbers=numbers[:, None], names=(name,))

    return DeferredRows(table=values, read=read)


def _name_of(values: Any) -> str:
    """Return the name of a series, which is public; arrays and lists have none."""
    name = getattr(values, "name", None)
    return str(name) if name not in (None, "") else _UNNAMED
