"""Quantiles.

The rank loss, its bounds over intervals, its sensitivities and the law of a release.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import exact_law, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import largest_log_ratio, total_variation
from expmech.core.errors import ParameterTypeError
from expmech.domains import Grid
from expmech.exponential.samplers.box_tree import BoxTreeChain
from expmech.exponential.target import make_target

VALUES = (0.1, 0.3, 0.35, 0.9, 0.9)
LEFTOVER = 1e-6


FIFTHS = em.Multiples(step=0.2, lower=0.0, upper=0.9)  # five points, in a box of eight


def mechanism(
    values: Any,
    *,
    q: float = 0.5,
    adjacency: str = "replace",
    bits: int = 3,
    domain: Grid | None = None,
) -> em.ExponentialMechanism:
    loss = em.losses.Quantile(
        np.array(values, dtype=np.float64), q=q, lower=0.0, upper=1.0, adjacency=adjacency
    )
    box = em.Box([0.0], [1.0], bits=bits) if domain is None else domain
    return em.ExponentialMechanism(loss=loss, domain=box, adjacency=adjacency)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("q", [0.5, 0.1])
def test_law_of_a_box_tree_release_is_the_exponential_mechanism(
    q: float, adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoxTreeChain, "refine", functools.cache(BoxTreeChain.refine))
    chain, target = prepared(
        mechanism(VALUES, q=q, adjacency=adjacency), em.BoxTree(batch=1), epsilon=2.0
    )
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER


def by_definition(points: list[float], values: Any, q: float, eta: float) -> list[float]:
    """Return the law from its definition: both ranks of every point, in fractions."""
    target = Fraction(q) * len(values)
    losses = [
        max(
            Fraction(0),
            sum(x < y for x in values) - target,
            target - sum(x <= y for x in values),
        )
        for y in points
    ]
    weights = [math.exp(-eta * loss) for loss in losses]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("sampler", [em.BoxTree(batch=1), em.Tabulated(), em.ConstantTabulated()])
@pytest.mark.parametrize("values", [(0.4,) * 5, (0.0, 0.4, 0.4, 0.4, 0.8), (0.8, 0.8, 0.2)])
def test_law_on_multiples_of_a_step_is_that_of_the_loss_with_both_ranks(
    values: tuple[float, ...], sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoxTreeChain, "refine", functools.cache(BoxTreeChain.refine))
    made = mechanism(values, q=0.3, domain=FIFTHS)
    chain, target = prepared(made, sampler, epsilon=2.0)
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    points = FIFTHS.values(np.arange(5)[:, None])[:, 0].tolist()
    assert points == [0.0, 0.2, 0.4, 0.6, 0.8]
    law, wrong = (
        {(k,): mass for k, mass in enumerate(by_definition(points, values, 0.3, eta))}
        for eta in (target.eta, 1.1 * target.eta)
    )
    assert total_variation(enumerated.law, law) <= 2 * LEFTOVER  # type: ignore[arg-type]
    assert total_variation(enumerated.law, wrong) > 1e-3  # type: ignore[arg-type]


def test_equal_values_fall_on_one_point_which_is_drawn_nearly_always() -> None:
    """The rank #{x < y} alone cannot tell any point from another here."""
    made = mechanism([0.4] * 1000, bits=16)
    drawn = made.sample(epsilon=1.0, size=50, seed=2).values
    assert (np.abs(drawn - 0.4) < 2.0**-16).all()


@pytest.mark.parametrize("q", [0.5, 0.25])
def test_replacing_a_value_moves_no_probability_by_more_than_epsilon(q: float) -> None:
    worst = max(
        largest_log_ratio(
            exact_law(mechanism(one, q=q).target(epsilon=1.0)),
            exact_law(mechanism(other, q=q).target(epsilon=1.0)),
        )
        for one, other in neighbours((0.0, 0.4, 0.6, 1.0), 3)
    )
    assert 0.4 <= worst <= 1.0


@pytest.mark.parametrize("q", [0.5, 0.25])
def test_adding_a_value_moves_no_probability_by_more_than_epsilon(q: float) -> None:
    grid = (0.0, 0.4, 0.6, 1.0)
    ratios = []
    for n in (0, 1, 2, 3):
        for values in itertools.combinations_with_replacement(grid, n):
            before = exact_law(mechanism(values, q=q, adjacency="add-remove").target(epsilon=1.0))
            for added in grid:
                after = exact_law(
                    mechanism((*values, added), q=q, adjacency="add-remove").target(epsilon=1.0)
                )
                ratios.append(largest_log_ratio(before, after))
    assert 0.4 <= max(ratios) <= 1.0


def test_loss_is_how_many_ranks_a_point_is_from_the_quantile_within_its_error() -> None:
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=200), 1)
    clipped = np.clip(values, -1.0, 2.0).tolist()
    for q in (0.1, 0.5, Fraction(1, 3)):
        loss = em.losses.Quantile(values, q=q, lower=-1.0, upper=2.0)
        for y in (-1.0, -0.3, 0.0, 0.25, 2.0, *np.unique(clipped).tolist()):
            below, upto = sum(x < y for x in clipped), sum(x <= y for x in clipped)
            wanted = max(Fraction(0), below - Fraction(q) * 200, Fraction(q) * 200 - upto)
            found = Fraction(float(loss(np.array([[y]]))[0]))
            assert abs(found - wanted) <= loss.loss_error


@pytest.mark.parametrize("domain", [em.Box([-1.0], [2.0], bits=4), em.Box([0.0], [1.5], bits=3)])
def test_values_are_moved_to_the_point_of_their_cell_one_by_one(domain: em.Box) -> None:
    values = np.array([-3.0, -1.0, 0.3, 0.31, 0.9, 1.4, 2.0, 7.0])
    points = domain.values(np.arange(domain.points_per_axis)[:, None])
    loss = em.losses.Quantile(values, q=0.4, lower=-1.0, upper=2.0)
    nearest = [points[np.abs(points - x).argmin(), 0] for x in np.clip(values, -1.0, 2.0)]
    edges, first = np.unique(np.sort(values), return_index=True)
    by_ranks = em.losses.Quantile.from_ranks(
        edges=edges, ranks=first, count=8, q=0.4, lower=-1.0, upper=2.0
    )
    moved = em.losses.Quantile(nearest, q=0.4, lower=-1.0, upper=2.0)
    for one in (loss, by_ranks):
        on_lattice = one.facts(domain).on_lattice
        assert on_lattice is not None
        assert (on_lattice(points) == moved(points)).all()
        assert on_lattice(points).min() == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 500])
def test_many_points_have_the_losses_of_each_alone(count: int) -> None:
    """A whole lattice is searched in steps whose number does not depend on the values."""
    rng = np.random.default_rng(count)
    for values in (rng.integers(0, 9, size=count) / 8.0, np.zeros(count), np.ones(count)):
        loss = em.losses.Quantile(values, q=0.3, lower=0.0, upper=1.0)
        many = np.linspace(0.0, 1.0, (1 << 12) + 1)[:, None]
        alone = np.concatenate([loss(few) for few in np.array_split(many, 5)])
        assert (loss(many) == alone).all()
        assert len(np.unique(loss._rank(many))) == len(np.unique(values[values < 1.0])) + 1


@pytest.mark.parametrize("source", ["values", "ranks"])
def test_lower_bound_is_the_least_loss_over_an_interval_up_to_ties(source: str) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 30, size=50) / 30.0
    loss = em.losses.Quantile(values, q=0.4, lower=0.0, upper=1.0)
    if source == "ranks":
        edges = np.unique(values)
        ranks = [int((values < edge).sum()) for edge in edges]
        loss = em.losses.Quantile.from_ranks(
            edges=edges, ranks=ranks, count=50, q=0.4, lower=0.0, upper=1.0
        )
    fine = np.linspace(0.0, 1.0, 601)
    losses = loss(fine[:, None])
    ends = np.sort(rng.integers(0, 601, size=(300, 2)), axis=1)
    bounds = loss.lower_bound(fine[ends[:, :1]], fine[ends[:, 1:]])
    least = np.array([losses[a : b + 1].min() for a, b in ends])
    assert (bounds <= least).all()
    largest_tie = int(np.unique(values, return_counts=True)[1].max())
    assert (least - bounds <= largest_tie).all()
    assert (bounds == least).mean() > 0.8


def test_ranks_of_a_database_give_the_loss_of_values_moved_down_to_the_edges() -> None:
    rng = np.random.default_rng(2)
    values = rng.random(100)
    edges = np.arange(1, 16) / 16.0
    ranks = [int((values < edge).sum()) for edge in edges]
    moved = np.floor(values * 16) / 16
    points = rng.random((500, 1))
    by_ranks = em.losses.Quantile.from_ranks(
        edges=edges, ranks=ranks, count=100, q=0.5, lower=0.0, upper=1.0
    )
    assert (
        by_ranks(points) == em.losses.Quantile(moved, q=0.5, lower=0.0, upper=1.0)(points)
    ).all()


def test_certificate_does_not_depend_on_the_number_of_values_under_add_remove() -> None:
    certificates = [
        mechanism(values, adjacency="add-remove", bits=32).certificate(
            epsilon=1.0, sampler=em.BoxTree()
        )
        for values in ((), (0.2,), (0.1,) * 50)
    ]
    assert certificates[0] == certificates[1] == certificates[2]


def test_wrong_parameters_are_refused() -> None:
    wrong: dict[str, Any]
    good: dict[str, Any] = {"values": [0.5], "q": 0.5, "lower": 0.0, "upper": 1.0}
    for wrong in (
        {"q": 0.0},
        {"q": 1.5},
        {"lower": 2.0},
        {"adjacency": "swap"},
        {"values": []},
        {"values": [float("nan")]},
        {"values": [[0.5]]},
        {"values": ["a"]},
    ):
        with pytest.raises((em.ParameterError, ParameterTypeError), match="Quantile"):
            em.losses.Quantile(**(good | wrong))
    with pytest.raises(em.ParameterError, match="adjacency"):
        em.ExponentialMechanism(
            loss=em.losses.Quantile(**good), domain=em.Box([0.0], [1.0]), adjacency="add-remove"
        )
    with pytest.raises(em.ParameterError, match="one dimension"):
        em.ExponentialMechanism(
            loss=em.losses.Quantile(**good), domain=em.Box([0.0, 0.0], [1.0, 1.0])
        )
    ranks: dict[str, Any] = {
        "edges": [0.2, 0.4],
        "ranks": [1, 2],
        "count": 3,
        "q": 0.5,
        "lower": 0.0,
        "upper": 1.0,
    }
    for wrong in (
        {"edges": [0.4, 0.2]},
        {"ranks": [2, 1]},
        {"ranks": [1]},
        {"ranks": [0.5, 1.0]},
        {"count": 1},
    ):
        with pytest.raises((em.ParameterError, ParameterTypeError), match="from_ranks"):
            em.losses.Quantile.from_ranks(**(ranks | wrong))


def test_ties_among_very_many_values_do_not_flatten_the_law() -> None:
    """At 10^8 ages with ties of 10^6, the distance of ranks is nowhere below half a million.

    Energies would all saturate.
    """
    ages = np.arange(101.0)
    ranks = np.arange(101) * 10**6
    loss = em.losses.Quantile.from_ranks(
        edges=ages, ranks=ranks, count=101 * 10**6, q=0.5, lower=0.0, upper=101.0
    )
    draws = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [101.0])).sample(
        epsilon=10.0, size=20, seed=1
    )
    assert (np.abs(draws.values - 50.0) <= 1.0).all()


@pytest.mark.parametrize(
    "values", [[0.5] * 5, [1.0] * 4, [0.0] * 4, [0.2, 0.2, 0.8], [0.1, 0.4, 0.4, 0.4, 0.9], [0.3]]
)
@pytest.mark.parametrize("q", [0.5, 0.1, 0.9])
def test_least_loss_between_the_bounds_is_zero(values: list[float], q: float) -> None:
    loss = em.losses.Quantile(values, q=q, lower=0.0, upper=1.0)
    points = np.linspace(0.0, 1.0, 4001)[:, None]
    edges = np.array(sorted(set(values)))
    ranks = np.searchsorted(np.sort(values), edges, side="left")
    by_ranks = em.losses.Quantile.from_ranks(
        edges=edges, ranks=ranks, count=len(values), q=q, lower=0.0, upper=1.0
    )
    assert loss(points).min() == 0.0
    assert (by_ranks(points) == loss(points)).all()


def widest_difference(adjacency: str) -> float:
    """Return the largest range, over the lattice.

    Of energy differences between adjacent data sets, in multiples of epsilon.

    Nearly all of 40 values are tied, and epsilon is so large that losses saturate at twelve.
    """
    epsilon = 2.0**20 / 6.0 * (1.0 if adjacency == "replace" else 0.6)
    sets = [[0.0] * low + [0.4] * (40 - low) for low in range(6)]
    pairs = (
        list(itertools.pairwise(sets))
        if adjacency == "replace"
        else [(one, [*one, value]) for one in sets for value in (0.0, 0.4)]
    )
    widest = 0.0
    for pair in pairs:
        # as without a bound, which would make the unit so coarse that nothing saturates
        problems = (mechanism(values, q=0.4, adjacency=adjacency)._problem for values in pair)
        targets = (
            make_target(dataclasses.replace(one, bound=None), Fraction(epsilon)) for one in problems
        )
        first, second = (target.energy(np.arange(8)[:, None]) for target in targets)
        widest = max(widest, float(np.ptp(first - second)) / 2.0**40 / epsilon)
    return widest


@pytest.mark.parametrize(("adjacency", "jump"), [("replace", 15.5), ("add-remove", 15.7)])
def test_epsilon_is_kept_where_energies_saturate(
    adjacency: str, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log ratio of two laws is at most the range of the energy difference.

    A constant that jumps by more than D breaks it.
    """
    assert 0.4 <= widest_difference(adjacency) <= 1.0
    both = em.losses.Quantile.lower_bound

    def jumping(self: em.losses.Quantile, lower: Any, upper: Any) -> Any:
        found = both(self, lower, upper)
        return found + 8.0 * (found[0] >= jump)

    monkeypatch.setattr(em.losses.Quantile, "lower_bound", jumping)
    assert widest_difference(adjacency) > 1.0


@pytest.mark.parametrize(
    ("step", "lower", "upper", "count"),
    [
        ("0.1", 0.0, 0.3, 4),
        ("0.1", 0.1, 0.7, 7),
        ("1/3", -1 / 3, 1 / 3, 3),
        ("0.1", 0.01, 0.29, 2),
        ("0.1", 0.0, float(np.nextafter(0.3, 0.0)), 3),
        ("7", -8.0, 15.0, 4),
    ],
)
def test_multiples_that_are_bounds_are_answers(
    step: str, lower: float, upper: float, count: int
) -> None:
    multiples = em.Multiples(step=step, lower=lower, upper=upper)
    listed = multiples.values(np.arange(multiples.count)[:, None])[:, 0]
    assert multiples.count == count
    assert lower <= listed[0]
    assert listed[-1] <= upper
    assert multiples.contains_points(listed[:, None]).all()
    values = em.losses.Quantile(listed, q=0.5, lower=lower, upper=upper)
    assert values.facts(multiples).minimum == 0.0


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_whole_lattice_has_the_losses_of_its_points_one_by_one(adjacency: str) -> None:
    edges, ranks = np.array([0.125, 0.375, 0.625, 0.875]), [0, 2, 2, 5]
    loss = em.losses.Quantile.from_ranks(
        edges=edges, ranks=ranks, count=9, q=0.25, lower=0.0, upper=1.0, adjacency=adjacency
    )
    singly = [float(loss(np.array([[edge]]))[0]) for edge in edges]
    assert loss(edges[:, None]).tolist() == singly == [0.25, 0.25, 0.0, 2.75]
