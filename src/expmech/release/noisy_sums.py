"""Discrete Laplace noise on integer sums. Theory page: docs/theory/noisy_sums.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import validate_adjacency
from expmech.coins import Coins
from expmech.cost import forecast_constant
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    shielded,
    validate_choice,
    validate_integer,
)
from expmech.release.accuracy import Accuracy
from expmech.release.certificate import Certificate
from expmech.release.meanings import Meaning
from expmech.release.noisy_sums_checks import ALONE, NOISE, PLATFORM
from expmech.release.prepared import Asked, Draw, Mechanism, Prepared, Told
from expmech.release.snapping import LEAST_RATE
from expmech.rounding import float_down, float_up
from expmech.samplers import TIMINGS, Draws, Option, Plan, Wanted, plan_alone
from expmech.samplers.base import DATA_INDEPENDENT
from expmech.target import validate_epsilon


class NoisySums(Mechanism):
    """Release what integer sums mean after noise with ``P(N = k) ~ exp(-epsilon |k| / D)`` on each.

    D is the L1 distance that one row can move the sums, which their meaning states.

    Parameters
    ----------
    totals
        The sums: Python integers, confidential.
    meaning
        What they are sums of and what is read from them; public.
    adjacency
        "replace" or "add-remove".

    Examples
    --------
    >>> from expmech.release.meanings import Counts
    >>> cells = NoisySums(totals=[3, 5], meaning=Counts(size=2, disjoint=True, count=8))
    >>> cells.release(epsilon=1.0).value.shape
    (2,)
    """

    summed: str = ALONE

    def __init__(
        self, *, totals: Sequence[int], meaning: Meaning, adjacency: str = "replace"
    ) -> None:
        self.adjacency = validate_adjacency(adjacency, owner=meaning.owner)
        self.meaning = meaning
        if self.adjacency.count_is_public != (meaning.count is not None):
            raise ParameterError(
                f"`meaning` of {meaning.owner} must hold the number of rows under 'replace', where"
                " it is public, and only there."
            )
        self._totals = shielded(
            lambda: [int(total) for total in totals],
            ParameterTypeError(f"`totals` of {meaning.owner} must be whole numbers."),
        )

    @property
    def owner(self) -> str:
        """What certificates call it."""
        return self.meaning.owner

    def settle(self, asked: Asked) -> Prepared:
        """Settle everything but the noise, which is drawn without looking at the data."""
        validate_choice(asked.timing, name="timing", owner=self.owner, choices=TIMINGS)
        if asked.sampler != "auto":
            raise ParameterError(
                f"`sampler` of {self.owner} must be 'auto': noise on a sum needs none; got"
                f" {asked.sampler!r}."
            )
        epsilon, told = asked.epsilon, asked.told
        rate = self._rate(epsilon)

        def fit() -> Draw:
            return lambda coins, size: self._draws(coins, epsilon, size)

        return Prepared(
            certificate=self._certify(epsilon, told),
            sampler=None,
            finish=told.finish,
            fit=fit,
            forecast_seconds=self.seconds,
            accuracy=lambda noisy: self._near(noisy, rate),
        )

    def _near(self, noisy: Sequence[int], rate: Fraction) -> Accuracy:
        """Return how far the truth may be, and what that follows from where the value is mute."""
        near = self.meaning.accuracy(noisy, rate)
        if self.meaning.sums_told(self.meaning.value(noisy).tolist()) is not None:
            return near
        return dataclasses.replace(near, noisy=tuple(int(one) for one in noisy))

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.float64]:
        """Draw ``size`` independent answers from a seeded stream: for studies, never a release."""
        owner = f"{self.owner}.sample"
        size = validate_integer(size, name="size", owner=owner, low=1, high=1 << 40)
        return np.asarray(self.prepare(epsilon=epsilon).sample(size, seed).values)

    def planned(self, epsilon: float | Fraction, wanted: Wanted) -> Plan:
        """Return what a release does: noise on the sums, with no loss to be evaluated."""
        only = Option(
            name=self.owner,
            sampler=None,
            delta=0.0,
            timing=DATA_INDEPENDENT,
            forecast=forecast_constant(0.0),
            reason=None,
            seconds=self.seconds(),
        )
        return plan_alone(
            only,
            epsilon=epsilon,
            note=self.meaning.note,
            budget_seconds=wanted.budget_seconds,
            error=self.meaning.error(self._rate(epsilon)),
        )

    def seconds(self) -> float:
        """Return about how long a draw takes, by a public table; measured."""
        return 4e-4 + 3e-4 * len(self._totals)

    def draw(self, coins: Coins, *, epsilon: float | Fraction, size: int) -> NDArray[np.float64]:
        """Draw ``size`` answers, one a row, from ``coins``."""
        return self._draws(coins, epsilon, size).values

    def _draws(self, coins: Coins, epsilon: float | Fraction, size: int) -> Draws:
        """Return answers from Python integers: a sum of 2^31 rows and more may pass int64."""
        rate = self._rate(epsilon)
        noisy = np.empty((size, len(self._totals)), dtype=object)
        for j, total in enumerate(self._totals):
            noisy[:, j] = [total + noise for noise in coins.discrete_laplace(rate, size).tolist()]
        values = np.stack([self.meaning.value(row) for row in noisy.tolist()])
        return Draws(values=values, proposals=np.zeros(size, dtype=np.int64), noisy=noisy)

    @property
    def _sensitivity(self) -> int:
        return self.meaning.sensitivity(self.adjacency)

    def _rate(self, epsilon: float | Fraction) -> Fraction:
        rate = validate_epsilon(epsilon, owner=self.owner) / self._sensitivity
        if rate < LEAST_RATE:
            raise ParameterError(self._too_fine(epsilon))
        return rate

    def _too_fine(self, epsilon: float | Fraction) -> str:
        return (
            f"`epsilon` of {self.owner} is too small for so many sums: their noise does not fit in"
            f" 64 bits; got {float(epsilon):g}."
        )

    def _certify(self, epsilon: float | Fraction, told: Told) -> Certificate:
        rate = self._rate(epsilon)
        return told.certify(
            self.owner,
            epsilon,
            adjacency=str(self.adjacency),
            sensitivity=float_up(Fraction(self._sensitivity)),
            eta=float_down(rate),
            domain=self.meaning.domain,
            sampler={"sampler": self.owner, "noise": NOISE, **self._named},
            timing=DATA_INDEPENDENT,
            assumptions=(self.summed, PLATFORM),
        )

    @property
    def _named(self) -> dict[str, str]:
        """What a certificate says besides."""
        return {}
