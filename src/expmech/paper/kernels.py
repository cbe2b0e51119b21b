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


def gibbs_law(loss: Matrix, slope: float) -> Matrix:
    """Return the probabilities ``~ exp(-slope loss)``."""
    weights = np.exp(-slope * loss)
    return np.asarray(weights / weights.sum())


def laplace_law(cells: int, slope: float, mean: float) -> Matrix:
    """Return the cell probabilities of f(y) ~ exp(-slope |y - mean|)."""
    return gibbs_law(np.abs(grid_points(cells) - mean), slope)


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


def hastings(proposals: Matrix, law: Matrix) -> Matrix:
    """Return the Metropolis-Hastings kernel of any proposal: with the ratio q(y', y) / q(y, y')."""
    flow = law[:, None] * proposals
    back = np.divide(flow.T, flow, out=np.zeros_like(flow), where=flow > 0.0)
    return stay_with_the_rest(proposals * np.minimum(1.0, back))


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
    cells: int, slope: float, mean: float, alpha: float, k: float, *, reading: str = "sum"
) -> Matrix:
    """Return the paper's kernel on the grid plus the atom (last state), as printed.

    No Hastings factor.

    ``reading`` chooses among three: "sum" has the density (1-k) f(a) + k at the atom, "k" has k;
    "measure" is "sum" with the proposal density q~ integrated against the mixed base measure nu~,
    as the proof writes it, so that a move has probability (1-k)/2 q and the atom k/2 (1 + q(y, a)).
    """
    law = laplace_law(cells, slope, mean)
    density, points = law * cells, grid_points(cells)
    at_answer = 1.0 / float(np.exp(-slope * np.abs(points - mean)).mean())
    atom = k if reading == "k" else (1.0 - k) * at_answer + k
    moves, to_atom = 0.5, np.full(cells, 0.5)
    if reading == "measure":
        moves = (1.0 - k) / 2.0
        to_atom = k / 2.0 * (1.0 + alpha / 2.0 * np.exp(-alpha * np.abs(points - mean)))
    kernel = np.zeros((cells + 1, cells + 1))
    accept = np.minimum(1.0, density[None, :] / density[:, None])
    kernel[:cells, :cells] = moves * laplace_proposals(cells, alpha) * accept
    kernel[:cells, cells] = to_atom * np.minimum(1.0, atom / ((1.0 - k) * density))
    from_atom = laplace_proposals(cells, alpha, np.array([mean]))[0]
    kernel[cells, :cells] = moves * from_atom * np.minimum(1.0, (1.0 - k) * density / atom)
    return stay_with_the_rest(kernel)


def corrected_kernel(moves: Matrix, law: Matrix, reentry: Matrix, k: float) -> Matrix:
    """Return the corrected atom chain on the grid plus the atom (last state), of share k.

    ``moves`` is any kernel that leaves ``law`` invariant, ``reentry`` the law of proposals out of
    the atom; what it puts outside the grid is refused.
    """
    cells, weight = len(law), k / (1.0 - k)
    kernel = np.zeros((cells + 1, cells + 1))
    kernel[:cells, :cells] = moves / 2.0
    kernel[:cells, cells] = np.minimum(1.0, weight * reentry / law) / 2.0
    kernel[cells, :cells] = np.minimum(reentry, law / weight) / 2.0
    return stay_with_the_rest(kernel)


def steps_and_loss(
    cells: int, slope: float, mean: float, alpha: float, k: float
) -> tuple[float, float, float]:
    """Return the correlation of outer steps and loss of Algorithm 2 on the printed kernel.

    Then the mean loss given 2 and given 40 outer steps. A draw that has not ended moves by the
    kernel without the share beta = k/2 of every step, but from the atom with it: an end there is a
    restart.
    """
    moving, beta = printed_kernel(cells, slope, mean, alpha, k), k / 2.0
    moving[:-1, -1] -= beta
    loss, start = np.abs(grid_points(cells) - mean), np.eye(cells + 1)[-1]
    sums = [start]  # sums over m of 1, m and m (m + 1) / 2 times the mass at step m
    for _ in range(3):
        sums.append(np.linalg.solve(np.eye(cells + 1) - moving.T, sums[-1]))
    law, first, second = (beta * part[:-1] for part in sums[1:])
    steps, mean_loss = first.sum(), law @ loss
    spread = (2.0 * second - first).sum() - steps**2, law @ loss**2 - mean_loss**2
    correlation = (first @ loss - steps * mean_loss) / np.sqrt(spread[0] * spread[1])
    after = [start @ np.linalg.matrix_power(moving, m - 1) for m in (2, 40)]
    early, late = (float(mass[:-1] @ loss / mass[:-1].sum()) for mass in after)
    return float(correlation), early, late


def stationary_law(kernel: Matrix) -> Matrix:
    """Return the invariant law of an irreducible kernel."""
    system = kernel.T - np.eye(len(kernel))
    system[-1] = 1.0
    right = np.zeros(len(kernel))
    right[-1] = 1.0
    return np.asarray(np.linalg.solve(system, right))


def released_law(kernel: Matrix) -> Matrix:
    """Return the invariant law given that the chain is not at the atom, the last state.

    This is the law that ConfAtomPerfect releases.
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
