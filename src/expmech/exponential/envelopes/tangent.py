"""The tangent envelope of a convex loss on a box: a product of truncated geometric laws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expmech.core.arrays import Floats, Integers
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import UnsupportedError
from expmech.domains import Indices
from expmech.exponential.envelopes.base import BoundEnvelope, Envelope
from expmech.exponential.envelopes.cells import CellBounds, certify
from expmech.exponential.envelopes.uniform import Uniform
from expmech.exponential.target import ENERGY_CAP, Energies, Target

_STEPS = 40  # of the descent to the point of contact
_LONGER, _SHORTER = 1.5, 0.25
ABOVE = 1.0 + 2.0**-40  # more than float64 sums of the offset's parts can lose


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundTangent:
    """``R(i) = sum_j |slopes_j| d_j`` on the box.

    ``d_j`` counts the steps from the end of axis j where the plane is lowest.
    """

    slopes: Integers
    points_per_axis: int
    offset: int
    units_per_nat: int = UNITS_PER_NAT

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw every coordinate from its truncated geometric law.

        That is a geometric variable modulo the number of points.
        """
        indices = np.empty((size, self.slopes.size), dtype=np.int64)
        energies = np.zeros(size, dtype=np.int64)
        for j, slope in enumerate(self.slopes.tolist()):
            if slope == 0:
                indices[:, j] = coins.integers_below(self.points_per_axis, size)
                continue
            rate = Fraction(abs(slope), self.units_per_nat)
            # a geometric number modulo N has mass proportional to exp(-rate k) on 0 .. N - 1
            steps = coins.geometric(rate, size) % self.points_per_axis
            indices[:, j] = steps if slope > 0 else self.points_per_axis - 1 - steps
            energies += abs(slope) * steps
        return indices, energies

    def log_mass(self) -> float:
        """Return the log of the sum of exp(-R) over the box."""
        total = 0.0
        for slope in np.abs(self.slopes).tolist():
            rate = slope / self.units_per_nat
            points = float(self.points_per_axis)
            total += (
                math.log(math.expm1(-rate * points) / math.expm1(-rate))
                if slope
                else math.log(points)
            )
        return total


class Tangent(Envelope):
    """Proposals by the tangent plane at one point, for a convex loss with a gradient on a box.

    Notes
    -----
    ``E(y) >= E(a) + g.(y - a)`` is a product of exponential laws on the sides of the box. It is
    good where the loss is steep all over the box, so that the law sits at a corner or on a face;
    along an axis whose slope vanishes at the optimum it is uniform. The point of contact is found
    by a fixed number of descent steps from the middle; any point gives the same law. Statement and
    proof: docs/theory/convex.md.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.GeometricMedian([[0.2], [0.3], [0.4]], lower=[0.0], upper=[1.0])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> mech.sample(epsilon=1.0, sampler=em.Rejection(em.Tangent()), seed=1).values.shape
    (1, 1)
    """

    name = "tangent"

    def bind(self, target: Target) -> BoundEnvelope:
        self.validate(target)
        bounds = certify(target)
        contact, energy, gradient = _descend(bounds)
        bound = touch(bounds, contact, energy, gradient)
        return Uniform().bind(target) if bound is None else bound

    def validate(self, target: Target) -> None:
        """Refuse a domain that is no box, and a loss not known to be convex with a gradient."""
        if target.box is None:
            kind = type(target.domain).__name__
            raise UnsupportedError(f"Tangent needs a Box; got {kind}. Use the Uniform envelope.")
        need_gradient(target, "Tangent")


def need_gradient(target: Target, envelope: str) -> None:
    """Raise unless the loss is known to be convex with a gradient."""
    if target.integer is not None or target.problem.gradient is None:
        raise UnsupportedError(
            f"{envelope} needs a loss with `convex = True` and a `gradient(points)`; this one"
            " declares none. Declare them, or use another envelope."
        )


def touch(
    bounds: CellBounds, contact: Indices, energy: int, gradient: Floats
) -> BoundTangent | None:
    """Return the envelope of the plane that touches at ``contact``.

    Return None where energies saturate: an energy at the cap gives no tangent.
    """
    if energy <= -ENERGY_CAP:
        return None
    points, d = bounds.box.points_per_axis, bounds.box.dimension
    most = ENERGY_CAP // (2 * points * d)  # so R is at most 2^59, also where E saturates
    slopes = np.rint(np.clip(gradient, -float(most), float(most))).astype(np.int64)
    ahead, behind = points - 1 - contact, contact
    # the plane that is drawn has whole slopes; what rounding them loses is paid in the offset
    rest = gradient - slopes
    slack = np.maximum(-rest * ahead, rest * behind) + bounds.tangent_errors(
        np.maximum(ahead, behind) + bounds.fuzz, gradient
    )
    height = int((np.abs(slopes) * np.where(slopes > 0, behind, ahead)).sum())
    offset = height - energy + math.ceil((float(slack.sum()) + bounds.allowance) * ABOVE)
    if not -ENERGY_CAP // 2 <= offset <= ENERGY_CAP:  # energies may saturate below the plane
        return None
    return BoundTangent(
        slopes=slopes,
        points_per_axis=points,
        offset=offset,
        units_per_nat=bounds.target.units_per_nat,
    )


def _descend(bounds: CellBounds) -> tuple[Indices, int, Floats]:
    """Return a point of small energy with its energy and its gradient in units per lattice step."""
    points = bounds.box.points_per_axis
    contact = np.full(bounds.box.dimension, points // 2, dtype=np.int64)
    energies, gradients = bounds.evaluate(contact[None, :])
    energy, gradient, share = int(energies[0]), gradients[0], 0.5
    for _ in range(_STEPS):
        steepest = float(np.abs(gradient).max())
        if steepest == 0.0:
            break
        tried = np.clip(
            contact - np.rint(gradient * (share * points / steepest)).astype(np.int64),
            0,
            points - 1,
        )
        energies, gradients = bounds.evaluate(tried[None, :])
        if int(energies[0]) < energy:
            contact, energy, gradient, share = (
                tried,
                int(energies[0]),
                gradients[0],
                min(1.0, share * _LONGER),
            )
        else:
            share *= _SHORTER
    return contact, energy, gradient
