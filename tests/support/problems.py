"""Small problems the tests share."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.certificates.mechanism import Mechanism
from expmech.core.coins import Coins
from expmech.core.rounding import validate_epsilon
from expmech.domains import Domain
from expmech.exponential.samplers import Sampler
from expmech.exponential.target import Target
from expmech.mechanisms.quantiles.base import SeveralQuantiles

EPSILON = 1.0


class WordBits:
    """A stream that hands out given words, then zeros; further words are taken one at a time."""

    source = "given"

    def __init__(self, words: list[int]) -> None:
        self.words = list(words)

    def take(self, dtype: Any, count: int) -> NDArray[Any]:
        taken = [self.words.pop(0) if self.words else 0 for _ in range(count)]
        return np.array(taken, dtype=np.uint64).astype(dtype)


def mean_mechanism(
    rows: list[float] | NDArray[np.float64],
    *,
    bits: int = 3,
    d: int = 1,
    bound: float | None = None,
) -> em.ExponentialMechanism:
    """Example 1 on a small lattice.

    At these sizes its energies are integer slopes times integer distances. A large ``bound`` makes
    their unit coarser.
    """
    table = np.asarray(rows, dtype=np.float64).reshape(-1, d)
    return em.ExponentialMechanism(
        loss=em.losses.L1Mean(table), domain=em.Box([0.0] * d, [1.0] * d, bits=bits), bound=bound
    )


def float_mechanism(
    rows: list[float], *, bits: int = 3, steep: float = 1.0, bound: float | None = None
) -> em.ExponentialMechanism:
    """The same loss as a plain callable: float energies, declared growth."""
    mean = float(np.mean(rows))
    return em.ExponentialMechanism(
        loss=lambda y: steep * np.abs(y[:, 0] - mean),
        sensitivity=steep / len(rows),
        domain=em.Box([0.0], [1.0], bits=bits),
        lipschitz=[steep],
        bound=bound,
        gap=steep / (1 << bits),
        growth=em.Growth(center=np.array([mean]), rates=np.array([steep])),
    )


def exact_law(target: Target) -> dict[Hashable, float]:
    """Return f on the lattice, by adding up exp(-E)."""
    indices = target.domain.all_indices(1 << 12)
    assert indices is not None
    energies = target.energy(indices)
    weights = np.exp(-(energies - energies.min()) / target.units_per_nat)
    return dict(zip(map(tuple, indices.tolist()), (weights / weights.sum()).tolist(), strict=True))


def check_padded(chain: Any, target: Target, *, leftover: float) -> None:
    """Check that value and count of a padded chain are independent, and the count is geometric.

    Its chance is the public floor of the acceptance, whatever the data.
    """
    enumerated = ChainLaw(chain, lattice_point, leftover=leftover)
    truth, floor = exact_law(target), float(chain.floor)
    assert enumerated.leftover <= leftover
    for t, step in enumerate(enumerated.by_step):
        for point, probability in truth.items():
            assert step[point] == pytest.approx(floor * (1.0 - floor) ** t * probability, rel=1e-6)


def draw_values(
    mechanism: Mechanism, coins: Coins, *, epsilon: float | Fraction, size: int
) -> NDArray[Any]:
    """Draw values from coins of the test's own, without a certificate."""
    budget = validate_epsilon(epsilon, owner=mechanism.name)
    return mechanism.fit(budget)(coins, size).values


def draw_cells(
    quantiles: SeveralQuantiles, coins: Coins, *, epsilon: float | Fraction, size: int
) -> NDArray[np.int64]:
    """Draw tuples of quantiles and return the indices of their cells."""
    values = draw_values(quantiles, coins, epsilon=epsilon, size=size)
    return quantiles.lattice.locate(values.reshape(-1, 1)).reshape(values.shape)


def neighbours(
    values: tuple[float, ...], n: int
) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Every pair of data sets of n rows from ``values`` that differ in one row."""
    sets = list(itertools.combinations_with_replacement(values, n))
    for one, other in itertools.combinations(sets, 2):
        if (Counter(one) & Counter(other)).total() == n - 1:
            yield one, other


def grown(
    sets: Iterable[tuple[Any, ...]], rows: Sequence[Any], adjacency: str
) -> Iterator[tuple[Any, Any]]:
    """Every pair of neighbours that share a data set: a row is added to one, or one to each."""
    for rest in sets:
        if adjacency == "add-remove":
            yield from ((rest, (*rest, row)) for row in rows)
        else:
            yield from (
                ((*rest, row), (*rest, other)) for row, other in itertools.combinations(rows, 2)
            )


def domains_of_every_kind() -> list[Domain]:
    """Tiny lattices, one of each kind."""
    return [
        em.Box([0.0], [1.0], bits=2),
        em.Box([-1.0, 0.0], [1.0, 3.0], bits=1),
        em.L1Ball(2, 1.0, bits=2),
        em.L1Ball(2, 1.0, bits=3),
        em.L2Ball(2, 2.0, bits=2),
        em.Simplex(3, bits=2),
        em.Candidates(["a", "b", "c"]),
    ]


def prepared(
    mechanism: em.ExponentialMechanism, sampler: Sampler, *, epsilon: float = EPSILON
) -> tuple[Any, Target]:
    """Return the chain a mechanism would run, and its target."""
    target = sampler.calibrate(mechanism._problem, Fraction(epsilon))
    return sampler.prepare(target), target
