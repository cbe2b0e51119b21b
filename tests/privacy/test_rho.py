"""What each kind of release costs in rho, against Renyi divergences computed from laws.

The laws here are written down, not taken from the package; orders go from 1 to hundreds.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from numpy.typing import NDArray
from scipy import special

import expmech as em
from expmech.interop import dp_accounting as bridge
from expmech.ledger import Entry, Ledger, entries
from expmech.ledger.verification import rho_of
from expmech.mechanisms.noisy_sums import Counts
from expmech.theory.concentrated import (
    BOUNDED_RANGE,
    PURE,
    epsilon_from_rho,
    rho_of_bounded_range,
    rho_of_discrete_laplace,
    rho_of_pure,
)

Law = NDArray[np.float64]
ORDERS: list[float] = [1.0 + 2.0 ** (k / 2) for k in range(-20, 20)]
EPSILONS = [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0]


def divergence(log_p: Law, log_q: Law, order: float) -> float:
    """Return the Renyi divergence of two laws given by logarithms."""
    sums = special.logsumexp(order * log_p - (order - 1.0) * log_q)
    return float(sums) / (order - 1.0)


def rate(log_p: Law, log_q: Law) -> float:
    """Return the largest divergence over its order: the least rho."""
    return max(divergence(log_p, log_q, order) / order for order in ORDERS)


def two_points(losses: tuple[float, float]) -> tuple[Law, Law]:
    """Return the logarithms of two laws on two points with these log ratios."""
    high, low = losses
    top = -math.expm1(low) / (math.exp(high) - math.exp(low))
    log_q = np.log([top, 1.0 - top])
    return log_q + np.array([high, low]), log_q


def laplace(rate_of_noise: float, steps: int) -> tuple[Law, Law]:
    far = int(40.0 / rate_of_noise) + 2 * steps + 2
    points = np.arange(-far, far + 1)
    log_p, log_q = (-rate_of_noise * np.abs(points - where) for where in (0, steps))
    return log_p - special.logsumexp(log_p), log_q - special.logsumexp(log_q)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_pure_release_costs_what_randomised_response_does(epsilon: float) -> None:
    own = float(rho_of_pure(Fraction(str(epsilon))))
    assert 0.99 * own <= rate(*two_points((epsilon, -epsilon))) <= own * (1 + 1e-9)
    for high, low in itertools.product(np.linspace(0.05, 1.0, 12) * epsilon, repeat=2):
        assert rate(*two_points((high, -low))) <= own * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_bounded_range_costs_the_worst_of_its_two_point_laws(epsilon: float) -> None:
    own = float(rho_of_bounded_range(Fraction(str(epsilon))))
    shifts = np.linspace(0.005, 0.995, 199) * epsilon
    worst = max(rate(*two_points((high, high - epsilon))) for high in shifts)
    assert 0.99 * own <= worst <= own * (1 + 1e-9)


@pytest.mark.parametrize("steps", [1, 2, 3, 16])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_discrete_laplace_noise_costs_what_its_law_does(epsilon: float, steps: int) -> None:
    own = float(rho_of_discrete_laplace(Fraction(str(epsilon)), steps))
    found = rate(*laplace(epsilon / steps, steps))
    assert 0.99 * own <= found <= own * (1 + 1e-9)
    for fewer in range(1, steps):  # less of a change costs less
        assert rate(*laplace(epsilon / steps, fewer)) <= own


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_sums_that_each_take_a_share_cost_their_parts(epsilon: float) -> None:
    """Neighbours of the shipped laws: a histogram under replace, and means of several columns."""
    size = Fraction(str(epsilon))
    cells = em.NoisySums(totals=[3, 5], interpretation=Counts(size=2, disjoint=True, count=8))
    own = float(rho_of(cells.certificate(epsilon=epsilon), size))
    found = [2.0 * divergence(*laplace(epsilon / 2, 1), order) / order for order in ORDERS]
    assert 0.99 * own <= max(found) <= own * (1 + 1e-9)
    assert own == pytest.approx(epsilon * math.tanh(epsilon / 4), rel=1e-12)
    means = em.NoisyMean.from_rows(np.full((4, 3), 0.5), lower=[0.0] * 3, upper=[1.0] * 3)
    third = rho_of_discrete_laplace(size / 3, 1 << means.bits)
    cube = means.certificate(epsilon=epsilon)
    assert cube.sampler["noise"] == "cube"
    assert rho_of(cube, size) == rho_of_pure(size)  # of this noise no less is proved
    shares = dataclasses.replace(cube, sampler=cube.sampler | {"noise": "discrete Laplace"})
    assert rho_of(shares, size) == 3 * third


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-9", "0.001", "1/3", "7", "1e5"])
def test_costs_are_rounded_up_and_never_above_the_squares(epsilon: str) -> None:
    size = Fraction(epsilon)
    for cost, factor in (
        (rho_of_pure, PURE),
        (rho_of_bounded_range, BOUNDED_RANGE),
        (lambda e: rho_of_discrete_laplace(e, 3), PURE),
    ):
        rho = cost(size)
        assert 0 < rho <= factor * size**2
        assert len(str(rho.numerator)) <= 24 or rho == factor * size**2
        if size <= Fraction(1, 1000):  # the next terms are of order epsilon to the fourth, or third
            assert rho >= factor * size**2 * (1 - size)


def test_costs_are_never_above_what_dp_accounting_finds() -> None:
    orders = [*ORDERS]
    for epsilon in (0.1, 1.0, 3.0):
        # continuous Laplace noise is the limit of many steps
        accountant = rdp.RdpAccountant(orders)
        accountant.compose(dp_accounting.LaplaceDpEvent(1.0 / epsilon))
        theirs = max(accountant._rdp / np.array(orders))
        own = float(rho_of_discrete_laplace(Fraction(str(epsilon)), 1 << 20))
        assert 0.99 * theirs <= own <= 1.01 * theirs


def medians(epsilon: float, adjacency: str) -> em.Certificate:
    loss = em.losses.Quantile([0.1, 0.5, 0.7], q=0.5, lower=0.0, upper=1.0, adjacency=adjacency)
    domain = em.Box([0.0], [1.0], bits=8)
    mechanism = em.ExponentialMechanism(loss=loss, domain=domain, adjacency=adjacency)
    return mechanism.certificate(epsilon=epsilon)


def compose(certificate: em.Certificate, count: int) -> float:
    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = rdp.RdpAccountant(ORDERS, relation)
    accountant.compose(bridge.event(certificate), count)
    return float(accountant.get_epsilon(1e-6))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_events_of_bounded_range_cost_a_quarter(adjacency: str) -> None:
    certificate = medians(0.1, adjacency)
    event = bridge.event(certificate)
    assert isinstance(event, dp_accounting.ZCDpEvent)
    assert event.rho == pytest.approx(float(rho_of_bounded_range(Fraction(1, 10))), rel=1e-9)
    if adjacency == "add-remove":
        assert compose(certificate, 50) < 1.7


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_privacy_loss_distribution_dominates_bounded_range_and_is_no_larger(
    epsilon: float,
) -> None:
    """At every epsilon of the curve the worst two-point law attains it."""
    found = bridge.privacy_loss_distribution(medians(epsilon, "add-remove"))
    for share in (-0.5, 0.0, 0.3, 0.8, 0.99):
        at = share * epsilon
        worst = 0.0
        for high in np.linspace(1e-3, 0.999, 400) * epsilon:
            log_p, log_q = two_points((high, high - epsilon))
            worst = max(worst, float(np.maximum(np.exp(log_p) - np.exp(at + log_q), 0.0).sum()))
        ours = float(found.get_delta_for_epsilon(at))
        assert worst - 1e-12 <= ours <= worst + 2e-4
    assert found.get_delta_for_epsilon(epsilon + 2e-4) == 0.0


def test_few_releases_cost_less_by_their_distribution_than_by_rho_and_by_adding_up() -> None:
    certificate = medians(0.1, "replace")
    ten = bridge.privacy_loss_distribution(certificate).self_compose(10)
    by_rho = epsilon_from_rho(10 * rho_of_bounded_range(Fraction(1, 10)), Fraction(1, 10**6))
    assert ten.get_epsilon_for_delta(1e-6) < float(by_rho) < 1.0


def test_rounds_that_are_cheap_are_not_taken_for_a_bounded_range() -> None:
    """Ten rounds cost less rho than one joint draw, and one release of theirs is pure."""
    peeling = em.TopK.from_counts([9, 5, 3, 1], k=3, objective="mean").certificate(epsilon=1.0)
    assert rho_of(peeling, Fraction(1)) < 2 * rho_of_bounded_range(Fraction(1))
    found = bridge.privacy_loss_distribution(peeling)
    response = 1.0 / (1.0 + math.exp(-1.0))
    assert found.get_delta_for_epsilon(0.0) == pytest.approx(2 * response - 1.0, abs=1e-3)


def flip(scores: tuple[int, ...]) -> em.Certificate:
    return em.PermuteAndFlip.from_scores(scores, sensitivity=1).certificate(epsilon=1.0)


def test_permute_and_flip_has_events_of_a_pure_release() -> None:
    event = bridge.event(flip((1, 2)))
    assert isinstance(event, dp_accounting.RandomizedResponseDpEvent)
    found = bridge.privacy_loss_distribution(flip((1, 2)))
    assert found.get_epsilon_for_delta(1e-12) == pytest.approx(1.0, abs=2e-4)


def composed(folder: Path, **options: Any) -> Ledger:
    told = {"data_set": "survey", "epsilon": "2", "delta": "1e-6"} | options
    return Ledger.create(folder / "composed.ledger", **told)


def test_what_is_left_inverts_what_is_charged(tmp_path: Path) -> None:
    ledger = composed(tmp_path)
    ledger.charge(epsilon="0.4", statement="a mean")
    millionth = Fraction(1, 10**6)
    spent = ledger.history()[0].amount
    for cost in (rho_of_pure, rho_of_bounded_range):
        left = ledger.limits.left(spent, cost)[0]
        rest = ledger.limits.rho - spent.rho
        assert cost(left) <= rest < cost(left + millionth) or left == 2 - spent.epsilon
    left = ledger.left[0]
    ledger.require_all([Entry(epsilon=left)])


def test_an_earlier_ledger_keeps_what_it_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charges made at epsilon^2 / 8 stay at that; new ones cost less, and none is recomputed."""
    ledger = composed(tmp_path)
    written = medians(0.1, "replace").to_json()
    with monkeypatch.context() as earlier_version:
        earlier_version.setattr(entries, "rho_of", lambda _, epsilon: BOUNDED_RANGE * epsilon**2)
        ledger.charge(epsilon="0.1", certificate=written, statement="then")
    earlier = Ledger(ledger.path)
    assert earlier.history()[0].rho == Fraction(1, 800)
    assert earlier.spent[0] == Fraction(1, 10)
    earlier.charge(epsilon="0.1", certificate=written, statement="now")
    then, now = (charge.rho for charge in earlier.history())
    assert then == Fraction(1, 800) > now == rho_of_bounded_range(Fraction(1, 10))
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("SELECT rho FROM charges").fetchone() == ("1/800",)
    connection.close()
