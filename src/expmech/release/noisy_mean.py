"""A mean by discrete Laplace noise on an integer sum. Theory page: docs/theory/noisy_mean.md."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    shielded,
    validate_integer,
    validate_vector,
)
from expmech.release.meanings import Means, Shares
from expmech.release.noisy_mean_checks import CLIPPED, SUMS
from expmech.release.noisy_sums import NoisySums
from expmech.release.snapping import MOST_BITS, affordable_bits, snap
from expmech.target import validate_epsilon

OWNER = Means.owner


class NoisyMean(NoisySums):
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

    summed = CLIPPED

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
        relation = validate_adjacency(adjacency, owner=OWNER)
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
        if not relation.count_is_public and (type(count) is not int or not 0 <= count <= 1 << 62):
            # it is confidential, so it is not repeated
            raise ParameterError(f"`count` of {OWNER} must be a whole number from 0 to 2^62.")
        least = 1 if relation.count_is_public else 0
        self._count = validate_integer(count, name="count", owner=OWNER, low=least, high=1 << 62)
        self._sums = shielded(
            lambda: [int(total) for total in sums],
            ParameterTypeError(f"`sums` of {OWNER} must be whole numbers."),
        )
        if any(not 0 <= total <= self._count << self.bits for total in self._sums):
            raise ParameterError(
                f"`sums` of {OWNER} must lie in 0 .. count * 2^bits, which sums of snapped rows do."
            )
        super().__init__(
            totals=(meaning := self._meaning(relation)).sums(self._count, self._sums),
            meaning=meaning,
            adjacency=relation,
        )

    def _meaning(self, relation: Adjacency) -> Means:
        """Return a mean of one sum a column where the count is public, else the share of two."""
        lower, upper = tuple(self.lower.tolist()), tuple(self.upper.tolist())
        if relation.count_is_public:
            return Means(lower=lower, upper=upper, bits=self.bits, count=self._count)
        return Shares(lower=lower, upper=upper, bits=self.bits)

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
        numbers = confidential_array(rows, name="rows", owner=OWNER, kinds="fiub")
        with np.errstate(all="ignore"):  # a longer float may become infinite
            table = numbers.astype(np.float64)
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

    def _too_fine(self, epsilon: float | Fraction) -> str:
        fewer = affordable_bits(validate_epsilon(epsilon, owner=OWNER), len(self._sums))
        return (
            f"`bits` of {OWNER} must be at most {fewer} at this epsilon and dimension; got"
            f" {self.bits}."
        )

    @property
    def _named(self) -> dict[str, str]:
        return {"sums": SUMS[self.adjacency]}
