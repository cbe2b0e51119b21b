"""The envelope for smooth convex losses.

Discrete Gaussians on shells, seen through an affine map.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import flint
import numpy as np

from expmech.certificates.forecast import Forecast
from expmech.core.arrays import Flags, Integers
from expmech.core.coins import Coins, draw_discrete_gaussian
from expmech.core.errors import UnsupportedError, validate_positive
from expmech.domains import Indices
from expmech.exponential.envelopes.affine_map import RoundedImage
from expmech.exponential.envelopes.base import BoundEnvelope, Envelope, need_grid
from expmech.exponential.envelopes.convex_bound import Shells, promise
from expmech.exponential.envelopes.convex_fit import Tilt, fit_convex
from expmech.exponential.envelopes.uniform import BoundUniform, cheapest, forecast_fitted
from expmech.exponential.target import ENERGY_CAP, ENERGY_ROUNDING, Energies, Target

# proposals to one uniform one: most of them are refused before the loss is looked at, of uniform
# ones none
IDLE = 16.0


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundConvex(RoundedImage):
    """Points ``y = floor(T (u + xi) + t)``, ``P(u) ~ exp(-R(u))``, R given on shells of ``|u|^2``.

    Xi uniform in the unit cube.

    With a tilt the first coordinate of u is not part of the length: it is at least 0 and adds
    ``tilt.slope`` a step to R.
    """

    shells: Shells
    offset: int
    tilt: Tilt | None = None

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw u from a shell's Gaussian, kept if it falls into that shell; return its image."""
        steps, energies, kept = self._propose_steps(coins, size)
        indices = np.full(
            steps.shape, -1, dtype=np.int64
        )  # outside every lattice: a proposal like any other, and refused
        rows = np.flatnonzero(kept)
        indices[rows] = self.draw_images(steps[rows], kept[rows], coins)
        return indices, energies

    def log_mass(self) -> float:
        """Return the log of the mass of the proposals, in lattice points.

        A draw takes ``exp(offset + log_mass) / Z_f`` proposals on average.
        """
        with flint.ctx.workprec(128):
            total = float(sum(self.shells.masses(self._round_dimension, 64), flint.arb(0)).log())
        tilted = (
            0.0
            if self.tilt is None
            else -math.log(-math.expm1(-self.tilt.slope / self.shells.units_per_nat))
        )
        return total + tilted + self.map.log_determinant()

    @property
    def _round_dimension(self) -> int:
        """How many coordinates of u the shells are about."""
        return len(self.map.shift) - (self.tilt is not None)

    def _propose_steps(self, coins: Coins, size: int) -> tuple[Integers, Energies, Flags]:
        """Return u, its energy R, and whether it is kept."""
        p, shells = self._round_dimension, self._draw_shells(coins, size)
        steps = np.zeros((size, p), dtype=np.int64)
        for shell in np.unique(shells).tolist():
            rows = np.flatnonzero(shells == shell)
            steps[rows] = draw_discrete_gaussian(
                coins, self.shells.slopes[shell], rows.size * p, self.shells.units_per_nat
            ).reshape(rows.size, p)
        # longer than the last edge and refused, before its square could overflow
        limit = math.isqrt(self.shells.edges[-1]) + 1
        np.clip(steps, -limit, limit, out=steps)
        squares = (steps * steps).sum(axis=1)
        edges, heights, slopes = (
            np.array(candidate, dtype=np.int64)
            for candidate in (self.shells.edges, self.shells.heights, self.shells.slopes)
        )
        kept = (squares >= edges[shells]) & (squares < edges[shells + 1])
        squares[~kept] = 0
        energies = heights[shells] + slopes[shells] * squares
        if self.tilt is None:
            return steps, energies, kept
        first = coins.geometric(Fraction(self.tilt.slope, self.shells.units_per_nat), size)
        kept &= first < self.tilt.last  # larger ones reach no point of the domain
        first[~kept] = 0
        return np.column_stack([first, steps]), energies + self.tilt.slope * first, kept

    def _draw_shells(self, coins: Coins, size: int) -> Integers:
        """Draw shells by the masses of their Gaussians: in order, each against all that follow."""
        drawn = np.zeros(size, dtype=np.int64)
        open_ = np.arange(size)
        for shell in range(len(self.shells.slopes) - 1):
            enclosure = partial(self._enclose_share, shell)
            open_ = open_[~coins.bernoulli(np.full(open_.size, self._shares[shell]), enclosure)]
            drawn[open_] = shell + 1
        return drawn

    @cached_property
    def _shares(self) -> list[float]:
        return [
            float(self._enclose_share(shell, 0, 64)) for shell in range(len(self.shells.slopes))
        ]

    def _enclose_share(self, shell: int, row: int, precision: int) -> flint.arb:
        """Enclose the mass of a shell's Gaussian over that of its own and all that follow.

        Any row.
        """
        with flint.ctx.workprec(precision + 64):
            masses = self.shells.masses(self._round_dimension, precision)[shell:]
            return masses[0] / sum(masses, flint.arb(0))


class Convex(Envelope):
    """Proposals by the curvature at the optimum, for a smooth convex loss that declares it.

    The loss declares it as :class:`~expmech.losses.Curvature`.

    Parameters
    ----------
    slack : float, default 0.00390625
        Nats that the grid of u may cost. A smaller one makes longer integers.

    Notes
    -----
    The loss promises a rise above its value at one point: quadratic near it, linear far away. The
    proposal has that rise, in coordinates that whiten the curvature, up to a few hundredths of a
    nat; where the edge of the domain holds the optimum it also follows the slope there. Evaluations
    per draw are about ``exp(skew p^1.5 / (6 sqrt(eta)))``, whatever the condition number. Where
    nothing can be certified, or uniform proposals are far fewer, the envelope is uniform, silently:
    that is confidential. Statement and proof: docs/theory/convex.md.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.LogisticRisk([[0.5], [-0.25], [0.75]], [1, 0, 1], penalty=1.0, radius=1.0)
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.L2Ball(1, 1.0))
    >>> mech.sample(epsilon=1.0, sampler=em.Rejection(em.Convex()), seed=1).values.shape
    (1, 1)
    """

    name = "convex"
    automatic = True

    def __init__(self, *, slack: float = 2.0**-8) -> None:
        self.slack = validate_positive(slack, name="slack", owner="Convex")

    def bind(self, target: Target) -> BoundEnvelope:
        self.validate(target)
        domain = need_grid(target, "Convex")
        box = domain.box
        curvature = target.problem.curvature
        if curvature is None:
            return BoundUniform(target=target, offset=-target.minimum_energy)
        promised, units = promise(curvature, domain, target), target.units_per_nat
        least = int((promised.base * units).floor()) - ENERGY_ROUNDING
        uniform = BoundUniform(
            target=target, offset=-max(target.minimum_energy, min(least, ENERGY_CAP))
        )
        candidates = [promised, promise(curvature, domain, target, tilted=True)]
        fitted = (
            BoundConvex(
                map=shells.map,
                shells=shells.shells,
                offset=shells.offset,
                tilt=shells.tilt,
                points_per_axis=box.points_per_axis,
            )
            for candidate in candidates[: 1 + candidates[1].is_steep]
            if (shells := fit_convex(candidate, box, self.slack, units)) is not None
        )
        return cheapest(uniform, fitted, units, idle=IDLE)

    def validate(self, target: Target) -> None:
        """Refuse a lattice that is no grid, and a loss that does not know its curvature."""
        need_grid(target, "Convex")
        if target.problem.find_curvature is None:
            raise UnsupportedError(
                "Convex needs a loss that knows its curvature; this one declares no `curvature`."
                " Use a loss such as LogisticRisk, declare an expmech.losses.Curvature, or use"
                " another envelope."
            )

    def forecast(self, target: Target) -> Forecast:
        """Forecast what the third derivative costs; never much more than uniform proposals."""
        self.validate(target)
        steepness, p = _steepness(target), target.domain.dimension
        usual = 0.8 + 3.3 * p / steepness
        fit = 150.0 + 50.0 * p  # calls of plain proposals; measured
        ranked = 0.6 * p**1.5 / steepness
        return forecast_fitted(target, usual, IDLE, calls=fit, log_ranked=ranked)


def _steepness(target: Target) -> float:
    """Return the root of the nats that the energy can rise by a unit of length."""
    if target.slopes is None:
        return math.inf
    widths = need_grid(target, "Convex").widths.tolist()
    rises = (slope / width for slope, width in zip(target.slopes, widths, strict=True))
    return math.sqrt(max(min(rises), 1e-300))
