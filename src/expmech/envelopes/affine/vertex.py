"""The envelope at a vertex of an L1 ball that does not hold the solution.

It serves losses that are the largest residual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Ball, Indices
from expmech.envelopes.affine.rounding import RoundedImage
from expmech.envelopes.affine.vertex_fit import FittedVertex, fit_vertex
from expmech.envelopes.affine.vertex_search import find_vertex
from expmech.losses.base import AffineForm
from expmech.target import Energies, Target
from expmech.target.calibration import ENERGY_CAP


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundVertex(RoundedImage, FittedVertex):
    """Points ``floor(T (u + xi) + t(j))`` with ``P(u, j) ~ exp(-R)``.

    ``R = slope (level + max u)``, on a half-space of (u, j).

    The half-space is ``sum_i weights_i u_i >= floor + sum_q rise_q n_q``: n_q lattice points lie
    between the q-th of the other coordinates and zero, and its rise is the first of ``rises[q]``
    below zero, the second above. Theory: docs/theory/vertex.md.
    """

    columns: tuple[int, ...]
    others: tuple[int, ...]
    units_per_nat: int = UNITS_PER_NAT

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw u and the other coordinates, then the image of u."""
        steps, rest, kept = self.propose_steps(coins, size)
        indices = np.empty((size, len(self.columns) + len(self.others)), dtype=np.int64)
        known = rest if self.others else None
        indices[:, self.columns] = self.draw_images(steps, kept, coins, known)
        indices[:, self.others] = rest
        return indices, self.slope * (self.level + steps.max(axis=1))

    def propose_steps(
        self, coins: Coins, size: int
    ) -> tuple[NDArray[np.int64], Indices, NDArray[np.bool_]]:
        """Draw u, the indices of the other coordinates, and whether they are kept.

        Then they have the law above, exactly: the Lemma of docs/theory/vertex.md, whose H and t_0
        are ``height`` and ``least``, X the slacks and Omega the total.
        """
        total = sum(self.weights)
        rest = np.empty((size, len(self.others)), dtype=np.int64)
        height = np.full(size, self.floor, dtype=np.int64)
        for q, pair in enumerate(self.rises):
            rest[:, q], rise = self._draw_other(coins, pair, size)
            height += rise
        slacks = np.empty((size, len(self.weights)), dtype=np.int64)
        # slacks of different rows are independent: the half-space is a sum
        for i, weight in enumerate(self.weights):
            slacks[:, i] = coins.geometric(self._rate(weight), size)
        height += slacks @ np.array(self.weights)
        # t_0 is rounded up, and the coin takes back what that would cost too little
        least = -(-height // total)
        kept = coins.bernoulli_exp(least * total - height, rate=self._rate(1))
        highest = least + coins.geometric(self._rate(total), size)
        return highest[:, None] - slacks, rest, kept

    def log_mass(self) -> float:
        """Return the log of the proposal's mass in lattice points.

        ``exp(offset + log_mass) / Z_f`` proposals a draw. Z is that of the Lemma.
        """
        lowest = self.level + Fraction(self.floor, sum(self.weights))
        mass = -float(lowest * self.slope / self.units_per_nat)
        mass -= sum(math.log(self._refusal(weight)) for weight in self.weights)
        mass += sum(math.log(self._other_mass(pair)) for pair in self.rises)
        return mass + self.map.log_determinant()

    def _other_mass(self, pair: tuple[int, int]) -> float:
        """Return the mass of the steps of another coordinate, on both sides of zero."""
        return sum(1.0 / self._refusal(rise) for rise in pair)

    def _refusal(self, weight: int) -> float:
        """Return ``1 - exp(-rate)``: the probability that a geometric variable of it is 0."""
        return -math.expm1(-float(self._rate(weight)))

    def _rate(self, weight: int) -> Fraction:
        """Return the rate, in nats, at which a step of this weight costs energy."""
        return Fraction(self.slope * weight, sum(self.weights) * self.units_per_nat)

    def _draw_other(
        self, coins: Coins, pair: tuple[int, int], size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw the index of a coordinate by the cost of its distance from zero.

        Return it and that cost.
        """
        # zero is between two lattice points: ball lattices have an even number an axis
        middle = self.points_per_axis // 2
        low, high = pair
        enclosure = partial(self._enclose_above, pair)
        above = coins.bernoulli(np.full(size, float(enclosure(0, 64))), enclosure)
        distance = np.empty(size, dtype=np.int64)
        for rise, rows in ((low, np.flatnonzero(~above)), (high, np.flatnonzero(above))):
            drawn = coins.geometric(self._rate(rise), rows.size)
            distance[rows] = np.minimum(drawn, middle)  # from there on it is outside
        indices = np.where(above, middle + distance, middle - 1 - distance)
        return indices, np.where(above, high, low) * distance

    def _enclose_above(self, pair: tuple[int, int], row: int, precision: int) -> flint.arb:
        """Enclose the share of the mass above zero; any row.

        The masses below and above are ``1 / (1 - exp(-rate))``.
        """
        low, high = map(self._rate, pair)
        with flint.ctx.workprec(precision + 64):
            below = -(-flint.arb(flint.fmpq(low.numerator, low.denominator))).expm1()
            above = -(-flint.arb(flint.fmpq(high.numerator, high.denominator))).expm1()
            return below / (below + above)


def bind_vertex(
    target: Target, form: AffineForm, ball: Ball, slack: Fraction
) -> BoundVertex | None:
    """Return the envelope at the vertex where the loss is least.

    Return None where there is none to be certified.
    """
    vertex = find_vertex(form, ball)
    if vertex is None:
        return None
    fitted = fit_vertex(form, ball, target, slack, vertex)
    # energies and offsets are added in 64 bits, each at most the cap
    if fitted is None or fitted.offset > ENERGY_CAP:
        return None
    return BoundVertex(
        **vars(fitted),
        points_per_axis=ball.points_per_axis,
        columns=vertex.columns,
        others=vertex.others,
        units_per_nat=target.units_per_nat,
    )
