"""The chain of Metropolis: a fixed number of steps from a public uniform start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.domains import Indices
from expmech.kernels import Kernel
from expmech.samplers.chain import FixedChain
from expmech.samplers.moves import metropolis_move
from expmech.target import Energies, Target


@dataclass(frozen=True)
class MetropolisState:
    """Where each copy is."""

    indices: Indices
    energies: Energies
    proposals: NDArray[np.int64]
    done: NDArray[np.bool_]


@dataclass(frozen=True)
class MetropolisChain(FixedChain):
    """A fixed number of steps from a public uniform start."""

    target: Target
    steps: int
    kernel: Kernel
    delta: float

    @property
    def length(self) -> int:
        """Steps of every copy."""
        return self.steps

    def start(self, coins: Coins, size: int) -> MetropolisState:
        """Return copies at independent uniform points."""
        indices = self.target.draw_uniform(coins, size)
        return MetropolisState(
            indices=indices,
            energies=self.target.energy(indices),
            proposals=np.zeros(size, dtype=np.int64),
            done=np.zeros(size, dtype=np.bool_),
        )

    def step(self, state: MetropolisState, coins: Coins) -> MetropolisState:
        """Advance every copy by one Metropolis step."""
        indices, energies = metropolis_move(
            self.target, state.indices, state.energies, coins, self.kernel, even=True
        )
        proposals = state.proposals + 1
        return MetropolisState(indices, energies, proposals, proposals >= self.steps)

    def values(self, state: MetropolisState) -> NDArray[Any]:
        """Return the final points."""
        return self.target.domain.values(state.indices)
