"""Losses that are sums over coordinates: d one-dimensional exact draws."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Box, Indices
from expmech.errors import EnvelopeViolatedError, UnsupportedError
from expmech.samplers.base import DATA_DEPENDENT
from expmech.samplers.rejection import VIOLATION
from expmech.samplers.separable_tree import SeparableTreeChain, make_tree_chain, term_energies
from expmech.target import ENERGY_ROUNDING, Energies, Target
from expmech.target.calibration import ENERGY_CAP

MOST_COORDINATES = 1 << 14
FLAT = (
    2.0 * UNITS_PER_NAT
)  # here the acceptance of uniform and of Laplace proposals is about equal, 0.43 at worst
_SAFE = 2.0**-45  # covers the float64 rounding of a product of five factors, on the safe side
_UNSUPPORTED = (
    "Separable needs a Box of at most 2^14 coordinates and a loss that declares its"
    " `terms(coordinates, values)` and its `growth`, its `lipschitz` constants or its"
    " `terms_lower_bound(coordinates, lower, upper)`; {}. Use Rejection or BoxTree."
)


@dataclass(frozen=True)
class SeparableState:
    """The coordinates accepted so far of each copy, and which are still open."""

    indices: Indices
    open: NDArray[np.bool_]
    proposals: NDArray[np.int64]
    done: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SeparableChain:
    """Propose every open coordinate from a discrete Laplace law about its center.

    Or uniformly where its slope is 0.

    Certified: ``E_j(i) + offset_j >= slope_j |i - center_j|`` on the box.
    """

    target: Target
    center: NDArray[np.int64]
    slopes: NDArray[np.int64]
    offsets: Energies
    timing: str = DATA_DEPENDENT
    delta: float = 0.0
    assumptions: tuple[str, ...] = (VIOLATION,)

    @property
    def parameters(self) -> dict[str, Any]:
        """The sampler's name."""
        return {"sampler": "Separable"}

    def start(self, coins: Coins, size: int) -> SeparableState:
        """Return copies with every coordinate open."""
        shape = (size, self.target.domain.dimension)
        return SeparableState(
            indices=np.zeros(shape, dtype=np.int64),
            open=np.ones(shape, dtype=np.bool_),
            proposals=np.zeros(size, dtype=np.int64),
            done=np.zeros(size, dtype=np.bool_),
        )

    def step(self, state: SeparableState, coins: Coins) -> SeparableState:
        """Propose each open coordinate of each copy once."""
        copies, columns = np.nonzero(state.open)
        proposed = self._draw(coins, columns)
        inside = np.flatnonzero((proposed >= 0) & (proposed < self._box.points_per_axis))
        columns, copies, proposed = columns[inside], copies[inside], proposed[inside]
        drawn_with = self.slopes[columns] * np.abs(proposed - self.center[columns])
        deficit = self.energy(columns, proposed) + self.offsets[columns] - drawn_with
        if deficit.size and deficit.min() < 0:
            raise EnvelopeViolatedError
        accepted = np.flatnonzero(coins.bernoulli_exp(deficit))
        indices, open_ = state.indices.copy(), state.open.copy()
        indices[copies[accepted], columns[accepted]] = proposed[accepted]
        open_[copies[accepted], columns[accepted]] = False
        return SeparableState(
            indices=indices,
            open=open_,
            proposals=state.proposals + state.open.sum(axis=1),
            done=np.asarray(~open_.any(axis=1)),
        )

    @property
    def _box(self) -> Box:
        assert isinstance(self.target.domain, Box)
        return self.target.domain

    def _draw(self, coins: Coins, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        slopes = self.slopes[columns]
        proposed = self.center[columns]
        for slope in np.unique(slopes).tolist():
            same = np.flatnonzero(slopes == slope)
            if slope:
                proposed[same] += coins.discrete_laplace(Fraction(slope, UNITS_PER_NAT), len(same))
            else:
                proposed[same] = coins.integers_below(self._box.points_per_axis, len(same))
        return proposed

    def energy(self, columns: NDArray[np.int64], indices: NDArray[np.int64]) -> Energies:
        """Return the energies of the terms ``columns`` at ``indices``."""
        return term_energies(self.target, columns, indices)

    def values(self, state: SeparableState) -> NDArray[Any]:
        """Return the accepted points."""
        return self.target.domain.values(state.indices)


class Separable:
    """Draw exactly from f(y) ~ exp(-sum_j E_j(y_j)).

    A loss that is a sum over the coordinates of a box, coordinate by coordinate.

    Notes
    -----
    Precondition: a Box; the loss offers ``terms(coordinates, values)``, the losses L_j of which it
    is the sum, and each term grows as its ``growth`` says: ``L_j >= rates_j |y_j - center_j| -
    slack``. Without growth, ``lipschitz`` constants or a ``terms_lower_bound(coordinates, lower,
    upper)`` over intervals will do: each coordinate is then drawn by a box tree. Law: coordinates
    are independent, each exactly ``exp(-E_j)``. Expected proposals: linear in d; with growth about
    one a coordinate, or two where the box binds. Theory page: docs/theory/separable.md.
    """

    reserve = Fraction(
        2 * MOST_COORDINATES, UNITS_PER_NAT
    )  # one unit either way for each separately rounded term

    def prepare(self, target: Target) -> SeparableChain | SeparableTreeChain:
        """Certify an offset for every coordinate.

        Or bound every coordinate's term over its axis.
        """
        domain, growth = self.validate(target), target.problem.growth
        if growth is None:
            return make_tree_chain(target)
        form = target.integer
        if form is not None:
            center = (2 * form.sums + form.count) // (2 * form.count)
            offsets = form.slopes * np.abs(form.count * center - form.sums)
            return SeparableChain(
                target, center, _flat_to_zero(form.slopes * form.count, domain), offsets
            )
        scale = target.eta * UNITS_PER_NAT
        rise = scale * growth.rates * (1.0 - _SAFE)
        most = ENERGY_CAP // (2 * domain.points_per_axis * domain.dimension)
        slopes = np.minimum(np.floor(rise * domain.steps), most).astype(np.int64)
        nearest = np.clip(growth.center, domain.lower, domain.upper)
        center = np.clip(domain.locate(nearest), 0, domain.points_per_axis - 1)
        away = np.abs(domain.points(center[None])[0] - nearest) + 4.0 * domain.value_errors
        error = (
            scale * (max(growth.slack, 0.0) + target.loss_error) * (1.0 + _SAFE) + ENERGY_ROUNDING
        )
        beyond = np.maximum(
            rise * np.abs(nearest - growth.center)
            - scale * 4.0 * domain.value_errors * growth.rates,
            0.0,
        )
        offsets = np.ceil(
            slopes / domain.steps * away * (1.0 + _SAFE) + error - beyond * (1.0 - _SAFE)
        )
        # where a term saturates, at 2^60 / d, half of that is left for its slope and half for a
        # negative offset
        certified = np.clip(offsets, -(ENERGY_CAP // (2 * domain.dimension)), ENERGY_CAP).astype(
            np.int64
        )
        return SeparableChain(target, center, _flat_to_zero(slopes, domain), certified)

    @staticmethod
    def validate(target: Target) -> Box:
        """Return the domain; raise, on public grounds, where the sampler does not apply."""
        domain, growth, loss = target.domain, target.problem.growth, target.problem.loss
        if not isinstance(domain, Box) or domain.dimension > MOST_COORDINATES:
            raise UnsupportedError(_UNSUPPORTED.format("this domain is another"))
        bounded = target.problem.lipschitz is not None or hasattr(loss, "terms_lower_bound")
        if not hasattr(loss, "terms") or (growth is None and not bounded):
            raise UnsupportedError(_UNSUPPORTED.format("this loss does not"))
        if growth is not None and target.integer is None:
            rise = target.eta * UNITS_PER_NAT * growth.rates * (1.0 - _SAFE)
            if ((rise * domain.steps < 1) & (rise * domain.widths > FLAT)).any():
                raise UnsupportedError(
                    _UNSUPPORTED.format(
                        "this one's energy rises by less than 2^-40 nats a lattice step"
                    )
                )
        return domain


def _flat_to_zero(slopes: NDArray[np.int64], domain: Box) -> NDArray[np.int64]:
    """Set to 0 the slopes so small that most Laplace proposals would miss the box; public."""
    return np.where(slopes * float(domain.points_per_axis) < FLAT, 0, slopes)
