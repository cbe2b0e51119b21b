"""A regression: how a commute grows with the distance."""

from __future__ import annotations

import numpy as np

from expmech.core.adjacency import Adjacency
from expmech.explore.questions.base import (
    MadeUpTable,
    Numbers,
    Question,
    QuestionState,
    Setting,
    array_rows,
    far_end,
    shown,
)
from expmech.explore.questions.snippets import statistic_lines
from expmech.tables.statistics import Linear, Ridge, Statistic

FEATURE = (0.0, 30.0)
"""Public bounds of every feature, in kilometres."""


def journeys(state: QuestionState) -> Numbers:
    """Return made-up features and, in the last column, what they explain in part."""
    generator = np.random.default_rng(state.data)
    shares = generator.beta(2.0, 2.0, size=(state.rows, state.size))
    noise = generator.normal(0.0, 0.08, size=state.rows)
    heights = np.clip(0.1 + 0.6 * shares[:, 0] + noise, 0.0, 1.0)
    target = state.lower + (state.upper - state.lower) * heights
    return np.column_stack([FEATURE[1] * shares, target])


class RegressionQuestion(Question):
    """A linear regression with intercept."""

    label, size_label, error_unit = "Regression", "features", "of the gradient"
    rows, size = Setting(low=20, high=2_000, start=400), Setting(low=1, high=4, start=1)
    story = "How much longer does a commute take for every kilometre?"
    unit, bounds = "minutes", (0.0, 120.0)
    methods = {"linear": "perturbed optimum", "ridge": "gradient mechanism"}  # noqa: RUF012
    error_sentence = "the gradient at the answer is at most {} above its least, on scaled rows"
    error_is_distance = False
    picture = "lines"

    def make(self, state: QuestionState) -> MadeUpTable:
        rows = journeys(state)
        return array_rows(rows, _least_squares(rows))

    def neighbour(self, state: QuestionState) -> MadeUpTable:
        rows = journeys(state)
        rows[-1] = [*[FEATURE[1]] * state.size, far_end(rows[-1, -1], state.lower, state.upper)]
        return array_rows(rows, _least_squares(rows))

    def suspicion(self, state: QuestionState) -> tuple[str, str]:
        row = journeys(state)[-1]
        other = far_end(row[-1], state.lower, state.upper)
        return (
            f"{shown(row[-1])} minutes at {shown(row[0])} km",
            f"{shown(other)} minutes at {FEATURE[1]:g} km",
        )

    def names(self, state: QuestionState) -> list[str]:
        if state.size == 1:
            return ["intercept", "slope"]
        return ["intercept", *(f"slope {j + 1}" for j in range(state.size))]

    def scales(self, state: QuestionState) -> Numbers:
        """Return minutes at the end of a feature's bounds for each of its slopes."""
        return np.array([1.0, *[FEATURE[1]] * state.size])

    def statistic(self, state: QuestionState) -> Statistic:
        kind = Ridge if state.method == "ridge" else Linear
        return kind(
            columns=tuple(range(state.size)),
            bounds=(FEATURE,) * state.size,
            target=state.size,
            target_bounds=(state.lower, state.upper),
            adjacency=Adjacency.REPLACE,
        )

    def code(self, state: QuestionState) -> list[str]:
        lines = [
            f"generator = np.random.default_rng({state.data})",
            f"shares = generator.beta(2.0, 2.0, size=({state.rows}, {state.size}))",
            f"noise = generator.normal(0.0, 0.08, size={state.rows})",
            "heights = np.clip(0.1 + 0.6 * shares[:, 0] + noise, 0.0, 1.0)",
            f"target = {state.lower!r} + {state.upper - state.lower!r} * heights",
            f"rows = np.column_stack([{FEATURE[1]!r} * shares, target])  # made up",
        ]
        kind = "Ridge" if state.method == "ridge" else "Linear"
        constructor = (
            f"statistics.{kind}(columns=tuple(range({state.size})),"
            f" bounds=({FEATURE!r},) * {state.size}, target={state.size},"
            f" target_bounds=({state.lower!r}, {state.upper!r}), adjacency=em.Adjacency.REPLACE)"
        )
        return lines + statistic_lines(constructor, "numbers=rows")

    def command(self, state: QuestionState) -> str:
        return f"{state.method} --features {state.size} --rows {state.rows}"


def _least_squares(rows: Numbers) -> Numbers:
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    return np.asarray(np.linalg.lstsq(design, rows[:, -1], rcond=None)[0])
