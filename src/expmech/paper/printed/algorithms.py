"""Algorithms 1 to 3 and Corollary 2 as printed, and Algorithm 1 on the corrected kernel.

Study-only: each draws through :meth:`sample` from a seeded stream, and its :meth:`chain` can be
enumerated. Counts are simulated transitions, as in the paper's N_prop.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.certificates.mechanism import Draws
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins, ExponentialTable, LinearFactory
from expmech.core.errors import (
    UnsupportedError,
    validate_choice,
    validate_fraction,
    validate_positive,
)
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.samplers.atom import AtomKernel, moves_of, weight_for
from expmech.exponential.samplers.chain import flip, run
from expmech.exponential.samplers.conf_atom import (
    INNER,
    OUTER,
    FactoryAtomState,
    FactoryChain,
    factory_constants,
)
from expmech.exponential.target import Target
from expmech.paper.printed.kernel import READINGS, bind_reading, make_printed_kernel, reading_rate

_DENOMINATOR = 1 << 40


class _StudyOnly(ABC):
    """What the algorithms share: the reading of q, and a draw from a seeded stream.

    Parameters
    ----------
    k
        The paper's mixture weight.
    reading
        "rate" or "scale" (what alpha is to the Laplace law) or "uniform".
    alpha
        In units of the box's width; None takes the paper's choice n epsilon / 2, the energy of the
        target over the width of the box.
    """

    def __init__(
        self, k: float = 0.5, *, reading: str = "rate", alpha: float | None = None
    ) -> None:
        owner = type(self).__name__
        self.k = float(validate_fraction(k, name="k", owner=owner))
        self.reading = validate_choice(reading, name="reading", owner=owner, choices=READINGS)
        self.alpha = (
            None if alpha is None else float(validate_positive(alpha, name="alpha", owner=owner))
        )

    def rate(self, target: Target) -> float | None:
        """Return the Laplace rate of the proposals per width, or None for uniform ones."""
        alpha = target_slope(target) if self.alpha is None else self.alpha
        return reading_rate(self.reading, alpha)

    @abstractmethod
    def chain(self, target: Target) -> FactoryChain:
        """Return the chain fitted to ``target``."""

    def sample(
        self,
        mechanism: ExponentialMechanism,
        *,
        epsilon: float,
        size: int = 1,
        seed: int | Sequence[int],
    ) -> Draws:
        """Draw ``size`` independent values with their counts, for a study; never a release."""
        return run(self.chain(mechanism.target(epsilon=epsilon)), Coins(seeded_bits(seed)), size)


def target_slope(target: Target) -> float:
    """Return the energy of the target over the width of the box, n epsilon / 2 in Example 1."""
    lipschitz = target.problem.lipschitz
    if lipschitz is None:
        raise UnsupportedError("The paper's alpha follows from a Lipschitz constant: declare one.")
    return float(target.eta * lipschitz[0])


class PrintedConfAtomPerfect(_StudyOnly):
    """Algorithm 2 with Algorithm 1 on the printed kernel, beta = k/2.

    Its law is **not** f unless the proposals are uniform (errata, row 1).

    Examples
    --------
    >>> from expmech.paper.example1 import make_mechanism
    >>> draws = PrintedConfAtomPerfect().sample(make_mechanism(10, 0.3), epsilon=1.0, seed=1)
    >>> draws.values.shape
    (1, 1)
    """

    def __init__(
        self,
        k: float = 0.5,
        *,
        reading: str = "rate",
        alpha: float | None = None,
        by_value: bool = False,
    ) -> None:
        super().__init__(k, reading=reading, alpha=alpha)
        self.by_value = by_value

    def chain(self, target: Target) -> FactoryChain:
        """Return Algorithm 1 on the printed kernel: every p(y) is 1/2, so beta = k/2 has a gap."""
        kernel = make_printed_kernel(target, self.k, self.rate(target), by_value=self.by_value)
        beta = Fraction(self.k).limit_denominator(_DENOMINATOR) / 2
        gap = 1 - Fraction(1, 2) / (1 - beta)
        return FactoryChain(kernel, beta, LinearFactory(1 / (1 - beta), gap))


class ReadConfAtomPerfect(_StudyOnly):
    """Algorithm 1 on the corrected kernel, under any reading of alpha: its law is f."""

    def chain(self, target: Target) -> FactoryChain:
        """Return Algorithm 1 with the Hastings factor and a beta that leaves the factory a gap."""
        envelope = bind_reading(target, self.rate(target))
        share = Fraction(self.k).limit_denominator(_DENOMINATOR)
        weight = weight_for(target, envelope, share)
        kernel = AtomKernel(target, envelope, weight, moves_of(envelope))
        beta, gap = factory_constants(kernel.tag_energy)
        return FactoryChain(kernel, beta, LinearFactory(1 / (1 - beta), gap))


@dataclass(frozen=True)
class _RandomAtomChain(FactoryChain):
    """Algorithm 3: the first run of Algorithm 1 ends; at a it releases a public point."""

    points: NDArray[np.float64]
    table: ExponentialTable

    def step(self, state: FactoryAtomState, coins: Coins) -> FactoryAtomState:
        """Advance; a copy whose outer loop ended at a draws a point, kept in ``height``."""
        after = super().step(state, coins)
        ended = (state.phase == OUTER) & (after.phase == OUTER)  # step M, wherever it fell
        height, at_atom = after.height.copy(), np.flatnonzero(ended & after.at_atom)
        height[ended] = -1
        if at_atom.size:
            height[at_atom] = self.table.draw(coins, at_atom.size)
        return dataclasses.replace(after, height=height, done=ended)

    def values(self, state: FactoryAtomState) -> NDArray[Any]:
        """Return lattice points, and public points where a run ended at a."""
        values = super().values(state)
        chosen = state.height >= 0
        values[chosen] = self.points[state.height[chosen]]
        return values


class PrintedRandomAtomPerfect(PrintedConfAtomPerfect):
    """Algorithm 3: one run of Algorithm 1, and a draw of the mechanism on public points at a."""

    def __init__(
        self,
        points: ArrayLike,
        k: float = 0.5,
        *,
        reading: str = "rate",
        alpha: float | None = None,
    ) -> None:
        super().__init__(k, reading=reading, alpha=alpha)
        self.points = np.asarray(points, dtype=np.float64).reshape(-1, 1)

    def chain(self, target: Target) -> FactoryChain:
        """Return Algorithm 3 on the printed kernel."""
        bare = super().chain(target)
        table = ExponentialTable(target.energy_of_points(self.points))
        return _RandomAtomChain(**vars(bare), points=self.points, table=table)


@dataclass(frozen=True)
class _RuntimeChain(FactoryChain):
    """Corollary 2: a run of the inner loop is followed, sometimes, by a geometric wait."""

    share: Fraction = Fraction(1)
    floor: Fraction = Fraction(1)

    def step(self, state: FactoryAtomState, coins: Coins) -> FactoryAtomState:
        """Advance; add the wait to the count of a copy whose inner loop has ended."""
        after = super().step(state, coins)
        proposals = after.proposals.copy()
        waiting = np.flatnonzero((state.phase == INNER) & (after.phase == OUTER))
        waiting = waiting[~flip(coins, self.share, waiting.size)]
        while waiting.size:
            proposals[waiting] += 1
            waiting = waiting[~flip(coins, self.floor, waiting.size)]
        return dataclasses.replace(after, proposals=proposals)


class PrintedRuntimePerfect(PrintedConfAtomPerfect):
    """Corollary 2 as its proof has it: N_inner padded by infima of p_Accept.

    Parameters
    ----------
    infimum, floor
        ``inf_y p_Accept(y)`` of the data at hand, and its infimum over all data sets.
    """

    def __init__(
        self,
        k: float = 0.5,
        *,
        infimum: float,
        floor: float,
        reading: str = "rate",
        alpha: float | None = None,
    ) -> None:
        super().__init__(k, reading=reading, alpha=alpha)
        self.infimum, self.floor = infimum, floor

    def chain(self, target: Target) -> FactoryChain:
        """Return Algorithm 2 with the printed padding."""
        bare = super().chain(target)
        share = min(Fraction(1), Fraction(self.floor / self.infimum))
        return _RuntimeChain(
            **vars(bare),
            share=share.limit_denominator(_DENOMINATOR),
            floor=Fraction(self.floor).limit_denominator(_DENOMINATOR),
        )
