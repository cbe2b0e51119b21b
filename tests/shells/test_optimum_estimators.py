"""Linear and logistic regressions by perturbed optima: charged, verified, in the data's units."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.core.errors import ParameterError, UnsupportedError
from expmech.estimators import PrivateLinearRegression, PrivateLogisticRegression, PrivateRidge
from expmech.ledger.verification import verify_certificate, verify_value
from expmech.tables.aggregates import TargetRows
from expmech.tables.arrays import ArrayRows
from expmech.tables.keys import places_of
from expmech.tables.statistics import Linear, RegressionChoices, logistic_regression
from expmech.tables.statistics.logistic import LogisticLikelihood

ROWS = 20_000
GENERATOR = np.random.default_rng(5)
X = GENERATOR.uniform([0.0, -50.0], [10.0, 50.0], (ROWS, 2))
BOUNDS = [(0.0, 10.0), (-50.0, 50.0)]
Y = 3.0 + 2.0 * X[:, 0] - 0.1 * X[:, 1] + GENERATOR.normal(0.0, 0.5, ROWS)
ODDS = X[:, 0] - 5.0 - 0.05 * X[:, 1]
LABELS = np.where(ODDS + GENERATOR.logistic(size=ROWS) > 0.0, "yes", "no")
CUTS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [3.0, 7.0])]
ADJACENCIES = list(em.Adjacency)


def linear(**options: Any) -> PrivateLinearRegression:
    return PrivateLinearRegression(bounds_X=BOUNDS, bounds_y=(-2.0, 28.0), **options)


def logistic(classes: Any = ("no", "yes"), **options: Any) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(bounds_X=BOUNDS, classes=list(classes), **options)


def stands(certificate: em.Certificate) -> bool:
    return all(check.holds for check in verify_certificate(certificate))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_linear_fit_is_charged_verified_and_in_units(adjacency: str, tmp_path: Path) -> None:
    ledger = em.Ledger.create(
        tmp_path / "a.ledger", data_set="trial", epsilon="10", adjacency=adjacency
    )
    rows = None if adjacency == "replace" else ROWS
    model = linear(epsilon=5, ledger=ledger, adjacency=adjacency, rows=rows).fit(X, Y)
    assert np.abs(model.coef_ - [2.0, -0.1]).max() < 0.03
    assert abs(model.intercept_ - 3.0) < 0.3
    assert model.score(X, Y) > 0.9
    assert ledger.left[0] == 5
    certificate = model.certificate_
    assert ledger.history()[0].certificate == certificate.to_json()
    assert stands(certificate) and certificate.mechanism == "PerturbedOptimum"
    assert certificate.statistic == "linear regression of y on column 0, column 1"
    value = np.array([model.intercept_, *model.coef_])
    assert verify_value(certificate, value).holds
    assert not verify_value(certificate, value * [1.0, 1.0 + 1e-5, 1.0]).holds
    assert not verify_value(certificate, value[:2]).holds


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_logistic_fit_is_charged_verified_and_in_units(adjacency: str, tmp_path: Path) -> None:
    ledger = em.Ledger.create(
        tmp_path / "a.ledger", data_set="trial", epsilon="10", adjacency=adjacency
    )
    model = logistic(epsilon=5, ledger=ledger, adjacency=adjacency).fit(X, LABELS)
    assert model.coef_.shape == (1, 2) and model.intercept_.shape == (1,)
    np.testing.assert_allclose(model.coef_[0], [1.0, -0.05], rtol=0.15)
    assert abs(-model.intercept_[0] / model.coef_[0, 0] - 5.0) < 0.3
    assert model.predict([[9.0, 0.0], [1.0, 0.0]]).tolist() == ["yes", "no"]
    np.testing.assert_allclose(model.predict_proba(X[:9]).sum(axis=1), 1.0)
    assert ledger.left[0] == 5 and stands(model.certificate_)
    value = np.array([model.intercept_[0], *model.coef_[0]])
    assert verify_value(model.certificate_, value).holds
    assert not verify_value(model.certificate_, value * 1.01).holds


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_several_classes_have_coefficients_each(adjacency: str) -> None:
    classes = ["low", "middle", "high"]
    model = logistic(classes, epsilon=5, adjacency=adjacency).fit(X, CUTS)
    assert model.coef_.shape == (3, 2) and model.intercept_.shape == (3,)
    assert model.score(X, CUTS) > 0.75
    assert model.classes_.tolist() == classes
    found = model.predict_proba(X[:50])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (model.classes_[found.argmax(axis=1)] == model.predict(X[:50])).all()
    assert stands(model.certificate_) and model.certificate_.domain["classes"] == 3
    value = np.column_stack([model.intercept_, model.coef_])
    assert verify_value(model.certificate_, value).holds
    assert not verify_value(model.certificate_, value[:2]).holds


def test_fields_that_belong_to_one_law_are_refused_by_the_other() -> None:
    few, labels = X[:60], LABELS[:60]
    with pytest.raises(ParameterError, match=r"`radius` .* belongs to law='log-likelihood'"):
        logistic(radius=2.0).fit(few, labels)
    with pytest.raises(ParameterError, match=r"`rows` .* belongs to law='perturbed optimum'"):
        logistic(rows=5, law="log-likelihood").fit(few, labels)
    with pytest.raises(ParameterError, match="Only binary classification is supported"):
        logistic(["a", "b", "c"], law="log-likelihood").fit(few, labels)
    with pytest.raises(ParameterError, match="`law` of a logistic regression must be one of"):
        logistic(law="likelihood").fit(few, labels)
    with pytest.raises(ParameterError, match="`rows` of PerturbedOptimum must be left out"):
        linear(rows=5).fit(few, Y[:60])
    for model, target in ((logistic(), labels), (linear(), Y[:60])):
        with pytest.raises(ParameterError, match="it draws by itself"):
            model.set_params(sampler=em.Rejection()).fit(few, target)
        model.set_params(sampler="auto", timing="constant", adjacency="add-remove")
        with pytest.raises(UnsupportedError, match="under 'replace' only"):
            model.fit(few, target)
    fitted = logistic(law="log-likelihood", radius=4.0, epsilon=0.5).fit(few, labels)
    assert fitted.certificate_.mechanism == "ExponentialMechanism"


def test_a_data_norm_leaves_rows_within_it_as_they_are() -> None:
    """Norms of scaled columns: a row at the middle of its bounds is 0, at a corner sqrt(2)."""
    options: dict[str, Any] = {
        "columns": (0, 1),
        "bounds": tuple(BOUNDS),
        "adjacency": ADJACENCIES[0],
    }
    corners = np.array([[0.0, 50.0], [5.0, 0.0], [10.0, 0.0]])
    for data_norm, lengths in ((1.0, [2.0, 1.0, 2.0]), (99.0, [3.0, 1.0, 2.0])):
        choices = RegressionChoices(data_norm=data_norm)
        settings = choices.settings(2, owner="a linear regression")
        statistic = Linear(target=2, target_bounds=(0.0, 1.0), settings=settings, **options)
        rows = ArrayRows(numbers=np.column_stack([corners, np.ones(3)]))
        found = rows.aggregate(statistic.aggregation(Fraction(1)))
        mechanism: Any = statistic.mechanism(found, Fraction(1), "unprotected")
        squares = (mechanism.prepare_rows(mechanism.terms(epsilon=1.0)).matrix ** 2).sum(axis=1)
        np.testing.assert_allclose(squares, lengths, atol=1e-5)
        assert (squares <= 1.0 + min(data_norm, 2.0**0.5) ** 2).all()
        told = mechanism.certificate(epsilon=1.0).sampler["squared_norm"]
        assert told == min(1.0 + data_norm**2, 3.0)
    with pytest.raises(ParameterError, match="`data_norm` of a linear regression"):
        linear(data_norm=-1.0).fit(X[:9], Y[:9])


def test_norm_and_radius_of_the_log_likelihood_are_those_of_its_rows_and_coefficients() -> None:
    """A row is shortened to the norm, gets a constant and is divided by sqrt(1 + norm^2)."""
    corners = np.array([[0.0, 50.0], [5.0, 0.0], [10.0, 0.0]])
    law = LogisticLikelihood(
        columns=(0, 1),
        target=2,
        bounds=tuple(BOUNDS),
        adjacency=em.Adjacency.REPLACE,
        data_norm=1.0,
        radius=0.25,
    )
    found = TargetRows(features=corners, targets=np.ones(3), counts=np.ones(3, dtype=int))
    mechanism: Any = law.mechanism(found, Fraction(1), "unprotected")
    expected = np.array([[1.0, -(0.5**0.5), 0.5**0.5], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    np.testing.assert_allclose(law._design(corners), expected / 2.0**0.5, atol=1e-15)
    draws = mechanism.sample(epsilon=1.0, size=200, seed=1).values
    lengths = np.sqrt((draws**2).sum(axis=1))
    assert 0.2 < lengths.max() <= 0.25
    with pytest.raises(ValueError, match="'data_norm'"):
        PrivateRidge().set_params(data_norm=1.0)
    with pytest.raises(TypeError, match="radius"):
        linear(radius=1.0)


def test_nothing_about_a_row_is_refused_and_nothing_public_depends_on_it() -> None:
    rows = [[1.0, 2.0], ["text", None], [float("nan"), float("inf")], [1e308, -1e308]]
    targets = [1.0, "text", float("nan"), float("inf")]
    for model, target in ((linear(), targets), (logistic(), ["yes", None, "other", 7])):
        odd = model.fit(rows, target).certificate_
        assert odd == model.fit(X[:4].tolist(), target[:1] * 4).certificate_
        model.set_params(adjacency="add-remove", rows=10)
        none = model.fit(X[:0], target[:0]).certificate_
        assert none == model.fit(X[:7], target[:1] * 7).certificate_


def test_studies_repeat_themselves_and_are_no_releases() -> None:
    for model, target in (
        (linear(random_state=3), Y[:99]),
        (logistic(random_state=3), LABELS[:99]),
    ):
        found = [model.fit(X[:99], target).coef_.tolist() for _ in range(2)]
        assert found[0] == found[1]
        assert model.certificate_.kind == "study, not a release"


def test_places_are_those_of_each_value_alone() -> None:
    classes = ["7", True, "north", 2.5]
    column = np.array([7, 1.0, 2.5, np.nan, 3.0, 7.0])
    assert np.nan_to_num(places_of(column, classes), nan=-1.0).tolist() == [1, 2, 4, -1, 0, 1]
    for values in (np.array([7, 1, 9]), np.array(["north", " 7 ", "x"]), np.array([True, False])):
        by_array, by_list = places_of(values, classes), places_of(values.tolist(), classes)
        assert by_array.tolist() == by_list.tolist()
    assert places_of(np.zeros(0), classes).shape == (0,)


def test_names_tell_the_classes() -> None:
    base: dict[str, Any] = {"columns": ("a",), "bounds": (BOUNDS[0],), "adjacency": ADJACENCIES[0]}
    named = logistic_regression(target="t", classes=("x", "y", "z"), named=True, **base)
    assert named.name == "logistic regression of t in x, y, z on a"
    value = np.array([[0.5, 1.0], [0.25, -2.0], [0.0, 0.0]])
    told = named.postprocessing.apply(value)
    assert list(told) == ["x", "y", "z"] and list(told["x"]) == ["intercept", "a"]
    np.testing.assert_allclose(
        type(named.postprocessing).rebuild(named.postprocessing.describe()).back(told), value
    )
