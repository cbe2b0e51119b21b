"""Exact laws for pictures: the library's, read off at the cells or the draws of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.exponential.mechanism import ExponentialMechanism
from expmech.theory.utility import noise_below, noise_mass

Numbers = NDArray[np.float64]


def noisy_cells(total: int, rate: float, most: int, edges: Numbers) -> Numbers:
    """Return the chance of each cell between edges for a noisy sum cut to ``0 .. most``.

    What is cut off below belongs to the cell that begins at 0 or holds it.
    """
    below = noise_below(rate, edges - float(total))
    below = np.where(edges <= 0.0, 0.0, np.where(edges >= float(most), 1.0, below))
    return np.asarray(np.diff(below))


def noisy_log_chances(noisy: Any, totals: Sequence[int], rate: float, most: int) -> Numbers:
    """Return the log chance of each row of noisy sums, as an observer sees them: cut."""
    logs = np.zeros(len(noisy))
    for j, total in enumerate(totals):
        drawn = np.array([float(value) for value in noisy[:, j]])
        inside = noise_mass(rate, drawn - float(total))
        low, high = noise_below(rate, -float(total)), noise_below(rate, float(total - most))
        chance = np.where(drawn <= 0.0, low, np.where(drawn >= float(most), high, inside))
        with np.errstate(divide="ignore"):
            logs += np.log(chance)
    return logs


def lattice_cells(mechanism: ExponentialMechanism, epsilon: Fraction, edges: Numbers) -> Numbers:
    """Return the chance of each cell between edges under an exponential mechanism of a number."""
    points, chances = mechanism.law(epsilon=epsilon)
    cells, _ = np.histogram(np.ravel(points), bins=edges, weights=chances)
    return np.asarray(cells)


def lattice_log_chances(
    mechanism: ExponentialMechanism, epsilon: Fraction, values: Numbers
) -> Numbers | None:
    """Return the log chance of each lattice point; None where the normaliser is not known."""
    target = mechanism.target(epsilon=epsilon)
    log_sum, box = target.log_normaliser(), target.box
    if log_sum is None or box is None:
        return None
    energies = target.energy(box.locate(values))
    return np.asarray(-energies / target.units_per_nat - log_sum)
