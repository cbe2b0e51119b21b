"""The exact law of what a chain releases, as shipped.

One step is enumerated from every state the chain can be in, equal states are merged, and the mass
is followed until little of it is still moving.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from expmech.auditing.enumeration import law_of, outcomes
from expmech.core.coins import Coins
from expmech.core.errors import UnsupportedError
from expmech.domains import Indices
from expmech.exponential.samplers.atom import AtomKernel
from expmech.exponential.samplers.chain import Chain, PointState

Moves = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]

_MOST = 16  # points of a lattice: every state is enumerated
_STEPS = 1 << 14  # after which a chain on so few points is at its invariant law
_COUNTERS = {"proposals", "done", "counts"}  # they do not steer a chain with batch=1


def kernel_law(kernel: AtomKernel) -> tuple[dict[Hashable, float], list[float]]:
    """Return the invariant law of a kernel away from its atom, and each state's chance of the atom.

    The kernel is the code that draws; on a one-dimensional lattice of at most 16 points.
    """
    indices = kernel.target.domain.all_indices(_MOST)
    if indices is None:
        raise UnsupportedError(f"kernel_law takes lattices of at most {_MOST} points.")
    states = [(row[None, :], False) for row in indices] + [(indices[:1], True)]
    moves = np.zeros((len(states), len(states)))
    for number, (at, atom) in enumerate(states):

        def step(coins: Coins, at: Indices = at, atom: bool = atom) -> int:
            flags = np.array([atom])
            after = kernel.advance(at, kernel.target.energy(at), flags, coins, tag=False)
            return len(states) - 1 if after[2][0] else int(after[0][0, 0])

        law, _ = law_of(step, cut=1e-13)
        for reached, probability in law.items():
            moves[number, int(str(reached))] += probability
    moves /= moves.sum(axis=1)[:, None]  # the paths that were too unlikely to follow
    invariant = np.linalg.matrix_power(moves, _STEPS)[0, :-1]
    shares = (invariant / invariant.sum()).tolist()
    return dict(zip(map(tuple, indices.tolist()), shares, strict=True)), moves[:, -1].tolist()


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

    A state is enumerated when it is first met, and equal ones are merged.
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
        self._chain, self._release, self._stop = chain, release, ends
        self._cut, self._ignore = cut, ignore
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
        listed, _ = outcomes(lambda coins: self._chain.step(state, coins), cut=self._cut)
        for after, probability in listed:
            if after.done[0] and self._stop:
                outcome = self._outcome_numbers.setdefault(self._release(after), len(self.outcomes))
                if outcome == len(self.outcomes):
                    self.outcomes.append(self._release(after))
                self._ends.append((number, outcome, probability))
            else:
                self._moves.append((number, self._number(after), probability))

    def advance(self) -> dict[Hashable, float]:
        """Move the mass of all but unlikely states by one step; return what ended in it."""
        self._expanded = np.pad(self._expanded, (0, len(self.mass) - len(self._expanded)))
        fresh = np.flatnonzero(~self._expanded & (self.mass > self._ignore))
        if fresh.size:
            for number in fresh:
                self._expand(int(number))
            n = len(self.states)
            self.mass = np.pad(self.mass, (0, n - len(self.mass)))
            self._expanded = np.pad(self._expanded, (0, n - len(self._expanded)))
            self._expanded[fresh] = True
            self._move, self._end = _columns(self._moves), _columns(self._ends)
        ended = _push(self._end, self.mass, len(self.outcomes))
        self.mass = _push(self._move, self.mass, len(self.states))
        return {self.outcomes[j]: float(ended[j]) for j in np.flatnonzero(ended)}


def _columns(entries: list[tuple[int, int, float]]) -> Moves:
    at, to, mass = np.array(entries).reshape(-1, 3).T
    return at.astype(np.int64), to.astype(np.int64), mass


def _push(moves: Moves, mass: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """Return where the mass goes in one step."""
    at, to, share = moves
    return np.bincount(to, weights=share * mass[at], minlength=size)


class ChainLaw:
    """The exact law of what a chain releases, and after how many steps.

    Parameters
    ----------
    chain : Chain
        As :meth:`ExponentialMechanism.chain` returns it, on a small lattice.
    release : callable
        Maps a finished state of one copy to a hashable outcome.
    leftover : float, default 1e-6
        Stop when at most this much mass is still moving.
    cut, ignore : float, default 1e-12
        Probability of a path, and mass of a state, below which they are not followed.
    most_steps : int, default 20,000
        Stop after this many steps.

    Attributes
    ----------
    by_step : list of dict
        The law of what ends at each step.
    leftover : float
        All mass not accounted for.
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
        """The law of the outcome alone."""
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
    """Return the law of a chain's state after a number of steps, even if it would have ended."""
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
