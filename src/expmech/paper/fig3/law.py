"""The laws of Figure 3: the mechanism on random points, and the mixture RandomAtomPerfect draws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.losses import RidgeGradient
from expmech.paper.example2 import SENSITIVITY, make_mechanism

THRESHOLDS = np.logspace(math.log10(0.4), math.log10(150.0), 61)
NOMINAL_K = 0.5


def survival_function(
    losses: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``P(L >= t)`` at the thresholds under the law proportional to ``weights``."""
    order = np.argsort(losses)
    above = np.concatenate([np.cumsum(weights[order][::-1])[::-1], [0.0]])
    return np.asarray(above[np.searchsorted(losses[order], THRESHOLDS, side="left")] / above[0])


def draw_points(loss: RidgeGradient, seed: list[int], count: int) -> NDArray[np.float64]:
    """Return public points, uniform on the ball's lattice."""
    domain = make_mechanism(loss).domain
    return np.asarray(domain.values(domain.draw_uniform(Coins(seeded_bits(seed)), count)))


def discrete_law(losses: NDArray[np.float64], epsilon: float) -> tuple[NDArray[np.float64], float]:
    """Return the survival function of the mechanism on a list of points.

    The log of the mean of exp(-eta L) over them comes with it.
    """
    energies = losses * (epsilon / (2.0 * SENSITIVITY))
    weights = np.exp(energies.min() - energies)
    log_mean = float(np.log(weights.mean()) - energies.min())
    return survival_function(losses, weights), log_mean


def realised_k(log_mean: NDArray[np.float64] | float, log_share: float) -> NDArray[np.float64]:
    """Return the share of the points in the mixture.

    Nominal odds times how f averages over the points against the ball.
    """
    odds = NOMINAL_K / (1.0 - NOMINAL_K) * np.exp(np.asarray(log_mean) - log_share)
    return np.asarray(odds / (1.0 + odds))
