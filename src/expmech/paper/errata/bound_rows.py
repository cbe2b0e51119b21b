"""Errata of the bounds: Laplace minorisation, the Laplace integral, where p_Accept is least."""

from __future__ import annotations

import math

import numpy as np

from expmech.paper.errata.row import Erratum, Facts
from expmech.paper.example1 import log_beta_laplace_printed, slope
from expmech.paper.kernels import (
    distances,
    extrapolate,
    grid_points,
    laplace_law,
    laplace_proposals,
    metropolis,
)
from expmech.theory import (
    acceptance_laplace,
    acceptance_laplace_infimum,
    beta_laplace,
    laplace_integral,
)


def true_distance(cells: int, c: float, alpha: float, steps: int) -> float:
    """Return the worst total variation of the Laplace walk after ``steps``, on a grid."""
    proposals = laplace_proposals(cells, alpha)
    laws = [laplace_law(cells, c, mean) for mean in (0.0, 0.25, 0.5)]
    return max(distances(metropolis(proposals, law), law, [steps])[0] for law in laws)


def _measure_minorisation(quick: bool, stream: list[int]) -> Facts:
    """Return printed bound, truth and corrected bound at the paper's own numbers."""
    coarse, fine = (100, 200) if quick else (400, 800)
    factor = 1.0 + math.exp(0.01)
    printed = (1.0 - math.exp(log_beta_laplace_printed(100, 0.01, 1, 0.5))) ** 10
    true = extrapolate(true_distance(coarse, 0.5, 0.5, 10), true_distance(fine, 0.5, 0.5, 10))
    return {
        "printed": printed,
        "true": true,
        "corrected": (1.0 - beta_laplace(100, 0.01, 1, 0.5)) ** 10,
        "printed_delta": factor * printed,
        "true_delta": min(1.0, factor * true),
    }


MINORISATION = Erratum(
    "minorisation of Laplace proposals",
    """
    claim: Laplace proposals: beta = (2 alpha)^d exp(-(alpha d + epsilon n/2)) ((1 -
      e^-alpha)/alpha)^d
    printed: TV at most {printed:.3f} after 10 steps (n = 100, epsilon = .01, alpha = .5)
    measured: TV {true:.3f}
    corrected: TV at most {corrected:.3f}
    claimed epsilon: 0.01, delta {printed_delta:.3f}
    realised epsilon: 0.01, delta up to {true_delta:.3f} by the same conversion
    sentence: The normaliser of the Laplace density is (alpha/2)^d and the box factor is misplaced;
      the printed delta is too small.
    """,
    _measure_minorisation,
    "Section 3.1; Appendix, Example 1",
    "Example 1, d = 1, n = 100, epsilon = .01, alpha = .5, means 0, .25, .5, every start, m = 10",
    lambda f: f["printed"] >= f["true"],
    seconds=3.0,
)


def _scale_distribution(x: float, scale: float) -> float:
    return 0.5 * math.exp(x / scale) if x < 0.0 else 1.0 - 0.5 * math.exp(-x / scale)


def _measure_integral(quick: bool, stream: list[int]) -> Facts:
    """Return the printed integral, quadrature and the corrected one for n = 10, epsilon = 1.

    Mean 0.3.
    """
    c, mean = slope(10, 1.0), 0.3
    printed = c / 2.0 * (_scale_distribution(1.0 - mean, c) - _scale_distribution(-mean, c))
    return {
        "printed": printed,
        "quadrature": float(np.exp(-c * np.abs(grid_points(100_000) - mean)).mean()),
        "corrected": laplace_integral(c, mean),
    }


INTEGRAL = Erratum(
    "the Laplace integral",
    """
    claim: the integral of exp(-c |y - x|) over [0, 1] is (c/2)(F(1-x; c) - F(-x; c))
    printed: {printed:.4f} (c = 5, x = 0.3)
    measured: {quadrature:.4f} by quadrature
    corrected: {corrected:.4f} = (2/c)(F(1-x; 1/c) - F(-x; 1/c))
    sentence: Prefactor and scale are inverted, in both acceptance formulas of the appendix.
    """,
    _measure_integral,
    "Appendix, Example 1",
    "c = 5, x = .3",
    lambda f: abs(f["printed"] - f["quadrature"]) < 1e-3,
)


def _measure_worst_point(quick: bool, stream: list[int]) -> Facts:
    """Return p_Accept at the mean, its infimum for proposals narrower than the target.

    The infimum is also found by quadrature.
    """
    c, alpha, mean = 0.5, 5.0, 0.5
    cells = 4000
    points = grid_points(cells)
    mass = laplace_proposals(cells, alpha, np.array([0.0]))[0]
    accept = np.minimum(1.0, np.exp(-c * (np.abs(points - mean) - mean)))
    return {
        "printed": acceptance_laplace(mean, mean, c, alpha),
        "quadrature": float((mass * accept).sum()),
        "corrected": acceptance_laplace_infimum([mean], c, alpha),
    }


WORST_POINT = Erratum(
    "where p_Accept is least",
    """
    claim: p_Accept(y) is least at y = mean for Laplace proposals
    printed: inf p_Accept = {printed:.3f} (slope 0.5, alpha = 5, mean 0.5; with the integral of row
      9 corrected)
    measured: p_Accept(0) = {quadrature:.3f} by quadrature
    corrected: {corrected:.3f}, at the boundary
    sentence: When alpha exceeds the target's slope the boundary is worse than the mean: half of the
      proposals leave the box. The runtime bound built on it is too small.
    """,
    _measure_worst_point,
    "Appendix, Example 1",
    "slope .5, alpha = 5, mean .5",
    lambda f: f["printed"] <= 1.01 * f["quadrature"],
)
