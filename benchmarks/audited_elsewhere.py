"""Mechanisms that were written elsewhere, as functions that ``expmech audit`` takes.

The commands are in benchmarks/results/audit.md. Those of diffprivlib need
benchmarks/requirements.txt; it is imported when a function is called.
``python -m benchmarks.audited_elsewhere`` integrates the law of diffprivlib's principal direction.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expmech as em
from expmech.paper.printed.algorithms import PrintedConfAtomPerfect

Floats = NDArray[np.float64]

_RANDOM = np.random.default_rng(3)
_ANGLES = (np.arange(200_000) + 0.5) / 200_000 * np.pi / 2

# One row of a small table becomes 1, the upper bound; targets are 0. The noise of the sum of squares
# is scaled by the lower bound alone, which is 0 here: the slope is Laplace noise over that sum.
SQUARES = [(np.array([[0.05], [0.0]]), np.array([[1.0], [0.0]]))]
COUNTS = [([3, 3, 3], [4, 2, 2])]
# The sum of x x' over no row, and over one of six columns.
MOMENTS = [(np.zeros((6, 6)), np.diag([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))]


def printed_kernel(rows: Any, n: int) -> Any:
    """Draw by the paper's printed kernel, where points equal to the atom are removed by value."""
    box = em.Box([0.0], [1.0], bits=3)
    made = em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=box)
    seed = int(_RANDOM.integers(1 << 60))
    drawn = PrintedConfAtomPerfect(by_value=True).sample(made, epsilon=1.0, size=n, seed=seed)
    return drawn.values[:, 0]


def half_noisy_max(counts: Any, n: int) -> Any:
    """Return the largest of noisy counts, with half the noise that epsilon = 1 takes."""
    return np.argmax(np.asarray(counts) + _RANDOM.laplace(scale=1.0, size=(n, len(counts))), axis=1)


def regression(features: Any, n: int) -> Floats:
    """Fit diffprivlib's LinearRegression through the origin, epsilon = 1; targets are 0."""
    return _coefficients(features, n, fit_intercept=False)


def regression_with_intercept(features: Any, n: int) -> Floats:
    """Fit diffprivlib's LinearRegression as it comes, epsilon = 1; targets are 0."""
    return _coefficients(features, n, fit_intercept=True)


def _coefficients(features: Any, n: int, *, fit_intercept: bool) -> Floats:
    from diffprivlib.models import LinearRegression

    bounds = {"bounds_X": (0.0, 1.0), "bounds_y": (0.0, 1.0)}
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(n):
            model = LinearRegression(epsilon=1.0, fit_intercept=fit_intercept, **bounds)
            found.append(model.fit(np.asarray(features), np.zeros(len(features))).coef_)
    return np.array(found)


def direction(moments: Any, n: int) -> Floats:
    """Draw by diffprivlib's Bingham mechanism, the direction of its PCA, at epsilon = 8.

    The law that it means to draw from realises at most a quarter of that when a row is added.
    """
    mechanism = _bingham()
    return np.array([mechanism.randomise(np.asarray(moments)) for _ in range(n)])


@cache
def _bingham() -> Any:
    from diffprivlib.mechanisms import Bingham

    return Bingham(epsilon=8.0, random_state=np.random.RandomState(5))


def direction_law(
    rows: float, dimension: int, epsilon: float, *, as_meant: bool = False
) -> tuple[Floats, float]:
    """Return the log density of the angle to the rows on a grid, and the log of the acceptance.

    All rows are the same unit vector. A proposal x has density ``(x' W x)^(-d/2)``; it is kept with
    probability ``exp(-x' A x) (x' W x)^(-d/2) / M`` where the power should be positive.
    """
    lift = epsilon * rows / 4
    across = lift * np.sin(_ANGLES) ** 2
    scale = proposal_scale(lift, dimension)
    powers = -dimension / 2 * np.log1p(2 * across / scale)
    constant = (scale - dimension) / 2 + dimension / 2 * np.log(dimension / scale)
    surface = (dimension - 2) * np.log(np.sin(_ANGLES))
    proposal = powers - _log_total(powers + surface)
    kept = -across + (-powers if as_meant else powers) - constant
    accepted = _log_total(proposal + kept + surface)
    return proposal + kept - accepted, accepted


def proposal_scale(lift: float, dimension: int) -> float:
    """Solve ``1/b + (d - 1)/(b + 2 lift) = 1`` for b between 1 and d."""
    low, high = 1.0, float(dimension)
    for _ in range(100):
        middle = (low + high) / 2
        if 1.0 / middle + (dimension - 1) / (middle + 2 * lift) <= 1.0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _log_total(logs: Floats) -> float:
    top = float(logs.max())
    return top + float(np.log(np.exp(logs - top).sum()))


def largest_ratio(rows: float, dimension: int, epsilon: float, *, as_meant: bool = False) -> float:
    """Return the epsilon that one more row of the same direction realises, by integration."""
    fewer, more = (
        direction_law(count, dimension, epsilon, as_meant=as_meant)[0] for count in (rows, rows + 1)
    )
    return float(np.abs(more - fewer).max())


def direction_table() -> list[str]:
    """Return the epsilon of the principal direction, as meant and as drawn: lines of a table."""
    lines = [
        "| dimension | rows and one more | claim | law as meant | as drawn | one kept in |",
        "|---|---|---|---|---|---|",
    ]
    for dimension, rows, epsilon in ((6, 0, 8.0), (8, 4, 1.0), (64, 128, 1.0), (256, 512, 1.0)):
        meant = largest_ratio(rows, dimension, epsilon, as_meant=True)
        drawn = largest_ratio(rows, dimension, epsilon)
        tried = -direction_law(rows, dimension, epsilon)[1] / np.log(10.0)
        told = f"10^{tried:.0f}" if tried > 3 else f"{10**tried:.1f}"
        lines.append(f"| {dimension} | {rows} | {epsilon:g} | {meant:.2f} | {drawn:.2f} | {told} |")
    return lines


if __name__ == "__main__":
    print("\n".join(direction_table()))
