"""A row limit that nobody knows: its exact law, neighbours that differ by a person, rows alone."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pytest

from expmech.auditing.enumeration import law_of
from expmech.ledger.verification import verify_certificate, verify_value
from expmech.mechanisms.selection import PermuteAndFlip
from expmech.tables.aggregates import Tally
from expmech.tables.engines.rows import TableRows
from expmech.tables.release import ReleaseRequest
from expmech.tables.sources import open_frame
from expmech.tables.sources.units import ROW_LIMITS, Units
from expmech.tables.statistics import RowLimit
from expmech.tables.statistics.row_limits import LEVEL

EPSILON = Fraction(2)
LIMIT = RowLimit(unit="who")
PEOPLE = Units(column="who", max_rows=1, counted=True)
Sizes = Sequence[int]


def tallied(sizes: Sizes) -> Tally:
    """Return people by the least listed number that is not below the number of their rows."""
    least = [min((k for k in ROW_LIMITS if k >= size), default=ROW_LIMITS[-1]) for size in sizes]
    counts = Counter(least)
    return Tally(counts=tuple(counts[k] for k in ROW_LIMITS), rows=len(sizes))


def shipped(sizes: Sizes) -> PermuteAndFlip:
    made = LIMIT.mechanism(tallied(sizes), EPSILON, "auto")
    assert isinstance(made, PermuteAndFlip)
    return made


def written_again(sizes: Sizes) -> list[float]:
    """Return the law of the first of a random order that wins its coin, from ranks of people."""
    clipped = [min(size, ROW_LIMITS[-1]) for size in sizes]
    losses = []
    for place, limit in enumerate(ROW_LIMITS):
        before = ROW_LIMITS[place - 1] if place else 0
        fewer, at_most = (sum(size <= most for size in clipped) for most in (before, limit))
        due = LEVEL * len(sizes)
        losses.append(float(max(Fraction(0), fewer - due, due - at_most)))
    best, rate = min(losses), float(EPSILON / 2 / max(LEVEL, 1 - LEVEL))
    chances = [math.exp(-rate * (loss - best)) for loss in losses]
    # permute-and-flip, by the integral of p_i prod (1 - t p_j) over t from 0 to 1
    nodes, weights = np.polynomial.legendre.leggauss(len(chances))
    at = (nodes + 1) / 2
    others = np.array([[1 - t * p for p in chances] for t in at])
    law = []
    for i, chance in enumerate(chances):
        product = np.prod(np.delete(others, i, axis=1), axis=1)
        law.append(float(chance * (weights / 2 * product).sum()))
    return law


TABLES = [
    sizes
    for count in range(4)
    for sizes in itertools.combinations_with_replacement((1, 2, 5, 90, 5000), count)
]


@pytest.mark.parametrize("sizes", [(), (1,), (2, 5), (1, 1, 7, 30), (1,) * 19 + (5000,)])
def test_the_law_of_a_limit_is_permute_and_flip_by_ranks_of_people(sizes: Sizes) -> None:
    law = shipped(sizes).law(epsilon=EPSILON)
    assert law == pytest.approx(written_again(sizes), abs=1e-6)
    assert law.sum() == pytest.approx(1.0)


def test_the_shipped_draw_has_this_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("expmech.tables.statistics.row_limits.ROW_LIMITS", (1, 2, 3))
    statistic = RowLimit(unit="who")
    object.__setattr__(statistic, "labels", (1, 2, 3))
    made = statistic.mechanism(Tally(counts=(2, 0, 1), rows=3), EPSILON, "auto")
    draw = made.fit(EPSILON)
    law, leftover = law_of(lambda coins: draw(coins, 1).values[0], cut=2**-9)
    assert isinstance(made, PermuteAndFlip) and leftover < 0.02
    for limit, chance in zip((1, 2, 3), made.law(epsilon=EPSILON), strict=True):
        assert law.get(limit, 0.0) - 1e-9 <= chance <= law.get(limit, 0.0) + leftover + 1e-9


def test_one_person_with_any_number_of_rows_moves_the_law_by_epsilon_at_most() -> None:
    largest = 0.0
    for sizes in TABLES:
        law = shipped(sizes).law(epsilon=EPSILON)
        for more in (1, 2, 3, 70, 5000):
            other = shipped((*sizes, more)).law(epsilon=EPSILON)
            largest = max(largest, float(np.abs(np.log(law) - np.log(other)).max()))
    assert 0.45 * EPSILON < largest <= float(EPSILON) + 1e-6


def visits(sizes: Sizes, *, nobody: int = 0) -> pyarrow.Table:
    who = [f"p{k}" for k, size in enumerate(sizes) for _ in range(size)]
    return pyarrow.table({"who": [*who, *[None] * nobody], "day": range(len(who) + nobody)})


@pytest.mark.parametrize("sizes", [(1,), (3, 1, 4), (5, 1025, 1024, 768, 769), (2, 2, 2)])
def test_people_are_counted_each_by_his_or_her_own_rows(sizes: Sizes) -> None:
    source = open_frame(visits(sizes, nobody=9), name="visits")
    rows = TableRows(source=PEOPLE.bound(source))
    assert rows.aggregate(LIMIT.aggregation(EPSILON)) == tallied(sizes)


def test_the_release_of_a_limit_protects_people_and_is_certified() -> None:
    source = open_frame(visits((2,) * 300), name="visits")
    request = ReleaseRequest(epsilon=EPSILON, units=PEOPLE)
    prepared = request.prepare(LIMIT, PEOPLE.bound(source))
    released: Any = prepared.release(prepared.parts[""].aggregate(prepared.aggregation))
    assert released.value == 2  # all have two rows
    assert prepared.entry().adjacency == "add-remove of who"
    assert prepared.entry().epsilon == EPSILON
    assert "of one row" not in str(released) and "one who with all rows" in str(released)
    checks = [
        *verify_certificate(released.certificate),
        verify_value(released.certificate, released.value),
    ]
    assert all(check.holds for check in checks)
