"""What is public of a release is made once, before a row is read; the data cannot change it."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.statistics import prepare_release

import expmech as em
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError, LossError, ParameterError, ParameterTypeError
from expmech.exponential.samplers import Sampler, choose
from expmech.mechanisms.noisy_sums import NoisySums
from expmech.mechanisms.noisy_sums.interpretations import Counts
from expmech.mechanisms.optimum import ArrayTable
from expmech.tables.arrays import ArrayRows
from expmech.tables.release import PreparedRelease
from expmech.tables.statistics import (
    BoundsOf,
    CountOf,
    HistogramIn,
    LargestTotal,
    Linear,
    LogisticLikelihood,
    Mean,
    MissingOf,
    MostFrequent,
    PrincipalComponents,
    QuantileOf,
    QuantilesOf,
    Ridge,
    Statistic,
    SumOf,
    TopOf,
    VarianceOf,
)

ROWS = 40
EPSILON = Fraction(4)
ONE: dict[str, Any] = {"columns": (0,), "bounds": ((0.0, 1.0),)}
TWO: dict[str, Any] = {"columns": (0, 1), "bounds": ((0.0, 1.0),) * 2}
LISTED: dict[str, Any] = {"column": 0, "candidates": (0.0, 0.5, 1.0), "labels": ("a", "b", "c")}


def statistics(adjacency: Adjacency) -> dict[str, Statistic]:
    both: dict[str, Any] = {"adjacency": adjacency}
    target: dict[str, Any] = {"target": 1, "target_bounds": (0.0, 1.0), **ONE, **both}
    levels = (Fraction(1, 4), Fraction(3, 4))
    return {
        "mean": Mean(**ONE, **both),
        "means": Mean(**TWO, **both),
        "sum": SumOf(**ONE, **both),
        "sums": SumOf(**TWO, **both),
        "variance": VarianceOf(**ONE, **both),
        "histogram": HistogramIn(column=0, edges=(0.0, 0.5, 1.0), **both),
        "missing": MissingOf(columns=(0,), **both),
        "frequent": MostFrequent(**LISTED, **both),
        "frequent, exponential": MostFrequent(**LISTED, exponential=True, **both),
        "top": TopOf(**LISTED, k=2, **both),
        "largest": LargestTotal(labels=("a", "b"), **TWO, **both),
        "quantile": QuantileOf(column=0, q=Fraction(1, 2), bounds=(0.0, 1.0), bits=8, **both),
        "quantiles": QuantilesOf(column=0, levels=levels, bounds=(0.0, 1.0), bits=8, **both),
        "components": PrincipalComponents(**TWO, **both),
        "linear": Linear(**target),
        "ridge": Ridge(**target),
        "logistic": LogisticLikelihood(target="y", positive=1.0, **ONE, **both),
    } | (
        {"mean by loss": Mean(exponential=True, **ONE, **both)}
        if adjacency.count_is_public
        else {"count": CountOf(**both), "bounds": BoundsOf(column=0, **both)}
    )


CASES = [(name, adjacency) for adjacency in Adjacency for name in statistics(adjacency)]


def aggregate(settled: PreparedRelease, count: int, value: float) -> Any:
    numbers = np.full((count, 2), value)
    rows = ArrayRows(numbers=numbers, raw=numbers[:, 0].tolist(), target=numbers[:, 1].tolist())
    return rows.aggregate(settled.aggregation)


def settle(statistic: Statistic) -> PreparedRelease:
    count = ROWS if statistic.adjacency.count_is_public else None
    return prepare_release(statistic, epsilon=EPSILON, count=count)


@pytest.mark.parametrize(("name", "adjacency"), CASES)
def test_data_are_put_in_what_was_charged_and_change_nothing_public(
    name: str, adjacency: Adjacency
) -> None:
    settled = settle(statistics(adjacency)[name])
    sides = [settled.with_aggregate(aggregate(settled, ROWS, value)) for value in (0.0, 1.0)]
    for side in sides:
        assert side.certificate is settled.certificate  # one object: nothing to compare
        assert side.forecast_seconds is settled.public.forecast_seconds
        assert side.mechanism is not settled.mechanism
        own = side.mechanism.public_terms(EPSILON)  # what a mechanism made of these data would say
        assert own == settled.mechanism.public_terms(EPSILON)


@pytest.mark.parametrize("name", statistics(Adjacency.REPLACE))
@pytest.mark.parametrize("count", [1, ROWS - 1, 3 * ROWS])
def test_another_number_of_rows_than_was_charged_for_is_refused(name: str, count: int) -> None:
    settled = settle(statistics(Adjacency.REPLACE)[name])
    with pytest.raises(DataError, match="their number changed") as error:
        settled.release(aggregate(settled, count, 1.0))
    assert str(count) not in str(error.value)


@pytest.mark.parametrize("name", statistics(Adjacency.ADD_REMOVE))
def test_where_the_number_of_rows_is_confidential_any_will_do(name: str) -> None:
    settled = settle(statistics(Adjacency.ADD_REMOVE)[name])
    for count in (2, ROWS, 3 * ROWS):
        released = settled.study(aggregate(settled, count, 1.0), seed=1)
        assert dataclasses.replace(
            released.certificate, kind=settled.certificate.kind, randomness="operating system"
        ) == dataclasses.replace(settled.certificate, randomness="operating system")


@pytest.mark.parametrize("name", ["mean", "quantiles", "components", "linear"])
def test_a_mechanism_refuses_data_of_another_public_number_of_rows(name: str) -> None:
    """Also where nobody compared the numbers before."""
    statistic = statistics(Adjacency.REPLACE)[name]
    settled = settle(statistic)
    data = statistic.data(aggregate(settled, ROWS - 1, 1.0), EPSILON)
    with pytest.raises(ParameterError):
        settled.public.with_data(data)


def test_bounds_are_looked_for_in_as_many_rows_as_were_counted() -> None:
    bounds = em.mechanisms.bounds.PrivateBounds.from_counts({0: 9}, adjacency="replace")
    with pytest.raises(ParameterError, match="as many rows"):
        bounds.with_data({0: 8})


class Lines:
    """A loss that states facts as it is told, of one number."""

    def __init__(self, at: float, *, sensitivity: float = 1.0, convex: bool = False) -> None:
        self.at, self.sensitivity, self.convex = at, sensitivity, convex
        self.bound, self.lipschitz = 1.0, [1.0]

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(y[:, 0] - self.at)


def test_the_loss_of_other_data_is_the_law_of_other_data() -> None:
    box = em.Box([0.0], [1.0], bits=6)
    public = em.ExponentialMechanism(loss=Lines(0.0), domain=box)
    ready = public.prepare(epsilon=3.0)
    law = public.with_data(Lines(0.7)).law(epsilon=3.0)
    expected = em.ExponentialMechanism(loss=Lines(0.7), domain=box).law(epsilon=3.0)
    assert np.array_equal(law[1], expected[1])
    draws = ready.with_data(Lines(0.7)).sample(50, seed=1).values
    other = em.ExponentialMechanism(loss=Lines(0.7), domain=box)
    assert np.array_equal(draws, other.sample(epsilon=3.0, size=50, seed=1).values)
    assert np.array_equal(
        ready.sample(50, seed=1).values, public.sample(epsilon=3.0, size=50, seed=1).values
    )


def test_integer_sums_are_those_of_the_data() -> None:
    box, rows = em.Box([0.0], [1.0], bits=6), np.array([[0.2], [0.9], [0.8]])
    ready = em.ExponentialMechanism(loss=em.losses.L1Mean(np.zeros((3, 1))), domain=box).prepare(
        epsilon=3.0
    )
    own = em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=box)
    assert own.target(epsilon=3.0).integer is not None
    draws = ready.with_data(em.losses.L1Mean(rows)).sample(50, seed=1).values
    assert np.array_equal(draws, own.sample(epsilon=3.0, size=50, seed=1).values)


def made_problems() -> list[em.ExponentialMechanism]:
    rows = np.linspace(0.0, 1.0, 60).reshape(30, 2)
    boxes = [em.Box([0.0] * 2, [1.0] * 2, bits=bits) for bits in (4, 32)]
    means = [em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=box) for box in boxes]
    fewer = em.ExponentialMechanism(loss=em.losses.L1Mean(rows[:2]), domain=boxes[1])
    narrow = em.Box([0.0], [1.0], bits=8)
    losses = [
        em.losses.Quantile(rows[:, 0], q=q, lower=0.0, upper=1.0) for q in (Fraction(1, 2), 0.9)
    ]
    medians = [em.ExponentialMechanism(loss=loss, domain=narrow) for loss in losses]
    declared = em.ExponentialMechanism(
        loss=em.losses.L1Mean(rows), domain=boxes[1], bound=9.0, sensitivity=1.0
    )
    return [*means, fewer, *medians, declared]


def test_a_choice_that_is_remembered_is_the_one_that_is_made() -> None:
    def chosen(k: int, epsilon: float, timing: str) -> tuple[str, str]:
        try:
            ready = made_problems()[k].prepare(epsilon=epsilon, timing=timing)
        except em.UnsupportedError as error:
            return "refused", str(error)
        return str(ready.sampler), ready.certificate.to_json()

    numbers = range(len(made_problems()))
    cases = list(itertools.product(numbers, (0.01, 1.0, 50.0), ("auto", "constant", "unprotected")))
    remembered = [chosen(*case) for case in cases * 2]
    anew = []
    for case in cases:
        choose._CHOSEN.clear()
        anew.append(chosen(*case))
    assert remembered == anew * 2
    assert len({name for name, _ in anew}) > 1


def test_what_is_remembered_of_a_choice_is_keyed_by_public_numbers_only() -> None:
    rows = np.linspace(0.0, 1.0, 40).reshape(20, 2)
    for table in (rows, 1.0 - rows, 0.0 * rows):
        loss = em.losses.L1Mean(table)
        em.ExponentialMechanism(loss=loss, domain=em.Box([0.0] * 2, [1.0] * 2)).prepare(epsilon=1.0)
    assert len(choose._CHOSEN) == 1
    assert all(isinstance(sampler, Sampler) for sampler in choose._CHOSEN.values())


@pytest.mark.parametrize("changed", [{"sensitivity": 0.5}, {"convex": True}])
def test_a_loss_that_states_other_public_facts_is_refused(changed: dict[str, Any]) -> None:
    public = em.ExponentialMechanism(loss=Lines(0.0), domain=em.Box([0.0], [1.0]))
    with pytest.raises(LossError, match="same public facts"):
        public.with_data(Lines(0.7, **changed))


def test_functions_that_were_declared_beside_a_loss_are_not_kept_for_other_data() -> None:
    first = Lines(0.0)
    public = em.ExponentialMechanism(
        loss=first, domain=em.Box([0.0], [1.0]), lower_bound=lambda low, _: first(low) - 1.0
    )
    with pytest.raises(ParameterError, match="offer its functions itself"):
        public.with_data(Lines(0.7))


def test_a_loss_of_other_data_keeps_its_contract() -> None:
    public = em.ExponentialMechanism(loss=Lines(0.0), domain=em.Box([0.0], [1.0]))
    with pytest.raises(LossError, match="finite"):
        public.with_data(Lines(float("nan")))


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        (NoisySums(totals=[1, 2], interpretation=Counts(size=2, disjoint=True, count=3)), [1]),
        (em.PermuteAndFlip.from_scores([1.0, 2.0], sensitivity=1), [1.0]),
        (em.mechanisms.selection.top_k.TopK.from_counts([1, 2], k=1), [1, 2, 3]),
        (
            em.PerturbedOptimum(
                em.mechanisms.optimum.risks.Logistic(), np.ones((4, 2)), [0, 1, 1, 0]
            ),
            ArrayTable(np.ones((4, 3)), np.zeros(4)),
        ),
    ],
    ids=["sums", "scores", "counts", "rows"],
)
def test_data_of_another_public_size_are_refused(mechanism: Any, data: Any) -> None:
    with pytest.raises((ParameterError, ParameterTypeError)):
        mechanism.with_data(data)
