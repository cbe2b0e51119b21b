"""What a kernel with an atom releases in the end: one step, enumerated from every state.

Theory page: docs/theory/auditing.md, section 4.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from expmech.auditing.enumeration import law_of
from expmech.coins import Coins
from expmech.domains import Indices
from expmech.errors import UnsupportedError
from expmech.samplers.atom import AtomKernel

_MOST = 16  # points of a lattice: every state is enumerated
_STEPS = 1 << 14  # after which a chain on so few points has long settled


def kernel_law(kernel: AtomKernel) -> tuple[dict[Hashable, float], list[float]]:
    """Return the law a kernel settles on away from its atom, and every state's chance of the atom.

    The kernel is the code that draws; on a lattice of a number with at most 16 points.
    """
    indices = kernel.target.domain.all_indices(_MOST)
    if indices is None:
        raise UnsupportedError(f"kernel_law takes lattices of at most {_MOST} points.")
    states = [(row[None, :], False) for row in indices] + [(indices[:1], True)]
    moves = np.zeros((len(states), len(states)))
    for number, (at, atom) in enumerate(states):

        def step(coins: Coins, at: Indices = at, atom: bool = atom) -> int:
            flags = np.array([atom])
            after = kernel.advance(at, kernel.target.energy(at), flags, coins, tag=False)
            return len(states) - 1 if after[2][0] else int(after[0][0, 0])

        law, _ = law_of(step, cut=1e-13)
        for reached, probability in law.items():
            moves[number, int(str(reached))] += probability
    moves /= moves.sum(axis=1)[:, None]  # the paths that were too unlikely to follow
    invariant = np.linalg.matrix_power(moves, _STEPS)[0, :-1]
    shares = (invariant / invariant.sum()).tolist()
    return dict(zip(map(tuple, indices.tolist()), shares, strict=True)), moves[:, -1].tolist()
