"""Directions, one slack at a time: each declared error is used up whole, the others are nothing.

What a float64 bound must hold is computed in exact fractions or in balls of 300 bits, from numbers
that differ from the floats by as much as is declared, in the worst direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.mechanisms.directions import bingham as bingham_module
from expmech.mechanisms.directions import rows as rows_module
from expmech.mechanisms.directions.bingham import UNIT_LENGTH, Proposal, SecondMoments, _certify
from expmech.mechanisms.directions.components import (
    BASIS_BITS,
    ComponentLaw,
    contraction,
    draw_variances,
    variance_rate,
    variance_sums,
)
from expmech.mechanisms.directions.principal_direction import PrincipalDirection
from expmech.mechanisms.directions.rows import make_moments, row_products, unit_rows
from expmech.mechanisms.directions.whole import WholeMatrix

Floats = NDArray[np.float64]


def proposal_of(transform: Floats, *, floor: float = 1.0, spread: float = 0.0) -> Proposal:
    d = len(transform)
    return Proposal(
        moments=SecondMoments(
            whole=WholeMatrix.from_integers(np.zeros((d, d), dtype=np.int64)), bits=40
        ),
        eta=Fraction(1),
        transform=transform,
        shift=Fraction(1),
        floor=floor,
        spread=spread,
    )


def ball(number: float | Fraction) -> flint.arb:
    exact = Fraction(number)
    return flint.arb(flint.fmpq(exact.numerator, exact.denominator))


def log_chance(g: list[Fraction], y: list[Fraction], floor: float) -> tuple[flint.arb, flint.arb]:
    """Return ``-(d/2)(x - 1 - log x)`` and q of exact vectors."""
    d = len(g)
    q = ball(sum(one * one for one in g) / sum(one * one for one in y))
    x = 2 * ball(floor) * q / d
    return -ball(Fraction(d, 2)) * (x - 1 - x.log()), q


def worst_vectors(
    values: Floats, transform: Floats, off: float, share: float
) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    """Yield g and Tg that float64 may stand for: numbers off, and an image rounded, by shares."""
    image = transform @ values
    for toward, sign, rounded in product((values, transform.T @ image), (-1, 1), (-1, 1)):
        g = [
            Fraction(one) + sign * int(np.sign(way)) * (Fraction(off) + Fraction(share) * abs(one))
            for one, way in zip(map(Fraction, values.tolist()), toward.tolist(), strict=True)
        ]
        y = []
        for row in transform.tolist():
            terms = [Fraction(one) * other for one, other in zip(row, g, strict=True) if one]
            lost = len(g) * Fraction(share) * sum(map(abs, terms))
            y.append(sum(terms) + rounded * (1 if sum(terms) > 0 else -1) * lost)
        yield g, y


TRANSFORMS = {
    "a turn": np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0],
    "long": 2.0**9 * np.eye(5),
    "long and nearly singular": 2.0**9 * np.diag([1.0] + [2.0**-20] * 4),
    "what cancels": np.eye(5) * 2.0**-20 + np.outer(np.eye(5)[0], [1.0, -1.0, 0.0, 0.0, 0.0]),
    "one of many": np.diag([1.0] + [2.0**-20] * 255),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize(("off", "share"), [(1e-5, 0.0), (0.0, 1e-5), (0.0, 0.0)])
def test_bounds_of_the_coin_hold_for_all_normals_that_the_errors_allow(
    name: str, off: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bingham_module, "VALUE_ERROR", off)
    monkeypatch.setattr(bingham_module, "_FLOAT", share or 2.0**-53)
    transform = TRANSFORMS[name]
    d, generator = len(transform), np.random.default_rng(2)
    rows = np.vstack([np.ones((1, d)), generator.normal(size=(3, d))])
    rows[:2, 0] = math.sqrt(d), 0.1
    rows[2:, 1] = rows[2:, 0] + 0.1
    rows = rows[: 1 if d > 5 else None]
    for values, x, wide in product(rows, (10.0 ** (-500 / d), 0.5, 1.0, 2.0, 4.0), (0.0, 0.3)):
        q = (values @ values) / ((transform @ values) @ (transform @ values))
        proposal = proposal_of(transform, floor=x * d / 2.0 / q, spread=wide / q)
        low, high = (float(one[0]) for one in bingham_module.chance_bounds(proposal, values[None]))
        with flint.ctx.workprec(300):
            for g, y in worst_vectors(values, transform, off, share):
                log, real_q = log_chance(g, y, proposal.floor)
                least = (log - ball(proposal.spread) * real_q).exp()
                assert ball(low) <= least, (name, x, "low")
                assert log.exp() <= ball(high), (name, x, "high")
        if off == share == 0.0 and x > 0.01:  # and the bounds are bounds, not all there is
            assert high <= np.exp(1.02 * wide + 1e-9) * low, (name, x)


def test_an_image_that_may_vanish_is_left_to_the_balls() -> None:
    flat = proposal_of(np.diag([1.0, 0.0]))
    rows = np.array([[0.0, 1.0], [0.0, 0.0], [2.0**-52, 1.0]])
    with np.errstate(all="ignore"):
        low, high = bingham_module.chance_bounds(flat, rows)
    assert low.tolist() == [-1.0] * 3 and high.tolist() == [2.0] * 3


class Stated:
    """Numbers that float64 states with an error: ``values`` are off, ``enclose`` is not."""

    def __init__(self, values: Floats, truth: list[list[Fraction]]) -> None:
        self.values, self.truth = values, truth

    def enclose(self, index: int, precision: int) -> flint.arb:
        row, column = divmod(index, self.values.shape[1])
        with flint.ctx.workprec(precision + 96):
            return ball(self.truth[row][column])


def rounded(transform: Floats, truth: list[Fraction]) -> list[int]:
    image = [
        sum((Fraction(one) * other for one, other in zip(row, truth, strict=True)), Fraction(0))
        for row in transform.tolist()
    ]
    largest = max(image, key=abs)
    return [(UNIT_LENGTH * one / largest + Fraction(1, 2)).__floor__() for one in image]


@pytest.mark.parametrize(("off", "share"), [(2.0**-27, 0.0), (0.0, 2.0**-28)])
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_axes_are_rounded_as_the_real_numbers_whatever_float64_lost(
    off: float, share: float, margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bingham_module, "VALUE_ERROR", off)
    monkeypatch.setattr(bingham_module, "_FLOAT", share or 2.0**-53)
    generator = np.random.default_rng(3)
    d = 3
    values = generator.normal(size=(60 if margin else 300, d))
    near = 2.0**-26 * generator.random(40)  # the first and the second coordinate are nearly tied
    values[:40, 1] = np.where(generator.random(40) < 0.5, -1.0, 1.0) * (values[:40, 0] + near)
    values[:40, 2] /= 4.0
    for transform in (np.eye(d), np.array([[1.0, 0.5, 0.25], [0.0, 1.0, -0.5], [0.25, 0.0, 1.0]])):
        truth = [
            [
                Fraction(one)
                + (Fraction(off) + (d + 1) * Fraction(share) * abs(Fraction(one))) * int(sign)
                for one, sign in zip(row, generator.choice([-1, 1], size=d), strict=True)
            ]
            for row in values.tolist()
        ]
        normals: Any = Stated(values, truth)
        rows = np.arange(len(values))
        found = bingham_module.round_axes(proposal_of(transform), normals, rows, margin=margin)
        assert found.tolist() == [rounded(transform, row) for row in truth]


@pytest.mark.parametrize("second", [False, True])
def test_a_tie_that_float64_cannot_tell_is_settled_by_more_digits(second: bool) -> None:
    """Two coordinates of opposite signs whose sizes differ by 2^-400: the larger one is 2^24."""
    more = Fraction(1, 1 << 400)
    truth = [Fraction(3, 4) + (0 if second else more), -Fraction(3, 4) - (more if second else 0)]
    normals: Any = Stated(np.array([[0.75, -0.75, 0.25]]), [[*truth, Fraction(1, 4)]])
    found = bingham_module.round_axes(proposal_of(np.eye(3)), normals, np.array([0]))
    assert found[0, :2].tolist() == (
        [-UNIT_LENGTH, UNIT_LENGTH] if second else [UNIT_LENGTH, -UNIT_LENGTH]
    )
    assert found.tolist() == [rounded(np.eye(3), [*truth, Fraction(1, 4)])]


def is_positive(matrix: list[list[Fraction]]) -> bool:
    """Tell whether a symmetric matrix has no eigenvalue below 0, by exact elimination."""
    rest = [row[:] for row in matrix]
    while rest:
        pivot, first = rest[0][0], rest[0]
        if pivot < 0 or (pivot == 0 and any(first)):
            return False
        rest = [
            [
                one - (row[0] * first[j] / pivot if pivot else 0)
                for j, one in enumerate(row[1:], start=1)
            ]
            for row in rest[1:]
        ]
    return True


@pytest.mark.parametrize("products", ["float64", "integers"])
@pytest.mark.parametrize("largest", [1 << 62, 1 << 12])  # of the entry beside the diagonal
def test_ends_of_the_spectrum_are_outside_of_it_in_exact_fractions(
    products: str, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With circles that touch: two columns alike, so that Gershgorin's ends are eigenvalues."""
    monkeypatch.setattr(bingham_module, "_OPEN", math.inf if products == "float64" else 0.0)
    generator = np.random.default_rng(4)
    eta = Fraction(2_796_201, 1 << 21)
    for _ in range(40):
        a = int(generator.integers(1 << 61, 1 << 62))
        b = int(generator.choice([-1, 1])) * int(generator.integers(1, min(largest, a)))
        whole = [[a, b], [b, a]]
        moments = SecondMoments(
            whole=WholeMatrix.from_integers(np.array(whole, dtype=object)), bits=40
        )
        above = 2.0 if largest > 1 << 40 else 1.0 + 2.0**-44  # then the diagonal nearly cancels
        found = _certify(moments, eta, np.eye(2), float(a * eta) * above * 2.0**-40)
        gram = [
            [(found.shift if i == j else 0) - eta * whole[i][j] / Fraction(1 << 40) for j in (0, 1)]
            for i in (0, 1)
        ]
        for at, sign in ((found.floor, 1), (Fraction(found.floor) + Fraction(found.spread), -1)):
            beside = [
                [sign * (one - (Fraction(at) if i == j else 0)) for j, one in enumerate(row)]
                for i, row in enumerate(gram)
            ]
            assert is_positive(beside), (at, sign)
        lost = 2.0**-81 * float(a * eta) if products == "float64" else 0.0
        most = 2.01 * float(eta * abs(b)) * 2.0**-40 + 1e-9 * found.floor + lost
        assert found.spread <= most


def test_ends_by_float64_hold_the_exact_ones_and_leave_few_coins_to_the_balls() -> None:
    """With a transform of eigenvectors, of laws from wide to narrow."""
    for n, eta in ((40, Fraction(1, 16)), (4000, Fraction(1)), (10**6, Fraction(255))):
        rows = unit_rows(np.random.default_rng(n).normal(size=(50, 6)) * [1, 1, 2, 3, 4, 9])
        moments = make_moments(row_products(rows) * (n // 40))
        proposal = bingham_module.fit_proposal(moments, eta)
        shift = float(proposal.shift)
        energy = moments.whole.times(-eta.numerator).plus_diagonal(
            int(proposal.shift * 2 ** (40 + eta.denominator.bit_length() - 1))
        )
        factor = bingham_module._transform_integers(proposal.transform)
        gram = (factor.transposed @ (energy @ factor)).integers()
        low, high = bingham_module._float_ends(moments, eta, proposal.transform, shift)
        unit = Fraction(1, 1 << (40 + eta.denominator.bit_length() - 1 + 84))
        beside = np.abs(gram).sum(axis=1) - np.abs(np.diagonal(gram))
        least, most = (np.diagonal(gram) - beside).min(), (np.diagonal(gram) + beside).max()
        assert low <= least * unit and most * unit <= high
        assert high - low <= float((most - least) * unit) + 2.0**-32 * shift


def test_ends_by_float64_leave_room_for_all_that_products_may_lose() -> None:
    """Where the diagonal cancels, what is lost is a share of what was there before."""
    a, b, eta = 3 << 60, 1 << 8, Fraction(5, 4)
    whole = WholeMatrix.from_integers(np.array([[a, b], [b, a]], dtype=object))
    moments = SecondMoments(whole=whole, bits=40)
    shift, beside = eta * a / (1 << 40), eta * b / (1 << 40)
    low, high = bingham_module._float_ends(moments, eta, np.eye(2), float(shift))
    size = 2 * shift + beside
    lost = (Fraction(1, 1 << 44) + Fraction(2 * 2 + 6, 1 << 53)) * size
    assert Fraction(low) <= -beside - lost and beside + lost <= Fraction(high)


def test_a_poor_transform_leaves_the_ends_to_integers_and_no_epsilon_is_too_small() -> None:
    """NaN decides nothing, and a shift of more digits than float64 has exponents is no error."""
    rows = unit_rows(np.random.default_rng(3).normal(size=(40, 3)))
    moments = make_moments(row_products(rows))
    wide = bingham_module.fit_proposal(moments, Fraction(1, 1 << 900))
    wider = bingham_module.fit_proposal(moments, Fraction(1, 1 << 1060))
    assert wider.floor == pytest.approx(wide.floor, rel=1e-6) and wider.spread <= 2.0**-20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bingham_module, "_float_ends", lambda *_: (math.nan, math.nan))
        exact = bingham_module.fit_proposal(moments, Fraction(1, 4))
    near = bingham_module.fit_proposal(moments, Fraction(1, 4))
    assert exact.floor == pytest.approx(near.floor, rel=1e-6)


@pytest.mark.parametrize("d", [9, 40])
def test_the_norm_of_a_row_does_not_depend_on_how_the_table_lies_in_memory(d: int) -> None:
    """Columns side by side are what NumPy makes of a choice of columns."""
    rows = np.random.default_rng(d).normal(size=(300, d))
    columns = np.asfortranarray(rows)
    for work in (unit_rows, rows_module.snap_rows):
        alone = np.vstack([work(row[None, :]) for row in rows])
        assert (work(columns) == alone).all()
    largest = np.geomspace(1.0, 3.0, 300)[:, None]  # some are shortened
    scaled = np.asfortranarray(unit_rows(rows) * largest)
    sums = [row_products(scaled[k : k + 1]) for k in range(300)]
    assert (row_products(scaled) == np.sum(sums, axis=0)).all()


def test_proposals_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Across batches, also those without an axis, and no further than the last axis."""
    pattern = [0, 0, 1, 0] + [0] * 4 + [0, 0, 0, 1] + [1, 0, 1, 1]
    monkeypatch.setattr(bingham_module, "batch_size", lambda d: 4)
    monkeypatch.setattr(bingham_module, "_ENTRIES", 8)
    left = list(pattern)

    def accept(proposal: Proposal, normals: Any, coins: Coins) -> NDArray[np.bool_]:
        return np.array([bool(left.pop(0)) for _ in range(len(normals.values))])

    monkeypatch.setattr(bingham_module, "_accept", accept)
    found, counts = bingham_module.draw_axes(proposal_of(np.eye(2)), Coins(seeded_bits(1)), 4)
    assert counts.tolist() == [3, 9, 1, 2] and len(found) == 4


def test_a_component_is_drawn_by_its_own_eta_from_what_the_others_leave() -> None:
    """In the plane that the first leaves, the angle has a closed form: von Mises, doubled."""
    rows = np.repeat(np.eye(3)[1:], [36, 4], axis=0)
    law = ComponentLaw(make_moments(row_products(rows)), [Fraction(1, 64), Fraction(1, 16)])
    coins = Coins(seeded_bits(5))
    drawn = [law._draw_rest(coins, np.array([1.0, 0.0, 0.0]))[0] for _ in range(500)]
    second = np.array([one[1] for one in drawn])
    assert np.abs(second[:, 0]).max() < 1e-9
    angles = 2.0 * np.arctan2(second[:, 2], second[:, 1])  # antipodes are one
    angles = np.where(angles > np.pi, angles - 2 * np.pi, angles)
    angles = np.where(angles < -np.pi, angles + 2 * np.pi, angles)
    kappa = (36 - 4) / 16 / 2  # exp(eta (36 cos^2 + 4 sin^2)) in the doubled angle
    assert stats.kstest(angles, stats.vonmises(kappa).cdf).pvalue > 1e-6
    assert stats.kstest(angles, stats.vonmises(kappa / 4).cdf).pvalue < 1e-6


class Scripted:
    """Coins whose Laplace noise brings sums to where a script says; what was asked is kept."""

    def __init__(self, wanted: list[int], sums: list[int]) -> None:
        self.noise = [one - other for one, other in zip(wanted, sums, strict=True)]
        self.asked: list[tuple[Fraction, int]] = []

    def discrete_laplace(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        self.asked.append((rate, size))
        return np.array(self.noise[:size], dtype=np.int64)


AXES = np.linalg.qr(np.random.default_rng(6).normal(size=(4, 2)))[0].T


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_variances_depend_on_the_noisy_sums_alone(adjacency: str) -> None:
    """Replayed on other tables with the same noisy sums they are the same, at the stated rate."""
    generator = np.random.default_rng(7)
    sizes = (50, 50) if adjacency == "replace" else (50, 51, 0, 9000)
    epsilon = Fraction(3, 2)
    for wanted in ([9 << 24, 5 << 24, 4 << 24, 7 << 24], [-5, 1 << 30, 3, 0], [0, -1, -1, -1]):
        replayed = []
        for n in sizes:
            rows = unit_rows(generator.normal(size=(n, 4))) * 0.9
            mechanism = PrincipalDirection.from_rows(
                rows, n_components=2, variances=True, adjacency=adjacency
            )
            sums = variance_sums(mechanism._products, n, 40, AXES)
            coins: Any = Scripted(wanted, sums)
            terms = mechanism.terms(epsilon)
            replayed.append(mechanism._draw_variances(terms, coins, AXES).tolist())
            steps = (2 << 24) + 3 if adjacency == "replace" else (1 << 24) + 4
            size = 3 if adjacency == "replace" else 4
            assert coins.asked == [(Fraction(3, 20) / steps, size)]
        assert replayed.count(replayed[0]) == len(replayed)
        # the closed form: clamped, over the public count or over all that was seen
        seen = [max(one, 0) for one in wanted]
        over = 50 << 24 if adjacency == "replace" else max(sum(seen), 1 << 24)
        shares = [min(one / over, 1.0) for one in seen]
        assert replayed[0] == [*shares[:2], min(sum(shares[:3]), 1.0)]


def test_noise_of_variances_has_its_law() -> None:
    """The sums and the law of the noise are exact: what is released is compared cell by cell."""
    rate = Fraction(1, 1 << 22)
    sums = [40 << 24, 20 << 24, 10 << 24, 30 << 24]
    coins = Coins(seeded_bits(8))
    drawn = np.array([draw_variances(coins, sums, rate, 100)[0] for _ in range(3000)])
    for column, at in zip(drawn.T, (0.4, 0.2), strict=True):
        noise = (column - at) * (100 << 24) * float(rate)
        assert stats.kstest(noise, stats.laplace.cdf).pvalue > 1e-6
        assert stats.kstest(1.4 * noise, stats.laplace.cdf).pvalue < 1e-6
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.1


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("k", [1, 4])
def test_a_row_moves_the_noisy_sums_by_what_the_rate_charges(replace: bool, k: int) -> None:
    """Rows by which every floor moves one step more than the real sums do."""
    axes = np.eye(4)[:k]
    steps = 1 / variance_rate(Fraction(1), k, replace=replace)
    generator = np.random.default_rng(9)
    largest = 0
    for _ in range(60):
        base = generator.integers(-400_000, 400_000, size=(3, 4)) * 2.0**-20
        rows = generator.integers(-400_000, 400_000, size=(2, 4)) * 2.0**-20
        here = np.vstack([base, rows[:1]])
        there = np.vstack([base, rows[1:]]) if replace else base
        one, other = (
            variance_sums(row_products(np.asarray(table, dtype=np.float64)), len(table), 40, axes)
            for table in (here, there)
        )
        used = slice(None, -1) if replace else slice(None)
        largest = max(largest, sum(abs(a - b) for a, b in zip(one[used], other[used], strict=True)))
        assert min(one) >= 0  # shares of rows: none is negative, and they add up to one a row
        assert (len(here) << 24) - len(one) < sum(one) <= len(here) << 24
    assert 0 < largest <= steps
    assert steps == ((2 << 24) + k + 1 if replace else (1 << 24) + k + 2)


def test_what_a_component_leaves_is_shrunk_until_its_norm_is_certified() -> None:
    """Columns a little too long, and columns of length one that are not orthogonal."""
    leaning = np.array([[1.0, 0.25], [0.0, 0.96], [0.0, 0.1]])
    for matrix in ((1.0 + 2.0**-22) * np.eye(3)[:, :2], (1.0 + 2.0**-26) * np.eye(2), leaning):
        whole = contraction(matrix).astype(object)
        gram = whole.T.dot(whole)
        one = 1 << (2 * BASIS_BITS)
        beside = [
            [Fraction(int((one if i == j else 0) - gram[i, j])) for j in range(len(gram))]
            for i in range(len(gram))
        ]
        assert is_positive(beside)  # |B| <= 1


@pytest.mark.parametrize("inner", [1, 500, 512, 513, 2048])
def test_products_of_whole_matrices_are_exact_whatever_their_digits_and_width(inner: int) -> None:
    """Digits of largest size, all of one sign: up to 2^54 in a sum, beyond float64 and below it."""
    rng = np.random.default_rng(inner)
    edge = sum((1 << 21) - 1 << 22 * k for k in range(3))  # three digits of largest size
    for least in (edge, -edge):
        one = least + rng.integers(0, 2, (2, inner)).astype(object)
        other = edge - rng.integers(0, 2, (inner, 2)).astype(object)
        product = WholeMatrix.from_integers(one) @ WholeMatrix.from_integers(other)
        assert (product.integers() == one.dot(other)).all()
        assert np.abs(product.digits).max() <= 1 << 21


def test_products_of_rows_add_up_over_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(10).normal(size=(11, 3)) * 0.4
    whole = row_products(rows)
    monkeypatch.setattr(rows_module, "_LOT", 4)
    assert (row_products(rows) == whole).all()
    monkeypatch.setattr(rows_module, "_EXACT", 2)
    assert (row_products(rows) == whole).all()
    alone = np.sum([row_products(row[None]) for row in rows], axis=0)
    assert (alone == whole).all()
