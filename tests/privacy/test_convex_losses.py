"""Losses that are sums of convex terms of rows.

Privacy on every pair of neighbouring tiny data sets, errors, and gradients that lie below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import exact_law, grown

import expmech as em
from benchmarks.cross_benchmark import Counted
from expmech.auditing.enumeration import largest_log_ratio
from expmech.ledger.verification import verify_certificate
from expmech.losses import GeometricMedian, HingeRisk, HuberRegression, QuantileRegression

RADIUS = 1.5
ROWS = [(-1.0, 1.0), (1.0, -1.0), (0.25, 1.0), (3.0, -2.0)]
Maker = Callable[[NDArray[np.float64], str], Any]
LOSSES: dict[str, Maker] = {
    "geometric median": lambda rows, adjacency: GeometricMedian(
        rows[:, :1], lower=[-RADIUS], upper=[RADIUS], adjacency=adjacency
    ),
    "least absolute deviations": lambda rows, adjacency: QuantileRegression(
        rows[:, :1], rows[:, 1], radius=RADIUS, adjacency=adjacency
    ),
    "quantile": lambda rows, adjacency: QuantileRegression(
        rows[:, :1], rows[:, 1], q=0.8, radius=RADIUS, adjacency=adjacency
    ),
    "Huber": lambda rows, adjacency: HuberRegression(
        rows[:, :1], rows[:, 1], threshold=0.5, radius=RADIUS, adjacency=adjacency
    ),
    "hinge": lambda rows, adjacency: HingeRisk(
        rows[:, :1], np.sign(rows[:, 1]), radius=RADIUS, adjacency=adjacency
    ),
}


def law(
    name: str, rows: Any, adjacency: str, *, epsilon: float, part: Fraction = Fraction(1)
) -> Any:
    loss = LOSSES[name](np.array(rows, dtype=np.float64).reshape(-1, 2), adjacency)
    loss.sensitivity *= part
    mechanism = em.ExponentialMechanism(
        loss=loss, domain=em.Box([-RADIUS], [RADIUS], bits=5), adjacency=adjacency
    )
    return exact_law(mechanism.target(epsilon=epsilon))


def pairs(adjacency: str) -> Iterator[tuple[Any, Any]]:
    return grown([(), *((row,) for row in ROWS)], ROWS, adjacency)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("name", LOSSES)
def test_convex_losses_are_private_on_all_neighbouring_pairs(name: str, adjacency: str) -> None:
    worst = part = 0.0
    for one, other in pairs(adjacency):
        laws = [law(name, rows, adjacency, epsilon=1.0) for rows in (one, other)]
        worst = max(worst, largest_log_ratio(*laws))
        wrong = [
            law(name, rows, adjacency, epsilon=1.0, part=Fraction(1, 3)) for rows in (one, other)
        ]
        part = max(part, largest_log_ratio(*wrong))
    assert 0.3 < worst <= 1.0
    assert part > 1.0  # a third of the sensitivity is not private


def many(name: str, p: int, n: int = 40) -> tuple[Any, NDArray[np.float64]]:
    generator = np.random.default_rng(p)
    rows, targets = generator.normal(size=(n, p)), generator.normal(size=n)
    made: dict[str, Any] = {
        "geometric median": lambda: GeometricMedian(rows, lower=[-1.0] * p, upper=[1.0] * p),
        "quantile": lambda: QuantileRegression(rows, targets, q=0.3, radius=2.0),
        "Huber": lambda: HuberRegression(rows, targets, threshold=0.7, radius=2.0),
        "hinge": lambda: HingeRisk(rows, targets > 0, radius=2.0),
    }
    return made[name](), generator.uniform(-0.9, 0.9, size=(30, p))


@pytest.mark.parametrize("name", ["geometric median", "quantile", "Huber", "hinge"])
@pytest.mark.parametrize("p", [1, 3])
def test_tangents_lie_below_and_neither_order_nor_batch_matter(name: str, p: int) -> None:
    loss, points = many(name, p)
    values, slopes = loss(points), loss.gradient(points)
    gaps = values[None, :] - values[:, None]
    gaps -= np.einsum("id,ijd->ij", slopes, points[None, :] - points[:, None])
    facts = loss.facts(em.Box([-1.0] * p, [1.0] * p))
    assert gaps.min() >= -2.0 * float(facts.loss_error) - p * loss.gradient_error
    assert 0.0 <= values.min() <= values.max() <= facts.bound
    assert np.array_equal(values, np.concatenate([loss(points[k : k + 1]) for k in range(30)]))
    assert np.abs(slopes).max() <= facts.lipschitz.max()


def test_the_geometric_median_errs_by_less_than_it_declares() -> None:
    loss, points = many("geometric median", 3)
    declared = loss.facts(em.Box([-1.0] * 3, [1.0] * 3)).loss_error
    with flint.ctx.workprec(200):
        for point, value in zip(points[:5].tolist(), loss(points[:5]).tolist(), strict=True):
            total = flint.arb(0)
            for row in loss._columns.T.tolist():
                squares = [
                    (flint.arb(a) - flint.arb(b)) ** 2 for a, b in zip(point, row, strict=True)
                ]
                total += sum(squares, flint.arb(0)).sqrt()
            assert abs(float(total - flint.arb(value))) <= float(declared)


def test_the_diagonal_is_rounded_up() -> None:
    loss = GeometricMedian(np.zeros((1, 2)), lower=[0.0, 0.0], upper=[1.0, 1.0])
    assert 0 < loss.sensitivity**2 - 2 < Fraction(1, 1 << 50)
    assert GeometricMedian(np.zeros((1, 2)), lower=[0, 0], upper=[3, 4]).sensitivity == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GeometricMedian([[np.nan]], lower=[0.0], upper=[1.0]), "must not hold nan"),
        (lambda: GeometricMedian([[0.0, 1.0]], lower=[0.0], upper=[1.0]), "1 columns"),
        (lambda: GeometricMedian([["a"]], lower=[0.0], upper=[1.0]), "array of numbers"),
        (lambda: GeometricMedian([[0.0]], lower=[1.0], upper=[1.0]), "must be below `upper`"),
        (lambda: QuantileRegression([[1.0]], [1.0, 2.0], radius=1.0), "one target per row"),
        (lambda: QuantileRegression([[1.0]], [np.nan], radius=1.0), "none of them nan"),
        (lambda: QuantileRegression(np.zeros((0, 1)), [], radius=1.0), "at least one"),
        (lambda: HingeRisk([[1.0]], [0.5], radius=1.0), "`labels` of HingeRisk"),
        (lambda: HingeRisk([[1.0]], [0, 1], radius=1.0), "one entry per row"),
        (lambda: HuberRegression([[1.0]], [1.0], threshold=0.0, radius=1.0), "`threshold`"),
    ],
)
def test_bad_rows_are_refused_with_one_clear_error(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(em.ExpmechError, match=message):
        make()


def test_a_domain_beyond_the_bounds_is_refused() -> None:
    median = GeometricMedian([[0.5]], lower=[0.0], upper=[1.0])
    with pytest.raises(em.ParameterError, match="must lie between"):
        em.ExponentialMechanism(loss=median, domain=em.Box([0.0], [1.5]))
    with pytest.raises(em.ParameterError, match="of dimension 1"):
        em.ExponentialMechanism(loss=median, domain=em.Box([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(em.ParameterError, match="`radius` of HingeRisk"):
        em.ExponentialMechanism(
            loss=HingeRisk([[1.0]], [1], radius=1.0), domain=em.Box([-2.0], [2.0])
        )


@pytest.mark.parametrize("p", [2, 4])
@pytest.mark.parametrize("name", ["geometric median", "quantile", "Huber"])
def test_auto_takes_the_cross_and_the_forecast_is_near(name: str, p: int) -> None:
    """Within a factor of 3 of the mean number of evaluations, loss and gradient alike."""
    evaluations = []
    for seed in range(6):
        loss, _ = many(name, p, n=400)
        counted = Counted(loss)
        mechanism = em.ExponentialMechanism(loss=counted, domain=em.Box([-1.0] * p, [1.0] * p))
        plan = mechanism.plan(epsilon=4.0)
        assert plan.chosen == "Rejection, cross"
        mechanism.sample(epsilon=4.0, size=1, seed=seed)
        evaluations.append(counted.points)
    assert plan.recommended is not None
    typical = plan.recommended.typical
    assert typical / 3.0 <= float(np.mean(evaluations)) <= 3.0 * typical
    certificate = mechanism.release(epsilon=4.0).certificate
    assert certificate.sampler["envelope"] == "cross"
    assert all(check.holds for check in verify_certificate(certificate))
    forged = dataclasses.replace(certificate, sampler=certificate.sampler | {"envelope": "none"})
    assert not all(check.holds for check in verify_certificate(forged))
