"""The corrected kernel with an artificial atom: one step of it, tagged or not.

States are lattice points and ATOM, a flag. Facts and proofs: docs/theory/conf_atom_perfect.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.cost import SPARE, Forecast, power, quantile_of_sum
from expmech.domains import Indices
from expmech.envelopes import ReentryLaw
from expmech.envelopes.laplace import log_worst_laplace
from expmech.envelopes.uniform import log_usual_uniform, log_worst_uniform
from expmech.errors import EnvelopeViolatedError, UnsupportedError
from expmech.kernels import Kernel, LaplaceSteps, Uniform
from expmech.samplers.moves import metropolis_move
from expmech.target import Energies, Target
from expmech.target.calibration import ENERGY_CAP

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class AtomKernel:
    """One step of the chain on the lattice plus ATOM.

    ``weight`` is W, the atom's log weight in units; ``envelope`` is the re-entry law r with its
    certified offset m; ``moves`` are those of K.
    """

    target: Target
    envelope: ReentryLaw
    weight: int
    moves: Kernel

    @property
    def tag_energy(self) -> int:
        """``B = max(0, m - W)``: every step is tagged with probability ``exp(-B)/2``."""
        return max(0, self.envelope.offset - self.weight)

    @property
    def tag_nats(self) -> float:
        """B in nats."""
        return self.tag_energy / self.target.units_per_nat

    def advance(
        self, indices: Indices, energies: Energies, at_atom: Flags, coins: Coins, *, tag: bool
    ) -> tuple[Indices, Energies, Flags, Flags]:
        """Return the next state and which steps were tagged.

        A tagged copy is returned in the state *in which* the tag fell: that state is the draw. With
        ``tag=False`` no step is tagged and the plain transition is made.
        """
        indices, energies, atom = indices.copy(), energies.copy(), at_atom.copy()
        tagged = np.zeros(len(indices), dtype=np.bool_)
        heads = coins.fair(len(indices))
        self._from_lattice(
            np.flatnonzero(~at_atom & heads), indices, energies, atom, tagged, coins, tag
        )
        moves = np.flatnonzero(~at_atom & ~heads)
        if moves.size:
            indices[moves], energies[moves] = metropolis_move(
                self.target, indices[moves], energies[moves], coins, self.moves
            )
        stays = np.flatnonzero(at_atom & heads)
        if tag and stays.size:
            tagged[stays] = coins.bernoulli_exp(
                np.full(stays.size, self.tag_energy, dtype=np.int64), rate=self.target.unit
            )
        self._from_atom(np.flatnonzero(at_atom & ~heads), indices, energies, atom, coins)
        return indices, energies, atom, tagged

    def _excess(self, indices: Indices, energies: Energies) -> Energies:
        """Return ``s = W - R + E``."""
        return self.weight - self.envelope.energy(indices) + energies

    def _from_lattice(
        self,
        rows: Indices,
        indices: Indices,
        energies: Energies,
        atom: Flags,
        tagged: Flags,
        coins: Coins,
        tag: bool,
    ) -> None:
        """Heads at y: accept the atom with min(1, e^s).

        Tag an acceptance with exp(-(B - max(0, -s))).
        """
        if rows.size == 0:
            return
        shortfall = np.maximum(0, -self._excess(indices[rows], energies[rows]))
        rest = self.tag_energy - shortfall
        if rest.min() < 0:
            raise EnvelopeViolatedError
        accepted = coins.bernoulli_exp(shortfall, rate=self.target.unit)
        rows, rest = rows[accepted], rest[accepted]
        atom[rows] = True
        if tag and rows.size:
            marked = coins.bernoulli_exp(rest, rate=self.target.unit)
            tagged[rows[marked]] = True
            atom[rows[marked]] = False

    def _from_atom(
        self, rows: Indices, indices: Indices, energies: Energies, atom: Flags, coins: Coins
    ) -> None:
        """Tails at ATOM: propose y ~ r and move there with min(1, e^-s)."""
        if rows.size == 0:
            return
        proposed, _ = self.envelope.propose(coins, len(rows))
        inside = self.target.contains(proposed)
        rows, proposed = rows[inside], proposed[inside]
        if rows.size == 0:
            return
        new = self.target.energy(proposed)
        excess = np.maximum(0, self._excess(proposed, new))
        moved = coins.bernoulli_exp(excess, rate=self.target.unit)
        rows = rows[moved]
        indices[rows], energies[rows], atom[rows] = proposed[moved], new[moved], False


def moves_of(envelope: ReentryLaw) -> Kernel:
    """Return the moves that go with a re-entry law where nothing else is asked for.

    Laplace steps of the same rates, or uniform points.
    """
    return Uniform() if envelope.rates is None else LaplaceSteps(envelope.rates)


def need_weight(target: Target, sampler: str) -> None:
    """Raise, on public grounds, where k cannot be turned into the atom's weight."""
    if not target.knows_normaliser and target.log_floor() is None:
        raise UnsupportedError(
            f"{sampler} turns k into the atom's weight through the normaliser or a public bound on"
            " it, and this problem has neither. Declare `lipschitz` or `bound`, or use Rejection."
        )


def weight_for(target: Target, envelope: ReentryLaw, k: Fraction, sampler: str) -> int:
    """Return W in units such that the atom's share of the mixture is k.

    Through the normaliser where it is known. Elsewhere the public floor p_0 stands in for it and k
    is nominal. The law of the release is the same for every W.
    """
    need_weight(target, sampler)
    log_normaliser = target.log_normaliser()
    if log_normaliser is None:
        floor = target.log_floor() or 0.0
        log_normaliser = (
            floor + target.domain.log_size - target.minimum_energy / target.units_per_nat
        )
    log_odds = math.log(k.numerator) - math.log(k.denominator - k.numerator)
    weight = log_odds + log_normaliser - envelope.log_mass()
    return max(-ENERGY_CAP, min(ENERGY_CAP, round(weight * target.units_per_nat)))


def forecast_atom(target: Target, *, proposal: str, k: float) -> Forecast:
    """Return the evaluations ``e^B (1 + w / Z_f)`` from the mean proposals M / Z_f of re-entry."""
    if proposal == "uniform":
        rejection = log_worst_uniform(target)
    else:
        rejection = log_worst_laplace(target)
    floor, tabulated = target.log_floor(), 0.0
    best, worst = 1.0, None
    if rejection is not None:
        # the weight is exact: w / Z_f = k / (1 - k), and e^B = (M / Z_f) (1 - k) / k
        worst = max(1.0, power(rejection) * (1.0 - k) / k) / (1.0 - k)
    if target.knows_normaliser:
        tabulated = 0.0 if target.integer is not None else math.exp(target.domain.log_size)
    elif proposal == "uniform" and floor is not None:
        best = max(1.0, power(-floor) * (1.0 - k) / k)
        if rejection is not None:
            worst = best * (1.0 + k / (1.0 - k) * power(max(0.0, floor + rejection)))
    if worst is None:
        least = tabulated + best
        return Forecast(expected=(least, None), nearly_all=(least, None), typical=math.inf)
    # steps are geometric, and every second one evaluates the loss
    steps = quantile_of_sum([2.0 * worst])
    usual = math.sqrt(best * worst)
    if proposal == "uniform" and target.knows_normaliser:
        usual = min(worst, max(1.0, power(log_usual_uniform(target)) * (1.0 - k) / k) / (1.0 - k))
    return Forecast(
        expected=(tabulated + best, tabulated + SPARE * worst),
        nearly_all=(tabulated + best, tabulated + steps / 2.0 + 2.0 * math.sqrt(steps)),
        typical=tabulated + usual,
        calls=_PREPARED + 2.0 * usual,
    )


_PREPARED = 15.0  # calls of plain proposals that finding the weight is worth; measured
