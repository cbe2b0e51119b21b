"""Numbers as whole steps of public bounds, fine enough for the noise. Page: noisy_mean.md."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

LEAST_RATE = Fraction(1, 1 << 55)
"""What :meth:`expmech.coins.Coins.discrete_laplace` draws within int64."""

MOST_BITS = 32


@np.errstate(all="ignore")
def snap(
    rows: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64], bits: int
) -> NDArray[np.int64]:
    """Return ``floor((clip(x) - lower) 2^bits / (upper - lower) + 1/2)`` for every entry.

    A whole number in ``0 .. 2^bits``. Clipped first: then nothing but a denormal value can raise a
    flag, an underflow, and it snaps to the right step.
    """
    shares = (np.minimum(np.maximum(rows, lower), upper) - lower) * (2.0**bits / (upper - lower))
    return np.floor(shares + 0.5).astype(np.int64)


def affordable_bits(epsilon: Fraction, dimension: int, most: int = MOST_BITS) -> int:
    """Return the most bits, up to ``most``, whose noise fits in int64.

    ``epsilon / (d 2^bits) >= 2^-55``. A public choice.
    """
    return max(1, min(most, (epsilon / (dimension * LEAST_RATE)).__floor__().bit_length() - 1))
