"""The law of a released axis by quadrature, in two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from expmech.mechanisms.directions.bingham import UNIT_LENGTH

Density = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def bingham(matrix: NDArray[np.float64]) -> Density:
    """Return ``v -> exp(v'Mv)`` for points of any length, divided by their length."""

    def density(points: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = np.einsum("...i,ij,...j->...", points, matrix, points)
        return np.asarray(np.exp(inside / (points**2).sum(axis=-1)))

    return density


def cell_masses(density: Density, d: int, cells: int, nodes: int = 12) -> NDArray[np.float64]:
    """Integrate over the cells of ratios v_i / v_j, j the coordinate of largest size.

    In gnomonic coordinates y = v / v_j the surface measure is ``|y|^-d dy``. Each of the d - 1
    ratios is cut into equal cells of [-1, 1]; Gauss-Legendre in every cell.
    """
    x, weight = np.polynomial.legendre.leggauss(nodes)
    width = 2.0 / cells
    points = (-1.0 + width * (np.arange(cells)[:, None] + 0.5 + x / 2.0)).ravel()
    weights = np.tile(weight * width / 2.0, cells)
    masses = []
    for j in range(d):
        grids = np.meshgrid(*[points] * (d - 1), indexing="ij")
        y = np.insert(np.stack(grids, axis=-1), j, 1.0, axis=-1)
        value = density(y) * (y**2).sum(axis=-1) ** (-d / 2.0)
        for axis in range(d - 1):
            shape = [1] * (d - 1)
            shape[axis] = -1
            value = value * weights.reshape(shape)
        value = value.reshape([cells, nodes] * (d - 1))
        masses.append(value.sum(axis=tuple(range(1, 2 * (d - 1), 2))).ravel())
    found = np.concatenate(masses)
    return np.asarray(found / found.sum())


def cell_counts(axes: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """Count released axes in the same cells."""
    d = axes.shape[1]
    largest = np.abs(axes).argmax(axis=1)
    rest = np.array([np.delete(axis, j) for axis, j in zip(axes, largest, strict=True)])
    place = np.minimum((rest + UNIT_LENGTH) * cells // (2 * UNIT_LENGTH), cells - 1)
    number = largest
    for column in place.T:
        number = number * cells + column
    return np.bincount(number, minlength=d * cells ** (d - 1))


def p_value(counts: NDArray[np.int64], masses: NDArray[np.float64]) -> float:
    """Chi-square of counts against masses; cells that expect fewer than 8 are pooled."""
    expected = masses * counts.sum()
    rare = expected < 8.0
    seen = np.append(counts[~rare], counts[rare].sum()).astype(np.float64)
    wanted = np.append(expected[~rare], expected[rare].sum())
    kept = wanted > 0.0
    statistic = ((seen[kept] - wanted[kept]) ** 2 / wanted[kept]).sum()
    return float(stats.chi2.sf(statistic, kept.sum() - 1))
