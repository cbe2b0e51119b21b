"""A private norm of rows: its law, its neighbours, and that it composes with what follows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import expmech as em
from expmech.auditing.enumeration import law_of
from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.mechanisms.optimum import ArrayTable, RowNorms, prepare_rows
from expmech.mechanisms.optimum.risks import LogCosh, Logistic
from expmech.mechanisms.optimum.row_norm import NormSearch

EPSILONS = (Fraction(3, 1000), Fraction(1), Fraction(10))


def search(epsilon: Fraction, adjacency: Adjacency, dimension: int = 2) -> NormSearch:
    return NormSearch(dimension=dimension, epsilon=epsilon, adjacency=adjacency)


def exact(given: NormSearch, places: tuple[int, ...]) -> dict[Fraction, float]:
    """Return the law for rows at these places of the grid: ranks counted one by one."""
    n, logs = len(places), []
    for j in range(len(given.grid)):
        below, upto = sum(p < j for p in places), sum(p <= j for p in places)
        off = max(0.0, below - n / 2, n / 2 - upto)
        moved = 1.0 if given.adjacency is Adjacency.REPLACE else 0.5
        logs.append(-float(given.epsilon) / (2 * moved) * off)
    weights = np.exp(logs)
    return dict(zip(given.grid, (weights / weights.sum()).tolist(), strict=True))


def within(given: NormSearch, places: tuple[int, ...]) -> list[int]:
    return [sum(p <= j for p in places) for j in range(len(given.grid))]


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_law_is_that_of_the_exponential_mechanism(adjacency: Adjacency) -> None:
    """Coins enumerated from the shipped draw, against ranks counted one by one."""
    for epsilon, places in itertools.product(EPSILONS, [(0, 3, 3), (8,) * 4, (2, 5)]):
        given = search(epsilon, adjacency)
        counts = within(given, places)

        def draw(coins: Coins, given: NormSearch = given, counts: list[int] = counts) -> Fraction:
            return given.draw(counts, coins)

        found, _ = law_of(draw, cut=1e-9)
        for number, mass in exact(given, places).items():
            assert math.isclose(found.get(number, 0.0), mass, rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_all_neighbours_are_within_epsilon(epsilon: Fraction, adjacency: Adjacency) -> None:
    """Energies are whole multiples of one unit, so log ratios are differences of them."""
    given, points = search(epsilon, adjacency), range(9)
    worst = 0.0
    for places in itertools.combinations_with_replacement(points, 3):
        law = np.log(list(exact(given, places).values()))
        others: list[tuple[int, ...]]
        if adjacency is Adjacency.ADD_REMOVE:
            others = [(*places, more) for more in points]
        else:
            others = [(*places[:2], more) for more in points]
        for other in others:
            moved = np.log(list(exact(given, other).values())) - law
            worst = max(worst, float(np.abs(moved).max()))
    assert 0.4 * float(epsilon) < worst <= float(epsilon) * (1 + 1e-9)


def test_the_grid_is_public_and_ends_at_the_longest_row() -> None:
    for d in (1, 2, 3, 11, 51, 8192):
        grid = search(Fraction(1), Adjacency.REPLACE, d).grid
        assert grid[-1] == d and grid[0] >= 1 and list(grid) == sorted(grid)
        assert len(grid) == 1 + math.floor(8 * math.log2(d) + 1e-9)
        for j, number in enumerate(reversed(grid)):
            assert 0 <= d * 2.0 ** (-j / 8) - float(number) < 2.0**-19


def table() -> Any:
    generator = np.random.default_rng(2)
    rows = np.column_stack([np.ones(300), generator.normal(0, 0.6, (300, 3))])
    rows[5, 1], rows[6, 2] = np.nan, np.inf
    rows[7] = [1.0, 2.0**-21, 0.0, 0.0]  # of norm one as it is used, and longer as it is given
    return rows


@pytest.mark.parametrize("counts", [np.arange(300) % 3, np.ones(300, dtype=np.int64)])
def test_rows_are_counted_one_by_one_on_snapped_entries(counts: NDArray[np.int64]) -> None:
    """Whole numbers, so that the order of rows and parts of the table do not matter."""
    rows, limits = table(), search(Fraction(1), Adjacency.REPLACE, 4).grid
    whole = ArrayTable(rows, np.zeros(300), counts).count_within(limits)
    one_by_one = np.zeros(len(limits), dtype=int)
    for row, count in zip(rows, counts, strict=True):
        entries = [0.0 if math.isnan(e) else max(-1.0, min(1.0, e)) for e in row]
        square = sum(int(e * 2**20) ** 2 for e in entries)
        one_by_one += count * np.array([square <= limit * 2**40 for limit in limits])
    assert whole == one_by_one.tolist()
    parts = [ArrayTable(rows[p], np.zeros(150), counts[p]) for p in (slice(150), slice(150, 300))]
    sums = np.sum([part.count_within(limits) for part in parts], axis=0)
    assert sums.tolist() == whole
    stored = sparse.csr_matrix(np.nan_to_num(rows, posinf=9.0))
    thin = ArrayTable(stored, np.zeros(300), counts)
    assert thin.count_within(limits) == whole


@pytest.mark.parametrize(
    "stored", [np.asarray, lambda rows: sparse.csr_matrix(np.nan_to_num(rows))]
)
def test_rows_that_were_counted_are_shortened_once_for_each_draw(stored: Any) -> None:
    """What was counted is overwritten by the first draw; the next one begins anew."""
    limits = search(Fraction(1), Adjacency.REPLACE, 4).grid
    rows, risk = table(), LogCosh(0.5)
    data = ArrayTable(stored(rows), np.zeros(300))
    data.count_within(limits)
    for squared in (limits[-1], limits[0], limits[-3]):
        norms = RowNorms(squared=squared)
        found, fresh = data.rows(risk, norms), ArrayTable(stored(table()), np.zeros(300))
        assert abs(found.matrix - fresh.rows(risk, norms).matrix).max() == 0.0
    assert np.array_equal(rows, table(), equal_nan=True)


def test_longer_rows_are_shortened_whole_with_their_target() -> None:
    rows, limits = table(), search(Fraction(1), Adjacency.REPLACE, 4).grid
    for squared in limits:
        norms = RowNorms(squared=squared)
        found = prepare_rows(rows, np.ones(300), risk=LogCosh(0.5), norms=norms)
        assert ((found.matrix**2).sum(axis=1) <= float(squared)).all()
        np.testing.assert_allclose(found.matrix[:, 0], found.targets, atol=2.0**-19)


@pytest.mark.parametrize("timing", ["unprotected", "constant"])
def test_noise_and_penalty_follow_the_norm_that_was_drawn(
    timing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever norm is drawn, what follows costs the same and shortens rows to it."""
    generator = np.random.default_rng(3)
    rows = np.column_stack([np.ones(400), generator.uniform(-1, 1, (400, 11)) * 0.2])
    mechanism = em.PerturbedOptimum(Logistic(), rows, rows[:, 1] > 0)
    terms = mechanism.terms(epsilon=2.0, timing=timing)
    assert terms.search is not None
    kinds = set()
    for squared in terms.search.grid:
        drawn = terms.at_norm(squared)
        kinds.add(drawn.noise)
        assert drawn.norms.squared == squared and drawn.search is None
        assert squared / drawn.penalty <= terms.leverage
        moved = 1.0 if drawn.noise == "max" else math.sqrt(squared)
        assert float(drawn.rate) * moved == pytest.approx(float(terms.row_nats), rel=1e-12)
        assert (drawn.noise == "euclidean") == (squared < Fraction(14, 3))
    assert kinds == {"max", "euclidean"}
    seen: list[Any] = []
    inner = ArrayTable.rows

    def watched(self: Any, risk: Any, norms: Any) -> Any:
        seen.append(norms.squared)
        return inner(self, risk, norms)

    monkeypatch.setattr(ArrayTable, "rows", watched)
    ready = mechanism.prepare(epsilon=2.0, timing=timing)
    ready.sample(4, seed=3)
    # 1 + 11/75: nearly all rows are as short as that
    assert set(seen) <= set(terms.search.grid) and np.median([float(s) for s in seen]) < 2.0


def test_the_norm_and_the_optimum_take_fresh_coins_each_draw() -> None:
    rows = np.column_stack([np.ones(400), np.linspace(-1, 1, 400)])
    given = em.PerturbedOptimum(Logistic(), rows, rows[:, 1] > 0)
    first, second = given.sample(epsilon=1.0, size=2, seed=1)
    assert (first != second).any()
    again = given.sample(epsilon=1.0, size=2, seed=1)
    assert (again == [first, second]).all()
    drawn = {
        search(Fraction(1, 10), Adjacency.REPLACE).draw([9] * 9, Coins(seeded_bits(s)))
        for s in range(40)
    }
    assert len(drawn) > 3
