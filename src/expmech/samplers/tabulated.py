"""The whole lattice in a table: the classical discrete mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins, ExponentialTable
from expmech.domains import Indices
from expmech.errors import UnsupportedError
from expmech.samplers.base import DATA_DEPENDENT
from expmech.target import TABLE_LIMIT, Target

TOO_LARGE = (
    f"Tabulated needs a lattice of at most {TABLE_LIMIT} points; this domain has more. Use"
    " Rejection, or fewer bits."
)


@dataclass(frozen=True)
class TableState:
    """The drawn point of each copy, once accepted."""

    indices: Indices
    proposals: NDArray[np.int64]
    done: NDArray[np.bool_]


@dataclass(frozen=True)
class TableChain:
    """Draw by integer weight, correct by an exact coin."""

    target: Target
    indices: Indices
    table: ExponentialTable
    batch: int | None = None
    timing: str = DATA_DEPENDENT
    delta: float = 0.0
    assumptions: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The sampler's name."""
        return {"sampler": "Tabulated"}

    def start(self, coins: Coins, size: int) -> TableState:
        """Return copies that have drawn nothing."""
        return TableState(
            indices=np.zeros((size, self.target.domain.dimension), dtype=np.int64),
            proposals=np.zeros(size, dtype=np.int64),
            done=np.zeros(size, dtype=np.bool_),
        )

    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Draw indices by weight; accept each or not."""
        index, accepted = self.table.propose(coins, size)
        return self.indices[index], accepted

    def step(self, state: TableState, coins: Coins) -> TableState:
        """Make one proposal a copy."""
        indices, accepted = self.propose(coins, len(state.proposals))
        return TableState(indices=indices, proposals=state.proposals + 1, done=accepted)

    def values(self, state: TableState) -> NDArray[Any]:
        """Return the drawn points."""
        return self.target.domain.values(state.indices)


class Tabulated:
    """Draw exactly from f(y) ~ exp(-E(y)) on at most 2^22 points by evaluating every one.

    Notes
    -----
    Law: f. Cost: one loss evaluation a lattice point, then about one proposal a draw. Theory page:
    docs/theory/rejection.md.
    """

    reserve = Fraction(0)

    def prepare(self, target: Target) -> TableChain:
        """Evaluate the energies of the whole lattice."""
        if target.table is None:
            raise UnsupportedError(TOO_LARGE)
        return TableChain(target, *target.table)
