"""RandomAtomPerfect: the atom becomes a discrete mechanism on public points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from expmech.core.arrays import Array, ArrayLike, Floats, Integers
from expmech.core.coins import Coins, ExponentialTable
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    validate_fraction,
)
from expmech.domains import Region
from expmech.exponential.envelopes import Envelope
from expmech.exponential.kernels import Kernel
from expmech.exponential.samplers.atom import AtomChain, AtomKernel, AtomSampler, AtomState
from expmech.exponential.samplers.base import SamplerTerms
from expmech.exponential.target import Target

CHOSEN_BLINDLY = "the points were chosen without looking at the data"


def read_points(points: ArrayLike, *, owner: str) -> Floats:
    """Return points as rows of finite float64 numbers, at least one."""
    table = np.array(points)
    if table.dtype.kind not in "fiu" or table.ndim not in (1, 2) or table.size == 0:
        raise ParameterTypeError(
            f"`points` of {owner} must be numbers of shape (l, d), l at least 1; got dtype"
            f" {table.dtype}, shape {table.shape}."
        )
    table = np.ascontiguousarray(table[:, None] if table.ndim == 1 else table, dtype=np.float64)
    if not np.isfinite(table).all():
        raise ParameterError(f"`points` of {owner} must be finite; got nan or infinity.")
    return table


def validate_points(points: Floats, target: Target, *, owner: str) -> None:
    """Raise unless the points lie in the domain and the base measure excludes none."""
    domain, base = target.domain, target.problem.base
    if not isinstance(domain, Region):
        raise UnsupportedError(
            f"{owner} needs a continuous domain; on a list of candidates use Tabulated."
        )
    if points.shape[1] != domain.dimension:
        raise ParameterError(
            f"`points` of {owner} must have {domain.dimension} columns; got {points.shape[1]}."
        )
    outside = np.flatnonzero(~domain.contains_points(points))
    if outside.size:
        raise ParameterError(
            f"`points` of {owner} must lie in the domain; row {outside[0]} does not:"
            f" {points[outside[0]]}."
        )
    if base is not None and (base.evaluate(points) == -np.inf).any():
        raise ParameterError(f"`points` of {owner} must not be excluded by `base`; some are.")


@dataclass(frozen=True)
class RandomAtomState(AtomState):
    """Where each copy is, and the number of the public point it releases, -1 if none."""

    chosen: Integers


@dataclass(frozen=True)
class RandomAtomChain(AtomChain):
    """Run until the first tag; at ATOM, release a draw of the discrete mechanism on the points."""

    kernel: AtomKernel
    points: Floats
    table: ExponentialTable

    def start(self, coins: Coins, size: int) -> RandomAtomState:
        chosen = np.full(size, -1, dtype=np.int64)
        return RandomAtomState(**vars(super().start(coins, size)), chosen=chosen)

    def step(self, state: RandomAtomState, coins: Coins) -> RandomAtomState:
        """Make one step of the kernel; draw a public point for copies tagged at ATOM."""
        indices, energies, at_atom, tagged = self.kernel.advance(
            state.indices, state.energies, state.at_atom, coins, tag=True
        )
        chosen = state.chosen.copy()
        ended = np.flatnonzero(tagged & at_atom)
        if ended.size:
            chosen[ended] = self.table.draw(coins, ended.size)
        counts = state.proposals + 1
        return RandomAtomState(
            indices, counts, tagged, energies=energies, at_atom=at_atom, chosen=chosen
        )

    def values(self, state: RandomAtomState) -> Array:
        """Return lattice points, and public points where a copy ended at ATOM."""
        values = super().values(state)
        ended = state.chosen >= 0
        values[ended] = self.points[state.chosen[ended]]
        return values


class RandomAtomPerfect(AtomSampler):
    """Draw exactly from the mechanism over ``counting measure + tau sum_l delta(y_l)``.

    ``y_l`` are public points, so the atom of the paper's chain becomes a discrete mechanism.

    Parameters
    ----------
    points : array-like of shape (l, d)
        Public points inside the domain's bounds; they need not be lattice points.
    k : float, default 0.5
        Nominal share of the points, in (0, 1): ``tau = k/(1-k) |Y|/l``. The realised share depends
        on the data, which is what makes the mixture one exponential mechanism and so epsilon-DP.
    proposal : {"uniform", "laplace"}, default "uniform"
        Re-entry law and moves.
    kernel, rate, reentry
        Moves and re-entry law of the caller's own, as in :class:`ConfAtomPerfect`.

    Notes
    -----
    Law: ``f(y) / (w + Z_f)`` on the lattice and ``tau exp(-E(y_l)) / (w + Z_f)`` on the points.
    Expected steps ``2 e^B``. Theory page: docs/theory/random_atom_perfect.md.

    References
    ----------
    Seeman, Reimherr, Slavkovic (2021), Corollary 1.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([[0.2], [0.3], [0.4]])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> sampler = em.RandomAtomPerfect([[0.25], [0.5], [0.75]], k=0.5)
    >>> mech.sample(epsilon=1.0, sampler=sampler, seed=1).values.shape
    (1, 1)
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
        """Return the parameters, with the number of points in the place of the points."""
        return super().describe() | {"points": len(self.points)}

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        # as many points: a certificate does not hold them
        points = np.zeros((parameters["points"], 1))
        return cls(points, parameters["k"], **cls.laws_in(parameters))

    def terms(self, target: Target) -> SamplerTerms:
        validate_points(self.points, target, owner="RandomAtomPerfect")
        return super().terms(target)

    def prepare(self, target: Target) -> RandomAtomChain:
        """Evaluate the points; give the atom the weight of one exponential mechanism."""
        validate_points(self.points, target, owner="RandomAtomPerfect")
        target.problem.check_repeatable()
        envelope, moves = self.bind_law(target, None)
        table = ExponentialTable(target.energy_of_points(self.points), target.units_per_nat)
        weight = self._weight(target, table, envelope.log_mass())
        return RandomAtomChain(AtomKernel(target, envelope, weight, moves), self.points, table)

    def _weight(self, target: Target, table: ExponentialTable, log_mass: float) -> int:
        """Return the atom's weight ``W = log(tau sum_l exp(-E_l)) - log Z_r`` in energy units.

        It is exact within one unit and a public constant: the unshifted minimum enters as an
        integer, so only the logarithm of a sum of numbers up to 1 is rounded.
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
