"""Sums, variances, counts and histograms in the style of scikit-learn."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.base import clone

from expmech.core.errors import ParameterError
from expmech.estimators import (
    PrivateCount,
    PrivateHistogram,
    PrivateMean,
    PrivateSum,
    PrivateVariance,
)
from expmech.ledger import Ledger
from expmech.ledger.verification import verify_certificate
from expmech.tables.keys import tally_values

SURE = 10_000.0


def frame() -> pandas.DataFrame:
    rng = np.random.default_rng(2)
    ages = rng.integers(18, 90, 300).astype(float)
    ages[::10] = np.nan
    return pandas.DataFrame({"age": ages, "income": rng.uniform(0.0, 9000.0, 300)})


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_they_are_near_the_truth_where_there_is_hardly_noise(adjacency: str) -> None:
    table = frame()
    incomes, ages = table["income"].to_numpy(), table["age"].to_numpy()
    common: dict[str, Any] = {"epsilon": SURE, "adjacency": adjacency}
    bounds = {"age": (0, 120), "income": (0, 9000)}
    total = PrivateSum(bounds=bounds, **common).fit(table)
    assert total.sum_[1] == pytest.approx(incomes.sum(), rel=1e-3)
    variance = PrivateVariance(bounds=bounds, **common).fit(table)
    assert variance.variance_[1] == pytest.approx(incomes.var(), rel=1e-3)
    for near, value in ((total.accuracy_, total.sum_), (variance.accuracy_, variance.variance_)):
        assert near is not None
        assert np.all(near.lower <= value) and np.all(value <= near.upper)
    count = PrivateCount(where="age >= 65 or age is missing", **common).fit(table)
    assert count.count_ == int((ages >= 65).sum() + np.isnan(ages).sum())
    assert count.accuracy_ is not None
    assert count.accuracy_.lower <= count.count_ <= count.accuracy_.upper
    cells = PrivateHistogram(edges={"age": [0, 40, 200], "income": [0, 5000]}, **common).fit(table)
    young, none = int((ages < 40).sum()), int(np.isnan(ages).sum())
    assert [one.tolist() for one in cells.counts_] == [
        [young, 300 - young - none, none],
        [int((incomes <= 5000).sum()), int((incomes > 5000).sum())],
    ]
    assert cells.cells_[0] == ("[0, 40)", "[40, 200]", "other")
    assert cells.certificates_[1].epsilon == SURE / 2
    assert "one of 2 releases of this fit" in " ".join(cells.certificate_.assumptions)


def test_numbers_of_a_column_are_tallied_in_the_order_of_the_candidates() -> None:
    """Of numbers in any order, spelt or not, and of what spells none; ties count for each."""
    column = np.array([3.0, 7.0, 3.0, np.nan, -0.0, np.inf, 2.0**70])
    listed = [7, "3", None, 0, 3.0, "blue", 2**70, 10**400, True]
    assert tally_values(column, listed) == (1, 2, 0, 1, 2, 0, 1, 1, 0)
    assert tally_values(column, []) == ()


def test_categories_of_a_column_of_text_are_counted() -> None:
    words = [["yes"], ["no"], ["yes"], [None], ["perhaps"]]
    found = PrivateHistogram(categories=["yes", "no"], epsilon=SURE).fit(words)
    assert found.counts_[0].tolist() == [2, 1, 2]


@pytest.mark.parametrize("listed", [[1, 0], [True, False], [1.0, 0.0], ["1", "0"]])
def test_cells_are_named_as_their_own_list_is_written(listed: list[Any]) -> None:
    """Equal lists that are written otherwise, as 1 and True, are not taken for one another."""
    found = PrivateHistogram(categories=listed, epsilon=SURE).fit([[1], [0], [1]])
    assert found.cells_ == [(*map(str, listed), "other")]
    assert found.counts_[0].tolist() == [2, 1, 0]


def test_all_rows_are_counted_under_add_remove_only() -> None:
    table = np.ones((50, 1))
    assert PrivateCount(epsilon=SURE, adjacency="add-remove").fit(table).count_ == 50
    with pytest.raises(ParameterError, match="public under 'replace'"):
        PrivateCount(epsilon=SURE).fit(table)


def test_a_fit_is_charged_once_and_its_certificate_stands(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", data_set="trial", epsilon="4")
    fitted = [
        PrivateSum(bounds=(0, 9000), ledger=ledger),
        PrivateVariance(bounds=(0, 9000), ledger=ledger),
        PrivateCount(where="income > 10", ledger=ledger),
        PrivateHistogram(edges=[0, 10, 100], ledger=ledger),
    ]
    for one in fitted:
        again = clone(one).fit(frame())
        assert all(check.holds for check in verify_certificate(again.certificate_)), one
    assert ledger.spent[0] == Fraction(4)
    assert len(ledger.history()) == 5  # the histogram has two columns


WRONG = [
    (PrivateCount(where="weight > 3"), "must name columns of X; got 'weight'"),
    (PrivateCount(where="age = 'old'"), "must compare with numbers"),
    (PrivateCount(where=3), "must be text or None"),
    (PrivateCount(where="age >"), "must be a condition on one row"),
    (PrivateHistogram(), "must be rising numbers"),
    (PrivateHistogram(edges=[3, 2]), "rising"),
    (PrivateHistogram(edges=[[0, 1]]), "one for each of the 2"),
    (PrivateHistogram(edges=["a", "b"]), "must be rising numbers"),
    (PrivateHistogram(categories=["a"]), "an X of one column"),
    (PrivateSum(), "got None"),
    (PrivateVariance(bounds=(0, 1), epsilon=-1), "epsilon"),
]


@pytest.mark.parametrize(("estimator", "told"), WRONG, ids=lambda one: str(one)[:40])
def test_what_is_wrong_is_told_before_anything_is_charged(
    estimator: Any, told: str, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "ledger", data_set="trial", epsilon="4")
    with pytest.raises((ValueError, TypeError), match=told):
        estimator.set_params(ledger=ledger).fit(frame())
    assert ledger.spent[0] == 0


def test_a_mean_takes_its_parameters_as_before() -> None:
    mean = PrivateMean(epsilon=2, bounds=(0, 1), timing="constant", budget_seconds=3)
    assert clone(mean).get_params() == mean.get_params()
    assert sorted(mean.get_params()) == [
        "adjacency",
        "bounds",
        "bounds_share",
        "budget_seconds",
        "epsilon",
        "ledger",
        "missing",
        "random_state",
        "sampler",
        "timing",
    ]
