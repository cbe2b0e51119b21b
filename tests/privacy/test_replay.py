"""Record and replay: with its draws frozen, a run tells nothing of a neighbouring data set.

And what enters the draws costs at most epsilon. Bugs that are planted here are found.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from support.fits import as_arrays
from support.replay import (
    SLACK,
    Pipeline,
    command,
    number,
    pairs,
    release_by_command,
    replayed,
    write_rows,
)

import expmech as em
from expmech.cli.release import deliver
from expmech.core.errors import DataError
from expmech.estimators import (
    PrivateCount,
    PrivateHistogram,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivatePCA,
    PrivateQuantile,
    PrivateRidge,
    PrivateSelector,
    PrivateSum,
    PrivateVariance,
)
from expmech.mechanisms.directions.principal_direction import DirectionTerms
from expmech.mechanisms.noisy_sums import CentredMeans
from expmech.mechanisms.noisy_sums.noisy_sums import NoisySums
from expmech.mechanisms.optimum import perturbed_optimum
from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles
from expmech.mechanisms.selection.top_k import TopKTerms
from expmech.tables import aggregates
from expmech.tables.arrays import ArrayRows
from expmech.tables.engines.rows import GroupLists, TableRows
from expmech.tables.release import PreparedRelease
from expmech.tables.sources import units
from expmech.tables.sources.source import Source

TRIES = int(os.environ.get("EXPMECH_REPLAY", "2"))
"""Pairs of neighbours for each case; more of them for a longer search."""
EPSILON = "1.5"
ADJACENCIES = ("replace", "add-remove")
BOUNDS = [(0.0, 10.0), (-2.0, 9.0)]
BOTH: dict[str, Any] = {"epsilon": EPSILON}
CLASSES = ["a", "b", "c"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """An estimator, which columns of the rows it takes, and what it takes as a target."""

    estimator: Any
    columns: int = 2
    first: int = 0
    target: int | None = None
    sparse: bool = False
    adjacencies: tuple[str, ...] = ADJACENCIES


def agreeing(rows: Any, _: Any, candidate: str) -> float:
    """A score of sensitivity 1 that moves both ways."""
    return float(sum((row[0] == candidate) - (row[0] is None) for row in rows)) / 2.0


LINE: dict[str, Any] = {**BOTH, "bounds_X": BOUNDS[0], "bounds_y": BOUNDS[1]}
CLASSIFIED: dict[str, Any] = {**BOTH, "bounds_X": BOUNDS}
CASES: dict[str, Case] = {
    "mean": Case(estimator=PrivateMean(bounds=BOUNDS, **BOTH)),
    "mean by loss": Case(
        estimator=PrivateMean(bounds=[(0.0, 10.0)], sampler="Rejection", **BOTH),
        columns=1,
        adjacencies=("replace",),
    ),
    "sum": Case(estimator=PrivateSum(bounds=BOUNDS, **BOTH)),
    "variance": Case(estimator=PrivateVariance(bounds=BOUNDS, **BOTH)),
    "count": Case(estimator=PrivateCount(where="x0 > 3 and not x1 is missing", **BOTH)),
    "all rows": Case(estimator=PrivateCount(**BOTH), adjacencies=("add-remove",)),
    "histogram": Case(estimator=PrivateHistogram(edges=[0, 5, 10], **BOTH)),
    "categories": Case(estimator=PrivateHistogram(categories=CLASSES, **BOTH), columns=1, first=2),
    "quantile": Case(estimator=PrivateQuantile(q="0.3", bounds=(0, 10), bits=4, **BOTH), columns=1),
    "quantiles": Case(estimator=PrivateQuantile(q=["0.25", "0.5"], bounds=BOUNDS, bits=4, **BOTH)),
    "fine quantiles": Case(
        estimator=PrivateQuantile(q=["0.25", "0.5", "0.9"], bounds=(0, 10), **BOTH), columns=1
    ),
    "ridge": Case(estimator=PrivateRidge(radius=1.0, penalty=0.01, **LINE), columns=1, target=1),
    "line": Case(estimator=PrivateLinearRegression(**LINE), columns=1, target=1),
    "constant line": Case(
        estimator=PrivateLinearRegression(timing="constant", penalty=20.0, **LINE),
        columns=1,
        target=1,
        adjacencies=("replace",),
    ),
    "sparse line": Case(
        estimator=PrivateLinearRegression(**LINE), columns=1, target=1, sparse=True
    ),
    "logistic": Case(
        estimator=PrivateLogisticRegression(classes=["a", "b"], **CLASSIFIED), target=2
    ),
    "classes": Case(estimator=PrivateLogisticRegression(classes=CLASSES, **CLASSIFIED), target=2),
    "sparse classes": Case(
        estimator=PrivateLogisticRegression(classes=CLASSES, sum_norm=1.25, **CLASSIFIED),
        target=2,
        sparse=True,
    ),
    "likelihood": Case(
        estimator=PrivateLogisticRegression(
            classes=["a", "b"], law="log-likelihood", radius=2.0, **CLASSIFIED
        ),
        target=2,
    ),
    "components": Case(estimator=PrivatePCA(2, bounds=BOUNDS, center="private", **BOTH)),
    "directions": Case(
        estimator=PrivatePCA(1, bounds=BOUNDS, center="bounds", variances=False, **BOTH)
    ),
    "most frequent": Case(
        estimator=PrivateSelector(candidates=CLASSES, **BOTH), columns=1, first=2
    ),
    "listed": Case(
        estimator=PrivateSelector(candidates=CLASSES, sampler="Tabulated", **BOTH),
        columns=1,
        first=2,
    ),
    "largest total": Case(estimator=PrivateSelector(bounds=BOUNDS, **BOTH)),
    "top": Case(
        estimator=PrivateSelector(candidates=[*CLASSES, "d"], k=2, **BOTH), columns=1, first=2
    ),
    "scored": Case(
        estimator=PrivateSelector(candidates=CLASSES, scoring=agreeing, sensitivity=1.0, **BOTH),
        columns=1,
        first=2,
    ),
}


def fitted(case: Case, adjacency: str) -> Pipeline:
    """Return a run that makes a ledger, plans and fits; all that a fit leaves is told."""

    def run(room: Path, rows: Any) -> Any:
        path = room / "ledger"
        em.Ledger.create(path, data_set="rows", epsilon="10", adjacency=adjacency)
        estimator = clone(case.estimator).set_params(adjacency=adjacency, ledger=str(path))
        chosen = [row[case.first : case.first + case.columns] for row in rows]
        table, _ = as_arrays(chosen, case.columns)
        target = np.array([row[case.target or 0] for row in rows] + [None], dtype=object)[:-1]
        if case.sparse:
            table = scipy.sparse.csr_array(np.array([[number(x) for x in r] for r in chosen]))
        estimator.fit(table, None if case.target is None else target)
        told = [str(estimator.certificate_), repr(estimator), vars(estimator)]
        return [told, str(em.Ledger(path).spent), [str(one) for one in em.Ledger(path).history()]]

    return run


@pytest.mark.parametrize(
    ("name", "adjacency"),
    [(name, adjacency) for name, case in CASES.items() for adjacency in case.adjacencies],
)
def test_a_fit_tells_nothing_but_its_draws_which_cost_epsilon(
    name: str, adjacency: str, tmp_path: Path
) -> None:
    for seed in range(TRIES):
        one, other = pairs(adjacency, seed)
        found = replayed(fitted(CASES[name], adjacency), one, other, tmp_path / "room")
        assert "raised" not in found.first.told, found.first.told["raised"]
        assert found.first.entered
        assert found.differs == [], f"seed {seed}: {found}"
        assert found.loss <= float(EPSILON) + SLACK, f"seed {seed}: {found}"


COLUMNS = "--column x --bounds 0,10"
TWO = f"{COLUMNS} --column y --bounds -2,9"
COMMANDS = {
    "mean": f"mean {TWO}",
    "count": "count --where x>3",
    "missing": "missing --column x --column label",
    "labels": "missing --column label --labels",
    "sum": f"sum {TWO}",
    "variance": f"variance {COLUMNS}",
    "histogram": "histogram --column x --edges 0,5,10",
    "categories": "histogram --column label --categories a,b,c",
    "quantile": f"quantile {COLUMNS} --bits 4",
    "quantiles": f"quantile {COLUMNS} --q 0.25 --q 0.75 --bits 4",
    "medians": f"quantile {TWO} --bits 4",
    "linear": f"linear {COLUMNS} --target y --target-bounds -2,9",
    "ridge": f"ridge {COLUMNS} --target y --target-bounds -2,9 --radius 1",
    "logistic": f"logistic {TWO} --target label --positive a",
    "classes": f"logistic {COLUMNS} --target label --classes a,b,c",
    "constant": f"logistic {COLUMNS} --target label --positive a --timing constant",
    "pca": f"pca {TWO} --components 2 --variances",
    "select": "select --column label --candidates a,b,c",
    "top": "top --column label --candidates a,b,c,d --k 2",
    "peeling": "top --column label --candidates a,b,c,d --k 2 --objective mean",
    "query": f"mean {COLUMNS.replace('x', 'h')} --query SELECT|x/2|AS|h,label,who|FROM|source",
    "filtered": "count --where label='a'|and|not|y>5",
    "bounds": "bounds --column x --column y",
    "private bounds": "sum --column x --bounds private --bounds-share 0.5",
    "checked": f"mean {COLUMNS} --check 0.2",
    "unlisted": "histogram --column label --universe text:3",
    "unlisted top": "top --column label --universe [a-c] --k 2",
    "consistent": "histogram --column x --edges 0,5,10 --consistent",
}
COSTS = {"checked": 0.2}
"""What a command spends besides its epsilon."""
BY = "--by label --groups a,b,c"
UNIT = "--unit who --max-rows 2"
DROP = "--missing drop"
GROUPED, BY_UNIT = (
    ("mean", "quantile", "classes", "pca"),
    ("count", "quantiles", "linear", "peeling", "bounds", "unlisted"),
)
LIMITED = "--unit who --max-rows auto"
NOT_OF_FEW = ("bounds", "private bounds")
"""What a public number of rows so small refuses."""
ASKED = [
    *((name, "add-remove", BY) for name in GROUPED),
    *((name, "add-remove", UNIT) for name in BY_UNIT),
    *((name, "add-remove", DROP) for name in ("sum", "logistic")),
    *((name, "add-remove", "") for name in ("private bounds", "unlisted top")),
    *((name, "add-remove", LIMITED) for name in ("checked", "unlisted")),
    *((name, "replace", "") for name in COMMANDS if name not in (*GROUPED, *BY_UNIT, *NOT_OF_FEW)),
]
if TRIES > 2:
    ASKED += [
        (name, adjacency, more)
        for name in COMMANDS
        for adjacency, more in (
            ("replace", ""),
            *(("add-remove", more) for more in ("", BY, UNIT, DROP)),
        )
        if (name, adjacency, more) not in ASKED
        and (name, adjacency) != ("constant", "add-remove")  # where the count is not public
        and not (name in NOT_OF_FEW and adjacency == "replace")
    ]


def released(name: str, adjacency: str, more: str) -> Pipeline:
    """Return a run that makes a ledger by a command and charges it with a release."""
    return release_by_command(
        f"{COMMANDS[name]} {more}",
        place=lambda room, rows: [write_rows(room, rows)],
        adjacency=adjacency,
        epsilon=EPSILON,
    )


@pytest.mark.parametrize(("name", "adjacency", "more"), ASKED)
def test_a_command_tells_nothing_but_its_draws_which_cost_epsilon(
    name: str, adjacency: str, more: str, tmp_path: Path
) -> None:
    for seed in range(max(1, TRIES // 2)):
        one, other = pairs(adjacency, seed + len(name), unit=more in (UNIT, LIMITED))
        found = replayed(released(name, adjacency, more), one, other, tmp_path / "room")
        assert found.first.entered, found.first.told
        assert found.differs == [], f"seed {seed}: {found}"
        assert found.loss <= float(EPSILON) + COSTS.get(name, 0.0) + SLACK, f"seed {seed}: {found}"


PLAN = """
source = "data/rows.csv"
ledger = "ledger"
output = "day.json"
[defaults]
epsilon = "0.5"
adjacency = "add-remove"
[[release]]
statistic = "mean"
column = ["x", "y"]
bounds = [[0, 10], [-2, 9]]
by = "label"
groups = ["a", "b"]
[[release]]
statistic = "quantile"
column = "x"
bounds = [0, 10]
q = ["0.5", "0.9"]
[[release]]
statistic = "top"
column = "label"
candidates = ["a", "b", "c"]
k = 2
"""


def day(room: Path, rows: Any) -> Any:
    """Run a plan that is cut off and continued, and look at everything that a ledger shows."""
    path = write_rows(room, rows)
    (room / "day.toml").write_text(PLAN)
    calls = iter(range(10))

    def cut_off(*given: Any, **more: Any) -> Any:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return deliver(*given, **more)

    budget = ("--epsilon", "3", "--adjacency", "add-remove")
    told = [command("budget", "init", "ledger", path, *budget)]
    told.append(command("release", "--plan", "day.toml", "--dry-run"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("expmech.cli.plan_file.deliver", cut_off)
        told.append(command("release", "--plan", "day.toml"))
    assert [code for code, *_ in told] == [0, 0, 130], told[2]
    words = ["release --plan day.toml", "release --plan day.toml", "budget show ledger"]
    words += ["budget history ledger", "budget recover ledger", "verify day.json"]
    words += ["report ledger --html --output report.html", "report ledger --output report.md"]
    return told + [command(*text.split()) for text in words]


def test_a_day_that_is_cut_off_and_continued_tells_nothing_but_its_draws(tmp_path: Path) -> None:
    for seed in range(max(1, TRIES // 2)):
        found = replayed(day, *pairs("add-remove", seed), tmp_path / "room")
        codes = [code for code, *_ in found.first.told["returned"]]
        assert codes == [0, 0, 130, 0, 3, 0, 0, 0, 0, 0, 0], found.first.told["returned"]
        assert {"file day.json", "file ledger", "file report.html"} <= set(found.first.told)
        assert found.differs == [], f"seed {seed}: {found}"
        assert found.loss <= 1.5 + SLACK


def adaptive(room: Path, rows: Any) -> Any:
    """Take the bounds of a mean, and what is counted, from what was released before."""
    path = room / "ledger"
    ledger = em.Ledger.create(path, data_set="rows", epsilon="1.5", adjacency="add-remove")
    table, _ = as_arrays([row[:1] for row in rows], 1)
    shared: dict[str, Any] = {"ledger": ledger, "adjacency": "add-remove", "epsilon": "0.5"}
    ends = PrivateQuantile(q=["0.25", "0.75"], bounds=(0, 10), bits=6, **shared).fit(table)
    low, high = ends.quantiles_.ravel().tolist()
    mean = PrivateMean(bounds=(low - 0.1, high + 0.1), **shared).fit(table)
    above = PrivateCount(where=f"x0 > {mean.mean_.item()!r}", **shared).fit(table)
    print(low, high, mean.mean_, above.count_, ledger.left)
    return [str(one) for one in ledger.history()]


def test_what_is_asked_may_depend_on_what_was_released(tmp_path: Path) -> None:
    for seed in range(TRIES):
        found = replayed(adaptive, *pairs("add-remove", seed), tmp_path / "room")
        assert len(found.first.entered) == 3, found.first.told
        assert found.differs == [], f"seed {seed}: {found}"
        assert found.loss <= 1.5 + SLACK, f"seed {seed}: {found}"


def twice(room: Path, rows: Any) -> Any:
    """Fit two models one after the other."""
    case = CASES["quantiles"]
    first = fitted(case, "add-remove")(room, rows)
    (room / "ledger").unlink()
    return [first, fitted(case, "add-remove")(room, rows)]


def by_size(room: Path, rows: Any) -> Any:
    """Print groups in the order of their true sizes, as a careless steward may."""
    labels = [row[2] for row in rows]
    for name in sorted(CLASSES, key=labels.count):
        count = PrivateCount(where="x0 > 3", adjacency="add-remove", **BOTH)
        table, _ = as_arrays([row[:1] for row in rows if row[2] == name], 1)
        print(name, count.fit(table).count_)


Plant = Callable[[pytest.MonkeyPatch], None]


def around(owner: Any, name: str, change: Callable[..., Any]) -> Plant:
    """Return a bug: ``change(real, *arguments)`` is called in the place of a function."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = getattr(owner, name)
        patch.setattr(owner, name, lambda *given, **more: change(real, *given, **more))

    return plant


def rate_by_the_count(real: Any, self: Any, budget: Any) -> Any:
    return real(self, budget * (1 + self._totals[0] % 7))


def certificate_by_a_row(real: Any, self: Any, found: Any) -> Any:
    made = real(self, found)
    told = dataclasses.replace(made.certificate, statistic=f"mean of {found.count} rows")
    return dataclasses.replace(made, certificate=told)


def told_of_missing(how: Callable[[str], None]) -> Callable[..., Any]:
    """Say how many values are missing."""

    def change(real: Any, self: Any, request: Any) -> Any:
        how(f"{int(np.isnan(self.numbers).sum())} values are missing")
        return real(self, request)

    return change


def refused_by_a_row(real: Any, self: Any, request: Any) -> Any:
    found = real(self, request)
    if found.sums[0] % 3:
        raise DataError("The table cannot be read.")
    return found


def a_record_in_an_exception(real: Any, self: Any, request: Any) -> Any:
    try:
        raise ValueError(f"could not convert {self.numbers[0, 0]}")
    except ValueError:
        raise DataError("A value is not a number.")  # noqa: B904


def file_by_a_row(real: Any, self: Any, request: Any) -> Any:
    found = real(self, request)
    Path(f"part-{found.sums[0]}.tmp").write_text("")
    return found


def forecast_by_the_data(real: Any, self: Any) -> float:
    return float(real(self) + 1e-9 * self._totals[0])


def budget_by_the_count(real: Any, self: Any, table: Any, *rest: Any) -> Any:
    return real(self.set_params(epsilon=str(Fraction(len(table), 10))), table, *rest)


def a_stand_in_that_was_kept() -> Plant:
    """Forecast by the number of values of the fit before."""
    kept: list[int] = []

    def fit(real: Any, self: Any, budget: Any) -> Any:
        kept.append(self.cells.total)
        return real(self, budget)

    def public_terms(real: Any, self: Any, budget: Any) -> Any:
        terms = real(self, budget)
        return dataclasses.replace(terms, seconds=terms.seconds * (1 + (kept[-1] if kept else 0)))

    def plant(patch: pytest.MonkeyPatch) -> None:
        kept.clear()
        around(JointQuantiles, "fit", fit)(patch)
        around(JointQuantiles, "public_terms", public_terms)(patch)

    return plant


def not_clipped(real: Any, rows: Any, lower: Any, upper: Any, bits: int) -> Any:
    return real(rows, lower - 9.0, upper + 9.0, bits + 1)


def half_of_a_sensitivity(real: Any, self: Any, adjacency: Any) -> int:
    return int(real(self, adjacency)) // 2


def more_units(real: Any, self: Any, budget: Any) -> int:
    return int(real(self, budget * self.k))


def a_group_counted_twice(real: Any, *given: Any) -> Any:
    found = real(*given)
    for name, total in found[0].items():
        found[1][name] = found[1].get(name, 0) + total
    return found


def a_group_read_twice(real: Any, source: Any, column: str, group: Any) -> Any:
    return source if group == "b" else real(source, column, group)


def all_rows_of_a_unit(real: Any, source: Any, column: str, max_rows: int) -> Any:
    return real(source, column, 100)


def twice_the_rate(real: Any, *given: Any, **more: Any) -> Any:
    terms = real(*given, **more)
    return dataclasses.replace(terms, rate=terms.rate * 2, row_nats=terms.row_nats * 2)


MEAN, SUM = fitted(CASES["mean"], "add-remove"), fitted(CASES["sum"], "replace")
BUGS: dict[str, tuple[Any, Plant, str]] = {
    "a rate by the data": (MEAN, around(NoisySums, "fit", rate_by_the_count), "terms"),
    "a certificate by the data": (
        MEAN,
        around(PreparedRelease, "release", certificate_by_a_row),
        "returned",
    ),
    "a print": (MEAN, around(ArrayRows, "aggregate", told_of_missing(print)), "stdout"),
    "a warning": (MEAN, around(ArrayRows, "aggregate", told_of_missing(warnings.warn)), "warned"),
    "a line of a log": (
        MEAN,
        around(ArrayRows, "aggregate", told_of_missing(logging.getLogger("expmech").info)),
        "logged",
    ),
    "an exit code": (
        released("mean", "add-remove", ""),
        around(TableRows, "aggregate", refused_by_a_row),
        "returned",
    ),
    "a record in an exception": (
        MEAN,
        around(ArrayRows, "aggregate", a_record_in_an_exception),
        "raised",
    ),
    "a file": (MEAN, around(ArrayRows, "aggregate", file_by_a_row), "file"),
    "an order": (by_size, lambda patch: None, "stdout"),
    "a forecast": (SUM, around(NoisySums, "seconds", forecast_by_the_data), "forecast"),
    "what is spent": (MEAN, around(PrivateMean, "fit", budget_by_the_count), "file ledger"),
    "a stand-in that was kept": (twice, a_stand_in_that_was_kept(), "forecast"),
    "not clipped": (SUM, around(aggregates, "snap", not_clipped), "loss"),
    "a sensitivity": (MEAN, around(CentredMeans, "largest_change", half_of_a_sensitivity), "loss"),
    "units of peeling": (
        released("peeling", "replace", ""),
        around(TopKTerms, "units", more_units),
        "loss",
    ),
    "a group counted twice": (
        released("mean", "add-remove", BY),
        around(GroupLists, "totals", a_group_counted_twice),
        "loss",
    ),
    "a group read twice": (
        released("quantile", "add-remove", BY),
        around(Source, "where", a_group_read_twice),
        "loss",
    ),
    "all rows of a unit": (
        released("count", "add-remove", UNIT),
        around(units, "bound_units", all_rows_of_a_unit),
        "loss",
    ),
    "a width of directions": (
        fitted(CASES["directions"], "add-remove"),
        lambda patch: patch.setattr(DirectionTerms, "sensitivity", Fraction(1, 2)),
        "loss",
    ),
    "a rate of a regression": (
        fitted(CASES["line"], "add-remove"),
        around(perturbed_optimum, "calibrate", twice_the_rate),
        "loss",
    ),
}


REPLACED = ("a forecast", "not clipped", "units of peeling")
SEEDS = {"a print": 4, "a warning": 4, "a line of a log": 4, "an exit code": 1}
SEEDS |= {"an order": 3, "units of peeling": 5, "all rows of a unit": 8}
"""The first pairs that show a bug, where earlier ones do not."""


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_that_is_planted_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, plant, channel = BUGS[name]
    adjacency = "replace" if name in REPLACED else "add-remove"
    plant(monkeypatch)
    tried = []
    for seed in range(SEEDS.get(name, 0), 12):
        one, other = pairs(adjacency, seed, unit=name == "all rows of a unit")
        found = replayed(pipeline, one, other, tmp_path / "room")
        tried.append((found.differs, found.loss))
        if channel == "loss" and found.loss > float(EPSILON) * 1.01:
            return
        if any(one.startswith(channel) for one in found.differs):
            return
    raise AssertionError(f"{name} was not found: {tried}")
