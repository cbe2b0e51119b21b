"""The logistic loss.

Privacy on every pair of neighbouring tiny data sets, and the range its sensitivity rests on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import exact_law, grown

import expmech as em
from expmech.auditing.enumeration import largest_log_ratio

ROWS = [(-1.0, 1), (1.0, 0), (0.5, 1), (1.0, 1), (3.0, 1)]
RADIUS = 2.0


def law(rows: Any, adjacency: str, *, epsilon: float, sensitivity: float | None = None) -> Any:
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    loss = em.losses.LogisticRisk(
        table[:, :1], table[:, 1], penalty=0.25, radius=RADIUS, adjacency=adjacency
    )
    if sensitivity is not None:
        loss.sensitivity = Fraction(sensitivity)
    mechanism = em.ExponentialMechanism(
        loss=loss, domain=em.L2Ball(1, RADIUS, bits=5), adjacency=adjacency
    )
    return exact_law(mechanism.target(epsilon=epsilon))


def pairs(adjacency: str) -> Iterator[tuple[Any, Any]]:
    return grown(itertools.combinations_with_replacement(ROWS, 2), ROWS, adjacency)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_logistic_risk_is_private_on_all_neighbouring_pairs(adjacency: str, epsilon: float) -> None:
    ratios = [
        largest_log_ratio(
            law(one, adjacency, epsilon=epsilon), law(other, adjacency, epsilon=epsilon)
        )
        for one, other in pairs(adjacency)
    ]
    worst = max(ratios)
    assert 0.3 * epsilon < worst <= epsilon


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_third_of_the_sensitivity_is_not_private(adjacency: str) -> None:
    wrong = RADIUS / (3.0 if adjacency == "replace" else 6.0)
    found = (
        (law(rows, adjacency, epsilon=0.5, sensitivity=wrong) for rows in pair)
        for pair in pairs(adjacency)
    )
    assert any(largest_log_ratio(*laws) > 0.5 for laws in found)


def test_an_empty_data_set_is_a_neighbour_under_add_remove() -> None:
    empty = law([], "add-remove", epsilon=1.0)
    assert all(
        largest_log_ratio(empty, law([row], "add-remove", epsilon=1.0)) <= 1.0 for row in ROWS
    )


@pytest.mark.parametrize("radius", [0.3, 1.0, 10.0])
def test_terms_of_a_row_fill_exactly_the_range_that_the_sensitivity_states(radius: float) -> None:
    ends = np.array([[-radius], [radius]])

    def losses(rows: list[float], adjacency: str) -> Any:
        features = np.array(rows).reshape(-1, 1)
        return em.losses.LogisticRisk(
            features, [1] * len(rows), penalty=1.0, radius=radius, adjacency=adjacency
        )(ends)

    replaced = losses([1.0], "replace") - losses([-1.0], "replace")
    assert np.abs(replaced).max() == pytest.approx(radius, rel=1e-12)
    for row in (1.0, -1.0):
        added = losses([row], "add-remove") - losses([], "add-remove")
        assert np.abs(added) == pytest.approx(radius / 2.0, rel=1e-12)
