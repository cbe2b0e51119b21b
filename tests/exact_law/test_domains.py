"""Uniform draws from every domain, membership, and symmetric moves, by enumeration."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.problems import domains_of_every_kind

import expmech as em
from expmech.auditing.enumeration import EnumeratingCoins, law_of
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.domains import Domain, Indices
from expmech.domains import regions as balls


def listed(domain: Domain) -> Indices:
    indices = domain.all_indices(1 << 12)
    assert indices is not None
    return indices


@pytest.mark.parametrize(
    "domain", domains_of_every_kind(), ids=lambda domain: str(domain.describe())
)
def test_uniform_draws_are_uniform_on_the_listed_points(domain: Domain) -> None:
    law, leftover = law_of(lambda coins: tuple(domain.draw_uniform(coins, 1)[0].tolist()), cut=2e-5)
    points = set(map(tuple, listed(domain).tolist()))
    assert set(law) == points
    for probability in law.values():
        assert probability == pytest.approx(1.0 / len(points), abs=leftover)
    assert leftover <= 0.25 / len(points)


@pytest.mark.parametrize(
    "domain", domains_of_every_kind(), ids=lambda domain: str(domain.describe())
)
def test_size_and_membership_agree_with_the_list(domain: Domain) -> None:
    indices = listed(domain)
    assert domain.contains(indices).all()
    assert len(set(map(tuple, indices.tolist()))) == len(indices)
    assert np.exp(domain.log_size) >= len(indices) * (1 - 1e-9)
    if not isinstance(domain, em.L2Ball):
        assert np.exp(domain.log_size) == pytest.approx(len(indices))
    assert domain.contains_points(domain.points(indices)).all()


def test_balls_hold_exactly_the_lattice_points_of_the_ball() -> None:
    for domain in (em.L1Ball(2, 1.0, bits=4), em.L2Ball(2, 1.0, bits=4)):
        cube = domain.cube.all_indices(1 << 12)
        assert cube is not None
        points = domain.cube.points(cube)
        norm = (
            np.abs(points).sum(1) if isinstance(domain, em.L1Ball) else np.sqrt((points**2).sum(1))
        )
        assert np.array_equal(domain.contains(cube), norm <= 1.0)


def test_l2_membership_is_decided_in_integers_at_the_boundary() -> None:
    ball = em.L2Ball(2, 1.0, bits=52)
    # o = (3, 4) scaled: 3^2 + 4^2 = 5^2 puts a point on a circle; the lattice's own circle has
    # radius 2^52.
    odd = np.array(
        [[(1 << 52) - 1, 1], [(1 << 52) - 1, (1 << 27) - 1], [(1 << 52) - 1, (1 << 26) + 1]]
    )
    inside = [(int(a) ** 2 + int(b) ** 2) <= 1 << 104 for a, b in odd]
    assert ball._within(odd).tolist() == inside
    assert inside == [True, False, True]


@pytest.mark.parametrize(
    "domain",
    [em.L1Ball(200, 1.0), em.Simplex(200), em.L1Ball(100, 2.0, bits=8), em.L2Ball(10, 1.0)],
    ids=lambda domain: str(domain.describe()),
)
def test_draws_at_real_size_lie_in_the_domain(domain: Domain) -> None:
    drawn = domain.draw_uniform(Coins(seeded_bits(0)), 500)
    assert domain.contains(drawn).all()
    assert len(np.unique(drawn, axis=0)) == 500


def test_l1_ball_in_many_dimensions_has_the_radius_of_a_uniform_ball() -> None:
    """|y|_1 of a uniform point of the unit ball has distribution function r^d.

    A wrong spacing law would not.
    """
    from scipy import stats

    ball = em.L1Ball(6, 1.0)
    radii = np.abs(ball.points(ball.draw_uniform(Coins(seeded_bits(1)), 20_000))).sum(1)
    assert stats.kstest(radii, lambda r: r**6).pvalue > 1e-7
    assert stats.kstest(radii, lambda r: r**5.5).pvalue < 1e-7


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: em.Box([0.0], [0.0]),
            ParameterError,
            "`lower` of Box must be below `upper` on every axis; got 0.0 and 0.0",
        ),
        (lambda: em.Box([1.0], [0.0]), ParameterError, "got 1.0 and 0.0 on axis 0"),
        (
            lambda: em.Box([0.0, 0.0], [1.0]),
            ParameterError,
            "`upper` of Box must be a list of 2 finite numbers",
        ),
        (lambda: em.Box([0.0], [np.inf]), ParameterError, "`upper` of Box"),
        (lambda: em.Box([0.0], ["a"]), ParameterTypeError, "`upper` of Box"),
        (lambda: em.Box([], []), ParameterError, "`lower` of Box"),
        (
            lambda: em.Box([0.0], [1.0], bits=0),
            ParameterError,
            "`bits` of Box must be a whole number in 1..52; got 0",
        ),
        (lambda: em.Box([0.0], [1.0], bits=53), ParameterError, "1..52; got 53"),
        (lambda: em.Box([0.0], [1.0], bits=2.5), ParameterTypeError, "`bits` of Box"),  # type: ignore[arg-type]
        (lambda: em.Box([0.0], [1.0], bits=True), ParameterTypeError, "`bits` of Box"),
        (lambda: em.Box([1e9], [1e9 + 1], bits=40), ParameterError, "float64 can tell apart"),
        (lambda: em.L1Ball(0, 1.0), ParameterError, "`dimension` of L1Ball"),
        (
            lambda: em.L1Ball(9, 1.0, bits=3),
            ParameterError,
            "`bits` of L1Ball must give at least 9 points",
        ),
        (
            lambda: em.L1Ball(2, -1.0),
            ParameterError,
            "`radius` of L1Ball must be a positive finite number; got -1.0",
        ),
        (lambda: em.L2Ball(1025, 1.0), ParameterError, "`dimension` of L2Ball"),
        (
            lambda: em.L2Ball(1024, 1.0, bits=12),
            ParameterError,
            "`bits` of L2Ball must be at least 16 in 1024",
        ),
        (lambda: em.L2Ball(9, 1.0, bits=1), ParameterError, "`bits` of L2Ball"),
        (lambda: em.Simplex(1), ParameterError, "`dimension` of Simplex"),
        (lambda: em.Candidates([]), ParameterError, "at least one candidate"),
        (lambda: em.Candidates("abc"), ParameterTypeError, "`labels` of Candidates"),
    ],
)
def test_bad_domains_get_one_clear_error(make: object, error: type[Exception], words: str) -> None:
    assert callable(make)
    with pytest.raises(error) as caught:
        make()
    assert words in str(caught.value)
    assert isinstance(caught.value, em.ExpmechError)


@pytest.mark.parametrize("coarse", [18, 2])
def test_gaussian_proposals_are_uniform_on_the_ball(
    coarse: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every point comes with the same probability.

    The discrete Gaussian draw, whose law is enumerated elsewhere, is one branch.
    """
    ball = em.L2Ball(1, 1.0, bits=3)

    def draw(coins: Coins, slope: int, size: int) -> NDArray[np.int64]:
        assert isinstance(coins, EnumeratingCoins)
        cells = np.arange(-12, 13)
        weights = np.exp(-(cells**2) * (slope / 2.0**40))
        return np.array(
            [cells[coins._branch((weights / weights.sum()).tolist())] for _ in range(size)]
        )

    monkeypatch.setattr(balls, "draw_discrete_gaussian", draw)
    law, leftover = law_of(
        lambda coins: tuple(ball._propose_gaussian(coins, 1, coarse=coarse).ravel().tolist()),
        cut=1e-12,
    )
    refused = law.pop(())
    assert leftover <= 1e-9 and refused < 0.95
    assert set(law) == {(j,) for j in range(8)}
    for probability in law.values():
        assert probability == pytest.approx((1.0 - refused) / 8, rel=1e-9)


class Careless(Coins):
    """Coins that accept whatever is proposed."""

    def bernoulli_exp(self, counts: NDArray[np.int64], **_: Any) -> NDArray[np.bool_]:
        return np.ones(len(counts), dtype=np.bool_)


@pytest.mark.parametrize("coarse", [18, 3])
def test_gaussian_proposals_are_uniform_in_two_dimensions(coarse: int) -> None:
    ball = em.L2Ball(2, 1.0, bits=4)
    for coins, right in ((Coins(seeded_bits(11)), True), (Careless(seeded_bits(11)), False)):
        points, counts = np.unique(
            ball._propose_gaussian(coins, 100_000, coarse=coarse), axis=0, return_counts=True
        )
        assert len(points) == len(listed(ball))
        assert (stats.chisquare(counts).pvalue > 1e-6) == right


def test_balls_of_many_dimensions_are_drawn_uniformly() -> None:
    """``|y|^d`` is uniform on [0, 1] in the continuum."""
    ball = em.L2Ball(40, 1.0)
    for coins, right in ((Coins(seeded_bits(5)), True), (Careless(seeded_bits(5)), False)):
        lengths = np.linalg.norm(ball.points(ball.draw_uniform(coins, 4000)), axis=1)
        assert (stats.kstest(lengths**40, "uniform").pvalue > 1e-6) == right


@pytest.mark.parametrize("domain", domains_of_every_kind(), ids=lambda one: type(one).__name__)
def test_what_lies_outside_a_lattice_is_told_on_every_side(domain: Domain) -> None:
    """Indices beyond both ends of every axis: only those that are listed are inside."""
    every = domain.all_indices(1 << 12)
    assert every is not None
    listed = set(map(tuple, every.tolist()))
    far = int(every.max()) + 4
    tried = np.array(list(itertools.product(range(-4, far), repeat=domain.dimension)))
    inside = domain.contains(np.ascontiguousarray(tried))
    assert {tuple(row) for row in tried[inside].tolist()} == listed
    assert len(listed) == pytest.approx(math.exp(domain.log_size), rel=0.9)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(
    "domain",
    [em.L1Ball(2, 1.5, bits=6), em.L2Ball(2, 1.5, bits=6), em.Box([-1.0, 0.0], [0.5, 2.0], bits=6)],
    ids=lambda one: type(one).__name__,
)
def test_the_largest_norm_of_a_region_is_bounded_and_nearly_reached(
    domain: em.Box | em.L1Ball | em.L2Ball, norm: str
) -> None:
    """Sensitivities rest on it."""
    indices = domain.all_indices(1 << 13)
    assert indices is not None
    points = domain.points(indices)
    squares = (np.abs(points).sum(axis=1) if norm == "l1" else np.linalg.norm(points, axis=1)) ** 2
    assert squares.max() <= domain.largest_square(norm)
    assert squares.max() >= 0.85 * domain.largest_square(norm)
