"""Quantiles of tied values: equal values spread over their cell, and medians of parts.

Laws of the shipped code by enumeration of its coins, and all pairs of small neighbours.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import draw_cells

import expmech as em
from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.ledger.verification import has_bounded_range, rho_of, verify_certificate
from expmech.mechanisms.quantiles import JointQuantiles, RecursiveQuantiles
from expmech.mechanisms.quantiles.base import CellCounts, default_spread, draw_subsets
from expmech.mechanisms.quantiles.draw import JointDraw
from expmech.mechanisms.quantiles.recursive_quantiles import node_units, nodes_of
from expmech.mechanisms.quantiles.tables import Levels, parse_levels

CELLS, SPREAD = 3, 2
Law = dict[Hashable, float]
KINDS = {"joint": JointQuantiles, "recursive": RecursiveQuantiles}


def spreads(cells: tuple[int, ...], spread: int) -> dict[tuple[int, ...], float]:
    """Return the law of spread values from its definition: subsets of each cell, by counting."""
    per_cell = []
    for cell, count in sorted(Counter(cells).items()):
        full, rest = divmod(count, spread)
        subsets = list(itertools.combinations(range(spread), rest))
        first = [cell * spread + p for p in range(spread)] * full
        points = [(*first, *(cell * spread + p for p in subset)) for subset in subsets]
        per_cell.append([(one, 1.0 / len(subsets)) for one in points])
    law: dict[tuple[int, ...], float] = {}
    for choice in itertools.product(*per_cell):
        values = tuple(sorted(p for one, _ in choice for p in one))
        law[values] = law.get(values, 0.0) + math.prod(mass for _, mass in choice)
    return law


@functools.cache
def joint_law(
    values: tuple[int, ...], levels: Levels, points: int, adjacency: str, epsilon: Fraction
) -> Law:
    """Return the joint exponential mechanism on nondecreasing tuples, by its definition."""
    eta = levels.units(epsilon, adjacency) * levels.denominator * 2.0**-40
    weights: Law = {}
    for outputs in itertools.combinations_with_replacement(range(points), len(levels.numerators)):
        ends = [0, *(sum(v < o for v in values) for o in outputs), len(values)]
        loss = sum(
            abs(b - a - width * len(values) / levels.denominator)
            for (a, b), width in zip(itertools.pairwise(ends), levels.widths, strict=True)
        )
        weights[outputs] = math.exp(-eta * loss)
    whole = sum(weights.values())
    return {outputs: weight / whole for outputs, weight in weights.items()}


@functools.cache
def recursive_law(
    values: tuple[int, ...], levels: Levels, points: int, adjacency: str, epsilon: Fraction
) -> Law:
    """Return the law of medians of parts, by its definition: a rank loss in every part."""
    share, relation = epsilon / len(levels.numerators).bit_length(), Adjacency(adjacency)
    partial: dict[tuple[tuple[int, int], ...], float] = {
        ((0, 0), (levels.denominator, points - 1)): 1.0
    }
    for node in nodes_of(levels):
        width, place = node.end - node.start, node.at - node.start
        eta = 2.0 * node_units(node, share, relation) * width * 2.0**-40
        after: dict[tuple[tuple[int, int], ...], float] = {}
        for drawn, mass in partial.items():
            low, high = dict(drawn)[node.start], dict(drawn)[node.end]
            top = node.end == levels.denominator
            part = [v for v in values if low <= v and (v < high or top)]
            weights = [
                math.exp(-eta * abs(sum(v < y for v in part) - place * len(part) / width))
                for y in range(low, high + 1)
            ]
            for y, weight in zip(range(low, high + 1), weights, strict=True):
                after[(*drawn, (node.at, y))] = mass * weight / sum(weights)
        partial = after
    law: Law = {}
    for drawn, mass in partial.items():
        outputs = tuple(dict(drawn)[at] for at in levels.numerators)
        law[outputs] = law.get(outputs, 0.0) + mass
    return law


DEFINED = {"joint": joint_law, "recursive": recursive_law}


def released(kind: str, cells: tuple[int, ...], levels: Levels, adjacency: str, eps: Any) -> Law:
    """Return the law of what is released: cells, over all ways to spread the values."""
    law: Law = {}
    for values, mass in spreads(cells, SPREAD).items():
        fine = DEFINED[kind](values, levels, CELLS * SPREAD, adjacency, Fraction(eps))
        for outputs, weight in fine.items():
            key = tuple(o // SPREAD for o in outputs)  # type: ignore[attr-defined]
            law[key] = law.get(key, 0.0) + mass * weight
    return law


def shipped(kind: str, cells: tuple[int, ...], texts: list[str], adjacency: str, eps: Any) -> Law:
    """Return the law of the code as shipped, coins enumerated, given that nothing is refused."""
    made = KINDS[kind].from_counts(
        np.bincount(cells, minlength=4)[:CELLS] if cells else np.zeros(CELLS, dtype=int),
        levels=texts,
        lower=0.0,
        upper=CELLS - 1.0,
        step=1,
        spread=SPREAD,
        adjacency=adjacency,
    )

    def once(coins: Coins) -> Hashable:
        return tuple(draw_cells(made, coins, epsilon=eps, size=1)[0].tolist())

    enumerated, leftover = law_of(once, cut=1e-9)
    assert leftover < 1e-4
    whole = sum(enumerated.values())
    return {outputs: mass / whole for outputs, mass in enumerated.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("cells", "texts", "adjacency"),
    [
        ((1, 1, 1), ["1/4", "1/2"], "replace"),
        ((0, 1, 1, 1, 2), ["1/3", "2/3"], "add-remove"),
        ((0, 0, 2), ["0.25", "0.5", "0.75"], "replace"),
        ((), ["1/3", "2/3"], "add-remove"),
        ((2, 2), ["0.1", "0.2"], "add-remove"),
    ],
)
def test_law_of_the_shipped_code_is_the_mixture_over_spread_values(
    kind: str, cells: tuple[int, ...], texts: list[str], adjacency: str
) -> None:
    levels = parse_levels(texts)
    found = shipped(kind, cells, texts, adjacency, 2)
    assert total_variation(found, released(kind, cells, levels, adjacency, 2)) < 2e-5
    if cells:
        wrong = released(kind, cells, levels, adjacency, Fraction(11, 5))
        assert total_variation(found, wrong) > 1e-4


def neighbours(size: int, adjacency: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return all pairs of neighbouring small data sets."""
    pairs = []
    for base in itertools.combinations_with_replacement(range(CELLS), size):
        for one in range(CELLS):
            if adjacency == "add-remove":
                pairs.append((base, tuple(sorted((*base, one)))))
            else:
                pairs += [
                    (tuple(sorted((*base, one))), tuple(sorted((*base, other))))
                    for other in range(one)
                ]
    return pairs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("texts", [["1/2"], ["0.1", "0.2"], ["0.2", "0.5", "0.9"]])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2**10), Fraction(2), Fraction(40)])
def test_all_pairs_of_tied_neighbours_keep_epsilon(
    kind: str, texts: list[str], adjacency: str, epsilon: Fraction
) -> None:
    levels = parse_levels(texts)
    worst = 0.0
    for size in (0, 1, 3, 4) if adjacency == "add-remove" else (1, 2, 3):
        for one, other in neighbours(size, adjacency):
            laws = [released(kind, each, levels, adjacency, epsilon) for each in (one, other)]
            worst = max(worst, largest_log_ratio(*laws))
    assert 0.1 * epsilon < worst <= epsilon * (1 + Fraction(1, 10**6))


def test_parts_that_are_charged_like_the_whole_are_not_private_under_replace() -> None:
    """A replaced row leaves one part and enters another: both losses move."""
    levels, epsilon = parse_levels(["1/4", "1/2", "3/4"]), Fraction(2)
    worst = {"replace": 0.0, "add-remove": 0.0}
    for base in itertools.combinations_with_replacement(range(4), 5):
        for pair in itertools.combinations(range(4), 2):
            rows = [tuple(sorted((*base, one))) for one in pair]
            for charged, most in worst.items():
                laws = [recursive_law(each, levels, 4, charged, epsilon) for each in rows]
                worst[charged] = max(most, largest_log_ratio(*laws))
    assert worst["replace"] <= epsilon < worst["add-remove"]


def test_spread_values_are_a_uniform_subset_of_their_cell() -> None:
    counts = CellCounts(np.array([1]), np.array([5]), 2)

    def once(coins: Coins) -> Hashable:
        fine = counts.spread(coins, 4)
        return tuple(np.repeat(fine.occupied, fine.counts).tolist())

    enumerated, _ = law_of(once, cut=1e-12)
    law = {tuple(sorted((4, 5, 6, 7, 4 + extra))): 0.25 for extra in range(4)}
    assert total_variation(enumerated, law) < 1e-9  # type: ignore[arg-type]
    three, _ = law_of(lambda coins: tuple(draw_subsets(coins, 4, 3, 1)[0].tolist()), cut=1e-12)
    assert total_variation(three, dict.fromkeys(itertools.combinations(range(4), 3), 0.25)) < 1e-9


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1000, 1 << 30])
def test_spreading_keeps_every_value_in_its_cell(size: int) -> None:
    counts = CellCounts(np.array([0, 3, 4]), np.array([size, 1, 7]), 6)
    fine = counts.spread(Coins(seeded_bits(1)), 32)
    assert (np.diff(fine.occupied) > 0).all() and fine.cells == 6 * 32
    kept = np.bincount(fine.occupied // 32, weights=fine.counts, minlength=6)
    assert kept.tolist() == [size, 0, 0, 1, 7, 0]
    first = fine.counts[fine.occupied < 32]
    assert first.max() - (first.min() if first.size == 32 else 0) <= 1
    assert [default_spread(m) for m in (1, 3, 15, 16, 99)] == [32, 32, 32, 64, 256]


def test_seventy_of_a_hundred_tied_values_are_found() -> None:
    rng = np.random.default_rng(1)
    hours = np.where(rng.random(1000) < 0.7, 40.0, rng.integers(0, 80, 1000).astype(float))
    for m, kinds in ((3, KINDS.values()), (49, [RecursiveQuantiles])):
        levels = [Fraction(j, m + 1) for j in range(1, m + 1)]
        true = np.quantile(hours, [float(level) for level in levels])
        for kind in kinds:
            made = kind.from_values(hours, levels=levels, lower=0.0, upper=100.0)
            drawn = made.sample(epsilon=8.0, size=3, seed=5)
            tied = np.abs(drawn - true)[:, true == 40.0]
            assert np.mean(tied < 1e-3) > 0.8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("lattice", [{"bits": 6}, {"step": "0.25"}])
def test_certificates_are_recomputed_and_altered_ones_do_not_stand(
    kind: str, adjacency: str, lattice: dict[str, Any]
) -> None:
    levels = ["0.1", "0.25", "1/2", "0.6", "9/10"]
    made = KINDS[kind].from_values(
        np.linspace(0, 1, 50), levels=levels, lower=0, upper=1, adjacency=adjacency, **lattice
    )
    for epsilon in (0.1, Fraction(1, 3), 20):
        release = made.release(epsilon=epsilon)
        certificate = release.certificate
        assert all(check.holds for check in verify_certificate(certificate))
        assert KINDS[kind].admits(certificate, release.value)
        assert not KINDS[kind].admits(certificate, release.value + 1e-9)
        depth = 1 if kind == "joint" else 3
        x = (1 / depth) / -math.expm1(-1 / depth)  # docs/theory/composition.md, bounded range
        rho = float(rho_of(certificate, Fraction(1)))
        assert rho == pytest.approx(depth * (x - 1 - math.log(x)), rel=1e-9)
        assert not has_bounded_range(certificate)  # which a mixture is not proved to keep
        own, units = certificate.sampler, certificate.sampler["units"]
        more = units + 1 if kind == "joint" else [units[0] + 1, *units[1:]]
        wrong: list[dict[str, Any]] = [
            {"epsilon": 0.99 * certificate.epsilon},
            {"eta": 2 * certificate.eta},
            {"sampler": own | {"units": more}},
            {"sampler": own | {"spread": 3}},
            {"sampler": own | {"spread": True}},
            {"sampler": own | {"levels": ["0.1", "0.2", "1/2", "0.6", "9/10"]}},
            {"sensitivity": certificate.sensitivity / 2},
            {"domain": certificate.domain | {"count": 3 if adjacency == "add-remove" else -1}},
        ]
        for change in wrong:
            assert not _stands(certificate, change), change


def _stands(certificate: em.Certificate, change: dict[str, Any]) -> bool:
    try:
        return all(c.holds for c in verify_certificate(dataclasses.replace(certificate, **change)))
    except em.ExpmechError:
        return False


def test_what_lies_outside_of_a_part_moves_nothing_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values at a cut belong to the part above it, in every part of a draw."""
    seen: list[tuple[int, int]] = []
    draw = JointDraw.draw

    def noted(self: JointDraw, coins: Coins) -> Any:
        drawn = draw(self, coins)
        seen.append((self.groups.count, int(self.groups.sizes.sum())))
        return drawn

    monkeypatch.setattr(JointDraw, "draw", noted)
    values = np.repeat(np.arange(8.0), 5)
    made = RecursiveQuantiles.from_values(
        values, levels=["1/4", "1/2", "3/4"], lower=0, upper=7, step=1, spread=1
    )
    first, middle, last = draw_cells(made, Coins(seeded_bits(3)), epsilon=3.0, size=1)[0].tolist()
    below = int((values < middle).sum())
    assert seen == [(40, 8), (below, middle + 1), (40 - below, 8 - middle)]
    assert first <= middle <= last
