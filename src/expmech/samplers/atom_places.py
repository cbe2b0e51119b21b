"""An atom at a minimiser of the loss drawn at random, as the proof of Theorem 2 begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.domains import Indices
from expmech.errors import UnsupportedError
from expmech.samplers.atom import AtomKernel
from expmech.samplers.atom_chains import AtomState, ConfAtomChain
from expmech.samplers.chain import join, select
from expmech.target import SMALL_TABLE, Target


@dataclass(frozen=True)
class PlacedState(AtomState):
    """Where each copy is, and which minimiser its atom lies at."""

    place: NDArray[np.int64]


@dataclass(frozen=True)
class PlacedChain:
    """A chain of ConfAtomPerfect whose atom lies at a minimiser drawn uniformly, a copy each.

    Its law is f wherever the atom lies, so also with the place drawn; only time moves.
    """

    kernel_at: Callable[[int], AtomKernel]
    count: int

    @property
    def kernel(self) -> AtomKernel:
        """The kernel of the first place."""
        return self.kernel_at(0)

    def start(self, coins: Coins, size: int) -> PlacedState:
        """Draw a place and start there."""
        place = coins.integers_below(self.count, size)
        at = ConfAtomChain(self.kernel).start(coins, size)
        return PlacedState(**vars(at), place=place)

    def step(self, state: PlacedState, coins: Coins) -> PlacedState:
        """Make one step of the kernel of each copy's place."""
        parts, rows = [], []
        for place in np.unique(state.place).tolist():
            at = np.flatnonzero(state.place == place)
            parts.append(ConfAtomChain(self.kernel_at(place)).step(select(state, at), coins))
            rows.append(at)
        return join(parts, rows)

    def values(self, state: PlacedState) -> NDArray[Any]:
        """Return the points at which the tags fell."""
        return self.kernel.target.domain.values(state.indices)


def need_minimisers(target: Target) -> None:
    """Raise, on public grounds, where minimisers cannot be listed."""
    if not target.domain.is_listable(SMALL_TABLE):
        raise UnsupportedError(
            "ConfAtomPerfect(location='minimiser') lists every minimiser, on lattices of at most"
            f" {SMALL_TABLE} points. Use fewer bits, or location='answer'."
        )


def minimisers(target: Target) -> Indices:
    """Return the lattice points of least energy."""
    if target.table is None:
        raise UnsupportedError("ConfAtomPerfect found no table of energies here.")
    indices = target.table[0]
    energies = target.energy(indices)
    return np.asarray(indices[energies == energies.min()])
