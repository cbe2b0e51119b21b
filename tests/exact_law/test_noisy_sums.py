"""Noise on sums: the exact law of what is read from them, and neighbours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.problems import draw_values

from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.ledger.verification import verify_certificate, verify_value
from expmech.mechanisms.noisy_sums import (
    CentredMeans,
    CentredTotals,
    Counts,
    DiscreteLaplace,
    MomentVariances,
    NoisyMean,
    Shares,
    ThreeSums,
    Totals,
    Variances,
)
from expmech.mechanisms.noisy_sums.noisy_sums import NoisySums
from expmech.theory.utility import noise_below, noise_mass

REPLACE, ADD_REMOVE = Adjacency
ROWS = (0, 2, 1)  # snapped to two steps
AROUND: dict[str, Any] = {"lower": (-2.0,), "upper": (2.0,), "bits": 1}


def squares(rows: Sequence[int]) -> tuple[int, list[int], list[int]]:
    return len(rows), [sum(rows)], [sum(k * k for k in rows)]


def between(value: float, least: float, most: float = math.inf) -> float:
    return min(max(value, least), most)


def three_sums(a: int, b: int, c: int) -> tuple[float, ...]:
    """Return a variance in units of 16, from moments: a way that the code does not take."""
    a, b, c = (max(0, one) for one in (a, b, c))
    if a + b + c == 0:
        return (0.0,)
    mean, square = Fraction(2 * c + b, 2 * (a + b + c)), Fraction(c, a + b + c)
    return (float(16 * between(square - mean**2, 0, Fraction(1, 4))),)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    """Sums of rows, what they mean, and both again in the plainest way."""

    adjacency: Adjacency
    interpretation: Callable[[Sequence[int]], Any]
    sums: Callable[[Any, Sequence[int]], list[int]]
    again: Callable[[Sequence[int]], list[int]]
    value: Callable[..., tuple[float, ...]]
    moved: int
    epsilon: Fraction


CASES = {
    "counts": Case(
        REPLACE,
        lambda rows: Counts(size=2, disjoint=True, count=len(rows)),
        lambda _, rows: [sum(k < 2 for k in rows), sum(k == 2 for k in rows)],
        lambda rows: [len([k for k in rows if k < 2]), list(rows).count(2)],
        lambda x, y: (between(x, 0, 3), between(y, 0, 3)),
        2,
        Fraction(4),
    ),
    "counts, add-remove": Case(
        ADD_REMOVE,
        lambda rows: Counts(size=2, disjoint=True),
        lambda _, rows: [sum(k < 2 for k in rows), sum(k == 2 for k in rows)],
        lambda rows: [len([k for k in rows if k < 2]), list(rows).count(2)],
        lambda x, y: (between(x, 0), between(y, 0)),
        1,
        Fraction(2),
    ),
    "totals": Case(
        REPLACE,
        lambda rows: Totals(**AROUND, count=len(rows)),
        lambda interpretation, rows: interpretation.sums(*squares(rows)[:2]),
        lambda rows: [sum(rows)],
        lambda x: (-6.0 + 2.0 * between(x, 0, 6),),
        2,
        Fraction(3),
    ),
    "totals, add-remove": Case(
        ADD_REMOVE,
        lambda rows: Totals(**AROUND),
        lambda interpretation, rows: interpretation.sums(*squares(rows)[:2]),
        lambda rows: [sum(k - 1 for k in rows)],
        lambda x: (2.0 * x,),
        1,
        Fraction(2),
    ),
    "variance": Case(
        REPLACE,
        lambda rows: Variances(**AROUND, count=len(rows)),
        lambda interpretation, rows: interpretation.sums(*squares(rows)),
        lambda rows: [sum((a - b) ** 2 for a, b in itertools.combinations(rows, 2))],
        lambda x: (16.0 * between(x, 0, 8) / 36.0,),
        8,
        Fraction(12),
    ),
    "variance, add-remove": Case(
        ADD_REMOVE,
        lambda rows: ThreeSums(**AROUND),
        lambda interpretation, rows: interpretation.sums(*squares(rows)),
        lambda rows: [
            sum((2 - k) ** 2 for k in rows),
            sum(2 * k * (2 - k) for k in rows),
            sum(k * k for k in rows),
        ],
        three_sums,
        4,
        Fraction(12),
    ),
}


def law(case: Case, rows: Sequence[int], cut: float) -> dict[Hashable, float]:
    """Return the law of the value by the code as shipped."""
    interpretation = case.interpretation(rows)
    noisy = NoisySums(
        totals=case.sums(interpretation, rows),
        interpretation=interpretation,
        adjacency=str(case.adjacency),
    )
    enumerated, leftover = law_of(
        lambda coins: rounded(draw_values(noisy, coins, epsilon=case.epsilon, size=1)[0]), cut=cut
    )
    assert leftover < 5e-3
    return enumerated


def rounded(values: Any) -> tuple[float, ...]:
    return tuple(round(float(value), 12) for value in values)


def closed(case: Case, rows: Sequence[int], spread: float = 1.0) -> dict[Hashable, float]:
    """Return the law of the value in closed form, with noise ``spread`` times as wide."""
    rate = float(case.epsilon) / case.moved / spread
    far = math.ceil(25 / rate)
    noise = {k: math.tanh(rate / 2) * math.exp(-rate * abs(k)) for k in range(-far, far + 1)}
    sums = case.again(rows)
    found: dict[Hashable, float] = {}
    for drawn in itertools.product(noise, repeat=len(sums)):
        value = rounded(case.value(*(s + k for s, k in zip(sums, drawn, strict=True))))
        found[value] = found.get(value, 0.0) + math.prod(noise[k] for k in drawn)
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_independent_discrete_laplace_noise(name: str) -> None:
    case = CASES[name]
    sums = len(case.again(ROWS))
    found = law(case, ROWS, cut={1: 1e-10, 2: 1e-8, 3: 2e-6}[sums])
    assert total_variation(found, closed(case, ROWS)) < 5e-3
    assert total_variation(found, closed(case, ROWS, spread=1.5)) > 1e-2


@pytest.mark.parametrize("name", [name for name in CASES if len(CASES[name].again(ROWS)) == 1])
def test_no_pair_of_neighbours_is_told_apart_beyond_epsilon(name: str) -> None:
    case = CASES[name]
    tables = [(0, 0, k) for k in range(3)]
    laws = [law(case, rows, cut=1e-10) for rows in tables]
    pairs = list(itertools.combinations(laws, 2))
    if case.adjacency is ADD_REMOVE:
        without = law(case, (0, 0), cut=1e-10)
        pairs = [(without, other) for other in laws]
    worst = max(largest_log_ratio(one, two, ignore=1e-7) for one, two in pairs)
    assert worst <= float(case.epsilon) * (1 + 1e-3)
    assert worst >= 0.99 * float(case.epsilon)


def test_pairs_of_rows_are_counted_in_units_that_cost_nothing() -> None:
    """Rounded down to units that divide the sensitivity, sums move by that many units at most."""
    for n, bits, coarse in ((5, 3, 4), (4, 2, 3)):
        interpretation = Variances(lower=(0.0,), upper=(1.0,), bits=bits, count=n, coarse=coarse)
        most = interpretation.sensitivity(REPLACE)
        rng = np.random.default_rng(n)
        for _ in range(300):
            rows = rng.integers(0, (1 << bits) + 1, n).tolist()
            other = [*rows[1:], int(rng.choice([0, 1 << bits]))]
            (one,), (two,) = (interpretation.sums(*squares(table)) for table in (rows, other))
            assert abs(one - two) <= most
        ends = [[0] * n, [1 << bits] + [0] * (n - 1)]
        (one,), (two,) = (interpretation.sums(*squares(table)) for table in ends)
        assert two - one == most


def test_values_are_those_of_the_rows_where_there_is_hardly_noise() -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 257, 50)
    numbers = -2.0 + rows / 64.0
    told: Any = (50, [int(rows.sum())], [int((rows**2).sum())])
    fine: dict[str, Any] = {"lower": (-2.0,), "upper": (2.0,), "bits": 8}
    for interpretation, truth in (
        (Totals(**fine, count=50), numbers.sum()),
        (Totals(**fine), numbers.sum()),
        (Variances(**fine, count=50), numbers.var()),
        (ThreeSums(**fine), numbers.var()),
    ):
        sums = interpretation.sums(*told[: 2 if isinstance(interpretation, Totals) else 3])
        relation = "replace" if interpretation.count else "add-remove"
        released = NoisySums(
            totals=sums, interpretation=interpretation, adjacency=relation
        ).release(epsilon=1e6)
        assert released.value[0] == pytest.approx(truth, abs=1e-3)


def test_counts_and_their_intervals_beyond_64_bits_do_not_come_back_from_below() -> None:
    most = (1 << 63) - 1
    counts = Counts(size=2, disjoint=True)
    noise = np.array([[5, -1]])
    assert counts.noisy_sums([most, 3], noise).tolist() == [[most + 5, 2]]
    assert counts.noisy_sums([1 << 70, -most], noise).tolist() == [[(1 << 70) + 5, -most - 1]]
    assert counts.noisy_sums([most, 3], -noise).dtype == np.int64
    near = counts.accuracy([most, 3], DiscreteLaplace(rate=Fraction(1), size=2))
    assert near.upper[0] == near.joint_upper[0] == most
    assert near.lower[0] < most and near.upper[1] > 3


def certificates() -> list[tuple[Any, Any]]:
    found = []
    for case in CASES.values():
        interpretation = case.interpretation(ROWS)
        noisy = NoisySums(
            totals=case.sums(interpretation, ROWS),
            interpretation=interpretation,
            adjacency=str(case.adjacency),
        )
        found.append((noisy.release(epsilon=case.epsilon), case))
    return found


def test_certificates_stand_and_altered_ones_do_not() -> None:
    for released, case in certificates():
        certificate = released.certificate
        assert all(check.holds for check in verify_certificate(certificate))
        assert verify_value(certificate, released.value).holds
        assert not verify_value(certificate, np.array([-1e9])).holds or case.adjacency is ADD_REMOVE
        other = "replace" if case.adjacency is ADD_REMOVE else "add-remove"
        domain = certificate.domain
        changes: list[dict[str, Any]] = [
            {"sensitivity": certificate.sensitivity / 2},
            {"eta": certificate.eta * 2},
            {"adjacency": other},
            {"domain": domain | {"kind": "Mean"}},
            {"mechanism": "NoisyMean"},
            {
                "domain": domain
                | ({"bits": 3} if "bits" in domain else {"disjoint": False, "size": 9})
            },
        ]
        for change in changes:
            wrong = verify_certificate(replace(certificate, **change))
            assert not all(check.holds for check in wrong), (certificate.domain, change)


def test_a_meaning_holds_the_number_of_rows_where_it_is_public_and_only_there() -> None:
    with pytest.raises(ParameterError, match="only there"):
        NoisySums(totals=[3], interpretation=Counts(size=1, disjoint=False))
    with pytest.raises(ParameterError, match="only there"):
        NoisySums(
            totals=[3],
            interpretation=Counts(size=1, disjoint=False, count=3),
            adjacency="add-remove",
        )


_TWO: dict[str, Any] = {"lower": (0.0, 0.0), "upper": (1.0, 1.0), "bits": 2}


@pytest.mark.parametrize("kind", [CentredMeans, CentredTotals, Shares, ThreeSums])
def test_what_is_made_for_rows_added_is_refused_for_rows_replaced(kind: Any) -> None:
    """A row replaced moves these sums twice as far as a row added: epsilon would be half of it."""
    added, replaced = kind(**_TWO), kind(**_TWO, count=3)
    size = added.dimension
    with pytest.raises(ParameterError, match="must be one for 'replace'"):
        NoisySums(totals=[0] * size, interpretation=replaced)
    if kind is Shares:
        return  # a certificate of a mean with a number of rows is one of the mean under replace
    mechanism = NoisySums(totals=[0] * size, interpretation=added, adjacency="add-remove")
    if kind is CentredMeans:
        mechanism = NoisyMean(count=3, sums=[0, 0], **_TWO, adjacency="add-remove")
    certificate = mechanism.release(epsilon=1.0).certificate
    assert all(check.holds for check in verify_certificate(certificate))
    sampler = {name: said for name, said in certificate.sampler.items() if name != "sums"}
    domain = certificate.domain | {"count": 3}
    forged = replace(certificate, adjacency="replace", domain=domain, sampler=sampler)
    assert not all(check.holds for check in verify_certificate(forged))


@pytest.mark.parametrize("kind", [MomentVariances, Variances])
def test_what_needs_the_number_of_rows_is_refused_where_it_is_confidential(kind: Any) -> None:
    size = kind(**_TWO).dimension
    with pytest.raises(ParameterError, match="must be one for 'add-remove'"):
        NoisySums(totals=[0] * size, interpretation=kind(**_TWO), adjacency="add-remove")
    two = kind(**_TWO, count=2)  # of whose rows each is in one pair
    certificate = NoisySums(totals=[0] * size, interpretation=two).release(epsilon=1.0).certificate
    assert all(check.holds for check in verify_certificate(certificate))
    domain = {name: said for name, said in certificate.domain.items() if name != "count"}
    forged = replace(certificate, adjacency="add-remove", domain=domain)
    assert not all(check.holds for check in verify_certificate(forged))


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2)])
def test_the_stated_law_of_noise_is_that_of_the_coins(rate: Fraction) -> None:
    enumerated, _ = law_of(lambda coins: int(coins.discrete_laplace(rate, 1)[0]))
    law = {int(str(noise)): mass for noise, mass in enumerated.items()}
    points = np.arange(-9, 10)
    masses = [law[point] for point in points.tolist()]
    assert np.allclose(masses, noise_mass(float(rate), points), rtol=1e-9, atol=0.0)
    below = [sum(mass for noise, mass in law.items() if noise <= k) for k in points]
    assert np.allclose(below, noise_below(float(rate), points), rtol=1e-9, atol=1e-12)
    assert np.allclose(below, noise_below(float(rate), points + 0.5), rtol=1e-9, atol=1e-12)
    far = noise_below(float(rate), np.array([-300.0]))  # the sum of a geometric tail
    assert far[0] == pytest.approx(noise_mass(float(rate), 300)[()] / -np.expm1(-float(rate)))
