"""The ridge loss.

Privacy by enumeration, sensitivity, accuracy against exact arithmetic, and what it refuses.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import exact_law

import expmech as em
from expmech.auditing.enumeration import largest_log_ratio
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.domains import Domain


def ridge(values: Any, **options: Any) -> em.losses.RidgeGradient:
    table = np.array(values, dtype=np.float64)
    return em.losses.RidgeGradient(table[:, :-1], table[:, -1], penalty=0.5, radius=1.0, **options)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_ridge_is_private_on_all_neighbouring_pairs(norm: str) -> None:
    rows = list(itertools.product((-1.0, 1.0), (-0.5, 1.0), (-1.0, 1.0)))
    domain = em.L1Ball(2, 1.0, bits=2)
    laws = []
    for row in rows:
        mechanism = em.ExponentialMechanism(
            loss=ridge([(0.3, 1.0, 0.2), row], norm=norm), domain=domain
        )
        laws.append(exact_law(mechanism.target(epsilon=1.0)))
    worst = max(largest_log_ratio(one, other) for one, other in itertools.combinations(laws, 2))
    assert 0.1 < worst <= 1.0


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_ridge_is_private_when_a_row_is_added_or_removed(norm: str) -> None:
    rows = list(itertools.product((-1.0, 1.0), (-0.5, 1.0), (-1.0, 1.0)))
    domain = em.L1Ball(2, 1.0, bits=2)

    def law(table: list[tuple[float, ...]]) -> dict[Hashable, float]:
        loss = ridge(table, norm=norm, adjacency="add-remove")
        mechanism = em.ExponentialMechanism(loss=loss, domain=domain, adjacency="add-remove")
        return exact_law(mechanism.target(epsilon=1.0))

    kept: list[tuple[float, ...]] = [(0.3, 1.0, 0.2)]
    without = law(kept)
    assert 0.1 < max(largest_log_ratio(without, law([*kept, row])) for row in rows) <= 1.0


def largest_change(p: int, radius: float, norm: str) -> float:
    """Search all pairs of rows for the largest change of the gradient, y at a corner of the ball.

    The norm of the change is convex in everything but the first feature, on a fine grid here.
    """
    firsts = np.linspace(-1.0, 1.0, 81)
    signs = itertools.product((-1.0, 1.0), repeat=p)  # of the other features, and of the response
    rows = np.array([(first, *rest) for rest in signs for first in firsts])
    gradients = rows[:, :-1] * (radius * rows[:, :1] - rows[:, -1:])
    order = 1 if norm == "l1" else np.inf
    return max(float(np.linalg.norm(gradients - one, ord=order, axis=1).max()) for one in gradients)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("radius", [0.25, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_ridge_sensitivity_is_the_largest_change_that_a_search_finds(
    p: int, radius: float, norm: str
) -> None:
    options = {"penalty": 0.5, "radius": radius, "norm": norm}
    loss = em.losses.RidgeGradient(np.zeros((2, p)), np.zeros(2), **options)  # type: ignore[arg-type]
    found = largest_change(p, radius, norm)
    assert float(loss.sensitivity) == pytest.approx(found, rel=1e-12)  # the grid holds the maximum
    one = em.losses.RidgeGradient(
        np.zeros((2, p)),
        np.zeros(2),
        adjacency="add-remove",
        **options,  # type: ignore[arg-type]
    )
    assert one.sensitivity == (1 + Fraction(radius)) * (p if norm == "l1" else 1)


def test_ridge_sensitivity_in_the_papers_example_is_sixteen_and_the_loss_moves_by_it() -> None:
    assert [float(ridge(np.zeros((2, p + 1)), norm="l1").sensitivity) for p in (1, 2, 5)] == [
        2.25,
        5.0,
        16.0,
    ]
    corner = np.array([[1.0, 0.0, 0.0, 0.0, 0.0]])
    others = [(0.0, 1.0, 0.0, 0.0, 0.0, -1.0)] * 40  # they make every entry of the gradient large
    others += [(*np.eye(5)[j], -1.0) for j in (0, 2, 3, 4) for _ in range(40)]
    losses = [
        float(ridge([*others, row], norm="l1")(corner)[0])
        for row in ((-1.0, -1.0, -1.0, -1.0, -1.0, 1.0), (-1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    ]
    assert max(losses) - min(losses) == 16.0


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_ridge_loss_is_within_its_error_of_exact_arithmetic(norm: str, adjacency: str) -> None:
    generator = np.random.default_rng(7)
    table = generator.uniform(-1.2, 1.2, size=(200, 4))
    loss, domain = ridge(table, norm=norm, adjacency=adjacency), em.L1Ball(3, 1.0)
    snapped = [
        [Fraction(int(k), 1 << 20) for k in row] for row in np.rint(np.clip(table, -1, 1) * 2.0**20)
    ]
    points = domain.points(domain.draw_uniform(Coins(seeded_bits(1)), 20))
    for point, value in zip(points.tolist(), loss(points).tolist(), strict=True):
        y = [Fraction(one) for one in point]
        residuals = [
            sum((a * b for a, b in zip(row[:3], y, strict=True)), -row[3]) for row in snapped
        ]
        entries = [
            abs(sum(r * row[j] for r, row in zip(residuals, snapped, strict=True)) + y[j] / 2)
            for j in range(3)
        ]
        true = sum(entries) if norm == "l1" else max(entries)
        assert abs(Fraction(value) - true) <= loss.loss_error(domain)
        assert true <= loss.bound(domain)
    assert loss.loss_error(domain) <= loss.sensitivity / 10_000


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_ridge_loss_depends_neither_on_row_order_nor_on_the_batch(norm: str) -> None:
    table = np.random.default_rng(3).uniform(-1.0, 1.0, size=(9000, 6))
    loss, again = ridge(table, norm=norm), ridge(table[::-1], norm=norm)
    domain = em.L1Ball(5, 1.0)
    points = domain.points(domain.draw_uniform(Coins(seeded_bits(1)), 50))
    assert np.array_equal(loss(points), again(points))
    assert np.array_equal(
        loss(points), np.concatenate([loss(points[j : j + 1]) for j in range(50)])
    )
    em.ExponentialMechanism(loss=loss, domain=domain)._problem.check_repeatable()


def test_ridge_from_moments_is_the_same_loss() -> None:
    whole = np.random.default_rng(3).integers(-(1 << 10), (1 << 10) + 1, size=(300, 4))
    table, objects = whole / 2.0**10, whole.astype(object)
    products = objects.T @ objects
    made = em.losses.RidgeGradient.from_moments(
        count=300,
        gram=products[:3, :3].tolist(),
        moment=products[:3, 3].tolist(),
        scale=1 << 10,
        penalty=0.5,
        radius=1.0,
    )
    points = np.random.default_rng(4).uniform(-0.3, 0.3, size=(40, 3))
    assert np.array_equal(made(points), ridge(table)(points))
    assert made.sensitivity == ridge(table).sensitivity


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"gram": [[5, 1], [2, 5]]}, "symmetric"),
        ({"gram": [[50, 1], [1, 5]]}, "within"),
        ({"gram": [[5, 1]]}, "square"),
        ({"moment": [99, 0]}, "`moment`"),
        ({"count": 0}, "at least one"),
        ({"penalty": 0.0}, "`penalty`"),
        ({"norm": "l2"}, "`norm`"),
        ({"adjacency": "swap"}, "`adjacency`"),
        ({"radius": -1.0}, "`radius`"),
    ],
)
def test_ridge_refuses_what_cannot_be(change: dict[str, Any], text: str) -> None:
    good: dict[str, Any] = {
        "count": 5,
        "gram": [[5, 1], [1, 5]],
        "moment": [1, 0],
        "scale": 1,
        "penalty": 1.0,
        "radius": 1.0,
    }
    if change.get("count") == 0:
        change = {"count": 0, "gram": [[0, 0], [0, 0]], "moment": [0, 0]}
    with pytest.raises(em.ParameterError, match=text):
        em.losses.RidgeGradient.from_moments(**(good | change))


@pytest.mark.parametrize(
    "domain",
    [
        em.Box([-1.0, -1.0], [1.0, 1.0]),
        em.L2Ball(2, 1.0),
        em.L1Ball(2, 1.01),
        em.L1Ball(3, 1.0),
        em.Candidates(["a", "b"]),
    ],
)
def test_ridge_refuses_a_domain_beyond_its_radius(domain: Domain) -> None:
    with pytest.raises(em.ParameterError, match="RidgeGradient must be"):
        em.ExponentialMechanism(loss=ridge([(0.1, 0.2, 0.3)]), domain=domain)
