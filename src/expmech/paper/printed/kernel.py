"""The kernel the paper prints, on a lattice, and the three readings of its proposals.

With probability 1/2 propose the atom a, else y' from q; accept with the ratio of f~ and nothing
else. From a the proposal is q(a, .), and no Hastings factor makes up for it (errata, row 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expmech.core.arrays import Flags
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import UnsupportedError
from expmech.domains import Indices
from expmech.exponential.envelopes import ReentryLaw, Uniform
from expmech.exponential.envelopes.laplace import BoundProductLaplace
from expmech.exponential.samplers.atom import AtomKernel, moves_of
from expmech.exponential.target import ENERGY_CAP, Energies, Target

READINGS = ("rate", "scale", "uniform")
"""What q is: Laplace of rate alpha, Laplace of scale alpha, or uniform on the domain."""


def reading_rate(reading: str, alpha: float) -> float | None:
    """Return the Laplace rate per width of the box that a reading of alpha means; None: uniform."""
    if reading == "uniform":
        return None
    return alpha if reading == "rate" else 1.0 / alpha


def bind_reading(target: Target, rate: float | None) -> ReentryLaw:
    """Return q(a, .) about the minimiser of the loss; its offset is right in one dimension."""
    if rate is None:
        return Uniform().bind(target)
    center, points = locate_atom(target)
    slope = max(1, round(rate * UNITS_PER_NAT / points))
    slopes = np.full(len(center), slope, dtype=np.int64)
    bare = BoundProductLaplace(center=center, slopes=slopes, offset=0)
    # R - E is piecewise linear on each side of the minimiser: it is largest at an end or there.
    ends = np.array([np.zeros_like(center), center, np.full_like(center, points - 1)])
    offset = int((bare.energy(ends) - target.energy(ends)).max()) + slope
    return BoundProductLaplace(center=center, slopes=slopes, offset=offset)


def locate_atom(target: Target) -> tuple[NDArray[np.int64], int]:
    """Return the lattice point nearest to the minimiser, and the number of points per axis."""
    domain, growth = target.box, target.problem.growth
    if domain is None or growth is None:
        raise UnsupportedError("The printed algorithms need a Box, and a loss with its growth.")
    points = domain.points_per_axis
    return np.clip(domain.locate(growth.center), 0, points - 1), points


def log_share(target: Target) -> float:
    """Return ``log(Z_f / |Y|)``: minus the log density of a point of energy 0."""
    log_normaliser = target.log_normaliser()
    if log_normaliser is None:
        raise UnsupportedError(
            "The printed kernel needs the normaliser of f, which is known for Example 1 and on"
            " lattices small enough to add up."
        )
    return log_normaliser - target.domain.log_size


@dataclass(frozen=True)
class PrintedKernel(AtomKernel):
    """One plain transition of the printed kernel; ``weight`` is ``log f~(a)`` less ``log (1-k)``.

    ``by_value`` compares with a by value, as a machine would: the lattice point a *is* the atom.
    """

    by_value: bool = False

    @property
    def tag_energy(self) -> int:
        """No step of the printed kernel is tagged."""
        return ENERGY_CAP

    def _excess(self, indices: Indices, energies: Energies) -> Energies:
        """Return the log of ``f~(a) / f~(y)``: the factor q(a, y) is missing, as in the paper."""
        return self.weight + energies

    def advance(
        self, indices: Indices, energies: Energies, at_atom: Flags, coins: Coins, *, tag: bool
    ) -> tuple[Indices, Energies, Flags, Flags]:
        """Make one transition."""
        after = super().advance(indices, energies, at_atom, coins, tag=False)
        if not self.by_value:
            return after
        moved, moved_energies, landed, tagged = after
        at_value: NDArray[np.bool_] = (moved == atom_index(self.envelope)).all(axis=1)
        return moved, moved_energies, landed | at_value, tagged


def atom_index(envelope: ReentryLaw) -> NDArray[np.int64]:
    """Return the lattice point at which the confidential answer lies."""
    if not isinstance(envelope, BoundProductLaplace):
        raise UnsupportedError("`by_value` needs Laplace proposals, which are centred at a.")
    return envelope.center


def make_printed_kernel(
    target: Target, k: float, rate: float | None, *, by_value: bool = False
) -> PrintedKernel:
    """Return the printed kernel with ``f~(a) = (1-k) f(a) + k``.

    f is the density with respect to the uniform law, f(a) its largest value.
    """
    envelope = bind_reading(target, rate)
    share = log_share(target)
    lowest = int(target.energy(locate_atom(target)[0][None, :])[0]) / UNITS_PER_NAT
    log_atom = math.log((1.0 - k) * math.exp(-lowest - share) + k)
    weight = log_atom - math.log(1.0 - k) + share
    units = round(weight * UNITS_PER_NAT)
    return PrintedKernel(target, envelope, units, moves_of(envelope), by_value)
