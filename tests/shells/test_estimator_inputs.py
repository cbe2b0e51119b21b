"""What the estimators take as parameters, candidates and data, what they refuse.

And that no refusal quotes a value.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from support.statistics import prepare_release

import expmech as em
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError, UnsupportedError
from expmech.estimators import (
    PrivateLogisticRegression,
    PrivateMean,
    PrivateQuantile,
    PrivateRidge,
    PrivateSelector,
)
from expmech.tables.keys import tally_values
from expmech.tables.statistics import Ridge, Statistic, logistic_regression

ROWS = 60
SECRET = 3.14159012345
GENERATOR = np.random.default_rng(12)
X = np.column_stack([GENERATOR.uniform(20.0, 80.0, ROWS), GENERATOR.uniform(0.0, 5.0, ROWS)])
Y = 10.0 + 0.5 * X[:, 0]
LABELS = np.where(X[:, 0] > 50.0, "old", "young")
BOUNDS = [(20.0, 80.0), (0.0, 5.0)]
RIDGE = PrivateRidge(bounds_X=BOUNDS, bounds_y=(0, 100))
LOGISTIC = PrivateLogisticRegression(bounds_X=BOUNDS, classes=["young", "old"])


@pytest.fixture
def ledger(tmp_path: Path) -> em.Ledger:
    return em.Ledger.create(tmp_path / "budget.ledger", data_set="trial", epsilon="2")


def test_no_error_of_a_prediction_quotes_a_value() -> None:
    for estimator, target in ((RIDGE, Y), (LOGISTIC, LABELS)):
        fitted = clone(estimator).fit(X, target)
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(fitted, method):
                for rows in (
                    [["secret-7", 1.0]],
                    [[SECRET, float("inf")]],
                    [SECRET],
                    [[SECRET + 1j, 2.0]],
                    [[{"secret": 1}, SECRET]],
                ):
                    with pytest.raises((ValueError, TypeError)) as caught:
                        getattr(fitted, method)(rows)
                    assert not any(word in str(caught.value) for word in ("secret", "3.14")), (
                        caught.value
                    )
                    assert caught.value.__cause__ is None and caught.value.__context__ is None
                with pytest.raises(
                    ValueError, match=r"X has 1 features, but .* is expecting 2 features as input"
                ):
                    getattr(fitted, method)([[SECRET]])


@pytest.mark.parametrize("target", [["3.14"] * ROWS, ["secret-7"] * ROWS])
def test_a_target_of_text_is_read_value_by_value_and_what_is_no_number_is_missing(
    target: Any,
) -> None:
    model = PrivateRidge(bounds_X=BOUNDS, bounds_y=(0, 100), epsilon=1e5).fit(X, target)
    spelt = target[0] == "3.14"
    np.testing.assert_allclose(model.predict(X), 3.14 if spelt else 50.0, atol=5.0)


def test_bounds_are_refused_by_the_name_of_their_parameter() -> None:
    for name in ("bounds_X", "bounds_y"):
        for pair in ((1, 0), (0, float("nan")), (-1e308, 1e308)):
            with pytest.raises(ParameterError, match=f"`{name}` of PrivateRidge must "):
                clone(RIDGE).set_params(**{name: pair}).fit(X, Y)


def test_short_floats_count_as_their_decimal_text(ledger: em.Ledger) -> None:
    PrivateQuantile(q=np.float32(0.1), epsilon=np.float32(0.3), bounds=(20, 80), ledger=ledger).fit(
        X[:, :1]
    )
    PrivateQuantile(
        q=np.array([0.2], dtype=np.float16),
        epsilon=np.float64(0.3),
        bounds=(20, 80),
        ledger=ledger,
    ).fit(X[:, :1])
    assert [charge.epsilon for charge in ledger.history()] == [Fraction(3, 10)] * 2
    assert [charge.statement.split()[1] for charge in ledger.history()] == [
        "0.1-quantile",
        "0.2-quantile",
    ]
    with pytest.raises(ParameterError, match="`epsilon` of PrivateMean must be a positive number"):
        PrivateMean(epsilon=np.float32("inf"), bounds=BOUNDS).fit(X)


@pytest.mark.filterwarnings("ignore:Clones of this")
def test_absurd_radii_and_penalties_are_refused_and_extreme_ones_are_served() -> None:
    likelihood = clone(LOGISTIC).set_params(law="log-likelihood")
    for estimator, target in ((RIDGE, Y), (likelihood, LABELS)):
        for radius in (1e6, 1e-6):
            with pytest.raises(
                ParameterError,
                match=r"`radius` of a \w+ regression must be between 2\^-10 and 2\^10",
            ):
                clone(estimator).set_params(radius=radius).fit(X, target)
        with pytest.raises(
            ParameterError,
            match=r"`penalty` of a \w+ regression must be at most .* with this epsilon and radius",
        ):
            clone(estimator).set_params(penalty=1e12).fit(X, target)
        for options in (
            {"penalty": 1e6},
            {"radius": 2.0**-10},
            {"radius": 16.0},
            {"radius": 16.0, "epsilon": 1e-6},
        ):
            assert (
                clone(estimator).set_params(**options).fit(X, target).certificate_.kind == "release"
            )
    assert (
        clone(RIDGE).set_params(radius=1024.0, epsilon=1e-6).fit(X, Y).certificate_.kind
        == "release"
    )  # the rule's penalty is cut


def test_candidates_match_numbers_and_text_alike() -> None:
    ones = [[1]] * 9 + [[2]]
    spellings: list[Any] = [
        [2, 1],
        ["2", "1"],
        [2.0, 1.0],
        ["2.0", True],
        [b"2", "1"],
        np.array([2, 1]),
    ]
    for rows in (
        ones,
        np.array(ones, dtype=np.float32),
        np.array(ones).astype(str),
        np.array(ones, dtype=object),
    ):
        for candidates in spellings:
            assert PrivateSelector(candidates=candidates, epsilon=100).fit(rows).best_index_ == 1
    # a float32 counts as the number it is, whatever stands beside it
    tenths = np.full((9, 1), 0.1, dtype=np.float32)
    narrow = float(np.float32(0.1))
    assert PrivateSelector(candidates=["x", narrow], epsilon=100).fit(tenths).best_ == narrow
    # what one row holds changes the type of the column, and no other row's count
    for other in ("x", 0.5, 3):
        assert tally_values(np.array([[1]] * 9 + [[other]])[:, 0], [1, 2]) == (9, 0)


def test_candidates_are_several_and_different() -> None:
    repeated: list[Any] = [[], ["a"], ["a", "b", "a"], [1, 1.0], np.array([1, 2, 1])]
    for candidates in repeated:
        with pytest.raises(
            ParameterError,
            match="`candidates` of PrivateSelector must be at least two different values; got",
        ):
            PrivateSelector(candidates=candidates).fit([["a"], ["b"]])
    for candidates in repeated:
        with pytest.raises(
            ParameterError,
            match="`candidates` of PrivateSelector must be at least two different values; got",
        ):
            PrivateSelector(candidates=candidates, scoring=_near, sensitivity=1.0).fit(X)
    vectors = PrivateSelector(
        candidates=[[0.0], [50.0]],
        scoring=lambda rows, _, c: _near(rows, _, c[0]),
        sensitivity=1.0,
        epsilon=100,
    )
    assert vectors.fit(X).best_ == [50.0]
    with pytest.raises(
        ParameterError,
        match="`sensitivity` of PrivateSelector must be None without `scoring`; got 2",
    ):
        PrivateSelector(candidates=[1, 2], sensitivity=2).fit(X[:, :1])


def _near(rows: Any, _: Any, candidate: float) -> float:
    return float(np.count_nonzero(np.abs(rows[:, 0] - candidate) < 25.0))


# (features, rows, epsilon), at the ends of the ranges of n epsilon that docs/regression_laws.md
# states, and outside of them.
RIDGES = {(1, 20, "0.3"): True, (1, 400, "1"): True, (2, 20, "1"): True, (2, 200, "1"): True}
RIDGES |= {(3, 75, "1"): True, (3, 150, "1"): True}
RIDGES |= {
    (1, 20, "0.1"): False,
    (1, 500, "1"): False,
    (2, 10, "1"): False,
    (2, 300, "1"): False,
    (3, 50, "1"): False,
    (3, 200, "1"): False,
    (4, 100, "1"): False,
}
LOGISTICS = {(1, 100, "1"): True, (2, 50, "1"): True, (3, 30, "1"): True}
LOGISTICS |= {(1, 150, "1"): False, (2, 75, "1"): False, (3, 50, "1"): False}


def test_what_is_served_in_constant_time_is_what_the_page_says() -> None:
    found = {}
    for features, rows, epsilon in RIDGES:
        ridge = Ridge(
            columns=tuple(range(features)),
            bounds=((0.0, 1.0),) * features,
            target=features,
            target_bounds=(0.0, 1.0),
            adjacency=Adjacency.REPLACE,
        )
        found[features, rows, epsilon] = _served(ridge, rows, epsilon)
    assert found == RIDGES
    found = {}
    for features, rows, epsilon in LOGISTICS:
        logistic = logistic_regression(
            columns=tuple(range(features)),
            bounds=((0.0, 1.0),) * features,
            target="y",
            positive=True,
            law="log-likelihood",
            adjacency=Adjacency.REPLACE,
        )
        found[features, rows, epsilon] = _served(logistic, rows, epsilon)
    assert found == LOGISTICS


def _served(statistic: Statistic, rows: int, epsilon: str) -> bool:
    try:
        settled = prepare_release(
            statistic, epsilon=Fraction(epsilon), count=rows, timing="constant"
        )
    except UnsupportedError:
        return False
    return settled.certificate.timing == "constant"
