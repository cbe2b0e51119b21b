"""Discrete Gaussian noise on sums: its exact law, neighbours, intervals, certificate and ledger."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

from expmech.auditing.enumeration import law_of, total_variation
from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError
from expmech.ledger import Ledger
from expmech.ledger.amounts import Amount, Limits
from expmech.ledger.entries import Entry, LedgerError
from expmech.ledger.verification import rho_of, verify_certificate, verify_interval, verify_value
from expmech.mechanisms.groups import UnknownGroups
from expmech.mechanisms.noisy_sums import (
    CentredMeans,
    CentredTotals,
    Counts,
    CubeNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Means,
    NoisyMean,
    NoisySums,
    Shares,
    ThreeSums,
    Totals,
)
from expmech.theory.concentrated import RhoBudget, rho_of_discrete_laplace

REPLACE, ADD_REMOVE = Adjacency
PLENTY = RhoBudget(delta=Fraction(1, 10**6), per_epsilon=Fraction(10**9), left=Fraction(10**9))
COLUMN: dict[str, Any] = {"lower": (-2.0,), "upper": (2.0,), "bits": 2}
TWO: dict[str, Any] = {"lower": (-2.0, 0.0), "upper": (2.0, 3.0), "bits": 2}


def masses(rate: float, far: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers and the logarithms of their probabilities, by a sum."""
    reach = far or math.ceil(12.0 / math.sqrt(rate)) + 2
    points = np.arange(-reach, reach + 1)
    logs = -rate * points.astype(float) ** 2
    return points, logs - special.logsumexp(logs)


def closed(rate: float, size: int) -> dict[Hashable, float]:
    points, logs = masses(rate, 12)
    pairs = dict(zip(points.tolist(), np.exp(logs).tolist(), strict=True))
    return {
        drawn: math.prod(pairs[k] for k in drawn) for drawn in itertools.product(pairs, repeat=size)
    }


@pytest.mark.parametrize(("rate", "size"), [(0.25, 1), (1.0, 1), (1.5, 2)])
def test_the_law_is_that_of_independent_discrete_gaussian_noise(rate: float, size: int) -> None:
    noise = DiscreteGaussian(rate=Fraction(rate), size=size, squared_change=1)
    cut = 1e-8 if size == 1 else 2e-5
    law, leftover = law_of(lambda coins: tuple(noise.draw(coins, 1)[0].tolist()), cut=cut)
    assert leftover < 2e-2
    assert total_variation(law, closed(rate, size)) <= leftover + 1e-9
    assert total_variation(law, closed(rate * 0.8, size)) > leftover + 1e-2


def test_wide_noise_has_its_variance() -> None:
    for sigma in (3.0, 2.0**20, 2.0**45):
        noise = DiscreteGaussian(rate=Fraction(0.5 / sigma**2), size=1, squared_change=1)
        assert noise.fits
        squares = (noise.draw(Coins(seeded_bits(5)), 20_000)[:, 0] / sigma) ** 2
        assert abs(squares.mean() - 1.0) < 5 * math.sqrt(2.0 / 20_000), (sigma, squares.mean())


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0])
def test_neighbouring_counts_stay_within_rho_and_within_the_certificate(
    adjacency: Adjacency, epsilon: float
) -> None:
    """By laws written down here: Renyi divergences of all orders, and delta at epsilon."""
    public = 100 if adjacency.count_is_public else None
    counts = NoisySums(
        totals=[60, 40],
        interpretation=Counts(size=2, disjoint=True, count=public),
        adjacency=str(adjacency),
        concentrated=PLENTY,
    )
    noise = counts.noise(Fraction(str(epsilon)))
    assert isinstance(noise, DiscreteGaussian)
    moves = (1, -1) if adjacency.count_is_public else (1, 0)
    certificate = counts.certificate(epsilon=Fraction(str(epsilon)))
    points, logs = masses(float(noise.rate))
    exact = float(noise.rho)
    steps = sum(map(abs, moves))
    assert exact <= steps * float(rho_of_discrete_laplace(Fraction(str(epsilon)) / steps, 1))
    assert exact <= float(counts.rho(certificate, Fraction(1))) * (1 + 1e-12)
    for order in (1.01, 1.5, 2.0, 4.0, 16.0):
        total = 0.0
        for move in moves:
            moved = -float(noise.rate) * (points.astype(float) - move) ** 2
            moved -= special.logsumexp(moved)
            total += special.logsumexp(order * logs - (order - 1.0) * moved) / (order - 1.0)
        # the discrete law reaches order times rho where order times the change is whole
        assert total <= order * exact * (1 + 1e-6)
        if float(order).is_integer():
            assert total >= 0.999 * order * exact
    # delta at the epsilon that is certified: sums over the pairs of losses of both counts
    losses = [float(noise.rate) * ((points - move) ** 2.0 - points**2.0) for move in moves]
    joint = np.add.outer(losses[0], losses[1])
    weights = np.exp(np.add.outer(logs, logs))
    missed = float((weights * np.maximum(-np.expm1(certificate.epsilon - joint), 0.0)).sum())
    assert 0.0 < missed <= certificate.delta == 1e-6
    assert missed > 1e-3 * certificate.delta  # not far beyond what is needed


def snapped(rows: Sequence[Sequence[int]], columns: int) -> tuple[int, list[int]]:
    return len(rows), [sum(row[j] for row in rows) for j in range(columns)]


@pytest.mark.parametrize(
    ("make", "adjacency", "columns"),
    [
        (lambda n: Means(**COLUMN, count=n), REPLACE, 1),
        (lambda n: Means(**TWO, count=n), REPLACE, 2),
        (lambda n: Shares(**COLUMN), ADD_REMOVE, 1),
        (lambda n: Totals(**COLUMN, count=n), REPLACE, 1),
        (lambda n: Totals(**TWO, count=n), REPLACE, 2),
        (lambda n: Totals(**COLUMN), ADD_REMOVE, 1),
        (lambda n: Totals(lower=(3.0,), upper=(5.0,), bits=2), ADD_REMOVE, 1),
        (lambda n: CentredMeans(**TWO), ADD_REMOVE, 2),
        (lambda n: CentredTotals(**TWO), ADD_REMOVE, 2),
    ],
)
def test_no_row_moves_sums_farther_than_the_l2_distance_that_is_charged(
    make: Any, adjacency: Adjacency, columns: int
) -> None:
    values = list(itertools.product(range(5), repeat=columns))
    base = [values[1], values[-2]]
    tables = [[*base, row] for row in values]
    reference = [*tables] if adjacency.count_is_public else [base]
    interpretation = make(3)

    def sums(table: Sequence[Sequence[int]]) -> list[int]:
        return [int(total) for total in interpretation.sums(*snapped(table, columns))]

    farthest = max(
        sum((a - b) ** 2 for a, b in zip(sums(one), sums(two), strict=True))
        for one, two in itertools.product(reference, tables)
    )
    assert farthest == interpretation.squared_change(adjacency)


def test_overlapping_and_disjoint_counts_have_their_l2_distance() -> None:
    for size, disjoint, replace, add_remove in ((3, True, 2, 1), (3, False, 3, 3), (1, True, 1, 1)):
        counts = Counts(size=size, disjoint=disjoint)
        assert counts.squared_change(REPLACE) == replace
        assert counts.squared_change(ADD_REMOVE) == add_remove
    assert ThreeSums(**COLUMN).squared_change(ADD_REMOVE) is None


@pytest.mark.parametrize("sigma", [0.1, 0.4, 1.0, 5.3, 63.0, 65.0, 400.0])
def test_half_widths_cover_and_two_steps_less_do_not(sigma: float) -> None:
    for size in (1, 40):
        noise = DiscreteGaussian(rate=Fraction(0.5 / sigma**2), size=size, squared_change=1)
        wide = noise.half_width if size == 1 else noise.joint_half_width
        points, logs = masses(float(noise.rate))
        inside = [float(np.exp(logs[abs(points) <= w]).sum()) for w in (wide, wide - 1, wide - 2)]
        assert inside[0] ** size >= 0.95 - 1e-12
        shorter = inside[1] if sigma < 64 else inside[2]
        assert wide == 0 or shorter**size < 0.95
        assert noise.confirms()


def test_intervals_of_combined_sums_cover() -> None:
    noise = DiscreteGaussian(rate=Fraction(1, 32), size=2, squared_change=1)
    points, logs = masses(float(noise.rate))
    both = np.exp(np.add.outer(logs, logs))
    for tilt in (Fraction(0), Fraction(1, 3), Fraction(1)):
        wide = noise.tilted_half_width(tilt, Fraction(1, 20))
        apart = np.abs(np.subtract.outer(points, float(tilt) * points))
        assert both[apart <= wide].sum() >= 0.95
        assert both[apart <= 0.6 * wide].sum() < 0.95
    for below, above in ((900, 100), (40, 40), (3, 2), (0, 500)):
        covered = 0.0
        for j, k in itertools.product(range(len(points)), repeat=2):
            low, high = noise.share_interval(below + int(points[j]), above + int(points[k]))
            covered += both[j, k] * (low <= below / (below + above) <= high)
        assert covered >= 0.95, (below, above)
    low, high = noise.share_interval(500, 500)
    assert high - low < 0.03
    assert noise.share_interval(-5, -9) == (0.0, 1.0)


def test_the_least_error_at_equal_rho_decides() -> None:
    cells = Counts(size=20, disjoint=True)
    for epsilon, kind in ((Fraction(1, 50), DiscreteGaussian), (Fraction(9), DiscreteLaplace)):
        made = NoisySums(
            totals=[0] * 20, interpretation=cells, adjacency="add-remove", concentrated=PLENTY
        )
        assert isinstance(made.noise(epsilon), kind)
    epsilon = Fraction(1, 50)
    gaussian = made.noise(epsilon)
    pure = cells.noise(ADD_REMOVE, epsilon)
    assert gaussian.scale < Fraction(81, 100) * pure.scale
    assert isinstance(gaussian, DiscreteGaussian)
    cost = rho_of_discrete_laplace(epsilon, 1)
    assert cost * (1 - Fraction(1, 10**12)) <= gaussian.rho <= cost
    several = NoisyMean(
        count=9, sums=[0] * 9, bits=8, lower=[0.0] * 9, upper=[1.0] * 9, concentrated=PLENTY
    )
    assert isinstance(several.interpretation.noise(REPLACE, epsilon), CubeNoise)
    assert isinstance(several.noise(epsilon), DiscreteGaussian)
    for budget in (
        None,
        dataclasses.replace(PLENTY, left=cost / 2),  # nothing is left of rho
        dataclasses.replace(PLENTY, per_epsilon=cost / epsilon / 2),  # epsilon is cheaper
    ):
        other = NoisySums(
            totals=[0] * 20, interpretation=cells, adjacency="add-remove", concentrated=budget
        )
        assert isinstance(other.noise(epsilon), DiscreteLaplace)


RELEASES: dict[str, Any] = {
    "cells": lambda: NoisySums(
        totals=[900, 70, 4],
        interpretation=Counts(size=3, disjoint=True),
        adjacency="add-remove",
        concentrated=PLENTY,
    ),
    "mean": lambda: NoisyMean(
        count=1000, sums=[90_000], bits=8, lower=[0.0], upper=[1.0], concentrated=PLENTY
    ),
    "share": lambda: NoisyMean(
        count=1000,
        sums=[90_000],
        bits=8,
        lower=[0.0],
        upper=[1.0],
        adjacency="add-remove",
        concentrated=PLENTY,
    ),
    "centred": lambda: NoisyMean(
        count=1000,
        sums=[90_000, 100],
        bits=8,
        lower=[0.0, -1.0],
        upper=[1.0, 1.0],
        adjacency="add-remove",
        concentrated=PLENTY,
    ),
    "total": lambda: NoisySums(
        totals=[5000],
        interpretation=Totals(lower=(0.0,), upper=(1.0,), bits=8),
        adjacency="add-remove",
        concentrated=PLENTY,
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_certificate_is_recomputed_and_an_altered_one_is_not(name: str) -> None:
    release = RELEASES[name]().release(epsilon=Fraction(1, 10))
    stated = release.certificate
    assert stated.sampler["noise"] == "discrete Gaussian" and stated.delta == 1e-6
    assert all(check.holds for check in verify_certificate(stated))
    assert verify_value(stated, np.asarray(release.value).tolist()).holds
    near = release.accuracy
    ends: dict[str, Any] = {
        part: None if getattr(near, part) is None else np.asarray(getattr(near, part)).tolist()
        for part in ("lower", "upper", "scale", "joint_lower", "joint_upper")
    }
    ends |= {"noisy": None if near.noisy is None else list(near.noisy), "level": 0.95}
    value = np.asarray(release.value).tolist()
    assert verify_interval(stated, value, ends).holds
    narrow = ends | {
        "lower": [v - (v - low) / 2 for v, low in zip(value, ends["lower"], strict=True)]
    }
    assert not verify_interval(stated, value, narrow).holds
    for altered in (
        {"epsilon": stated.epsilon * 0.999},
        {"epsilon": stated.epsilon * 1.001},
        {"delta": stated.delta / 2},
        {"delta": 0.0},
        {"eta": stated.eta * 1.01},
        {"sensitivity": stated.sensitivity * 0.99},
        {"sampler": stated.sampler | {"slope": stated.sampler["slope"] * 2}},
        {"sampler": stated.sampler | {"slope": 1}},
        {"sampler": stated.sampler | {"rho": stated.sampler["rho"] / 2}},
        {"sampler": stated.sampler | {"noise": "discrete Laplace"}},
    ):
        other = dataclasses.replace(stated, **altered)
        assert not all(check.holds for check in verify_certificate(other)), altered


def test_a_ledger_charges_rho_and_never_counts_it_as_pure(tmp_path: Path) -> None:
    ledger = Ledger.create(
        tmp_path / "l", data_set="d", epsilon=1, delta="1e-6", adjacency="add-remove"
    )
    budget = ledger.rho_budget()
    assert budget is not None and budget.left == ledger.limits.rho
    certificate = RELEASES["cells"]().certificate(epsilon=Fraction(1, 50))
    noise_rho = Fraction(certificate.sampler["slope"])  # a row moves one count by one
    assert rho_of(certificate, Fraction(5)) == noise_rho
    entry = Entry(
        epsilon=certificate.epsilon, delta=certificate.delta, certificate=certificate.to_json()
    )
    charges = [ledger.charge_all([entry])[0] for _ in range(3)]
    assert [charge.rho for charge in charges] == [noise_rho] * 3
    epsilon, delta = ledger.spent
    assert delta == Fraction(1, 10**6) and epsilon < 3 * Fraction(certificate.epsilon)
    # epsilons no longer add up: 0.9 would have been left of 1 for pure releases
    with pytest.raises(LedgerError):
        ledger.charge(epsilon=Fraction(1, 2))
    left = ledger.rho_budget()
    assert left is not None and left.left == budget.left - 3 * noise_rho
    assert ledger.rho_budget(before=2).left == budget.left - noise_rho  # type: ignore[union-attr]
    # a delta without a rho is refused beside a release that has one
    bare = Entry(epsilon="0.01", delta="1e-9")
    with pytest.raises(LedgerError, match="delta of the ledger"):
        ledger.charge_all([entry, bare])
    groups = UnknownGroups.from_counts({"a": 9}, universe="int:8", delta=1e-9)
    shown = groups.certificate(epsilon=0.01)
    assert shown.delta > 0.0 and rho_of(shown, Fraction(1)) == 0
    assert len(ledger.history()) == 3
    times = ledger.times(charges[0].amount)
    assert times == (budget.left - 3 * noise_rho) // noise_rho
    basic = Ledger.create(
        tmp_path / "b", data_set="d", epsilon=1, delta="1e-6", composition="basic"
    )
    assert basic.rho_budget() is None


def test_limits_never_let_a_rho_speak_for_a_delta() -> None:
    limits = Limits.parse(1, "1e-6")
    small = Fraction(1, 10**9)
    assert not limits.allows(Amount(epsilon=small, delta=small))
    assert limits.allows(Amount(epsilon=Fraction(9), delta=Fraction(1, 2), rho=limits.rho))
    above = limits.rho + small
    assert not limits.allows(Amount(epsilon=Fraction(9), delta=small, rho=above))
    assert not limits.allows(Amount(epsilon=small, delta=Fraction(1, 2), rho=above))
    # the delta pays for composition: it cannot pay for a release as well
    assert not limits.allows(Amount(epsilon=small, delta=small, rho=above))
    assert limits.allows(Amount(epsilon=small, rho=above))
    spent = Amount(epsilon=small, delta=small, rho=limits.rho / 2)
    assert limits.left(spent)[0] < Fraction(1, 2)


def test_a_stated_slope_must_be_one() -> None:
    cells = Counts(size=2, disjoint=True)
    for slope in (None, 0.0, -1.0, math.inf, "1", 1e-40):
        stated = json.loads(json.dumps({"noise": "discrete Gaussian", "slope": slope}))
        with pytest.raises(ParameterError):
            cells.stated_noise(stated, ADD_REMOVE, Fraction(1))
