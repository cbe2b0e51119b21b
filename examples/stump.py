"""A private decision stump: which column, and at which threshold, in one draw.

Run: python examples/stump.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import expmech as em

Floats = NDArray[np.float64]
COLUMNS = ["age", "income", "tenure"]


class Mistakes:
    """Rows that "above the threshold means yes" gets wrong, for a column and a threshold."""

    def __init__(self, columns: Floats, answers: NDArray[np.bool_]) -> None:
        self.yes = [np.sort(column[answers]) for column in columns.T]
        self.no = [np.sort(column[~answers]) for column in columns.T]
        self.count = len(answers)

    def facts(self, domain: em.Domain) -> em.Facts:
        """Return that a row moves the loss by one, and bounds over intervals of thresholds."""
        return em.Facts(sensitivity=1, bound=self.count, lower_bound=self.at_least, loss_error=1e-9)

    def __call__(self, points: Floats) -> Floats:
        """Return the mistakes at rows of a threshold and a column's number."""
        return self.at_least(points, points)

    def at_least(self, lower: Floats, upper: Floats) -> Floats:
        """Return mistakes that every threshold between the two makes."""
        which, least = lower[:, 1].astype(int), np.empty(len(lower))
        for j in range(len(self.yes)):
            rows = which == j
            missed = np.searchsorted(self.yes[j], lower[rows, 0], side="right")
            false = len(self.no[j]) - np.searchsorted(self.no[j], upper[rows, 0], side="right")
            least[rows] = missed + false
        return least


def make_rows(seed: int = 3, rows: int = 400) -> tuple[Floats, NDArray[np.bool_]]:
    """Return made-up columns between 0 and 1, of which the second decides."""
    random = np.random.default_rng(seed)
    columns = random.random((rows, len(COLUMNS)))
    return columns, columns[:, 1] + 0.15 * random.normal(size=rows) > 0.6


def main() -> None:
    """Print a plan, a release and how draws spread over columns and thresholds."""
    domain = em.Product(em.Box([0.0], [1.0]), em.Candidates(COLUMNS))
    mechanism = em.ExponentialMechanism(loss=Mistakes(*make_rows()), domain=domain)
    print(mechanism.plan(0.5))
    threshold, column = mechanism.release(epsilon=0.5).value
    print(f"\nyes above {threshold[0]:.3f} of {column}")
    draws = mechanism.sample(epsilon=0.5, size=1000, seed=1).values
    for name in COLUMNS:
        chosen = [draw.point[0] for draw in draws if draw.label == name]
        where = f", thresholds {np.mean(chosen):.3f} on average" if chosen else ""
        print(f"{name:>8}: {len(chosen) / len(draws):.3f} of draws{where}")


if __name__ == "__main__":
    main()
