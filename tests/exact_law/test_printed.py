"""The printed algorithms: their kernels enumerated as shipped, their costs; they cannot release."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import exact_law, mean_mechanism

import expmech as em
from expmech.auditing.chain_law import kernel_law
from expmech.auditing.enumeration import total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins, LinearFactory
from expmech.paper.example1 import make_mechanism
from expmech.paper.kernels import (
    corrected_kernel,
    grid_points,
    hastings,
    laplace_law,
    laplace_proposals,
    largest_ratio,
    printed_kernel,
    released_law,
)
from expmech.paper.printed.algorithms import (
    PrintedConfAtomPerfect,
    PrintedRandomAtomPerfect,
    PrintedRuntimePerfect,
    ReadConfAtomPerfect,
)
from expmech.paper.printed.cost import (
    atom_acceptance,
    average_counts,
    count_epsilon,
    expected_flips,
    expected_proposals_corrected,
    expected_proposals_printed,
    expected_steps_direct,
    first_move_epsilon,
    outer_tail_rate,
    pair_epsilon,
)
from expmech.theory import acceptance_laplace_infimum

ROWS = [0.2, 0.4, 0.3, 0.3]


def printed_invariant_law(
    energies: NDArray[np.float64], atom: int, rate: float, k: float
) -> NDArray[np.float64]:
    """The printed kernel written out here, from its formulas: what it releases."""
    n = len(energies)
    density = np.exp(-energies) / np.exp(-energies).mean()
    ratio = math.exp(-rate / n)
    away = np.abs(np.arange(n)[:, None] - np.arange(n))
    proposal = (1 - ratio) / (1 + ratio) * ratio**away
    mixed = (1 - k) * density[atom] + k
    kernel = np.zeros((n + 1, n + 1))
    kernel[:n, :n] = 0.5 * proposal * np.minimum(1, density / density[:, None])
    kernel[:n, n] = 0.5 * np.minimum(1, mixed / ((1 - k) * density))
    kernel[n, :n] = 0.5 * proposal[atom] * np.minimum(1, (1 - k) * density / mixed)
    np.fill_diagonal(kernel, 0.0)
    kernel[np.diag_indices(n + 1)] = 1 - kernel.sum(axis=1)
    law = np.linalg.matrix_power(kernel, 1 << 14)[0, :n]
    return np.asarray(law / law.sum())


@pytest.mark.parametrize("k", [0.25, 0.5])
def test_the_printed_kernel_releases_its_own_law_and_not_f(k: float) -> None:
    target = mean_mechanism(ROWS, bits=2).target(epsilon=3.0)
    chain = PrintedConfAtomPerfect(k).chain(target)
    enumerated, to_atom = kernel_law(chain.kernel)
    indices = target.domain.all_indices(16)
    assert indices is not None
    energies = target.energy(indices) / 2.0**40
    law = printed_invariant_law(energies, int(energies.argmin()), 3.0 * 4 / 2, k)
    printed = dict(zip(map(tuple, indices.tolist()), law.tolist(), strict=True))
    assert total_variation(enumerated, printed) < 1e-6  # type: ignore[arg-type]
    assert total_variation(enumerated, exact_law(target)) > 0.02
    assert to_atom[:-1] == pytest.approx([0.5] * len(indices))
    assert float(chain.beta) == pytest.approx(k / 2)


@pytest.mark.parametrize("reading", ["rate", "scale", "uniform"])
def test_with_the_hastings_factor_the_kernel_releases_f(reading: str) -> None:
    target = mean_mechanism(ROWS, bits=2).target(epsilon=3.0)
    chain = ReadConfAtomPerfect(0.5, reading=reading).chain(target)
    enumerated, to_atom = kernel_law(chain.kernel)
    assert total_variation(enumerated, exact_law(target)) < 1e-6
    assert min(to_atom) >= 2 * float(chain.beta) * (1 - 1e-9)


def test_uniform_proposals_hide_the_missing_factor() -> None:
    target = mean_mechanism(ROWS, bits=2).target(epsilon=3.0)
    enumerated, _ = kernel_law(PrintedConfAtomPerfect(0.5, reading="uniform").chain(target).kernel)
    assert total_variation(enumerated, exact_law(target)) < 1e-6


def test_comparing_by_value_never_releases_the_answer() -> None:
    mechanism = mean_mechanism(ROWS, bits=3)
    sampler = PrintedConfAtomPerfect(0.5, by_value=True)
    values = sampler.sample(mechanism, epsilon=3.0, size=150, seed=5).values[:, 0]
    plain = PrintedConfAtomPerfect(0.5).sample(mechanism, epsilon=3.0, size=150, seed=5).values
    assert not (values == 0.3125).any()
    assert (plain[:, 0] == 0.3125).mean() > 0.2


@pytest.mark.parametrize(
    "sampler",
    [
        PrintedConfAtomPerfect(),
        PrintedRandomAtomPerfect([0.5]),
        PrintedRuntimePerfect(infimum=0.5, floor=0.25),
        ReadConfAtomPerfect(),
    ],
)
def test_no_printed_algorithm_can_release_or_certify(sampler: object) -> None:
    mechanism = mean_mechanism(ROWS)
    for verb in (mechanism.release, mechanism.certificate):
        with pytest.raises(TypeError, match="`sampler` must be a name"):
            verb(epsilon=1.0, sampler=sampler)  # type: ignore[arg-type]
    assert isinstance(sampler, PrintedConfAtomPerfect | ReadConfAtomPerfect)
    draws = sampler.sample(mechanism, epsilon=1.0, size=3, seed=1)
    assert draws.values.shape == (3, 1)
    assert (draws.proposals >= 0).all()


def test_random_points_are_released_where_the_chain_ends_at_the_atom() -> None:
    points = [0.11, 0.73]
    sampler = PrintedRandomAtomPerfect(points, 0.5)
    values = sampler.sample(mean_mechanism(ROWS), epsilon=1.0, size=300, seed=2).values[:, 0]
    share = np.isin(values, points).mean()
    assert 0.2 < share < 0.95


def test_padding_adds_to_the_count() -> None:
    plain = PrintedConfAtomPerfect().sample(mean_mechanism(ROWS), epsilon=1.0, size=300, seed=3)
    padded = PrintedRuntimePerfect(infimum=0.5, floor=0.02).sample(
        mean_mechanism(ROWS), epsilon=1.0, size=300, seed=3
    )
    assert padded.proposals.mean() > 2 * plain.proposals.mean()


@pytest.mark.parametrize(
    ("heads", "multiplier", "gap"),
    [
        (0.5, Fraction(4, 3), Fraction(1, 3)),
        (0.05, Fraction(4, 3), Fraction(1, 3)),
        (0.74, Fraction(5, 4), Fraction(1, 20)),
    ],
)
def test_computed_flips_are_those_of_the_factory(
    heads: float, multiplier: Fraction, gap: Fraction
) -> None:
    size = 3000
    flips, generator = np.zeros(size), np.random.default_rng(3)

    def coin(
        copies: np.ndarray[tuple[int], np.dtype[np.int64]],
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        flips[copies] += 1
        return np.asarray(generator.random(copies.size) < heads)

    LinearFactory(multiplier, gap).flip(coin, size, Coins(seeded_bits(1)))
    computed = expected_flips(heads, float(multiplier), float(gap))
    error = flips.std() / math.sqrt(size)
    assert abs(flips.mean() - computed) < 4.5 * error
    assert abs(flips.mean() - 1.6 * computed) > 4.5 * error, "a mean 1.6 times as large"


@pytest.mark.parametrize("reading", ["rate", "uniform"])
def test_computed_means_are_those_of_the_draws(reading: str) -> None:
    c, mean, size = 5.0, 0.3, 200
    mechanism = em.ExponentialMechanism(
        loss=em.losses.L1Mean(np.full((10, 1), mean)), domain=em.Box([0.0], [1.0], bits=20)
    )
    rate = None if reading == "uniform" else c
    for sampler, computed in (
        (PrintedConfAtomPerfect(reading=reading), expected_proposals_printed(0.5, c, mean, rate)),
        (ReadConfAtomPerfect(reading=reading), expected_proposals_corrected(0.5, c, mean, rate)),
    ):
        drawn = sampler.sample(mechanism, epsilon=1.0, size=size, seed=11).proposals
        error = drawn.std() / math.sqrt(size)
        assert abs(drawn.mean() - computed) < 4.5 * error, (type(sampler), drawn.mean(), computed)
        assert abs(drawn.mean() - 1.6 * computed) > 4.5 * error
    assert expected_steps_direct(0.5, c, mean, c) == pytest.approx(4.6, abs=0.1)


def test_the_tail_of_outer_steps_is_the_eigenvalue_of_the_whole_kernel() -> None:
    """Two states are enough on the printed kernel; here all of a grid, and the share of each k."""
    for k, mean in ((0.5, 0.0), (0.5, 0.1), (0.3, 0.4), (0.8, 0.5)):
        moving = printed_kernel(150, 5.0, mean, 5.0, k)
        moving[:-1, -1] -= k / 2.0
        largest = float(np.abs(np.linalg.eigvals(moving)).max())
        assert outer_tail_rate(k, 5.0, mean, 5.0) == pytest.approx(largest, abs=5e-4)
    assert outer_tail_rate(0.5, 5.0, 0.0, 5.0) == pytest.approx(0.9532, abs=5e-5)
    assert outer_tail_rate(0.5, 5.0, 0.1, 5.0) == pytest.approx(0.9326, abs=5e-5)


def test_two_padded_proposals_tell_neighbours_apart_as_computed() -> None:
    """Corollary 2 as printed, drawn: P(N_prop = 2) at means 0 and .1, and value with count."""
    floors = {mean: acceptance_laplace_infimum([mean], 5.0, 5.0) for mean in (0.0, 0.1)}
    shares, size = [], 10_000
    for mean, infimum in floors.items():
        sampler = PrintedRuntimePerfect(0.5, infimum=infimum, floor=floors[0.0])
        draws = sampler.sample(make_mechanism(10, mean), epsilon=1.0, size=size, seed=3)
        leave = atom_acceptance(0.5, 5.0, mean, 5.0) / 2.0
        shares.append(0.25 * leave**2 * floors[0.0] / infimum)  # ends after two, flip, try, no wait
        found = float((draws.proposals == 2).mean())
        assert abs(found - shares[-1]) < 4.5 * math.sqrt(shares[-1] / size), (found, shares[-1])
        assert abs(found - shares[-1] / leave) > 20 * math.sqrt(shares[-1] / size)  # one flip only
    assert math.log(shares[1] / shares[0]) == pytest.approx(count_epsilon(0.5, 10, 1.0))
    rows = [printed_kernel(800, 5.0, j / 10, 5.0, 0.5)[-1, :-1] for j in range(11)]
    assert first_move_epsilon(0.5, 10, 1.0) == pytest.approx(largest_ratio(rows), abs=0.015)
    leaves = [2.0 * float(row.sum()) for row in rows]
    infima = [acceptance_laplace_infimum([j / 10], 5.0, 5.0) for j in range(11)]
    joint = [row * a / p for row, a, p in zip(rows, leaves, infima, strict=True)]
    assert pair_epsilon(0.5, 10, 1.0) == pytest.approx(largest_ratio(joint), abs=0.015)
    assert pair_epsilon(0.5, 10, 1.0) == pytest.approx(1.126, abs=5e-4)
    assert count_epsilon(0.5, 10, 1.0) == pytest.approx(0.364, abs=5e-4)


def test_the_corrected_mean_is_steady_once_the_target_is_narrow() -> None:
    """At slopes 50 and 500 an interior mean has the same count; 200 equal cells had 35 to 44."""
    values = [
        expected_proposals_corrected(0.5, slope, mean, slope)
        for slope in (50.0, 500.0, 5000.0)
        for mean in (0.3, 0.5, 0.503)
    ]
    assert max(values) < 1.001 * min(values)
    fine = [average_counts(0.5, 5.0, x, 5.0, corrected=True)["inner"] for x in (0.3, 0.30001)]
    assert fine[0] == pytest.approx(fine[1], rel=1e-3)


def test_three_readings_of_the_printed_kernel_exceed_their_epsilon() -> None:
    for reading, expected in (("sum", 1.38), ("k", 1.22), ("measure", 1.076)):
        found = []
        for cells in (100, 200):
            laws = [
                released_law(printed_kernel(cells, 5.0, j / 10, 5.0, 0.5, reading=reading))
                for j in (0, 1)
            ]
            found.append(largest_ratio(laws))
        assert 2.0 * found[1] - found[0] == pytest.approx(expected, abs=0.01), reading


def test_the_corrected_kernel_of_the_grid_leaves_the_target_invariant() -> None:
    """Whatever the share and the re-entry law, also where not every re-entry is accepted."""
    law = laplace_law(40, 5.0, 0.3)
    moves = hastings(laplace_proposals(40, 8.0, 0.5 * grid_points(40) + 0.2), law)
    np.testing.assert_allclose(law @ moves, law, rtol=1e-12)
    for k in (0.2, 0.8):
        for reentry in (np.full(40, 1 / 40), laplace_law(40, 9.0, 0.5)):
            kernel = corrected_kernel(moves, law, reentry, k)
            whole = np.append((1.0 - k) * law, k)
            np.testing.assert_allclose(whole @ kernel, whole, rtol=1e-9)
