"""The estimators.

Public bounds, exact charges before the draw, private attributes only, and answers in the units of
the data.
"""

from __future__ import annotations

import itertools
import math
import pickle
import struct
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from support.aggregates import histogram, histogram_of, moments, moments_of
from support.reading import Unkind

import expmech as em
from expmech.certificates.mechanism import PreparedDraw
from expmech.core.adjacency import Adjacency
from expmech.core.errors import DataError, ParameterError, ParameterTypeError, UnsupportedError
from expmech.estimators import (
    PrivateLogisticRegression,
    PrivateMean,
    PrivateQuantile,
    PrivateRidge,
    PrivateSelector,
)
from expmech.estimators.regression import INFERRED
from expmech.ledger import LedgerError
from expmech.ledger.verification import verify_certificate
from expmech.tables.arrays import ArrayRows
from expmech.tables.reading import EQUAL_ROWS, NOTHING_MISSING
from expmech.tables.sources.opening import open_source
from expmech.tables.statistics import LargestTotal
from expmech.tables.statistics.ridge import ridge_penalty, ridge_radius

ROWS = 60
SECRET = 3.14159012345
GENERATOR = np.random.default_rng(11)
X = np.column_stack([GENERATOR.uniform(20.0, 80.0, ROWS), GENERATOR.uniform(0.0, 5.0, ROWS)])
X[7, 1] = SECRET
Y = 10.0 + 0.5 * X[:, 0]
LABELS = np.where(X[:, 0] > 50.0, "old", "young")
BOUNDS = [(20.0, 80.0), (0.0, 5.0)]
ADJACENCIES = ("replace", "add-remove")


def estimators(**options: Any) -> list[tuple[Any, Any]]:
    """Return each estimator with the target it is fitted to."""
    logistic: dict[str, Any] = {"classes": ["young", "old"], "bounds_X": BOUNDS, "radius": 2.0}
    logistic["law"] = "log-likelihood"
    if options.get("adjacency") == "add-remove":
        logistic["sampler"] = em.BoxTree()
    return [
        (PrivateMean(bounds=BOUNDS, **options), None),
        (PrivateQuantile(q=[0.25, 0.5], bounds=BOUNDS, bits=8, **options), None),
        (PrivateRidge(bounds_X=BOUNDS, bounds_y=(0.0, 100.0), **options), Y),
        (PrivateLogisticRegression(**logistic, **options), LABELS),
        (PrivateSelector(bounds=BOUNDS, **options), None),
    ]


@pytest.fixture
def ledger(tmp_path: Path) -> em.Ledger:
    return em.Ledger.create(
        tmp_path / "budget.ledger",
        data_set="trial",
        epsilon="2",
        delta="1e-6",
        composition="basic",
    )


FOUND = ("bounds_", "bounds_certificates_")
PRIVATE = {
    "PrivateMean": {"mean_", "accuracy_", *FOUND},
    "PrivateQuantile": {"quantiles_", "certificates_", *FOUND},
    "PrivateRidge": {"coef_", "intercept_"},
    "PrivateLogisticRegression": {"coef_", "intercept_", "classes_"},
    "PrivateSelector": {"best_", "best_index_"},
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_fit_keeps_private_attributes_only(adjacency: str) -> None:
    for estimator, target in estimators(adjacency=adjacency):
        public = set(estimator.get_params())
        fitted = estimator.fit(X, target)
        assert fitted is estimator
        learned = set(vars(estimator)) - public
        assert learned == PRIVATE[type(estimator).__name__] | {"certificate_", "n_features_in_"}
        assert estimator.certificate_.kind == "release"
        assert estimator.certificate_.adjacency == adjacency
        stored = pickle.dumps(
            {name: value for name, value in vars(estimator).items() if name not in public}
        )
        assert struct.pack("<d", SECRET) not in stored and struct.pack(">d", SECRET) not in stored
        if adjacency == "add-remove":
            assert f": {ROWS}" not in estimator.certificate_.to_json()


def test_certificates_of_fits_verify() -> None:
    for estimator, target in estimators(epsilon="0.3"):
        estimator.fit(X, target)
        for certificate in getattr(estimator, "certificates_", [estimator.certificate_]):
            assert all(check.holds for check in verify_certificate(certificate)), certificate


def test_a_seed_makes_a_study_that_repeats() -> None:
    for (one, target), (two, _) in zip(
        estimators(random_state=5), estimators(random_state=5), strict=True
    ):
        values = [
            {
                name: value
                for name, value in vars(estimator.fit(X, target)).items()
                if name.endswith("_")
            }
            for estimator in (one, two)
        ]
        assert values[0]["certificate_"].kind == "study, not a release"
        assert values[0]["certificate_"].randomness == values[1]["certificate_"].randomness
        for name in PRIVATE[type(one).__name__]:
            assert repr(values[0][name]) == repr(values[1][name]), name
    third = PrivateMean(bounds=BOUNDS, random_state=6).fit(X)
    assert not np.array_equal(third.mean_, PrivateMean(bounds=BOUNDS, random_state=5).fit(X).mean_)
    assert not np.array_equal(
        PrivateMean(bounds=BOUNDS).fit(X).mean_, PrivateMean(bounds=BOUNDS).fit(X).mean_
    )


def test_a_study_is_what_sample_draws_with_its_kind() -> None:
    mechanism = em.ExponentialMechanism(
        loss=em.losses.L1Mean(X[:, :1], lower=20.0, upper=80.0), domain=em.Box([20.0], [80.0])
    )
    noisy = em.NoisyMean.from_rows(X, lower=[20.0, 0.0], upper=[80.0, 5.0])
    study = mechanism.study(epsilon=1.0, sampler="Rejection", seed=3)
    assert np.array_equal(
        study.value, mechanism.sample(epsilon=1.0, sampler="Rejection", seed=3).values[0]
    )
    assert np.array_equal(
        noisy.study(epsilon=1.0, seed=3).value, noisy.sample(epsilon=1.0, seed=3)[0]
    )
    for certificate in (study.certificate, noisy.study(epsilon=1.0, seed=3).certificate):
        assert certificate.kind == "study, not a release"
        assert all(check.holds for check in verify_certificate(certificate))


def test_missing_bounds_are_an_error() -> None:
    for estimator, target in estimators():
        for name in ("bounds", "bounds_X", "bounds_y"):
            if name in estimator.get_params():
                with pytest.raises(
                    ParameterError,
                    match=(
                        f"`{name}` of {type(estimator).__name__} must be .* got None.* never from"
                    ),
                ):
                    clone(estimator).set_params(**{name: None}).fit(X, target)


def test_a_fit_is_charged_before_it_draws(
    ledger: em.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_: PreparedDraw) -> None:
        raise RuntimeError("the power went off")

    monkeypatch.setattr(PreparedDraw, "release", crash)
    with pytest.raises(RuntimeError):
        PrivateMean(epsilon="0.5", bounds=BOUNDS, ledger=ledger).fit(X)
    assert ledger.left[0] == Fraction(3, 2)
    assert ledger.history()[0].statement == "PrivateMean: mean of column 0, column 1"


def test_every_estimator_charges_what_it_certifies(ledger: em.Ledger) -> None:
    for estimator, target in estimators(epsilon="0.3", ledger=str(ledger.path)):
        before = ledger.spent[0]
        estimator.fit(X, target)
        assert ledger.spent[0] - before == Fraction(3, 10)
        assert (
            em.Certificate.from_json(ledger.history()[-1].certificate).sensitivity
            == estimator.certificate_.sensitivity
        )
    with pytest.raises(LedgerError, match=r"0\.5 is left of 2"):
        PrivateMean(epsilon=0.6, bounds=BOUNDS, ledger=ledger).fit(X)
    PrivateMean(epsilon=0.5, bounds=BOUNDS, ledger=ledger).fit(X)
    assert ledger.left[0] == 0


def test_a_study_charges_nothing(ledger: em.Ledger) -> None:
    for estimator, target in estimators(ledger=ledger, random_state=1):
        with pytest.raises(
            ParameterError, match=r"`ledger` of .* must be None when `random_state` is given"
        ):
            estimator.fit(X, target)
    assert ledger.history() == []


def test_a_refused_fit_charges_nothing(ledger: em.Ledger) -> None:
    for estimator, target in estimators(ledger=ledger, epsilon=0.1):
        with pytest.raises(ParameterError, match="`missing` must not be 'drop' under 'replace'"):
            clone(estimator).set_params(missing="drop").fit(X, target)
        with pytest.raises(ParameterError):
            clone(estimator).set_params(adjacency="swap").fit(X, target)
    assert ledger.history() == []


def test_what_values_are_is_found_after_the_charge(ledger: em.Ledger) -> None:
    spoilt = X.copy()
    spoilt[3, 0] = np.nan
    for estimator, target in estimators(ledger=ledger, epsilon="0.2"):
        before = ledger.spent[0]
        estimator.fit(spoilt, target)
        assert ledger.spent[0] - before == Fraction(1, 5)
        strict = clone(estimator).set_params(missing="error", epsilon="0.1", ledger=ledger)
        with pytest.raises(DataError) as caught:
            strict.fit(spoilt, target)
        assert caught.value.__context__ is None
        assert ledger.spent[0] - before == Fraction(3, 10)  # so a refusal is no free question
        told = em.Certificate.from_json(ledger.history()[-1].certificate)
        assert NOTHING_MISSING in told.assumptions


def test_a_delta_is_charged(ledger: em.Ledger) -> None:
    PrivateSelector(
        bounds=BOUNDS, epsilon=0.1, sampler=em.Metropolis(delta=1e-7), ledger=ledger
    ).fit(X)
    assert 0 < ledger.spent[1] <= Fraction(1, 10**7)


def test_each_fold_is_charged(ledger: em.Ledger) -> None:
    ridge = PrivateRidge(epsilon="0.1", bounds_X=BOUNDS, bounds_y=(0.0, 100.0), ledger=ledger)
    assert clone(ridge).ledger.path == ledger.path
    scores = cross_val_score(make_pipeline(FunctionTransformer(), ridge), X, Y, cv=4)
    assert scores.shape == (4,) and np.isfinite(scores).all()
    assert [charge.epsilon for charge in ledger.history()] == [Fraction(1, 10)] * 4
    logistic = PrivateLogisticRegression(
        epsilon="0.2",
        bounds_X=BOUNDS,
        classes=["young", "old"],
        radius=2.0,
        law="log-likelihood",
        ledger=ledger,
    )
    cross_val_score(logistic, X, LABELS, cv=3)
    distance = lambda fitted, rows, _=None: -float(np.abs(rows.mean(axis=0) - fitted.mean_).sum())  # noqa: E731
    cross_val_score(
        PrivateMean(epsilon="0.2", bounds=BOUNDS, ledger=ledger), X, scoring=distance, cv=5
    )
    assert len(ledger.history()) == 12
    assert ledger.left[0] == 0
    with pytest.raises(LedgerError):
        cross_val_score(ridge, X, Y, cv=2, error_score="raise")


def test_several_quantiles_share_epsilon(ledger: em.Ledger) -> None:
    model = PrivateQuantile(
        q=[0.9, 0.1, 0.5], epsilon=1, bounds=BOUNDS, joint=False, ledger=ledger
    ).fit(X)
    assert model.quantiles_.shape == (3, 2)
    assert (model.quantiles_[1] <= model.quantiles_[2]).all() and (
        model.quantiles_[2] <= model.quantiles_[0]
    ).all()
    assert [charge.epsilon for charge in ledger.history()] == [Fraction(1, 6)] * 6
    assert ledger.spent[0] == 1
    assert ledger.history()[0].statement == "PrivateQuantile: 0.9-quantile of column 0"
    assert len(model.certificates_) == 6 and model.certificate_ == model.certificates_[0]
    assert [charge.certificate for charge in ledger.history()] == [
        certificate.to_json() for certificate in model.certificates_
    ]
    assert (
        "one of 6 releases of this fit, which together cost epsilon = 1 by basic composition"
        in str(model.certificate_).replace("\n" + " " * 14, " ")
    )
    with pytest.raises(LedgerError, match="1 is left of 2"):
        PrivateQuantile(q=[0.5, 0.6], epsilon="1.1", bounds=BOUNDS, ledger=ledger).fit(X)
    assert ledger.spent[0] == 1  # all of a fit, or nothing
    single = PrivateQuantile(q=0.5, epsilon=50, bounds=BOUNDS).fit(X)
    assert single.quantiles_.shape == (2,)
    np.testing.assert_allclose(single.quantiles_, np.median(X, axis=0), rtol=0.1)
    assert (
        "basic composition"
        not in PrivateQuantile(bounds=(20, 80)).fit(X[:, :1]).certificate_.to_json()
    )


def test_answers_are_in_the_units_of_the_data() -> None:
    mean = PrivateMean(epsilon=1000, bounds=BOUNDS).fit(X)
    np.testing.assert_allclose(mean.mean_, X.mean(axis=0), rtol=0.01)
    ridge = PrivateRidge(epsilon=1000, bounds_X=BOUNDS, bounds_y=(0.0, 100.0)).fit(X, Y)
    np.testing.assert_allclose(ridge.predict(X), ridge.intercept_ + X @ ridge.coef_)
    np.testing.assert_allclose(ridge.predict([[30.0, 2.0], [70.0, 2.0]]), [25.0, 45.0], atol=3.0)
    assert ridge.score(X, Y) > 0.9
    logistic = PrivateLogisticRegression(
        epsilon=1000, bounds_X=BOUNDS, classes=["young", "old"], sampler=em.Rejection(em.Convex())
    ).set_params(law="log-likelihood")
    logistic.fit(X, LABELS)
    assert logistic.score(X, LABELS) > 0.8
    assert logistic.predict([[79.0, 2.5], [21.0, 2.5]]).tolist() == ["old", "young"]
    boundary = -(logistic.intercept_[0] + 2.5 * logistic.coef_[0, 1]) / logistic.coef_[0, 0]
    assert abs(boundary - 50.0) < 10.0
    np.testing.assert_allclose(logistic.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(
        np.log(np.divide(*logistic.predict_proba(X).T[::-1])),
        logistic.decision_function(X),
        atol=1e-9,
    )


def test_a_mean_may_be_asked_of_the_exponential_mechanism() -> None:
    model = PrivateMean(bounds=BOUNDS, sampler="Rejection").fit(X)
    assert model.certificate_.sampler["sampler"] == "Rejection"
    assert PrivateMean(bounds=BOUNDS).fit(X).certificate_.sampler["sampler"] == "NoisyMean"


def test_arrays_and_engines_give_the_same_integers(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    table = np.column_stack([X[:, 0] - 5.0, X[:, 1]])
    path.write_text("a,b\n" + "\n".join(f"{a!r},{b!r}" for a, b in table.tolist()) + "\n")
    source = open_source(str(path))
    assert moments_of(table, BOUNDS, bits=20, products=True) == moments(
        source, ["a", "b"], BOUNDS, bits=20, products=True
    )
    assert np.array_equal(
        histogram_of(table[:, 0], BOUNDS[0], bits=7), histogram(source, "a", BOUNDS[0], bits=7)
    )
    source.close()


def test_constant_timing_is_constant_or_refused(ledger: em.Ledger) -> None:
    assert (
        PrivateMean(bounds=BOUNDS, timing="constant").fit(X).certificate_.timing
        == "data-independent"
    )
    assert (
        PrivateSelector(bounds=BOUNDS, timing="constant").fit(X).certificate_.timing == "constant"
    )
    answers = np.array([["yes"], ["no"], ["yes"]])
    counted = PrivateSelector(candidates=["yes", "no"], timing="constant").fit(answers)
    assert counted.certificate_.timing == "constant"
    quantile = PrivateQuantile(bounds=(20, 80), bits=6, epsilon=0.5, timing="constant").fit(
        X[:, :1]
    )
    assert quantile.certificate_.timing == "constant"
    ridge = PrivateRidge(
        epsilon=0.1,
        bounds_X=(20, 80),
        bounds_y=(0, 100),
        penalty=1.0,
        radius=0.5,
        timing="constant",
    )
    assert ridge.fit(X[:, :1], Y).certificate_.timing == "constant"
    assert (
        ridge.certificate_.domain["kind"] == "Box"
        and sum(ridge.certificate_.domain["upper"]) <= 0.5
    )
    hard = [
        PrivateRidge(
            epsilon=2, bounds_X=BOUNDS, bounds_y=(0, 100), timing="constant", ledger=ledger
        ),
        PrivateRidge(
            bounds_X=BOUNDS,
            bounds_y=(0, 100),
            timing="constant",
            adjacency="add-remove",
            ledger=ledger,
        ),
    ]
    with pytest.raises(
        UnsupportedError
    ):  # a chain with a delta would be short enough, and is not pure
        clone(ridge).set_params(epsilon=13).fit(X[:, :1], Y)
    many = np.tile(X, (50, 1))
    for estimator in hard:
        with pytest.raises(
            UnsupportedError, match=r"PrivateRidge\(timing='constant'\) found no exact sampler"
        ):
            estimator.fit(many, np.tile(Y, 50))
    with pytest.raises(
        ParameterError, match="`sampler` of PrivateQuantile must be 'auto', Metropolis or"
    ):
        PrivateQuantile(bounds=BOUNDS, sampler=em.BoxTree(), timing="constant", ledger=ledger).fit(
            X
        )
    assert ledger.history() == []
    chain = PrivateQuantile(
        bounds=(20, 80), bits=4, epsilon=0.1, timing="constant", sampler=em.Metropolis(pure=True)
    ).fit(X[:, :1])
    assert chain.certificate_.sampler["sampler"] == "Metropolis"


BAD_FORMS: list[Any] = [
    [SECRET, 2.0, 3.0],
    np.array([[SECRET + 1j, 2.0]]),
    np.full((1, 2, 2), SECRET),
    np.full(4, SECRET),
    "secret-7",
    {"secret": [SECRET]},
    np.empty((37, 0)),
    [[]] * 37,
    pandas.DataFrame([[SECRET, 1.0]], columns=["a", "a"]),
    None,
]


@pytest.mark.parametrize("rows", BAD_FORMS, ids=range(len(BAD_FORMS)))
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_table_of_another_form_is_refused_and_nothing_is_quoted(
    rows: Any, adjacency: str, ledger: em.Ledger
) -> None:
    for estimator, target in estimators(adjacency=adjacency, ledger=ledger):
        with pytest.raises((ValueError, TypeError)) as caught:
            estimator.fit(rows, target if target is None else target[:1])
        assert not any(word in str(caught.value) for word in ("secret", "3.14", "37")), caught.value
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert ledger.history() == []


ODD_ROWS: list[Any] = [
    ["secret-7", 1.0],
    [SECRET + 1j, 2.0],
    [SECRET, float("inf")],
    [float("nan"), -float("inf")],
    [{"secret": 1}, SECRET],
    [None, b"\xff"],
    [1.7e308, -1.7e308],
    [5e-324, 10**400],
    [SECRET],
    "secret-7",
    {"a": SECRET, "b": 2.0},
    None,
    np.array(SECRET),
    Unkind(),
    [Unkind(), [1.0, 2.0]],
]


@pytest.mark.parametrize("odd", range(len(ODD_ROWS)))
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_row_is_refused_and_no_row_makes_a_warning(odd: int, adjacency: str) -> None:
    rows = [*X[:5].tolist(), ODD_ROWS[odd]]
    for estimator, target in estimators(adjacency=adjacency, random_state=3):
        targets = None if target is None else [*target[:5].tolist(), ODD_ROWS[odd]]
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            estimator.fit(rows, targets)
        assert EQUAL_ROWS in estimator.certificate_.assumptions


def test_no_error_tells_the_number_of_rows_or_a_label() -> None:
    for estimator, target in estimators(adjacency="add-remove"):
        if target is not None:
            with pytest.raises(ValueError, match="X and y must have one entry per row each"):
                estimator.fit(X, target[:-1])
    unknown = np.where(X[:, 0] > 79.0, "secret-7", LABELS)
    unknown[0] = "secret-7"
    asked = PrivateLogisticRegression(bounds_X=BOUNDS, classes=["young", "old"])
    model = asked.fit(X, unknown)  # a label that is not public counts as not positive
    assert model.classes_.tolist() == ["young", "old"]
    assert "secret-7" not in model.certificate_.to_json()


def test_labels_are_looked_for_only_where_that_is_asked(ledger: em.Ledger) -> None:
    with pytest.raises(ParameterError, match=r"`classes` of .* must be the two labels.*'infer'"):
        PrivateLogisticRegression(bounds_X=BOUNDS, ledger=ledger).fit(X, LABELS)
    infer = PrivateLogisticRegression(bounds_X=BOUNDS, classes="infer", radius=2.0)
    infer.set_params(law="log-likelihood")  # which takes two labels
    assert INFERRED in infer.fit(X, LABELS).certificate_.assumptions
    assert infer.classes_.tolist() == ["old", "young"]
    given = clone(infer).set_params(classes=["old", "young"]).fit(X, LABELS)
    assert INFERRED not in given.certificate_.assumptions
    three = [*LABELS[1:], "secret-7"]
    mixed = [*LABELS[1:], {"secret": SECRET}]
    for target in (["secret-7"] * ROWS, three, mixed, [SECRET, *Y[1:]], [None] * ROWS):
        with pytest.raises(ParameterError) as caught:
            infer.fit(X, target)
        assert not any(word in str(caught.value) for word in ("secret", "3.14", "60"))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert ledger.history() == []


def test_an_empty_table_is_not_betrayed_under_add_remove() -> None:
    for estimator, target in estimators(adjacency="add-remove", epsilon=0.5):
        estimator.fit(X[:0], None if target is None else target[:0])
        assert estimator.certificate_.kind == "release"
    for estimator, target in estimators():
        with pytest.raises(ValueError, match="at least 1 sample"):
            estimator.fit(X[:0], None if target is None else target[:0])


BAD_PARAMETERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"epsilon": 0}, ParameterError, "`epsilon` of PrivateMean must be a positive number"),
    ({"epsilon": "much"}, ParameterError, "`epsilon` of PrivateMean"),
    ({"epsilon": None}, ParameterTypeError, "`epsilon` of PrivateMean"),
    (
        {"timing": "fast"},
        ParameterError,
        "`timing` of PrivateMean must be one of 'auto', 'unprotected', 'constant'; got 'fast'",
    ),
    ({"adjacency": "swap"}, ParameterError, "`adjacency` of PrivateMean"),
    ({"random_state": 0.5}, ParameterTypeError, "`random_state` of PrivateMean"),
    ({"random_state": True}, ParameterTypeError, "`random_state` of PrivateMean"),
    ({"random_state": -1}, ParameterTypeError, "`random_state` of PrivateMean"),
    (
        {"ledger": 3},
        ParameterTypeError,
        "`ledger` of PrivateMean must be a Ledger or the path of one; got 3.",
    ),
    ({"ledger": "nowhere.ledger"}, LedgerError, "There is no ledger at nowhere.ledger"),
    (
        {"bounds": (1, 0)},
        ParameterError,
        "`bounds` of PrivateMean must be LOWER < UPPER; got 1 and 0.",
    ),
    (
        {"bounds": (0, 1, 2)},
        ParameterError,
        "or one pair for each of the 2 columns, in order or by name; got (0, 1, 2).",
    ),
    ({"bounds": [(0, 1)] * 3}, ParameterError, "one pair for each of the 2 columns"),
    ({"bounds": "wide"}, ParameterTypeError, "`bounds` of PrivateMean"),
    ({"bounds": (0, float("inf"))}, ParameterError, "`bounds` of PrivateMean"),
    ({"sampler": "Rejektion"}, ParameterError, "Did you mean 'Rejection'?"),
]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    BAD_PARAMETERS,
    ids=[str(changes) for changes, *_ in BAD_PARAMETERS],
)
def test_bad_parameters_are_refused_by_name(
    changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        PrivateMean(**{"bounds": BOUNDS} | changes).fit(X)
    assert words in str(caught.value)


def test_other_bad_parameters() -> None:
    with pytest.raises(
        ParameterError, match="`q` of a quantile must be strictly between 0 and 1; got 2"
    ):
        PrivateQuantile(q=2, bounds=BOUNDS).fit(X)
    with pytest.raises(ParameterTypeError, match="`q` of PrivateQuantile"):
        PrivateQuantile(q=[], bounds=BOUNDS).fit(X)
    with pytest.raises(
        ParameterError, match="`classes` of PrivateLogisticRegression must be two different labels"
    ):
        PrivateLogisticRegression(bounds_X=BOUNDS, classes=[1]).fit(X, LABELS)
    for classes in ([1, "1.0"], [None, 1], ["nan", "x"]):
        with pytest.raises(ParameterError, match="must be two different labels"):
            PrivateLogisticRegression(bounds_X=BOUNDS, classes=classes).fit(X, LABELS)
    with pytest.raises(ParameterError, match="must hold two classes, or `classes` must name them"):
        PrivateLogisticRegression(bounds_X=BOUNDS, classes="infer").fit(X, ["a"] * ROWS)
    with pytest.raises(
        ParameterError, match="must have one column, whose values are counted; got 2"
    ):
        PrivateSelector(candidates=[1, 2]).fit(X)
    with pytest.raises(ParameterTypeError, match="`sensitivity` of PrivateSelector"):
        PrivateSelector(scoring=lambda *_: 1.0).fit(X)


def test_a_selector_names_the_best() -> None:
    frame = pyarrow.table({"low": [0.1] * 40, "high": [0.9] * 40}).to_pandas()
    chosen = PrivateSelector(bounds=(0, 1), epsilon=100).fit(frame)
    assert (chosen.best_, chosen.best_index_) == ("high", 1)
    assert (
        PrivateSelector(candidates=["no", "yes"], epsilon=100).fit([["yes"]] * 9 + [["no"]]).best_
        == "yes"
    )
    scored = PrivateSelector(
        candidates=[0.0, 50.0, 100.0], scoring=_near, sensitivity=1.0, epsilon=100
    ).fit(X)
    assert scored.best_ == 50.0
    assert "at most the stated sensitivity" in str(scored.certificate_)


def test_a_scoring_runs_after_the_charge_and_its_failure_is_one_sentence(
    ledger: em.Ledger,
) -> None:
    sentence = "`scoring` failed on the data, or gave a score that is no finite number."
    for scoring in (_fails, _no_number, lambda *_: float("nan"), lambda *_: float("inf")):
        before = ledger.spent[0]
        selector = PrivateSelector(
            candidates=[1, 2], scoring=scoring, sensitivity=1.0, epsilon="0.1", ledger=ledger
        )
        with pytest.raises(DataError) as caught:
            selector.fit(X)
        assert str(caught.value) == sentence
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert ledger.spent[0] - before == Fraction(1, 10)
    wide = PrivateSelector(candidates=[-1, 1], scoring=_huge, sensitivity=1.0, epsilon=100)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert wide.fit(X).best_ == 1


def _near(rows: Any, _: Any, candidate: float) -> float:
    return float(np.count_nonzero(np.abs(rows[:, 0] - candidate) < 25.0))


def _fails(rows: Any, _: Any, __: Any) -> float:
    raise ValueError(f"could not use {rows[7, 1]}")


def _no_number(rows: Any, _: Any, __: Any) -> Any:
    return [rows[7, 1]]


def _huge(_: Any, __: Any, candidate: float) -> float:
    return 1.7e308 * candidate


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1e6, 1e6 + 1.0), (-1.0, 2.0)])
def test_totals_are_private_over_all_neighbours(
    adjacency: str, bounds: tuple[float, float]
) -> None:
    epsilon = Fraction(3, 2)
    levels = (*bounds, sum(bounds) / 2)
    rows = list(itertools.product(levels, levels))
    totals = LargestTotal(
        columns=(0, 1), bounds=(bounds,) * 2, labels=(0, 1), adjacency=Adjacency(adjacency)
    )

    def law(
        table: list[tuple[float, float]], shrink: int = 1
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        rows = ArrayRows(numbers=np.array(table, dtype=float).reshape(-1, 2))
        moments = rows.aggregate(totals.aggregation(epsilon))
        scoring = totals.scoring(moments.count)
        mechanism = em.ExponentialMechanism(
            loss=em.losses.Scores(totals.scores(moments)),
            domain=em.Candidates([0, 1]),
            sensitivity=scoring.sensitivity / (2 if scoring.monotone else 1) / shrink,
            adjacency=adjacency,
        )
        return np.log(mechanism.law(epsilon=epsilon)[1])

    def largest(shrink: int) -> float:
        if adjacency == "replace":
            pairs = [
                ([common, one], [common, two])
                for common in rows[:3]
                for one in rows
                for two in rows
            ]
        else:
            pairs = [([common], [common, one]) for common in rows for one in rows]
        return max(float(np.abs(law(a, shrink) - law(b, shrink)).max()) for a, b in pairs)

    assert largest(1) <= float(epsilon)
    assert largest(2) > float(epsilon)  # half the sensitivity is too little


def test_default_radius_and_penalty_are_public_and_grow_as_they_should() -> None:
    assert (ridge_radius(None, 11, 1.0), ridge_penalty(None, 11, 1.0, 1.0)) == (1.0, 1.0)
    assert ridge_radius(10, 11, 0.1) == 0.5
    assert ridge_radius(10**9, 11, 1.0) == math.sqrt(10)
    assert ridge_radius(10**9, 2, 1.0) == 1.0
    assert ridge_penalty(10**9, 11, 1.0, 1.0) == 1.0
    assert (
        ridge_penalty(300, 11, 0.1, 0.5)
        > ridge_penalty(300, 11, 1.0, 0.5)
        > ridge_penalty(3000, 11, 1.0, 0.5)
        > 1.0
    )
    hidden = PrivateRidge(bounds_X=BOUNDS, bounds_y=(0, 100), adjacency="add-remove")
    assert [hidden.fit(X[:n], Y[:n]).certificate_.domain["radius"] for n in (3, ROWS)] == [1.0, 1.0]
    model = PrivateRidge(bounds_X=BOUNDS, bounds_y=(0, 100), radius=0.7, penalty=3.0).fit(X, Y)
    assert model.certificate_.domain["radius"] == 0.7
    assert PrivateRidge(bounds_X=BOUNDS, bounds_y=(0, 100)).fit(X, Y).certificate_.domain[
        "radius"
    ] == ridge_radius(ROWS, 3, 1.0)
