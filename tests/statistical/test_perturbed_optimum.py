"""Perturbed optima of real size and on hostile data: they end, decide at once, and are accurate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError
from expmech.mechanisms.optimum import Lattice, RowNorms, draw_cells, prepare_rows
from expmech.mechanisms.optimum.perturbed_optimum import PerturbedOptimum
from expmech.mechanisms.optimum.risks import (
    Custom,
    Huber,
    Logistic,
    Risk,
    SmoothedHinge,
    SmoothedPinball,
    Softmax,
)


def design(n: int, p: int, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    rows = np.column_stack([np.ones(n), generator.uniform(-1, 1, (n, p))])
    return rows, rows @ generator.normal(size=p + 1)


def hostile() -> dict[str, tuple[Any, Any]]:
    rows, score = design(200, 3)
    separable = (rows, score > 0)
    collinear = (np.column_stack([rows, rows[:, 1], -rows[:, 2]]), score > 0)
    equal = (np.ones((50, 4)), np.ones(50))
    constant = (np.column_stack([np.ones(60), np.zeros(60), np.full(60, 0.5)]), np.arange(60) % 2)
    strange = (np.array([[1.0, np.nan], [1.0, np.inf], [-np.inf, 2.0]]), [np.nan, 5.0, -7.0])
    return {
        "separable": separable,
        "collinear": collinear,
        "all rows equal": equal,
        "constant columns": constant,
        "no rows": (np.zeros((0, 3)), []),
        "one row": (np.ones((1, 3)), [1]),
        "not numbers": strange,
    }


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", list(hostile()))
@pytest.mark.parametrize("risk", [Logistic(), Huber(0.25), Softmax(3), SmoothedHinge(0.5)])
def test_every_fit_ends(risk: Risk, name: str, epsilon: float) -> None:
    rows, targets = hostile()[name]
    mechanism = PerturbedOptimum(risk, rows, targets, adjacency="add-remove")
    draws = mechanism.sample(epsilon=epsilon, size=2, seed=1)
    assert np.isfinite(draws).all()


@pytest.mark.parametrize("risk", [Logistic(), Huber(0.25)])
def test_first_box_decides_on_a_fine_lattice(risk: Risk) -> None:
    rows, score = design(400, 6)
    mechanism = PerturbedOptimum(risk, rows, np.sign(score))
    terms = mechanism.terms(epsilon=1.0)
    ready = mechanism.prepare_rows(terms)
    for bits, most in ((20, 0), (32, 4)):  # expected: nearly never, and below one
        late = 0
        for seed in range(200):
            coins = Coins(seeded_bits(seed))
            late += draw_cells(terms, ready, Lattice(bits=bits), coins)[1] > 1
        assert late <= most, (bits, late)


def awkward(n: int) -> dict[str, tuple[Any, Any, Risk]]:
    """Return tables on which the optimum is drawn to kinks, or columns repeat each other."""
    generator = np.random.default_rng(0)
    base, one, line = generator.uniform(-1, 1, (n, 3)), np.ones((n, 1)), np.linspace(-1, 1, n)
    noisy = np.clip(base[:, 0] + generator.normal(0, 0.3, n), -1, 1)
    same = np.hstack([one, base[:, [0, 0, 0]] * [1.0, 1.0, -1.0]])
    nearly = np.hstack([one, base[:, :1], base[:, :1] + generator.uniform(-1, 1, (n, 1)) * 2e-6])
    halves = np.where(np.arange(n) < n // 2, 0.5, -0.5)
    powers = np.column_stack([line**k for k in range(9)])
    return {
        "collinear": (same, noisy, Huber(0.25)),
        "collinear labels": (same, noisy > 0, SmoothedHinge(0.5)),
        "nearly collinear": (nearly, noisy, Huber(0.25)),
        "two tied values": (np.ones((n, 4)), halves, Huber(0.25)),
        "two tied labels": (np.ones((n, 4)), halves, SmoothedHinge(0.5)),
        "tied": (np.hstack([one, np.round(base)]), np.round(noisy), SmoothedPinball(0.25, 2.0**-6)),
        "sorted": (powers, np.sin(3 * line), SmoothedPinball(0.25, 2.0**-6)),
    }


@pytest.mark.parametrize("name", list(awkward(2)))
def test_the_first_box_of_a_ramp_decides_on_collinear_sorted_and_tied_rows(name: str) -> None:
    rows, targets, risk = awkward(30_000)[name]
    mechanism = PerturbedOptimum(risk, rows, targets)
    terms = mechanism.terms(epsilon=30.0)
    ready = mechanism.prepare_rows(terms)
    boxes = [draw_cells(terms, ready, Lattice(), Coins(seeded_bits(s)))[1] for s in range(20)]
    assert boxes == [1] * 20


def test_large_tables_start_from_a_subsample_and_agree_with_the_optimum() -> None:
    rows, score = design(60_000, 4)
    generator = np.random.default_rng(1)
    labels = score + generator.logistic(size=len(score)) > 0
    draws = PerturbedOptimum(Logistic(), rows, labels, squared_norm=5.0).sample(
        epsilon=10.0, seed=3
    )[0]
    truth = np.random.default_rng(0)
    truth.uniform(-1, 1, (60_000, 4))
    assert np.abs(draws - truth.normal(size=5)).max() < 0.15


@pytest.mark.parametrize("risk", [Logistic(), Huber(0.5)])
def test_sparse_rows_give_the_same_cells(risk: Risk) -> None:
    rows, score = design(300, 5)
    rows[:, 2:] *= np.random.default_rng(2).random((300, 4)) < 0.3
    dense, thin = (
        PerturbedOptimum(risk, table, np.sign(score), sum_norm=3.0, noise="max")
        for table in (rows, sparse.csr_matrix(rows))
    )
    assert (
        dense.sample(epsilon=1.0, size=3, seed=4) == thin.sample(epsilon=1.0, size=3, seed=4)
    ).all()


@given(
    st.lists(
        st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=3, max_size=3), max_size=6
    ),
    st.sampled_from([Fraction(1, 8), Fraction(1), Fraction(3, 2)]),
    st.sampled_from([None, Fraction(1, 2), Fraction(2)]),
)
def test_rows_keep_their_norms_in_whole_numbers(
    table: list[list[float]], squared: Fraction, total: Fraction | None
) -> None:
    array = np.array(table).reshape(len(table), 3)
    norms = RowNorms(squared=squared, total=total)
    rows = prepare_rows(array, array[:, 0], risk=Huber(1.0), norms=norms)
    for row, target in zip(rows.matrix.tolist(), rows.targets.tolist(), strict=True):
        whole = [Fraction(entry) * 2**20 for entry in row]
        assert all(entry.denominator == 1 and abs(entry) <= 2**20 for entry in whole)
        assert sum(entry**2 for entry in whole) <= squared * 2**40
        assert total is None or sum(map(abs, whole)) <= total * 2**20
        assert abs(target) <= 1


@pytest.mark.parametrize("by_entry", [False, True])
def test_rows_and_targets_are_snapped_toward_zero(by_entry: bool) -> None:
    """Also where the nearest multiple of 2^-20 is further from zero."""
    steps = np.array([[0.75, -0.75, 5.5], [-5.5, 9.999, -9.999], [0.25, -0.25, 1e5 + 0.9]])
    features = steps * 2.0**-20
    rows = prepare_rows(
        sparse.csr_matrix(features) if by_entry else features,
        np.array([0.75, -2.6, 3.4]) * 2.0**-20,
        risk=Huber(0.5),
        norms=RowNorms(squared=Fraction(3), total=Fraction(3)),
    )
    matrix = rows.matrix.toarray() if by_entry else rows.matrix
    assert (matrix * 2.0**20).tolist() == [[0, 0, 5], [-5, 9, -9], [0, 0, 1e5]]
    assert (rows.targets * 2.0**20).tolist() == [0, -2, 3]
    shortened = prepare_rows(
        sparse.csr_matrix([[1.0, 1.0]]) if by_entry else np.array([[1.0, 1.0]]),
        np.array([1.0]),
        risk=Huber(0.5),
        norms=RowNorms(squared=Fraction(1)),
    )
    matrix = shortened.matrix.toarray() if by_entry else shortened.matrix
    assert (matrix * 2.0**20).tolist() == [[741455, 741455]]  # 2^20 / sqrt(2) = 741455.2
    assert (shortened.targets * 2.0**20).tolist() == [741455]


def test_under_add_remove_terms_do_not_depend_on_the_rows() -> None:
    few, many = (design(n, 3) for n in (5, 500))
    terms = [
        PerturbedOptimum(Logistic(), rows, score > 0, adjacency="add-remove", rows=100).terms(
            epsilon=1.0
        )
        for rows, score in (few, many)
    ]
    assert terms[0].rate == terms[1].rate and terms[0].penalty == terms[1].penalty
    with pytest.raises(ParameterError, match="rows"):
        PerturbedOptimum(Logistic(), few[0], few[1], rows=100)


def test_a_risk_of_ones_own_draws_the_same_cells_as_the_built_in_one() -> None:
    rows, score = design(30, 2)
    own = Custom(
        name="huber",
        derivative=lambda t, z: np.clip(t - z, -0.5, 0.5),
        curvature=lambda t, z: np.where(np.abs(t - z) < 0.5, 1.0, 0.0),
        ball=lambda t, z: (t - flint.arb(z)).max(flint.arb(-0.5)).min(flint.arb(0.5)),
        bound=0.5,
        lipschitz=1.0,
        error=2.0**-50,
    )
    found = [
        PerturbedOptimum(
            risk, rows, np.tanh(score), share=0.2, noise="max", lattice=Lattice(bits=24)
        ).sample(epsilon=1.0, size=3, seed=6)
        for risk in (own, Huber(0.5))
    ]
    assert (found[0] == found[1]).all()


def test_impossible_penalties_are_refused_in_public_words() -> None:
    rows, score = design(20, 2)
    with pytest.raises(ParameterError, match="penalty"):
        PerturbedOptimum(Logistic(), rows, score > 0, penalty=1e-6).terms(epsilon=0.1)
    with pytest.raises(ParameterError, match="sum_norm"):
        PerturbedOptimum(Logistic(), rows, score > 0, noise="sum")
    with pytest.raises(ParameterError, match="class"):
        PerturbedOptimum(Logistic(), rows, score > 0, noise="class")
