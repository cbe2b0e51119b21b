"""The public half of a perturbed optimum: settings, public rules, and terms that cost epsilon.

Penalty and rate of the noise are rounded toward privacy. The theorem is that of
docs/theory/perturbed_optimum.md, 2; the rules were fitted on synthetic problems, section 8 there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint

from expmech.core.adjacency import Adjacency
from expmech.core.errors import (
    ParameterError,
    validate_choice,
    validate_integer,
    validate_scale,
)
from expmech.core.rounding import float_down, float_up
from expmech.mechanisms.optimum.risks import Risk

OWNER = "PerturbedOptimum"
MAX_NORM, SUM_NORM, CLASS_NORM = "max", "sum", "class"
NOISES = (MAX_NORM, SUM_NORM, CLASS_NORM)

_PRECISION = 128
_FINE = 1 << 8  # steps of noise per nat of budget and coordinate: then the grid costs no accuracy
_LEAST_PENALTY = Fraction(1, 1 << 40)
_MOST_NATS = 3.0  # more for the determinant make penalties at which separable data run away
_UNKNOWN_ROWS = 1000


@dataclass(frozen=True, kw_only=True)
class RowNorms:
    """Public bounds that rows are shortened to: ``|x|^2 <= squared`` and ``|x|_1 <= total``.

    Examples
    --------
    >>> RowNorms(squared=Fraction(2)).total is None
    True
    """

    squared: Fraction
    total: Fraction | None = None


@dataclass(frozen=True, kw_only=True)
class RegressionSettings:
    """Public settings of a regression by a perturbed optimum; None takes the public rule.

    Parameters
    ----------
    penalty : float or Fraction, optional
        Ridge penalty of the columns, at least 2^-40.
    intercept_penalty : float or Fraction, optional
        Ridge penalty of the first column; None takes that of the others.
    share : float or Fraction, optional
        The share of epsilon, between 0 and 1, that the penalty is chosen to spend. It is not used
        where a penalty is given.
    squared_norm : float or Fraction, optional
        Public bound on ``|x|^2``, to which rows are shortened; None takes half of the number of
        columns, at least 1.
    sum_norm : float or Fraction, optional
        Public bound on ``|x|_1``, to which rows are shortened as well; None sets no bound.
    noise : {"auto", "max", "sum", "class"}, default "auto"
        The norm of the noise; "auto" takes the one with the least variance.
    rows : int, optional
        Under "add-remove" only: a public guess of the number of rows, for the rules. None takes
        1000.

    Examples
    --------
    >>> RegressionSettings(squared_norm=2.0).norms(5)
    RowNorms(squared=Fraction(2, 1), total=None)
    """

    penalty: float | Fraction | None = None
    intercept_penalty: float | Fraction | None = None
    share: float | Fraction | None = None
    squared_norm: float | Fraction | None = None
    sum_norm: float | Fraction | None = None
    noise: str = "auto"
    rows: int | None = None

    def __post_init__(self) -> None:
        for name in ("penalty", "intercept_penalty", "share", "squared_norm", "sum_norm"):
            value = getattr(self, name)
            if value is None:
                continue
            number = validate_scale(value, name=name, owner=OWNER)
            # the certificate holds a norm as it is used
            if name.endswith("norm") and Fraction(float(number)) != number:
                raise ParameterError(
                    f"`{name}` of {OWNER} must be a float64 number; got {value!r}."
                )
            object.__setattr__(self, name, number)
        validate_choice(self.noise, name="noise", owner=OWNER, choices=("auto", *NOISES))
        if self.rows is not None:
            validate_integer(self.rows, name="rows", owner=OWNER, low=1, high=1 << 40)

    def norms(self, dimension: int) -> RowNorms:
        """Return the norms that rows of so many columns are shortened to."""
        total = None if self.sum_norm is None else Fraction(self.sum_norm)
        if self.squared_norm is None:  # half of what rows in the cube can be
            return RowNorms(squared=max(Fraction(1), Fraction(dimension, 2)), total=total)
        return RowNorms(squared=Fraction(self.squared_norm), total=total)

    def noise_norm(self, risk: Risk, dimension: int) -> str:
        """Return the norm of the noise, where none is named the one with the least variance.

        With D parameters, and rows that move the gradient by one in the respective norm, a
        coordinate of the noise has variance ``(D+1)(D+2)/3`` (max), ``2 s^2`` (sum, s the spread
        times the rows' L1 norm) or ``2 s^2 (D+1)(D+2)/((K+1)(K+2))`` (class, s the spread).
        """
        several = risk.margins > 1
        if self.noise == CLASS_NORM and not several:
            raise ParameterError(f"`noise` of {OWNER} can be 'class' for several classes only.")
        if self.noise == SUM_NORM and self.sum_norm is None:
            raise ParameterError(f"`sum_norm` of {OWNER} must be given for noise='sum'.")
        if self.noise != "auto":
            return self.noise
        size = dimension * risk.margins
        variances = {MAX_NORM: risk.bound**2 * (size + 1) * (size + 2) / 3}
        if self.sum_norm is not None:
            variances[SUM_NORM] = 2 * (risk.spread * Fraction(self.sum_norm)) ** 2
        if several:
            inside = Fraction(2, (risk.margins + 1) * (risk.margins + 2))
            variances[CLASS_NORM] = risk.spread**2 * (size + 1) * (size + 2) * inside
        return min(variances, key=lambda name: variances[name])


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


@dataclass(frozen=True, kw_only=True)
class OptimumTerms:
    """What the law and the guarantee depend on besides the data; all of it is public.

    ``determinant`` bounds the log ratio of the Jacobians of neighbours from above, ``rate`` is g of
    the max norm, whose noise has ``steps`` steps k between neighbours, or r of the other norms.
    ``dither`` is the rate of the noise on a fine grid, which costs twice as much, where the amount
    of work is fixed beforehand; else it is 0.
    """

    risk: Risk
    dimension: int
    epsilon: Fraction
    adjacency: Adjacency
    norms: RowNorms
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

    @property
    def penalties(self) -> list[Fraction]:
        """Return the penalty of each column, the intercept's first."""
        return [self.intercept_penalty] + [self.penalty] * (self.dimension - 1)

    @property
    def noise_deviation(self) -> float:
        """Return the standard deviation of a coordinate of the noise (theory page, 8)."""
        classes, rate = self.risk.margins, float(self.rate)
        if self.noise == SUM_NORM:
            return math.sqrt(2.0) / rate
        ball = (self.size + 1) * (self.size + 2)
        if self.noise == CLASS_NORM:
            return math.sqrt(2 * ball / ((classes + 1) * (classes + 2))) / rate
        return math.sqrt(ball / 3) * float(self.step) / rate

    def __str__(self) -> str:
        """Return noise and penalty in words, for a plan."""
        spent = float(self.determinant / self.epsilon)
        return (
            "noise on the gradient, then solve: no loss is evaluated and nothing is rejected. Noise"
            f" in the {self.noise} norm with a standard deviation of {self.noise_deviation:.4g} per"
            f" coordinate; ridge penalty {float(self.penalty):.4g}, which takes {spent:.0%} of"
            " epsilon"
        )

    def describe(self) -> dict[str, Any]:
        """Return the terms as numbers that JSON holds exactly, for a certificate."""
        risk, total = self.risk, self.norms.total
        return {
            "sampler": OWNER,
            "risk": risk.describe(),
            "bound": float(risk.bound),
            "spread": float(risk.spread),
            "lipschitz": float(risk.lipschitz),
            "rank": risk.rank,
            "columns": self.dimension,
            "squared_norm": float(self.norms.squared),
            "sum_norm": None if total is None else float(total),
            "penalty": float(self.penalty),
            "intercept_penalty": float(self.intercept_penalty),
            "noise": self.noise,
            "steps": self.steps,
            "rate": float(self.rate),
            "determinant": float(self.determinant),
        }


def calibrate(
    settings: RegressionSettings,
    *,
    risk: Risk,
    dimension: int,
    epsilon: Fraction,
    adjacency: Adjacency,
    dither: Fraction = Fraction(0),
) -> OptimumTerms:
    """Return terms whose guarantee is epsilon.

    The settings name a penalty, or the share of epsilon that one is chosen to spend; the rest of
    epsilon buys the noise.
    """
    norms, noise = settings.norms(dimension), settings.noise_norm(risk, dimension)
    penalty, first = (
        None if number is None else Fraction(number)
        for number in (settings.penalty, settings.intercept_penalty)
    )
    if penalty is None:
        share = settings.share
        if share is None or not 0 < share < 1:
            raise ParameterError(f"`share` of {OWNER} must be strictly between 0 and 1.")
        penalty = least_penalty(risk, norms.squared, Fraction(share) * epsilon, first)
    penalty = Fraction(float_up(penalty))
    first = penalty if first is None else Fraction(float_up(first))
    if min(penalty, first) < _LEAST_PENALTY:
        raise ParameterError(f"a penalty of {OWNER} must be at least 2^-40.")
    determinant = determinant_cost(risk, leverage(norms.squared, penalty, first))
    budget = epsilon - determinant - 2 * dither
    if budget <= 0:
        raise ParameterError(
            f"`penalty` of {OWNER} must be larger at this epsilon: the determinant alone would"
            " spend all of it."
        )
    steps = 1
    if noise == MAX_NORM:  # a power of two k with budget / k at most 2^-8 / size
        fine = budget * dimension * risk.margins * _FINE
        steps = 1 << max(0, fine.__ceil__() - 1).bit_length()
    cost = noise_cost(risk, adjacency, noise, steps, norms.total)
    return OptimumTerms(
        risk=risk,
        dimension=dimension,
        epsilon=epsilon,
        adjacency=adjacency,
        norms=norms,
        penalty=penalty,
        intercept_penalty=first,
        noise=noise,
        steps=steps,
        rate=Fraction(float_down(budget / cost)),
        determinant=determinant,
        dither=dither,
    )


def leverage(squared_norm: Fraction, penalty: Fraction, intercept_penalty: Fraction) -> Fraction:
    """Bound ``x' Lambda^-1 x`` over rows with ``|x|^2 <= s2`` and first entry in [-1, 1].

    Linear in the square of the first entry, which lies between 0 and min(1, s2): the larger end.
    """
    constant = min(Fraction(1), squared_norm)
    with_it = constant / intercept_penalty + (squared_norm - constant) / penalty
    return max(squared_norm / penalty, with_it)


def determinant_cost(risk: Risk, leverage: Fraction) -> Fraction:
    """Return ``m ln(1 + tau q / m)`` rounded up: rank m, trace tau, leverage q."""
    inner = 1 + risk.trace * leverage / risk.rank
    with flint.ctx.workprec(_PRECISION):
        log = flint.arb(flint.fmpq(inner.numerator, inner.denominator)).log() * risk.rank
        return Fraction(float_up(_fraction(log.upper())))


def least_penalty(
    risk: Risk, squared_norm: Fraction, nats: Fraction, intercept_penalty: Fraction | None = None
) -> Fraction:
    """Return the penalty whose determinant costs at most about ``nats``, rounded up.

    :func:`calibrate` computes what it really costs.
    """
    with flint.ctx.workprec(_PRECISION):
        power = flint.arb(flint.fmpq(nats.numerator, nats.denominator) / risk.rank).expm1()
        paid = _fraction((power * risk.rank).lower()) / risk.trace  # the leverage nats pay for
    if intercept_penalty is None:
        return Fraction(float_up(squared_norm / paid))
    constant = min(Fraction(1), squared_norm)
    left = paid - constant / intercept_penalty
    if left <= 0:
        raise ParameterError(
            f"`intercept_penalty` of {OWNER} must be larger at this epsilon and share."
        )
    return max(squared_norm / paid, Fraction(float_up((squared_norm - constant) / left)))


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
        raise ParameterError(f"`sum_norm` of {OWNER} must be given for noise in the sum norm.")
    return moved * sum_norm


def rows_moved(adjacency: Adjacency) -> int:
    """Return how many rows of a table may differ from its neighbour's."""
    return 2 if adjacency is Adjacency.REPLACE else 1


def _fraction(exact: flint.arb) -> Fraction:
    mantissa, exponent = exact.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
