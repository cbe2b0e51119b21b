"""The best of a public list: the most frequent value, the largest total, the highest score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.adjacency import Adjacency
from expmech.domains import Candidates
from expmech.errors import ParameterError
from expmech.losses import Scores
from expmech.release import ExponentialMechanism, Mechanism, PermuteAndFlip
from expmech.rounding import float_up
from expmech.statistics.aggregates import PRODUCT_BITS, Bounds, Moments
from expmech.statistics.base import Statistic
from expmech.statistics.keys import canonical_key
from expmech.statistics.requests import Column, MomentsOf, ScoresOf, Tally, TallyOf

_SCORING = (
    "the caller's `scoring` gives a finite score for every data set, and its scores move by at most"
    " the stated sensitivity between adjacent ones"
)


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Scores up to a shift, their sensitivity, and a public bound on their differences.

    ``sensitivity`` is that of a score; ``monotone`` says that between neighbours all of them move
    the same way, up to a shift that they share, which halves what counts. Only a constant running
    time of the exponential mechanism needs the bound.
    """

    scores: tuple[float, ...]
    sensitivity: Fraction
    monotone: bool
    bound: Fraction | None


@dataclass(frozen=True, kw_only=True)
class Selection(Statistic):
    """The choice of one of ``labels`` by score: permute-and-flip.

    ``exponential`` asks for the exponential mechanism instead, whose expected loss is never lower.
    """

    labels: tuple[Any, ...]
    adjacency: Adjacency
    missing: str = "middle"
    exponential: bool = False

    @abstractmethod
    def scoring(self, found: Any) -> Scoring:
        """Return the scores that an answer to the request gives."""

    def mechanism(self, found: Any, epsilon: Fraction, timing: str) -> Mechanism:
        """Return permute-and-flip, or the exponential mechanism, on the list."""
        scoring = self.scoring(found)
        if not self.exponential:
            return PermuteAndFlip.from_scores(
                scoring.scores,
                sensitivity=scoring.sensitivity,
                candidates=self.labels,
                monotone=scoring.monotone,
                adjacency=self.adjacency,
            )
        return ExponentialMechanism(
            loss=Scores(scoring.scores),
            domain=Candidates(self.labels),
            adjacency=self.adjacency,
            sensitivity=scoring.sensitivity / (2 if scoring.monotone else 1),
            bound=None if scoring.bound is None else float_up(scoring.bound),
        )


def check_candidates(candidates: tuple[Any, ...]) -> None:
    """Raise unless there are two candidates and their keys differ."""
    keys = [canonical_key(candidate) for candidate in candidates]
    if len(keys) < 2 or len(set(keys)) != len(keys):
        raise ParameterError(
            "`candidates` must be at least two different values; got"
            f" {', '.join(map(str, candidates)) or 'none'}."
        )


@dataclass(frozen=True, kw_only=True)
class MostFrequent(Selection):
    """The most frequent of a public list of values of a column."""

    shortfall = "the value occurs in at most {:.3g} fewer rows than the most frequent one"
    column: Column
    candidates: tuple[Any, ...]

    def __post_init__(self) -> None:
        check_candidates(self.candidates)

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"most frequent {self.column}"

    def request(self, epsilon: Fraction) -> TallyOf:
        """Ask for counts."""
        return TallyOf(column=self.column, candidates=self.candidates)

    def stand_in(self, count: int, epsilon: Fraction) -> Tally:
        """Return counts of rows that hold none of the candidates."""
        return Tally(counts=(0,) * len(self.candidates), rows=count)

    def scoring(self, found: Tally) -> Scoring:
        """Score by count; under add-remove all counts move the same way."""
        public = self.adjacency.count_is_public
        return Scoring(
            scores=tuple(map(float, found.counts)),
            sensitivity=Fraction(1),
            monotone=not public,
            bound=Fraction(found.rows) if public else None,
        )


@dataclass(frozen=True, kw_only=True)
class LargestTotal(Selection):
    """The column with the largest total of clipped values."""

    columns: tuple[Column, ...]
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
        """What certificates call it."""
        return f"column with the largest total of {len(self.columns)}"

    def request(self, epsilon: Fraction) -> MomentsOf:
        """Ask for sums."""
        return MomentsOf(
            columns=self.columns, bounds=self.bounds, bits=PRODUCT_BITS, missing=self.missing
        )

    def stand_in(self, count: int, epsilon: Fraction) -> Moments:
        """Return sums of rows at the lower bounds."""
        sums = (0,) * len(self.columns)
        return Moments(count=count, sums=sums, products=(), bits=PRODUCT_BITS)

    def scoring(self, found: Moments) -> Scoring:
        """Score by total, computed exactly and shifted by the best before it is rounded."""
        lower = [Fraction(low) for low, _ in self.bounds]
        upper = [Fraction(high) for _, high in self.bounds]
        totals = []
        for low, high, steps in zip(lower, upper, found.sums, strict=True):
            totals.append(found.count * low + (high - low) * steps / (1 << found.bits))
        scores = tuple(float(total - max(totals)) for total in totals)
        spread = max(upper) - min(lower)
        if self.adjacency.count_is_public:
            widest = max(high - low for low, high in zip(lower, upper, strict=True))
            bound = found.count * spread
            return Scoring(scores=scores, sensitivity=widest, monotone=False, bound=bound)
        # a row adds points of [0, most - least] to each total, up to the same shift for all
        return Scoring(scores=scores, sensitivity=spread, monotone=True, bound=None)


@dataclass(frozen=True, kw_only=True)
class BestScore(Selection):
    """The candidate with the highest score by a function of the caller's."""

    labels: tuple[Any, ...]
    candidates: tuple[Any, ...]
    function: Any
    sensitivity: Fraction
    adjacency: Adjacency
    missing: str = "middle"
    exponential: bool = False
    monotone: bool = False

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"best of {len(self.candidates)} candidates"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the caller promises about the scores."""
        return (*super().notes, _SCORING)

    def request(self, epsilon: Fraction) -> ScoresOf:
        """Ask for the scores."""
        return ScoresOf(scoring=self.function, candidates=self.candidates)

    def stand_in(self, count: int, epsilon: Fraction) -> tuple[float, ...]:
        """Return equal scores."""
        return (0.0,) * len(self.candidates)

    def scoring(self, found: tuple[float, ...]) -> Scoring:
        """Return the scores with the sensitivity that the caller promises."""
        return Scoring(
            scores=found, sensitivity=self.sensitivity, monotone=self.monotone, bound=None
        )
