"""PrivatePCA as scikit-learn meets it: checks, budget, centers, empty tables."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.utils.estimator_checks import check_estimator

from expmech.directions.pca import MEAN_SHARE, make_standard, split_epsilon
from expmech.errors import ParameterError
from expmech.estimators.pca import PrivatePCA
from expmech.ledger import Ledger
from expmech.ledger.ledger import LedgerError


def table(n: int = 3000, seed: int = 0) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    return np.asarray(generator.normal(size=(n, 4)) * [3.0, 1.0, 0.3, 0.3] + [1.0, 0.0, 0.0, 2.0])


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_scikit_learn_checks_pass(adjacency: str) -> None:
    model = PrivatePCA(bounds=(-10, 10), epsilon=5.0, adjacency=adjacency, random_state=0)
    results = check_estimator(model, on_skip=None, on_fail="raise")
    assert len([result for result in results if result["status"] == "passed"]) >= 35


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_components_and_variances_are_found_with_many_rows(adjacency: str) -> None:
    model = PrivatePCA(
        2, epsilon=20.0, bounds=(-15, 15), row_norm=0.6, adjacency=adjacency, random_state=1
    ).fit(table())
    assert abs(model.components_[0, 0]) > 0.95 and abs(model.components_[1, 1]) > 0.8
    np.testing.assert_allclose(model.mean_, [1.0, 0.0, 0.0, 2.0], atol=0.3)
    first = 9.0 / 15.0**2
    assert model.explained_variance_[0] == pytest.approx(first, rel=0.25)
    assert 0.7 < model.explained_variance_ratio_[0] <= 1.0
    rows = model.inverse_transform(model.transform(table()))
    assert np.abs(rows[:, 0] - table()[:, 0]).mean() < 1.0


def test_both_draws_are_charged_before_the_first(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon="1", data_set="a table")
    model = PrivatePCA(epsilon="0.8", bounds=(-15, 15), accountant=ledger).fit(table(50))
    assert [certificate.epsilon for certificate in model.certificates_] == [0.16, 0.64]
    with pytest.raises(LedgerError):
        PrivatePCA(epsilon="0.8", bounds=(-15, 15), accountant=ledger).fit(table(50))


def test_an_empty_table_is_like_any_other_under_add_remove() -> None:
    models = [
        PrivatePCA(epsilon=1.0, bounds=(-15, 15), adjacency="add-remove").fit(table(n))
        for n in (0, 40)
    ]
    assert models[0].certificates_ == models[1].certificates_
    assert models[0].components_.shape == (1, 4)


def test_bad_parameters_are_refused() -> None:
    for change in (
        {"n_components": 5},
        {"n_components": 0},
        {"timing": "constant"},
        {"center": [0.0]},
        {"scale": [0.0] * 4},
        {"row_norm": -1.0},
        {"bounds": None},
    ):
        options: dict[str, Any] = {"bounds": (-15, 15), "random_state": 0} | change
        with pytest.raises(ParameterError):
            PrivatePCA(**options).fit(table(10))


def test_shares_of_epsilon_add_up() -> None:
    split = split_epsilon(Fraction(7, 3), private_mean=True)
    assert split.mean == MEAN_SHARE * Fraction(7, 3)
    assert split.mean + split.components == Fraction(7, 3)
    assert split_epsilon(Fraction(1), private_mean=False).mean == 0


def test_rows_by_public_numbers() -> None:
    low, high = np.array([0.0, 0.0]), np.array([10.0, 4.0])
    standard = make_standard(
        lower=low, upper=high, center=[5.0, 2.0], scale=None, row_norm=None, owner="test"
    )
    np.testing.assert_allclose(standard.rows(np.array([[99.0, 2.0]])), [[1.0, 0.0]])
    assert (standard.rows(np.array([[5.0, 2.0]])) == 0.0).all()
    longer = make_standard(
        lower=low, upper=high, center=[5.0, 2.0], scale=[1.0, 1.0], row_norm=10.0, owner="test"
    )
    np.testing.assert_allclose(longer.rows(np.array([[8.0, 3.0]])), [[0.3, 0.1]])
