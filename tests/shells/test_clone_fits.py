"""Many fits of clones without a ledger are warned of once; what decides it is public."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from expmech.estimators import PrivatePCA, PrivateRidge
from expmech.ledger import Ledger

ROWS = np.linspace(0.0, 1.0, 40)[:, None]
BOUNDS: dict[str, Any] = {"bounds_X": (0, 1), "bounds_y": (0, 1)}


def warned(act: Any) -> list[str]:
    """Return the warnings about clones that an act makes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(each.message) for each in caught if "Clones of this" in str(each.message)]


def test_a_search_without_a_ledger_warns_once_what_its_fits_cost() -> None:
    search = GridSearchCV(PrivateRidge(epsilon=0.5, **BOUNDS), {"penalty": [1.0, 2.0]}, cv=3)
    (text,) = warned(lambda: search.fit(ROWS, ROWS[:, 0]))
    assert "PrivateRidge" in text and "costs epsilon = 0.5" in text and "`ledger=`" in text


def test_cross_validation_of_a_pipeline_warns_too() -> None:
    model = make_pipeline(FunctionTransformer(), PrivateRidge(**BOUNDS))
    assert len(warned(lambda: cross_val_score(model, ROWS, ROWS[:, 0], cv=3))) == 1


def test_components_count_as_fits_too() -> None:
    base = PrivatePCA(bounds=(0, 1), center="bounds")
    rows = np.column_stack([ROWS, ROWS])
    assert len(warned(lambda: [clone(base).fit(rows) for _ in range(3)])) == 1


@pytest.mark.parametrize("kind", ["ledger", "study", "no clones", "a single clone"])
def test_nothing_is_said_where_fits_are_counted_or_cost_nothing(kind: str, tmp_path: Path) -> None:
    own: dict[str, Any] = {}
    if kind == "ledger":
        own["ledger"] = Ledger.create(tmp_path / "l", data_set="t", epsilon=20).path
    if kind == "study":
        own["random_state"] = 1
    base = PrivateRidge(**BOUNDS, **own)
    fits = 1 if kind == "a single clone" else 3

    def act() -> None:
        for _ in range(fits):
            model = base if kind == "no clones" else clone(base)
            model.fit(ROWS, ROWS[:, 0])

    assert warned(act) == []


def test_the_warning_does_not_depend_on_the_rows() -> None:
    texts = []
    for target in (ROWS[:, 0], np.full(40, np.nan)):
        base = PrivateRidge(**BOUNDS)
        texts.append(warned(lambda b=base, y=target: [clone(b).fit(ROWS, y) for _ in range(2)]))
    assert texts[0] == texts[1] and len(texts[0]) == 1
