"""Public floors on the acceptance of uniform proposals, against the whole lattice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech as em
from expmech.domains import Grid
from expmech.paper import example2
from expmech.theory.bounds import log_acceptance_floor_convex, log_acceptance_floor_finite

DOMAINS: list[Grid] = [
    em.Box([0.0], [1.0], bits=8),
    em.Box([0.0, 0.0], [1.0, 1.0], bits=6),
    em.Box([0.0] * 3, [1.0] * 3, bits=5),
    em.L1Ball(2, 1.0, bits=7),
    em.L2Ball(2, 1.0, bits=6),
    em.L1Ball(3, 1.0, bits=5),
]


def acceptance(losses: NDArray[np.float64], rho: float) -> float:
    """Return the log of the mean of exp(-(E - min)) of losses scaled to the range rho."""
    energies = (losses - losses.min()) / (losses.max() - losses.min()) * rho
    return math.log(float(np.exp(-energies).mean()))


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda one: f"{type(one).__name__} {one.dimension}")
def test_no_convex_loss_accepts_less_than_its_floor(domain: Grid) -> None:
    random = np.random.default_rng(1)
    indices = domain.all_indices(1 << 16)
    assert indices is not None
    points, d = domain.points(indices), domain.dimension
    tightest = math.inf
    for trial in range(60):
        center = points[random.integers(len(points))] * (1.0 if trial % 2 else 1.5)
        slope = random.normal(size=d)
        far = np.abs((points - center) @ random.normal(size=(d, d)))
        losses = (far.max(axis=1), far.sum(axis=1) ** 2, points @ slope)[trial % 3]
        for rho in (0.5, 5.0, 20.0):
            floor = log_acceptance_floor_convex(d, domain.points_per_axis / 2, rho)
            tightest = min(tightest, acceptance(losses, rho) - floor)
    assert 0.0 <= tightest < 2.5 * d


@pytest.mark.parametrize("d", range(1, 9))
def test_the_narrowest_convex_loss_accepts_little_more_than_its_floor(d: int) -> None:
    # L = max_j y_j on the unit cube: a share t^d of it has L <= t
    rho = 60.0
    truth = math.log(math.factorial(d)) - d * math.log(rho) + math.log1p(-1e-9)
    floor = log_acceptance_floor_convex(d, 2.0**40, rho)
    assert 0.0 <= truth - floor <= 1.0 + math.log(2.0 * math.pi * d) / 2


def test_a_loss_that_is_not_convex_may_accept_less() -> None:
    losses = np.ones(1 << 8)
    losses[7] = 0.0
    assert acceptance(losses, 20.0) < log_acceptance_floor_convex(1, 1 << 7, 20.0)
    assert acceptance(losses, 20.0) >= log_acceptance_floor_finite(8 * math.log(2.0), 20.0)


def test_errors_and_gaps_lower_it_and_tiny_lattices_fall_back() -> None:
    plain = log_acceptance_floor_convex(2, 1 << 20, 9.0)
    assert log_acceptance_floor_convex(2, 1 << 20, 9.0, gap=1.0) <= plain - 1.0
    assert log_acceptance_floor_convex(2, 1 << 20, 9.0, energy_error=0.5) <= plain - 1.0
    assert log_acceptance_floor_convex(3, 2.0, 9.0) <= -9.0


def convex(domain: em.Domain, **more: Any) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=lambda y: ((y - 0.2) ** 2).sum(axis=1),
        sensitivity=0.01,
        domain=domain,
        bound=4,
        **more,
    )


def test_it_is_used_where_a_loss_says_that_it_is_convex() -> None:
    for domain in (em.Box([0.0] * 3, [1.0] * 3), em.L1Ball(3, 1.0), em.L2Ball(3, 1.0)):
        plain, known = (
            convex(domain, **more).target(epsilon=1.0) for more in ({}, {"convex": True})
        )
        assert known.log_floor() > plain.log_floor() + 40.0  # type: ignore[operator]
    assert "the loss is convex" in str(convex(DOMAINS[0], convex=True).certificate(epsilon=1.0))


def test_example_2_at_the_size_of_the_paper_has_a_chain_of_public_length() -> None:
    mechanism = em.ExponentialMechanism(loss=example2.make_loss(1), domain=em.L1Ball(5, 1.0))
    steps = {
        epsilon: mechanism.certificate(epsilon=epsilon, sampler=em.Metropolis(pure=True)).sampler[
            "steps"
        ]
        for epsilon in (0.1, 1.0)
    }
    assert steps[0.1] < 2_000
    assert steps[1.0] < 1e8
    released = mechanism.release(epsilon=0.1, sampler=em.Metropolis(pure=True))
    assert released.certificate.timing == "constant"
    assert np.abs(released.value).sum() <= 1.0
