"""A question that the page can ask: its made-up rows, its statistic, and the texts for both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expmech.certificates.mechanism import Draws, Mechanism
from expmech.tables.arrays import ArrayRows
from expmech.tables.statistics import Statistic

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class QuestionState:
    """What a question needs of the state of the page.

    ``size`` is the number of columns, levels, cells, features or candidates, ``lower`` and
    ``upper`` are public bounds, ``epsilon`` is that of one release and ``data`` seeds the rows.
    """

    question: str
    method: str
    rows: int
    size: int
    lower: float
    upper: float
    epsilon: Fraction
    data: int


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A whole number of the page: its least, greatest and first value."""

    low: int
    high: int
    start: int


@dataclass(frozen=True, kw_only=True, eq=False)
class MadeUpTable:
    """Made-up rows as a statistic reads them, and the truth about them."""

    rows: Any
    truth: Any


def array_rows(numbers: Numbers, truth: Any) -> MadeUpTable:
    """Return a table of numbers."""
    return MadeUpTable(rows=ArrayRows(numbers=numbers), truth=truth)


def far_end(value: float, lower: float, upper: float) -> float:
    """Return the bound that is further away."""
    return upper if value - lower < upper - value else lower


def shown(number: float) -> str:
    """Return a number as a sentence has it."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"


class Question(ABC):
    """What a person may ask of a table."""

    label: ClassVar[str]
    story: ClassVar[str]
    unit: ClassVar[str]
    rows: ClassVar[Setting]
    size: ClassVar[Setting]
    size_label: ClassVar[str]
    bounds: ClassVar[tuple[float, float]]
    methods: ClassVar[dict[str, str]] = {"exponential": "exponential mechanism"}
    fixed_bounds: ClassVar[bool] = False
    error_sentence: ClassVar[str]
    """What the error of the plan is, with a place for the number."""

    error_unit: ClassVar[str]

    error_is_distance: ClassVar[bool] = True
    """Whether that error tells how far the released numbers are; else it is of a gradient."""

    within_bounds: ClassVar[bool] = False
    """Whether the released numbers lie between the bounds."""

    picture: ClassVar[str] = "strips"
    """Which picture shows its draws: strips, cells, stacks or lines."""

    @abstractmethod
    def make(self, state: QuestionState) -> MadeUpTable:
        """Return the made-up rows and the truth about them."""

    @abstractmethod
    def neighbour(self, state: QuestionState) -> MadeUpTable:
        """Return the same rows but for the last, which is as different as the bounds allow."""

    @abstractmethod
    def suspicion(self, state: QuestionState) -> tuple[str, str]:
        """Return what the last row is, and what the attacker suspects instead."""

    @abstractmethod
    def statistic(self, state: QuestionState) -> Statistic:
        """Return what is released."""

    @abstractmethod
    def names(self, state: QuestionState) -> list[str]:
        """Return what the released numbers are called, or the candidates."""

    @abstractmethod
    def code(self, state: QuestionState) -> list[str]:
        """Return Python that makes ``rows`` and ``statistic`` as above."""

    @abstractmethod
    def command(self, state: QuestionState) -> str | None:
        """Return the statistic and its options on the command line of ``plan``; None: it is not."""

    def scales(self, state: QuestionState) -> Numbers:
        """Return what brings the released numbers to one unit in a picture."""
        return np.ones(len(self.names(state)))

    def numbers(self, values: Any, state: QuestionState) -> Numbers:
        """Return released values as a table: one row per draw, one column per name."""
        return np.array([np.ravel(value) for value in values], dtype=np.float64)

    def chances(
        self, mechanism: Mechanism, aggregate: Any, edges: Numbers, state: QuestionState
    ) -> list[Numbers] | None:
        """Return the exact probabilities of the cells for each name; None where no law is known."""
        return None

    def log_chances(
        self, mechanism: Mechanism, aggregate: Any, draws: Draws, state: QuestionState
    ) -> Numbers | None:
        """Return the log probability of each draw; None where it is not known."""
        return None
