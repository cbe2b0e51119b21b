"""Smooth convex losses, and the law of what an envelope's proposals leave after acceptance."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expmech as em
from expmech.auditing.enumeration import law_of, total_variation
from expmech.core.coins import Coins
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import Target
from expmech.losses import Curvature
from support.problems import exact_law

LEFTOVER = 1e-6


NAT = 1 << 40


class Quadratic:
    """``|M (y - center)|^2 / 2 + tilt.(y - center)``: its own curvature, with no skew."""

    convex = True
    minimum = -100.0

    def __init__(self, matrix: Any, center: Any, tilt: Any = 0.0) -> None:
        self.matrix, self.center = np.array(matrix, dtype=float), np.array(center, dtype=float)
        self.tilt = np.zeros_like(self.center) + tilt
        self.curvature = Curvature(
            center=self.center,
            value=0.0,
            gradient=self.tilt,
            hessian=self.matrix.T @ self.matrix,
            skew=0.0,
        )

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        away = y - self.center
        return np.asarray(
            ((self.matrix[None] * away[:, None, :]).sum(axis=2) ** 2).sum(axis=1) / 2
            + (away * self.tilt).sum(axis=1)
        )

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((y - self.center) @ (self.matrix.T @ self.matrix) + self.tilt)


def logistic(
    rows: Any, labels: Any, *, penalty: float = 0.5, radius: float = 2.0, **options: Any
) -> em.losses.LogisticRisk:
    table = np.array(rows, dtype=np.float64).reshape(len(labels), -1)
    return em.losses.LogisticRisk(table, labels, penalty=penalty, radius=radius, **options)


THREE = logistic([1.0, 0.5, -0.75], [1, 0, 1])


def accepted_law(
    envelope: Any, target: Target, *, cut: float = 1e-10, most: float = LEFTOVER
) -> dict[Hashable, float]:
    """Return the mass of each accepted point of one proposal.

    With nothing that matters left over.
    """

    def one(coins: Coins) -> Hashable:
        indices, accepted = propose(target, envelope, coins, 1)
        return tuple(indices[0].tolist()) if accepted[0] else None

    law, leftover = law_of(one, cut=cut)
    assert leftover <= most
    law.pop(None, None)
    return law


def stated_law(envelope: Any, target: Target) -> dict[Hashable, float]:
    """Return what theory says.

    Every lattice point has the mass exp(-E - m) over that of the proposal.
    """
    normaliser = target.log_normaliser()
    assert normaliser is not None
    share = math.exp(normaliser - envelope.offset / target.units_per_nat - envelope.log_mass())
    assert share > 1e-4
    return {point: share * probability for point, probability in exact_law(target).items()}


def distance(law: dict[Hashable, float], truth: dict[Hashable, float]) -> float:
    """Return the total variation between what is accepted, as shares of the stated mass."""
    total = sum(truth.values())
    return total_variation(
        {k: v / total for k, v in law.items()}, {k: v / total for k, v in truth.items()}
    )
