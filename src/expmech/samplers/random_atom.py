"""RandomAtomPerfect: the atom becomes a discrete mechanism on public points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.coins import Coins, ExponentialTable
from expmech.envelopes import Envelope
from expmech.errors import validate_fraction
from expmech.kernels import Kernel
from expmech.samplers.atom import AtomKernel
from expmech.samplers.atom_chains import AtomState, start_at_atom
from expmech.samplers.atom_sampler import AtomSampler
from expmech.samplers.base import Terms
from expmech.samplers.public_points import CHOSEN_BLINDLY, read_points, validate_points
from expmech.target import Target


@dataclass(frozen=True)
class RandomAtomState(AtomState):
    """Where each copy is.

    ``chosen`` is the index of the public point released by a copy that ended at ATOM, else -1.
    """

    chosen: NDArray[np.int64]


@dataclass(frozen=True)
class RandomAtomChain:
    """Run until the first tag.

    At ATOM it releases a draw from the discrete mechanism on the points.
    """

    kernel: AtomKernel
    points: NDArray[np.float64]
    table: ExponentialTable

    def start(self, coins: Coins, size: int) -> RandomAtomState:
        """Return copies at ATOM."""
        at = start_at_atom(self.kernel, size)
        return RandomAtomState(**vars(at), chosen=np.full(size, -1, dtype=np.int64))

    def step(self, state: RandomAtomState, coins: Coins) -> RandomAtomState:
        """Make one step of the kernel; draw a public point for copies tagged at ATOM."""
        indices, energies, at_atom, tagged = self.kernel.advance(
            state.indices, state.energies, state.at_atom, coins, tag=True
        )
        chosen = state.chosen.copy()
        ended = np.flatnonzero(tagged & at_atom)
        if ended.size:
            chosen[ended] = self.table.draw(coins, ended.size)
        return RandomAtomState(
            indices,
            state.proposals + 1,
            tagged,
            energies=energies,
            at_atom=at_atom,
            chosen=chosen,
        )

    def values(self, state: RandomAtomState) -> NDArray[Any]:
        """Return lattice points, and public points where a copy ended at ATOM."""
        values = self.kernel.target.domain.values(state.indices)
        ended = state.chosen >= 0
        values[ended] = self.points[state.chosen[ended]]
        return values


class RandomAtomPerfect(AtomSampler):
    """Draw exactly from the mechanism over ``counting measure + tau sum_l delta(y_l)``.

    ``y_l`` are public points.

    Parameters
    ----------
    points
        Public points, shape (l, d), inside the domain's bounds; they need not be lattice points.
    k
        Nominal share of the points: ``tau = k/(1-k) |Y|/l``. The realised share depends on the
        data, which is what makes the mixture one exponential mechanism and so epsilon-DP.
    proposal
        Re-entry law and moves, "uniform" or "laplace".
    kernel, rate, reentry
        Moves and re-entry law of one's own, as in :class:`ConfAtomPerfect`.

    Notes
    -----
    Law: ``f(y) / (w + Z_f)`` on the lattice and ``tau exp(-E(y_l)) / (w + Z_f)`` on the points.
    Expected steps ``2 e^B``. Theory page: docs/theory/random_atom_perfect.md.

    References
    ----------
    Seeman, Reimherr, Slavkovic (2021), Corollary 1.
    """

    needs = "RandomAtomPerfect needs public points; name it with them, RandomAtomPerfect(points)."
    bounded_range = True
    serves_base = True
    assumptions = (*AtomSampler.assumptions, CHOSEN_BLINDLY)

    def __init__(
        self,
        points: ArrayLike,
        k: float = 0.5,
        *,
        proposal: str = "uniform",
        kernel: Kernel | None = None,
        rate: float | None = None,
        reentry: Envelope | None = None,
    ) -> None:
        self.points = read_points(points, owner="RandomAtomPerfect")
        self.k = validate_fraction(k, name="k", owner="RandomAtomPerfect")
        self._take_laws(proposal, kernel, rate, reentry)

    def describe(self) -> dict[str, Any]:
        """Return the parameters; of the points, how many there are."""
        return super().describe() | {"points": len(self.points)}

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return a sampler of as many points: a certificate does not hold them."""
        points = np.zeros((parameters["points"], 1))
        return cls(points, parameters["k"], **cls.laws_in(parameters))

    def terms(self, target: Target) -> Terms:
        """Refuse points outside the domain, and a re-entry law that does not apply."""
        validate_points(self.points, target, owner="RandomAtomPerfect")
        return super().terms(target)

    def prepare(self, target: Target) -> RandomAtomChain:
        """Evaluate the points; give the atom the weight of one exponential mechanism."""
        validate_points(self.points, target, owner="RandomAtomPerfect")
        target.problem.check_repeatable()
        envelope, moves = self.bind_law(target, None)
        table = ExponentialTable(target.energy_of_points(self.points), target.units_per_nat)
        weight = self.weight(target, table, envelope.log_mass())
        return RandomAtomChain(AtomKernel(target, envelope, weight, moves), self.points, table)

    def weight(self, target: Target, table: ExponentialTable, log_mass: float) -> int:
        """Return ``W = log(tau sum_l exp(-E_l)) - log Z_r`` in units.

        It is within one unit plus a public constant.

        The unshifted minimum enters as an integer, so only the logarithm of a sum of numbers up to
        1 is rounded.
        """
        odds = self.k / (1 - self.k)
        log_tau = (
            math.log(odds.numerator)
            - math.log(odds.denominator)
            + target.domain.log_size
            - math.log(len(self.points))
        )
        public = round((log_tau - log_mass) * target.units_per_nat)
        return public + round(table.log_sum() * target.units_per_nat) - table.minimum
