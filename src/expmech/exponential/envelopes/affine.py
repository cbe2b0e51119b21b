"""Envelopes for norms of affine functions: exact proposals seen through an affine map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from expmech.certificates.forecast import Forecast
from expmech.core.arrays import Flags, Integers
from expmech.core.coins import UNITS_PER_NAT, Coins, propose_cube_laplace
from expmech.core.errors import ParameterError, validate_choice, validate_positive
from expmech.domains import Grid, Indices
from expmech.domains.regions import NormBall
from expmech.exponential.envelopes.affine_fit import Split, Tail, choose_split, fit_affine_map
from expmech.exponential.envelopes.affine_map import RoundedImage
from expmech.exponential.envelopes.affine_vertex import bind_vertex
from expmech.exponential.envelopes.base import BoundEnvelope, Envelope, need_fact, need_grid
from expmech.exponential.envelopes.tangent import BoundTangent
from expmech.exponential.envelopes.uniform import Uniform, forecast_fitted
from expmech.exponential.target import ENERGY_CAP, Energies, Target
from expmech.losses.base import AffineForm


@dataclass(frozen=True)
class UniformRest:
    """``R = 0`` on a domain of some coordinates."""

    domain: Grid

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw uniform points."""
        return self.domain.draw_uniform(coins, size), np.zeros(size, dtype=np.int64)

    def log_mass(self) -> float:
        """Return the log of the number of points."""
        return self.domain.log_size


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundAffine(RoundedImage):
    """Points with some coordinates j from ``rest``, the others ``floor(T (u + xi) + t(j))``.

    xi is uniform in the unit cube and ``P(u) ~ exp(-R(u))`` with ``R = slope |u|``, or with a tail
    ``R = min(slope |u|, height + tail.slope |u|)``; the energy that ``rest`` gives j is added.
    Without a rest the map gives every coordinate.
    """

    slope: int
    offset: int
    tail: Tail | None = None
    split: Split
    rest: UniformRest | BoundTangent | None = None
    units_per_nat: int = UNITS_PER_NAT

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw the rest, then u, then its image."""
        others = None
        if self.rest is not None:
            others, before = self.rest.propose(coins, size)
        steps, energies, kept = self._propose_steps(coins, size)
        indices = np.empty((size, len(self.split.columns) + len(self.split.others)), dtype=np.int64)
        indices[:, self.split.columns] = self.draw_images(steps, kept, coins, others)
        if others is not None:
            indices[:, self.split.others] = others
            energies = energies + before
        return indices, energies

    def log_mass(self) -> float:
        """Return the log of the mass of the proposals, in lattice points.

        A draw takes ``exp(offset + log_mass) / Z_f`` proposals on average.
        """
        rate, p = self.slope / self.units_per_nat, len(self.map.shift)
        if self.map.norm == "l1":
            log_sum = -p * math.log(math.tanh(rate / 2.0))
        else:
            log_sum = p * math.log(2.0) + math.lgamma(p + 1.0) - p * math.log(-math.expm1(-rate))
        rest = 0.0 if self.rest is None else self.rest.log_mass()
        return (
            rest
            + log_sum
            + self.map.log_determinant()
            - math.log1p(-float(self._tail_share(0, 64)))
        )

    def _propose_steps(self, coins: Coins, size: int) -> tuple[Integers, Energies, Flags]:
        """Return u, its energy R, and whether it is kept."""
        if self.tail is None:
            steps, norms, kept = self._propose_slope(self.slope, coins, size)
            return steps, norms * self.slope, kept
        # a mixture of both slopes, each kept where its energy is the smaller one
        flat = coins.bernoulli(np.full(size, float(self._tail_share(0, 64))), self._tail_share)
        steps, norms, kept = (
            np.zeros((size, len(self.map.shift)), dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            flat.copy(),
        )
        for slope, rows in (
            (self.slope, np.flatnonzero(~flat)),
            (self.tail.slope, np.flatnonzero(flat)),
        ):
            if rows.size:
                steps[rows], norms[rows], kept[rows] = self._propose_slope(slope, coins, rows.size)
        steep, bent = norms * self.slope, self.tail.height + norms * self.tail.slope
        return steps, np.minimum(steep, bent), kept & ((bent < steep) == flat)

    def _propose_slope(
        self, slope: int, coins: Coins, size: int
    ) -> tuple[Integers, Integers, Flags]:
        p, rate = len(self.map.shift), Fraction(slope, self.units_per_nat)
        if self.map.norm == "l1":
            steps = coins.discrete_laplace(rate, size * p).reshape(size, p)
            return steps, np.abs(steps).sum(axis=1), np.ones(size, dtype=np.bool_)
        steps, kept = propose_cube_laplace(coins, p, rate, size)
        return steps, np.abs(steps).max(axis=1), kept

    def _tail_share(self, row: int, precision: int) -> flint.arb:
        """Enclose the share of the tail in the mixture, ``w / (1 + w)``.

        ``w = exp(-height) Z(tail.slope) / Z(slope)``; any row.
        """
        if self.tail is None:
            return flint.arb(0)
        with flint.ctx.workprec(precision + 64):
            rates = [
                flint.arb(flint.fmpq(slope, self.units_per_nat))
                for slope in (self.slope, self.tail.slope)
            ]
            steep, flat = (
                (rate / 2).tanh() if self.map.norm == "l1" else -(-rate).expm1() for rate in rates
            )
            weight = flint.arb(flint.fmpq(-self.tail.height, self.units_per_nat)).exp() * (
                steep / flat
            ) ** len(self.map.shift)
            return weight / (1 + weight)


class Affine(Envelope):
    """Proposals through the inverse map, for a loss ``|A y - b|`` in the L1 or the L-infinity norm.

    Parameters
    ----------
    slack : float, default 0.0009765625
        Nats that the grid of u may cost: p/2 steps of it. A smaller one makes longer integers.

    Notes
    -----
    With ``T ~ A^-1`` and ``t ~ A^-1 b`` the residual ``A y - b`` is nearly u: acceptance is near
    one in any dimension as long as the domain does not bind. Where it binds, only the stiff
    coordinates are solved for, given the others, which are drawn uniformly from a domain of the
    same kind; or the map is pulled toward the middle of the domain; or, for the largest residual on
    an L1 ball that does not hold the solution, proposals spread from the vertex where the loss is
    least. The choice has the least expected cost, in closed form up to the normaliser, and k = 0
    coordinates are uniform proposals: a draw costs at most what those cost, up to the certified
    offset. T need not be the inverse: the offset is certified, in rationals, from ``A T - I``, ``A
    t - b`` and the two grid steps. The choice is silent: it is confidential. Statements and proofs:
    docs/theory/affine.md, docs/theory/vertex.md.

    Examples
    --------
    >>> import expmech as em
    >>> rows, targets = [[0.5], [-0.25], [0.75]], [0.2, 0.1, 0.4]
    >>> loss = em.losses.RidgeGradient(rows, targets, penalty=1.0, radius=1.0)
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.L1Ball(1, 1.0))
    >>> mech.sample(epsilon=1.0, sampler=em.Rejection(em.Affine()), seed=1).values.shape
    (1, 1)
    """

    name = "affine"
    automatic = True

    def __init__(self, *, slack: float = 2.0**-10) -> None:
        self.slack = validate_positive(slack, name="slack", owner="Affine")

    def bind(self, target: Target) -> BoundEnvelope:
        form, domain = _need_form(target)
        p = domain.dimension
        validate_choice(form.norm, name="norm", owner="AffineForm", choices=("l1", "linf"))
        if form.matrix.shape != (p, p) or form.vector.shape != (p,):
            raise ParameterError(
                f"`matrix` and `vector` of AffineForm must have shapes ({p}, {p}) and ({p},) on"
                " this domain."
            )
        split = choose_split(form, domain, target)
        bound = None if split is None else bind_split(target, form, domain, self.slack, split)
        spread = bound or Uniform().bind(target)
        vertex = None
        if form.norm == "linf" and isinstance(domain, NormBall) and domain.norm == "l1":
            vertex = bind_vertex(target, form, domain, self.slack)
        if vertex is None:
            return spread
        units = target.units_per_nat
        # Both are certified. Which one is taken may depend on the data: it changes the time, not
        # the law.
        return min((spread, vertex), key=lambda rate: rate.offset / units + rate.log_mass())

    def validate(self, target: Target) -> None:
        """Refuse a lattice that is no grid, and a loss that declares no affine form."""
        _need_form(target)

    def forecast(self, target: Target) -> Forecast:
        """Near one proposal where the domain does not bind; never more than uniform ones."""
        self.validate(target)
        return forecast_fitted(target, _log_typical(target), calls=_FIT)


_FIT = 15.0  # calls of plain proposals that fitting is worth; measured


_NO_FORM = (
    "Affine needs a loss that declares its affine form, L(y) = |A y - b|; this one does not. Use a"
    " loss such as RidgeGradient, or another envelope."
)


def _need_form(target: Target) -> tuple[AffineForm, Grid]:
    domain = need_grid(target, "Affine")
    return need_fact(target.problem.affine, _NO_FORM), domain


def _log_typical(target: Target) -> float:
    """Guess, in nats, for features spread evenly over their bounds: a multiple of the identity.

    With s nats from the middle to the edge, solving for all coordinates leaves the domain rarely
    once s is above ``p^2 / 2`` (an L1 ball) or p; before that, uniform proposals and a law that
    reaches beyond the domain are both tried.
    """
    if target.slopes is None:
        return 0.0
    p, rise = len(target.slopes), max(min(target.slopes) / 4.0, 1e-300)
    domain = need_grid(target, "Affine")
    if isinstance(domain, NormBall) and domain.norm == "l1":
        # a point of the ball has all but one coordinate near 0
        uniform, corners, enough = rise * (math.log(p) + 0.6) / p, 2.0, p * p / 2
    else:
        uniform, corners, enough = rise, 1.0, float(p)
    solved = uniform + corners * math.lgamma(p + 1.0) - p * math.log(rise)
    return 0.0 if rise > enough else max(0.0, min(uniform, solved))


def bind_split(
    target: Target, form: AffineForm, domain: Grid, slack: Fraction, split: Split
) -> BoundAffine | None:
    """Return the envelope for a given split, or None where it cannot be certified."""
    fitted = fit_affine_map(form, domain, target, slack, split)
    if (
        fitted is None
        or min(fitted.slope, fitted.tail.slope if fitted.tail else 1) < 1
        or fitted.offset > ENERGY_CAP
    ):
        return None
    return BoundAffine(
        **vars(fitted),
        points_per_axis=domain.points_per_axis,
        split=split,
        rest=UniformRest(domain.restrict(split.others)) if split.others else None,
        units_per_nat=target.units_per_nat,
    )
