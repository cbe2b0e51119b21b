"""Many quantiles at once: the law of the shipped code by enumeration, and its neighbours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.problems import draw_cells

from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError
from expmech.ledger.verification import verify_certificate
from expmech.mechanisms.quantiles import tables
from expmech.mechanisms.quantiles.draw import JointDraw, integer_weights
from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles
from expmech.mechanisms.quantiles.scaled import total
from expmech.mechanisms.quantiles.tables import (
    Levels,
    RankGroups,
    Tables,
    parse_levels,
    rank_groups,
)

EPSILON = Fraction(1)
Law = dict[Hashable, float]


def groups_from_cells(cells: Any, bits: int) -> RankGroups:
    """Return the groups of values at these lattice points."""
    occupied, counts = np.unique(np.array(cells, dtype=np.int64), return_counts=True)
    return rank_groups(occupied, counts, 1 << bits)


def closed_form(
    cells: tuple[int, ...], levels: Levels, bits: int, adjacency: str, epsilon: Fraction = EPSILON
) -> Law:
    """Return the law from its definition: every nondecreasing tuple of lattice points."""
    eta = levels.units(epsilon, adjacency) * levels.denominator * 2.0**-40
    weights: Law = {}
    for outputs in itertools.combinations_with_replacement(
        range(1 << bits), len(levels.numerators)
    ):
        ranks = [sum(cell < output for cell in cells) for output in outputs]
        ends = [0, *ranks, len(cells)]
        loss = sum(
            abs(ends[j + 1] - ends[j] - width * len(cells) / levels.denominator)
            for j, width in enumerate(levels.widths)
        )
        weights[outputs] = math.exp(-eta * loss)
    everything = sum(weights.values())
    return {outputs: weight / everything for outputs, weight in weights.items()}


def shipped(
    cells: tuple[int, ...],
    levels: Levels,
    bits: int,
    adjacency: str,
    *,
    runs: int | None = None,
    epsilon: Fraction = EPSILON,
) -> tuple[Law, float]:
    """Return the law of one proposal of the code as shipped, given that it is accepted."""
    groups = groups_from_cells(np.array(cells, dtype=np.int64), bits)
    joint = JointDraw(groups, levels, levels.units(epsilon, adjacency))
    if runs is not None:
        joint._tables = Tables(groups, levels, joint.units, runs=runs)

    def propose(coins: Coins) -> Hashable:
        indices = joint.propose(coins)
        return None if indices is None else tuple(indices.tolist())

    enumerated, _ = law_of(propose, cut=1e-18)
    refused = enumerated.pop(None, 0.0)
    accepted = sum(enumerated.values())
    assert accepted + refused == pytest.approx(1.0, abs=1e-9)
    return {outputs: mass / accepted for outputs, mass in enumerated.items()}, accepted


CASES = [
    ((), ["1/2"], 2, "add-remove"),
    ((), ["0.25", "0.5", "0.6"], 2, "add-remove"),
    ((0, 1, 3), ["0.5"], 2, "replace"),
    ((1, 1, 1, 2), ["1/3", "2/3"], 2, "replace"),
    ((0, 2, 2, 2, 3, 3), ["0.1", "0.5", "0.9"], 2, "replace"),
    ((3, 3, 3), ["1/30", "1/2", "29/30"], 2, "add-remove"),
    ((0, 1, 2, 3, 4, 5, 6, 7), ["0.25", "0.75"], 3, "add-remove"),
    ((5, 5, 0, 7, 2), ["0.2", "0.4"], 3, "replace"),
    ((7, 7, 7, 7, 7, 7, 7, 7), ["0.2", "0.4", "0.5"], 3, "replace"),
]


@pytest.mark.parametrize(("cells", "texts", "bits", "adjacency"), CASES)
def test_law_of_the_shipped_draw_is_the_joint_exponential_mechanism(
    cells: tuple[int, ...], texts: list[str], bits: int, adjacency: str
) -> None:
    levels = parse_levels(texts)
    found, accepted = shipped(cells, levels, bits, adjacency)
    assert total_variation(found, closed_form(cells, levels, bits, adjacency)) < 1e-10
    assert accepted > 1 - 2e-6  # rounding costs next to no restarts
    wrong = closed_form(cells, levels, bits, adjacency, epsilon=EPSILON * Fraction(11, 10))
    all_alike = len({sum(cell < point for cell in cells) for point in range(1 << bits)}) == 1
    assert all_alike or total_variation(found, wrong) > 1e-4


@pytest.mark.parametrize("runs", [1, 2])
def test_a_bound_on_long_runs_costs_restarts_and_changes_no_probability(runs: int) -> None:
    cells, levels = (0, 2, 2, 2, 3), parse_levels(["0.2", "0.4", "0.6", "0.8"])
    found, accepted = shipped(cells, levels, 2, "replace", runs=runs)
    assert total_variation(found, closed_form(cells, levels, 2, "replace")) < 1e-10
    assert 0.5 < accepted < 1 - 1e-3


SPREAD = tuple(range(32))
CLUSTERS = (0, 1, 2, 2, 2, 3, 9, 9, 9, 10, 17, 18, 19, 20, 21, 22, 23, 24, 31, 31)


@pytest.mark.parametrize(
    ("cells", "texts"),
    [(SPREAD, ["1/2"]), (SPREAD, ["0.2", "0.7"]), (CLUSTERS, ["0.5"]), (CLUSTERS, ["0.1", "0.2"])],
)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_groups_merged_far_from_every_level_cost_restarts_and_change_no_probability(
    cells: tuple[int, ...], texts: list[str], adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups are merged from 0.1 nats on here, in place of 64, so that merged ones matter."""
    monkeypatch.setattr(tables, "_MANY", 1)
    monkeypatch.setattr(tables, "_NEAR", 0.1)
    levels = parse_levels(texts)
    joint = JointDraw(groups_from_cells(cells, 5), levels, levels.units(EPSILON, adjacency))
    assert joint.groups.within is not None
    assert joint.groups.n_groups < joint.exact.n_groups and joint.groups.within.any()
    found, accepted = shipped(cells, levels, 5, adjacency)
    assert total_variation(found, closed_form(cells, levels, 5, adjacency)) < 1e-10
    assert 0.02 < accepted < 1 - 1e-3


def test_merged_groups_hold_the_points_and_ranks_of_those_they_stand_for() -> None:
    rng = np.random.default_rng(2)
    groups = groups_from_cells(np.sort(rng.integers(0, 1 << 20, 40_000)), 20)
    levels = parse_levels(["0.1", "0.5", "0.55"])
    rate = Fraction(1, 4)
    merged = tables.merge_distant(groups, levels, rate)
    assert merged.within is not None and merged.n_groups < groups.n_groups / 10
    assert merged.sizes.sum() == groups.sizes.sum() and merged.count == groups.count
    assert (merged.first + merged.sizes == np.append(merged.first[1:], 1 << 20)).all()
    holding = np.searchsorted(merged.first, groups.first, side="right") - 1
    away = np.abs(groups.ranks - merged.ranks[holding])
    assert (away <= merged.within[holding]).all()
    targets = [0.1 * 40_000, 0.5 * 40_000, 0.55 * 40_000]
    nearest = np.min([np.abs(groups.ranks - target) for target in targets], axis=0)
    assert (6.0 * (merged.within[holding] - 0.5) <= nearest).all()  # ranks are whole
    assert not merged.within[holding][nearest < 64 * 4].any()


def test_a_proposal_from_merged_groups_is_refused_as_seldom_as_any_other() -> None:
    """Else all of it would begin anew without merging, which takes as long as it did."""
    rng = np.random.default_rng(3)
    skewed = np.sort((rng.pareto(0.5, 30_000) * 10.0).astype(np.int64).clip(0, (1 << 24) - 1))
    for cells in (np.arange(20_000) * 3, skewed):
        for texts in (["0.5"], ["0.05", "0.9"], [f"{k}/20" for k in range(1, 20)]):
            levels = parse_levels(texts)
            groups = groups_from_cells(cells + np.arange(cells.size), 25)
            joint = JointDraw(groups, levels, levels.units(Fraction(4), "replace"))
            assert joint.groups is not joint.exact
            joint.draw(Coins(seeded_bits(len(texts))))
            assert joint._refused == 0


def test_groups_that_are_merged_in_vain_are_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    levels, cells = parse_levels(["0.5"]), tuple(range(32))
    monkeypatch.setattr(tables, "_MANY", 1)
    monkeypatch.setattr(tables, "_NEAR", 0.1)
    joint = JointDraw(groups_from_cells(cells, 5), levels, levels.units(EPSILON, "replace"))
    assert joint.tables.groups is joint.groups is not joint.exact
    joint._refused = 8
    assert joint.tables.groups is joint.groups is joint.exact


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("texts", [["1/2"], ["0.1", "0.5"], ["1/3", "2/3"], ["0.2", "0.3", "0.9"]])
def test_all_pairs_of_neighbours_keep_epsilon(texts: list[str], adjacency: str) -> None:
    """Compare closed forms, which the test above equates with the code, over all small data."""
    levels, bits, epsilon = parse_levels(texts), 2, Fraction(2)
    sizes = (3,) if adjacency == "replace" else (0, 1, 2, 3, 4)
    data = [
        cells
        for size in sizes
        for cells in itertools.combinations_with_replacement(range(1 << bits), size)
    ]
    laws = {cells: closed_form(cells, levels, bits, adjacency, epsilon) for cells in data}
    double = {cells: closed_form(cells, levels, bits, adjacency, 2 * epsilon) for cells in data}
    worst = wrong = 0.0
    for one, other in itertools.combinations(data, 2):
        if neighbours(one, other, adjacency):
            worst = max(worst, largest_log_ratio(laws[one], laws[other]))
            wrong = max(wrong, largest_log_ratio(double[one], double[other]))
    assert 0.5 * epsilon < worst <= epsilon * (1 + Fraction(1, 10**9))
    assert wrong > epsilon  # half the sensitivity, the tempting mistake, is not private


def neighbours(one: tuple[int, ...], other: tuple[int, ...], adjacency: str) -> bool:
    """Tell whether two multisets of cells are neighbours."""
    more, less = (one, other) if len(one) >= len(other) else (other, one)
    without = [tuple(more[:j] + more[j + 1 :]) for j in range(len(more))]
    if adjacency == "add-remove":
        return len(more) == len(less) + 1 and less in without
    return any(less[:j] + less[j + 1 :] in without for j in range(len(less)))


@pytest.mark.parametrize(
    ("one", "other", "texts", "adjacency"),
    [
        ((0, 1, 3), (0, 1, 2), ["1/3", "2/3"], "replace"),
        ((0, 0, 0), (0, 0, 3), ["0.1", "0.5"], "replace"),
        ((1, 2), (1, 2, 2), ["0.25", "0.5"], "add-remove"),
        ((), (2,), ["0.5", "0.75"], "add-remove"),
    ],
)
def test_neighbours_keep_epsilon_in_the_code_as_shipped(
    one: tuple[int, ...], other: tuple[int, ...], texts: list[str], adjacency: str
) -> None:
    levels = parse_levels(texts)
    laws = [shipped(cells, levels, 2, adjacency)[0] for cells in (one, other)]
    assert largest_log_ratio(*laws) <= EPSILON * (1 + Fraction(1, 10**9))


def sort_inside(cells: tuple[int, ...], law: Law, bits: int) -> Law:
    """Return the law if outputs that share a group were drawn one by one and then sorted."""
    ranks = {point: sum(cell < point for cell in cells) for point in range(1 << bits)}
    by_ranks: dict[tuple[int, ...], float] = {}
    for outputs, mass in law.items():
        key = tuple(ranks[output] for output in outputs)  # type: ignore[attr-defined]
        by_ranks[key] = by_ranks.get(key, 0.0) + mass
    mutant: Law = {}
    for key, mass in by_ranks.items():
        choices = [[point for point in ranks if ranks[point] == rank] for rank in key]
        placings = list(itertools.product(*choices))
        for placing in placings:
            outputs = tuple(sorted(placing))
            mutant[outputs] = mutant.get(outputs, 0.0) + mass / len(placings)
    return mutant


def test_sorting_inside_a_group_is_not_private() -> None:
    """Drawn one by one and sorted, s different points come s! times as often as s equal ones."""
    levels, bits, epsilon = parse_levels(["1/4", "1/2", "3/4"]), 2, Fraction(1, 2)
    worst = wrong = 0.0
    data = list(itertools.combinations_with_replacement(range(1 << bits), 3))
    laws = {cells: closed_form(cells, levels, bits, "replace", epsilon) for cells in data}
    mutants = {cells: sort_inside(cells, law, bits) for cells, law in laws.items()}
    for one, other in itertools.combinations(data, 2):
        if neighbours(one, other, "replace"):
            worst = max(worst, largest_log_ratio(laws[one], laws[other]))
            wrong = max(wrong, largest_log_ratio(mutants[one], mutants[other]))
    assert worst <= epsilon
    assert wrong > 1.4 * epsilon


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 15), min_size=1, max_size=12),
    st.lists(st.integers(1, 29), min_size=1, max_size=4, unique=True),
    st.floats(0.01, 400.0),
)
def test_tables_hold_the_sum_over_all_tuples(
    cells: list[int], numerators: list[int], epsilon: float
) -> None:
    levels = parse_levels([Fraction(number, 30) for number in sorted(numerators)])
    groups = groups_from_cells(np.array(cells), 4)
    units = levels.units(Fraction(epsilon), "replace")
    (mantissa,), (exponent,) = total(Tables(groups, levels, units, runs=9).finals)
    scale, count = levels.denominator, len(cells)
    logs = []
    for outputs in itertools.combinations_with_replacement(range(groups.n_groups), len(numerators)):
        ends = [0, *(int(groups.ranks[k]) for k in outputs), count]
        missed = sum(
            abs(scale * (ends[j + 1] - ends[j]) - width * count)
            for j, width in enumerate(levels.widths)
        )
        placings = math.prod(
            math.comb(int(groups.sizes[k]) + len(list(run)) - 1, int(groups.sizes[k]) - 1)
            for k, run in itertools.groupby(outputs)
        )
        logs.append(math.log(placings) - units * 2.0**-40 * missed)
    assert math.log(mantissa) + int(exponent) * math.log(2.0) == pytest.approx(
        float(np.logaddexp.reduce(logs)), abs=1e-9, rel=1e-13
    )


def test_tied_values_far_from_every_level_do_not_stall() -> None:
    """A floor of e^-700 in the tables made e^1298 expected restarts here."""
    values = np.concatenate([np.full(4000, 1.0), np.full(4000, 2.0)])
    joint = JointQuantiles.from_values(
        values, levels=[j / 10 for j in range(1, 10)], lower=0.0, upper=3.0, adjacency="add-remove"
    )
    drawn = joint.sample(epsilon=1.0, size=3, seed=1)
    assert (np.diff(drawn, axis=1) >= 0).all()


@pytest.mark.parametrize("epsilon", [2.0**-20, 1.0, 2.0**20])
def test_extreme_sizes_and_budgets_are_served(epsilon: float) -> None:
    counts = np.zeros(256, dtype=np.int64)
    counts[[3, 200]] = 1 << 30
    joint = JointQuantiles.from_counts(counts, levels=["0.2", "0.5", "0.6"], lower=0.0, upper=1.0)
    drawn = joint.sample(epsilon=epsilon, size=3, seed=4)
    assert (np.diff(drawn, axis=1) >= 0).all()
    counts[:] = 0
    nobody = JointQuantiles.from_counts(
        counts, levels=[f"{j}/100" for j in range(1, 100)], lower=0, upper=1, adjacency="add-remove"
    )
    assert (np.diff(nobody.sample(epsilon=epsilon, seed=4)[0]) >= 0).all()


def test_certificates_can_be_recomputed_and_do_not_tell_a_confidential_count() -> None:
    values = np.linspace(0, 1, 77)
    for adjacency in ("replace", "add-remove"):
        joint = JointQuantiles.from_values(
            values, levels=["0.1", "1/3"], lower=0.0, upper=1.0, adjacency=adjacency
        )
        for epsilon in (0.1, 1.0, Fraction(1, 3)):
            certificate = joint.certificate(epsilon=epsilon)
            assert all(check.holds for check in verify_certificate(certificate))
            other = "replace" if adjacency == "add-remove" else "add-remove"
            changes: list[dict[str, Any]] = [
                {"eta": 0.3},
                {"epsilon": 0.99 * certificate.epsilon},
                {"sensitivity": 1.0},
                {"adjacency": other},
                {"timing": "constant"},
                {"sampler": certificate.sampler | {"levels": ["1/10", "1/2"]}},
                {"sampler": certificate.sampler | {"units": certificate.sampler["units"] + 1}},
                {"domain": certificate.domain | {"kind": "Box"}},
                {"postprocessing": {"map": "by name", "labels": ["0.1", "0.9"]}},
            ]
            for change in changes:
                wrong = verify_certificate(replace(certificate, **change))
                assert not all(check.holds for check in wrong), change
        more = JointQuantiles.from_values(
            np.linspace(0, 1, 78), levels=["0.1", "1/3"], lower=0.0, upper=1.0, adjacency=adjacency
        )
        same = more.certificate(epsilon=1.0) == joint.certificate(epsilon=1.0)
        assert same is (adjacency == "add-remove")


def test_levels_are_fractions_with_a_common_denominator() -> None:
    levels = parse_levels(["0.1", 0.2, Fraction(1, 30) * 10, "0.9"])
    assert levels.denominator == 30 and levels.numerators == (3, 6, 10, 27)
    assert parse_levels(levels.texts) == levels
    assert levels.sensitivity("replace") == 2
    assert levels.sensitivity("add-remove") == 2 * (1 - Fraction(3, 30))


def test_values_and_counts_give_the_same_draws() -> None:
    values = np.random.default_rng(3).normal(size=500)
    cells = np.clip(np.floor((values + 4.0) * (1024 / 8.0)), 0, 1023).astype(int)
    options: dict[str, Any] = {"levels": ["0.25", "0.5", "0.75"], "lower": -4.0, "upper": 4.0}
    one = JointQuantiles.from_values(values, bits=10, **options)
    two = JointQuantiles.from_counts(np.bincount(cells, minlength=1024), **options)
    np.testing.assert_array_equal(
        one.sample(epsilon=1.0, size=5, seed=7), two.sample(epsilon=1.0, size=5, seed=7)
    )
    joint = draw_cells(two, Coins(seeded_bits(1)), epsilon=1.0, size=2)
    assert joint.shape == (2, 3)


EXTREME = [
    Levels((1 << 29,), 1 << 30),
    Levels((1,), 1 << 30),
    Levels((1, (1 << 30) - 1), 1 << 30),
    Levels((1, 2, 3), 1 << 30),
    Levels((333_333_333, 999_999_999), 1_000_000_000),
    Levels((1, 2), 3),
]


@pytest.mark.parametrize("levels", EXTREME)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 50), Fraction(1), Fraction(1000)])
def test_energies_of_neighbours_differ_by_half_of_epsilon_at_extreme_denominators(
    levels: Levels, adjacency: str, epsilon: Fraction
) -> None:
    """The loss from its definition in fractions, over all tuples of ranks of small data."""
    units, m = levels.units(epsilon, adjacency), len(levels.numerators)
    ends = [Fraction(one, levels.denominator) for one in (0, *levels.numerators)]
    widths = [b - a for a, b in itertools.pairwise([*ends, Fraction(1)])]
    nats = Fraction(units * levels.denominator, 1 << 40)  # of a loss of one

    def loss(values: tuple[int, ...], outputs: tuple[int, ...]) -> Fraction:
        ranks = [0, *(sum(x < y for x in values) for y in outputs), len(values)]
        return sum(
            (
                abs(b - a - width * len(values))
                for (a, b), width in zip(itertools.pairwise(ranks), widths, strict=True)
            ),
            Fraction(0),
        )

    worst = Fraction(0)
    for size in (0, 1, 3) if adjacency == "add-remove" else (0, 2):
        for base in itertools.combinations_with_replacement(range(3), size):
            moved = [base] if adjacency == "add-remove" else [(*base, x) for x in range(3)]
            for one, x in itertools.product(moved, range(3)):
                for outputs in itertools.combinations_with_replacement(range(4), m):
                    apart = abs(loss(one, outputs) - loss((*base, x), outputs))
                    worst = max(worst, apart)
    assert 0 < 2 * nats * worst <= epsilon
    if adjacency == "replace" and len(levels.numerators) > 1:
        assert 2 * nats * worst * Fraction(units + 1, units) > epsilon  # and no more would do


@pytest.mark.parametrize("levels", EXTREME[:5])
def test_draws_have_their_energies_at_extreme_denominators(levels: Levels) -> None:
    """The weight of all tuples, and the energy of each, against fractions."""
    cells = (0, 1, 1, 3)
    groups = groups_from_cells(np.array(cells), 2)
    units = levels.units(Fraction(4), "replace")
    joint = JointDraw(groups, levels, units)
    assert (
        total_variation(
            shipped(cells, levels, 2, "replace", epsilon=Fraction(4))[0],
            closed_form(cells, levels, 2, "replace", Fraction(4)),
        )
        < 1e-9
    )
    first = [(0, len(levels.numerators))]  # all in the group of rank 0
    missed = sum(
        abs(
            (len(cells) if j == len(levels.numerators) else 0)
            - Fraction(width * 4, levels.denominator)
        )
        for j, width in enumerate(levels.widths)
    )
    assert joint.energy(first) == missed * units * levels.denominator / (1 << 40)


def test_levels_too_fine_for_epsilon_are_refused_and_the_finest_are_not() -> None:
    fine = Levels((1, 2), 1 << 30)
    least = Fraction(4 << 30, 1 << 40)
    assert fine.units(least, "replace") == 1
    with pytest.raises(ParameterError, match="common denominator of at most"):
        fine.units(least * Fraction(999, 1000), "replace")
    with pytest.raises(ParameterError, match="common denominator of at most 2"):
        parse_levels([Fraction(1, (1 << 30) + 1)])
    assert parse_levels([Fraction(1, 1 << 30)]).denominator == 1 << 30
    most = [Fraction(j, 1000) for j in range(1, 1000)]
    assert len(parse_levels(most).numerators) == 999
    for bad in ([0.5, 0.5], [0.5, 0.4], [0.0], [1.0], [Fraction(j, 1001) for j in range(1, 1001)]):
        with pytest.raises(ParameterError):
            parse_levels(bad)


def test_what_is_possible_is_proposed_and_each_weight_is_a_multiple_of_its_value() -> None:
    """Also beside a number so large that float64 has none small enough: no tuple is left out."""
    values = np.array([1.0, 1e-300, 0.0, 0.0, 0.3, 2.0**-57])
    possible = np.array([True, True, True, False, True, True])
    weights = np.diff(integer_weights(values, possible), prepend=0).tolist()
    assert [weight > 0 for weight in weights] == possible.tolist()
    multiple = min(Fraction(w) / Fraction(v) for w, v in zip(weights, values, strict=True) if v)
    assert multiple >= 1 << 54  # the same for all, so that no value falls short of its share
