"""Units coarser than 2^-40 nats: epsilon on neighbours, the reserve, the cap, and what is said."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import float_mechanism, mean_mechanism, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import largest_log_ratio
from expmech.core.errors import UnsupportedError
from expmech.exponential.samplers import Sampler
from expmech.exponential.target import Target, make_target
from expmech.exponential.target.calibration import ENERGY_CAP, calibrate, calibrate_within
from expmech.ledger.verification import verify_certificate

N = 3_000_000
VALUES = (0.0, 0.4, 1.0)
SAMPLERS: dict[str, Sampler] = {
    "Laplace": em.Rejection(em.ProductLaplace(), batch=1),
    "tabulated": em.Tabulated(),
    "tabulated, constant": em.ConstantTabulated(),
    "atom": em.ConfAtomPerfect(0.5),
}


@pytest.mark.parametrize("make", [mean_mechanism, float_mechanism])
@pytest.mark.parametrize("name", SAMPLERS)
def test_no_probability_moves_by_more_than_epsilon(name: str, make: Any) -> None:
    """On all neighbours; the whole of epsilon is 2^-18 units, and most of it is used."""
    worst = 0.0
    laws: dict[tuple[float, ...], dict[Hashable, float]] = {}
    for pair in neighbours(VALUES, 2):
        for rows in pair:
            if rows not in laws:
                mechanism = make(list(rows), bits=3, bound=2.0**39)
                chain, target = prepared(mechanism, SAMPLERS[name], epsilon=1.0)
                assert target.units_per_nat <= 1 << 20
                laws[rows] = ChainLaw(chain, lattice_point, leftover=1e-9).law
        worst = max(worst, largest_log_ratio(*(laws[rows] for rows in pair)))
    assert 0.4 < worst <= 1.0


def widest(first: Target, second: Target) -> int:
    indices = first.domain.all_indices(1 << 12)
    assert indices is not None
    return int(np.abs(first.energy(indices) - second.energy(indices)).max())


def shifted(seed: int, *, bound: float) -> list[em.ExponentialMechanism]:
    """Two data sets whose losses differ by the sensitivity, up or down, at every candidate.

    Whole numbers, so that the losses are exact and the rounding of energies is all there is.
    """
    rng = np.random.default_rng(seed)
    losses = np.floor(rng.uniform(0.0, bound / 2, 400))
    signs = rng.choice([-1.0, 1.0], 400)
    return [
        em.ExponentialMechanism(
            loss=(losses + 7.0 + part * signs * 7.0).__getitem__,
            sensitivity=7,
            domain=em.Candidates(range(400)),
            bound=bound,
            loss_error=2.0**-40,
        )
        for part in (0, 1)
    ]


@pytest.mark.parametrize("bound", [1e3, 1e7, 1e9, 1e11])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2)])
def test_energies_of_neighbours_differ_by_half_of_epsilon_less_384_units(
    bound: float, epsilon: Fraction
) -> None:
    wrongly, units = 0, 1 << 40
    for seed in range(5):
        problems = [one._problem for one in shifted(seed, bound=bound)]
        first, second = (make_target(problem, epsilon) for problem in problems)
        units = first.units_per_nat
        allowed = epsilon / 2 * units - 384
        assert 0.99 * allowed - 600 <= widest(first, second) <= allowed
        # a reserve that stays at 513 units of 2^-40 nats
        eta = calibrate(epsilon, Fraction(7), problems[0].loss_error).eta
        loose = (dataclasses.replace(one, eta=eta) for one in (first, second))
        wrongly += widest(*loose) > allowed
    assert wrongly == (0 if units == 1 << 40 else 5)


@pytest.mark.parametrize("terms", [1, 16385])
def test_the_unit_is_the_finest_that_holds_the_bound(terms: int) -> None:
    for largest in (0, 1, 10**5, 10**6, 3 * 10**6, 10**8, 10**10):
        found = calibrate_within(
            Fraction(1), Fraction(1), Fraction(1, 1000), largest=Fraction(largest), terms=terms
        )
        reach = Fraction(found.eta) * (largest + Fraction(1, 1000))
        assert reach * found.units_per_nat <= ENERGY_CAP // 2
        lost = Fraction(512 + terms, found.units_per_nat)
        spent = 2 * Fraction(found.eta) * (1 + Fraction(2, 1000))
        assert 1 - Fraction(1, 1 << 50) <= spent + 2 * lost <= 1
        if found.units_per_nat == 1 << 40:
            assert found == calibrate(Fraction(1), Fraction(1), Fraction(1, 1000), terms=terms)
        else:
            finer = calibrate(
                Fraction(1),
                Fraction(1),
                Fraction(1, 1000),
                terms=terms,
                units_per_nat=2 * found.units_per_nat,
            )
            reach = Fraction(finer.eta) * (largest + Fraction(1, 1000))
            assert 2 * reach * found.units_per_nat > ENERGY_CAP // 2
    # a bound that no unit holds: the coarsest that costs an eighth of epsilon at most
    found = calibrate_within(
        Fraction(1), Fraction(1), Fraction(1, 1000), largest=Fraction(10**30), terms=terms
    )
    assert Fraction(512 + terms, found.units_per_nat) <= Fraction(1, 16)
    assert found.units_per_nat >= 1 << 16


class Distances:
    """``sum_i |x_i - y|`` over three million rows, whose median is near 0.5."""

    def __init__(self) -> None:
        self.rows = np.sort(np.random.default_rng(4).random(N))
        self.sums = np.concatenate([[0.0], np.cumsum(self.rows)])

    def __call__(self, y: Any) -> Any:
        at = np.searchsorted(self.rows, y[:, 0])
        below, whole = self.sums[at], self.sums[-1]
        return y[:, 0] * at - below + (whole - below) - y[:, 0] * (N - at)


@pytest.fixture(scope="module")
def distances() -> Distances:
    return Distances()


def mechanism_of(loss: Any, *, bits: int = 12, **declared: Any) -> em.ExponentialMechanism:
    box = em.Box([0.0], [1.0], bits=bits)
    return em.ExponentialMechanism(loss=loss, sensitivity=1, domain=box, **declared)


class OldCap(Target):
    """Energies that stop at 2^20 nats, whatever their unit."""

    def _round(self, losses: Any) -> Any:
        cap = self.units_per_nat << 20
        return np.clip(super()._round(losses), -cap, cap)


def test_a_loss_on_three_million_rows_is_not_flat(distances: Distances) -> None:
    mechanism = mechanism_of(distances, bound=float(N))
    draws = mechanism.sample(epsilon=4.0, size=200, seed=1)
    assert np.abs(draws.values - 0.5).max() < 0.005
    certificate = mechanism.certificate(epsilon=4.0)
    assert certificate.unit == -36
    assert not any("flat" in text for text in certificate.assumptions)
    tree = mechanism_of(distances, bits=32, lipschitz=[float(N)])
    assert abs(float(tree.sample(epsilon=4.0, seed=1).values[0, 0]) - 0.5) < 0.005
    # without the coarser unit, or with a cap that does not move with it, the law is flat
    target = mechanism.target(epsilon=4.0)
    old = OldCap(
        **{field.name: getattr(target, field.name) for field in dataclasses.fields(target)}
    )
    indices = target.domain.all_indices(1 << 12)
    assert indices is not None
    assert np.ptp(old.energy(indices)) == 0
    unbounded = mechanism_of(distances).target(epsilon=4.0)
    assert np.ptp(unbounded.energy(indices)) == 0


def test_without_a_bound_the_law_may_be_flat_and_everybody_is_told(distances: Distances) -> None:
    mechanism = mechanism_of(distances)
    with pytest.raises(UnsupportedError, match="Declare `bound`") as caught:
        mechanism.release(epsilon=4.0)
    assert "524288" in str(caught.value)
    plan = mechanism.plan(4.0)
    assert plan.chosen is None
    assert plan.saturates_at == pytest.approx(524288.0, rel=1e-5)
    assert "declare `bound`" in " ".join(str(plan).split())
    certificate = mechanism.certificate(epsilon=4.0, sampler=em.Tabulated())
    assert certificate.unit == -40
    assert any(
        "where the least loss is above that the law is flat" in one
        for one in certificate.assumptions
    )
    assert mechanism.release(epsilon=4.0, sampler=em.Tabulated()).value.shape == (1,)
    told = mechanism_of(distances, gap=float(N))
    assert told.certificate(epsilon=4.0).unit == -36
    assert told.plan(4.0).saturates_at is None


def test_losses_of_ours_are_served_without_a_bound() -> None:
    box = em.Box([0.0], [1.0])
    loss = em.losses.Quantile(
        np.array([0.2, 0.4]), q=0.5, lower=0.0, upper=1.0, adjacency="add-remove"
    )
    quantile = em.ExponentialMechanism(loss=loss, domain=box, adjacency="add-remove")
    certificate = quantile.certificate(epsilon=1.0)
    assert certificate.unit == -40
    assert any("the law is flat" in text for text in certificate.assumptions)
    scores = em.ExponentialMechanism(
        loss=em.losses.Scores([1, 5, 2]), sensitivity=1, domain=em.Candidates(["a", "b", "c"])
    )
    assert not any("flat" in text for text in scores.certificate(epsilon=1.0).assumptions)
    risk = em.losses.LogisticRisk(
        np.array([[0.5]]), [1], penalty=0.1, radius=1.0, adjacency="add-remove"
    )
    logistic = em.ExponentialMechanism(loss=risk, domain=em.L2Ball(1, 1.0), adjacency="add-remove")
    assert logistic.certificate(epsilon=1.0).unit == -28  # 2^32 rows at most, half a nat each
    assert logistic.plan(1.0).saturates_at is None


@pytest.mark.parametrize("sampler", [em.Tabulated(), em.Metropolis(steps=50)])
def test_verify_recomputes_eta_in_the_unit_of_the_certificate(sampler: Sampler) -> None:
    mechanism = float_mechanism([0.1, 0.3, 0.9], bits=3, bound=2.0**36)
    certificate = mechanism.certificate(epsilon=1.0, sampler=sampler)
    assert certificate.unit == -22
    assert all(check.holds for check in verify_certificate(certificate))
    assert "in units of 2^-22" in " ".join(str(certificate).split())

    def failures(**changes: Any) -> set[str]:
        changed = dataclasses.replace(certificate, **changes)
        return {check.claim for check in verify_certificate(changed) if not check.holds}

    sensitivity, error = Fraction(certificate.sensitivity), Fraction(certificate.loss_error)
    fine = calibrate(Fraction(1), sensitivity, error).eta  # a reserve of 2^-40 nats a unit
    assert "eta" in failures(eta=fine)
    assert "eta" in failures(unit=-40)
    assert "eta" in failures(unit=-20)
    assert failures(unit=-41) == failures(unit=0) == failures(unit=None) == {"unit"}


class Cancelling:
    """``|y_1 - 0.3| + K`` and ``|y_2 - 0.7| - K``, whose sum does not depend on K."""

    loss_error = Fraction(1, 1 << 20)

    def __init__(self, constant: float) -> None:
        self.center, self.shift = np.array([0.3, 0.7]), np.array([constant, -constant])
        self.growth = em.Growth(center=self.center, rates=np.ones(2), slack=constant)

    def terms(self, coordinates: Any, values: Any) -> Any:
        return np.abs(values - self.center[coordinates]) + self.shift[coordinates]

    def __call__(self, y: Any) -> Any:
        return np.abs(y - self.center).sum(axis=1)


def test_separable_says_where_terms_that_cancel_would_not() -> None:
    box = em.Box([0.0, 0.0], [1.0, 1.0], bits=4)
    laws, limits = [], []
    for constant in (0.0, 2.0**16, 2.0**20):
        mechanism = em.ExponentialMechanism(
            loss=Cancelling(constant), sensitivity=1, domain=box, bound=2.0
        )
        certificate = mechanism.certificate(epsilon=4.0, sampler=em.Separable())
        (text,) = [one for one in certificate.assumptions if "would no longer cancel" in one]
        limits.append(float(text.split("within ")[1].split(" of 0")[0]))
        chain, target = prepared(mechanism, em.Separable(), epsilon=4.0)
        energies = chain.energy(np.zeros(16, dtype=np.int64), np.arange(16))
        laws.append(np.exp(-(energies - energies.min()) / target.units_per_nat))
    # 2^20 nats over two coordinates and eta = 2: the second data set is within, the third is not
    assert limits == [pytest.approx(2.0**18, rel=1e-4)] * 3
    assert limits[0] < 2.0**18
    assert np.abs(np.log(laws[1] / laws[0])).max() < 1e-6
    assert (laws[2] == 1.0).all()
    assert math.log(laws[0].min()) < -1.0
