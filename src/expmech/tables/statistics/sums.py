"""Sums, means and variances of columns, by noise on integer sums."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import Postprocessing
from expmech.certificates.timing import UNPROTECTED
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.mechanisms.noisy_sums import CentredTotals, MomentVariances, ThreeSums, Totals
from expmech.mechanisms.noisy_sums.interpretations import Interpretation
from expmech.mechanisms.noisy_sums.noise import LEAST_RATE
from expmech.mechanisms.noisy_sums.noisy_sums import (
    NoisyMean,
    NoisySums,
    affordable_bits,
    affordable_cube_bits,
    snap,
)
from expmech.tables.aggregates import PRODUCT_BITS, Column, Moments, MomentsOf
from expmech.tables.reading import AUTO_MISSING
from expmech.tables.scaling import Bounds
from expmech.tables.statistics.base import Statistic, as_dates, check_missing, listed, named_or_one
from expmech.theory.concentrated import RhoBudget

if TYPE_CHECKING:
    from expmech.losses.mean import L1Mean

_FARTHEST = 2.0**20  # bounds so many widths from zero leave the noise too few steps


@dataclass(frozen=True, kw_only=True)
class ColumnStatistic(Statistic):
    """One number per column, clipped to its bounds; from sums as fine as the noise allows."""

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    adjacency: Adjacency
    missing: str = AUTO_MISSING
    named: bool = False
    labels: tuple[str, ...] = ()
    concentrated: RhoBudget | None = None
    what: ClassVar[str] = ""
    products: ClassVar[bool] = False
    # what a mean alone may be
    exponential = False
    dates = False
    largest: ClassVar[float] = math.inf  # bounds up to here have numbers that float64 holds

    def __post_init__(self) -> None:
        if any(max(abs(low), abs(high)) > self.largest for low, high in self.bounds):
            raise ParameterError(
                f"`bounds` of a {self.what} must lie within {-self.largest:g} to {self.largest:g}:"
                " with larger ones it may be beyond the range of float64."
            )

    @property
    def name(self) -> str:
        return f"{self.what} of {listed(self.columns, self.labels)}"

    @property
    def postprocessing(self) -> Postprocessing:
        return named_or_one(self.columns, named=self.named)

    @property
    def missing_rule(self) -> str:
        """Return what a missing value counts as, decided; of one column its row may as well go.

        The loss of the exponential mechanism is of whole rows.
        """
        rule = check_missing(self.missing, self.adjacency, owner=f"a {self.what}")
        whole = self.exponential or len(self.columns) == 1
        return "drop" if rule == "skip" and whole else rule

    def bits(self, epsilon: Fraction) -> int:
        """Return the bits that columns are snapped to."""
        if len(self.columns) == 1:
            return affordable_bits(epsilon, 1)
        return affordable_cube_bits(
            epsilon, len(self.columns) * 2 if self.own_counts else 1 + len(self.columns)
        )

    @property
    def own_counts(self) -> bool:
        """Whether each column has a noisy count of its own, of the values that are present."""
        return self.missing_rule == "skip"

    def aggregation(self, epsilon: Fraction) -> MomentsOf:
        return MomentsOf(
            columns=self.columns,
            bounds=self.bounds,
            bits=self.bits(epsilon),
            missing=self.missing_rule,
            products=self.products,
            dates=self.dates,
        )

    def _public(self, count: int, epsilon: Fraction) -> dict[str, Any]:
        """Return what every reading of sums is told: bounds, bits, and the public count."""
        lower, upper = zip(*self.bounds, strict=True)
        return {
            "lower": lower,
            "upper": upper,
            "bits": self.bits(epsilon),
            "count": count if self.adjacency.count_is_public else None,
        }

    @property
    def _zeros(self) -> list[int]:
        return [0] * len(self.columns)  # the sums of rows at the lower bounds

    def _noisy(self, interpretation: Interpretation) -> NoisySums:
        """Return noise on sums of this meaning, of no rows."""
        return NoisySums(
            totals=[0] * interpretation.dimension,
            interpretation=interpretation,
            adjacency=self.adjacency,
            concentrated=self.concentrated,
        )


@dataclass(frozen=True, kw_only=True)
class Mean(ColumnStatistic):
    """The mean of each column, clipped to its bounds, with exact noise on integer sums.

    Parameters
    ----------
    columns : tuple of str or int
        The names of the columns, or their positions in an array.
    bounds : tuple of (float, float)
        Public bounds, one pair per column, that values are clipped to.
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    missing : str, default="auto"
        What a missing value counts as: "middle" of the bounds, "lower", "skip" (it is left out of
        its column), "drop" (its row is left out) or "error"; "auto" is "middle" under replace, else
        "skip".
    named : bool, default=False
        Whether the numbers are released by name of their column.
    labels : tuple of str, default=()
        What certificates call the columns. Default: their names or positions.
    concentrated : RhoBudget, optional
        The budget of a ledger that counts in rho, see :meth:`with_rho`.
    exponential : bool, default=False
        Whether to use the exponential mechanism with the L1 loss, whose error is twice as large.
    dates : bool, default=False
        Whether the columns hold dates: values and bounds are days since 1970-01-01, and the mean is
        released as a date.

    Examples
    --------
    >>> Mean(columns=("age",), bounds=((0.0, 100.0),), adjacency=Adjacency.REPLACE).name
    'mean of age'
    """

    exponential: bool = False
    dates: bool = False
    what = "mean"

    @property
    def postprocessing(self) -> Postprocessing:
        return as_dates(super().postprocessing, dates=self.dates)

    def with_rho(self, concentrated: RhoBudget) -> Mean:
        return dataclasses.replace(self, concentrated=concentrated)

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        lower, upper = zip(*self.bounds, strict=True)
        if not self.exponential:
            return NoisyMean(
                count=(count,) * len(self.columns) if self.own_counts else count,
                sums=self._zeros,
                bits=self.bits(epsilon),
                lower=lower,
                upper=upper,
                adjacency=self.adjacency,
                concentrated=self.concentrated,
            )
        if not self.adjacency.count_is_public:
            raise ParameterError(
                "`sampler` and `delta` of a mean need 'replace' adjacency: under 'add-remove' it is"
                " a noisy sum over a noisy count, which takes neither. Leave them out."
            )
        from expmech.domains.regions import Box
        from expmech.exponential.mechanism import ExponentialMechanism

        loss = self._loss(count, self._zeros, epsilon)
        box = Box(lower, upper)
        return ExponentialMechanism(loss=loss, domain=box, adjacency=self.adjacency)

    def data(self, moments: Moments, epsilon: Fraction) -> Any:
        if self.exponential:
            return self._loss(moments.count, moments.sums, epsilon)
        return moments.counts or moments.count, moments.sums

    def _loss(self, count: int, sums: Sequence[int], epsilon: Fraction) -> L1Mean:
        from expmech.losses.mean import L1Mean

        lower, upper = zip(*self.bounds, strict=True)
        scale = 1 << self.bits(epsilon)
        return L1Mean.from_sums(
            count=max(1, count), sums=sums, scale=scale, lower=lower, upper=upper
        )

    def error_at(self, epsilon: Fraction, rows: int) -> float | None:
        made = self.public_mechanism(epsilon, rows, UNPROTECTED)
        if not isinstance(made, NoisyMean):
            return None
        counts = (rows,) * len(self.columns) if self.own_counts else rows
        return made.with_data((counts, self._zeros)).farthest_end(epsilon)


@dataclass(frozen=True, kw_only=True)
class SumOf(ColumnStatistic):
    """The sum of each column, clipped to its bounds, with exact noise on integer sums.

    Parameters
    ----------
    columns, bounds, adjacency, missing, named, labels, concentrated
        As for :class:`Mean`.

    Raises
    ------
    ParameterError
        Bounds are a million times nearer to each other than to zero.

    Examples
    --------
    >>> SumOf(columns=("income",), bounds=((0.0, 1e5),), adjacency=Adjacency.ADD_REMOVE).name
    'sum of income'
    """

    what = "sum"
    largest = 1e290

    def with_rho(self, concentrated: RhoBudget) -> SumOf:
        return dataclasses.replace(self, concentrated=concentrated)

    def __post_init__(self) -> None:
        super().__post_init__()
        if max(self._farthest) > _FARTHEST:
            raise ParameterError(
                "`bounds` of a sum must not be a million times nearer to each other than to zero:"
                " release the sum of what is above the lower bound."
            )

    @property
    def _farthest(self) -> list[float]:
        return [max(abs(low), abs(high)) / (high - low) for low, high in self.bounds]

    def bits(self, epsilon: Fraction) -> int:
        if len(self.columns) > 1:
            return super().bits(epsilon)
        # a row can move the sum by as many widths as its bounds are from zero, counted in halves
        return affordable_bits(epsilon, 2 * (math.ceil(self._farthest[0]) + 1))

    @property
    def own_counts(self) -> bool:
        """Whether columns need counts: what adds nothing adds 0, which all bounds may hold."""
        return super().own_counts and not all(low <= 0.0 <= high for low, high in self.bounds)

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        return self._noisy(self._interpretation(count, epsilon))

    def data(self, moments: Moments, epsilon: Fraction) -> list[int]:
        interpretation = self._interpretation(moments.count, epsilon)
        if isinstance(interpretation, Totals):
            return interpretation.sums(moments.count, moments.sums)
        return interpretation.sums(*self._counts_and_sums(moments))

    def _counts_and_sums(self, moments: Moments) -> tuple[Sequence[int], Sequence[int]]:
        """Return the count and the sum of each column; what is missing may count as 0."""
        rows = [moments.count] * len(self.columns)
        if self.own_counts or not moments.counts:
            return moments.counts or rows, moments.sums
        lower, upper = np.array(self.bounds, dtype=np.float64).T
        zeros = snap(np.zeros((1, len(rows))), lower, upper, moments.bits)[0].tolist()
        parts = zip(moments.sums, moments.counts, zeros, strict=True)
        return rows, [total + (moments.count - count) * zero for total, count, zero in parts]

    def _interpretation(self, count: int, epsilon: Fraction) -> Totals | CentredTotals:
        public = self._public(count, epsilon)
        if public["count"] is None and len(self.columns) > 1:
            return CentredTotals(**public, own_counts=self.own_counts)
        totals = Totals(**public)
        most = math.floor(epsilon / LEAST_RATE).bit_length() - 1
        over = totals.sensitivity(self.adjacency).bit_length() - most
        if over <= 0 or not totals.halvings:
            return totals
        return dataclasses.replace(totals, fine=max(1, totals.halvings - over))


@dataclass(frozen=True, kw_only=True)
class VarianceOf(ColumnStatistic):
    """The variance of each column, clipped to its bounds; its mean is not known and not released.

    Squared differences from the mean are divided by the number of rows. The noise is on the sum and
    the sum of squares together or, without a public number of rows, on three sums.

    Parameters
    ----------
    columns, bounds, adjacency, missing, named, labels, concentrated
        As for :class:`Mean`.

    Examples
    --------
    >>> VarianceOf(columns=("age",), bounds=((0.0, 100.0),), adjacency=Adjacency.REPLACE).name
    'variance of age'
    """

    what = "variance"
    products = True
    largest = 1e140  # squares are summed

    def bits(self, epsilon: Fraction) -> int:
        if self.adjacency.count_is_public:
            return PRODUCT_BITS
        return affordable_bits(epsilon, len(self.columns), most=2 * PRODUCT_BITS) // 2

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        return self._noisy(self._interpretation(count, epsilon))

    def data(self, moments: Moments, epsilon: Fraction) -> list[int]:
        squares = [line[j] for j, line in enumerate(moments.products)]
        interpretation = self._interpretation(moments.count, epsilon)
        if isinstance(interpretation, MomentVariances):
            return interpretation.sums(moments.count, moments.sums, squares)
        counts = moments.counts or [moments.count] * len(squares)
        return interpretation.sums(counts, moments.sums, squares)

    def _interpretation(self, count: int, epsilon: Fraction) -> MomentVariances | ThreeSums:
        public = self._public(count, epsilon)
        return MomentVariances(**public) if public["count"] is not None else ThreeSums(**public)
