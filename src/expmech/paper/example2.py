"""Example 2 of the paper: ridge regression by the K-norm gradient mechanism on the L1 ball."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Domain, L1Ball
from expmech.envelopes import Envelope, ProductLaplace, Uniform
from expmech.losses.base import Growth
from expmech.release import ExponentialMechanism

ROWS, DIMENSION, RADIUS, PENALTY = 100, 5, 1.0, 1.0
COEFFICIENTS = np.array([0.1, 0.2, -0.3, 0.0, 0.0])
SENSITIVITY = Fraction(20)  # 2 (1 + B) p, one row replaced
LOSS_BOUND = (
    1001.0  # n p (1 + B) + lambda B: the largest L1 norm of the gradient over every data set
)


def simulate(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and responses by the paper's appendix.

    Responses are clipped to [-1, 1], which the appendix forgets.
    """
    generator = np.random.default_rng(seed)
    features = generator.beta(5.0, 5.0, size=(ROWS, DIMENSION))
    noise = 2.0 * generator.beta(20.0, 20.0, size=ROWS) - 1.0
    return features, np.clip(features @ COEFFICIENTS + noise, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class RidgeGradient:
    """``L(y) = |X'(X y - z) + lambda y|_1 = |A y - b|_1``.

    Added up column by column so that the batch does not matter.
    """

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]
    minimum = 0.0
    sensitivity = SENSITIVITY

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the loss of each row."""
        total = np.zeros(len(y))
        for row, shift in zip(self.matrix, self.shift, strict=True):
            entry = y[:, 0] * row[0]
            for j in range(1, DIMENSION):
                entry += y[:, j] * row[j]
            entry -= shift
            total += np.abs(entry, out=entry)
        return total

    @property
    def growth(self) -> Growth:
        """``|A v|_1 >= |v|_1 / |A^-1|_1`` about the solution.

        Rate and slack allow for the rounding of the inverse.
        """
        inverse = np.linalg.inv(self.matrix)
        rate = (1.0 - 1e-9) / float(np.abs(inverse).sum(axis=0).max())
        return Growth(center=inverse @ self.shift, rates=np.full(DIMENSION, rate), slack=1e-6)

    def bound(self, domain: Domain) -> float:
        """Bound the loss over the ball, whatever the data."""
        return LOSS_BOUND

    def loss_error(self, domain: Domain) -> Fraction:
        """Bound rounding: A and b are sums of n terms up to 1, the loss p more sums of p terms."""
        return Fraction(4 * (ROWS + DIMENSION) * DIMENSION * (ROWS + 1) * 2, 1 << 53)


def make_loss(seed: int) -> RidgeGradient:
    """Return the loss of the simulated data set."""
    features, responses = simulate(seed)
    matrix = features.T @ features + PENALTY * np.eye(DIMENSION)
    return RidgeGradient(matrix=matrix, shift=features.T @ responses)


def make_mechanism(loss: RidgeGradient) -> ExponentialMechanism:
    """Return the mechanism f(y) ~ exp(-epsilon L(y) / 4(1+B)p) on the L1 ball of radius B = 1."""
    return ExponentialMechanism(loss=loss, domain=L1Ball(dimension=DIMENSION, radius=RADIUS))


def best_envelope(epsilon: float) -> Envelope:
    """Return the cheaper of the two envelopes.

    About the solution the law is narrow only when epsilon is large.
    """
    return ProductLaplace() if epsilon > 30.0 else Uniform()


def solution(loss: RidgeGradient) -> NDArray[np.float64]:
    """Return the ridge estimate, where the loss is zero."""
    return np.asarray(np.linalg.solve(loss.matrix, loss.shift))
