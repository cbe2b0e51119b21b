"""What the tests of the affine envelope share.

Losses, envelopes for a given split, laws of a proposal by enumeration.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech as em
from expmech.auditing.enumeration import EnumeratingCoins, law_of
from expmech.core.coins import Coins
from expmech.core.coins import laws as cube
from expmech.core.coins.laws import propose_half_widths
from expmech.domains import Domain
from expmech.exponential.envelopes.affine import BoundAffine, bind_split
from expmech.exponential.envelopes.affine_fit import Split
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import Target
from expmech.losses import AffineForm
from support.problems import exact_law

LEFTOVER = 1e-6
TILTED = [[2.0, 1.5], [1.5, 2.0]]


def steps_in_one_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerate a discrete Laplace draw, and a half-width (whose law has a test below).

    By law in one branch: fewer paths.
    """

    def draw(coins: EnumeratingCoins, rate: Fraction, size: int) -> NDArray[np.int64]:
        most = math.ceil(28.0 / float(rate))
        weights = np.exp(-float(rate) * np.abs(np.arange(-most, most + 1)))
        return np.array(
            [coins._branch((weights / weights.sum()).tolist()) - most for _ in range(size)],
            dtype=np.int64,
        )

    def widths(coins: EnumeratingCoins, dimension: int, rate: Fraction, size: int) -> Any:
        if not isinstance(coins, EnumeratingCoins):
            return propose_half_widths(coins, dimension, rate, size)
        law = kept_half_widths(dimension, float(rate))
        drawn = coins._branch([1.0 - sum(law), *law]) - 1
        return np.array([max(0, drawn)], dtype=np.int64), np.array([drawn >= 0])

    monkeypatch.setattr(EnumeratingCoins, "discrete_laplace", draw)
    monkeypatch.setattr(cube, "propose_half_widths", widths)


def kept_half_widths(dimension: int, rate: float) -> list[float]:
    """Return the probability that the half-width is r and kept, for r = 0, 1, ..."""
    scale = (1.0 - math.exp(-rate)) ** (dimension + 1) / (2**dimension * math.factorial(dimension))
    return [
        scale * (2 * r + 1) ** dimension * math.exp(-rate * r)
        for r in range(math.ceil((30.0 + 4 * dimension) / rate))
    ]


class AffineLoss:
    """``|A y - b|`` with what an affine envelope needs."""

    minimum = 0.0

    def __init__(self, matrix: Any, vector: Any, norm: str) -> None:
        self.affine = AffineForm(
            matrix=np.array(matrix, dtype=float), vector=np.array(vector, dtype=float), norm=norm
        )

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        residual = np.abs(
            (self.affine.matrix[None] * y[:, None, :]).sum(axis=2) - self.affine.vector
        )
        return np.asarray(
            residual.sum(axis=1) if self.affine.norm == "l1" else residual.max(axis=1)
        )


def split_by(columns: tuple[int, ...], dimension: int, *, pull: float = 0.0) -> Split:
    """Return the split that solves as many last rows for the columns named."""
    others = tuple(j for j in range(dimension) if j not in columns)
    rows = tuple(range(dimension - len(columns), dimension))
    return Split(rows=rows, columns=columns, others=others, pull=(pull,) * len(columns))


def bound(target: Target, split: Split, *, slack: float = 2.0**-10) -> BoundAffine:
    """Return the envelope for a given split."""
    form, domain = target.problem.affine, target.domain
    assert form is not None and isinstance(domain, (em.Box, em.L1Ball, em.L2Ball))
    envelope = bind_split(target, form, domain, Fraction(slack), split)
    assert envelope is not None
    return envelope


def tiny(
    matrix: Any,
    vector: Any,
    norm: str,
    domain: Domain,
    *,
    slack: float = 0.5,
    epsilon: float = 4.0,
    digits: int = 1,
    split: Split | None = None,
) -> tuple[Any, Target]:
    """Return an envelope that solves for all coordinates, or as given.

    And reveals few digits at a time; and its target.
    """
    mechanism = em.ExponentialMechanism(
        loss=AffineLoss(matrix, vector, norm), sensitivity=1, domain=domain, bound=100.0
    )
    target = mechanism.target(epsilon=epsilon)
    split = split or split_by(tuple(range(domain.dimension)), domain.dimension)
    return dataclasses.replace(bound(target, split, slack=slack), digits=digits), target


def enumerated(envelope: Any, target: Target, *, cut: float) -> tuple[dict[Hashable, float], float]:
    """Return the law of one proposal, refusals under None, by enumeration.

    And the mass left over.
    """

    def one(coins: Coins) -> Hashable:
        indices, accepted = propose(target, envelope, coins, 1)
        return tuple(indices[0].tolist()) if accepted[0] else None

    return law_of(one, cut=cut)


def accepted_law(envelope: Any, target: Target, *, cut: float = 1e-9) -> dict[Hashable, float]:
    """Return the mass of each accepted point of one proposal.

    With nothing that matters left over.
    """
    law, leftover = enumerated(envelope, target, cut=cut)
    assert leftover <= LEFTOVER
    law.pop(None, None)
    return law


def stated_law(envelope: Any, target: Target) -> dict[Hashable, float]:
    """Return what theory says.

    Every lattice point owns the volume 1 / |det T|, and exp(-E - m) of it is accepted.
    """
    normaliser = target.log_normaliser()
    assert normaliser is not None
    share = math.exp(normaliser - envelope.offset / target.units_per_nat - envelope.log_mass())
    assert share > 0.01
    return {point: share * probability for point, probability in exact_law(target).items()}


def normalised(law: dict[Hashable, float]) -> dict[Hashable, float]:
    total = sum(law.values())
    return {point: mass / total for point, mass in law.items()}
