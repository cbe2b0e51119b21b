"""The public rules of regressions: functions of n, d and epsilon, fitted on synthetic tables.

docs/theory/perturbed_optimum.md, 8, says how; none of them enters the guarantee.
"""

from __future__ import annotations

from fractions import Fraction

from expmech.mechanisms.optimum.risks import Risk

UNKNOWN_ROWS = 1000
"""The number of rows that rules take where it is not public."""

_MOST_NATS = 3.0  # more for the determinant make penalties at which separable data run away
_WORTH_MEASURING = 300.0  # rows times epsilon from which the norm of rows is worth a share


def amount_of(rows: int | None, epsilon: Fraction) -> float:
    """Return n epsilon, which says how much there is to learn."""
    return float(epsilon) * (UNKNOWN_ROWS if rows is None else max(rows, 1))


def default_share(risk: Risk, dimension: int, rows: int | None, epsilon: Fraction) -> Fraction:
    """Return theta, the share of epsilon that the determinant gets, where it is never free."""
    amount = amount_of(rows, epsilon)
    if risk.scales_targets():
        share = min(0.3, amount**0.25 / (3.5 * dimension**0.75))
    else:
        share = min(0.2, amount**0.25 / (5.0 * dimension))
    if risk.margins > 1:
        share *= 0.5
    return Fraction(min(share, _MOST_NATS / float(epsilon)))


def default_leverage(risk: Risk, dimension: int, rows: int | None, epsilon: Fraction) -> Fraction:
    """Return q, the squared norm of rows over the penalty, where a determinant may be free."""
    amount = amount_of(rows, epsilon)
    if risk.scales_targets():
        q = float(epsilon) / (4.0 * max(0.4, 0.22 * dimension**1.5 / amount**0.5))
    else:
        q = float(epsilon) / (2.0 * max(0.5, 0.27 * dimension**2 / amount**0.6))
    return Fraction(q)


def default_threshold(dimension: int, rows: int | None, epsilon: Fraction) -> float:
    """Return the threshold c of the log-cosh risk, a multiple of 2^-10: larger with less noise."""
    c: float = min(1.0, 0.14 * max(1.0, amount_of(rows, epsilon) / (30.0 * dimension**2)) ** 0.25)
    return round(c * 1024) / 1024


def norm_share(rows: int | None, epsilon: Fraction) -> float:
    """Return the share of epsilon that buys a private norm of the rows; 0 where none is bought."""
    amount = amount_of(rows, epsilon)
    return 0.0 if amount < _WORTH_MEASURING else min(0.1, max(0.02, 40.0 / amount))
