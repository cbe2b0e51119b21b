"""From rows to the released law, for every statistic, loss and adjacency.

Rows lie out of their bounds, at them, or are missing; bounds are unequal. The loss of privacy is
the range of the energy difference of two neighbours over the domain: it bounds the log ratio of
their laws, and no law with that range has less at every answer.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pytest
from numpy.typing import NDArray
from support.statistics import prepare_release

import expmech as em
from expmech.core.adjacency import Adjacency
from expmech.domains.base import probe_indices
from expmech.estimators import PrivateMean, PrivateSelector
from expmech.mechanisms.noisy_sums import HullNoise
from expmech.mechanisms.noisy_sums.noisy_sums import NoisySums
from expmech.tables.arrays import ArrayRows
from expmech.tables.expressions import with_columns
from expmech.tables.grammar import parse_condition
from expmech.tables.plan import plan
from expmech.tables.release import ReleaseRequest, remembered_release
from expmech.tables.sources import open_frame
from expmech.tables.statistics import (
    CountOf,
    HistogramIn,
    LargestTotal,
    Mean,
    MissingOf,
    MostFrequent,
    QuantileOf,
    RegressionChoices,
    Ridge,
    Statistic,
    SumOf,
    UsableOf,
    VarianceOf,
    logistic_regression,
)

EPSILON = Fraction(2)
WHERE = with_columns(
    parse_condition("x0 > 0 and not x1 is missing"), lambda column: int(column.value[1:])
)
BOUNDS = ((-1.0, 3.0), (10.0, 11.0))
ROWS = [
    (-1.0, 10.0),
    (3.0, 11.0),
    (-1.0, 11.0),
    (3.0, 10.0),
    (1e300, -1e300),
    (-50.0, 50.0),
    (np.nan, 10.2),
    (2.9999, np.nan),
    (0.5, 10.7),
    (np.nan, np.nan),
]
LABELS = [0, 1, 1, 0, 1, 0, 0, 1, 1, 0]
BASES = ([8, 8], [1, 2, 8], [5, 0, 7, 3])


def statistics(adjacency: Adjacency) -> dict[str, Statistic]:
    """Every statistic of two columns of unequal bounds."""
    both: dict[str, Any] = {"columns": (0, 1), "bounds": BOUNDS, "adjacency": adjacency}
    lower: dict[str, Any] = both | {"missing": "lower"}
    one: dict[str, Any] = {"column": 0, "bounds": BOUNDS[0], "adjacency": adjacency, "bits": 6}
    target: dict[str, Any] = {"target": 1, "target_bounds": BOUNDS[1], "adjacency": adjacency}
    return {
        "mean": Mean(**both),
        "mean, lower": Mean(**lower),
        "sum": SumOf(**both),
        "sum, lower": SumOf(**lower),
        "variance": VarianceOf(columns=(0,), bounds=BOUNDS[:1], adjacency=adjacency),
        "variances": VarianceOf(**both),
        "missing": MissingOf(columns=(0, 1), adjacency=adjacency),
        "usable": UsableOf(columns=(0, 1), adjacency=adjacency),
        "where": CountOf(adjacency=adjacency, where=WHERE, text="a test"),
        "histogram": HistogramIn(column=0, adjacency=adjacency, edges=(-1.0, 0.5, 3.0)),
        "categories": HistogramIn(column=0, adjacency=adjacency, categories=(3.0, -1.0)),
        "median": QuantileOf(q=Fraction(1, 2), **one),
        "quantile": QuantileOf(q=Fraction(1, 5), **one),
        "ridge": Ridge(columns=(0,), bounds=BOUNDS[:1], **target),
        "ridge, given": Ridge(columns=(0,), bounds=BOUNDS[:1], penalty=2.0, radius=0.7, **target),
        "logistic": logistic_regression(target="y", positive=1, law="log-likelihood", **both),
        "logistic, given": logistic_regression(
            target="y",
            positive=1,
            law="log-likelihood",
            radius=2.0,
            choices=RegressionChoices(data_norm=0.5),
            **both,
        ),
        "totals": LargestTotal(labels=("a", "b"), exponential=True, **both),
        "totals, lower": LargestTotal(labels=("a", "b"), exponential=True, **lower),
        "frequent": MostFrequent(
            column=0,
            candidates=(3.0, -1.0, 0.5),
            labels=("x", "y", "z"),
            adjacency=adjacency,
            exponential=True,
        ),
    } | (
        {"mean, exponential": Mean(exponential=True, **both)}
        if adjacency.count_is_public
        else {"count": CountOf(adjacency=adjacency)}
    )


NAMES = [(name, adjacency) for adjacency in Adjacency for name in statistics(adjacency)]


def table(numbers: list[int]) -> ArrayRows:
    rows = np.array([ROWS[k] for k in numbers], dtype=np.float64).reshape(-1, 2)
    return ArrayRows(numbers=rows, raw=rows[:, 0].tolist(), target=[LABELS[k] for k in numbers])


def neighbours(base: list[int], adjacency: Adjacency) -> list[list[int]]:
    if adjacency is Adjacency.REPLACE:
        return [[*base[1:], k] for k in range(len(ROWS))]
    return [[*base, k] for k in range(len(ROWS))]


def mechanism_of(statistic: Statistic, numbers: list[int]) -> Any:
    found = table(numbers).aggregate(statistic.aggregation(EPSILON))
    return statistic.mechanism(found, EPSILON, "unprotected")


def probes(domain: Any) -> NDArray[np.int64]:
    """Lattice points all over the domain, and at its ends along each axis."""
    if domain.is_listable(1 << 12):
        every = domain.all_indices(1 << 12)
        assert every is not None
        return np.asarray(every)
    ends = []
    for j, sign in itertools.product(range(domain.dimension), (-1.0, 1.0)):
        point = (domain.lower + domain.upper) / 2
        point[j] += sign * 0.999999 * (domain.upper[j] - domain.lower[j]) / 2
        ends.append(domain.locate(point))
    corners = np.array(list(itertools.product((0.01, 0.99), repeat=domain.dimension)))
    inner = domain.lower + corners * (domain.upper - domain.lower)
    found = np.concatenate([probe_indices(domain), np.array(ends), domain.locate(inner)])
    return np.asarray(found[domain.contains(found)])


def norm_in(body: Any, change: list[int]) -> Fraction:
    """Return the norm of a change to within a millionth: the least multiple that holds it."""
    low, high = Fraction(0), Fraction(16)
    while high - low > Fraction(1, 1 << 20):
        middle = (low + high) / 2
        point = [x / middle for x in change]
        low, high = (low, middle) if body.holds(point, point) else (middle, high)
    return low


def loss_of_privacy(one: Any, other: Any) -> Fraction:
    """Return what an observer may learn of two neighbours, in nats."""
    if isinstance(one, NoisySums):
        changes = [abs(a - b) for a, b in zip(one._totals, other._totals, strict=True)]
        noise = one.noise(EPSILON)
        assert other.noise(EPSILON) == noise
        if isinstance(noise, HullNoise):
            return noise.rate * norm_in(noise.body, changes)
        return Fraction(noise.rate * (max(changes) if noise.name == "cube" else sum(changes)))
    targets = [mechanism.target(epsilon=EPSILON) for mechanism in (one, other)]
    assert one.domain.describe() == other.domain.describe()
    indices = probes(one.domain)
    energies = [target.energy(indices).astype(object) for target in targets]
    difference = energies[0] - energies[1]
    assert targets[0].units_per_nat == targets[1].units_per_nat
    return Fraction(int(max(difference)) - int(min(difference)), targets[0].units_per_nat)


@pytest.mark.parametrize(("name", "adjacency"), NAMES)
def test_one_row_costs_epsilon_at_most_and_nearly_all_of_it_somewhere(
    name: str, adjacency: Adjacency
) -> None:
    statistic = statistics(adjacency)[name]
    worst = Fraction(0)
    for base in BASES:
        laws = [mechanism_of(statistic, list(base))]
        laws += [mechanism_of(statistic, rows) for rows in neighbours(list(base), adjacency)]
        pairs = (
            itertools.combinations(laws, 2)
            if adjacency is Adjacency.REPLACE
            else ((laws[0], other) for other in laws[1:])
        )
        worst = max([worst, *(loss_of_privacy(one, other) for one, other in pairs)])
    assert worst <= EPSILON
    assert worst >= EPSILON * Fraction(2, 5), float(worst)


COUNTS = (1, 2, 3, 17, 400)


@pytest.mark.parametrize("name", statistics(Adjacency.ADD_REMOVE))
def test_nothing_public_depends_on_a_confidential_number_of_rows(name: str) -> None:
    """Certificate and plan of every statistic under add-remove, for numbers of rows that differ."""
    statistic = statistics(Adjacency.ADD_REMOVE)[name]
    settled = prepare_release(statistic, epsilon=EPSILON, count=None)
    foreseen = plan(statistic, epsilon=EPSILON, count=None).in_full()
    for count in COUNTS:
        numbers = [k % len(ROWS) for k in range(count)]
        mechanism = mechanism_of(statistic, numbers)
        ready = mechanism.prepare(
            epsilon=EPSILON, sampler=settled.public.sampler or "auto", context=statistic.context
        )
        assert ready.certificate == settled.certificate
        ranks = statistic.rank_error(EPSILON, count)  # which a mechanism by itself does not say
        assert dataclasses.replace(mechanism.plan(EPSILON), ranks=ranks).in_full() == foreseen
        assert (
            prepare_release(statistic, epsilon=EPSILON, count=count).certificate
            == settled.certificate
        )


@pytest.mark.parametrize(("name", "adjacency"), NAMES)
def test_nothing_public_depends_on_what_the_rows_hold(name: str, adjacency: Adjacency) -> None:
    statistic = statistics(adjacency)[name]
    told = set()
    for numbers in ([0] * 5, [1] * 5, [6] * 5, [4, 5, 6, 7, 8]):
        mechanism = mechanism_of(statistic, numbers)
        certificate = mechanism.prepare(epsilon=EPSILON, context=statistic.context).certificate
        told.add((certificate.to_json(), mechanism.plan(EPSILON).in_full()))
    assert len(told) == 1


def losses(count: int) -> dict[str, tuple[Any, Any]]:
    """Every loss whose number of rows is confidential, on a domain it knows."""
    table = np.linspace(-1.0, 1.0, 2 * count).reshape(count, 2)
    response = np.linspace(-1.0, 1.0, count)
    common: dict[str, Any] = {"penalty": 0.5, "radius": 1.0, "adjacency": "add-remove"}
    quantile = em.losses.Quantile(
        response, q=Fraction(1, 5), lower=-1.0, upper=1.0, adjacency="add-remove"
    )
    return {
        "quantile": (quantile, em.Box([-1.0], [1.0], bits=8)),
        "ridge": (em.losses.RidgeGradient(table, response, **common), em.L1Ball(2, 1.0)),
        "ridge, l1": (
            em.losses.RidgeGradient(table, response, norm="l1", **common),
            em.L1Ball(2, 1.0),
        ),
        "logistic": (em.losses.LogisticRisk(table, response > 0, **common), em.L2Ball(2, 1.0)),
    }


PUBLIC = ("sensitivity", "adjacency", "minimum", "bound", "gap", "loss_error", "lipschitz")


@pytest.mark.parametrize("name", losses(2))
def test_public_facts_of_a_loss_do_not_depend_on_a_confidential_number_of_rows(name: str) -> None:
    told = set()
    for count in COUNTS:
        loss, domain = losses(count)[name]
        facts = loss.facts(domain)
        public = [np.asarray(getattr(facts, fact)).tolist() for fact in PUBLIC]
        mechanism = em.ExponentialMechanism(loss=loss, domain=domain, adjacency="add-remove")
        target = mechanism.target(epsilon=1.0)
        public += [target.eta, target.loss_error, target.minimum_energy, target.energy_range]
        public += [target.gap, target.log_floor(), facts.assumptions, facts.exact_lower_bound]
        texts = [mechanism.certificate(epsilon=1.0).to_json(), mechanism.plan(1.0).in_full()]
        told.add((str(public), *texts))
    assert len(told) == 1


def losses_of(numbers: list[int], adjacency: str) -> dict[str, tuple[Any, Any]]:
    """Every loss of raw rows, out of their bounds too, on a domain it knows."""
    rows = np.nan_to_num(np.array([ROWS[k] for k in numbers]), nan=0.3)
    labels = np.array([LABELS[k] for k in numbers])
    lower, upper = np.array(BOUNDS).T
    common: dict[str, Any] = {"penalty": 0.5, "radius": 1.0, "adjacency": adjacency}
    finite = np.clip(rows, -1e9, 1e9)
    found: dict[str, tuple[Any, Any]] = {
        "ridge": (em.losses.RidgeGradient(rows, rows[:, 1], **common), em.L1Ball(2, 1.0)),
        "logistic": (em.losses.LogisticRisk(finite, labels, **common), em.L2Ball(2, 1.0)),
        "quantile": (
            em.losses.Quantile(rows[:, 0], q=0.3, lower=-1.0, upper=3.0, adjacency=adjacency),
            em.Box([-1.0], [3.0], bits=6),
        ),
    }
    if adjacency == "replace":
        mean = em.losses.L1Mean(rows, lower=lower, upper=upper)
        found["mean, integer"] = mean, em.Box(lower, upper, bits=5)
        found["mean, float"] = mean, em.Box(lower, upper + 1.0, bits=5)
    return found


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_one_raw_row_of_a_loss_costs_epsilon_at_most(adjacency: Adjacency) -> None:
    base = [1, 2, 8]
    made = [losses_of(rows, str(adjacency)) for rows in [base, *neighbours(base, adjacency)]]
    for name in made[0]:
        laws = [
            em.ExponentialMechanism(loss=loss, domain=domain, adjacency=str(adjacency))
            for loss, domain in (one[name] for one in made)
        ]
        costs = [loss_of_privacy(laws[0], other) for other in laws[1:]]
        assert max(costs) <= EPSILON, name
        assert max(costs) >= EPSILON / 4, name


def test_energies_are_those_of_the_loss_on_every_box() -> None:
    for name in ("mean, integer", "mean, float"):
        loss, box = losses_of([1, 2, 8], "replace")[name]
        target = em.ExponentialMechanism(loss=loss, domain=box).target(epsilon=EPSILON)
        assert (target.integer is not None) == (name == "mean, integer")
        indices = probes(box)
        energies = target.energy(indices) / (target.eta * target.units_per_nat)
        assert energies == pytest.approx(loss(box.points(indices)), abs=0.2)


def test_the_declared_error_of_a_mean_covers_its_rounding() -> None:
    rows = np.array([[0.1], [0.7], [0.35]])
    loss = em.losses.L1Mean(rows)
    box = em.Box([0.0], [1.0], bits=20)
    snapped = [Fraction(round(Fraction(float(row)) * (1 << 40)), 1 << 40) for (row,) in rows]
    mean = sum(snapped, Fraction(0)) / 3
    worst = Fraction(0)
    for point in np.linspace(0.0, 1.0, 500):
        computed = Fraction(float(loss(np.array([[point]]))[0]))
        worst = max(worst, abs(computed - abs(Fraction(float(point)) - mean)))
    assert 0 < worst <= loss.loss_error(box)


def test_a_quantile_is_not_asked_beyond_its_bounds() -> None:
    loss = em.losses.Quantile([0.1, 0.9], q=0.5, lower=0.0, upper=1.0)
    for box in (em.Box([0.0], [2.0], bits=4), em.Box([-1.0], [1.0], bits=4)):
        with pytest.raises(em.ExpmechError, match="within the bounds"):
            em.ExponentialMechanism(loss=loss, domain=box)


def test_what_is_remembered_of_a_preparation_is_keyed_by_public_arguments_only() -> None:
    """Other rows of the same shape find it; other public arguments do not.

    Neither do other numbers of rows where that is public; where it is not, they do.
    """
    made = remembered_release.cache_info

    def fit(rows: list[list[float]], **parameters: Any) -> int:
        PrivateMean(**{"bounds": (0.0, 1.0), **parameters}).fit(rows)
        return made().misses

    assert fit([[0.1], [0.2]]) == 1
    assert fit([[0.9], [float("nan")]]) == 1
    assert fit([[0.1], [0.2], [0.3]]) == 2
    assert fit([[0.1], [0.2]], bounds=(0.0, 2.0)) == 3
    assert fit([[0.1], [0.2]], epsilon=2.0) == 4
    assert fit([[0.1], [0.2]], adjacency="add-remove") == 5
    assert fit([[0.7]] * 9, adjacency="add-remove") == 5


@dataclass(frozen=True)
class NearestTo:
    """A score of the caller's, equal to every other one."""

    goal: float = field(compare=False, repr=False)

    def __call__(self, rows: Any, targets: Any, candidate: float) -> float:
        return -abs(candidate - self.goal) * len(rows)


def test_what_a_caller_wrote_is_asked_again_for_every_release() -> None:
    """Two functions may be equal, and written alike, and score differently."""
    for goal in (1.0, 3.0):
        selector = PrivateSelector(
            candidates=[1, 2, 3], scoring=NearestTo(goal), sensitivity=4, epsilon=1000.0
        )
        assert selector.fit(np.zeros((50, 1))).best_ == goal


def test_public_arguments_that_are_equal_and_of_another_kind_are_prepared_by_themselves() -> None:
    for values in ((1, 2), (True, 2), (1.0, 2)):
        histogram = HistogramIn(column=0, categories=values, adjacency=Adjacency.REPLACE)
        made = prepare_release(histogram, epsilon=Fraction(1), count=9)
        assert repr(made.statistic) == repr(histogram)


def test_groups_in_another_order_are_named_in_theirs() -> None:
    """Mappings are equal whatever their order, in which a record names the groups."""
    source = open_frame(pyarrow.table({"town": ["Bern", "Chur"], "age": [30, 41]}), name="towns")
    mean = Mean(columns=("age",), bounds=((0.0, 9.0),), adjacency=Adjacency.ADD_REMOVE)
    for names in (["Bern", "Chur"], ["Chur", "Bern"]):
        groups = {name: (name,) for name in names}
        request = ReleaseRequest(epsilon=Fraction(1), by=("town",), groups=groups)
        made = request.prepare(mean, source)
        assert list(made.request.groups) == list(made.parts) == names


def test_a_preparation_that_is_remembered_is_the_one_that_is_made() -> None:
    statistic = QuantileOf(
        column=0, q=Fraction(1, 2), bounds=(0.0, 1.0), adjacency=Adjacency.REPLACE, bits=6
    )
    first, second = (
        prepare_release(statistic, epsilon=Fraction(1), count=9, timing="auto") for _ in range(2)
    )
    named = prepare_release(
        statistic,
        epsilon=Fraction(1),
        count=9,
        timing="auto",
        sampler=first.public.sampler or "auto",
    )
    zero = dataclasses.replace(statistic, bounds=(-0.0, 1.0))
    other = prepare_release(zero, epsilon=Fraction(1), count=9, timing="auto")
    assert other.public is not first.public  # equal, but a certificate writes it differently
    assert first.public is second.public is not named.public
    assert first.certificate == named.certificate
    assert first.public.seconds == named.public.seconds
    assert first.mechanism.certificate(epsilon=1).domain == first.certificate.domain
