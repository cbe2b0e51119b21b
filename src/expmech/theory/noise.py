"""The law of discrete Laplace noise, P(N = k) ~ exp(-rate |k|) on the whole numbers.

Derivation: docs/theory/noisy_sums.md, "The law of one sum".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def noise_mass(rate: float, points: ArrayLike) -> NDArray[np.float64]:
    """Return ``P(N = k) = tanh(rate / 2) exp(-rate |k|)`` at whole numbers k.

    Examples
    --------
    >>> round(float(noise_mass(1.0, range(-40, 41)).sum()), 12)
    1.0
    """
    away = np.abs(np.asarray(points, dtype=np.float64))
    return np.asarray(np.tanh(rate / 2.0) * np.exp(-rate * away))


def noise_below(rate: float, points: ArrayLike) -> NDArray[np.float64]:
    """Return ``P(N <= k)``; small tails keep their digits, and the other tail is that of ``-k``.

    Examples
    --------
    >>> float(noise_below(1.0, -1) + noise_mass(1.0, 0) + noise_below(1.0, -1))
    1.0
    """
    floor = np.floor(np.asarray(points, dtype=np.float64))
    share = 1.0 / (1.0 + np.exp(-rate))  # of the points up to 0, and of those from 0 on
    tail = share * np.exp(-rate * np.where(floor < 0.0, -floor, floor + 1.0))
    return np.asarray(np.where(floor < 0.0, tail, 1.0 - tail))
