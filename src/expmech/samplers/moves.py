"""One Metropolis move: what chains on a lattice are made of."""

from __future__ import annotations

import numpy as np

from expmech.coins import Coins
from expmech.domains import Indices
from expmech.kernels import Kernel
from expmech.target import Energies, Target


def metropolis_move(
    target: Target,
    indices: Indices,
    energies: Energies,
    coins: Coins,
    moves: Kernel,
    *,
    even: bool = False,
) -> tuple[Indices, Energies]:
    """Advance each row by one Metropolis step with a symmetric proposal; it leaves exp(-E) as is.

    Moves out of the domain are refused; ``even`` evaluates the loss and flips a coin for them too,
    where the row stands, so that how many there are shows neither in the evaluations nor in the
    coins.
    """
    proposed = moves.propose(target.domain, coins, indices)
    inside = target.contains(proposed)
    if even:
        new = target.energy(np.where(inside[:, None], proposed, indices))
        kept = inside & coins.bernoulli_exp(np.maximum(0, new - energies), rate=target.unit)
        return np.where(kept[:, None], proposed, indices), np.where(kept, new, energies)
    rows = np.flatnonzero(inside)
    moved, moved_energies = indices.copy(), energies.copy()
    if rows.size:
        new = target.energy(proposed[rows])
        kept = coins.bernoulli_exp(np.maximum(0, new - energies[rows]), rate=target.unit)
        moved[rows[kept]] = proposed[rows[kept]]
        moved_energies[rows[kept]] = new[kept]
    return moved, moved_energies
