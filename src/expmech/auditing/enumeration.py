"""Coins that enumerate: every path of a function's random decisions, with its probability.

The coins stand in for the shipped ones, method by method; what is enumerated is the shipped code
that uses them. Theory page: docs/theory/auditing.md, section 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from expmech.core.arrays import Array, Flags, Floats, Integers
from expmech.core.bits import SEEDED
from expmech.core.coins import UNIT, Coins
from expmech.core.coins.exact import Enclosure
from expmech.core.errors import ParameterError, UnsupportedError

T = TypeVar("T")
_TAIL = 1e-12


class _CutError(Exception):
    """The path is too unlikely to follow."""


class _RestartError(Exception):
    """The path is back where it began."""


class _NoBits:
    """No bits at all: whatever is drawn is drawn by a coin whose law is known here."""

    source = SEEDED

    def take(self, dtype: type[np.unsignedinteger[Any]], count: int) -> Array:
        raise UnsupportedError("an enumeration has no law of bits; it knows those of coins.")


class EnumeratingCoins(Coins):
    """Coins that follow a script of outcomes and list the branches they pass.

    :func:`outcomes` makes them; a function under enumeration uses them like ordinary coins.
    """

    def __init__(self, script: tuple[int, ...], cut: float) -> None:
        super().__init__(_NoBits())
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

    def restart(self) -> None:
        """End the path: what follows is the whole law again."""
        raise _RestartError

    def integers_below(self, n: int, size: int) -> Integers:
        return np.array([self._branch([1.0 / n] * n) for _ in range(size)], dtype=np.int64)

    def one_below(self, n: int) -> int:
        return self._branch([1.0 / n] * n)

    def bernoulli(self, probability: Floats, enclosure: Enclosure) -> Flags:
        return np.array([self._branch([1.0 - p, p]) == 1 for p in probability], dtype=np.bool_)

    def bernoulli_exp(
        self,
        counts: Integers,
        *,
        rate: Fraction = UNIT,
        numerator: int = 1,
        denominator: Integers | int = 1,
    ) -> Flags:
        probabilities = np.exp(counts * -float(rate)) * (numerator / np.asarray(denominator))
        if (counts < 0).any() or (probabilities > 1.0 + 1e-12).any():
            raise ParameterError("a coin was asked for with a probability above one.")
        return np.array(
            [self._branch([max(0.0, 1.0 - p), min(1.0, p)]) == 1 for p in probabilities],
            dtype=np.bool_,
        )

    def geometric(self, rate: Fraction, size: int) -> Integers:
        """Branch over the law, up to a tail below 1e-12, which is cut off."""
        probabilities = _geometric(rate)
        drawn = [self._branch(probabilities) for _ in range(size)]
        if max(drawn, default=0) == len(probabilities) - 1:
            raise _CutError
        return np.array(drawn, dtype=np.int64)

    def discrete_laplace(self, rate: Fraction, size: int) -> Integers:
        """Branch over the whole law at once, without tails below 1e-12."""
        probabilities = _discrete_laplace(rate)
        top = len(probabilities) // 2
        return np.array([self._branch(probabilities) - top for _ in range(size)], dtype=np.int64)

    def categorical(self, cumulative: Integers, size: int) -> Integers:
        weights = np.diff(cumulative, prepend=0)
        probabilities = (weights / cumulative[-1]).tolist()
        return np.array([self._branch(probabilities) for _ in range(size)], dtype=np.int64)


@functools.cache
def _geometric(rate: Fraction) -> tuple[float, ...]:
    """Return the probabilities of 0, 1, ..., and of all larger numbers together."""
    ratio = math.exp(-float(rate))
    terms = math.ceil(math.log(_TAIL) / -float(rate)) + 1
    return (*(ratio**x * (1.0 - ratio) for x in range(terms)), ratio**terms)


@functools.cache
def _discrete_laplace(rate: Fraction) -> tuple[float, ...]:
    """Return the probabilities of -m, ..., m."""
    ratio = math.exp(-float(rate))
    top = math.ceil(math.log(_TAIL) / -float(rate)) + 1
    return tuple((1.0 - ratio) / (1.0 + ratio) * ratio ** abs(x) for x in range(-top, top + 1))


def outcomes(
    function: Callable[[Coins], T], *, cut: float = 1e-15
) -> tuple[list[tuple[T, float]], float]:
    """Return every outcome of a function with its probability, and the mass of paths cut off.

    Parameters
    ----------
    function : callable
        Takes coins; all its randomness comes from them. A path that starts again
        (:meth:`Coins.restart`) has the whole law again.
    cut : float, default 1e-15
        Probability below which a path is not followed.

    Returns
    -------
    tuple of (list, float)
        Pairs of outcome and probability, one per path; and the mass of paths cut off.

    Examples
    --------
    >>> listed, leftover = outcomes(lambda coins: int(coins.integers_below(4, 1)[0]))
    >>> sorted(listed), leftover
    ([(0, 0.25), (1, 0.25), (2, 0.25), (3, 0.25)], 0.0)
    """
    listed: list[tuple[T, float]] = []
    leftover = restarted = 0.0
    stack: list[tuple[int, ...]] = [()]
    while stack:
        coins = EnumeratingCoins(stack.pop(), cut)
        try:
            listed.append((function(coins), coins.probability))
        except _CutError:
            leftover += coins.probability
        except _RestartError:
            restarted += coins.probability
        for script, probability in coins.siblings:
            if probability >= cut:
                stack.append(script)
            else:
                leftover += probability
    if not restarted:
        return listed, leftover
    # a path that starts again repeats the law: outcomes are conditioned on no restart
    kept = 1.0 - restarted
    return [(outcome, probability / kept) for outcome, probability in listed], leftover / kept


def law_of(
    function: Callable[[Coins], Hashable], *, cut: float = 1e-15
) -> tuple[dict[Hashable, float], float]:
    """Return the law of a hashable outcome, and the mass of paths cut off.

    >>> law_of(lambda coins: bool(coins.integers_below(4, 1)[0] > 0))
    ({False: 0.25, True: 0.75}, 0.0)
    """
    law: dict[Hashable, float] = {}
    listed, leftover = outcomes(function, cut=cut)
    for outcome, probability in listed:
        law[outcome] = law.get(outcome, 0.0) + probability
    return law, leftover


def total_variation(law: dict[Hashable, float], neighbour: dict[Hashable, float]) -> float:
    """Return the total variation distance of two laws, which may miss a little mass.

    Parameters
    ----------
    law, neighbour : dict
        Probabilities by outcome.

    Returns
    -------
    float

    Examples
    --------
    >>> total_variation({0: 0.5, 1: 0.5}, {0: 1.0})
    0.5
    """
    return 0.5 * sum(
        abs(law.get(key, 0.0) - neighbour.get(key, 0.0)) for key in law.keys() | neighbour.keys()
    )


def largest_log_ratio(
    law: dict[Hashable, float], neighbour: dict[Hashable, float], *, ignore: float = 0.0
) -> float:
    """Return the largest |log ratio| over outcomes; infinite where one law alone has an outcome.

    Parameters
    ----------
    law, neighbour : dict
        Probabilities by outcome.
    ignore : float, default 0.0
        Outcomes whose probabilities are both at most this are passed over: the mass that an
        enumeration did not follow is of that order.

    Returns
    -------
    float

    Examples
    --------
    >>> round(largest_log_ratio({0: 0.75, 1: 0.25}, {0: 0.5, 1: 0.5}), 4)
    0.6931
    """
    worst = 0.0
    for key in law.keys() | neighbour.keys():
        p, q = law.get(key, 0.0), neighbour.get(key, 0.0)
        if max(p, q) <= ignore:
            continue
        worst = max(worst, math.inf if min(p, q) == 0.0 else abs(math.log(p / q)))
    return worst
