"""Neighbours of a principal direction: the exact densities by quadrature, both adjacencies."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from expmech.core.adjacency import Adjacency
from expmech.mechanisms.directions.principal_direction import PrincipalDirection
from expmech.mechanisms.directions.rows import row_products
from expmech.tables.arrays import ArrayRows
from expmech.tables.statistics import PrincipalComponents

Table = tuple[tuple[float, ...], ...]


def eta_of(epsilon: float, adjacency: str, d: int) -> float:
    """Return the eta that a certificate states: the code as shipped."""
    mechanism = PrincipalDirection.from_rows(np.eye(d), adjacency=adjacency)
    return mechanism.certificate(epsilon=epsilon).eta


@functools.cache
def matrix(rows: Table, d: int) -> NDArray[np.float64]:
    return row_products(np.array(rows).reshape(-1, d)).astype(np.float64) * 2.0**-40


@functools.cache
def mass_of(rows: Table, d: int, eta: float) -> float:
    return log_mass(eta * matrix(rows, d))


def log_mass(energy: NDArray[np.float64]) -> float:
    """Return the log of the mean of exp(v'Ev) over the sphere, by its eigenvalues.

    In the plane by the trapezoidal rule, which converges geometrically; in space by Gauss in the
    height and the trapezoidal rule in the angle.
    """
    values = np.linalg.eigvalsh(energy)
    angles = np.arange(120) * (math.pi / 120)
    top = values[-1]
    if len(values) == 2:
        heights = values[0] * np.sin(angles) ** 2 + top * np.cos(angles) ** 2
        return float(top + np.log(np.exp(heights - top).mean()))
    z, weights = np.polynomial.legendre.leggauss(60)
    flat = values[0] * np.cos(angles) ** 2 + values[1] * np.sin(angles) ** 2
    heights = top * z[:, None] ** 2 + (1.0 - z[:, None] ** 2) * flat
    return float(top + np.log((np.exp(heights - top).mean(axis=1) * weights / 2.0).sum()))


def largest_log_ratio(here: Table, there: Table, d: int, eta: float) -> float:
    """Return the supremum over directions of |log f - log f'|, which eigenvalues attain."""
    spectrum = eta * np.linalg.eigvalsh(matrix(here, d) - matrix(there, d))
    shift = mass_of(here, d, eta) - mass_of(there, d, eta)
    return float(max(spectrum[-1] - shift, shift - spectrum[0]))


def row_choices(d: int) -> list[tuple[float, ...]]:
    plane = [(math.cos(t), math.sin(t)) for t in (0.0, 0.7, math.pi / 2, 2.2)]
    if d == 2:
        return [(0.0, 0.0), (0.5, 0.3), *plane]
    return [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.6, 0.8), (0.5, 0.5, 0.7)]


def worst(d: int, epsilon: float, adjacency: str, eta: float) -> float:
    """Return the largest log ratio over all neighbours of small data sets, repeated rows too."""
    choices = row_choices(d)
    found = 0.0
    for base in itertools.combinations_with_replacement(choices, 2):
        for copies in (0, 1, 12):
            rest: Table = base * copies
            if adjacency == "replace":
                pairs = [((*rest, x), (*rest, y)) for x, y in itertools.permutations(choices, 2)]
            else:
                pairs = [((*rest, x), rest) for x in choices]
            for here, there in pairs:
                found = max(found, largest_log_ratio(here, there, d, eta))
    assert epsilon > 0.0
    return found


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_neighbours_differ_by_at_most_epsilon(d: int, adjacency: str, epsilon: float) -> None:
    eta = eta_of(epsilon, adjacency, d)
    found = worst(d, epsilon, adjacency, eta)
    assert 0.5 * epsilon < found <= epsilon + 1e-9
    assert worst(d, epsilon, adjacency, 2.0 * eta) > epsilon  # a mutant: twice the concentration


def test_epsilon_is_nearly_reached_so_no_larger_eta_would_do() -> None:
    epsilon = 1.0
    eta = eta_of(epsilon, "replace", 2)
    many = ((0.0, 1.0),) * 400
    here, there = (*many, (1.0, 0.0)), (*many, (0.0, 1.0))
    assert 0.98 * epsilon < largest_log_ratio(here, there, 2, eta) <= epsilon
    eta = eta_of(epsilon, "add-remove", 2)
    assert 0.98 * epsilon < largest_log_ratio(here, many, 2, eta) <= epsilon


def test_ratio_is_largest_at_an_eigenvector() -> None:
    rows = ((0.6, 0.8), (1.0, 0.0), (0.3, 0.1))
    others = (*rows[:2], (-0.5, 0.8))
    here, there = matrix(rows, 2), matrix(others, 2)

    def ratio(angle: float) -> float:
        v = np.array([math.cos(angle), math.sin(angle)])
        shift = log_mass(here) - log_mass(there)
        return -abs(float(v @ (here - there) @ v) - shift)

    best = min(
        optimize.minimize_scalar(ratio, bounds=(k, k + 0.5), method="bounded").fun
        for k in np.arange(0.0, 3.5, 0.5)
    )
    assert -best == pytest.approx(largest_log_ratio(rows, others, 2, 1.0), abs=1e-9)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_shares_of_several_components_add_up(adjacency: str) -> None:
    rows = np.eye(4)
    for k in (1, 2, 3, 4):
        mechanism = PrincipalDirection.from_rows(
            rows, n_components=k, variances=True, adjacency=adjacency
        )
        terms = mechanism.terms(Fraction(7, 5))
        spent = k * terms.eta * terms.sensitivity + terms.variance_epsilon
        assert Fraction(7, 5) * (1 - Fraction(1, 1 << 19)) <= spent <= Fraction(7, 5)


@pytest.mark.filterwarnings("error")  # a warning would tell of a row
@pytest.mark.parametrize("row_norm", [None, 0.3, 1e100])
@pytest.mark.parametrize("bounds", [(-5.0, 7.0), (-1e119, 1e119), (-1e-100, 1e-100)])
def test_a_row_of_any_content_adds_its_own_products_and_no_more(
    row_norm: float | None, bounds: tuple[float, float]
) -> None:
    asked = PrincipalComponents(
        columns=(0, 1, 2),
        bounds=(bounds,) * 3,
        adjacency=Adjacency.ADD_REMOVE,
        center=(0.5, 0.0, -1e-9),
        row_norm=row_norm,
    ).aggregation(Fraction(1))

    def products(rows: NDArray[np.float64]) -> NDArray[np.object_]:
        return np.array(ArrayRows(numbers=rows).aggregate(asked).products, dtype=object)

    base = np.random.default_rng(7).normal(size=(20, 3)) * 3.0
    numbers = [0.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 0.1]
    for odd in itertools.product(numbers, repeat=3):
        row = np.array([odd])
        own = products(row)
        assert (products(np.vstack([base, row])) - products(base) == own).all(), odd
        assert 0 <= np.trace(own) <= 1 << 40, odd
