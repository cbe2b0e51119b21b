"""Quantiles of a column, alone or jointly, from the histogram of the cells of its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm

import numpy as np

from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import ByName, OneNumber, Postprocessing, Unchanged
from expmech.core.adjacency import Adjacency
from expmech.core.arrays import Floats, Integers
from expmech.core.errors import ParameterError, validate_integer
from expmech.domains import Box, Multiples
from expmech.domains.regions import DEFAULT_BITS, lattice_of
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.losses import Quantile
from expmech.mechanisms.quantiles import JointQuantiles, RecursiveQuantiles
from expmech.mechanisms.quantiles.base import SeveralQuantiles
from expmech.mechanisms.quantiles.rank_errors import (
    joint_rank_error,
    recursive_rank_error,
    single_rank_error,
)
from expmech.mechanisms.quantiles.tables import MOST_DENOMINATOR, parse_levels
from expmech.tables.aggregates import Column, HistogramOf
from expmech.tables.reading import AUTO_MISSING
from expmech.tables.scaling import Bounds
from expmech.tables.statistics.base import Statistic, as_dates

MOST_BITS = 22
RECURSIVE_FROM = {Adjacency.ADD_REMOVE: 15, Adjacency.REPLACE: 100}
"""Levels from which on medians of parts are nearer than one joint draw: by measurement."""

FEWEST_RECURSIVE, RANKS_PER_LEVEL = 20, 50
"""Under replace also from 20 levels on, where ``n epsilon`` is below 50 for each: measured."""

_MOST_ROWS = 1 << 31
_STEPS = 10**9  # levels without a small common denominator go to the nearest of these


@dataclass(frozen=True, kw_only=True)
class HistogramStatistic(Statistic):
    """A statistic of how many values lie in each of the public cells of a column."""

    column: Column
    bounds: Bounds
    adjacency: Adjacency
    bits: int = DEFAULT_BITS
    step: Fraction | None = None
    missing: str = AUTO_MISSING
    label: str | None = None
    shares: tuple[str, ...] = ()
    dates: bool = False

    def __post_init__(self) -> None:
        for level in self._levels:
            if not 0 < level < 1:
                raise ParameterError(
                    f"`q` of a quantile must be strictly between 0 and 1; got {float(level):g}."
                )
        if self.dates and (self.step is None or self.step.denominator != 1):
            shown = "none" if self.step is None else f"{float(self.step):g}"
            raise ParameterError(
                "`step` of a quantile must be a whole number of days where bounds are dates; got"
                f" {shown}."
            )
        validate_integer(self.bits, name="bits", owner="a quantile", low=1, high=MOST_BITS)
        if self.step is not None and self.lattice.count > 1 << MOST_BITS:
            raise ParameterError(
                "`step` of a quantile must have at most 2^22 multiples between the bounds; got"
                f" {float(self.step):g}."
            )

    @property
    def lattice(self) -> Box | Multiples:
        """The possible answers: the middles of the cells."""
        return lattice_of(*self.bounds, bits=self.bits, step=self.step)

    @property
    def _levels(self) -> tuple[Fraction, ...]:
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, *self.shares)

    def aggregation(self, epsilon: Fraction) -> HistogramOf:
        return HistogramOf(
            column=self.column,
            bounds=self.bounds,
            bits=self.bits,
            missing=self.missing_rule,
            step=self.step,
            dates=self.dates,
        )

    def count_of(self, counts: Integers) -> int:
        return int(counts.sum())


@dataclass(frozen=True, kw_only=True)
class QuantileOf(HistogramStatistic):
    """The q-quantile of a column: the loss ``max(0, #{x < y} - q n, q n - #{x <= y})``.

    Values are first moved to the middle of their cell, so ranks are cumulative counts. The
    sensitivity is 1, and max(q, 1 - q) under add-remove.

    Parameters
    ----------
    column : str or int
        The name of the column, or its position in an array.
    q : Fraction
        The level, strictly between 0 and 1.
    bounds : tuple of float
        Public bounds ``(lower, upper)`` that values are clipped to.
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    bits : int, default=18
        The answer is one of ``2^bits`` points between the bounds; at most 22.
    step : Fraction, optional
        Instead of ``bits``: the answer is a multiple of this public number, 1 for whole numbers.
    missing : str, default="auto"
        What a missing value counts as: "middle" of the bounds, "lower", "skip" (it is left out of
        its column), "drop" (its row is left out) or "error"; "auto" is "middle" under replace, else
        "skip".
    label : str, optional
        What certificates call the column. Default: its name.
    shares : tuple of str, default=()
        What several such statistics cost together, for the certificate.
    dates : bool, default=False
        Whether the column holds dates: values and bounds are days since 1970-01-01, and the answer
        is released as a date; ``step`` is then a whole number of days.

    Examples
    --------
    >>> median = QuantileOf(
    ...     column="age", q=Fraction(1, 2), bounds=(0.0, 100.0), adjacency=Adjacency.REPLACE
    ... )
    >>> median.name
    '0.5-quantile of age'
    """

    q: Fraction

    @property
    def _levels(self) -> tuple[Fraction, ...]:
        return (self.q,)

    @property
    def name(self) -> str:
        return f"{float(self.q):g}-quantile of {self.label or self.column}"

    @property
    def postprocessing(self) -> Postprocessing:
        return as_dates(OneNumber(), dates=self.dates)

    def rank_error(self, epsilon: Fraction, count: int | None) -> float | None:
        return single_rank_error(self.q, epsilon, self.adjacency)

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        points_of(self.lattice, self.bounds)  # raises before anything is charged
        rows = np.array([count], dtype=np.int64)  # in the first cell, which is enough of a table
        loss = rank_loss(rows, self.q, self.lattice, self.bounds, self.adjacency)
        return ExponentialMechanism(loss=loss, domain=self.lattice, adjacency=self.adjacency)

    def data(self, counts: Integers, epsilon: Fraction) -> Quantile:
        return rank_loss(counts, self.q, self.lattice, self.bounds, self.adjacency)


@dataclass(frozen=True, kw_only=True)
class QuantilesOf(HistogramStatistic):
    """Quantiles of a column: by one joint draw, or recursively where there are very many.

    They come in order, and together cost what a single quantile would.

    Parameters
    ----------
    column : str or int
        The name of the column, or its position in an array.
    levels : tuple of Fraction
        Increasing levels, strictly between 0 and 1.
    bounds : tuple of float
        Public bounds ``(lower, upper)`` that values are clipped to.
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    texts : tuple of str, optional
        The names of the levels, where values are released by name. Default: a tuple in order.
    bits, step, missing, label, shares, dates
        As for :class:`QuantileOf`.

    Examples
    --------
    >>> quartiles = QuantilesOf(
    ...     column="age",
    ...     levels=(Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)),
    ...     bounds=(0.0, 100.0),
    ...     adjacency=Adjacency.REPLACE,
    ... )
    >>> quartiles.name
    'quantiles 0.25, 0.5, 0.75 of age'
    """

    levels: tuple[Fraction, ...]
    texts: tuple[str, ...] | None = None

    @property
    def _levels(self) -> tuple[Fraction, ...]:
        return self.levels

    @property
    def name(self) -> str:
        listed = ", ".join(self.texts or [f"{float(level):g}" for level in self.levels])
        return f"quantiles {listed} of {self.label or self.column}"

    @property
    def postprocessing(self) -> Postprocessing:
        shape = Unchanged() if self.texts is None else ByName(labels=self.texts)
        return as_dates(shape, dates=self.dates)

    def rank_error(self, epsilon: Fraction, count: int | None) -> float | None:
        levels = parse_levels(self.levels)
        rows = count if self.adjacency.count_is_public else None
        if mechanism_for(len(self.levels), self.adjacency, epsilon, rows) is JointQuantiles:
            return joint_rank_error(levels, epsilon, self.adjacency)
        return recursive_rank_error(levels, epsilon, self.adjacency, rows)

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        rows = count if self.adjacency.count_is_public else None
        kind = mechanism_for(len(self.levels), self.adjacency, epsilon, rows)
        return kind.at_lower(
            count, levels=self.levels, lattice=self.lattice, adjacency=self.adjacency
        )


def mechanism_for(
    levels: int, adjacency: Adjacency, epsilon: Fraction, count: int | None
) -> type[SeveralQuantiles]:
    """Return the mechanism of so many levels: a public rule, fitted on synthetic columns.

    ``count`` is the number of rows where it is public. A joint draw leaves the values where the
    ranks between two levels are too few to outweigh the number of empty cells.
    """
    if count is None:
        many = levels >= RECURSIVE_FROM[adjacency]
    else:
        few_ranks = count * epsilon < RANKS_PER_LEVEL * (levels + 1)
        many = levels >= RECURSIVE_FROM[adjacency] or (levels >= FEWEST_RECURSIVE and few_ranks)
    return RecursiveQuantiles if many else JointQuantiles


def points_of(lattice: Box | Multiples, bounds: Bounds) -> Floats:
    """Return all points of a lattice; raise where float64 does not tell them apart."""
    step = lattice.step if isinstance(lattice, Multiples) else None
    return _points(*bounds, lattice.bits, step)


@lru_cache(maxsize=2)  # up to 32 MB each
def _points(lower: float, upper: float, bits: int, step: Fraction | None) -> Floats:
    lattice = lattice_of(lower, upper, bits=bits, step=step)
    points = lattice.points(np.arange(lattice.count)[:, None])[:, 0]
    if (np.diff(points) <= 0).any():
        raise ParameterError(
            "The `bounds` of a quantile are too near to each other for so many cells."
        )
    points.flags.writeable = False
    return points


def rank_loss(
    counts: Integers, q: Fraction, lattice: Box | Multiples, bounds: Bounds, adjacency: str
) -> Quantile:
    """Return the rank loss of values moved to the middle of their cell, from the cells' counts."""
    total = int(counts.sum())
    if total > _MOST_ROWS:
        raise ParameterError("A quantile takes at most 2^31 rows.")
    return Quantile.from_counts(
        counts,
        points=points_of(lattice, bounds)[: len(counts)],
        grid=lattice,
        q=q,
        lower=bounds[0],
        upper=bounds[1],
        adjacency=adjacency,
    )


def near_levels(levels: list[Fraction]) -> list[Fraction]:
    """Return levels with a common denominator of at most 2^30, at most 5e-10 from those given.

    Floats that were computed (0.30000000000000004) have none. Levels are public, and so is this.
    """
    if lcm(*(level.denominator for level in levels)) <= MOST_DENOMINATOR:
        return levels
    return [Fraction(round(level * _STEPS), _STEPS) for level in levels]
