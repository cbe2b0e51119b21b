"""An optimum by a fixed amount of work: the same for all data, near the root, and paid for."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import UnsupportedError
from expmech.estimators import PrivateLinearRegression, PrivateLogisticRegression
from expmech.ledger.verification import verify_certificate
from expmech.mechanisms.optimum import Lattice, constant_time, draw_cells, verification
from expmech.mechanisms.optimum.constant_time import draw_constant_time
from expmech.mechanisms.optimum.dyadic import DyadicBox
from expmech.mechanisms.optimum.noise import draw_cube
from expmech.mechanisms.optimum.risks import Huber, LogCosh, Logistic, Risk, Softmax

N = 200


def tables() -> dict[str, tuple[Any, Any]]:
    """Return data sets on which solvers take very different numbers of steps."""
    generator = np.random.default_rng(2)
    free = np.column_stack([np.ones(N), generator.uniform(-1, 1, (N, 3))])
    return {
        "nothing": (np.zeros((N, 4)), np.zeros(N)),
        "random": (free, generator.random(N) < 0.5),
        "separable": (free, free[:, 1] > 0.0),
        "all equal": (np.ones((N, 4)), np.ones(N)),
        "on the kinks": (np.ones((N, 4)), np.where(np.arange(N) < N // 2, 0.5, -0.5)),
        "collinear": (free[:, [0, 1, 1, 1]], free[:, 1]),
    }


def mechanism(risk: Risk, name: str, **more: Any) -> em.PerturbedOptimum:
    features, targets = tables()[name]
    return em.PerturbedOptimum(risk, features, targets, **more)


@pytest.mark.parametrize("risk", [Logistic(), Huber(0.5), LogCosh(0.5)], ids=lambda risk: risk.name)
def test_derivatives_are_evaluated_equally_often_whatever_the_data(
    risk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {}
    inner = type(risk).derivative
    seen: list[int] = []

    def counted(self: Any, margins: Any, targets: Any) -> Any:
        seen.append(len(margins))
        return inner(self, margins, targets)

    monkeypatch.setattr(type(risk), "derivative", counted)
    for name in tables():
        seen.clear()
        mechanism(risk, name).prepare(epsilon=2.0, timing="constant").sample(1, seed=1)
        counts[name] = (len(seen), sum(seen))
    assert len(set(counts.values())) == 1, counts
    planned = mechanism(risk, "random")
    work = planned.schedule(planned.terms(epsilon=2.0, timing="constant"))
    assert counts["random"][1] == N * (work.passes + work.rounds)


@pytest.mark.parametrize("noise", ["max", "sum", "euclidean"])
@pytest.mark.parametrize("risk", [Logistic(), Huber(0.5), LogCosh(0.5)], ids=lambda risk: risk.name)
def test_points_are_within_a_step_of_the_root(
    risk: Risk, noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same coins, drawn exactly on the grid of the schedule, without the noise on the grid."""
    monkeypatch.setattr(constant_time, "draw_cube", lambda coins, size, rate: [0] * size)
    for number, name in enumerate(tables()):
        found = mechanism(risk, name, noise=noise, sum_norm=4.0, penalty=0.25)
        terms = found.terms(epsilon=30.0, timing="constant")
        work = found.schedule(terms)
        assert work.bits <= 36, "a lattice can be as fine as that"
        lattice, rows = Lattice(bits=work.bits), found.prepare_rows(terms)
        exact = draw_cells(terms, rows, lattice, Coins(seeded_bits(number)))[0]
        near = draw_constant_time(terms, work, rows, lattice, Coins(seeded_bits(number)))
        assert np.abs(exact - near).max() <= 1, name


@pytest.mark.parametrize("risk", [Logistic(), Huber(4.0), LogCosh(4.0)], ids=lambda risk: risk.name)
def test_points_far_out_are_within_a_step_of_the_root_too(
    risk: Risk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a penalty leaves noise little of epsilon, roots lie where float64 is coarse."""
    monkeypatch.setattr(constant_time, "draw_cube", lambda coins, size, rate: [0] * size)
    tight = float(risk.lipschitz) / math.expm1(1.0 - 2.0 / 256 - 5e-4)
    found = em.PerturbedOptimum(risk, np.zeros((1, 2)), np.zeros(1), penalty=tight)
    terms = found.terms(epsilon=1.0, timing="constant")
    work, rows = found.schedule(terms), found.prepare_rows(terms)
    lattice = Lattice(bits=36, reach_bits=16)
    object.__setattr__(lattice, "bits", work.bits)  # as fine as the grid of the work
    farthest = 0.0
    for seed in range(8):
        exact = draw_cells(terms, rows, lattice, Coins(seeded_bits(seed)))[0]
        near = draw_constant_time(terms, work, rows, lattice, Coins(seeded_bits(seed)))
        assert np.abs(exact - near).max() <= 1
        farthest = max(farthest, np.abs(near).max() * 2.0**-work.bits)
    assert farthest > 2.0**14


def test_a_part_of_the_work_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_time, "draw_cube", lambda coins, size, rate: [0] * size)
    found = mechanism(Huber(0.5), "random", penalty=0.25)
    terms = found.terms(epsilon=30.0, timing="constant")
    work = found.schedule(terms)
    little = dataclasses.replace(work, steps=work.steps // 10, rounds=1)
    lattice, rows = Lattice(bits=work.bits), found.prepare_rows(terms)
    near = draw_constant_time(terms, little, rows, lattice, Coins(seeded_bits(1)))
    exact = draw_cells(terms, rows, lattice, Coins(seeded_bits(1)))[0]
    assert np.abs(exact - near).max() > 100


@pytest.mark.parametrize("risk", [Logistic(), Huber(0.5), LogCosh(0.5)], ids=lambda risk: risk.name)
def test_the_noise_on_the_grid_is_paid_twice_and_certified(risk: Risk) -> None:
    found = mechanism(risk, "random")
    terms = found.terms(epsilon=1.0, timing="constant")
    assert terms.dither > 0
    searched = Fraction(0) if terms.search is None else terms.search.epsilon
    spent = 2 * terms.row_nats + terms.determinant + 2 * terms.dither + searched
    assert 1 - Fraction(1, 1 << 40) <= spent <= 1
    certificate = found.prepare(epsilon=1.0, timing="constant").certificate
    assert certificate.timing == "constant" and certificate.delta == 0.0
    assert all(check.holds for check in verify_certificate(certificate))
    for change in (
        {"dither": float(terms.dither) * 2.0},
        {"dither": 0.0},
        {"work": {**certificate.sampler["work"], "steps": 5}},
        {"row_nats": float(terms.row_nats) * 1.01},
    ):
        bad = dataclasses.replace(certificate, sampler={**certificate.sampler, **change})
        assert not all(check.holds for check in verify_certificate(bad)), change
    bad = dataclasses.replace(certificate, timing="data-dependent")
    assert not all(check.holds for check in verify_certificate(bad))


def test_the_law_is_that_of_the_normal_variant_but_for_the_last_digits() -> None:
    """The same seeds: noise at a rate lower by a hundredth moves each draw by about as much."""
    found = mechanism(Logistic(), "random")
    usual = found.sample(epsilon=1.0, size=12, seed=4)
    fixed = np.asarray(found.prepare(epsilon=1.0, timing="constant").sample(12, seed=4).values)
    spread = float(usual.std())
    first = np.abs(usual[0] - fixed[0]).max()
    assert 0.0 < first < 0.05 * spread + 0.02 * float(np.abs(usual[0]).max())


def test_neighbours_differ_by_at_most_epsilon_in_one_dimension() -> None:
    """Probabilities of cells by simulation of the grid's noise around roots that are a step off."""
    rate = Fraction(1, 64)
    weights = {u: math.exp(-float(rate) * abs(u)) for u in range(-4000, 4001)}
    total = sum(weights.values())
    for shift in (-1, 0, 1):
        ratios = [weights[u] / weights[u + shift] for u in range(-3000, 3000)]
        assert max(ratios) <= math.exp(float(rate)) * (1.0 + 1e-12)
    drawn = [draw_cube(Coins(seeded_bits(s)), 1, rate)[0] for s in range(1000)]
    expected = sum(weights[u] for u in range(-20, 21)) / total
    share = sum(abs(u) <= 20 for u in drawn) / len(drawn)
    assert abs(share - expected) < 5.0 * math.sqrt(expected * (1 - expected) / len(drawn))


def test_estimators_with_ten_features_take_constant_time() -> None:
    generator = np.random.default_rng(3)
    features = generator.uniform(0.0, 1.0, (400, 10))
    target = features @ np.linspace(-1.0, 1.0, 10) + generator.normal(0.0, 0.1, 400)
    linear = PrivateLinearRegression(
        epsilon=5.0, bounds_X=(0, 1), bounds_y=(-4, 4), timing="constant", random_state=1
    ).fit(features, target)
    logistic = PrivateLogisticRegression(
        epsilon=5.0, bounds_X=(0, 1), classes=[0, 1], timing="constant", random_state=1
    ).fit(features, target > 0.0)
    for model in (linear, logistic):
        assert model.certificate_.timing == "constant"
        assert model.coef_.size == 10
    assert np.corrcoef(linear.predict(features), target)[0, 1] > 0.5


def test_what_is_not_served_is_refused_on_public_grounds() -> None:
    with pytest.raises(UnsupportedError, match="under 'replace' only"):
        mechanism(Logistic(), "random", adjacency="add-remove").prepare(
            epsilon=1.0, timing="constant"
        )
    with pytest.raises(UnsupportedError, match="for logistic"):
        mechanism(Softmax(3), "random").prepare(epsilon=1.0, timing="constant")
    small = mechanism(Logistic(), "random", penalty=2.0**-30)
    with pytest.raises(UnsupportedError, match="beyond what float64 can carry"):
        small.prepare(epsilon=30.0, timing="constant")
    plan = mechanism(Logistic(), "random").plan(1.0, timing="constant")
    assert plan.chosen is not None and plan.note is not None
    assert "passes over the rows" in plan.note
    assert small.plan(30.0, timing="constant").chosen is None


class KnownNoise:
    """Noise that is what a test says, exactly."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def box(self) -> DyadicBox:
        return DyadicBox(lower=self.values, upper=self.values, exponent=0)

    def reveal(self, coins: Coins) -> None:
        """There are no further digits."""


@pytest.mark.parametrize("risk", [Logistic(), Huber(0.5), LogCosh(0.5)], ids=lambda risk: risk.name)
@pytest.mark.parametrize("times", [0.5, 2.0, 3.0**20, 2.0**66])
def test_points_are_within_a_step_of_the_root_however_long_the_noise_is(
    risk: Risk, times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pure epsilon needs every noise, not nearly all. With one row of zeros the root is known."""
    found = em.PerturbedOptimum(risk, np.zeros((1, 2)), np.zeros(1), penalty=3.0)
    terms = found.terms(epsilon=1.0, timing="constant")
    work, rows = found.schedule(terms), found.prepare_rows(terms)
    pull = [round(times * work.pull), -round(0.3 * times * work.pull)]
    monkeypatch.setattr(constant_time, "draw_noise", lambda terms, coins: KnownNoise(pull))
    monkeypatch.setattr(constant_time, "draw_cube", lambda coins, size, rate: [0] * size)
    seen: list[list[int]] = []

    class Watched(Lattice):
        def cells_of(self, box: DyadicBox) -> list[int] | None:
            seen.append([low >> self.bits for low in box.lower])  # the steps of the grid
            return super().cells_of(box)

    draw_constant_time(terms, work, rows, Watched(), Coins(seeded_bits(1)))
    for step, b in zip(seen[-1], pull, strict=True):
        assert abs(step - Fraction(-b, 3) * (1 << work.bits)) <= Fraction(3, 2), times


def test_noise_whose_digits_leave_it_open_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root of a number near 0 is known to half of its digits, and the middle is not enough."""
    found = em.PerturbedOptimum(Logistic(), np.zeros((1, 2)), np.zeros(1), penalty=3.0)
    terms = found.terms(epsilon=1.0, timing="constant")
    work, rows = found.schedule(terms), found.prepare_rows(terms)

    class WideNoise(KnownNoise):
        def box(self) -> DyadicBox:
            return DyadicBox(lower=self.values, upper=[w + width for w in self.values], exponent=0)

    width = 8
    monkeypatch.setattr(constant_time, "draw_noise", lambda terms, coins: WideNoise([-1, 2]))
    monkeypatch.setattr(constant_time, "draw_cube", lambda coins, size, rate: [0] * size)
    exact: list[int] = []

    def find(terms: Any, rows: Any, lattice: Any, noise: Any, coins: Any) -> Any:
        exact.append(lattice.bits)
        return [0, 0], None

    monkeypatch.setattr(constant_time, "root_cells", find)
    draw_constant_time(terms, work, rows, Lattice(), Coins(seeded_bits(1)))
    assert exact == [work.bits]
    width = 0
    draw_constant_time(terms, work, rows, Lattice(), Coins(seeded_bits(1)))
    assert exact == [work.bits]


def test_noise_beyond_its_public_bound_is_as_rare_as_the_page_says() -> None:
    """The max norm has the law of a sum of d + 1 exponential times."""
    for size in (1, 2, 50, 400):
        found = em.PerturbedOptimum(
            Logistic(), np.zeros((9, size)), np.zeros(9), penalty=8.0 * size
        )
        terms = found.terms(epsilon=4.0, timing="constant")
        work = found.schedule(terms)
        largest = work.pull / math.sqrt(size)  # of the max norm
        assert stats.gamma(size + 1).logsf(largest * float(terms.rate)) < -700 * math.log(2.0)


@pytest.mark.parametrize("rate", [Fraction(1, 16), Fraction(1, 64)])
def test_the_noise_on_the_grid_has_its_law_in_the_release(
    rate: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around a root that does not move, |U|_inf is what is left: P(m) ~ surface(m) exp(-g m)."""
    found = em.PerturbedOptimum(Logistic(), np.zeros((1, 2)), np.zeros(1), penalty=3.0)
    terms = dataclasses.replace(found.terms(epsilon=1.0, timing="constant"), dither=rate)
    work, rows = found.schedule(terms), found.prepare_rows(terms)
    monkeypatch.setattr(constant_time, "draw_noise", lambda terms, coins: KnownNoise([0, 0]))
    lattice = Lattice(reach_bits=16)
    object.__setattr__(lattice, "bits", work.bits)
    coins, draws = Coins(seeded_bits(8)), 3000
    drawn = [draw_constant_time(terms, work, rows, lattice, coins).ravel() for _ in range(draws)]
    sizes = np.abs(drawn).max(axis=1)
    m = np.arange(int(40 / rate))

    def p_of(g: float) -> float:
        surface = (2.0 * m + 1.0) ** 2 - np.maximum(2.0 * m - 1.0, 0.0) ** 2
        surface[0] = 1.0
        law = surface * np.exp(-g * m)
        below = np.cumsum(law) / law.sum()
        # tied values make a test of continuous laws careful, never bold
        return float(stats.kstest(sizes, lambda x: below[np.asarray(x, dtype=int)]).pvalue)

    assert p_of(float(rate)) > 1e-7
    assert p_of(float(rate) * 1.25) < 1e-7
    assert p_of(float(rate) / 1.25) < 1e-7
    signs = [int((np.array(drawn)[:, j] > 0).sum()) for j in range(2)]
    assert all(abs(one / draws - 0.5) < 0.05 for one in signs), signs


def test_a_certificate_of_more_columns_than_there_can_be_is_refused_without_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = mechanism(Logistic(), "random").release(epsilon=1.0, timing="constant").certificate
    many = 4_000_000
    forged = dataclasses.replace(
        made,
        sampler=made.sampler | {"columns": many},
        domain=dict(made.domain) | {"columns": many},
    )
    planned: list[Any] = []
    monkeypatch.setattr(verification, "make_schedule", lambda *terms: planned.append(terms))
    assert not all(check.holds for check in verify_certificate(forged))
    assert not planned
