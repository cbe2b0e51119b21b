"""The whole lattice in a table: the classical discrete mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins, ExponentialTable
from expmech.cost import Forecast, forecast_constant
from expmech.domains import Indices
from expmech.errors import UnsupportedError
from expmech.samplers.base import Sampler, Terms
from expmech.samplers.chain import Chain, MemorylessChain
from expmech.target import TABLE_LIMIT, Target

TOO_LARGE = (
    f"A table needs a lattice of at most {TABLE_LIMIT} points; this domain has more. Use"
    " Rejection, or fewer bits."
)


@dataclass(frozen=True)
class TableChain(MemorylessChain):
    """Draw by integer weight, correct by an exact coin."""

    target: Target
    indices: Indices
    table: ExponentialTable
    batch: int | None = None

    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Draw indices by weight; accept each or not."""
        index, accepted = self.table.propose(coins, size)
        return self.indices[index], accepted


class Tabulated(Sampler):
    """Draw exactly from f(y) ~ exp(-E(y)) on at most 2^22 points by evaluating every one.

    Notes
    -----
    Law: f. Cost: one loss evaluation a lattice point, then about one proposal a draw. Theory page:
    docs/theory/rejection.md.
    """

    automatic = True
    bounded_range = True
    lists_first = True
    serves_base = True

    def terms(self, target: Target) -> Terms:
        """Refuse a lattice that is too large."""
        if not target.is_small:
            raise UnsupportedError(TOO_LARGE)
        return super().terms(target)

    def prepare(self, target: Target) -> Chain[Any]:
        """Evaluate the energies of the whole lattice."""
        if target.table is None:
            raise UnsupportedError(TOO_LARGE)
        return self.bind(target, *target.table)

    def bind(self, target: Target, indices: Indices, table: ExponentialTable) -> Chain[Any]:
        """Return the chain that draws from the table."""
        return TableChain(target, indices, table)

    def forecast(self, target: Target) -> Forecast:
        """Count the lattice points."""
        self.terms(target)
        return forecast_constant(round(math.exp(target.domain.log_size)))
