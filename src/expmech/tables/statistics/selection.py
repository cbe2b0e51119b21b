"""The best of a public list: the most frequent values, the largest total, the highest score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import Listed
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.core.rounding import float_up
from expmech.domains import Candidates
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.losses import Scores
from expmech.mechanisms.selection.permute_and_flip import PermuteAndFlip
from expmech.mechanisms.selection.top_k import TopK
from expmech.tables import aggregates
from expmech.tables.keys import validate_candidates
from expmech.tables.reading import AUTO_MISSING
from expmech.tables.scaling import Bounds
from expmech.tables.statistics.base import Statistic

_SCORING = (
    "the caller's `scoring` gives a finite score for every data set, and its scores move by at most"
    " the stated sensitivity between adjacent ones"
)
_NO_CANDIDATE = (
    "A missing value is no candidate and is not counted, nor is a value that equals none of them;"
    " capitals matter."
)


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is public about scores: their sensitivity, and a bound on their differences.

    ``sensitivity`` is that of a score; ``monotone`` says that between neighbours all of them move
    the same way, up to a shift that they share, which halves what counts. Only a constant running
    time of the exponential mechanism needs the bound.
    """

    sensitivity: Fraction
    monotone: bool
    bound: Fraction | None


@dataclass(frozen=True, kw_only=True)
class Selection(Statistic):
    """The choice of one of ``labels`` by score: permute-and-flip, or the exponential mechanism."""

    labels: tuple[Any, ...]
    adjacency: Adjacency
    missing: str = AUTO_MISSING
    exponential: bool = False

    @abstractmethod
    def scoring(self, count: int) -> Scoring:
        """Return what is public about the scores of so many rows."""

    @abstractmethod
    def scores(self, aggregate: Any) -> tuple[float, ...]:
        """Return the scores that an aggregate gives, up to a shift."""

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        scoring, equal = self.scoring(count), (0.0,) * len(self.labels)
        if not self.exponential:
            return PermuteAndFlip.from_scores(
                equal,
                sensitivity=scoring.sensitivity,
                candidates=self.labels,
                monotone=scoring.monotone,
                adjacency=self.adjacency,
            )
        return ExponentialMechanism(
            loss=Scores(equal),
            domain=Candidates(self.labels),
            adjacency=self.adjacency,
            sensitivity=scoring.sensitivity / (2 if scoring.monotone else 1),
            bound=None if scoring.bound is None else float_up(scoring.bound),
        )

    def data(self, aggregate: Any, epsilon: Fraction) -> Any:
        scores = self.scores(aggregate)
        return Scores(scores) if self.exponential else scores


@dataclass(frozen=True, kw_only=True)
class MostFrequent(Selection):
    """The most frequent of a public list of values of a column.

    Parameters
    ----------
    column : str or int
        The name of the column, or its position in an array.
    candidates : tuple
        At least two different public values. Others in the column are passed over.
    labels : tuple
        What is released, one label per candidate.
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    missing : str, default="auto"
        Not used: a missing value is no candidate.
    exponential : bool, default=False
        Whether to use the exponential mechanism instead of permute-and-flip, whose expected loss is
        never higher.

    Examples
    --------
    >>> cities = ("Bern", "Chur")
    >>> MostFrequent(
    ...     column="city", candidates=cities, labels=cities, adjacency=Adjacency.REPLACE
    ... ).name
    'most frequent city'
    """

    shortfall = "the value occurs in at most {:.3g} fewer rows than the most frequent one"
    column: aggregates.Column
    candidates: tuple[Any, ...]
    missing_statement = _NO_CANDIDATE

    def __post_init__(self) -> None:
        validate_candidates(self.candidates)

    @property
    def name(self) -> str:
        return f"most frequent {self.column}"

    def aggregation(self, epsilon: Fraction) -> aggregates.TallyOf:
        return aggregates.TallyOf(column=self.column, candidates=self.candidates)

    def count_of(self, tally: aggregates.Tally) -> int:
        return tally.rows

    def scoring(self, count: int) -> Scoring:
        """Under add-remove all counts move the same way."""
        public = self.adjacency.count_is_public
        return Scoring(
            sensitivity=Fraction(1),
            monotone=not public,
            bound=Fraction(count) if public else None,
        )

    def scores(self, tally: aggregates.Tally) -> tuple[float, ...]:
        return tuple(map(float, tally.counts))


@dataclass(frozen=True, kw_only=True)
class LargestTotal(Selection):
    """The column with the largest total of clipped values.

    Parameters
    ----------
    columns, bounds, adjacency, missing
        As for :class:`~expmech.tables.statistics.Mean`.
    labels : tuple
        What is released, one label per column.
    exponential : bool, default=False
        As for :class:`MostFrequent`.

    Examples
    --------
    >>> LargestTotal(
    ...     columns=("rent", "food"),
    ...     bounds=((0.0, 3000.0), (0.0, 1000.0)),
    ...     labels=("rent", "food"),
    ...     adjacency=Adjacency.REPLACE,
    ... ).name
    'column with the largest total of 2'
    """

    columns: tuple[aggregates.Column, ...]
    bounds: tuple[Bounds, ...]

    def __post_init__(self) -> None:
        spread = max(high for _, high in self.bounds) - min(low for low, _ in self.bounds)
        if not 1e-120 <= spread <= 1e120:
            raise ParameterError(
                "The `bounds` of a largest total must together span a number of usual size, between"
                f" 1e-120 and 1e120; got {spread:g}."
            )

    @property
    def name(self) -> str:
        return f"column with the largest total of {len(self.columns)}"

    def aggregation(self, epsilon: Fraction) -> aggregates.MomentsOf:
        return aggregates.MomentsOf(
            columns=self.columns,
            bounds=self.bounds,
            bits=aggregates.PRODUCT_BITS,
            missing=self.missing_rule,
        )

    @property
    def _exact_bounds(self) -> list[tuple[Fraction, Fraction]]:
        return [(Fraction(low), Fraction(high)) for low, high in self.bounds]

    def scoring(self, count: int) -> Scoring:
        lower, upper = zip(*self._exact_bounds, strict=True)
        spread = max(upper) - min(lower)
        if self.adjacency.count_is_public:
            widest = max(high - low for low, high in zip(lower, upper, strict=True))
            return Scoring(sensitivity=widest, monotone=False, bound=count * spread)
        # a row adds points of [0, most - least] to each total, up to the same shift for all
        return Scoring(sensitivity=spread, monotone=True, bound=None)

    def scores(self, moments: aggregates.Moments) -> tuple[float, ...]:
        """Score by total, computed exactly and shifted by the best before it is rounded."""
        totals = [
            moments.count * low + (high - low) * steps / (1 << moments.bits)
            for (low, high), steps in zip(self._exact_bounds, moments.sums, strict=True)
        ]
        return tuple(float(total - max(totals)) for total in totals)


@dataclass(frozen=True, kw_only=True)
class BestScore(Selection):
    """The candidate with the highest score by a function of the caller's; rows in memory only.

    Parameters
    ----------
    candidates : tuple
        What is scored: ``function(X, y, candidate)`` is a finite number for every data set.
    labels : tuple
        What is released, one label per candidate.
    function : callable
        The score of a candidate on a whole table.
    sensitivity : Fraction
        How far the score of a candidate moves between neighbours, at most: the caller's promise.
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    monotone : bool, default=False
        Whether all scores move the same way between neighbours: halves what counts.
    missing, exponential
        As for :class:`MostFrequent`.

    Examples
    --------
    >>> BestScore(
    ...     candidates=(1, 2),
    ...     labels=("one", "two"),
    ...     function=lambda X, y, k: sum(x == k for x in X),
    ...     sensitivity=Fraction(1),
    ...     adjacency=Adjacency.REPLACE,
    ... ).name
    'best of 2 candidates'
    """

    missing_statement = ""  # the caller's function decides
    candidates: tuple[Any, ...]
    function: Any
    sensitivity: Fraction
    monotone: bool = False

    @property
    def name(self) -> str:
        return f"best of {len(self.candidates)} candidates"

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, _SCORING)

    def aggregation(self, epsilon: Fraction) -> aggregates.ScoresOf:
        return aggregates.ScoresOf(scoring=self.function, candidates=self.candidates)

    def count_of(self, scores: tuple[float, ...]) -> None:
        """Return nothing: scores do not tell how many rows were scored."""

    def scoring(self, count: int) -> Scoring:
        """Return the sensitivity that the caller promises."""
        return Scoring(sensitivity=self.sensitivity, monotone=self.monotone, bound=None)

    def scores(self, scores: tuple[float, ...]) -> tuple[float, ...]:
        return scores


@dataclass(frozen=True, kw_only=True)
class TopOf(Statistic):
    """The ``k`` most frequent of a public list of values of a column, the most frequent first.

    A row holds at most one of them, which sharpens the joint draw under replace.

    Parameters
    ----------
    column : str or int
        The name of the column, or its position in an array.
    candidates : tuple
        At least two different public values.
    labels : tuple
        What is released, one label per candidate.
    k : int
        The length of the list.
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    objective : {"worst", "mean"}, default="worst"
        What is to be small, the error of the worst place or the mean over places: see
        :class:`expmech.mechanisms.selection.top_k.TopK`.
    missing : str, default="auto"
        Not used: a missing value is no candidate.

    Examples
    --------
    >>> cities = ("Bern", "Chur", "Genf")
    >>> TopOf(
    ...     column="city", candidates=cities, labels=cities, k=2, adjacency=Adjacency.REPLACE
    ... ).name
    '2 most frequent city'
    """

    shortfall = (
        "each value of the list occurs in at most {:.3g} fewer rows than the one that belongs there"
    )
    column: aggregates.Column
    candidates: tuple[Any, ...]
    labels: tuple[Any, ...]
    k: int
    adjacency: Adjacency
    objective: str = "worst"
    missing: str = AUTO_MISSING
    missing_statement = _NO_CANDIDATE

    def __post_init__(self) -> None:
        validate_candidates(self.candidates)

    @property
    def name(self) -> str:
        return f"{self.k} most frequent {self.column}"

    @property
    def postprocessing(self) -> Listed:
        return Listed()

    def aggregation(self, epsilon: Fraction) -> aggregates.TallyOf:
        return aggregates.TallyOf(column=self.column, candidates=self.candidates)

    def count_of(self, tally: aggregates.Tally) -> int:
        return tally.rows

    def data(self, tally: aggregates.Tally, epsilon: Fraction) -> tuple[int, ...]:
        return tally.counts

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        return TopK.from_counts(
            np.zeros(len(self.candidates), dtype=np.int64),
            k=self.k,
            items=self.labels,
            objective=self.objective,
            adjacency=self.adjacency,
            one_item_each=True,
        )
