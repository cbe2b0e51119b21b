"""The best of a list by permute-and-flip. Theory page: docs/theory/permute_and_flip.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.coins import UNITS_PER_NAT, Coins
from expmech.cost import Forecast, forecast_constant
from expmech.domains import Candidates
from expmech.errors import ParameterTypeError, validate_scale, validate_vector
from expmech.lists import first_of_a_random_order, winner_law
from expmech.release.direct import DirectMechanism, DirectTerms
from expmech.release.permute_and_flip_checks import (
    KIND,
    OWNER,
    assumed_of_candidates,
    calibration,
)
from expmech.release.prepared import Draw
from expmech.rounding import float_up
from expmech.samplers import Draws
from expmech.samplers.base import CONSTANT
from expmech.target import ENERGY_CAP, validate_epsilon

_NOTE = (
    "permute-and-flip: one coin a candidate, whatever the scores, and an expected loss never above"
    " that of the exponential mechanism; --sampler asks for the latter, whose privacy loss has a"
    " bounded range"
)


@dataclass(frozen=True, kw_only=True)
class SelectionTerms:
    """The public half: what is promised, for whatever scores.

    ``sensitivity`` is that of a score; ``monotone`` says that between neighbours all move the same
    way, which halves what counts.
    """

    count: int
    sensitivity: Fraction
    monotone: bool
    adjacency: Adjacency

    def certify(self, budget: Fraction) -> DirectTerms:
        """Return the terms of a draw, which no score enters."""
        scale = calibration(budget, self.sensitivity, monotone=self.monotone)
        return DirectTerms(
            sensitivity=float_up(self.sensitivity),
            loss_error=scale.loss_error,
            eta=scale.eta,
            domain={"kind": KIND, "count": self.count},
            parameters={"monotone": self.monotone, "coins": self.count},
            assumptions=assumed_of_candidates(monotone=self.monotone),
            adjacency=self.adjacency,
            log_size=math.log(self.count),
        )


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(DirectMechanism):
    """Draw the first candidate of a random order that wins a coin of ``exp(-eta (best - score))``.

    Epsilon-DP at ``eta = epsilon / 2D`` (``epsilon / D`` where all scores move the same way), and
    its expected loss is never above that of the exponential mechanism. Make one with
    :meth:`from_scores`.

    Examples
    --------
    >>> best = PermuteAndFlip.from_scores([3, 5, 4], candidates=["a", "b", "c"], sensitivity=1)
    >>> best.release(epsilon=1.0).value in ("a", "b", "c")
    True
    """

    owner = OWNER
    timing = CONSTANT

    public: SelectionTerms
    candidates: Candidates | None
    losses: NDArray[np.float64] = field(repr=False)

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
        scores
            One a candidate.
        sensitivity
            ``D``: how much a score may change between neighbouring data sets. Public.
        candidates
            Public labels; None: positions.
        monotone
            Whether between neighbours all scores move the same way (or stay), as counts do under
            "add-remove": a promise of the caller's.
        adjacency
            What the sensitivity refers to.
        """
        if not isinstance(monotone, bool):
            raise ParameterTypeError(f"`monotone` of {OWNER} must be True or False.")
        values = validate_vector(scores, name="scores", owner=OWNER, confidential=True)
        labels = None if candidates is None else Candidates(candidates)
        if labels is not None and len(labels.labels) != values.size:
            raise ParameterTypeError(f"`candidates` of {OWNER} must be as many as the scores.")
        public = SelectionTerms(
            count=values.size,
            sensitivity=validate_scale(sensitivity, name="sensitivity", owner=OWNER),
            monotone=monotone,
            adjacency=validate_adjacency(adjacency, owner=OWNER),
        )
        with np.errstate(over="ignore"):  # an infinite loss saturates like any other
            losses = values.max() - values
        return cls(public=public, candidates=labels, losses=losses)

    def terms(self, budget: Fraction) -> DirectTerms:
        """Return what is public about a draw."""
        return self.public.certify(budget)

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of labels, by energies computed once."""
        energies = self._energies(budget)

        def draw(coins: Coins, size: int) -> Draws:
            positions = _positions(coins, energies, size)
            values = positions if self.candidates is None else self.candidates.labels[positions]
            proposals = np.full(size, self.public.count, dtype=np.int64)
            return Draws(values=values, proposals=proposals)

        return draw

    def forecast(self) -> Forecast:
        """Count the coins."""
        return forecast_constant(float(self.public.count))

    def seconds(self) -> float:
        """Return about how long a draw takes, by a public table; measured."""
        return 4e-4 + 5e-8 * self.public.count

    @property
    def note(self) -> str:
        """What a plan says about it."""
        return _NOTE

    def draw(self, coins: Coins, *, epsilon: float | Fraction, size: int) -> NDArray[np.int64]:
        """Draw ``size`` positions in the list from ``coins``."""
        return _positions(coins, self.energies(epsilon), size)

    def energies(self, epsilon: float | Fraction) -> NDArray[np.int64]:
        """Return ``round(eta (best - score) 2^40)``, at most 2^60."""
        return self._energies(validate_epsilon(epsilon, owner=OWNER))

    def law(self, *, epsilon: float | Fraction) -> NDArray[np.float64]:
        """Return the probability of every candidate (confidential), in the order of the list.

        Examples
        --------
        >>> best = PermuteAndFlip.from_scores([2.0, 1.0], sensitivity=1)
        >>> best.law(epsilon=2.0).round(6).tolist()
        [0.81606, 0.18394]
        """
        return winner_law(np.exp(self.energies(epsilon) * (-1.0 / UNITS_PER_NAT)))

    def _energies(self, budget: Fraction) -> NDArray[np.int64]:
        scale = self.public.certify(budget).eta * UNITS_PER_NAT
        # less than half a unit is rounded to none, and beyond the cap all are alike: no product is
        # of subnormal numbers, which may take longer, and none overflows, which would be warned of
        scaled = np.clip(self.losses, 0.25 / scale, 2 * ENERGY_CAP / scale) * scale
        np.minimum(scaled, float(ENERGY_CAP), out=scaled)
        return np.rint(scaled, out=scaled).astype(np.int64)


def _positions(coins: Coins, energies: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    drawn = [first_of_a_random_order(coins, energies) for _ in range(size)]
    return np.array(drawn, dtype=np.int64)
