"""A release fits its envelope once and evaluates its loss equally often, whoever asks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.statistics import prepare_release
from typer.testing import CliRunner

import expmech as em
from expmech.cli.main import app
from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.estimators import PrivateLogisticRegression, PrivateQuantile
from expmech.exponential.envelopes.base import Envelope
from expmech.tables.arrays import ArrayRows
from expmech.tables.statistics import QuantileOf, logistic_regression

ROWS = 64
GENERATOR = np.random.default_rng(3)
# whole numbers between bounds 0 and 8: a file, an engine and an array hold the same steps
X = GENERATOR.integers(0, 9, (ROWS, 2)).astype(np.float64)
LABELS = np.where(X[:, 0] + GENERATOR.normal(0.0, 2.0, ROWS) > 4.0, "yes", "no")
BOUNDS = (0.0, 8.0)
EPSILON = Fraction(1, 2)
RADIUS = 2.0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count points a loss is evaluated at, searches for its optimum and envelopes fitted."""
    counts: Counter[str] = Counter()

    def count(owner: Any, method: str, size: Callable[..., int]) -> None:
        original = getattr(owner, method)

        def counting(self: Any, *arguments: Any, **options: Any) -> Any:
            counts[f"{owner.__name__}.{method}"] += size(*arguments)
            return original(self, *arguments, **options)

        monkeypatch.setattr(owner, method, counting)

    for loss in (em.losses.LogisticRisk, em.losses.Quantile):
        count(loss, "__call__", lambda points: len(points))
    count(em.losses.LogisticRisk, "curvature", lambda *_: 1)
    for envelope in Envelope.__subclasses__():
        count(envelope, "bind", lambda *_: 1)
    # the same coins for everybody, or the number of proposals would differ by chance
    monkeypatch.setattr(
        "expmech.certificates.mechanism.operating_system_bits", lambda: seeded_bits(5)
    )
    return counts


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = [f"{a:g},{b:g},{label}" for (a, b), label in zip(X.tolist(), LABELS, strict=True)]
    path.write_text("a,b,answer\n" + "\n".join(lines) + "\n")
    return path


def run(*arguments: object) -> None:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr


def drawn(counts: Counter[str], ask: Callable[[], object]) -> dict[str, int]:
    counts.clear()
    ask()
    return dict(counts)


def test_a_logistic_regression_is_fitted_once_and_evaluated_equally_often(
    counted: Counter[str], table: Path, tmp_path: Path
) -> None:
    statistic = logistic_regression(
        columns=(0, 1),
        bounds=(BOUNDS, BOUNDS),
        target="y",
        positive="yes",
        radius=RADIUS,
        law="log-likelihood",
        adjacency=Adjacency.REPLACE,
    )
    rows = ArrayRows(numbers=X, target=LABELS)
    settled = prepare_release(statistic, epsilon=EPSILON, count=ROWS)
    mechanism: Any = statistic.mechanism(
        rows.aggregate(settled.aggregation), EPSILON, "unprotected"
    )
    assert not counted, "what is settled before the charge evaluates nothing"
    estimator = PrivateLogisticRegression(
        epsilon="0.5", bounds_X=BOUNDS, classes=["no", "yes"], radius=RADIUS
    ).set_params(law="log-likelihood")
    ledger = em.Ledger.create(tmp_path / "arrays.ledger", data_set="rows", epsilon="5")
    charged = PrivateLogisticRegression(**estimator.get_params()).set_params(ledger=ledger)
    columns = ("--column", "a", "--column", "b", "--bounds", "0,8", "--bounds", "0,8")
    target = ("--target", "answer", "--positive", "yes", "--radius", RADIUS)
    law = ("--law", "log-likelihood")
    replace = ("--adjacency", "replace")
    asked = ("release", "logistic", table, *columns, *target, *law, *replace)
    file = tmp_path / "rows.ledger"
    run("budget", "init", file, table, "--epsilon", "5", *replace)
    ways: dict[str, Callable[[], object]] = {
        "mechanism": lambda: mechanism.release(epsilon=EPSILON),
        "statistic": lambda: settled.release(rows.aggregate(settled.aggregation)),
        "estimator": lambda: estimator.fit(X, LABELS),
        "estimator, charged": lambda: charged.fit(X, LABELS),
        "command line": lambda: run(*asked, "--epsilon", "0.5"),
        "command line, charged": lambda: run(*asked, "--epsilon", "0.5", "--ledger", file),
    }
    seen = {name: drawn(counted, ask) for name, ask in ways.items()}
    first = seen["mechanism"]
    assert all(one == first for one in seen.values()), seen
    binds = sum(number for name, number in first.items() if name.endswith(".bind"))
    assert binds == 1 and first["LogisticRisk.curvature"] == 1
    assert first["LogisticRisk.__call__"] > 0


def test_a_tabulated_quantile_looks_at_every_point_once(
    counted: Counter[str], table: Path, tmp_path: Path
) -> None:
    statistic = QuantileOf(
        column=0, bounds=BOUNDS, q=Fraction(1, 2), bits=18, adjacency=Adjacency.REPLACE
    )
    rows = ArrayRows(numbers=X)
    settled = prepare_release(statistic, epsilon=EPSILON, count=ROWS, sampler="Tabulated")
    assert not counted
    ledger = em.Ledger.create(tmp_path / "arrays.ledger", data_set="rows", epsilon="5")
    options: dict[str, Any] = {"epsilon": "0.5", "bounds": BOUNDS, "sampler": "Tabulated"}
    file = tmp_path / "rows.ledger"
    run("budget", "init", file, table, "--epsilon", "5")
    columns = ("release", "quantile", table, "--column", "a", "--bounds", "0,8", "--q", "0.5")
    asked = (*columns, "--sampler", "Tabulated", "--epsilon", "0.5")
    ways: dict[str, Callable[[], object]] = {
        "statistic": lambda: settled.release(rows.aggregate(settled.aggregation)),
        "estimator": lambda: PrivateQuantile(**options).fit(X[:, :1]),
        "estimator, charged": lambda: PrivateQuantile(**options, ledger=ledger).fit(X[:, :1]),
        "command line": lambda: run(*asked),
        "command line, charged": lambda: run(*asked, "--ledger", file),
    }
    seen = {name: drawn(counted, ask) for name, ask in ways.items()}
    assert all(one == {"Quantile.__call__": 1 << 18} for one in seen.values()), seen


@pytest.mark.parametrize("sampler", ["auto", em.Rejection(em.Uniform())], ids=["auto", "uniform"])
def test_quantiles_by_any_sampler_are_counted_the_same_charged_or_not(
    sampler: Any, counted: Counter[str], tmp_path: Path
) -> None:
    ledger = em.Ledger.create(tmp_path / "arrays.ledger", data_set="rows", epsilon="5")
    options: dict[str, Any] = {"epsilon": "0.5", "bounds": BOUNDS, "sampler": sampler}
    free = drawn(counted, lambda: PrivateQuantile(**options).fit(X[:, :1]))
    paid = drawn(counted, lambda: PrivateQuantile(**options, ledger=ledger).fit(X[:, :1]))
    assert free == paid and free["Quantile.__call__"] > 0
