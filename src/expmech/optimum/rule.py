"""One public rule for what a caller does not choose: norms, shares, thresholds, kinds of noise.

Fitted on synthetic problems: docs/theory/perturbed_optimum.md, 8. Everything here is a function of
the number of columns, the public number of rows (or None), epsilon and the kind of risk.
"""

from __future__ import annotations

from fractions import Fraction

from expmech.optimum.calibration import CLASS_NORM, MAX_NORM, SUM_NORM
from expmech.risks import Risk

_MOST_NATS = 3.0
"""More than three nats for the determinant make penalties at which separable data run away."""

_UNKNOWN_ROWS = 1000


def default_squared_norm(dimension: int) -> Fraction:
    """Return d/2 (at least 1): half of what rows in the cube can be."""
    return max(Fraction(1), Fraction(dimension, 2))


def default_noise(risk: Risk, dimension: int, sum_norm: Fraction | None) -> str:
    """Return the norm whose noise has the least variance a coordinate.

    With D parameters, and rows that move the gradient by one in the respective norm, a coordinate
    of the noise has variance ``(D+1)(D+2)/3`` (max), ``2 s^2`` (sum, s the spread times the rows'
    L1 norm) or ``2 s^2 (D+1)(D+2)/((K+1)(K+2))`` (class, s the spread).
    """
    size = dimension * risk.margins
    choices = {MAX_NORM: risk.bound**2 * (size + 1) * (size + 2) / 3}
    if sum_norm is not None:
        choices[SUM_NORM] = 2 * (risk.spread * sum_norm) ** 2
    if risk.margins > 1:
        inside = Fraction(2, (risk.margins + 1) * (risk.margins + 2))
        choices[CLASS_NORM] = risk.spread**2 * (size + 1) * (size + 2) * inside
    return min(choices, key=lambda name: choices[name])


def default_share(risk: Risk, dimension: int, rows: int | None, epsilon: Fraction) -> Fraction:
    """Return theta, the share of epsilon that the determinant gets."""
    amount = float(epsilon) * (_UNKNOWN_ROWS if rows is None else max(rows, 1))
    if risk.scales_targets():
        share = min(0.3, amount**0.25 / (3.5 * dimension**0.75))
    else:
        share = min(0.2, amount**0.25 / (5.0 * dimension))
    if risk.margins > 1:
        share *= 0.5
    return Fraction(min(share, _MOST_NATS / float(epsilon)))


def default_threshold(dimension: int, rows: int | None, epsilon: Fraction) -> float:
    """Return Huber's threshold c, a multiple of 2^-10: larger where there is less noise."""
    amount = float(epsilon) * (_UNKNOWN_ROWS if rows is None else max(rows, 1))
    c: float = min(1.0, 0.2 * max(1.0, amount / (30.0 * dimension**2)) ** 0.25)
    return round(c * 1024) / 1024
