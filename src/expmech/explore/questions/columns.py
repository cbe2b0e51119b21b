"""Questions about columns of numbers: means, quantiles, histograms."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from expmech.certificates.mechanism import Draws
from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.explore.laws import lattice_cells, lattice_log_chances, noisy_cells, noisy_log_chances
from expmech.explore.questions.base import (
    MadeUpTable,
    Numbers,
    Question,
    QuestionState,
    Setting,
    array_rows,
    shown,
)
from expmech.explore.questions.snippets import statistic_lines
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.tables.statistics import HistogramIn, Mean, QuantileOf, QuantilesOf, Statistic

_MINUTES = (0.0, 120.0)
BITS = 12  # of the lattice of a quantile: finer than a picture, and drawn at once


def commutes(state: QuestionState, columns: int) -> Numbers:
    """Return made-up numbers between the bounds, more of them near the lower one."""
    generator = np.random.default_rng(state.data)
    shares = generator.beta(2.0, 5.0, size=(state.rows, columns))
    return np.asarray(state.lower + (state.upper - state.lower) * shares)


def commute_lines(state: QuestionState, columns: int) -> list[str]:
    """Return the same as Python."""
    return [
        f"generator = np.random.default_rng({state.data})",
        f"shares = generator.beta(2.0, 5.0, size=({state.rows}, {columns}))",
        f"rows = {state.lower!r} + {state.upper - state.lower!r} * shares  # made up",
    ]


class ColumnQuestion(Question):
    """What questions about commutes share."""

    unit = "minutes"
    bounds = _MINUTES
    within_bounds = True

    def columns(self, state: QuestionState) -> int:
        """Return how many columns of numbers there are."""
        return 1

    @abstractmethod
    def truth(self, rows: Numbers, state: QuestionState) -> Numbers:
        """Return the answer without privacy."""

    def make(self, state: QuestionState) -> MadeUpTable:
        rows = commutes(state, self.columns(state))
        return array_rows(rows, self.truth(rows, state))

    def middle(self, rows: Numbers, state: QuestionState) -> float:
        """Return what the last person's commute is moved across."""
        return (state.lower + state.upper) / 2.0

    def neighbour(self, state: QuestionState) -> MadeUpTable:
        rows = commutes(state, self.columns(state))
        middle = self.middle(rows, state)
        rows[-1] = np.where(rows[-1] < middle, state.upper, state.lower)
        return array_rows(rows, self.truth(rows, state))

    def suspicion(self, state: QuestionState) -> tuple[str, str]:
        rows = commutes(state, self.columns(state))
        other = state.upper if rows[-1, 0] < self.middle(rows, state) else state.lower
        return f"{shown(rows[-1, 0])} {self.unit}", f"{shown(other)} {self.unit}"

    def bounds_text(self, state: QuestionState) -> str:
        """Return the bounds as the command line takes them."""
        return f"{state.lower:.12g},{state.upper:.12g}"


class MeanQuestion(ColumnQuestion):
    """The mean of columns: noise on the sums."""

    label, size_label, error_unit = "Mean", "columns", "minutes"
    rows, size = Setting(low=10, high=20_000, start=400), Setting(low=1, high=8, start=1)
    story = "How long do people commute, on average?"
    methods = {"noise": "noise on the sums"}  # noqa: RUF012
    error_sentence = "every mean is within {} minutes of the true one"

    def columns(self, state: QuestionState) -> int:
        return state.size

    def truth(self, rows: Numbers, state: QuestionState) -> Numbers:
        return np.asarray(rows.mean(axis=0))

    def names(self, state: QuestionState) -> list[str]:
        return ["mean"] if state.size == 1 else [f"mean {j + 1}" for j in range(state.size)]

    def statistic(self, state: QuestionState) -> Statistic:
        return Mean(
            columns=tuple(range(state.size)),
            bounds=((state.lower, state.upper),) * state.size,
            adjacency=Adjacency.REPLACE,
        )

    def code(self, state: QuestionState) -> list[str]:
        constructor = (
            f"statistics.Mean(columns=tuple(range({state.size})),"
            f" bounds=(({state.lower!r}, {state.upper!r}),) * {state.size},"
            " adjacency=em.Adjacency.REPLACE)"
        )
        return commute_lines(state, state.size) + statistic_lines(constructor, "numbers=rows")

    def command(self, state: QuestionState) -> str:
        bounds = f"--bounds {self.bounds_text(state)} " * state.size
        return f"mean {bounds}--rows {state.rows}"

    def chances(
        self, mechanism: Any, aggregate: Any, edges: Numbers, state: QuestionState
    ) -> list[Numbers]:
        """Return the law of each noisy mean; sums are counted in steps of the bounds."""
        rate = mechanism.certificate(epsilon=state.epsilon).eta
        most = aggregate.count << aggregate.bits
        steps = (edges - state.lower) / (state.upper - state.lower) * most
        noise = mechanism.noise(state.epsilon)
        if noise.name == "cube":  # its law has no short closed form: the share of many draws
            drawn = noise.draw(Coins(seeded_bits(1)), 20_000)[:, 0].astype(np.float64)
            ends = np.concatenate([[-np.inf], steps[1:-1], [np.inf]])
            return [np.histogram(total + drawn, ends)[0] / drawn.size for total in aggregate.sums]
        return [noisy_cells(total, rate, most, steps) for total in aggregate.sums]

    def log_chances(
        self, mechanism: Any, aggregate: Any, draws: Draws, state: QuestionState
    ) -> Numbers:
        """Return the chance of the noise that explains each draw."""
        rate = mechanism.certificate(epsilon=state.epsilon).eta
        if mechanism.noise(state.epsilon).name == "cube":
            moved = np.abs(draws.noisy - np.array(aggregate.sums, dtype=object))
            return np.asarray(-rate * moved.max(axis=1).astype(np.float64))
        return noisy_log_chances(
            draws.noisy, aggregate.sums, rate, aggregate.count << aggregate.bits
        )


class QuantileQuestion(ColumnQuestion):
    """The median, or several quantiles by one joint draw."""

    label, size_label, error_unit = "Quantiles", "levels", "ranks"
    rows, size = Setting(low=10, high=5_000, start=400), Setting(low=1, high=3, start=1)
    story = "How long is a typical commute, and a long one?"
    error_sentence = "every answer is within {} ranks of the true quantile"

    def middle(self, rows: Numbers, state: QuestionState) -> float:
        """Return the median: a row that stays on its side of it tells nothing."""
        return float(np.median(rows[:, 0]))

    def levels(self, state: QuestionState) -> list[Fraction]:
        """Return equally spaced levels."""
        return [Fraction(j + 1, state.size + 1) for j in range(state.size)]

    def truth(self, rows: Numbers, state: QuestionState) -> Numbers:
        levels = [float(level) for level in self.levels(state)]
        return np.asarray(np.quantile(rows[:, 0], levels))

    def names(self, state: QuestionState) -> list[str]:
        return ["median"] if state.size == 1 else [f"q = {level}" for level in self.levels(state)]

    def statistic(self, state: QuestionState) -> Statistic:
        """Return the quantile, or all of them by one draw."""
        levels = tuple(self.levels(state))
        bounds = (state.lower, state.upper)
        if state.size == 1:
            return QuantileOf(
                column=0, bounds=bounds, q=levels[0], bits=BITS, adjacency=Adjacency.REPLACE
            )
        return QuantilesOf(
            column=0,
            bounds=bounds,
            levels=levels,
            texts=tuple(map(str, levels)),
            bits=BITS,
            adjacency=Adjacency.REPLACE,
        )

    def code(self, state: QuestionState) -> list[str]:
        bounds = f"bounds=({state.lower!r}, {state.upper!r}), bits={BITS}"
        if state.size == 1:
            constructor = f'statistics.QuantileOf(column=0, q=Fraction("1/2"), {bounds},'
        else:
            texts = ", ".join(f'"{level}"' for level in self.levels(state))
            constructor = (
                f"statistics.QuantilesOf(column=0, texts=({texts}),"
                f" levels=tuple(map(Fraction, ({texts}))), {bounds},"
            )
        lines = statistic_lines(f"{constructor} adjacency=em.Adjacency.REPLACE)", "numbers=rows")
        return commute_lines(state, 1) + lines

    def command(self, state: QuestionState) -> str:
        levels = ",".join(map(str, self.levels(state)))
        lattice = f"--bounds {self.bounds_text(state)} --bits {BITS}"
        return f"quantile {lattice} --q {levels} --rows {state.rows}"

    def numbers(self, values: Any, state: QuestionState) -> Numbers:
        if state.size == 1:
            return super().numbers(values, state)
        return np.array([list(value.values()) for value in values])

    def chances(
        self, mechanism: Any, aggregate: Any, edges: Numbers, state: QuestionState
    ) -> list[Numbers] | None:
        """Return the law of one quantile; several have a joint one, which no picture holds."""
        if isinstance(mechanism, ExponentialMechanism):
            return [lattice_cells(mechanism, state.epsilon, edges)]
        return None

    def log_chances(
        self, mechanism: Any, aggregate: Any, draws: Draws, state: QuestionState
    ) -> Numbers | None:
        if isinstance(mechanism, ExponentialMechanism):
            return lattice_log_chances(mechanism, state.epsilon, draws.values)
        return None


class HistogramQuestion(ColumnQuestion):
    """Counts between public edges: noise on disjoint counts."""

    label, size_label, error_unit = "Histogram", "cells", "rows"
    rows, size = Setting(low=10, high=20_000, start=400), Setting(low=2, high=12, start=6)
    story = "How many people commute how long?"
    within_bounds = False
    methods = {"noise": "noise on the counts"}  # noqa: RUF012
    error_sentence = "every count is within {} rows of the true one"
    picture = "cells"

    def edges(self, state: QuestionState) -> tuple[float, ...]:
        """Return equally spaced edges between the bounds."""
        places = np.linspace(state.lower, state.upper, state.size + 1)
        return tuple(float(f"{place:.6g}") for place in places)

    def truth(self, rows: Numbers, state: QuestionState) -> Numbers:
        counts, _ = np.histogram(rows[:, 0], bins=self.edges(state))
        return counts.astype(np.float64)

    def names(self, state: QuestionState) -> list[str]:
        return [f"{low:g} to {high:g}" for low, high in pairwise(self.edges(state))]

    def statistic(self, state: QuestionState) -> Statistic:
        """Return the counts of the cells, and of rows in none."""
        return HistogramIn(column=0, edges=self.edges(state), adjacency=Adjacency.REPLACE)

    def code(self, state: QuestionState) -> list[str]:
        constructor = (
            f"statistics.HistogramIn(column=0, edges={self.edges(state)!r},"
            " adjacency=em.Adjacency.REPLACE)"
        )
        return commute_lines(state, 1) + statistic_lines(constructor, "numbers=rows")

    def command(self, state: QuestionState) -> str:
        edges = ",".join(f"{edge:.12g}" for edge in self.edges(state))
        return f"histogram --edges {edges} --rows {state.rows}"

    def numbers(self, values: Any, state: QuestionState) -> Numbers:
        return super().numbers(values, state)[:, :-1]

    def log_chances(
        self, mechanism: Any, aggregate: Any, draws: Draws, state: QuestionState
    ) -> Numbers:
        totals = (*aggregate.counts, aggregate.rows - sum(aggregate.counts))
        rate = mechanism.certificate(epsilon=state.epsilon).eta
        return noisy_log_chances(draws.noisy, totals, rate, aggregate.rows)
