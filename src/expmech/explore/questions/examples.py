"""The two examples of the paper, by the exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.mechanism import Draws
from expmech.core.adjacency import Adjacency
from expmech.domains import Box, L1Ball
from expmech.explore.laws import lattice_cells, lattice_log_chances
from expmech.explore.questions.base import (
    MadeUpTable,
    Numbers,
    Question,
    QuestionState,
    Setting,
    far_end,
    shown,
)
from expmech.explore.questions.snippets import mechanism_lines
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.losses import L1Mean, RidgeGradient
from expmech.paper import example2
from expmech.paper.example1 import BITS
from expmech.tables.statistics import Statistic

_COARSE = 14  # bits of the lattice on which a law is added up for a picture


@dataclass(frozen=True, kw_only=True)
class PaperStatistic(Statistic):
    """A draw of an exponential mechanism on rows as they are."""

    dimension: int
    adjacency: Adjacency = Adjacency.REPLACE

    @property
    def name(self) -> str:
        return "an example of the paper"

    def aggregation(self, epsilon: Fraction) -> Any:
        return "rows"

    def count_of(self, aggregate: Any) -> int:
        return len(aggregate)


@dataclass(frozen=True, eq=False)
class RawRows:
    """A table whose aggregate is its rows."""

    rows: Any

    def aggregate(self, aggregation: Any) -> Any:
        """Return them."""
        return self.rows


class UnitMean(PaperStatistic):
    """Example 1: the mean of numbers in [0, 1] under L1 loss."""

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> ExponentialMechanism:
        ends = [0.0] * self.dimension, [1.0] * self.dimension
        loss = self.data(np.zeros((count, self.dimension)), epsilon)
        return ExponentialMechanism(loss=loss, domain=Box(*ends, bits=BITS))

    def data(self, aggregate: Numbers, epsilon: Fraction) -> L1Mean:
        return L1Mean(aggregate)


class GradientRidge(PaperStatistic):
    """Example 2: ridge regression by the L1 norm of the gradient, on the L1 ball."""

    def count_of(self, aggregate: Any) -> int:
        return len(aggregate[1])

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> ExponentialMechanism:
        loss = self.data((np.zeros((count, self.dimension)), np.zeros(count)), epsilon)
        ball = L1Ball(dimension=self.dimension, radius=example2.RADIUS)
        return ExponentialMechanism(loss=loss, domain=ball)

    def data(self, aggregate: Any, epsilon: Fraction) -> RidgeGradient:
        features, responses = aggregate
        return RidgeGradient(
            features, responses, penalty=example2.PENALTY, radius=example2.RADIUS, norm="l1"
        )


class ExampleOne(Question):
    """Example 1 of the paper, with made-up rows."""

    label, size_label, error_unit = "Paper, example 1", "columns", ""
    rows, size = Setting(low=10, high=5_000, start=100), Setting(low=1, high=6, start=1)
    story = "The mean of numbers between 0 and 1, under L1 loss."
    unit, bounds = "", (0.0, 1.0)
    fixed_bounds = within_bounds = True
    error_sentence = "the distances from the true means add up to {} at most"

    def _rows(self, state: QuestionState) -> Numbers:
        generator = np.random.default_rng(state.data)
        return generator.beta(2.0, 5.0, size=(state.rows, state.size))

    def make(self, state: QuestionState) -> MadeUpTable:
        rows = self._rows(state)
        return MadeUpTable(rows=RawRows(rows), truth=rows.mean(axis=0))

    def neighbour(self, state: QuestionState) -> MadeUpTable:
        rows = self._rows(state)
        rows[-1] = [far_end(value, 0.0, 1.0) for value in rows[-1]]
        return MadeUpTable(rows=RawRows(rows), truth=rows.mean(axis=0))

    def suspicion(self, state: QuestionState) -> tuple[str, str]:
        value = self._rows(state)[-1, 0]
        return shown(value), shown(far_end(value, 0.0, 1.0))

    def names(self, state: QuestionState) -> list[str]:
        return ["mean"] if state.size == 1 else [f"mean {j + 1}" for j in range(state.size)]

    def statistic(self, state: QuestionState) -> Statistic:
        return UnitMean(dimension=state.size)

    def code(self, state: QuestionState) -> list[str]:
        box = f"em.Box([0.0] * {state.size}, [1.0] * {state.size}, bits={BITS})"
        return [
            f"generator = np.random.default_rng({state.data})",
            f"rows = generator.beta(2.0, 5.0, size=({state.rows}, {state.size}))  # made up",
            *mechanism_lines(f"em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain={box})"),
        ]

    def command(self, state: QuestionState) -> None:
        """Return nothing: the command line plans the better law of a mean."""
        return

    def chances(
        self, mechanism: Any, aggregate: Any, edges: Numbers, state: QuestionState
    ) -> list[Numbers]:
        """Return the law of each coordinate: they are independent, and share the sensitivity."""
        laws = []
        for column in aggregate.T:
            alone = ExponentialMechanism(
                loss=L1Mean(column[:, None]),
                sensitivity=Fraction(state.size, state.rows),
                domain=Box([0.0], [1.0], bits=_COARSE),
            )
            laws.append(lattice_cells(alone, state.epsilon, edges))
        return laws

    def log_chances(
        self, mechanism: Any, aggregate: Any, draws: Draws, state: QuestionState
    ) -> Numbers | None:
        return lattice_log_chances(mechanism, state.epsilon, draws.values)


class ExampleTwo(Question):
    """Example 2 of the paper, on its own simulation."""

    label, size_label, error_unit = "Paper, example 2", "coefficients", "of the gradient"
    rows, size = (
        Setting(low=example2.ROWS, high=example2.ROWS, start=example2.ROWS),
        Setting(low=example2.DIMENSION, high=example2.DIMENSION, start=example2.DIMENSION),
    )
    story = "Ridge regression with five coefficients, by the size of the gradient."
    unit, bounds = "", (-1.0, 1.0)
    fixed_bounds = True
    error_sentence = "the gradient at the answer has an L1 norm of at most {} above the least"
    error_is_distance = False

    def make(self, state: QuestionState) -> MadeUpTable:
        return self._table(*example2.simulate(state.data))

    def neighbour(self, state: QuestionState) -> MadeUpTable:
        features, responses = example2.simulate(state.data)
        features[-1], responses[-1] = 1.0, far_end(responses[-1], -1.0, 1.0)
        return self._table(features, responses)

    def _table(self, features: Numbers, responses: Numbers) -> MadeUpTable:
        penalty = example2.PENALTY * np.eye(example2.DIMENSION)
        solution = np.linalg.solve(features.T @ features + penalty, features.T @ responses)
        return MadeUpTable(rows=RawRows((features, responses)), truth=solution)

    def suspicion(self, state: QuestionState) -> tuple[str, str]:
        response = example2.simulate(state.data)[1][-1]
        return f"a response of {shown(response)}", f"one of {far_end(response, -1.0, 1.0):g}"

    def names(self, state: QuestionState) -> list[str]:
        return [f"coefficient {j + 1}" for j in range(state.size)]

    def statistic(self, state: QuestionState) -> Statistic:
        return GradientRidge(dimension=state.size)

    def code(self, state: QuestionState) -> list[str]:
        return [
            "from expmech.paper import example2",
            f"features, responses = example2.simulate({state.data})  # made up, by the paper",
            "loss = em.losses.RidgeGradient(",
            '    features, responses, penalty=1.0, radius=1.0, norm="l1"',
            ")",
            *mechanism_lines(
                f"em.ExponentialMechanism(loss=loss, domain=em.L1Ball({state.size}, 1.0))"
            ),
        ]

    def command(self, state: QuestionState) -> None:
        """Return nothing: the command line has a better norm."""
        return
