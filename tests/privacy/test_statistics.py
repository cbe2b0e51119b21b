"""From rows to the law of what is released, for every estimator, over all pairs of neighbours.

Rows lie out of bounds, exactly at a bound, or hold nothing; columns have unequal bounds. Each
sensitivity and each step that precedes it has a mutant that exceeds epsilon.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from support.fits import Row, as_arrays, caught, small_lattices, worst_ratio

import expmech as em
from expmech.estimators import (
    PrivateLogisticRegression,
    PrivateMean,
    PrivateQuantile,
    PrivateRidge,
    PrivateSelector,
)
from expmech.mechanisms.noisy_sums.noisy_sums import snap
from expmech.tables.aggregates import HistogramOf, Moments, MomentsOf
from expmech.tables.arrays import ArrayRows
from expmech.tables.statistics import LargestTotal, MostFrequent, Ridge
from expmech.tables.statistics.selection import Scoring

EPSILON = "1.5"
SLACK = 1e-9  # of the logarithms, which are float64
ADJACENCIES = ("replace", "add-remove")
NAN, INF = float("nan"), float("inf")
UNEQUAL = [(0.0, 1.0), (-4.0, 8.0)]
TABLE: list[Row] = [
    (0.0, -4.0),
    (1.0, 8.0),
    (1e300, -1e300),
    (-7.0, INF),
    (None, 2.0),
    ("0.3", NAN),
    (5e-324, "no number"),
]
THREE = [(0.0, 1.0), (-4.0, 8.0), (-2.0, 9.0)]
TOTALS: list[Row] = [
    (0.0, -4.0, 9.0),
    (1.0, 8.0, -2.0),
    (1e300, -1e300, INF),
    (-7.0, INF, -7.0),
    (None, 2.0, NAN),
    (5e-324, "no number", "9"),
]
ONE: list[Row] = [(0.0,), (1.0,), (-1e300,), (1.5,), (INF,), (None,), (0.3,), (0.4999,)]


def seventh(rows: Any, _: Any, candidate: str) -> float:
    """A score of sensitivity 1 whose values move both ways."""
    return float(sum(1 for row in rows if str(row[0]) == candidate))


@dataclass(frozen=True, kw_only=True)
class Case:
    """An estimator, rows it may meet, and how close to epsilon its worst pair must come."""

    estimator: Any
    rows: list[Row]
    columns: int
    least: float
    releases: int = 1
    adjacencies: tuple[str, ...] = ADJACENCIES


LABELLED: list[Row] = [
    (0.0, -4.0, "b"),
    (1e300, 8.0, "a"),
    (None, -INF, "b"),
    (-1e300, 1e300, None),
    (0.5, NAN, "other"),
]
# a sampler is named: the exponential mechanism, whose law can be listed
SELECTOR = PrivateSelector(epsilon=EPSILON, sampler="Tabulated")
CASES: dict[str, Case] = {
    "mean": Case(
        estimator=PrivateMean(epsilon=EPSILON, bounds=UNEQUAL), rows=TABLE, columns=2, least=0.99
    ),
    "mean by loss": Case(
        estimator=PrivateMean(epsilon=EPSILON, bounds=UNEQUAL, sampler="Tabulated"),
        rows=TABLE,
        columns=2,
        least=0.4,
        adjacencies=("replace",),
    ),
    "quantile": Case(
        estimator=PrivateQuantile(q="0.3", epsilon=EPSILON, bounds=(0, 1), bits=3),
        rows=ONE,
        columns=1,
        least=0.4,
    ),
    "quantiles of columns": Case(
        estimator=PrivateQuantile(
            q=["0.3", "0.5"], epsilon=EPSILON, bounds=UNEQUAL, bits=2, joint=False
        ),
        rows=TABLE,
        columns=2,
        least=0.4,
        releases=4,
    ),
    "ridge": Case(
        estimator=PrivateRidge(
            epsilon=EPSILON, bounds_X=UNEQUAL[0], bounds_y=UNEQUAL[1], radius=1.0, penalty=0.01
        ),
        rows=TABLE,
        columns=1,
        least=0.3,
    ),
    "logistic": Case(
        estimator=PrivateLogisticRegression(
            epsilon=EPSILON, bounds_X=UNEQUAL, classes=["a", "b"], radius=2.0, penalty=0.01
        ).set_params(law="log-likelihood"),
        rows=LABELLED,
        columns=2,
        least=0.3,
    ),
    "most frequent": Case(
        estimator=clone(SELECTOR).set_params(candidates=["x", 7, "2020-01-01"]),
        rows=[("x",), (" 7.0 ",), (7,), ("2020-01-01 00:00",), (None,), ("z",), (INF,)],
        columns=1,
        least=0.5,
    ),
    "largest total": Case(
        estimator=clone(SELECTOR).set_params(bounds=THREE), rows=TOTALS, columns=3, least=0.6
    ),
    "best score": Case(
        estimator=clone(SELECTOR).set_params(
            candidates=["x", "y"], scoring=seventh, sensitivity=1.0
        ),
        rows=[("x",), ("y",), (None,), (INF,)],
        columns=1,
        least=0.3,
    ),
}
PAIRS = [(name, adjacency) for name, case in CASES.items() for adjacency in case.adjacencies]

RULES = [
    (*pair, missing)
    for pair in PAIRS
    for missing in ("middle", "lower", "drop")
    if (pair[1], missing) != ("replace", "drop")  # refused: it would move a public number of rows
]


def worst(monkeypatch: pytest.MonkeyPatch, name: str, adjacency: str, missing: str) -> float:
    case = CASES[name]
    small_lattices(monkeypatch)
    estimator = clone(case.estimator).set_params(adjacency=adjacency, missing=missing)
    return worst_ratio(
        monkeypatch, estimator, case.rows, columns=case.columns, releases=case.releases
    )


@pytest.mark.parametrize(("name", "adjacency", "missing"), RULES)
def test_what_is_released_is_private_from_the_rows_on(
    name: str, adjacency: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = worst(monkeypatch, name, adjacency, missing)
    epsilon = float(EPSILON)
    assert loss <= epsilon + SLACK
    assert loss >= CASES[name].least * epsilon  # a law that forgot the data would be private too


Patch = Callable[[pytest.MonkeyPatch], None]


def clipped_after_summing(patch: pytest.MonkeyPatch) -> None:
    def mutant(self: MomentsOf, rows: ArrayRows) -> Moments:
        values, (lower, upper) = rows.columns(self.columns), np.array(self.bounds).T
        finite = np.nan_to_num(np.clip(values, -1e6, 1e6))
        totals = np.rint((finite - lower) / (upper - lower) * 2.0**self.bits).sum(axis=0)
        most = len(values) << self.bits
        sums = tuple(int(min(max(total, 0), most)) for total in totals)
        return Moments(count=len(values), sums=sums, products=(), bits=self.bits)

    patch.setattr(MomentsOf, "of_arrays", mutant)


def not_clipped(patch: pytest.MonkeyPatch) -> None:
    def mutant(rows: Any, lower: Any, upper: Any, bits: int) -> Any:
        return snap(np.clip(rows, lower - 1.0, upper + 1.0), lower - 1.0, upper + 1.0, bits + 1)

    patch.setattr("expmech.tables.aggregates.snap", mutant)


def rows_counted_thrice(patch: pytest.MonkeyPatch) -> None:
    original = HistogramOf.of_arrays
    patch.setattr(HistogramOf, "of_arrays", lambda self, rows: 3 * original(self, rows))


def missing_at_the_mean(patch: pytest.MonkeyPatch) -> None:
    original = MomentsOf.of_arrays

    def mutant(self: MomentsOf, rows: ArrayRows) -> Moments:
        values = rows.columns(self.columns)
        known = np.clip(np.nan_to_num(values), *np.array(self.bounds).T)
        stands = known.sum(axis=0) / max(1, len(values))
        filled = np.where(np.isnan(values), stands, values)
        return original(self, dataclasses.replace(rows, numbers=filled))

    patch.setattr(MomentsOf, "of_arrays", mutant)


def scoring_by(change: Callable[[Any, Scoring], Fraction], kind: Any) -> Patch:
    original = kind.scoring

    def mutant(self: Any, count: int) -> Scoring:
        scoring: Scoring = original(self, count)
        return dataclasses.replace(scoring, sensitivity=change(self, scoring))

    return lambda patch: patch.setattr(kind, "scoring", mutant)


def first_width(self: Any, _: Scoring) -> Fraction:
    low, high = self.bounds[0]
    return Fraction(high) - Fraction(low)


def half_the_widest(self: Any, _: Scoring) -> Fraction:
    return max(Fraction(high) - Fraction(low) for low, high in self.bounds) / 2


def sensitivity_of(loss: Any, share: Fraction) -> Patch:
    """A loss that states a share of its sensitivity."""
    original = loss.facts

    def mutant(self: Any, domain: Any) -> Any:
        facts = original(self, domain)
        return dataclasses.replace(facts, sensitivity=facts.sensitivity * share)

    return lambda patch: patch.setattr(loss, "facts", mutant)


def count_in_public(patch: pytest.MonkeyPatch) -> None:
    original = Ridge._settings

    def mutant(self: Ridge, rows: int, d: int, epsilon: float) -> tuple[float, float]:
        radius, penalty = original(self, rows, d, epsilon)
        return radius, penalty + rows

    patch.setattr(Ridge, "_settings", mutant)


losses = em.losses
MUTANTS: list[tuple[str, str, Patch]] = [
    *(("mean", adjacency, clipped_after_summing) for adjacency in ADJACENCIES),
    *(("largest total", adjacency, clipped_after_summing) for adjacency in ADJACENCIES),
    *(("mean", adjacency, not_clipped) for adjacency in ADJACENCIES),
    *(("ridge", adjacency, not_clipped) for adjacency in ADJACENCIES),
    ("quantile", "add-remove", rows_counted_thrice),  # under replace no release is made of them
    *(("mean", adjacency, missing_at_the_mean) for adjacency in ADJACENCIES),
    ("mean by loss", "replace", sensitivity_of(losses.L1Mean, Fraction(1, 4))),
    *(
        ("quantile", adjacency, sensitivity_of(losses.Quantile, Fraction(2, 5)))
        for adjacency in ADJACENCIES
    ),
    *(
        ("quantiles of columns", adjacency, sensitivity_of(losses.Quantile, Fraction(2, 5)))
        for adjacency in ADJACENCIES
    ),
    *(
        ("ridge", adjacency, sensitivity_of(losses.RidgeGradient, Fraction(1, 4)))
        for adjacency in ADJACENCIES
    ),
    *(
        ("logistic", adjacency, sensitivity_of(losses.LogisticRisk, Fraction(1, 4)))
        for adjacency in ADJACENCIES
    ),
    ("ridge", "add-remove", count_in_public),
    *(
        ("largest total", adjacency, scoring_by(first_width, LargestTotal))
        for adjacency in ADJACENCIES
    ),
    ("largest total", "replace", scoring_by(half_the_widest, LargestTotal)),
    *(
        (
            "most frequent",
            adjacency,
            scoring_by(lambda _, scoring: scoring.sensitivity / 2, MostFrequent),
        )
        for adjacency in ADJACENCIES
    ),
]


@pytest.mark.parametrize(
    ("name", "adjacency", "mutant"),
    MUTANTS,
    ids=[f"{k}-{name}-{adjacency}" for k, (name, adjacency, _) in enumerate(MUTANTS)],
)
def test_a_mutant_exceeds_epsilon(
    name: str, adjacency: str, mutant: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert worst(monkeypatch, name, adjacency, "middle") > float(EPSILON) * 1.01


BY_RULE = {"radius": None, "penalty": None}  # radius and penalty by rules of public quantities
PUBLIC = CASES | {
    "ridge by rule": dataclasses.replace(
        CASES["ridge"], estimator=clone(CASES["ridge"].estimator).set_params(**BY_RULE)
    ),
    "logistic by rule": dataclasses.replace(
        CASES["logistic"], estimator=clone(CASES["logistic"].estimator).set_params(radius=None)
    ),
}


def public_outputs(
    monkeypatch: pytest.MonkeyPatch, case: Case, estimator: Any, rows: list[Row], path: Path
) -> Any:
    """Return all that a fit tells besides its draw: certificates, plans, charges, words."""
    path.unlink(missing_ok=True)
    relation = estimator.get_params()["adjacency"]
    ledger = em.Ledger.create(
        path, data_set="trial", epsilon="100", delta="0.1", adjacency=relation, composition="basic"
    )
    charged = clone(estimator).set_params(ledger=str(path))
    found = caught(
        monkeypatch,
        charged,
        rows,
        columns=case.columns,
        releases=case.releases,
        with_law=False,
    )
    charges = [
        (charge.epsilon, charge.delta, charge.statement, charge.certificate)
        for charge in ledger.history()
    ]
    return found.certificates, list(map(str, found.plans)), charges, found.told


@pytest.mark.parametrize("timing", ["unprotected", "constant"])
@pytest.mark.parametrize("name", PUBLIC)
def test_nothing_public_tells_the_number_of_rows_under_add_remove(
    name: str, timing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case, path = PUBLIC[name], tmp_path / "budget.ledger"
    estimator = clone(case.estimator).set_params(adjacency="add-remove", timing=timing)
    if name == "mean by loss":
        estimator.set_params(sampler="Rejection")
    seen = [
        public_outputs(monkeypatch, case, estimator, (case.rows * 40)[:n], path)
        for n in (0, 1, 2, 7, 150)
    ]
    assert all(one == seen[0] for one in seen), name
    certificates, _, charges, told = seen[0]
    assert len(charges) == len(certificates) and (certificates or told)


@pytest.mark.parametrize("name", PUBLIC)
def test_nothing_public_tells_what_rows_hold_under_replace(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case, path = PUBLIC[name], tmp_path / "budget.ledger"
    estimator = case.estimator
    if name == "mean by loss":
        estimator = clone(estimator).set_params(sampler="Rejection")
    tables = [[row] * 6 for row in case.rows] + [(case.rows * 6)[:6]]
    seen = [public_outputs(monkeypatch, case, estimator, rows, path) for rows in tables]
    assert all(one == seen[0] for one in seen), name
    assert len(seen[0][2]) == case.releases and not seen[0][3]


def test_a_count_in_a_public_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    count_in_public(monkeypatch)
    case = CASES["ridge"]
    estimator = clone(case.estimator).set_params(adjacency="add-remove")
    one, two = (
        public_outputs(monkeypatch, case, estimator, case.rows[:n], tmp_path / "budget.ledger")
        for n in (1, 2)
    )
    assert one != two


EXTREMES = [1.7e308, -1.7e308, INF, -INF, NAN, 5e-324, -5e-324, 2.3e-308, 1.5e-320, -0.0, 0.0]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", CASES)
def test_no_value_makes_a_warning_or_an_error(name: str, adjacency: str) -> None:
    case = CASES[name]
    if adjacency not in case.adjacencies:
        return
    estimator = clone(case.estimator).set_params(adjacency=adjacency, random_state=1)
    if name == "mean by loss":
        estimator.set_params(sampler="Rejection")
    rows: list[Row] = [(value,) * len(case.rows[0]) for value in EXTREMES]
    for dtype in (object, np.float64):
        for chosen in (rows, rows[::-1], rows[:1], rows[5:6]):
            table, target = as_arrays(chosen, case.columns)
            _fit_strictly(estimator, table.astype(dtype), target)


def _fit_strictly(estimator: Any, table: Any, target: Any) -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        estimator.fit(table, target)


USUAL = [(-4e119, 4e119), (0.0, 1e-119), (0.1, 0.7)]
UNUSUAL = [(-8e307, 8e307), (1.6e308, 1.7e308), (0.0, 1e-290)]


@pytest.mark.parametrize("bounds", [*USUAL, *UNUSUAL])
def test_bounds_of_any_size_make_no_warning(bounds: tuple[float, float]) -> None:
    table, target = np.array(EXTREMES)[:, None], np.array(EXTREMES)
    regression: dict[str, Any] = {
        "bounds_X": bounds,
        "random_state": 1,
        "radius": 2.0,
        "epsilon": 0.1,
    }
    fits: list[Any] = [
        PrivateMean(bounds=bounds, random_state=1),
        PrivateRidge(bounds_y=bounds, **regression),
        PrivateLogisticRegression(classes=[0, 1], law="log-likelihood", **regression),
    ]
    if bounds in USUAL:  # a lattice has a width of usual size
        fits.append(PrivateQuantile(bounds=bounds, bits=4, random_state=1))
        fits.append(PrivateSelector(bounds=bounds, random_state=1))
    for estimator in fits:
        _fit_strictly(estimator, np.column_stack([table, table[::-1]]), target)


def test_losses_and_sums_of_rows_take_any_finite_number() -> None:
    numbers = np.array([value for value in EXTREMES if np.isfinite(value)])
    table = np.column_stack([numbers, numbers[::-1]])
    infinite = np.array([[INF, -INF], [1.7e308, 5e-324]])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for rows in (table, infinite):
            em.losses.L1Mean(rows, lower=0.1, upper=0.7)
            em.losses.RidgeGradient(rows, rows[:, 0], penalty=1.0, radius=1.0)
            em.losses.Quantile(rows[:, 0], q=0.5, lower=0.1, upper=0.7)
            em.NoisyMean.from_rows(rows, lower=[0.1, 0.3], upper=[0.7, 1e308])
        risk = em.losses.LogisticRisk(table, numbers > 0, penalty=1.0, radius=2.0)
    columns = risk._columns
    assert np.isfinite(columns).all() and ((columns**2).sum(axis=0) <= 1.0).all()
    assert ((columns**2).sum(axis=0) > 0.9).any()  # a row of 1.7e308 is shortened, not lost
