"""The loss of privacy over every pair of neighbouring data sets on a small lattice.

And mutants that exceed it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import exact_law, float_mechanism, mean_mechanism, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point, law_after
from expmech.auditing.enumeration import largest_log_ratio, total_variation
from expmech.domains import Indices
from expmech.exponential.samplers import Sampler
from expmech.exponential.samplers.atom import AtomKernel
from expmech.exponential.samplers.conf_atom import ConfAtomChain
from expmech.exponential.samplers.random_atom import RandomAtomPerfect
from expmech.exponential.target import Energies, Target

VALUES = (0.0, 0.5, 1.0)
N = 2
EPSILON = 1.5
Law = dict[Hashable, float]


def laws(law: Callable[[tuple[float, ...]], Law], n: int = N) -> dict[tuple[float, ...], Law]:
    return {rows: law(rows) for pair in neighbours(VALUES, n) for rows in pair}


def worst_loss(found: dict[tuple[float, ...], Law], n: int = N, ignore: float = 0.0) -> float:
    return max(
        largest_log_ratio(found[one], found[other], ignore=ignore)
        for one, other in neighbours(VALUES, n)
    )


SAMPLERS: dict[str, Sampler] = {
    "rejection": em.Rejection(batch=1),
    "rejection, uniform": em.Rejection(em.Uniform(), batch=1),
    "tabulated": em.Tabulated(),
    "tabulated, constant": em.ConstantTabulated(),
    "confidential atom": em.ConfAtomPerfect(0.5),
    "confidential atom, uniform": em.ConfAtomPerfect(0.5, proposal="uniform"),
}


@pytest.mark.parametrize("make", [mean_mechanism, float_mechanism])
@pytest.mark.parametrize("name", SAMPLERS)
def test_released_law_is_private_for_all_neighbours(name: str, make: Any) -> None:
    def law(rows: tuple[float, ...]) -> Law:
        chain, _ = prepared(make(list(rows), bits=2), SAMPLERS[name], epsilon=EPSILON)
        return ChainLaw(chain, lattice_point, leftover=1e-7).law

    loss = worst_loss(laws(law))
    assert loss <= EPSILON
    assert loss > EPSILON / 4  # a law that forgot the data would be private too


def test_value_and_padded_count_are_private_together() -> None:
    for proposal in ("laplace", "uniform"):

        def joint(rows: tuple[float, ...], proposal: str = proposal) -> Law:
            chain, _ = prepared(
                mean_mechanism(list(rows), bits=2),
                em.ConfAtomAndRuntimePerfect("pad", proposal=proposal),
                epsilon=EPSILON,
            )
            found = ChainLaw(chain, lattice_point, leftover=1e-7)
            return {
                (value, t): p
                for t, step in enumerate(found.by_step[:30])
                for value, p in step.items()
            }

        assert worst_loss(laws(joint)) <= EPSILON


def test_value_and_count_of_plain_rejection_are_not_private_together() -> None:
    """The mutant of the test above: without the padding the count tells."""

    def joint(rows: tuple[float, ...]) -> Law:
        chain, _ = prepared(
            mean_mechanism(list(rows), bits=2),
            em.Rejection(em.ProductLaplace(), batch=1),
            epsilon=EPSILON,
        )
        found = ChainLaw(chain, lattice_point, leftover=1e-7)
        return {
            (value, t): p for t, step in enumerate(found.by_step[:30]) for value, p in step.items()
        }

    assert worst_loss(laws(joint)) > EPSILON


def test_constant_rounds_are_private() -> None:
    def law(rows: tuple[float, ...]) -> Law:
        chain, _ = prepared(
            float_mechanism(list(rows), bits=2),
            em.ConfAtomAndRuntimePerfect("constant"),
            epsilon=EPSILON,
        )
        return law_after(dataclasses.replace(chain, lot=1), chain.rounds, lattice_point)

    assert worst_loss(laws(law)) <= EPSILON


def test_pure_metropolis_is_private() -> None:
    def law(rows: tuple[float, ...]) -> Law:
        chain, _ = prepared(
            float_mechanism(list(rows), bits=3), em.Metropolis(pure=True), epsilon=4.0
        )
        return law_after(chain, chain.steps, lattice_point)

    assert worst_loss(laws(law)) <= 4.0


# The paper's printed kernel: no Hastings factor between the atom and the lattice.


@dataclass(frozen=True)
class PrintedKernel(AtomKernel):
    """Accept the atom by min(1, k / ((1-k) f(y))), f the density.

    The proposal's own density is forgotten.
    """

    printed_weight: int = 0

    @property
    def tag_energy(self) -> int:
        return max(0, -self.printed_weight - self.target.minimum_energy)

    def _excess(self, indices: Indices, energies: Energies) -> Energies:
        return self.printed_weight + energies


def printed_law(target: Target, k: float) -> Law:
    chain = em.ConfAtomPerfect(k).prepare(target)
    normaliser = target.log_normaliser()
    assert normaliser is not None
    weight = round((math.log(k / (1 - k)) + normaliser - target.domain.log_size) * 2**40)
    corrected = chain.kernel
    kernel = PrintedKernel(target, corrected.envelope, corrected.weight, corrected.moves, weight)
    return ChainLaw(ConfAtomChain(kernel), lattice_point, leftover=1e-7).law


def test_printed_kernel_is_rejected_by_the_same_checks() -> None:
    n, epsilon = 10, 1.0
    pair = ([0.0] * n, [0.0] * (n - 1) + [1.0])
    found, right = [], []
    for rows in pair:
        _, target = prepared(mean_mechanism(rows, bits=4), em.ConfAtomPerfect(0.5), epsilon=epsilon)
        found.append(printed_law(target, 0.5))
        right.append(exact_law(target))
    assert total_variation(found[0], right[0]) > 0.1
    assert largest_log_ratio(*found) > 1.05 * epsilon  # 1.38 on fine lattices
    assert largest_log_ratio(*right) <= epsilon


# RandomAtomPerfect with a constant weight in place of the one that follows the data.


class ConstantWeight(RandomAtomPerfect):
    """The obvious shortcut: the atom's weight does not follow the data."""

    def _weight(self, target: Target, table: Any, log_mass: float) -> int:
        return round(-math.log(20.0) * 2**40)


def random_atom_exact(sampler: RandomAtomPerfect, rows: list[float], epsilon: float) -> Law:
    """The invariant law of the shipped kernel with the sampler's weight.

    F, and w spread by the discrete mechanism.
    """
    chain, target = prepared(mean_mechanism(rows, bits=8), sampler, epsilon=epsilon)
    indices = target.domain.all_indices(1 << 12)
    assert indices is not None
    lattice = np.exp(-target.energy(indices) / 2.0**40)
    points = np.exp(-(chain.table.shifted) / 2.0**40)
    mass = math.exp(chain.kernel.weight / 2.0**40 + chain.kernel.envelope.log_mass())
    total = lattice.sum() + mass
    law: Law = {("lattice", j): p / total for j, p in enumerate(lattice.tolist())}
    return law | {
        ("point", j): mass * p / points.sum() / total for j, p in enumerate(points.tolist())
    }


def test_random_atom_with_a_constant_weight_exceeds_epsilon_and_ours_does_not() -> None:
    n, epsilon = 20, 1.0
    points = np.concatenate([[0.0], np.full(31, 1.0 / n + 0.002)])
    pair = [0.0] * n, [0.0] * (n - 1) + [1.0]
    losses = {
        kind: largest_log_ratio(
            *(random_atom_exact(kind(points, 0.5), rows, epsilon) for rows in pair)
        )
        for kind in (RandomAtomPerfect, ConstantWeight)
    }
    assert losses[RandomAtomPerfect] <= epsilon
    assert losses[ConstantWeight] > 1.1 * epsilon


def test_random_atom_as_shipped_is_private_for_all_neighbours() -> None:
    sampler = em.RandomAtomPerfect([0.1, 0.45, 0.8], 0.5)

    def released(state: Any) -> Hashable:
        return ("point", int(state.chosen[0])) if state.chosen[0] >= 0 else lattice_point(state)

    def law(rows: tuple[float, ...]) -> Law:
        chain, _ = prepared(mean_mechanism(list(rows), bits=2), sampler, epsilon=EPSILON)
        return ChainLaw(chain, released, leftover=1e-7).law

    assert worst_loss(laws(law)) <= EPSILON


def test_metropolis_delta_covers_what_its_law_exceeds_epsilon_by() -> None:
    def law(rows: tuple[float, ...], steps: int) -> tuple[Law, float]:
        chain, _ = prepared(
            float_mechanism(list(rows), bits=2), em.Metropolis(steps=steps), epsilon=EPSILON
        )
        return law_after(chain, steps, lattice_point), chain.delta

    for steps in (1, 2, 5):
        for one, other in neighbours(VALUES, N):
            (p, delta), (q, _) = law(one, steps), law(other, steps)
            for first, second in ((p, q), (q, p)):
                excess = sum(max(0.0, first[y] - math.exp(EPSILON) * second[y]) for y in first)
                assert excess <= delta


def test_an_epsilon_ten_percent_too_large_is_noticed() -> None:
    """The check itself.

    One candidate becomes worse while 200 others become better, which takes nearly all of epsilon.
    """
    worst = {}
    for factor in (1.0, 1.1):
        found = []
        for first in (0.0, 1.0):
            losses = np.concatenate([[first], np.full(200, 1.0 - first)])
            mechanism = em.ExponentialMechanism(
                loss=losses.__getitem__,
                sensitivity=Fraction(1),
                domain=em.Candidates(range(201)),
                bound=1.0,
            )
            chain, _ = prepared(mechanism, em.Tabulated(), epsilon=2.0 * factor)
            found.append(ChainLaw(chain, lattice_point, leftover=1e-9).law)
        worst[factor] = largest_log_ratio(*found)
    assert worst[1.0] <= 2.0 < worst[1.1]
