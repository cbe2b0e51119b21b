"""What plans forecast, against what draws cost.

Problems of many kinds, every sampler that can be run in a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import expmech as em
from expmech import losses
from expmech.certificates.forecast import (
    Forecast,
    evaluations_in_lots,
    most_in_lots,
    quantile_of_sum,
)
from expmech.certificates.plan import Option
from expmech.exponential.samplers.separable import SeparableChain, TermTarget
from expmech.exponential.target import Target

SEEDS = 40
MOST = 2e3  # evaluations a draw, expected on the worst data set, that a test can afford
CHEAP = 50.0  # enough draws to pin down the mean
ALPHA = 1e-6


def cone(d: int, where: float) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    return lambda y: np.asarray(np.abs(y - where).sum(axis=1))


def lipschitz_problem(d: int, slope: float, loss: Any, **facts: Any) -> em.ExponentialMechanism:
    """Return a problem whose energy rises by at most ``slope`` nats along each axis."""
    return em.ExponentialMechanism(
        loss=loss,
        sensitivity=0.5 / slope,
        domain=em.Box([0.0] * d, [1.0] * d),
        lipschitz=[1.0] * d,
        **facts,
    )


def ridge_problem(n: int, p: int, spread: float, norm: str = "linf") -> em.ExponentialMechanism:
    rng = np.random.default_rng(n + p)
    features = np.clip(spread * rng.normal(size=(n, p)), -1, 1)
    responses = np.clip(features @ np.full(p, 0.5 / p) + 0.1 * rng.normal(size=n), -1, 1)
    loss = losses.RidgeGradient(features, responses, penalty=1.0, radius=1.0, norm=norm)
    return em.ExponentialMechanism(loss=loss, domain=em.L1Ball(p, 1.0))


def mean_problem(n: int, d: int, where: float, bits: int = 32) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=losses.L1Mean(np.full((n, d), where)), domain=em.Box([0.0] * d, [1.0] * d, bits=bits)
    )


def median_problem(values: NDArray[np.float64], bits: int = 32) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=losses.Quantile(values, q=0.5, lower=-10.0, upper=10.0),
        domain=em.Box([-10.0], [10.0], bits=bits),
    )


class Waves:
    """A sum over coordinates that declares no growth."""

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.terms(np.arange(y.shape[1]), y).sum(axis=1))

    def terms(
        self, coordinates: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.asarray(0.1 + np.sin(10.0 * values) / 10.0)


def logistic_problem(n: int, p: int, radius: float) -> em.ExponentialMechanism:
    rng = np.random.default_rng(n + p)
    features = rng.normal(size=(n, p)) / math.sqrt(2.0 * p)
    labels = features[:, 0] + 0.1 * rng.normal(size=n) > 0.0
    return em.ExponentialMechanism(
        loss=losses.LogisticRisk(features, labels, penalty=0.1, radius=radius),
        domain=em.L2Ball(p, radius),
    )


RNG = np.random.default_rng(7)
PROBLEMS: dict[str, em.ExponentialMechanism] = {
    "mean in the middle": mean_problem(100, 1, 0.5),
    "mean in a corner, 3 dimensions": mean_problem(100, 3, 0.0),
    "mean of few rows, 2 dimensions": mean_problem(5, 2, 0.3),
    "mean, integer slopes": mean_problem(50, 1, 0.25, bits=10),
    "mean, integer slopes, corner": mean_problem(50, 2, 1.0, bits=10),
    "mean, 30 dimensions": mean_problem(1000, 30, 0.4),
    "mean, tiny lattice": mean_problem(20, 2, 0.6, bits=4),
    "median of normals": median_problem(RNG.normal(size=1000)),
    "median of a cluster": median_problem(1e-6 * RNG.normal(size=100)),
    "median of one value": median_problem(np.full(1000, 1.5)),
    "median of few": median_problem(RNG.normal(size=5)),
    "median on 2^8 points": median_problem(RNG.uniform(-10, 10, 300), bits=8),
    "flat loss": lipschitz_problem(1, 50.0, lambda y: np.full(len(y), 0.5)),
    "flat loss, steep bounds": lipschitz_problem(1, 5000.0, lambda y: np.full(len(y), 0.5)),
    "flat loss, 2 dimensions, steep bounds": lipschitz_problem(
        2, 100.0, lambda y: np.full(len(y), 1.0)
    ),
    "flat loss, 2 dimensions": lipschitz_problem(2, 20.0, lambda y: np.full(len(y), 1.0)),
    "cone": lipschitz_problem(1, 500.0, cone(1, 0.37)),
    "cone at the middle": lipschitz_problem(1, 500.0, cone(1, 0.5)),
    "cone, 2 dimensions": lipschitz_problem(2, 50.0, cone(2, 0.21)),
    "cone, 3 dimensions": lipschitz_problem(3, 10.0, cone(3, 0.83)),
    "cone, 4 dimensions, gap": lipschitz_problem(4, 3.0, cone(4, 0.5), gap=0.001),
    "waves": lipschitz_problem(2, 30.0, lambda y: 1.0 + np.sin(20.0 * y).sum(axis=1) / 20.0),
    "gap declared": lipschitz_problem(1, 8.0, cone(1, 0.4), gap=0.001),
    "gentle": lipschitz_problem(5, 0.5, cone(5, 0.2), gap=0.001),
    "growth without terms": lipschitz_problem(
        2, 40.0, cone(2, 0.6), growth=em.Growth(center=np.full(2, 0.6), rates=np.ones(2)), gap=0.001
    ),
    "ball": em.ExponentialMechanism(
        loss=cone(2, 0.1), sensitivity=0.25, domain=em.L2Ball(2, 1.0), lipschitz=[1.0, 1.0]
    ),
    "simplex": em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - 0.5),
        sensitivity=0.1,
        domain=em.Simplex(3),
        lipschitz=[1.0, 1.0, 1.0],
        bound=1.0,
    ),
    "ridge": ridge_problem(1000, 2, 0.5),
    "ridge that binds": ridge_problem(200, 4, 0.1),
    "ridge in the L1 norm": ridge_problem(5000, 3, 0.5, norm="l1"),
    "logistic": logistic_problem(300, 2, 8.0),
    "logistic, more features": logistic_problem(2000, 6, 8.0),
    "sum of terms without growth": em.ExponentialMechanism(
        loss=Waves(), sensitivity=0.02, domain=em.Box([0.0] * 3, [1.0] * 3), lipschitz=[1.0] * 3
    ),
    "candidates": em.ExponentialMechanism(
        loss=losses.Scores([1.0, 5.0, 3.0, 2.0]),
        sensitivity=1.0,
        domain=em.Candidates(["a", "b", "c", "d"]),
        bound=4.0,
    ),
}


@dataclass
class Counter:
    evaluations: int = 0


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Count every energy that is computed."""
    found = Counter()

    def counted(compute: Callable[..., Any]) -> Callable[..., Any]:
        def count(self: Any, *arguments: Any) -> Any:
            found.evaluations += len(arguments[-1])
            return compute(self, *arguments)

        return count

    for owner in (Target, TermTarget, SeparableChain):
        monkeypatch.setattr(owner, "energy", counted(owner.energy))
    return found


def measure(
    mechanism: em.ExponentialMechanism, option: Option, counter: Counter
) -> NDArray[np.float64]:
    costs, sampler = [], option.sampler
    assert sampler is not None and option.forecast is not None
    cheap = (option.forecast.expected[1] or MOST) < CHEAP
    mechanism.sample(epsilon=1.0, size=1, sampler=sampler, seed=0)  # a kernel is tried out once
    for seed in range(3 if option.timing == "constant" else 5 * SEEDS if cheap else SEEDS):
        counter.evaluations = 0
        draws = mechanism.sample(epsilon=1.0, size=1, sampler=sampler, seed=seed)
        # a proposal outside the domain counts, though no loss is evaluated there; an atom's steps
        # are not all proposals
        proposals = 0 if option.name.startswith("ConfAtomPerfect") else int(draws.proposals[0])
        costs.append(max(counter.evaluations, proposals))
    return np.array(costs, dtype=np.float64)


@pytest.mark.parametrize("name", PROBLEMS)
def test_forecasts_contain_what_draws_cost(name: str, counter: Counter) -> None:
    mechanism = PROBLEMS[name]
    measured = 0
    plan = mechanism.plan(1.0)
    for option in plan.options:
        if option.forecast is None or not (
            affordable(option.forecast) or option.name == plan.chosen
        ):
            continue
        measured += 1
        costs = measure(mechanism, option, counter)
        low, high = option.forecast.expected
        mean, error = costs.mean(), 4.0 * costs.std(ddof=1) / math.sqrt(len(costs))
        assert mean + error >= low * (1 - 1e-9), (option.name, mean, low)
        assert high is None or mean - error <= high * (1 + 1e-9), (option.name, mean, high)
        if option.timing != "data-dependent":
            assert high is not None and 0.5 <= mean / low <= 2.0 and high <= 2.0 * low, (
                option.name,
                mean,
                low,
                high,
            )
        most = option.forecast.nearly_all[1]
        if most is not None:
            exceeded = int((costs > most).sum())
            assert (
                stats.binomtest(exceeded, len(costs), 0.01, alternative="greater").pvalue > ALPHA
            ), (option.name, exceeded)
    assert measured >= 1


USUAL = [
    "mean in the middle",
    "mean, 30 dimensions",
    "median of normals",
    "cone, 2 dimensions",
    "flat loss, 2 dimensions",
    "ball",
    "simplex",
    "ridge",
    "logistic",
]


@pytest.mark.parametrize("name", USUAL)
def test_the_typical_cost_is_near_the_mean_on_usual_data(name: str, counter: Counter) -> None:
    """Within a factor 10 here; benchmarks/results/forecasts.md has many more, and the time."""
    mechanism = PROBLEMS[name]
    plan = mechanism.plan(1.0, timing="unprotected")
    uniform = next(one for one in plan.options if one.name == "Rejection, uniform")
    options = [plan.recommended]
    if name in ("ball", "simplex"):  # where coordinates vary less than across the bounds
        options.append(uniform)
    for option in options:
        assert option is not None
        mean = float(measure(mechanism, option, counter).mean())
        assert 0.1 <= mean / option.typical <= 10.0, (option.name, mean, option.typical)


def test_caution_ranks_and_does_not_forecast() -> None:
    """Uniform proposals on a ball are cheap on usual data; where the loss is flat they are not."""
    plan = PROBLEMS["ball"].plan(1.0, timing="unprotected")
    uniform = next(one for one in plan.options if one.name == "Rejection, uniform")
    assert uniform.typical < 20.0 < 200.0 < uniform.rank
    assert plan.chosen == "BoxTree"


STEEP = [  # dimension, nats across an axis, loss: all take milliseconds or a second
    (1, 1e9, cone(1, 0.37)),
    (2, 1e5, cone(2, 0.21)),
    (2, 1e6, cone(2, 0.83)),
    (2, 1e5, lambda y: np.linalg.norm(y - 0.4, axis=1)),
    (3, 1e7, cone(3, 0.4)),
    (5, 1e3, lambda y: np.linalg.norm(y - 0.4, axis=1)),
]


@pytest.mark.parametrize(("d", "slope", "loss"), STEEP, ids=[f"{d}, {s:g}" for d, s, _ in STEEP])
def test_steep_losses_are_not_refused_and_cost_what_is_forecast(
    d: int, slope: float, loss: Any, counter: Counter
) -> None:
    mechanism = lipschitz_problem(d, slope, loss)
    option = mechanism.plan(1.0, timing="unprotected").recommended
    assert option is not None and option.name == "BoxTree"
    counter.evaluations = 0
    mechanism.sample(epsilon=1.0, seed=1, sampler=em.BoxTree())
    assert 0.25 <= counter.evaluations / option.typical <= 4.0, option.typical


def test_steeper_slopes_cost_a_tree_a_few_halvings_more() -> None:
    """The forecast rises by evaluations per halving, not by a power of the slope."""
    costs = [
        lipschitz_problem(2, slope, cone(2, 0.3)).plan(1.0, timing="unprotected").recommended
        for slope in (1e4, 1e7, 1e10)
    ]
    first, second, third = (option.typical for option in costs if option is not None)
    assert third - second == pytest.approx(second - first, abs=1.0)
    assert 0.0 < second - first < 64.0


def test_a_list_of_ten_million_candidates_is_tabulated() -> None:
    """One evaluation per candidate, whatever the scores; a longer list needs another mechanism."""

    def of(count: int) -> em.Plan:
        return em.ExponentialMechanism(
            loss=lambda index: np.zeros(len(index)),
            sensitivity=1.0,
            domain=em.Candidates(range(count)),
            bound=1e6,
        ).plan(1.0)

    plan = of(10**7)
    assert plan.chosen == "Tabulated"
    assert plan.recommended is not None and plan.recommended.typical == 10**7
    longer = of((1 << 24) + 1)
    assert longer.chosen is None and longer.refusal is not None
    assert "PermuteAndFlip" in longer.refusal and "growth" not in longer.refusal


def test_a_loss_with_a_bound_only_is_told_to_declare_its_slopes() -> None:
    def of(**facts: Any) -> em.Plan:
        return em.ExponentialMechanism(
            loss=cone(2, 0.3), sensitivity=1e-3, domain=em.Box([0.0] * 2, [1.0] * 2), **facts
        ).plan(1.0)

    refused = of(bound=2.0).refusal
    assert refused is not None and "`lipschitz`" in refused and "fewer `bits`" in refused
    assert of(bound=2.0, lipschitz=[1.0, 1.0]).chosen == "BoxTree"


def test_an_atom_costs_about_what_rejection_does() -> None:
    """Where the normaliser is not known the weight is W = m: one detour beside rejection."""
    plan = lipschitz_problem(3, 20.0, cone(3, 0.4), gap=0.01).plan(1.0)
    by_name = {option.name: option for option in plan.options}
    atom, uniform = by_name["ConfAtomPerfect, uniform"], by_name["Rejection, uniform"]
    assert 0.3 <= atom.typical / uniform.typical <= 3.0


def test_an_atom_takes_the_best_weight_where_the_normaliser_is_not_known() -> None:
    """Steps are ``2 (1 + M/Z)`` on average: two for each proposal of rejection, and two more."""
    mechanism = lipschitz_problem(2, 6.0, cone(2, 0.4))
    proposals, steps = (
        mechanism.sample(epsilon=1.0, size=400, seed=5, sampler=sampler).proposals.mean()
        for sampler in (em.Rejection(), em.ConfAtomPerfect(proposal="uniform"))
    )
    assert steps == pytest.approx(2.0 * (1.0 + proposals), rel=0.3)


def affordable(forecast: Forecast) -> bool:
    worst = forecast.expected[1]
    return forecast.typical <= MOST and worst is not None and worst <= 100 * MOST


@pytest.mark.parametrize("where", [0.0, 0.5])
def test_uniform_forecast_ends_where_the_data_are_best_and_worst(where: float) -> None:
    """The interval is no wider than the data make it.

    A mean in the middle costs the low end, one in a corner the high end.
    """
    mechanism = mean_problem(40, 2, where)
    uniform = next(
        option for option in mechanism.plan(1.0).options if option.name == "Rejection, uniform"
    )
    assert uniform.forecast is not None
    target = mechanism.target(epsilon=1.0)
    slope = target.eta
    side = -math.expm1(-slope) if where == 0.0 else -2.0 * math.expm1(-slope / 2)
    expected = evaluations_in_lots((slope / side) ** 2)
    end = uniform.forecast.expected[1 if where == 0.0 else 0]
    assert end == pytest.approx(expected, rel=0.05)


def test_evaluations_in_lots_are_those_of_doubling_lots() -> None:
    rng = np.random.default_rng(3)
    for mean in (1.0, 1.5, 7.0, 400.0):
        needed = rng.geometric(1.0 / mean, size=200_000)
        made = 2.0 ** np.ceil(np.log2(needed + 1.0)) - 1.0
        assert made.mean() == pytest.approx(evaluations_in_lots(mean), rel=0.02)
        assert (made > most_in_lots(mean)).mean() <= 0.01


def test_quantile_of_a_sum_is_not_exceeded_by_more_than_one_in_a_hundred() -> None:
    rng = np.random.default_rng(4)
    for means in ([2.0], [2.0] * 30, [1.2, 2.0, 1.7], [1.0] * 5):
        total = np.sum([rng.geometric(1.0 / mean, size=100_000) for mean in means], axis=0)
        assert np.mean(total > quantile_of_sum(means)) <= 0.011


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mean in the middle", mean_problem(100, 1, 0.9)),
        ("mean, integer slopes", mean_problem(50, 1, 0.0, bits=10)),
        ("median of normals", median_problem(np.full(1000, -9.0))),
        ("median on 2^8 points", median_problem(np.full(300, 3.0), bits=8)),
        ("ridge that binds", ridge_problem(200, 4, 0.4)),
        ("cone", lipschitz_problem(1, 500.0, cone(1, 0.99))),
    ],
)
def test_plans_do_not_depend_on_the_data(one: str, other: em.ExponentialMechanism) -> None:
    assert PROBLEMS[one].plan(1.0).describe() == other.plan(1.0).describe()
    assert PROBLEMS[one].plan(1.0).in_full() == other.plan(1.0).in_full()


@pytest.mark.parametrize("name", PROBLEMS)
def test_auto_follows_the_plan(name: str) -> None:
    mechanism = PROBLEMS[name]
    plan = mechanism.plan(1.0)
    chosen = plan.recommended
    assert chosen is not None and chosen.sampler is not None
    assert (
        mechanism.certificate(epsilon=1.0).sampler
        == mechanism.certificate(epsilon=1.0, sampler=chosen.sampler).sampler
    )


def test_what_auto_refuses_the_plan_explains() -> None:
    mechanism = lipschitz_problem(12, 100.0, cone(12, 0.5))
    plan = mechanism.plan(1.0)
    assert plan.chosen is None and plan.refusal is not None and "growth" in plan.refusal
    assert plan.refusal in " ".join(str(plan).split())
    with pytest.raises(em.UnsupportedError, match="found no affordable exact sampler"):
        mechanism.release(epsilon=1.0)


def test_flat_laplace_slopes_leave_the_choice_to_uniform_proposals() -> None:
    growth = em.Growth(center=np.full(5, 0.5), rates=np.ones(5))
    plan = lipschitz_problem(5, 0.05, cone(5, 0.5), growth=growth).plan(1.0)
    assert plan.chosen == "Rejection, uniform"


def test_constant_timing_is_chosen_among_constant_samplers() -> None:
    plan = PROBLEMS["gap declared"].plan(1.0, timing="constant")
    assert plan.chosen == "ConfAtomAndRuntimePerfect, constant"
    with pytest.raises(em.ParameterError, match="`timing` of plan must be one of"):
        PROBLEMS["cone"].plan(1.0, timing="slow")


def test_excess_loss_is_bounded_as_planned() -> None:
    mechanism = PROBLEMS["cone, 2 dimensions"]
    bound = mechanism.plan(1.0).excess_loss
    assert bound is not None
    excess = cone(2, 0.21)(mechanism.sample(epsilon=1.0, size=4000, seed=1).values)
    assert excess.mean() <= bound[0]
    assert (excess > bound[1]).mean() <= 0.05


@pytest.mark.parametrize(("dimension", "slope"), [(2, 5.0), (3, 5.0), (2, 20.0), (3, 20.0)])
def test_lipschitz_constants_do_not_make_a_simplex_dearer(dimension: int, slope: float) -> None:
    """What more is known never makes `auto` take a costlier sampler, or refuse."""
    typical = []
    for known in ([slope] * dimension, None):
        mechanism = em.ExponentialMechanism(
            loss=cone(dimension, 0.3),
            sensitivity=1.0,
            domain=em.Simplex(dimension, bits=16),
            bound=slope * dimension,
            lipschitz=known,
        )
        recommended = mechanism.plan(1.0).recommended
        assert recommended is not None
        typical.append(recommended.typical)
    assert typical[0] <= typical[1]


@pytest.mark.parametrize("slope", [5.0, 50.0, 500.0])
@pytest.mark.parametrize("wavy", [False, True])
def test_a_loss_in_the_plane_is_called_a_few_times_a_draw(slope: float, wavy: bool) -> None:
    """Calls, not points: a loss that takes 0.05 s a call is drawn from in two seconds."""
    calls = 0

    def loss(y: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal calls
        calls += 1
        waves = np.abs(np.sin(7.0 * y)).sum(axis=1) / 14.0 if wavy else 0.0
        return np.asarray(np.abs(y - [0.3, 0.6]).sum(axis=1) / 2.0 + waves)

    for seed in range(5):
        mechanism = lipschitz_problem(2, slope, loss)
        mechanism.sample(epsilon=1.0, size=1, seed=seed)
    assert calls <= 5 * 40
