"""Example 2 of the paper: ridge regression by the K-norm gradient mechanism on the L1 ball.

The loss is the library's own, in the paper's norm; this file holds the paper's constants, its
simulation and what the studies know beyond the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.domains import L1Ball
from expmech.exponential.envelopes import Envelope, ProductLaplace, Uniform
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.losses import RidgeGradient
from expmech.losses.base import Growth

ROWS, DIMENSION, RADIUS, PENALTY = 100, 5, 1.0, 1.0
COEFFICIENTS = np.array([0.1, 0.2, -0.3, 0.0, 0.0])
SENSITIVITY = Fraction(20)  # 2 (1 + B) p as printed; RidgeGradient has the least one, 16


def simulate(seed: int | Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and responses by the paper's appendix.

    Responses are clipped to [-1, 1], which the appendix forgets.
    """
    generator = np.random.default_rng(seed)
    features = generator.beta(5.0, 5.0, size=(ROWS, DIMENSION))
    noise = 2.0 * generator.beta(20.0, 20.0, size=ROWS) - 1.0
    return features, np.clip(features @ COEFFICIENTS + noise, -1.0, 1.0)


def make_loss(seed: int | Sequence[int]) -> RidgeGradient:
    """Return ``L(y) = |X'(X y - z) + lambda y|_1`` of the simulated data set."""
    features, responses = simulate(seed)
    return RidgeGradient(features, responses, penalty=PENALTY, radius=RADIUS, norm="l1")


def growth_about_solution(loss: RidgeGradient) -> Growth:
    """Return the growth ``|A v|_1 >= |v|_1 / |A^-1|_1`` about the ridge solution.

    Rate and slack allow for the rounding of the inverse. It depends on the data, so a release could
    not declare it; a study may.
    """
    inverse = np.linalg.inv(loss.affine.matrix)
    rate = (1.0 - 1e-9) / float(np.abs(inverse).sum(axis=0).max())
    center = inverse @ loss.affine.vector
    return Growth(center=center, rates=np.full(DIMENSION, rate), slack=1e-6)


def make_mechanism(loss: RidgeGradient) -> ExponentialMechanism:
    """Return the mechanism f(y) ~ exp(-epsilon L(y) / 4(1+B)p) on the L1 ball of radius B = 1."""
    ball = L1Ball(dimension=DIMENSION, radius=RADIUS)
    return ExponentialMechanism(
        loss=loss, domain=ball, sensitivity=SENSITIVITY, growth=growth_about_solution(loss)
    )


def best_envelope(epsilon: float) -> Envelope:
    """Return the cheaper of the two envelopes.

    About the solution the law is narrow only when epsilon is large.
    """
    return ProductLaplace() if epsilon > 30.0 else Uniform()
