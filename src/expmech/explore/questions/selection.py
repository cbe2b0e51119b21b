"""The best of a list: how people travel most."""

from __future__ import annotations

from typing import Any

import numpy as np

from expmech.certificates.mechanism import Draws
from expmech.core.adjacency import Adjacency
from expmech.explore.questions.base import MadeUpTable, Numbers, Question, QuestionState, Setting
from expmech.explore.questions.snippets import statistic_lines
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.tables.arrays import ArrayRows
from expmech.tables.statistics import MostFrequent, Statistic

WAYS = ("train", "bus", "bike", "foot", "car", "tram", "ferry", "scooter", "taxi", "horse")


def journeys(state: QuestionState) -> list[str]:
    """Return made-up choices, each way a little rarer than the one before it."""
    weights = 1.0 / (20.0 + np.arange(state.size))
    generator = np.random.default_rng(state.data)
    drawn = generator.choice(state.size, size=state.rows, p=weights / weights.sum())
    return [WAYS[place] for place in drawn]


class SelectionQuestion(Question):
    """The most frequent of a public list."""

    label, size_label, error_unit = "Selection", "candidates", "rows"
    rows, size = Setting(low=10, high=5_000, start=100), Setting(low=2, high=10, start=6)
    story = "Which way of travelling is the most frequent?"
    unit, bounds, fixed_bounds = "rows", (0.0, 1.0), True
    methods = {  # noqa: RUF012
        "permute": "permute-and-flip",
        "exponential": "exponential mechanism",
    }
    error_sentence = "the choice occurs in at most {} rows fewer than the most frequent one"
    picture = "stacks"

    def make(self, state: QuestionState) -> MadeUpTable:
        return self._table(journeys(state), state)

    def neighbour(self, state: QuestionState) -> MadeUpTable:
        rows = journeys(state)
        rows[-1] = self._other_way(rows[-1], state)
        return self._table(rows, state)

    def _table(self, rows: list[str], state: QuestionState) -> MadeUpTable:
        counts = [float(rows.count(way)) for way in self.names(state)]
        return MadeUpTable(rows=ArrayRows(raw=rows), truth=np.array(counts))

    def _other_way(self, way: str, state: QuestionState) -> str:
        return next(name for name in self.names(state) if name != way)

    def suspicion(self, state: QuestionState) -> tuple[str, str]:
        way = journeys(state)[-1]
        return way, self._other_way(way, state)

    def names(self, state: QuestionState) -> list[str]:
        return list(WAYS[: state.size])

    def statistic(self, state: QuestionState) -> Statistic:
        names = WAYS[: state.size]
        return MostFrequent(
            column="way",
            candidates=names,
            labels=names,
            adjacency=Adjacency.REPLACE,
            exponential=state.method == "exponential",
        )

    def code(self, state: QuestionState) -> list[str]:
        lines = [
            f"ways = {WAYS[: state.size]!r}",
            f"weights = 1.0 / (20.0 + np.arange({state.size}))",
            f"generator = np.random.default_rng({state.data})",
            f"drawn = generator.choice({state.size}, size={state.rows}, p=weights / weights.sum())",
            "rows = [ways[place] for place in drawn]  # made up",
        ]
        constructor = (
            'statistics.MostFrequent(column="way", candidates=ways, labels=ways,'
            f" exponential={state.method == 'exponential'}, adjacency=em.Adjacency.REPLACE)"
        )
        return lines + statistic_lines(constructor, "raw=rows")

    def command(self, state: QuestionState) -> str | None:
        """Return the options of ``plan``, which plans permute-and-flip."""
        if state.method != "permute":
            return None
        return f"select --candidates {state.size} --rows {state.rows}"

    def numbers(self, values: Any, state: QuestionState) -> Numbers:
        names = self.names(state)
        return np.array([[float(names.index(str(value)))] for value in values])

    def chances(
        self, mechanism: Any, aggregate: Any, edges: Numbers, state: QuestionState
    ) -> list[Numbers]:
        if isinstance(mechanism, ExponentialMechanism):
            return [mechanism.law(epsilon=state.epsilon)[1]]
        return [mechanism.law(epsilon=state.epsilon)]

    def log_chances(
        self, mechanism: Any, aggregate: Any, draws: Draws, state: QuestionState
    ) -> Numbers:
        (law,) = self.chances(mechanism, aggregate, np.zeros(0), state)
        names = self.names(state)
        return np.log(law[[names.index(str(value)) for value in draws.values]])
