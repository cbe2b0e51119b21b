"""Pure chains: the law of the shipped steps against the bound that has no size of the lattice."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import exact_law, float_mechanism, mean_mechanism, prepared

import expmech as em
from expmech import theory
from expmech.auditing.chain_law import Transitions, lattice_point
from expmech.exponential.kernels import Kernel, Laplace, Mixture, UniformMoves
from expmech.ledger.verification import verify_certificate

ROWS = [0.1, 0.3, 0.35, 0.9]


def distances(mechanism: em.ExponentialMechanism, kernel: Kernel, most: int) -> list[float]:
    """Return ``max |mu_m / f - 1|`` for m = 0..most, by the enumerated shipped step."""
    sampler = em.Metropolis(kernel, steps=1 << 20, beta=0.5)  # a chain that does not end here
    chain, target = prepared(mechanism, sampler, epsilon=6.0)
    moving, law, found = (
        Transitions(chain, lattice_point, cut=1e-14, ignore=0.0),
        exact_law(target),
        [],
    )
    for _ in range(most + 1):
        now: dict[Any, float] = dict.fromkeys(law, 0.0)
        for state, mass in zip(moving.states, moving.mass, strict=False):
            now[lattice_point(state)] += float(mass)
        found.append(max(abs(now[point] / law[point] - 1.0) for point in law))
        moving.advance()
    return found


def plane(bits: int) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=em.losses.L1Mean([[0.1, 0.8], [0.4, 0.2]]),
        domain=em.Box([0.0] * 2, [1.0] * 2, bits=bits),
    )


PROBLEMS = {
    "line": mean_mechanism(ROWS, bits=3),
    "floats": float_mechanism(ROWS, bits=3),
    "plane": plane(2),
}
KERNELS: dict[str, Kernel] = {
    "uniform": UniformMoves(),
    "laplace": Laplace(rate=2.0),
    "mixture": Mixture([Laplace(rate=8.0), UniformMoves()], weights=[3, 1]),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", KERNELS)
def test_every_step_is_within_the_bound_of_f_at_every_point(name: str, problem: str) -> None:
    mechanism, kernel = PROBLEMS[problem], KERNELS[name]
    target = em.Metropolis(kernel, steps=1).calibrate(mechanism._problem, Fraction(6))
    floor, spread = target.log_floor(), kernel.log_minorisation(target.domain)
    assert floor is not None and spread is not None and target.energy_range is not None
    found = distances(mechanism, kernel, 40)
    bounds = [
        theory.density_distance(floor + spread, target.energy_range, m, log_floor=floor)
        for m in range(41)
    ]
    assert all(true <= bound for true, bound in zip(found, bounds, strict=True))
    assert bounds[-1] < bounds[0] / (10 if name == "uniform" else 1)
    # a start that is not uniform, or a chain that keeps another law, would exceed it
    assert found[0] == pytest.approx(
        max(1 / p for p in exact_law(target).values()) / len(exact_law(target)) - 1, rel=1e-9
    )
    assert found[40] < found[0] / 3


@pytest.mark.parametrize("proposal", ["uniform", "laplace"])
def test_a_pure_chain_has_made_enough_steps(proposal: str) -> None:
    for mechanism in (PROBLEMS["line"], PROBLEMS["floats"]):
        sampler = em.Metropolis(pure=True, proposal=proposal)
        certificate = mechanism.certificate(epsilon=6.0, sampler=sampler)
        steps, tolerance = (certificate.sampler[name] for name in ("steps", "tolerance"))
        assert tolerance <= 6.0 / 4000
        assert distances(mechanism, sampler.kernel, steps)[-1] <= tolerance


def random_chain(
    rng: np.random.Generator, points: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a Metropolis matrix of a random symmetric proposal, and its law."""
    law = np.exp(-rng.gamma(2.0, rng.uniform(0.1, 3.0), points))
    raw = rng.gamma(rng.uniform(0.2, 5.0), 1.0, (points, points)) + rng.uniform(0.0, 2.0)
    proposal = (raw + raw.T) / (raw + raw.T).sum(axis=1).max()
    moves = proposal * np.minimum(1.0, law[None, :] / law[:, None])
    np.fill_diagonal(moves, 0.0)
    np.fill_diagonal(moves, 1.0 - moves.sum(axis=1))
    return moves, law / law.sum()


def test_the_theorem_holds_for_random_reversible_chains() -> None:
    rng, largest = np.random.default_rng(19), 0.0
    for _ in range(300):
        moves, law = random_chain(rng, int(rng.integers(2, 60)))
        beta = float(moves.min(axis=0).sum())  # the largest minorisation, whatever its nu
        density = (1.0 / len(law)) / law
        spread = density.max() - density.min()
        now = np.full(len(law), 1.0 / len(law))
        for m in range(1, 30):
            now = now @ moves
            bound = (1.0 - beta) ** m * spread
            assert np.abs(now / law - 1.0).max() <= bound * (1 + 1e-9) + 1e-12
            largest = max(largest, float(np.abs(now / law - 1.0).max() / bound))
    assert largest > 0.3  # the bound is not idle


def test_a_chain_that_is_not_reversible_may_exceed_the_bound() -> None:
    """Random matrices with their own invariant laws: the theorem needs detailed balance."""
    rng, worst = np.random.default_rng(5), 0.0
    for _ in range(300):
        moves = rng.gamma(0.3, 1.0, (3, 3)) + 0.01
        moves /= moves.sum(axis=1)[:, None]
        law = np.linalg.matrix_power(moves, 4096)[0]
        beta, density = float(moves.min(axis=0).sum()), (1 / 3) / law
        away = np.abs(np.full(3, 1 / 3) @ moves / law - 1.0).max()
        worst = max(worst, away / ((1.0 - beta) * (density.max() - density.min())))
    assert worst > 1.2


def test_the_size_of_the_lattice_does_not_enter() -> None:
    """32 bits, epsilon = 1: 429 -> 112 steps in one dimension, 650 -> 58 in three."""
    for d, rho, floor, before, now in ((1, 10.8, 0.1421, 429, 112), (3, 3.0, 0.15, 650, 58)):
        old = math.ceil((rho + 32 * d * math.log(2.0) + 28.0) / floor)
        assert old == pytest.approx(before, abs=1)
        log_floor = math.log(floor)
        assert (
            theory.bounds.pure_steps(log_floor, rho, tolerance=1 / 4000, log_floor=log_floor) == now
        )
    for bits in (4, 16, 32):
        loss, box = em.losses.L1Mean(ROWS), em.Box([0.0], [1.0], bits=bits)
        mechanism = em.ExponentialMechanism(loss=loss, domain=box)
        pure = mechanism.certificate(epsilon=1.0, sampler=em.Metropolis(pure=True)).sampler["steps"]
        small = mechanism.certificate(epsilon=1.0, sampler=em.Metropolis(delta=1e-9)).sampler[
            "steps"
        ]
        assert 10 < pure <= 17 < 30 < small


def failing(certificate: em.Certificate, **changed: Any) -> set[str]:
    altered = dataclasses.replace(certificate, sampler=certificate.sampler | changed)
    return {check.claim for check in verify_certificate(altered) if not check.holds}


def test_a_certificate_of_a_pure_chain_is_recomputed() -> None:
    mechanism = mean_mechanism(ROWS, bits=8)
    for sampler in (
        em.Metropolis(pure=True),
        em.Metropolis(pure=True, proposal="laplace"),
        em.Metropolis(pure=True, beta=0.05),
    ):
        certificate = mechanism.certificate(epsilon=1.0, sampler=sampler)
        told = certificate.sampler
        assert failing(certificate) == set()
        assert "steps" in failing(certificate, steps=told["steps"] - 1)
        assert "steps" in failing(certificate, steps=told["steps"] * 2)
        assert "steps" in failing(certificate, energy_range=told["energy_range"] + 1.0)
        assert "tolerance" in failing(certificate, tolerance=told["tolerance"] * 1.01)
        assert "log_floor" in failing(certificate, log_floor=told["log_floor"] - 0.1)
        # a faster chain than the kernel's floor allows needs fewer steps, and is found out
        assert failing(certificate, log_beta=told["log_beta"] / 2, steps=told["steps"] // 2)
        assert failing(certificate, tolerance=0.0) and failing(certificate, log_floor=0.5)


def test_an_earlier_certificate_keeps_its_rule() -> None:
    path = Path(__file__).parents[1] / "core" / "earlier_certificates.json"
    fields = [
        one for one in json.loads(path.read_text()) if one["sampler"]["sampler"] == "Metropolis"
    ]
    assert len(fields) == 1 and fields[0]["sampler"]["pure"] is True
    certificate = em.Certificate.from_json(json.dumps(fields[0]))
    assert failing(certificate) <= {"version"}
    assert certificate.sampler["steps"] == 38  # by the size of the lattice; 12 are made now
    assert "steps" in failing(certificate, steps=12)
    # the earlier number of steps does not pass for a new one with its larger reserve
    assert failing(certificate, tolerance=2.4e-5, log_floor=certificate.sampler["log_beta"])
