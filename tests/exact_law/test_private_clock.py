"""Padding beyond the mean: the joint law of value and count, and that neighbours share the count's.

Small lattices by a sum, sums over coordinates by a sum for each axis.
"""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import check_padded, exact_law, float_mechanism, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import total_variation
from expmech.core.errors import EnvelopeViolatedError
from expmech.exponential.samplers.runtime import PadChain, SeparablePadChain
from expmech.ledger.verification import verify_certificate
from expmech.paper import example2

LEFTOVER = 1e-6
ROWS = (0.1, 0.3, 0.35, 0.9)
PAD = em.ConfAtomAndRuntimePerfect("pad")
Floats = NDArray[np.float64]


def wavy(rows: tuple[float, ...], domain: em.Domain, **more: Any) -> em.ExponentialMechanism:
    """A loss of one's own: neither a mean, nor a sum, nor convex."""
    mean = float(np.mean(rows))
    known = {"bound": 2.0} | more
    return em.ExponentialMechanism(
        loss=lambda y: np.abs(np.sin(3.0 * (y.reshape(len(y), -1)[:, 0] - mean))),
        sensitivity=3 / len(rows),
        domain=domain,
        **known,
    )


class Terms:
    """``sum_j |sin(2 (y_j - mean)) | (j + 1)``, a sum over coordinates."""

    def __init__(self, rows: tuple[float, ...]) -> None:
        self.mean = float(np.mean(rows))

    def terms(self, columns: NDArray[np.int64], values: Floats) -> Floats:
        return np.asarray(np.abs(np.sin(2.0 * (values - self.mean))) * (columns + 1))

    def __call__(self, y: Floats) -> Floats:
        return np.asarray(sum(self.terms(np.full(len(y), j), y[:, j]) for j in range(y.shape[1])))


def summed(rows: tuple[float, ...], *, bits: int = 2, d: int = 2) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=Terms(rows),
        sensitivity=d * (d + 1) / len(rows),
        domain=em.Box([0.0] * d, [1.0] * d, bits=bits),
        lipschitz=[2.0 * (j + 1) for j in range(d)],
    )


DOMAINS = {
    "box": em.Box([0.0], [1.0], bits=2),
    "simplex": em.Simplex(2, bits=2),
    "list": em.Candidates(range(4)),
    "product": em.Product(em.Box([0.0], [1.0], bits=1), em.Candidates(["a", "b"])),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_on_a_small_lattice_the_count_is_geometric_and_independent_of_the_value(name: str) -> None:
    chain, target = prepared(wavy(ROWS, DOMAINS[name]), PAD)
    assert isinstance(chain, PadChain)
    check_padded(chain, target, leftover=LEFTOVER)


def test_under_a_base_measure_that_excludes_points_too() -> None:
    base = em.BaseMeasure(
        lambda y: np.where(y[:, 0] > 0.75, -np.inf, -y[:, 0]), excludes=True, name="left"
    )
    chain, _ = prepared(wavy(ROWS, DOMAINS["box"], base=base), PAD)
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    floor, ended = float(chain.floor), [sum(step.values()) for step in enumerated.by_step]
    assert set(enumerated.law) == {(0,), (1,), (2,)}
    geometric = [floor * (1.0 - floor) ** t for t in range(len(ended))]
    assert ended == pytest.approx(geometric, rel=1e-6)


def counts(mechanism: em.ExponentialMechanism, steps: int = 40) -> list[float]:
    chain, _ = prepared(mechanism, PAD, epsilon=2.0)
    enumerated = ChainLaw(chain, lattice_point, leftover=1e-3, most_steps=steps)
    return [sum(step.values()) for step in enumerated.by_step]


@pytest.mark.parametrize("make", [summed, lambda rows: wavy(rows, DOMAINS["box"])])
def test_neighbours_share_the_law_of_the_count(make: Any) -> None:
    laws = {rows: counts(make(rows)) for pair in neighbours((0.0, 0.5, 1.0), 2) for rows in pair}
    first = next(iter(laws.values()))
    for law in laws.values():
        assert law == pytest.approx(first, rel=1e-8)


def test_coordinates_are_padded_one_by_one() -> None:
    chain, target = prepared(summed(ROWS), PAD)
    assert isinstance(chain, SeparablePadChain)
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    truth = exact_law(target)
    assert total_variation(enumerated.law, truth) <= LEFTOVER + 1e-9
    p, q = map(float, chain.floors)
    for t, step in enumerate(enumerated.by_step[:30]):
        both = sum(p * (1 - p) ** a * q * (1 - q) ** (t - 1 - a) for a in range(t))
        for point, probability in truth.items():
            assert step.get(point, 0.0) == pytest.approx(both * probability, rel=1e-6, abs=1e-12)


def test_the_number_of_evaluations_is_constant_where_coordinates_are_padded() -> None:
    made: list[int] = []

    class Counted(Terms):
        def terms(self, columns: NDArray[np.int64], values: Floats) -> Floats:
            made.append(len(values))
            return super().terms(columns, values)

    mechanism = em.ExponentialMechanism(
        loss=Counted(ROWS),
        sensitivity=1.0,
        domain=em.Box([0.0] * 3, [1.0] * 3, bits=8),
        lipschitz=[2.0, 4.0, 6.0],
    )
    made.clear()
    for seed in range(3):
        mechanism.sample(epsilon=20.0, sampler=PAD, seed=seed)
    assert sum(made) == 3 * 3 * 256


def test_draws_count_every_proposal() -> None:
    chain, _ = prepared(summed(ROWS, bits=6), PAD)
    drawn = summed(ROWS, bits=6).sample(epsilon=1.0, size=2000, sampler=PAD, seed=1).proposals
    means = np.array([1.0 / float(floor) for floor in chain.floors])
    spread = math.sqrt(float((means * (means - 1.0)).sum()) / 2000)
    assert abs(drawn.mean() - means.sum()) < 6.0 * spread


def test_the_offset_is_the_least_energy_of_the_lattice() -> None:
    lifted = em.ExponentialMechanism(
        loss=lambda y: 4.0 + np.abs(y[:, 0] - 0.3),
        sensitivity=0.1,
        domain=em.Box([0.0], [1.0], bits=4),
        lipschitz=[1.0],
        bound=5.0,
    )
    drawn = lifted.sample(epsilon=1.0, size=200, sampler=PAD, seed=1)
    assert drawn.proposals.mean() < 30.0


def test_the_normaliser_is_enclosed_or_unknown() -> None:
    small = wavy(ROWS, em.Box([0.0], [1.0], bits=6)).target(epsilon=1.0)
    ball = small.normaliser(200)
    assert ball is not None
    indices = small.domain.all_indices(64)
    assert indices is not None
    with flint.ctx.workprec(400):
        exact = flint.arb(0)
        for energy in small.energy(indices).tolist():
            exact += flint.arb(flint.fmpq(-energy, small.units_per_nat)).exp()
        assert ball.overlaps(exact)
        assert float(ball.rad()) < 2.0**-150
    assert float(ball.log()) == pytest.approx(small.log_normaliser(), abs=1e-12)
    assert wavy(ROWS, em.Box([0.0], [1.0])).target(epsilon=1.0).normaliser(64) is None


def test_example_2_on_a_small_lattice_has_a_private_clock() -> None:
    counted = []
    for seed in (1, 2):
        loss = example2.make_loss(seed)
        mechanism = em.ExponentialMechanism(loss=loss, domain=em.L1Ball(5, 1.0, bits=3))
        certificate = mechanism.certificate(epsilon=0.5, sampler=PAD)
        assert certificate.timing == "data-independent"
        assert all(check.holds for check in verify_certificate(certificate))
        counted.append(certificate.sampler["log_floor"])
        draws = mechanism.sample(epsilon=0.5, size=100, sampler=PAD, seed=1)
        mean = math.exp(-counted[-1])
        assert abs(draws.proposals.mean() - mean) < 6.0 * mean / math.sqrt(100)
    assert counted[0] == counted[1]


def test_a_false_declaration_behind_the_floor_raises_one_fixed_sentence() -> None:
    steep = em.ExponentialMechanism(
        loss=lambda y: 5.0 * np.abs(y[:, 0] - 0.5),
        sensitivity=0.01,
        domain=em.Box([0.0], [1.0], bits=4),
        lipschitz=[0.1],
        bound=5.0,
    )
    with pytest.raises(EnvelopeViolatedError, match="no value was released"):
        steep.sample(epsilon=1.0, sampler=PAD, seed=1)


def test_what_has_no_known_normaliser_is_refused() -> None:
    for mechanism in (
        wavy(ROWS, em.Box([0.0], [1.0])),
        summed(ROWS, bits=20),
        float_mechanism(list(ROWS), bits=20),
    ):
        with pytest.raises(em.UnsupportedError, match="enclosed to any precision"):
            mechanism.certificate(epsilon=1.0, sampler=PAD)
    unbounded = wavy(ROWS, em.Box([0.0], [1.0], bits=4), bound=None)
    with pytest.raises(em.UnsupportedError, match="Declare `lipschitz` or `bound`"):
        unbounded.certificate(epsilon=1.0, sampler=PAD)


def test_certificates_of_padding_are_verified() -> None:
    certificate = summed(ROWS, bits=6).certificate(epsilon=1.0, sampler=PAD)
    assert len(certificate.sampler["log_floors"]) == 2
    assert all(check.holds for check in verify_certificate(certificate))
    text = certificate.to_json().replace('"log_floors": [', '"log_floors": [1.0,')
    assert not all(check.holds for check in verify_certificate(em.Certificate.from_json(text)))
