"""From epsilon to a penalty and a rate of noise, rounded toward privacy.

The theorem: docs/theory/perturbed_optimum.md, 2. Everything here is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint

from expmech.adjacency import Adjacency
from expmech.errors import ParameterError, validate_scale
from expmech.risks import Risk
from expmech.rounding import float_down, float_up

MAX_NORM, SUM_NORM, CLASS_NORM = "max", "sum", "class"
NOISES = (MAX_NORM, SUM_NORM, CLASS_NORM)

_OWNER = "PerturbedOptimum"
_PRECISION = 128
_FINE = 1 << 8  # steps of noise a nat of budget and a coordinate: then the grid costs no accuracy
_LEAST_PENALTY = Fraction(1, 1 << 40)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public half of the mechanism: what its law and its guarantee depend on besides the data.

    ``determinant`` bounds the log ratio of the Jacobians of neighbours from above, ``rate`` is g of
    the max norm, whose noise has ``steps`` steps k between neighbours, or r of the other norms.
    ``dither`` is the rate of noise on a fine grid, which costs twice as much: where the work is
    fixed beforehand, and 0 elsewhere.
    """

    risk: Risk
    dimension: int
    epsilon: Fraction
    adjacency: Adjacency
    squared_norm: Fraction
    sum_norm: Fraction | None
    penalty: Fraction
    intercept_penalty: Fraction
    noise: str
    steps: int
    rate: Fraction
    determinant: Fraction
    dither: Fraction = Fraction(0)

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return self.dimension * self.risk.margins

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of the parameters: margins, columns."""
        return self.risk.margins, self.dimension

    @property
    def step(self) -> Fraction:
        """Return the width of a step of the noise in the max norm."""
        return rows_moved(self.adjacency) * self.risk.bound / self.steps

    def __str__(self) -> str:
        """Return noise and penalty in words, for a plan."""
        spent = float(self.determinant / self.epsilon)
        return (
            "noise on the gradient, then solve: no loss is evaluated and nothing is rejected. Noise"
            f" in the {self.noise} norm with a standard deviation of {noise_deviation(self):.4g} a"
            f" coordinate; ridge penalty {float(self.penalty):.4g}, which takes {spent:.0%} of"
            " epsilon"
        )

    @property
    def penalties(self) -> list[Fraction]:
        """Return the penalty of each column, the intercept's first."""
        return [self.intercept_penalty] + [self.penalty] * (self.dimension - 1)


def calibrate(
    *,
    risk: Risk,
    dimension: int,
    epsilon: Fraction,
    adjacency: Adjacency,
    squared_norm: Fraction,
    sum_norm: Fraction | None,
    noise: str,
    share: Fraction | None = None,
    penalty: Fraction | None = None,
    intercept_penalty: Fraction | None = None,
    dither: Fraction = Fraction(0),
) -> Terms:
    """Return terms whose guarantee is epsilon: a share of it, or a penalty, fixes the rest."""
    if penalty is None:
        if share is None or not 0 < share < 1:
            raise ParameterError(f"`share` of {_OWNER} must be strictly between 0 and 1.")
        penalty = least_penalty(risk, squared_norm, share * epsilon, intercept_penalty)
    penalty = Fraction(float_up(penalty))
    first = penalty if intercept_penalty is None else Fraction(float_up(intercept_penalty))
    if min(penalty, first) < _LEAST_PENALTY:
        raise ParameterError(f"a penalty of {_OWNER} must be at least 2^-40.")
    determinant = determinant_cost(risk, leverage(squared_norm, penalty, first))
    budget = epsilon - determinant - 2 * dither
    if budget <= 0:
        raise ParameterError(
            f"`penalty` of {_OWNER} must be larger at this epsilon: the determinant alone would"
            " spend all of it."
        )
    steps = noise_steps(budget, dimension * risk.margins) if noise == MAX_NORM else 1
    cost = noise_cost(risk, adjacency, noise, steps, sum_norm)
    return Terms(
        risk=risk,
        dimension=dimension,
        epsilon=epsilon,
        adjacency=adjacency,
        squared_norm=squared_norm,
        sum_norm=sum_norm,
        penalty=penalty,
        intercept_penalty=first,
        noise=noise,
        steps=steps,
        rate=Fraction(float_down(budget / cost)),
        determinant=determinant,
        dither=dither,
    )


def validate_norm(value: float | Fraction | None, name: str) -> Fraction | None:
    """Return a norm that a float64 holds exactly, as the certificate does."""
    if value is None:
        return None
    found = validate_scale(value, name=name, owner=_OWNER)
    if Fraction(float(found)) != found:
        raise ParameterError(f"`{name}` of {_OWNER} must be a float64 number; got {value!r}.")
    return found


def leverage(squared_norm: Fraction, penalty: Fraction, intercept_penalty: Fraction) -> Fraction:
    """Bound ``x' Lambda^-1 x`` over rows with ``|x|^2 <= s2`` and first entry in [-1, 1].

    Linear in the square of the first entry, which lies between 0 and min(1, s2): the larger end.
    """
    constant = min(Fraction(1), squared_norm)
    with_it = constant / intercept_penalty + (squared_norm - constant) / penalty
    return max(squared_norm / penalty, with_it)


def determinant_cost(risk: Risk, reach: Fraction) -> Fraction:
    """Return ``m ln(1 + tau q / m)`` rounded up: rank m, trace tau, leverage q."""
    inner = 1 + risk.trace * reach / risk.rank
    with flint.ctx.workprec(_PRECISION):
        log = flint.arb(flint.fmpq(inner.numerator, inner.denominator)).log() * risk.rank
        return Fraction(float_up(_upper(log)))


def least_penalty(
    risk: Risk, squared_norm: Fraction, nats: Fraction, intercept_penalty: Fraction | None = None
) -> Fraction:
    """Return the penalty whose determinant costs at most about ``nats``, rounded up.

    :func:`calibrate` computes what it really costs.
    """
    with flint.ctx.workprec(_PRECISION):
        power = flint.arb(flint.fmpq(nats.numerator, nats.denominator) / risk.rank).expm1()
        lower = (power * risk.rank).lower()
        reach = _fraction(lower) / risk.trace  # the leverage that nats pay for
    if intercept_penalty is None:
        return Fraction(float_up(squared_norm / reach))
    constant = min(Fraction(1), squared_norm)
    left = reach - constant / intercept_penalty
    if left <= 0:
        raise ParameterError(
            f"`intercept_penalty` of {_OWNER} must be larger at this epsilon and share."
        )
    return max(squared_norm / reach, Fraction(float_up((squared_norm - constant) / left)))


def noise_steps(budget: Fraction, size: int) -> int:
    """Return a power of two k with ``budget / k`` at most ``2^-8 / size``."""
    return 1 << max(0, (budget * size * _FINE).__ceil__() - 1).bit_length()


def noise_cost(
    risk: Risk, adjacency: Adjacency, noise: str, steps: int, sum_norm: Fraction | None
) -> Fraction:
    """Return what one unit of rate costs in epsilon: how far one row moves the gradient."""
    if noise == MAX_NORM:
        return Fraction(steps)
    moved = rows_moved(adjacency) * risk.spread
    if noise == CLASS_NORM:
        return moved
    if noise != SUM_NORM or sum_norm is None:
        raise ParameterError(f"`sum_norm` of {_OWNER} must be given for noise in the sum norm.")
    return moved * sum_norm


def noise_deviation(terms: Terms) -> float:
    """Return the standard deviation of a coordinate of the noise (theory page, 8)."""
    size, classes, rate = terms.size, terms.risk.margins, float(terms.rate)
    if terms.noise == SUM_NORM:
        return math.sqrt(2.0) / rate
    ball = (size + 1) * (size + 2)
    if terms.noise == CLASS_NORM:
        return math.sqrt(2 * ball / ((classes + 1) * (classes + 2))) / rate
    return math.sqrt(ball / 3) * float(terms.step) / rate


def rows_moved(adjacency: Adjacency) -> int:
    """Return how many rows of a table may differ from its neighbour's: one, or one for another."""
    return 2 if adjacency is Adjacency.REPLACE else 1


def _upper(ball: flint.arb) -> Fraction:
    return _fraction(ball.upper())


def _fraction(exact: flint.arb) -> Fraction:
    mantissa, exponent = exact.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
