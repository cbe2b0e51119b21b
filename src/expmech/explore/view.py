"""What the library says about one state of the page, each part computed once."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.certificates.mechanism import Draws, Mechanism, PreparedDraw
from expmech.certificates.plan import Plan
from expmech.core.errors import ExpmechError
from expmech.explore.questions import MadeUpTable
from expmech.explore.state import DECIMAL, State, read_state
from expmech.tables.plan import enough, plan
from expmech.tables.statistics import Statistic

N_DRAWS = 20
"""Draws in a picture: few enough to be counted, many enough for a spread."""

Numbers = NDArray[np.float64]


class View:
    """One state of the page, as the library sees it."""

    def __init__(self, state: State) -> None:
        self.state, self.question = state, state.chosen_question
        self._mechanisms: dict[bool, Mechanism] = {}

    @cached_property
    def statistic(self) -> Statistic:
        """What is released."""
        return self.question.statistic(self.state)

    @cached_property
    def truth(self) -> Numbers:
        """The answer without privacy; the rows are made up."""
        return np.asarray(_table(_data_state(self.state), neighbour=False).truth)

    def aggregate(self, *, neighbour: bool = False) -> Any:
        """Return the statistic's aggregate of the made-up rows, or of their neighbour."""
        aggregation = self.statistic.aggregation(self.state.epsilon)
        return _aggregate(_data_state(self.state), neighbour, aggregation)

    def mechanism(self, *, neighbour: bool = False) -> Mechanism:
        """Return the mechanism on the rows or on their neighbour."""
        if neighbour not in self._mechanisms:
            aggregate = self.aggregate(neighbour=neighbour)
            self._mechanisms[neighbour] = self.statistic.mechanism(
                aggregate, self.state.epsilon, "unprotected"
            )
        return self._mechanisms[neighbour]

    @cached_property
    def ready(self) -> PreparedDraw:
        """The release, prepared but for the draw."""
        return self.mechanism().prepare(epsilon=self.state.epsilon, context=self.statistic.context)

    @cached_property
    def draws(self) -> Draws:
        """Twenty exact draws, from the seed of the address."""
        return self.ready.sample(N_DRAWS, self.state.seed)

    @cached_property
    def numbers(self) -> Numbers:
        """The same in the units of the data: one row per draw."""
        values = [self.ready.postprocessing.apply(value) for value in self.draws.values]
        return self.question.numbers(values, self.state)

    @cached_property
    def plan(self) -> Plan:
        """What every sampler would guarantee and cost."""
        return plan_at(self.state, self.state.epsilon)

    @property
    def error(self) -> float | None:
        """What 95% of releases keep, where public quantities tell."""
        return error_of(self.plan)

    def chances(self, edges: Numbers) -> list[Numbers] | None:
        """Return the exact law at the cells of a picture, one strip each, where it is known."""
        return self.question.chances(self.mechanism(), self.aggregate(), edges, self.state)

    @cached_property
    def log_ratios(self) -> Numbers | None:
        """The log ratio of each draw's chances on the rows and on their neighbour."""
        logs = [self._log_chances(neighbour) for neighbour in (False, True)]
        return None if logs[0] is None or logs[1] is None else logs[0] - logs[1]

    def _log_chances(self, neighbour: bool) -> Numbers | None:
        mechanism = self.mechanism(neighbour=neighbour)
        aggregate = self.aggregate(neighbour=neighbour)
        return self.question.log_chances(mechanism, aggregate, self.draws, self.state)


@lru_cache(maxsize=64)
def view_of(state: State) -> View:
    """Return the view of a state; panels of the same state share it."""
    return View(state)


def error_of(plan: Plan) -> float | None:
    """Return the error that a plan bounds: in ranks, of numbers, or of the loss."""
    if plan.ranks is not None:
        return plan.ranks
    if plan.error is not None:
        return plan.error
    return None if plan.excess_loss is None else plan.excess_loss[1]


@lru_cache(maxsize=2048)
def _planned(question_state: State) -> Plan:
    statistic = question_state.chosen_question.statistic(question_state)
    return plan(statistic, epsilon=question_state.epsilon, count=question_state.rows)


def plan_at(state: State, epsilon: Fraction) -> Plan:
    """Return the plan of the question at another epsilon."""
    return _planned(_plan_state(state, epsilon))


def epsilon_for(state: State, error: Fraction) -> Fraction:
    """Return the least epsilon whose error is small enough, within what the page shows."""
    statistic = state.chosen_question.statistic(state)
    least = enough(
        statistic, error=error, count=state.rows, planned=lambda epsilon: plan_at(state, epsilon)
    )  # one error after another asks for nearly the same plans
    low, high, _ = DECIMAL["epsilon"]
    return min(max(least, low), high)


def errors_between(state: State) -> tuple[float, float] | None:
    """Return the errors at the ends of the page's epsilons; None where none is public."""
    low, high, _ = DECIMAL["epsilon"]
    try:
        ends = [error_of(plan_at(state, epsilon)) for epsilon in (low, high)]
    except ExpmechError:
        return None
    if ends[0] is None or ends[1] is None:
        return None
    return ends[0], ends[1] or min(0.5, ends[0] / 2.0)  # counts may be exact; a slider needs an end


def _plan_state(state: State, epsilon: Fraction) -> State:
    """Return a state that differs only where a plan does."""
    same = read_state({"question": state.question, "method": state.method})
    return dataclasses.replace(
        same,
        rows=state.rows,
        size=state.size,
        lower=state.lower,
        upper=state.upper,
        epsilon=epsilon,
    )


def _data_state(state: State) -> State:
    """Return a state that differs only where the made-up rows do: not by epsilon."""
    return dataclasses.replace(_plan_state(state, Fraction(1)), data=state.data)


@lru_cache(maxsize=16)
def _table(state: State, neighbour: bool) -> MadeUpTable:
    return (
        state.chosen_question.neighbour(state) if neighbour else state.chosen_question.make(state)
    )


@lru_cache(maxsize=32)
def _aggregate(state: State, neighbour: bool, aggregation: Any) -> Any:
    return _table(state, neighbour).rows.aggregate(aggregation)
