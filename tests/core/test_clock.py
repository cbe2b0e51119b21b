"""The clock is closed where that is cheap, and budgets of time refuse beforehand."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.statistics import prepare_release

import expmech as em
from expmech.certificates.forecast import Pace
from expmech.certificates.progress import LONG, NO_PROGRESS, shown, watched
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterTypeError
from expmech.exponential import mechanism as exponential
from expmech.exponential.samplers import Sampler
from expmech.exponential.samplers.choose import CALL, CHEAP, measured_pace, table_pace
from expmech.exponential.target import Target
from expmech.tables.plan import plan
from expmech.tables.statistics import QuantileOf

ROWS = np.tile([0.1, 0.4, 0.5, 0.9], 25)
CLOSED = em.ConfAtomAndRuntimePerfect("constant")


def mean(rows: NDArray[np.float64] = ROWS) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0]))


def own(**facts: Any) -> em.ExponentialMechanism:
    """Return a loss of one's own that a constant number of rounds can serve."""
    return em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - 0.3),
        sensitivity=0.1,
        domain=em.Box([0.0], [1.0]),
        lipschitz=[1.0],
        gap=0.0,
        **facts,
    )


def quantile(bits: int = 16) -> QuantileOf:
    return QuantileOf(
        column=0, bounds=(0.0, 1.0), q=Fraction(1, 2), adjacency=Adjacency.REPLACE, bits=bits
    )


def test_a_release_closes_the_clock_where_that_is_cheap_and_studies_never_do() -> None:
    mechanism = mean()
    assert mechanism.release(epsilon=1.0).certificate.timing == "constant"
    assert mechanism.certificate(epsilon=1.0).timing == "constant"
    told = mechanism.plan(1.0)
    assert told.chosen == CLOSED.label
    assert told.note is not None and "at most 50 ms" in told.note and "studies" in told.note
    open_again = mechanism.plan(1.0, timing="unprotected")
    assert open_again.chosen is not None and open_again.chosen in told.note
    assert mechanism.study(epsilon=1.0, seed=1).certificate.timing == "data-dependent"
    named = open_again.recommended
    assert named is not None and named.sampler is not None
    for seed in range(3):
        assert (
            mechanism.sample(epsilon=1.0, seed=seed).values
            == mechanism.sample(epsilon=1.0, seed=seed, sampler=named.sampler).values
        ).all()
    unprotected = mechanism.release(epsilon=1.0, timing="unprotected")
    assert unprotected.certificate.timing == "data-dependent"


def test_what_costs_more_than_the_limit_stays_open() -> None:
    mechanism = mean(np.full(100_000, 0.5))
    told = mechanism.plan(100.0)
    closed = next(option for option in told.options if option.name == CLOSED.label)
    assert closed.seconds > CHEAP and told.chosen != CLOSED.label and told.note is None


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_clock_of_a_quantile_on_the_default_lattice_is_closed(adjacency: Adjacency) -> None:
    one, statistic = Fraction(1), dataclasses.replace(quantile(), adjacency=adjacency)
    assert plan(statistic, epsilon=one, count=1000).chosen == "ConstantTabulated"
    ready = prepare_release(statistic, epsilon=one, count=1000, timing="auto")
    assert (ready.certificate.timing, ready.certificate.sampler["rounds"]) == ("constant", 2)
    assert 0.0 <= ready.release(_first(1000)).value <= 1.0
    assert (
        prepare_release(statistic, epsilon=one, count=1000).certificate.timing == "data-dependent"
    )
    fine = dataclasses.replace(statistic, bits=22)
    assert plan(fine, epsilon=one, count=1000).chosen == "BoxTree"


@pytest.mark.parametrize(("facts", "timing"), [
    ({}, "data-dependent"),
    ({"evaluation_seconds": 1e-6}, "constant"),
    ({"evaluation_seconds": 0.05}, "data-dependent"),
])  # fmt: skip
def test_a_loss_of_ones_own_is_closed_where_it_says_what_it_costs(
    facts: dict[str, float], timing: str
) -> None:
    assert own(**facts).certificate(epsilon=1.0).timing == timing


def test_the_declared_cost_is_a_positive_number_and_no_assumption() -> None:
    declared = own(evaluation_seconds=0.5)
    pace = table_pace(declared.target(epsilon=1.0))
    assert pace.call == CALL and 0.5 <= pace.evaluation <= 0.5001
    assert not any("seconds" in text for text in declared.certificate(epsilon=1.0).assumptions)
    with pytest.raises(em.ParameterError, match="`evaluation_seconds` of ExponentialMechanism"):
        own(evaluation_seconds=-1.0)
    with pytest.raises(ParameterTypeError, match="`evaluation_seconds` of a loss"):
        em.Facts(evaluation_seconds="long")


def test_a_budget_of_time_refuses_beforehand_and_says_what_would_help() -> None:
    slow = own(evaluation_seconds=0.05)
    with pytest.raises(em.UnsupportedError, match=r"budget_seconds=0\.01.*A larger budget_seconds"):
        slow.release(epsilon=1.0, budget_seconds=0.01)
    told = slow.plan(1.0, budget_seconds=0.01)
    assert told.chosen is None and told.refusal is not None and "0.01" in told.refusal
    assert slow.release(epsilon=1.0, budget_seconds=100.0).value.shape == (1,)
    for bad in (0.0, -1.0, math.nan, "long"):
        with pytest.raises(em.ExpmechError, match="`budget_seconds`"):
            slow.release(epsilon=1.0, budget_seconds=bad)  # type: ignore[arg-type]


def test_a_budget_also_holds_for_a_sampler_that_is_named() -> None:
    chain = em.Metropolis(pure=True)
    with pytest.raises(
        em.UnsupportedError, match=r"refuses Metropolis within budget_seconds=0\.001"
    ):
        mean().release(epsilon=1.0, sampler=chain, budget_seconds=0.001)
    unknown = em.ExponentialMechanism(
        loss=lambda y: y[:, 0], sensitivity=1.0, domain=em.Box([0.0], [1.0])
    )
    with pytest.raises(em.UnsupportedError, match="nothing public bounds how long it takes"):
        unknown.release(epsilon=1.0, sampler=em.Rejection(), budget_seconds=60.0)


def test_mechanisms_that_draw_by_themselves_keep_a_budget() -> None:
    flip = em.PermuteAndFlip.from_scores([1.0, 2.0], sensitivity=1.0, candidates=["a", "b"])
    noise = em.NoisyMean.from_rows(ROWS[:, None], lower=[0.0], upper=[1.0])
    for mechanism in (flip, noise):
        assert mechanism.plan(1.0).chosen is not None
        assert mechanism.plan(1.0, budget_seconds=1e-6).chosen is None
        with pytest.raises(em.UnsupportedError, match="within budget_seconds=1e-06"):
            mechanism.release(epsilon=1.0, budget_seconds=1e-6)


class Measured:
    """Stands in for the measurement, remembers what was measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
        self.targets: list[Target] = []
        self.factor = factor
        monkeypatch.setattr(exponential, "measured_pace", self)

    def __call__(self, target: Target) -> Pace:
        self.targets.append(target)
        pace = table_pace(target)
        return Pace(call=self.factor * pace.call, evaluation=self.factor * pace.evaluation)


def test_only_a_public_stand_in_is_ever_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured(monkeypatch, 1.0)
    mean().release(epsilon=1.0, budget_seconds=10.0)
    mean().plan(1.0, budget_seconds=10.0)
    mean().study(epsilon=1.0, seed=1, budget_seconds=10.0)
    assert measured.targets == []
    ready = prepare_release(quantile(), epsilon=Fraction(1), count=1000, budget_seconds=10.0)
    assert len(measured.targets) == 1
    ready.release(_first(1000))
    assert len(measured.targets) == 1  # the confidential half is not


def _first(count: int) -> NDArray[np.int64]:
    counts = np.zeros(1 << 16, dtype=np.int64)
    counts[0] = count
    return counts


def test_what_is_measured_refuses_and_never_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study has one value on every machine that runs it at all."""
    names, refused = set(), 0
    for factor in (0.01, 1.0, 10.0, 1e6):
        Measured(monkeypatch, factor)
        try:
            ready = prepare_release(quantile(), epsilon=Fraction(1), count=100, budget_seconds=2.0)
        except em.UnsupportedError:
            refused += 1
            continue
        names.add(str(ready.certificate.sampler))
    assert len(names) == 1 and refused == 1


class Stopwatch:
    """A loss and the clock that it moves, by so many seconds for a call and for each point."""

    def __init__(self, call: float, point: float) -> None:
        self.call, self.point = Fraction(call), Fraction(point)
        self.seconds, self.points = Fraction(0), 0

    def loss(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        self.points += len(y)
        self.seconds += self.call + len(y) * self.point
        return np.abs(y[:, 0] - 0.3)

    def measured(self) -> Pace:
        mechanism = em.ExponentialMechanism(
            loss=self.loss, sensitivity=0.1, domain=em.Box([0.0], [1.0]), lipschitz=[1.0]
        )
        target = mechanism.target(epsilon=1.0)
        self.points = 0
        return measured_pace(target, clock=lambda: float(self.seconds))


@pytest.mark.parametrize("machine", [0.03, 0.1, 1.0, 10.0, 30.0])
def test_a_measurement_finds_the_seconds_of_a_call_and_of_a_point(machine: float) -> None:
    """Whatever machine it is, as long as the largest lot takes the shortest time believed."""
    pace = Stopwatch(call=machine * 1e-4, point=machine * 5e-6).measured()
    assert pace.call == pytest.approx(machine * 1.05e-4, rel=1e-6)
    assert pace.evaluation == pytest.approx(machine * 5e-6, rel=1e-6)


def test_a_measurement_sees_a_slow_loss_without_running_it_often() -> None:
    slow = Stopwatch(call=0.005, point=0.0)  # more than the shortest time that is believed
    pace = slow.measured()
    assert slow.points == 1
    assert pace.call == CALL and pace.evaluation == pytest.approx(0.005)


def test_a_named_chain_over_a_minute_is_refused_for_statistics() -> None:
    for chain in (em.Metropolis(delta=1e-9), em.Metropolis(pure=True)):
        with pytest.raises(
            em.UnsupportedError, match="refuses Metropolis within budget_seconds=60"
        ):
            prepare_release(quantile(), epsilon=Fraction(2), count=10_000, sampler=chain)
        short = prepare_release(quantile(4), epsilon=Fraction(1, 100), count=100, sampler=chain)
        assert short.certificate.sampler["sampler"] == "Metropolis"


def test_plans_tell_the_time_by_a_table_that_is_the_same_everywhere() -> None:
    one = plan(quantile(), epsilon=Fraction(1), count=1000)
    assert one.describe() == plan(quantile(), epsilon=Fraction(1), count=1000).describe()
    assert "time, about" in str(one)
    assert all(option.seconds > 0.0 for option in one.options)


def steps_of(mechanism: em.ExponentialMechanism, sampler: Sampler) -> list[float]:
    found: list[float] = []
    with watched(found.append):
        mechanism.study(epsilon=1.0, sampler=sampler, seed=1)
    return found


@pytest.mark.parametrize("sampler", [em.Metropolis(steps=30), CLOSED])
def test_progress_is_the_same_on_every_data_set(sampler: Sampler) -> None:
    shares = [steps_of(mean(rows), sampler) for rows in (ROWS, 0.0 * ROWS, 0.0 * ROWS + 1.0)]
    assert shares[0] == shares[1] == shares[2]
    assert shares[0][-1] == 1.0 and shares[0] == sorted(shares[0])


def test_nothing_is_told_of_draws_whose_steps_depend_on_the_data() -> None:
    samplers = (em.Rejection(), em.BoxTree(), em.ConfAtomPerfect(0.5), em.Separable())
    for sampler in samplers:
        assert steps_of(mean(), sampler) == []


@pytest.mark.parametrize(("seconds", "public", "words"), [
    (LONG / 2, False, ""),
    (10 * LONG, False, f"drawing, about 20 s by a public forecast{NO_PROGRESS}\n"),
    (10 * LONG, True, "drawing, about 20 s by a public forecast\n"),
])  # fmt: skip
def test_a_long_draw_says_so_where_somebody_looks(
    seconds: float,
    public: bool,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)  # as in a notebook
    with shown(lambda: seconds, public_steps=public):
        pass
    told = capsys.readouterr().err
    assert words in told and bool(told) == bool(words)


def test_nobody_pays_for_a_forecast_that_nobody_sees() -> None:
    def forecast() -> float:
        raise RuntimeError

    make: Callable[..., Any] = shown
    with make(forecast, public_steps=False):
        pass
