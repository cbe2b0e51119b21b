"""scikit-learn around the private models: pipelines, searches, weights, bounds by name."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    scale,
)

from expmech.core.errors import ExpmechError
from expmech.estimators import (
    PrivateMean,
    PrivatePCA,
    PrivateQuantile,
    PrivateRidge,
    PrivateScaler,
    check_pipeline,
    pipelines,
    reserve,
)
from expmech.ledger import Ledger, LedgerError

ROWS = pd.DataFrame({"age": np.arange(20.0, 80.0), "dose": np.arange(60) % 10.0})
BOUNDS = {"dose": (0, 10), "age": (0, 100)}


def ridge(**options: Any) -> PrivateRidge:
    return PrivateRidge(bounds_X=BOUNDS, bounds_y=(0, 100), **options)


def test_bounds_by_name_are_those_of_the_columns() -> None:
    named = PrivateMean(epsilon=50, bounds=BOUNDS).fit(ROWS)
    np.testing.assert_allclose(named.mean_, ROWS.mean(), rtol=0.05)
    pairs = [(0, 100), (0, 10)]
    studies = [PrivateMean(bounds=one, random_state=1).fit(ROWS) for one in (BOUNDS, pairs)]
    assert (studies[0].mean_ == studies[1].mean_).all()
    model = ridge(epsilon=50).fit(ROWS, ROWS["age"])
    assert model.predict(ROWS).shape == (60,)
    for bounds, table, message in (
        ({"age": (0, 1)}, ROWS, "missing: dose; unknown: none"),
        (BOUNDS | {"wage": (0, 1)}, ROWS, "missing: none; unknown: wage"),
        (BOUNDS, ROWS.to_numpy(), "X has no names of columns"),
    ):
        with pytest.raises(ExpmechError, match=message):
            PrivateMean(bounds=bounds).fit(table)


def test_weights_are_refused_with_the_reason() -> None:
    models: list[tuple[Any, Any]] = [
        (PrivateMean(bounds=BOUNDS), None),
        (PrivateQuantile(bounds=BOUNDS), None),
        (ridge(), ROWS["age"]),
    ]
    for model, target in models:
        given = (ROWS,) if target is None else (ROWS, target)
        with pytest.raises(ExpmechError, match="is refused: a row with a large weight"):
            model.fit(*given, sample_weight=np.ones(60))
        assert model.fit(*given, sample_weight=None) is model
        with pytest.raises(TypeError):
            model.fit(*given, weights=np.ones(60))


def test_steps_that_learn_are_named() -> None:
    scaled = ("scaled", StandardScaler(), ["age"])
    inner = ColumnTransformer([scaled, ("as is", "passthrough", ["dose"])])
    checked = check_pipeline(make_pipeline(inner, Normalizer(), ridge()))
    assert [(step.name, step.kind) for step in checked.steps] == [
        ("columntransformer.scaled", "learns from the data"),
        ("columntransformer.as is", "row by row"),
        ("columntransformer.remainder", "row by row"),
        ("normalizer", "row by row"),
        ("privateridge", "private"),
    ]
    assert not checked.stands
    assert "Not private: columntransformer.scaled would be fitted" in str(checked)
    good = check_pipeline(make_pipeline(FunctionTransformer(np.log1p), ridge()))
    assert good.stands
    assert "nothing learns from the data but" in str(good)
    plain = check_pipeline(make_pipeline(FunctionTransformer(np.log1p)))
    assert not plain.stands
    assert "no step is a model of expmech" in str(plain)
    with pytest.raises(ExpmechError, match="must be a scikit-learn Pipeline"):
        check_pipeline(ridge())


def swapped(rows: Any) -> Any:
    return rows[:, ::-1]


TOWNS = [["Bern", "Biel"]]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (ColumnTransformer([], remainder=StandardScaler()), "learns from the data"),
        (ColumnTransformer([("a", Normalizer(), lambda rows: [0])]), "may learn from the data"),
        (ColumnTransformer([("a", Normalizer(), make_column_selector())]), "row by row"),
        (FunctionTransformer(scale), "may learn from the data"),
        (FunctionTransformer(swapped), "row by row"),
        (FunctionTransformer(), "row by row"),
        (OneHotEncoder(), "learns from the data"),
        (OneHotEncoder(categories=TOWNS, handle_unknown="ignore"), "row by row"),
        # an unknown category would end the fit: one record decides
        (OneHotEncoder(categories=TOWNS), "learns from the data"),
        (
            OneHotEncoder(categories=TOWNS, handle_unknown="ignore", max_categories=1),
            "learns from the data",
        ),
        (
            OrdinalEncoder(categories=TOWNS, handle_unknown="use_encoded_value", unknown_value=-1),
            "row by row",
        ),
        (SimpleImputer(strategy="constant", keep_empty_features=True), "row by row"),
        (SimpleImputer(strategy="constant"), "learns from the data"),
        (SimpleImputer(keep_empty_features=True), "learns from the data"),
        (MissingIndicator(features="all"), "row by row"),
        (MissingIndicator(), "learns from the data"),
        (PolynomialFeatures(), "row by row"),
        (FeatureUnion([("a", Normalizer()), ("b", StandardScaler())]), "learns from the data"),
        (make_pipeline(Normalizer(), Binarizer()), "row by row"),
        (LinearRegression(), "learns from the data"),
    ],
)
def test_a_step_is_private_only_if_it_is_known_to_treat_each_row_alone(
    step: Any, kind: str
) -> None:
    checked = check_pipeline(make_pipeline(step, ridge()), by_row=[swapped])
    kinds = {one.kind for one in checked.steps[:-1]} - {"row by row"}
    assert kinds == {kind} - {"row by row"}
    assert checked.stands == (kind == "row by row")
    assert ("ot known to be private" in str(checked)) == (kind == "may learn from the data")


def test_steps_that_are_taken_to_treat_rows_alone_do() -> None:
    """Every kind of step on the list, on a table and on each of its rows."""
    texts = np.array([["Bern"], ["Biel"], ["Chur"], ["Bern"]], dtype=object)
    numbers = np.array([[1.0, -2.0], [0.0, 5.0], [3.0, 4.0], [1.0, 1.0]])
    holes = np.where(numbers == 1.0, np.nan, numbers)
    cases: list[tuple[Any, Any]] = [
        (OneHotEncoder(categories=TOWNS, handle_unknown="ignore", sparse_output=False), texts),
        (
            OrdinalEncoder(categories=TOWNS, handle_unknown="use_encoded_value", unknown_value=-1),
            texts,
        ),
        (SimpleImputer(strategy="constant", keep_empty_features=True), holes),
        (MissingIndicator(features="all"), holes),
        (PolynomialFeatures(), numbers),
        (Normalizer(), numbers),
        (Binarizer(), numbers),
        (FunctionTransformer(np.log1p), np.abs(numbers)),
        (FeatureHasher(4, input_type="string"), texts.tolist()),
        (HashingVectorizer(n_features=4), [text for (text,) in texts]),
    ]
    assert {type(step) for step, _ in cases} == {*pipelines._BY_ROW, FunctionTransformer}
    for step, table in cases:
        whole = step.fit_transform(table)
        alone = [clone(step).fit_transform(table[j : j + 1]) for j in range(len(table))]
        dense = [np.asarray(part.todense() if hasattr(part, "todense") else part) for part in alone]
        together = np.asarray(whole.todense() if hasattr(whole, "todense") else whole)
        np.testing.assert_array_equal(np.concatenate(dense), together)


@pytest.mark.parametrize(
    "step",
    [
        OneHotEncoder(categories=TOWNS, handle_unknown="ignore"),
        OneHotEncoder(categories=[[1.0, 2.0]], handle_unknown="ignore"),
        OrdinalEncoder(categories=[[1, 2]], handle_unknown="use_encoded_value", unknown_value=-1),
        SimpleImputer(strategy="constant", keep_empty_features=True),
        MissingIndicator(features="all"),
        PolynomialFeatures(),
        Normalizer(),
        Binarizer(),
        FunctionTransformer(np.log1p),
        FunctionTransformer(np.log1p, validate=True),
        "passthrough",
    ],
)
def test_steps_that_a_row_can_stop_are_named(step: Any) -> None:
    of_text = isinstance(step, OneHotEncoder) and step.categories is TOWNS
    whole: Any = [["Bern"], ["Biel"]] if of_text else [[1.0], [2.0]]
    stopped = False
    for odd in (np.nan, np.inf):
        rows = np.array([*whole, [odd]], dtype=object if of_text else float)
        try:
            assert step == "passthrough" or step.fit_transform(rows) is not None
        except ValueError:
            stopped = True
    checked = check_pipeline(make_pipeline(step, ridge()))
    assert checked.stands
    assert checked.steps[0].refuses == stopped
    assert ("which would tell about its row" in str(checked)) == stopped


@pytest.mark.parametrize(
    "step",
    [
        PrivateScaler(epsilon=20),
        PrivatePCA(epsilon=20, bounds=(0, 100), center="bounds"),
        PrivatePCA(
            bounds=(0, 100),
            center="bounds",
            adjacency="add-remove",
            missing="drop",
            variances=False,
        ),
    ],
)
def test_no_value_stops_a_pipeline_of_private_steps(step: Any) -> None:
    """Its transform is of the rows that the model behind it is fitted to."""
    pipeline = make_pipeline(step, PrivateMean(bounds=(-1, 1), adjacency=step.adjacency))
    assert check_pipeline(pipeline).stands
    for value in (np.inf, -np.inf, np.nan, 10**400, None, "no number", "nan", 1e308):
        rows = np.full((400, 2), 50.0).astype(object)
        rows[7, 1] = value
        found = pipeline.fit(rows)
        coordinates = found[0].transform(rows)
        np.testing.assert_array_equal(coordinates[8:], found[0].transform(rows[8:]))
        assert not np.isinf(coordinates).any()


def test_the_whole_search_is_paid_before_its_first_fit(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "trial.ledger", data_set="trial", epsilon="2")
    grid = {"epsilon": ["0.1", "0.2"], "penalty": [1.0]}
    search = reserve(GridSearchCV(ridge(), grid, cv=3), ledger)
    assert ledger.spent[0] == Fraction(11, 10)  # 3 (0.1 + 0.2) and the dearer one for the refit
    search.fit(ROWS, ROWS["age"])
    own = Ledger(tmp_path / "trial.ledger.search-1")
    best = Fraction(search.best_params_["epsilon"])
    assert own.spent[0] == Fraction(9, 10) + best
    assert ledger.spent[0] == Fraction(11, 10)
    with pytest.raises(LedgerError):
        search.set_params(error_score="raise").fit(ROWS, ROWS["age"])  # a second time was not paid
    with pytest.raises(LedgerError, match="is left of 2"):
        reserve(GridSearchCV(ridge(), grid, cv=3), ledger)
    whole = make_pipeline(FunctionTransformer(), ridge(epsilon="0.05"))
    tuned = reserve(GridSearchCV(whole, {"privateridge__penalty": [1.0]}, cv=2), ledger)
    tuned.fit(ROWS, ROWS["age"])
    assert ledger.spent[0] == Fraction(11, 10) + Fraction(15, 100)
    for wrong in (ridge(), GridSearchCV(LinearRegression(), {"positive": [True]})):
        with pytest.raises(ExpmechError, match="of reserve must"):
            reserve(wrong, ledger)
