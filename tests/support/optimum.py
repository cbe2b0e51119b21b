"""Closed forms for perturbed optima: the law of the noise, of cells in one dimension, densities."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.mechanisms.optimum import OptimumTerms, RegressionRows
from expmech.mechanisms.optimum.cost import CLASS_NORM, EUCLIDEAN, MAX_NORM, SUM_NORM
from expmech.mechanisms.optimum.risks import Custom

Floats = NDArray[np.float64]


def custom_risk() -> Custom:
    """Return a risk of a caller's own: Huber's, with a threshold of a half."""
    return Custom(
        name="mine",
        derivative=lambda t, z: np.clip(t - z, -0.5, 0.5),
        curvature=lambda t, z: np.where(np.abs(t - z) < 0.5, 1.0, 0.0),
        ball=lambda t, z: t,
        bound=0.5,
        lipschitz=1.0,
        error=2.0**-50,
    )


def _margins(rows: RegressionRows, y: Floats) -> tuple[Floats, Floats]:
    """Return margins of all rows at all points, one below the other, and their targets."""
    margins = np.einsum("pkj,ij->pik", y, rows.matrix)
    return margins.reshape(-1, y.shape[1]), np.tile(rows.targets, len(y))


def field(rows: RegressionRows, terms: OptimumTerms, y: Floats) -> Floats:
    """Return ``G(y)``, shape (points, margins * columns), for points (points, margins, columns)."""
    penalties = np.array([float(one) for one in terms.penalties])
    slopes = terms.risk.derivative(*_margins(rows, y)).reshape(len(y), -1, y.shape[1])
    sums = np.einsum("pik,ij->pkj", slopes, rows.matrix)
    return np.asarray((sums + penalties * y).reshape(len(y), -1))


def log_determinant(rows: RegressionRows, terms: OptimumTerms, y: Floats) -> Floats:
    """Return ``log det DG(y)``."""
    d, k = terms.dimension, terms.risk.margins
    matrix = np.zeros((len(y), k * d, k * d))
    matrix += np.diag([float(one) for one in terms.penalties * k])
    for i, j, w in terms.risk.curvature(*_margins(rows, y)):
        weights = w.reshape(len(y), -1)
        block = np.einsum("pi,ia,ib->pab", weights, rows.matrix, rows.matrix)
        matrix[:, i * d : (i + 1) * d, j * d : (j + 1) * d] += block
        if i != j:
            matrix[:, j * d : (j + 1) * d, i * d : (i + 1) * d] += block
    return np.asarray(np.linalg.slogdet(matrix)[1])


def log_noise(terms: OptimumTerms, b: Floats) -> Floats:
    """Return the log density of the noise up to a constant, at rows b."""
    rate = float(terms.rate)
    if terms.noise == MAX_NORM:
        return np.asarray(-rate * np.abs(b).max(axis=1))
    if terms.noise == EUCLIDEAN:
        return np.asarray(-rate * np.sqrt((b**2).sum(axis=1)))
    if terms.noise == SUM_NORM:
        return np.asarray(-rate * np.abs(b).sum(axis=1))
    assert terms.noise == CLASS_NORM
    sums = np.abs(b.reshape(len(b), terms.risk.margins, terms.dimension)).sum(axis=1)
    return np.asarray(-rate * sums.max(axis=1))


def log_density(rows: RegressionRows, terms: OptimumTerms, y: Floats) -> Floats:
    """Return the log density of the real optimum, up to a constant that data do not enter."""
    return np.asarray(log_noise(terms, -field(rows, terms, y)) + log_determinant(rows, terms, y))


def noise_distribution(terms: OptimumTerms, x: Floats) -> Floats:
    """Return ``P(b <= x)`` where there is one coordinate: every norm gives the Laplace law."""
    rate = float(terms.rate)
    return np.where(
        x < 0, np.exp(rate * np.minimum(x, 0)) / 2, 1 - np.exp(-rate * np.maximum(x, 0)) / 2
    )


def cell_law(
    rows: RegressionRows, terms: OptimumTerms, bits: int, reach_bits: int
) -> dict[int, float]:
    """Return the law of the cell in one dimension: y <= t where -b <= G(t)."""
    most = 1 << (bits + reach_bits)
    edges = (np.arange(-most, most) + 0.5) / (1 << bits)
    levels = field(rows, terms, edges[:, None, None])[:, 0]
    below = np.concatenate([[0.0], noise_distribution(terms, levels), [1.0]])  # b is symmetric
    above = np.concatenate([[1.0], noise_distribution(terms, -levels), [0.0]])
    left, right = np.diff(below), -np.diff(above)
    masses = np.where(below[1:] < 0.5, left, right)  # differences of small numbers only
    return dict(zip(range(-most, most + 1), masses.tolist(), strict=True))


def grids(values: list[float], size: int) -> Iterator[tuple[Any, ...]]:
    """Return every data set of ``size`` rows (x, z), unordered, x in values and z = +-1."""
    every = list(itertools.product(values, (-1.0, 1.0)))
    return itertools.combinations_with_replacement(every, size)
