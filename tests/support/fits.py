"""What a fit would release: its exact law, and all that is public, caught before the draw."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech as em
from expmech.certificates.plan import Plan
from expmech.core.errors import ExpmechError
from expmech.mechanisms.noisy_sums.noisy_sums import NoisyMean
from expmech.tables.release import PreparedRelease


@dataclass(frozen=True)
class Law:
    """What can be released, in order, and the logarithm of the probability of each."""

    support: Any
    logs: NDArray[np.float64]


Row = tuple[Any, ...]


class CaughtError(Exception):
    """Raised in the place of the last draw of a fit."""


@dataclass
class Caught:
    """What a fit was about to release, and what it told before."""

    laws: list[Law] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    certificates: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def caught(
    monkeypatch: pytest.MonkeyPatch,
    estimator: Any,
    rows: Sequence[Row],
    *,
    columns: int,
    releases: int = 1,
    with_law: bool = True,
) -> Caught:
    """Fit to rows, whose last entry is the target where they are longer than ``columns``."""
    found = Caught()

    def instead(settled: PreparedRelease, answer: Any) -> Any:
        settled.with_aggregate(answer)  # as a release would: rows that do not fit are refused
        epsilon, timing = settled.request.row_epsilon, settled.request.timing
        mechanism: Any = settled.statistic.mechanism(answer, epsilon, timing)
        found.certificates.append(settled.certificate.to_json())
        found.plans.append(mechanism.plan(epsilon, timing=timing))
        if with_law:
            found.laws.append(law_of(mechanism, epsilon))
        if len(found.certificates) == releases:
            raise CaughtError

    table, target = as_arrays(rows, columns)
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        patch.setattr(PreparedRelease, "release", instead)
        try:
            estimator.fit(table, target)
        except CaughtError:
            pass
        except ExpmechError as error:
            found.told.append(f"{type(error).__name__}: {error}")
            found.laws = [Law(found.told[-1], np.zeros(1))]
    found.told += [str(warning.message) for warning in warned]
    return found


def as_arrays(rows: Sequence[Row], columns: int) -> tuple[Any, Any]:
    """Return the table and, where rows have one entry more, the target: arrays of objects."""
    table, target = np.empty((len(rows), columns), dtype=object), np.empty(len(rows), dtype=object)
    for k, row in enumerate(rows):
        table[k] = row[:columns]
        target[k] = row[columns] if len(row) > columns else None
    return table, target


def law_of(mechanism: Any, epsilon: Any) -> Law:
    """Return the exact law of a release, in closed form for noise on sums."""
    if isinstance(mechanism, NoisyMean):
        return noisy_law(mechanism, epsilon)
    points, probabilities = mechanism.law(epsilon=epsilon)
    return Law(np.asarray(points).tolist(), np.log(probabilities))


def noisy_law(mechanism: NoisyMean, epsilon: Any) -> Law:
    """Return the law of the clamped noisy sums, of which the release is a function.

    Columns are independent: an outcome is a tuple of one a sum. Sums without an upper clamp end
    where the ratio of any two laws no longer changes.
    """
    noise = mechanism.noise(epsilon)
    if noise.name == "cube":
        return _cube_law(mechanism._totals, float(noise.rate), 16 << mechanism.bits)
    rate, count = float(noise.rate), mechanism.interpretation.count
    top = (4 if count is None else count) << mechanism.bits  # 4: beyond every sum of the tests
    laws = [_clamped(total, rate, top, open_above=count is None) for total in mechanism._totals]
    joint = functools.reduce(np.add.outer, laws)
    return Law(joint.shape, joint.ravel())


def _cube_law(totals: Sequence[int], rate: float, far: int) -> Law:
    """Return the logs of ``P(v) ~ exp(-rate |v - totals|_inf)`` at points near and far.

    The ratio of two such laws is largest far out along an axis; they have one normaliser.
    """
    axis = np.array([-far, -1, 0, 1, far])
    points = np.stack(np.meshgrid(*[axis] * len(totals), indexing="ij"), axis=-1)
    logs = -rate * np.abs(points - np.array(totals)).max(axis=-1)
    return Law(logs.shape, logs.ravel())


def _clamped(total: int, rate: float, top: int, *, open_above: bool) -> NDArray[np.float64]:
    """Return log P(clamp(total + noise) = k); the noise is discrete Laplace."""
    at_zero = math.log((1.0 - math.exp(-rate)) / (1.0 + math.exp(-rate)))
    law: NDArray[np.float64] = at_zero - rate * np.abs(np.arange(top + 1.0) - total)
    tail = -math.log(1.0 + math.exp(-rate))  # P(noise >= 0) = 1 / (1 + exp(-rate))
    law[0] = tail - rate * total
    if not open_above:
        law[top] = tail - rate * (top - total)
    return law


def largest_ratio(one: Sequence[Law], two: Sequence[Law]) -> float:
    """Return the largest log ratio of two joint laws of independent releases."""
    total = 0.0
    for first, second in zip(one, two, strict=True):
        if first.support != second.support:
            return math.inf
        total += float(np.abs(first.logs - second.logs).max())
    return total


def neighbouring(rows: Sequence[Row], adjacency: str) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every pair of neighbouring tables of up to two rows, as positions in ``rows``."""
    places = range(len(rows))
    if adjacency == "replace":
        for common in places:
            for one, two in itertools.combinations(places, 2):
                yield tuple(sorted((common, one))), tuple(sorted((common, two)))
        return
    for size in (0, 1):
        for table in itertools.combinations_with_replacement(places, size):
            for one in places:
                yield table, tuple(sorted((*table, one)))


def worst_ratio(
    monkeypatch: pytest.MonkeyPatch,
    estimator: Any,
    rows: Sequence[Row],
    *,
    columns: int,
    releases: int = 1,
) -> float:
    """Return the largest log ratio of the released laws over all pairs of neighbours."""
    laws: dict[tuple[int, ...], list[Law]] = {}
    worst = 0.0
    for pair in neighbouring(rows, estimator.adjacency):
        for table in pair:
            if table not in laws:
                chosen = [rows[k] for k in table]
                found = caught(monkeypatch, estimator, chosen, columns=columns, releases=releases)
                laws[table] = found.laws
        if len(laws[pair[0]]) != len(laws[pair[1]]):
            return math.inf
        worst = max(worst, largest_ratio(laws[pair[0]], laws[pair[1]]))
    return worst


def small_lattices(patch: pytest.MonkeyPatch) -> None:
    """Make the statistics draw from lattices of few points, and sums of few steps."""
    patch.setattr("expmech.tables.statistics.sums.affordable_bits", lambda *_: 2)
    box = em.Box

    def small(lower: Any, upper: Any, bits: int = 3) -> em.Box:
        return box(lower, upper, bits=bits)

    patch.setattr("expmech.domains.regions.Box", small)  # which a mean imports when it is made
    patch.setattr("expmech.tables.statistics.ridge.L1Ball", lambda d, r: em.L1Ball(d, r, bits=4))
    patch.setattr("expmech.tables.statistics.logistic.L2Ball", lambda d, r: em.L2Ball(d, r, bits=4))
