"""ConstantTabulated: the whole lattice in a table, and a number of rounds that is public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins, ExponentialTable, SteadyTable
from expmech.domains import Indices
from expmech.samplers.base import CONSTANT, Check, Claimed, check_equal
from expmech.samplers.chain import Chain
from expmech.samplers.runtime_chains import RoundsChain
from expmech.samplers.tabulated import Tabulated
from expmech.target import Target

ROUNDS = 2
"""Rounds of every draw. Both are refused with probability 2^-64, whatever the data are."""


@dataclass(frozen=True, kw_only=True)
class TableRounds(RoundsChain):
    """Rounds that look energies up in a table."""

    indices: Indices
    table: SteadyTable

    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Draw points by their share; each round is accepted with the same public probability."""
        index, accepted = self.table.propose(coins, size)
        return self.indices[index], accepted


class ConstantTabulated(Tabulated):
    """Draw exactly from ``(1 - 2^-64) f + 2^-64 u``, u uniform, by two rounds from a table.

    Notes
    -----
    The table has every point of a lattice of at most 2^22. A round is accepted with the public
    probability ``1 - 2^-32``, so the share of u is public too: the value is epsilon-DP as f is, and
    nothing is reserved. Cost: one loss evaluation a lattice point. Theory page:
    docs/theory/conf_atom_and_runtime_perfect.md.
    """

    timing = CONSTANT
    lists_first = False

    def describe(self) -> dict[str, Any]:
        """Return the number of rounds."""
        return super().describe() | {"rounds": ROUNDS}

    def bind(self, target: Target, indices: Indices, table: ExponentialTable) -> Chain[Any]:
        """Return the chain whose rounds are accepted with a public probability."""
        return TableRounds(target=target, rounds=ROUNDS, indices=indices, table=SteadyTable(table))

    def verify(self, claimed: Claimed) -> list[Check]:
        """Compare the number of rounds too."""
        rounds = check_equal("rounds", claimed.parameters["rounds"], ROUNDS)
        return [*super().verify(claimed), rounds]
