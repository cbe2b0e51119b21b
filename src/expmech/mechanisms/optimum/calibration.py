"""The public half of a perturbed optimum: settings, and the terms that cost epsilon.

What terms cost is in :mod:`expmech.mechanisms.optimum.cost`, the rules for what nobody sets in
:mod:`expmech.mechanisms.optimum.rule`. Theory: docs/theory/perturbed_optimum.md.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError, validate_choice, validate_integer, validate_scale
from expmech.core.rounding import float_up
from expmech.mechanisms.optimum.cost import (
    CLASS_NORM,
    EUCLIDEAN,
    MAX_NORM,
    NOISES,
    OWNER,
    SUM_NORM,
    greatest_row_nats,
    least_penalty,
    leverage,
    noise_rate,
    penalty_of,
    spent_by_row,
)
from expmech.mechanisms.optimum.risks import Risk
from expmech.mechanisms.optimum.row_norm import NormSearch
from expmech.mechanisms.optimum.rule import default_leverage, default_share, norm_share

LAW = 2
"""The version of the law in a certificate; one that has none is of the first (theory page, 10)."""

_LEAST_PENALTY = Fraction(1, 1 << 40)


@dataclass(frozen=True, kw_only=True)
class RowNorms:
    """Public bounds that rows are shortened to: ``|x|^2 <= squared`` and ``|x|_1 <= total``.

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
        Public bound on ``|x|^2``, to which rows are shortened. Where this, penalties, share, sum
        norm and noise are all left out, the rule for risks whose determinant may be free takes a
        private norm, or for few rows the number of columns; else None takes half of the number of
        columns, at least 1.
    sum_norm : float or Fraction, optional
        Public bound on ``|x|_1``, to which rows are shortened as well; None sets no bound.
    noise : {"auto", "max", "sum", "class", "euclidean"}, default "auto"
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

    @property
    def leaves_norm_open(self) -> bool:
        """Return whether nothing is set that the norm of rows or the noise depends on."""
        names = ("penalty", "intercept_penalty", "share", "squared_norm", "sum_norm")
        return self.noise == "auto" and all(getattr(self, name) is None for name in names)

    def noise_norm(self, risk: Risk, dimension: int, squared: Fraction) -> str:
        """Return the norm of the noise, where none is named the one with the least variance.

        With D parameters and rows of ``|x|^2`` at most s2, a coordinate of noise at the same cost
        has a variance in proportion to ``(D+1)(D+2)/3`` times the squared bound (max), ``2 s^2``
        (sum, s the spread times the rows' L1 norm), ``2 s^2 (D+1)(D+2)/((K+1)(K+2))`` (class, s the
        spread) or ``(D+1) s2`` times the squared length of a derivative (euclidean).
        """
        several = risk.margins > 1
        if self.noise == CLASS_NORM and not several:
            raise ParameterError(f"`noise` of {OWNER} can be 'class' for several classes only.")
        if self.noise == SUM_NORM and self.sum_norm is None:
            raise ParameterError(f"`sum_norm` of {OWNER} must be given for noise='sum'.")
        if self.noise != "auto":
            return self.noise
        size = dimension * risk.margins
        variances = {
            MAX_NORM: risk.bound**2 * (size + 1) * (size + 2) / 3,
            EUCLIDEAN: risk.squared_length * squared * (size + 1),
        }
        if self.sum_norm is not None:
            variances[SUM_NORM] = 2 * (risk.spread * Fraction(self.sum_norm)) ** 2
        if several:
            inside = Fraction(2, (risk.margins + 1) * (risk.margins + 2))
            variances[CLASS_NORM] = risk.spread**2 * (size + 1) * (size + 2) * inside
        return min(variances, key=lambda name: variances[name])


@dataclass(frozen=True, kw_only=True)
class OptimumTerms:
    """What the law and the guarantee depend on besides the data; all of it is public.

    ``row_nats`` is what noise alone costs for one row, and ``rate`` the rate r of the noise in its
    norm; ``leverage`` bounds ``x' Lambda^-1 x``, and ``determinant`` is what the determinant costs
    besides the noise. ``dither`` is the rate of the noise on a fine grid, which costs twice as
    much, where the amount of work is fixed beforehand; else it is 0. With a ``search`` the norm of
    rows is drawn first: norm, penalty, noise and rate are those of the longest rows until
    :meth:`at_norm` says otherwise, all else is the same for every norm.
    """

    risk: Risk
    dimension: int
    epsilon: Fraction
    adjacency: Adjacency
    norms: RowNorms
    penalty: Fraction
    intercept_penalty: Fraction
    noise: str
    rate: Fraction
    row_nats: Fraction
    leverage: Fraction
    determinant: Fraction
    dither: Fraction = Fraction(0)
    search: NormSearch | None = None

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return self.dimension * self.risk.margins

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of the parameters: margins, columns."""
        return self.risk.margins, self.dimension

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
        if self.noise == EUCLIDEAN:
            return math.sqrt(self.size + 1) / rate
        ball = (self.size + 1) * (self.size + 2)
        if self.noise == CLASS_NORM:
            return math.sqrt(2 * ball / ((classes + 1) * (classes + 2))) / rate
        return math.sqrt(ball / 3) / rate

    def at_norm(self, squared: Fraction) -> OptimumTerms:
        """Return the terms for rows of this squared norm, which was drawn: the cost is the same."""
        noise = RegressionSettings().noise_norm(self.risk, self.dimension, squared)
        penalty = Fraction(float_up(squared / self.leverage))
        # The penalty falls with the norm so that the leverage stays, and with it what a row costs.
        return dataclasses.replace(
            self,
            norms=RowNorms(squared=squared),
            penalty=penalty,
            intercept_penalty=penalty,
            noise=noise,
            rate=noise_rate(self.risk, noise, self.row_nats, squared, None),
            search=None,
        )

    def __str__(self) -> str:
        """Return noise and penalty in words, for a plan."""
        spent = float(self.determinant / self.epsilon)
        summary = (
            "noise on the gradient, then solve: no loss is evaluated and nothing is rejected. Noise"
            f" in the {self.noise} norm with a standard deviation of {self.noise_deviation:.4g} per"
            f" coordinate; ridge penalty {float(self.penalty):.4g}, which takes {spent:.0%} of"
            " epsilon"
        )
        if self.search is None:
            return summary
        share = float(self.search.epsilon / self.epsilon)
        return (
            f"{summary}. These are for the longest rows; a private median of the norms of rows,"
            f" which takes {share:.0%} of epsilon, makes noise and penalty smaller where most are"
            " shorter"
        )

    def describe(self) -> dict[str, Any]:
        """Return the terms as numbers that JSON holds exactly, for a certificate."""
        risk, total, search = self.risk, self.norms.total, self.search
        of_norm: dict[str, Any] = {
            "squared_norm": float(self.norms.squared),
            "sum_norm": None if total is None else float(total),
            "penalty": float(self.penalty),
            "intercept_penalty": float(self.intercept_penalty),
            "noise": self.noise,
            "rate": float(self.rate),
        }
        if search is not None:  # they follow from the norm that is drawn
            of_norm = {"norm": search.describe()}
        return {
            "sampler": OWNER,
            "law": LAW,
            "risk": risk.describe(),
            "bound": float(risk.bound),
            "spread": float(risk.spread),
            "lipschitz": float(risk.lipschitz),
            "rank": risk.rank,
            "columns": self.dimension,
            "leverage": float(self.leverage),
            "row_nats": float(self.row_nats),
            "determinant": float(self.determinant),
            **of_norm,
        }


def calibrate(
    settings: RegressionSettings,
    *,
    risk: Risk,
    dimension: int,
    epsilon: Fraction,
    adjacency: Adjacency,
    rows: int | None = None,
    dither: Fraction = Fraction(0),
) -> OptimumTerms:
    """Return terms whose guarantee is epsilon; rules take a public number of ``rows``.

    The settings name a penalty, or the share of epsilon that the determinant alone may spend, or
    leave it to the rule; the rest of epsilon buys the noise.
    """
    norms, search = settings.norms(dimension), None
    if settings.leaves_norm_open and may_be_free(risk):
        norms = RowNorms(squared=Fraction(dimension))
        share = norm_share(rows, epsilon) if dimension > 1 else 0.0
        if share > 0.0:
            nats = Fraction(float(share * epsilon))
            search = NormSearch(dimension=dimension, epsilon=nats, adjacency=adjacency)
    penalty, first = _penalties(settings, risk, dimension, epsilon, rows, norms.squared)
    # Up: a larger leverage costs more, and what is charged must not be less than what is spent.
    q = Fraction(float_up(leverage(norms.squared, penalty, first)))
    # What the search for a norm and the dither of the answer cost comes off first; the rest pays
    # for noise and determinant (docs/theory/perturbed_optimum.md, section 2).
    budget = epsilon - 2 * dither - (0 if search is None else search.epsilon)
    if budget <= 0:
        raise ParameterError(f"`epsilon` of {OWNER} must be larger for these settings.")
    row_nats = greatest_row_nats(risk, adjacency, q, budget)
    spent = spent_by_row(risk, adjacency, row_nats, q)
    noise = settings.noise_norm(risk, dimension, norms.squared)
    return OptimumTerms(
        risk=risk,
        dimension=dimension,
        epsilon=epsilon,
        adjacency=adjacency,
        norms=norms,
        penalty=penalty,
        intercept_penalty=first,
        noise=noise,
        rate=noise_rate(risk, noise, row_nats, norms.squared, norms.total),
        row_nats=row_nats,
        leverage=q,
        determinant=Fraction(float_up(spent - adjacency.rows_moved * row_nats)),
        dither=dither,
        search=search,
    )


def may_be_free(risk: Risk) -> bool:
    """Return whether ``phi''`` falls as ``|phi'|`` grows: then a determinant may be free."""
    return risk.margins == 1 and risk.curvature_bound[2] > 0


def _penalties(
    settings: RegressionSettings,
    risk: Risk,
    dimension: int,
    epsilon: Fraction,
    rows: int | None,
    squared: Fraction,
) -> tuple[Fraction, Fraction]:
    """Return the penalties of the columns and of the first one, float64 numbers."""
    penalty, first = (
        None if number is None else Fraction(number)
        for number in (settings.penalty, settings.intercept_penalty)
    )
    if penalty is None:
        share = settings.share
        if share is None and may_be_free(risk):
            penalty = penalty_of(default_leverage(risk, dimension, rows, epsilon), squared, first)
        else:
            if share is None:
                share = default_share(risk, dimension, rows, epsilon)
            if not 0 < share < 1:
                raise ParameterError(f"`share` of {OWNER} must be strictly between 0 and 1.")
            penalty = least_penalty(risk, squared, Fraction(share) * epsilon, first)
    penalty = Fraction(float_up(penalty))
    first = penalty if first is None else Fraction(float_up(first))
    if min(penalty, first) < _LEAST_PENALTY:
        raise ParameterError(f"a penalty of {OWNER} must be at least 2^-40.")
    return penalty, first
