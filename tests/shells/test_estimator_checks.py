"""The estimators pass scikit-learn's own checks, with bounds and a seed, under both adjacencies."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from expmech.estimators import (
    PrivateLogisticRegression,
    PrivateMean,
    PrivateQuantile,
    PrivateRidge,
    PrivateSelector,
)

ESTIMATORS: list[Any] = [
    PrivateMean(bounds=(-10, 10), random_state=0),
    PrivateMean(bounds=(-10, 10), random_state=0, adjacency="add-remove"),
    PrivateQuantile(bounds=(-10, 10), bits=8, random_state=0),
    PrivateQuantile(
        q=[0.25, 0.75], bounds=(-10, 10), bits=8, random_state=0, adjacency="add-remove"
    ),
    PrivateRidge(bounds_X=(-10, 10), bounds_y=(-10, 10), random_state=0),
    PrivateRidge(epsilon=0.1, bounds_X=(-10, 10), bounds_y=(-10, 10), random_state=0),
    PrivateLogisticRegression(epsilon=0.1, bounds_X=(-10, 10), classes="infer", random_state=0),
    PrivateSelector(bounds=(-10, 10), random_state=0),
]


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_scikit_learn_checks_pass(estimator: Any) -> None:
    results = check_estimator(estimator, on_skip=None, on_fail="raise")
    assert len([result for result in results if result["status"] == "passed"]) >= 35
    assert not [result["check_name"] for result in results if result["status"] == "xfail"]
