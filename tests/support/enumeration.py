"""Coins that enumerate, and the exact law of a sampler as shipped.

`outcomes` runs a function once for every path of random decisions, with the path's probability.
`ChainLaw` enumerates one step of a chain from every state it can be in, merges equal states, and
follows the mass until at most `leftover` is still moving.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from expmech.bits import seeded_bits
from expmech.coins import UNIT, Coins
from expmech.coins.exact import Enclosure
from expmech.samplers import Chain
from expmech.samplers.chain import PointState

T = TypeVar("T")
_TAIL = 1e-12


class _CutError(Exception):
    """The path is too unlikely to follow."""


class EnumeratingCoins(Coins):
    """Coins that follow a script of outcomes and list the branches they pass."""

    def __init__(self, script: tuple[int, ...], cut: float) -> None:
        super().__init__(seeded_bits(0))
        self.script, self.cut = script, cut
        self.taken: list[int] = []
        self.probability = 1.0
        self.siblings: list[tuple[tuple[int, ...], float]] = []

    def _branch(self, probabilities: Sequence[float]) -> int:
        position = len(self.taken)
        if position < len(self.script):
            choice = self.script[position]
        else:
            choice = next(j for j, p in enumerate(probabilities) if p > 0.0)
            for j in range(choice + 1, len(probabilities)):
                if probabilities[j] > 0.0:
                    self.siblings.append(((*self.taken, j), self.probability * probabilities[j]))
        self.taken.append(choice)
        self.probability *= probabilities[choice]
        if self.probability < self.cut:
            raise _CutError
        return choice

    def integers_below(self, n: int, size: int) -> NDArray[np.int64]:
        return np.array([self._branch([1.0 / n] * n) for _ in range(size)], dtype=np.int64)

    def one_below(self, n: int) -> int:
        return self._branch([1.0 / n] * n)

    def bernoulli(
        self, probability: NDArray[np.float64], enclosure: Enclosure
    ) -> NDArray[np.bool_]:
        return np.array([self._branch([1.0 - p, p]) == 1 for p in probability], dtype=np.bool_)

    def bernoulli_exp(
        self,
        counts: NDArray[np.int64],
        *,
        rate: Fraction = UNIT,
        numerator: int = 1,
        denominator: NDArray[np.int64] | int = 1,
    ) -> NDArray[np.bool_]:
        probabilities = np.exp(counts * -float(rate)) * (numerator / np.asarray(denominator))
        assert (counts >= 0).all()
        assert (probabilities <= 1.0 + 1e-12).all()
        return np.array(
            [self._branch([max(0.0, 1.0 - p), min(1.0, p)]) == 1 for p in probabilities],
            dtype=np.bool_,
        )

    def geometric(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        ratio = math.exp(-float(rate))
        terms = math.ceil(math.log(_TAIL) / -float(rate)) + 1
        probabilities = [ratio**x * (1.0 - ratio) for x in range(terms)] + [ratio**terms]
        drawn = [self._branch(probabilities) for _ in range(size)]
        if max(drawn, default=0) == terms:
            raise _CutError
        return np.array(drawn, dtype=np.int64)

    def discrete_laplace(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        """Branch over the law at once.

        Test_coins enumerates that of the shipped method from its parts.
        """
        ratio = math.exp(-float(rate))
        top = math.ceil(math.log(_TAIL) / -float(rate)) + 1
        steps = range(-top, top + 1)
        probabilities = [(1.0 - ratio) / (1.0 + ratio) * ratio ** abs(x) for x in steps]
        return np.array([steps[self._branch(probabilities)] for _ in range(size)], dtype=np.int64)

    def categorical(self, cumulative: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        weights = np.diff(cumulative, prepend=0)
        probabilities = (weights / cumulative[-1]).tolist()
        return np.array([self._branch(probabilities) for _ in range(size)], dtype=np.int64)


def outcomes(
    function: Callable[[Coins], T], *, cut: float = 1e-15
) -> tuple[list[tuple[T, float]], float]:
    """Return every outcome of ``function`` with its probability.

    And the mass of paths cut off below ``cut``.
    """
    found: list[tuple[T, float]] = []
    leftover = 0.0
    stack: list[tuple[int, ...]] = [()]
    while stack:
        coins = EnumeratingCoins(stack.pop(), cut)
        try:
            found.append((function(coins), coins.probability))
        except _CutError:
            leftover += coins.probability
        for script, probability in coins.siblings:
            if probability >= cut:
                stack.append(script)
            else:
                leftover += probability
    return found, leftover


def law_of(
    function: Callable[[Coins], Hashable], *, cut: float = 1e-15
) -> tuple[dict[Hashable, float], float]:
    """Return the law of a hashable outcome, and the leftover mass."""
    law: dict[Hashable, float] = {}
    found, leftover = outcomes(function, cut=cut)
    for outcome, probability in found:
        law[outcome] = law.get(outcome, 0.0) + probability
    return law, leftover


_COUNTERS = {"proposals", "done", "counts"}  # they do not steer a chain with batch=1


def _key(state: Any) -> tuple[Hashable, ...]:
    if type(state) is PointState:
        return ()  # a copy that has accepted nothing remembers nothing
    fields = [field.name for field in dataclasses.fields(state) if field.name not in _COUNTERS]
    return tuple(
        _key(value) if dataclasses.is_dataclass(value) else tuple(value.ravel().tolist())
        for value in (getattr(state, name) for name in fields)
    )


class Transitions:
    """One step of a chain from every state whose mass ever exceeds ``ignore``.

    Enumerated when it is first met and merged.
    """

    def __init__(
        self,
        chain: Chain[Any],
        release: Callable[[Any], Hashable],
        *,
        cut: float,
        ignore: float,
        ends: bool = True,
    ) -> None:
        self._chain, self._release, self._cut, self._ignore, self._stop = (
            chain,
            release,
            cut,
            ignore,
            ends,
        )
        self.states: list[Any] = []
        self.outcomes: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self._outcome_numbers: dict[Hashable, int] = {}
        self._moves: list[tuple[int, int, float]] = []
        self._ends: list[tuple[int, int, float]] = []
        self._expanded = np.zeros(0, dtype=np.bool_)
        started, _ = outcomes(lambda coins: chain.start(coins, 1))
        first = [(self._number(state), probability) for state, probability in started]
        self.mass = np.zeros(len(self.states))
        for number, probability in first:
            self.mass[number] += probability

    def _number(self, state: Any) -> int:
        number = self._numbers.setdefault(_key(state), len(self.states))
        if number == len(self.states):
            self.states.append(state)
        return number

    def _expand(self, number: int) -> None:
        state = self.states[number]
        found, _ = outcomes(lambda coins: self._chain.step(state, coins), cut=self._cut)
        for after, probability in found:
            if after.done[0] and self._stop:
                outcome = self._outcome_numbers.setdefault(self._release(after), len(self.outcomes))
                if outcome == len(self.outcomes):
                    self.outcomes.append(self._release(after))
                self._ends.append((number, outcome, probability))
            else:
                self._moves.append((number, self._number(after), probability))

    def advance(self) -> dict[Hashable, float]:
        """Move the mass by one step; return what ended in it.

        Mass of unlikely states is dropped.
        """
        self._expanded = np.pad(self._expanded, (0, len(self.mass) - len(self._expanded)))
        fresh = np.flatnonzero(~self._expanded & (self.mass > self._ignore))
        if fresh.size:
            for number in fresh:
                self._expand(int(number))
            n = len(self.states)
            self.mass = np.pad(self.mass, (0, n - len(self.mass)))
            self._expanded = np.pad(self._expanded, (0, n - len(self._expanded)))
            self._expanded[fresh] = True
            self._move = _matrix(self._moves, n, n)
            self._end = _matrix(self._ends, n, len(self.outcomes))
        ended = self._end @ self.mass
        self.mass = self._move @ self.mass
        return {self.outcomes[j]: float(ended[j]) for j in np.flatnonzero(ended)}


def _matrix(entries: list[tuple[int, int, float]], rows: int, columns: int) -> Any:
    at, to, mass = np.array(entries).reshape(-1, 3).T
    return sparse.csr_array((mass, (at.astype(int), to.astype(int))), shape=(rows, columns)).T


class ChainLaw:
    """The exact law of what a chain releases, and after how many steps.

    ``release`` maps a finished state of one copy to a hashable outcome. ``leftover`` is all mass
    not accounted for.
    """

    def __init__(
        self,
        chain: Chain[Any],
        release: Callable[[Any], Hashable],
        *,
        leftover: float = 1e-6,
        cut: float = 1e-12,
        ignore: float = 1e-12,
        most_steps: int = 20_000,
    ) -> None:
        moving = Transitions(chain, release, cut=cut, ignore=ignore)
        self.by_step: list[dict[Hashable, float]] = []
        while moving.mass.sum() > leftover / 2 and len(self.by_step) < most_steps:
            self.by_step.append(moving.advance())
        self.leftover = 1.0 - sum(self.law.values())

    @property
    def law(self) -> dict[Hashable, float]:
        """Return the law of the outcome alone."""
        total: dict[Hashable, float] = {}
        for step in self.by_step:
            for outcome, probability in step.items():
                total[outcome] = total.get(outcome, 0.0) + probability
        return total

    def mean_steps(self) -> float:
        """Return the mean number of steps (of the mass that has ended)."""
        return sum((t + 1) * sum(step.values()) for t, step in enumerate(self.by_step))


def law_after(
    chain: Chain[Any], steps: int, release: Callable[[Any], Hashable]
) -> dict[Hashable, float]:
    """Return the law of a chain's state after a fixed number of steps.

    Whatever its own count says.
    """
    moving = Transitions(chain, release, cut=1e-13, ignore=0.0, ends=False)
    for _ in range(steps):
        moving.advance()
    moving.mass /= moving.mass.sum()  # the tails that the enumeration cut off
    law: dict[Hashable, float] = {}
    for state, mass in zip(moving.states, moving.mass, strict=True):
        law[release(state)] = law.get(release(state), 0.0) + float(mass)
    return law


def lattice_point(state: Any) -> Hashable:
    """Return the lattice point a finished copy releases."""
    return tuple(state.indices[0].tolist())


def total_variation(one: dict[Hashable, float], other: dict[Hashable, float]) -> float:
    """Return the total variation distance of two laws (which may miss a little mass)."""
    return 0.5 * sum(
        abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()
    )


def largest_log_ratio(
    one: dict[Hashable, float], other: dict[Hashable, float], *, ignore: float = 0.0
) -> float:
    """Return the largest |log ratio| over outcomes.

    An outcome possible under one law only counts as infinite.

    Outcomes whose probabilities are both below ``ignore`` are passed over (mass the enumeration
    left over is of that order).
    """
    worst = 0.0
    for key in one.keys() | other.keys():
        p, q = one.get(key, 0.0), other.get(key, 0.0)
        if max(p, q) <= ignore:
            continue
        worst = max(worst, math.inf if min(p, q) == 0.0 else abs(math.log(p / q)))
    return worst
