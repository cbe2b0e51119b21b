"""The exact epsilon of a mechanism of this library, by enumeration of the shipped code.

No draw is made: every random decision is followed both ways. Small lattices only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.auditing.audit import Claim
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import largest_log_ratio, law_of
from expmech.auditing.neighbours import Pair, as_pairs
from expmech.certificates.mechanism import Mechanism
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError, UnsupportedError
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.samplers import Sampler
from expmech.mechanisms.directions.principal_direction import PrincipalDirection
from expmech.mechanisms.optimum.perturbed_optimum import PerturbedOptimum

Law = dict[Hashable, float]

_FLOATS = 1e-9  # probabilities are products of floats

_REAL = (
    "{} draws a real law and rounds last, so its decisions cannot be listed one by one. Its cells"
    " have probabilities by quadrature: docs/theory/auditing.md, section 4."
)


@dataclass(frozen=True, kw_only=True)
class Enumerated:
    """The largest log ratio of two neighbours' laws, by enumeration.

    Parameters
    ----------
    epsilon : float
        The log ratio, over outcomes of at least a thousand times the mass not followed.
    at_least : float
        What remains of it wherever the mass not followed belongs.
    pair : str
        Name of the worst pair.
    leftover : float
        The mass not followed.
    """

    epsilon: float
    at_least: float
    pair: str
    leftover: float

    def keeps(self, claim: Claim) -> bool:
        """Return whether the law may be within the claim, wherever the missing mass belongs."""
        return self.at_least <= claim.epsilon * (1.0 + _FLOATS) + _FLOATS


def enumerate_law(
    mechanism: Mechanism,
    *,
    epsilon: float | Fraction,
    sampler: Sampler | str = "auto",
    leftover: float = 1e-9,
) -> tuple[Law, float]:
    """Return the probability of every outcome of a release, and the mass not followed.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism on a small lattice or list; not one that draws a real law and rounds it.
    epsilon : float or Fraction
        The budget of the release.
    sampler : Sampler or str, default "auto"
        How an ExponentialMechanism draws; other mechanisms have no choice.
    leftover : float, default 1e-9
        Mass of the law that need not be followed.

    Returns
    -------
    tuple of (dict, float)
        The law and the mass not followed.

    Raises
    ------
    UnsupportedError
        For a mechanism whose decisions cannot be listed.

    Examples
    --------
    >>> import expmech as em
    >>> mechanism = em.PermuteAndFlip.from_scores([2.0, 1.0], sensitivity=1)
    >>> law, rest = enumerate_law(mechanism, epsilon=2.0)
    >>> print(f"{law[0]:.6f}", rest < 1e-9)
    0.816060 True
    """
    if isinstance(mechanism, PerturbedOptimum | PrincipalDirection):
        raise UnsupportedError(_REAL.format(type(mechanism).__name__))
    if isinstance(mechanism, ExponentialMechanism):
        chain = mechanism.chain(epsilon=epsilon, sampler=sampler)
        enumerated = ChainLaw(chain, lattice_point, leftover=leftover, cut=leftover * 1e-4)
        return enumerated.law, enumerated.leftover
    draw = mechanism.prepare(epsilon=epsilon, sampler=sampler).draw

    def outcome(coins: Coins) -> Hashable:
        return _key(draw(coins, 1).values[0])

    return law_of(outcome, cut=leftover * 1e-6)


def exact_epsilon(
    make: Callable[[Any], Mechanism],
    neighbours: Sequence[Pair | tuple[Any, Any]],
    *,
    epsilon: float | Fraction,
    sampler: Sampler | str = "auto",
    leftover: float = 1e-9,
) -> Enumerated:
    """Return the epsilon that releases on these neighbours realise, exactly up to the leftover.

    Parameters
    ----------
    make : callable
        Maps a data set to its mechanism.
    neighbours : sequence of Pair or of (first, second)
        Pairs of data sets.
    epsilon, sampler, leftover
        As in :func:`enumerate_law`.

    Returns
    -------
    Enumerated
        The worst pair's log ratio.

    Examples
    --------
    >>> import expmech as em
    >>> def mean(rows):
    ...     loss = em.losses.L1Mean(rows)
    ...     return em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0], bits=3))
    >>> result = exact_epsilon(mean, [([0.0, 0.0], [0.0, 1.0])], epsilon=1.0)
    >>> print(f"{result.epsilon:.4f}")
    0.5941
    """
    if not neighbours:
        raise ParameterError("`neighbours` of exact_epsilon must be at least one pair.")
    worst = Enumerated(epsilon=-math.inf, at_least=-math.inf, pair="", leftover=0.0)
    for pair in as_pairs(neighbours):
        laws = [
            enumerate_law(make(data), epsilon=epsilon, sampler=sampler, leftover=leftover)
            for data in (pair.first, pair.second)
        ]
        rest = max(laws[0][1], laws[1][1])
        # an outcome of about the mass that was not followed has no ratio worth the name
        ratio = largest_log_ratio(laws[0][0], laws[1][0], ignore=1e3 * rest + 1e-12)
        least = _least_ratio(laws[0][0], laws[1][0], rest)
        if (least, ratio) > (worst.at_least, worst.epsilon):
            worst = Enumerated(epsilon=ratio, at_least=least, pair=pair.name, leftover=rest)
    return worst


def _least_ratio(law: Law, neighbour: Law, rest: float) -> float:
    """Return a log ratio that the laws have wherever the mass not followed belongs."""
    return max(
        math.log(p / (second.get(outcome, 0.0) + rest + 1e-12))
        for first, second in ((law, neighbour), (neighbour, law))
        for outcome, p in first.items()
        if p > 0.0
    )


def _key(value: Any) -> Hashable:
    """Return an outcome as a law's key."""
    if isinstance(value, np.ndarray):
        return tuple(value.ravel().tolist())
    plain: Hashable = value.item() if isinstance(value, np.generic) else value
    return plain
