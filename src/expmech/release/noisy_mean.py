"""A mean by discrete Laplace noise on an integer sum. Theory page: docs/theory/noisy_mean.md."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.coins import Coins
from expmech.cost import forecast_constant
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    validate_choice,
    validate_integer,
    validate_vector,
)
from expmech.release.certificate import Certificate
from expmech.release.noisy_mean_checks import (
    KIND,
    OWNER,
    SUMS,
)
from expmech.release.prepared import Asked, Draw, Mechanism, Prepared, Told
from expmech.release.snapping import LEAST_RATE, MOST_BITS, affordable_bits, snap
from expmech.rounding import float_down
from expmech.samplers import TIMINGS, Draws, Option, Plan, plan_alone
from expmech.samplers.base import DATA_INDEPENDENT
from expmech.samplers.choose import AUTO
from expmech.target import validate_epsilon

_NOTES: dict[str, str] = {
    Adjacency.REPLACE: (
        "discrete Laplace noise on the integer sum: no loss is evaluated, and the error is half"
        " that of the exponential mechanism"
    ),
    Adjacency.ADD_REMOVE: (
        "a noisy sum over a noisy count: no loss is evaluated, and the number of rows is not needed"
    ),
}
_CLIPPED = (
    "rows were clipped to the public bounds and snapped to 2^bits steps one by one before they were"
    " summed"
)
_PLATFORM = "the operating system's random key is secret"


class NoisyMean(Mechanism):
    """Release ``lower + width clamp((S + noise) / (n 2^bits))``.

    S the integer sum of snapped rows, noise discrete Laplace.

    The noise has rate ``epsilon / (d 2^bits)`` a coordinate: half the scale of the exponential
    mechanism with L1 loss, which pays a factor 2. Under "add-remove" the number of rows is
    confidential, and the sums from below ``U = S`` and from above ``V = n 2^bits - S`` both get
    such noise; ``U / (U + V)`` is then a noisy sum over a noisy count.

    Parameters
    ----------
    count, sums
        Number of rows and, a column, the sum of the whole numbers that :func:`snap` gives.
        Confidential (under "replace" the count is public).
    bits
        Rows were snapped to ``2^bits`` steps, 1 to 32.
    lower, upper
        Public bounds, one a column.
    adjacency
        "replace" or "add-remove".

    Examples
    --------
    >>> rows = np.array([[0.2], [0.4], [0.9]])
    >>> NoisyMean.from_rows(rows, lower=[0.0], upper=[1.0]).release(epsilon=1.0).value.shape
    (1,)
    """

    def __init__(
        self,
        *,
        count: int,
        sums: Sequence[int],
        bits: int,
        lower: ArrayLike,
        upper: ArrayLike,
        adjacency: str = "replace",
    ) -> None:
        self.adjacency = validate_adjacency(adjacency, owner=OWNER)
        self.bits = validate_integer(bits, name="bits", owner=OWNER, low=1, high=MOST_BITS)
        self.lower = validate_vector(lower, name="lower", owner=OWNER, length=len(sums))
        self.upper = validate_vector(upper, name="upper", owner=OWNER, length=len(sums))
        if not (self.lower < self.upper).all():
            raise ParameterError(
                f"`lower` of {OWNER} must be below `upper`; got {lower!r} and {upper!r}."
            )
        if any(
            not 1e-290 <= float(up) - float(lo) < float("inf")
            for lo, up in zip(self.lower, self.upper, strict=True)
        ):
            raise ParameterError(
                f"`lower` and `upper` of {OWNER} must differ by a number of usual size; got"
                f" {lower!r}, {upper!r}."
            )
        least = 1 if self.adjacency.count_is_public else 0
        self._count = validate_integer(count, name="count", owner=OWNER, low=least, high=1 << 62)
        self._sums = [int(total) for total in sums]
        if any(not 0 <= total <= self._count << self.bits for total in self._sums):
            raise ParameterError(
                f"`sums` of {OWNER} must lie in 0 .. count * 2^bits, which sums of snapped rows do."
            )

    @classmethod
    def from_rows(
        cls,
        rows: ArrayLike,
        *,
        lower: ArrayLike,
        upper: ArrayLike,
        bits: int = MOST_BITS,
        adjacency: str = "replace",
    ) -> NoisyMean:
        """Clip, snap and sum rows of shape (n, d); they are confidential, the bounds are not."""
        with np.errstate(all="ignore"):  # a longer float may become infinite
            table = np.asarray(rows, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] == 0 or np.isnan(table).any():
            raise ParameterTypeError(
                f"`rows` of {OWNER} must be numbers of shape (n, d) without nan."
            )
        low = validate_vector(lower, name="lower", owner=OWNER, length=table.shape[1])
        high = validate_vector(upper, name="upper", owner=OWNER, length=table.shape[1])
        empty = cls(
            count=1, sums=[0] * low.size, bits=bits, lower=low, upper=high, adjacency=adjacency
        )  # checks before use
        sums = snap(table, low, high, empty.bits).sum(
            axis=0
        )  # below 2^63: fewer than 2^31 rows fit in memory
        return cls(
            count=len(table),
            sums=sums.tolist(),
            bits=empty.bits,
            lower=low,
            upper=high,
            adjacency=adjacency,
        )

    def settle(self, asked: Asked) -> Prepared:
        """Settle everything but the noise, which is drawn without looking at the data."""
        validate_choice(asked.timing, name="timing", owner=OWNER, choices=TIMINGS)
        if asked.sampler != "auto":
            raise ParameterError(
                f"`sampler` of {OWNER} must be 'auto': noise on a sum needs none; got"
                f" {asked.sampler!r}."
            )
        epsilon, told = asked.epsilon, asked.told

        def fit() -> Draw:
            return lambda coins, size: self._draws(coins, epsilon, size)

        return Prepared(
            certificate=self._certify(epsilon, told),
            sampler=None,
            finish=told.finish,
            fit=fit,
            forecast_seconds=self.seconds,
        )

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.float64]:
        """Draw ``size`` independent means from a seeded stream: for studies, never a release."""
        size = validate_integer(size, name="size", owner=f"{OWNER}.sample", low=1, high=1 << 40)
        return np.asarray(self.prepare(epsilon=epsilon).sample(size, seed).values)

    def plan(
        self,
        epsilon: float | Fraction,
        *,
        timing: str = AUTO,
        budget_seconds: float | None = None,
    ) -> Plan:
        """Return what a release does: noise on the sums, with no loss to be evaluated."""
        self._rate(epsilon)
        only = Option(
            name=OWNER,
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
            note=_NOTES[self.adjacency],
            budget_seconds=budget_seconds,
        )

    def seconds(self) -> float:
        """Return about how long a draw takes, by a public table; measured."""
        return 4e-4 + 3e-4 * len(self._sums)

    def draw(self, coins: Coins, *, epsilon: float | Fraction, size: int) -> NDArray[np.float64]:
        """Draw ``size`` means, one a row, from ``coins``."""
        rate = self._rate(epsilon)
        columns = [self._shares(coins, rate, total, size) for total in self._sums]
        shares = np.stack(columns, axis=1)
        return np.clip(self.lower + (self.upper - self.lower) * shares, self.lower, self.upper)

    def _draws(self, coins: Coins, epsilon: float | Fraction, size: int) -> Draws:
        values = self.draw(coins, epsilon=epsilon, size=size)
        return Draws(values=values, proposals=np.zeros(size, dtype=np.int64))

    def _shares(self, coins: Coins, rate: Fraction, total: int, size: int) -> NDArray[np.float64]:
        """Return noisy means in units of the width, from Python integers.

        A sum of 2^31 rows and more may pass int64.
        """
        whole = self._count << self.bits
        below = [total + noise for noise in coins.discrete_laplace(rate, size).tolist()]
        if self.adjacency == "replace":
            return np.array([min(max(noisy, 0), whole) / whole for noisy in below])
        above = [whole - total + noise for noise in coins.discrete_laplace(rate, size).tolist()]
        pairs = [(max(u, 0), max(v, 0)) for u, v in zip(below, above, strict=True)]
        return np.array([u / (u + v) if u + v else 0.5 for u, v in pairs])

    @property
    def _sensitivity(self) -> int:
        """L1 distance, in steps, that one row can move the sums.

        Under add-remove, U and V together move by 2^bits a column.
        """
        return len(self._sums) << self.bits

    def _rate(self, epsilon: float | Fraction) -> Fraction:
        budget = validate_epsilon(epsilon, owner=OWNER)
        rate = budget / self._sensitivity
        if rate < LEAST_RATE:
            fewer = affordable_bits(budget, len(self._sums))
            raise ParameterError(
                f"`bits` of {OWNER} must be at most {fewer} at this epsilon and dimension; got"
                f" {self.bits}."
            )
        return rate

    def _certify(self, epsilon: float | Fraction, told: Told) -> Certificate:
        rate = self._rate(epsilon)
        domain: dict[str, Any] = {
            "kind": KIND,
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "bits": self.bits,
            **self.adjacency.public(self._count),
        }
        return told.certify(
            OWNER,
            epsilon,
            adjacency=str(self.adjacency),
            sensitivity=float(self._sensitivity),
            eta=float_down(rate),
            domain=domain,
            sampler={"sampler": OWNER, "noise": "discrete Laplace", "sums": SUMS[self.adjacency]},
            timing=DATA_INDEPENDENT,
            assumptions=(_CLIPPED, _PLATFORM),
        )
