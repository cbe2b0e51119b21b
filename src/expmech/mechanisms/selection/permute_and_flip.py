"""The best of a list by permute-and-flip. Theory page: docs/theory/permute_and_flip.md."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    ENERGY_UNIT,
    SECRET_KEY,
    Check,
    budgets,
    check_assumed,
    check_direct,
    check_equal,
)
from expmech.certificates.forecast import forecast_constant
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.timing import CONSTANT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.coins import UNITS_PER_NAT, Coins, cached_parts
from expmech.core.errors import ParameterTypeError, validate_flag, validate_scale, validate_vector
from expmech.core.rounding import float_up, validate_epsilon
from expmech.domains import Candidates
from expmech.exponential.target import ENERGY_CAP, Calibration, calibrate

_OWNER, _KIND = "PermuteAndFlip", "Candidates"
_DECLARED = (
    "a score moves by at most the stated sensitivity between neighbouring data sets, up to a shift"
    " that all scores share, as the caller declares"
)
_ONE_WAY = (
    "between neighbouring data sets all scores move the same way, up to a shift that they share, as"
    " the caller declares"
)
_PLATFORM = f"NumPy's exp is accurate to 16 units in the last place; {SECRET_KEY}"
_ROW = 1 << 12  # candidates whose winners are counted together
_NOTE = (
    "permute-and-flip: one coin per candidate, whatever the scores, and an expected loss never"
    " above that of the exponential mechanism; --sampler asks for the latter, whose privacy loss"
    " has a bounded range"
)


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(Mechanism):
    """Draw the first candidate of a random order that wins a coin of ``exp(-eta (best - score))``.

    Epsilon-DP at ``eta = epsilon / 2D`` (``epsilon / D`` where all scores move the same way), and
    its expected loss is never above that of the exponential mechanism. Make one with
    :meth:`from_scores`.

    Parameters
    ----------
    sensitivity : Fraction
        ``D``: how much a score may change between neighbouring data sets; public.
    monotone : bool
        Whether all scores move the same way between neighbours.
    adjacency : Adjacency
        Which data sets are neighbours.
    candidates : Candidates or None
        The public labels; None releases positions.
    losses : ndarray of shape (n,)
        How far each score lies below the best; confidential.

    Examples
    --------
    >>> best = PermuteAndFlip.from_scores([3, 5, 4], candidates=["a", "b", "c"], sensitivity=1)
    >>> best.release(epsilon=1.0).value in ("a", "b", "c")
    True
    """

    name = _OWNER

    sensitivity: Fraction
    monotone: bool
    adjacency: Adjacency
    candidates: Candidates | None
    losses: Floats = field(repr=False)

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        *,
        sensitivity: float | Fraction,
        candidates: Sequence[Any] | None = None,
        monotone: bool = False,
        adjacency: str = "replace",
    ) -> PermuteAndFlip:
        """Take confidential scores, higher is better, of a public list.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores of the candidates; confidential.
        sensitivity : float or Fraction
            ``D``: how much a score may change between neighbouring data sets. Public.
        candidates : sequence, optional
            Public labels; by default positions are released. A list is kept, not copied: leave it
            unchanged.
        monotone : bool, default False
            Whether between neighbours all scores move the same way (or stay), as counts do under
            "add-remove": a promise of the caller's.
        adjacency : {"replace", "add-remove"}, default "replace"
            What the sensitivity refers to.

        Returns
        -------
        PermuteAndFlip
        """
        losses = _below_best(scores)
        labels = None if candidates is None else Candidates(candidates)
        if labels is not None and len(labels.labels) != losses.size:
            raise ParameterTypeError(f"`candidates` of {_OWNER} must be as many as the scores.")
        return cls(
            sensitivity=validate_scale(sensitivity, name="sensitivity", owner=_OWNER),
            monotone=validate_flag(monotone, name="monotone", owner=_OWNER),
            adjacency=validate_adjacency(adjacency, owner=_OWNER),
            candidates=labels,
            losses=losses,
        )

    def with_data(self, scores: ArrayLike) -> PermuteAndFlip:
        """Return the choice by other scores of the same candidates."""
        losses = _below_best(scores)
        if losses.size != self.losses.size:
            raise ParameterTypeError(f"`scores` of {_OWNER} must be as many as before.")
        return dataclasses.replace(self, losses=losses)

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return what is public about a draw: the number of candidates is, their scores are not."""
        scale = _calibration(budget, self.sensitivity, monotone=self.monotone)
        count = self.losses.size
        return PublicTerms(
            adjacency=self.adjacency,
            sensitivity=float_up(self.sensitivity),
            loss_error=scale.loss_error,
            eta=scale.eta,
            unit=ENERGY_UNIT,
            domain={"kind": _KIND, "count": count},
            parameters={"monotone": self.monotone, "coins": count},
            assumptions=_assumed(monotone=self.monotone),
            timing=CONSTANT,
            forecast=forecast_constant(float(count)),
            seconds=4e-4 + 5e-8 * count,  # measured
            note=_NOTE,
            log_size=math.log(count),
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of labels, by energies computed once."""
        energies = self._energies(budget)

        def draw(coins: Coins, size: int) -> Draws:
            drawn = [first_of_a_random_order(coins, energies) for _ in range(size)]
            positions = np.array(drawn, dtype=np.int64)
            listed = self.candidates
            values = positions if listed is None else listed.values(positions[:, None])
            return Draws(values=values, proposals=np.full(size, energies.size, dtype=np.int64))

        return draw

    def energies(self, epsilon: float | Fraction) -> Integers:
        """Return ``round(eta (best - score) 2^40)``, at most 2^60."""
        return self._energies(validate_epsilon(epsilon, owner=_OWNER))

    def law(self, *, epsilon: float | Fraction) -> Floats:
        """Return the probability of every candidate (confidential), in the order of the list.

        Examples
        --------
        >>> best = PermuteAndFlip.from_scores([2.0, 1.0], sensitivity=1)
        >>> best.law(epsilon=2.0).round(6).tolist()
        [0.81606, 0.18394]
        """
        return winner_law(np.exp(self.energies(epsilon) * (-1.0 / UNITS_PER_NAT)))

    def _energies(self, budget: Fraction) -> Integers:
        eta = _calibration(budget, self.sensitivity, monotone=self.monotone).eta
        scale = eta * UNITS_PER_NAT
        # less than half a unit is rounded to none, and beyond the cap all are alike: no product is
        # of subnormal numbers, which may take longer, and none overflows, which would be warned of
        energies = np.empty(self.losses.size, dtype=np.int64)
        for part in cached_parts(self.losses.size):
            scaled = np.clip(self.losses[part], 0.25 / scale, 2 * ENERGY_CAP / scale)
            scaled *= scale
            np.clip(scaled, 0.0, ENERGY_CAP, out=scaled)  # three times as fast as `minimum`
            energies[part] = np.rint(scaled, out=scaled)
        return energies

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute the energy scale, the loss error and the number of coins."""
        parameters, count = certificate.sampler, certificate.domain["count"]
        sensitivity, monotone = Fraction(certificate.sensitivity), parameters["monotone"]
        low, high = (
            _calibration(budget, sensitivity, monotone=monotone is True)
            for budget in budgets(certificate)
        )
        eta, error = certificate.eta, certificate.loss_error
        return [
            *check_direct(certificate, _OWNER, _KIND, CONSTANT),
            Check(
                claim="eta",
                holds=0.0 < low.eta <= eta <= high.eta,
                detail=f"{eta!r}, recomputed {high.eta!r}",
            ),
            Check(
                claim="loss error",
                holds=high.loss_error <= error <= low.loss_error,
                detail=f"{error!r}, recomputed {high.loss_error!r}",
            ),
            check_equal("coins", parameters["coins"], count),
            check_equal("monotone", monotone, _ONE_WAY in certificate.assumptions),
            check_assumed(certificate, _assumed(monotone=monotone is True)),
            Check(claim="count", holds=type(count) is int and count >= 1, detail=repr(count)),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Floats | None) -> bool:
        """Admit any single label: the list of candidates is not part of a certificate."""
        return point is None or point.ndim == 0


def first_of_a_random_order(coins: Coins, energies: Integers) -> int:
    """Draw j with ``P(j) = p_j integral over t in [0, 1] of prod_{i != j} (1 - t p_i)``.

    ``p = exp(-energies 2^-40)``; the least energy must be 0, so that its coin always wins.
    """
    # Order and coins are independent, so the first winner of a random order is uniform among all
    # winners. Every coin is flipped, and the winner is found by counts of rows of one length: a
    # list of the winners would take as long as it is, and the time would tell how many there are.
    heads = coins.bernoulli_exp(energies)
    width = min(heads.size, _ROW)
    rows = np.zeros((-(-heads.size // width), width), dtype=np.bool_)
    rows.ravel()[: heads.size] = heads
    passed = np.cumsum([0, *(np.count_nonzero(row) for row in rows)])
    place = coins.one_below(int(passed[-1]))
    row = int(np.count_nonzero(passed <= place)) - 1
    won = passed[row] + np.cumsum(rows[row])
    return row * width + int(np.count_nonzero(won <= place))


def winner_law(chances: Floats) -> Floats:
    """Return ``P(j) = p_j integral over t in [0, 1] of prod_{i != j} (1 - t p_i)`` for chances p.

    The integrand is a polynomial, which Gauss' rule of half as many nodes integrates exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(chances.size // 2 + 1)
    losers = 1.0 - np.outer((nodes + 1.0) / 2.0, chances)
    law = np.empty(chances.size)
    for j in range(chances.size):
        others = np.delete(losers, j, axis=1).prod(axis=1)
        law[j] = chances[j] * (weights / 2.0 @ others)
    return law


@np.errstate(over="ignore")  # an infinite loss saturates like any other
def _below_best(scores: ArrayLike) -> Floats:
    """Return how far each confidential score lies below the best."""
    values = validate_vector(scores, name="scores", owner=_OWNER, confidential=True)
    # Differences from the best: a shift that all scores share leaves the law as it is.
    np.subtract(values.max(), values, out=values)  # which is a copy
    return values


def _assumed(*, monotone: bool) -> tuple[str, ...]:
    return (_DECLARED, *((_ONE_WAY,) if monotone else ()), _PLATFORM)


def _calibration(budget: Fraction, sensitivity: Fraction, *, monotone: bool) -> Calibration:
    """Return the energy scale: ``epsilon / 2D``, or ``epsilon / D`` where monotone.

    Rounded down, with room for the rounding of energies.
    """
    half = sensitivity / 2 if monotone else sensitivity
    return calibrate(budget, Fraction(float_up(half)), None)
