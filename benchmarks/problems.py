"""The problems of the comparison, each with what plain float64 NumPy does about it.

No lattice, no exact coins, no proof.

Where the optimum falls is random, so that a grid of candidates cannot happen to hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expmech as em

EPSILON = 1.0
Values = NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A mechanism; its energy in float64.

    And the best float64 sampler that knows the shape of the loss (``tailored``).

    ``tailored`` makes that many proposals and returns those it keeps, which follow the law up to
    rounding.
    """

    name: str
    loss: Any
    domain: em.Box
    adjacency: str
    sampler: str | em.BoxTree | em.Rejection
    optimum: Values
    energy: Callable[[Values], Values]
    tailored: Callable[[Generator, int], Values]
    epsilon: float = EPSILON

    @property
    def eta(self) -> float:
        return self.epsilon / (2.0 * float(self.loss.sensitivity))

    def mechanism(self) -> em.ExponentialMechanism:
        return em.ExponentialMechanism(loss=self.loss, domain=self.domain, adjacency=self.adjacency)

    def uniform(self, generator: Generator, size: int) -> Values:
        """Uniform rejection in float64: make ``size`` proposals, return those accepted."""
        y = generator.uniform(self.domain.lower, self.domain.upper, (size, self.domain.dimension))
        return np.asarray(y[generator.random(size) < np.exp(-self.energy(y))])


def mean(d: int, n: int = 1000, seed: int = 0) -> Problem:
    generator = np.random.default_rng([d, seed])
    rows = generator.beta(5, generator.uniform(3, 8, d), (n, d))
    center = rows.mean(axis=0)
    slope = EPSILON * n / (2 * d)

    def tailored(generator: Generator, size: int) -> Values:
        y = center + generator.laplace(scale=1.0 / slope, size=(size, d))
        return np.asarray(y[((y >= 0.0) & (y <= 1.0)).all(axis=1)])

    return Problem(
        name=f"mean, d = {d}, n = {n}",
        loss=em.losses.L1Mean(rows),
        domain=em.Box([0.0] * d, [1.0] * d),
        adjacency="replace",
        sampler="auto",
        optimum=center,
        energy=lambda y: np.asarray(slope * np.abs(y - center).sum(axis=1)),
        tailored=tailored,
    )


def median(
    n: int = 1000, bound: float = 10.0, seed: int = 0, *, epsilon: float = EPSILON
) -> Problem:
    generator = np.random.default_rng(seed)
    values = np.sort(generator.normal(generator.uniform(-1.0, 1.0), size=n))
    edges = np.concatenate([[-bound], values, [bound]])
    ranks = epsilon * np.abs(np.arange(n + 1) - n / 2)  # D = 1/2 under add-remove
    mass = np.cumsum(np.exp(ranks.min() - ranks) * np.diff(edges))

    def tailored(generator: Generator, size: int) -> Values:
        chosen = np.searchsorted(mass, generator.random(size) * mass[-1], side="right")
        return np.asarray(generator.uniform(edges[chosen], edges[chosen + 1]))[:, None]

    return Problem(
        name=f"median of N(m, 1) on [-{bound:g}, {bound:g}], n = {n}",
        loss=em.losses.Quantile(values, q=0.5, lower=-bound, upper=bound, adjacency="add-remove"),
        domain=em.Box([-bound], [bound]),
        adjacency="add-remove",
        sampler=em.BoxTree(),
        optimum=np.array([np.median(values)]),
        energy=lambda y: np.asarray(ranks[np.searchsorted(values, y[:, 0])]),
        tailored=tailored,
        epsilon=epsilon,
    )


def ridge(p: int, n: int = 10_000, seed: int = 0, *, tree: bool = False) -> Problem:
    """K-norm gradient in the L-infinity norm on the box [-1, 1]^p; correlated columns."""
    generator = np.random.default_rng([p, seed])
    features = np.clip(
        0.3 * generator.normal(size=(n, 1)) + 0.3 * generator.normal(size=(n, p)), -1.0, 1.0
    )
    responses = np.clip(
        features @ generator.uniform(-0.5, 0.5, p) + 0.1 * generator.normal(size=n), -1.0, 1.0
    )
    matrix, vector = features.T @ features + np.eye(p), features.T @ responses
    loss = em.losses.RidgeGradient(features, responses, penalty=1.0, radius=float(p))
    eta = EPSILON / (2.0 * float(loss.sensitivity))

    def tailored(generator: Generator, size: int) -> Values:
        noise = generator.uniform(-1.0, 1.0, size=(size, p)) * generator.gamma(
            p + 1.0, 1.0 / eta, size=(size, 1)
        )
        y = np.linalg.solve(matrix, (noise + vector).T).T
        return np.asarray(y[(np.abs(y) <= 1.0).all(axis=1)])

    return Problem(
        name=f"ridge, {p} slopes, n = {n}" + (", box tree" if tree else ""),
        loss=loss,
        domain=em.Box([-1.0] * p, [1.0] * p),
        adjacency="replace",
        sampler=em.BoxTree() if tree else em.Rejection(em.Affine()),
        optimum=np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64),
        energy=lambda y: np.asarray(eta * np.abs(y @ matrix - vector).max(axis=1)),
        tailored=tailored,
    )
