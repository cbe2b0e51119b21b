"""The tangent envelope: laws by enumeration of the code as shipped."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.convex import LEFTOVER, NAT, THREE, Quadratic, accepted_law, distance, stated_law
from support.problems import prepared

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import EnvelopeViolatedError
from expmech.domains import Domain
from expmech.exponential.envelopes.tangent import BoundTangent
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import Target


class Wrong(Quadratic):
    """A convex loss whose gradient errs by as much as it declares."""

    gradient_error = 0.4

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return super().gradient(y) + self.gradient_error


TANGENTS: dict[str, tuple[Any, Domain]] = {
    "steep": (Quadratic([[1.0]], [-2.0]), em.Box([-1.0], [1.0], bits=3)),
    "steep the other way": (Quadratic([[1.0]], [3.0]), em.Box([-1.0], [1.0], bits=3)),
    "flat at the optimum": (Quadratic([[1.5]], [0.1]), em.Box([-1.0], [1.0], bits=3)),
    "two coordinates": (
        Quadratic([[1.0, 0.5], [0.0, 1.0]], [-2.0, 0.1]),
        em.Box([-1.0, -1.0], [1.0, 1.0], bits=2),
    ),
    "gradient with an error": (Wrong([[1.0]], [-1.0]), em.Box([-1.0], [1.0], bits=3)),
    "logistic": (THREE, em.Box([0.5], [2.0], bits=3)),
}


def tangent(name: str, epsilon: float = 3.0) -> tuple[Any, Target]:
    loss, domain = TANGENTS[name]
    sensitivity = None if loss is THREE else 1
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=sensitivity, domain=domain, bound=100.0
    )
    chain, target = prepared(mechanism, em.Rejection(em.Tangent(), batch=1), epsilon=epsilon)
    assert isinstance(chain.envelope, BoundTangent)
    return chain.envelope, target


@pytest.mark.parametrize("name", TANGENTS)
def test_tangent_proposals_accepted_have_the_law_of_the_mechanism(name: str) -> None:
    envelope, target = tangent(name)
    truth = stated_law(envelope, target)
    assert distance(accepted_law(envelope, target, cut=1e-12), truth) <= LEFTOVER / sum(
        truth.values()
    )
    # the energies of the proposal lie below, and touch
    indices = target.domain.all_indices(1 << 8)
    assert indices is not None
    low = np.where(envelope.slopes > 0, indices, envelope.points_per_axis - 1 - indices)
    excess = target.energy(indices) + envelope.offset - (np.abs(envelope.slopes) * low).sum(axis=1)
    assert excess.min() >= 0
    if name != "gradient with an error":
        assert excess.min() <= NAT // 100


def test_a_tangent_that_ignores_the_error_of_the_gradient_is_violated() -> None:
    envelope, target = tangent("gradient with an error")
    allowed = target.eta * Wrong.gradient_error * 2.0 * NAT  # the error over the width of the box
    wrong = dataclasses.replace(envelope, offset=envelope.offset - int(allowed))
    with pytest.raises(EnvelopeViolatedError):
        propose(target, wrong, Coins(seeded_bits(1)), 2_000)


@pytest.mark.parametrize(
    ("bits", "tilt"),
    [(8, 3e6), (44, 2.0), (44, 3.1)],
    ids=["saturated", "half a unit", "over half a unit"],
)
def test_tangent_energies_stay_below_those_of_the_target(bits: int, tilt: float) -> None:
    """Slopes are cut where energies saturate, and rounded to whole units a step.

    Which many steps multiply.
    """
    loss = Quadratic([[0.5]], [-1.0], tilt)
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.Box([-1.0], [1.0], bits=bits)
    )
    target = mechanism.target(epsilon=4.0)
    envelope: Any = em.Tangent().bind(target)
    assert isinstance(envelope, BoundTangent)
    indices = np.linspace(0, (1 << bits) - 1, 201).astype(np.int64)[:, None]
    energies = target.energy(indices)
    assert bits == 44 or energies.max() == 1 << 60
    steps = indices[:, 0] if envelope.slopes[0] > 0 else (1 << bits) - 1 - indices[:, 0]
    assert (energies + envelope.offset - abs(int(envelope.slopes[0])) * steps).min() >= 0
