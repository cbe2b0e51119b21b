"""What a release costs: the theorem of docs/theory/perturbed_optimum.md, 2, in ball arithmetic.

One row moves the gradient by at most ``sigma`` in the norm of the noise, whose rate r is stated as
``row_nats = r sigma``. Everything here is rounded toward privacy.
"""

from __future__ import annotations

from fractions import Fraction

import flint

from expmech.core.adjacency import Adjacency
from expmech.core.balls import fraction_of, real
from expmech.core.errors import ParameterError
from expmech.core.rounding import float_down, float_up
from expmech.mechanisms.optimum.risks import Risk

OWNER = "PerturbedOptimum"
MAX_NORM, SUM_NORM, CLASS_NORM, EUCLIDEAN = "max", "sum", "class", "euclidean"
NOISES = (MAX_NORM, SUM_NORM, CLASS_NORM, EUCLIDEAN)

_PRECISION = 192
_HALVINGS = 64  # float64 has 53 digits, and the first interval is at most 2^10 times its lower end


def leverage(squared_norm: Fraction, penalty: Fraction, intercept_penalty: Fraction) -> Fraction:
    """Bound ``x' Lambda^-1 x`` over rows with ``|x|^2 <= s2`` and first entry in [-1, 1].

    Linear in the square of the first entry, which lies between 0 and min(1, s2): the larger end.
    """
    constant = min(Fraction(1), squared_norm)
    with_it = constant / intercept_penalty + (squared_norm - constant) / penalty
    return max(squared_norm / penalty, with_it)


def determinant_cost(risk: Risk, leverage: Fraction) -> Fraction:
    """Return ``m ln(1 + tau q / m)`` rounded up: rank m, trace tau, leverage q."""
    with flint.ctx.workprec(_PRECISION):
        return Fraction(float_up(fraction_of(_determinant(risk, leverage).upper())))


def _determinant(risk: Risk, leverage: Fraction) -> flint.arb:
    return (1 + real(risk.trace * leverage / risk.rank)).log() * risk.rank


def least_penalty(
    risk: Risk, squared_norm: Fraction, nats: Fraction, intercept_penalty: Fraction | None = None
) -> Fraction:
    """Return the penalty whose determinant alone costs at most about ``nats``, rounded up."""
    with flint.ctx.workprec(_PRECISION):
        power = real(nats / risk.rank).expm1()
        paid = fraction_of((power * risk.rank).lower()) / risk.trace  # the leverage nats pay for
    return penalty_of(paid, squared_norm, intercept_penalty)


def penalty_of(
    leverage: Fraction, squared_norm: Fraction, intercept_penalty: Fraction | None = None
) -> Fraction:
    """Return the least penalty at which rows have at most this leverage, rounded up."""
    if intercept_penalty is None:
        return Fraction(float_up(squared_norm / leverage))
    constant = min(Fraction(1), squared_norm)
    left = leverage - constant / intercept_penalty
    if left <= 0:
        raise ParameterError(
            f"`intercept_penalty` of {OWNER} must be larger at this epsilon and share."
        )
    return max(squared_norm / leverage, Fraction(float_up((squared_norm - constant) / left)))


def spent_by_row(
    risk: Risk, adjacency: Adjacency, row_nats: Fraction, leverage: Fraction
) -> Fraction:
    """Return what noise and determinant cost together, rounded up.

    With one margin and ``phi'' <= W(|phi'|)``, W concave, that is ``J = max_p [s p + ln(1 + q
    W(c p))]`` for a row that is added, s the ``row_nats``, and s more for one that is replaced; or
    what risks of several margins pay, ``s`` and the determinant at its largest, if that is less.
    """
    with flint.ctx.workprec(_PRECISION):
        # A replaced row leaves and another comes: the noise pays for both, the determinant for one
        # (docs/theory/perturbed_optimum.md, section 2).
        others = (adjacency.rows_moved - 1) * real(row_nats)
        cost = real(row_nats) + _determinant(risk, leverage)
        if risk.margins == 1:
            cost = cost.min(_largest_gain(risk, real(row_nats), real(leverage)))
        return fraction_of((others + cost).upper())


def _largest_gain(risk: Risk, s: flint.arb, q: flint.arb) -> flint.arb:
    """Enclose ``max over p in [0, 1] of s p + ln(1 + q (w0 + w1 p - w2 p^2))``, which is concave.

    Its derivative is 0 at the root of ``s (1 + q w0) + q w1 + q (s w1 - 2 w2) p - s q w2 p^2``.
    """
    first, second, third = risk.curvature_bound
    c = risk.bound
    w0, w1, w2 = real(first), real(second * c), real(third * c**2)
    p = flint.arb(1)
    if third > 0:
        slope = s * w1 - 2 * w2
        inside = slope**2 + 4 * s * w2 * (s * (1 + q * w0) / q + w1)
        p = ((slope + inside.sqrt()) / (2 * s * w2)).min(flint.arb(1))
    return s * p + (1 + q * (w0 + w1 * p - w2 * p**2)).log()


def greatest_row_nats(
    risk: Risk, adjacency: Adjacency, leverage: Fraction, budget: Fraction
) -> Fraction:
    """Return the largest float64 ``row_nats`` that cost at most the budget, or one just below it.

    At most the budget over the number of rows: the determinant is then free.
    """
    most = Fraction(float_down(budget / adjacency.rows_moved))
    if spent_by_row(risk, adjacency, most, leverage) <= budget:
        return most
    low = (budget - determinant_cost(risk, leverage)) / adjacency.rows_moved
    if low <= 0:
        raise ParameterError(
            f"`penalty` of {OWNER} must be larger at this epsilon: the determinant alone would"
            " spend all of it."
        )
    low, high = Fraction(float_down(low)), most
    for _ in range(_HALVINGS):
        middle = Fraction(float((low + high) / 2))
        if not low < middle < high:
            break
        if spent_by_row(risk, adjacency, middle, leverage) <= budget:
            low = middle
        else:
            high = middle
    return low


def noise_rate(
    risk: Risk, noise: str, row_nats: Fraction, squared_norm: Fraction, sum_norm: Fraction | None
) -> Fraction:
    """Return the rate r of the noise with ``r sigma <= row_nats``, rounded down.

    sigma is how far one row moves the gradient in the norm of the noise.
    """
    if noise == EUCLIDEAN:
        with flint.ctx.workprec(_PRECISION):
            sigma = fraction_of(real(risk.squared_length * squared_norm).sqrt().upper())
    elif noise == SUM_NORM:
        if sum_norm is None:
            raise ParameterError(f"`sum_norm` of {OWNER} must be given for noise in the sum norm.")
        sigma = risk.spread * sum_norm
    else:
        sigma = risk.bound if noise == MAX_NORM else risk.spread
    return Fraction(float_down(row_nats / sigma))
