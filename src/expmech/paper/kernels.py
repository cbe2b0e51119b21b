"""Transition matrices on a grid of the unit interval.

The yardstick against which bounds and laws are measured.

A grid of N cells stands for the continuum; what is reported is extrapolated over grids.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def grid_points(cells: int) -> Matrix:
    """Return the midpoints of ``cells`` equal cells of [0, 1]."""
    return np.asarray((np.arange(cells) + 0.5) / cells)


def laplace_law(cells: int, slope: float, mean: float) -> Matrix:
    """Return the cell probabilities of f(y) ~ exp(-slope |y - mean|)."""
    weights = np.exp(-slope * np.abs(grid_points(cells) - mean))
    return np.asarray(weights / weights.sum())


def laplace_proposals(cells: int, alpha: float, start: Matrix | None = None) -> Matrix:
    """Return the mass a Laplace(alpha) step from each ``start`` (the midpoints) puts on each cell.

    The rest falls outside.
    """
    points = grid_points(cells) if start is None else start
    away = np.arange(cells + 1) / cells - points[:, None]
    below = np.where(
        away < 0.0, 0.5 * np.exp(-alpha * np.abs(away)), 1.0 - 0.5 * np.exp(-alpha * np.abs(away))
    )
    return np.diff(below, axis=1)


def metropolis(proposals: Matrix, law: Matrix) -> Matrix:
    """Return the Metropolis kernel of a symmetric proposal; what is refused stays."""
    with np.errstate(divide="ignore", over="ignore"):
        accept = np.minimum(1.0, np.exp(np.log(law)[None, :] - np.log(law)[:, None]))
    return stay_with_the_rest(proposals * accept)


def stay_with_the_rest(moves: Matrix) -> Matrix:
    """Return ``moves`` with the diagonal filled so that every row sums to one."""
    kernel = moves.copy()
    np.fill_diagonal(kernel, 0.0)
    kernel[np.diag_indices(len(kernel))] = 1.0 - kernel.sum(axis=1)
    return kernel


def worst_distance(kernel: Matrix, law: Matrix) -> float:
    """Return the largest total variation between a row of ``kernel`` and ``law``."""
    return float(0.5 * np.abs(kernel - law).sum(axis=1).max())


def distances(kernel: Matrix, law: Matrix, steps: list[int]) -> list[float]:
    """Return the worst total variation after each of the increasing numbers of ``steps``."""
    distances, power, reached = [], np.eye(len(kernel)), 0
    for target in steps:
        power, reached = power @ np.linalg.matrix_power(kernel, target - reached), target
        distances.append(worst_distance(power, law))
    return distances


def decay_rate(kernel: Matrix, law: Matrix) -> float:
    """Return ``-log`` of the second largest eigenvalue modulus.

    The rate at which total variation falls in the end.
    """
    root = np.sqrt(law)
    symmetric = root[:, None] * kernel / root[None, :]
    eigenvalues = np.sort(np.abs(np.linalg.eigvalsh((symmetric + symmetric.T) / 2.0)))
    return float(-np.log(eigenvalues[-2]))


def printed_kernel(
    cells: int, slope: float, mean: float, alpha: float, k: float, *, atom_density: str = "sum"
) -> Matrix:
    """Return the paper's kernel on the grid plus the atom (last state), as printed.

    No Hastings factor.

    ``atom_density`` chooses between the two readings of the density at the atom: "sum" is (1-k)
    f(a) + k, "k" is k.
    """
    law = laplace_law(cells, slope, mean)
    density, points = law * cells, grid_points(cells)
    at_answer = 1.0 / float(np.exp(-slope * np.abs(points - mean)).mean())
    atom = (1.0 - k) * at_answer + k if atom_density == "sum" else k
    kernel = np.zeros((cells + 1, cells + 1))
    kernel[:cells, :cells] = (
        0.5 * laplace_proposals(cells, alpha) * np.minimum(1.0, density[None, :] / density[:, None])
    )
    kernel[:cells, cells] = 0.5 * np.minimum(1.0, atom / ((1.0 - k) * density))
    from_atom = laplace_proposals(cells, alpha, np.array([mean]))[0]
    kernel[cells, :cells] = 0.5 * from_atom * np.minimum(1.0, (1.0 - k) * density / atom)
    return stay_with_the_rest(kernel)


def stationary_law(kernel: Matrix) -> Matrix:
    """Return the invariant law of an irreducible kernel."""
    system = kernel.T - np.eye(len(kernel))
    system[-1] = 1.0
    right = np.zeros(len(kernel))
    right[-1] = 1.0
    return np.asarray(np.linalg.solve(system, right))


def released_law(kernel: Matrix) -> Matrix:
    """Return the invariant law given that the chain is not at the atom, the last state.

    What ConfAtomPerfect releases.
    """
    law = stationary_law(kernel)[:-1]
    return np.asarray(law / law.sum())


def largest_ratio(laws: list[Matrix]) -> float:
    """Return the largest |log ratio| between consecutive laws.

    The epsilon an auditor of these data sets would see.
    """
    return max(float(np.abs(np.log(first / second)).max()) for first, second in pairwise(laws))


def extrapolate(coarse: float, fine: float) -> float:
    """Return the limit of a quantity whose error halves when the cells do."""
    return 2.0 * fine - coarse
