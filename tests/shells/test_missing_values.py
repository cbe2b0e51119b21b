"""What a missing value counts as by default: nothing under add-remove, the middle under replace."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.statistics import prepare_release

import expmech as em
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.estimators import (
    PrivateCount,
    PrivateMean,
    PrivateQuantile,
    PrivateSum,
    PrivateVariance,
)
from expmech.ledger.verification import verify_certificate
from expmech.tables.aggregates import HistogramOf, ProductsOf
from expmech.tables.arrays import ArrayRows
from expmech.tables.reading import fill_missing
from expmech.tables.release import release
from expmech.tables.sources import open_source
from expmech.tables.statistics import Mean, SumOf, VarianceOf

SURE = 10**6  # an epsilon at which noise is nothing
NAN = np.nan
TABLE = np.array([[30.0, 5.0], [NAN, 7.0], [50.0, NAN], [40.0, 9.0], [60.0, NAN], [NAN, NAN]])
BOUNDS = ((0.0, 100.0), (2.0, 10.0))  # the second does not hold 0
NAMES = ("age", "visits")
PRESENT = {
    Mean: np.nanmean(TABLE, axis=0),
    SumOf: np.nansum(TABLE, axis=0),
    VarianceOf: np.nanvar(TABLE, axis=0),
}


@pytest.fixture(name="sources")
def _sources(tmp_path: Path) -> list[Any]:
    frame = pd.DataFrame(TABLE, columns=list(NAMES))
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    return [open_source(str(tmp_path / f"people.{kind}")) for kind in ("csv", "parquet")]


@pytest.mark.parametrize("kind", list(PRESENT))
@pytest.mark.parametrize("bounds", [BOUNDS, ((-10.0, 100.0), (0.0, 10.0))])
def test_columns_are_of_the_values_that_are_present(
    sources: list[Any], kind: Any, bounds: Any
) -> None:
    statistic = kind(columns=NAMES, bounds=bounds, adjacency=Adjacency.ADD_REMOVE, named=True)
    for source in sources:
        released = release(source, statistic, epsilon=SURE)
        assert list(released.value.values()) == pytest.approx(PRESENT[kind], rel=2e-3)
        assert all(check.holds for check in verify_certificate(released.certificate))
    own = kind is Mean or (kind is SumOf and bounds == BOUNDS)
    assert released.certificate.domain.get("own_counts", False) is own


def test_estimators_and_functions_have_the_same_default() -> None:
    given: dict[str, Any] = {"epsilon": SURE, "bounds": BOUNDS, "adjacency": "add-remove"}
    assert PrivateMean(**given).fit(TABLE).mean_ == pytest.approx(PRESENT[Mean], rel=1e-3)
    assert PrivateSum(**given).fit(TABLE).sum_ == pytest.approx(PRESENT[SumOf], rel=1e-3)
    variances = PrivateVariance(**given).fit(TABLE).variance_
    assert variances == pytest.approx(PRESENT[VarianceOf], rel=2e-3)
    medians = PrivateQuantile(**given, step=1).fit(TABLE).quantiles_
    assert 40 <= medians[0] <= 50 and 5 <= medians[1] <= 9
    column, narrow = TABLE[:, 0], (0, 100)
    one = em.mean(column, epsilon=SURE, bounds=narrow, adjacency="add-remove")
    assert one.value == pytest.approx(45.0, rel=1e-3)


def test_under_replace_the_middle_of_the_bounds_is_filled_in() -> None:
    filled = np.where(np.isnan(TABLE), [50.0, 6.0], TABLE).mean(axis=0)
    assert PrivateMean(epsilon=SURE, bounds=BOUNDS).fit(TABLE).mean_ == pytest.approx(
        filled, rel=1e-3
    )
    value = em.mean(TABLE[:, 0], epsilon=SURE, bounds=(0, 100)).value
    assert value == pytest.approx(filled[0], rel=1e-3)


@pytest.mark.parametrize("rule", ["skip", "drop"])
def test_nothing_is_left_out_where_the_number_of_rows_is_public(rule: str) -> None:
    with pytest.raises(ParameterError, match=f"{rule!r} under 'replace'"):
        PrivateMean(bounds=BOUNDS, missing=rule).fit(TABLE)


def test_rows_can_still_be_left_out_whole() -> None:
    given: dict[str, Any] = {"epsilon": SURE, "bounds": BOUNDS, "adjacency": "add-remove"}
    means = PrivateMean(**given, missing="drop").fit(TABLE)
    assert means.mean_ == pytest.approx([35.0, 7.0], rel=1e-3)
    assert means.certificate_.sampler["sums"] == "one, and the count"


def test_a_value_cannot_be_skipped_where_whole_rows_are_needed() -> None:
    wide: dict[str, Any] = {"columns": (0, 1), "bounds": BOUNDS, "missing": "skip"}
    with pytest.raises(ParameterError, match="whole rows"):
        ProductsOf(**wide, center=(0.0, 0.0), scale=(1.0, 1.0), row_norm=None)
    with pytest.raises(ParameterError, match="whole rows"):
        fill_missing(TABLE, BOUNDS, "skip")
    cells = HistogramOf(column=0, bounds=BOUNDS[0], bits=3, missing="skip")
    assert ArrayRows(numbers=TABLE).aggregate(cells).sum() == 4


def test_a_certificate_that_hides_its_counts_is_found_out() -> None:
    given: dict[str, Any] = {"epsilon": 1, "bounds": BOUNDS, "adjacency": "add-remove"}
    stated = PrivateMean(**given).fit(TABLE).certificate_
    assert stated.sampler["sums"] == "one, and a count of its own"
    text = stated.to_json().replace('"own_counts": true', '"own_counts": false')
    assert text != stated.to_json()
    changed = em.Certificate.from_json(text)
    assert not all(check.holds for check in verify_certificate(changed))


DAYS = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]")
TIMES: list[Any] = [
    DAYS,
    DAYS - DAYS[0],
    pd.Series(DAYS),
    pd.Series(DAYS).dt.tz_localize("UTC"),
    pl.Series(DAYS),
    pl.Series(DAYS).cast(pl.Date),
]


@pytest.mark.parametrize("times", TIMES)
def test_times_are_refused_as_numbers_by_their_declared_type(times: Any, tmp_path: Path) -> None:
    ledger = em.Ledger.create(tmp_path / "days.ledger", data_set="days", epsilon=1)
    given: dict[str, Any] = {"epsilon": 1, "bounds": (0, 100), "ledger": ledger}
    for function in (em.mean, em.sum, em.median, em.quantiles):
        with pytest.raises(em.ExpmechError, match="declared as") as caught:
            function(times, **given)
        assert "2020" not in str(caught.value)
    table = times.to_frame() if hasattr(times, "to_frame") else times.reshape(-1, 1)
    for estimator in (PrivateMean(**given), PrivateQuantile(**given)):
        with pytest.raises(em.ExpmechError, match="declared as"):
            estimator.fit(table)
    assert ledger.left[0] == 1
    assert em.count(times, epsilon=SURE).value == 2


def test_a_condition_on_another_column_may_stand_beside_times() -> None:
    frame = pd.DataFrame({"day": DAYS, "age": [30, 70]})
    assert PrivateCount(where="age > 50", epsilon=SURE).fit(frame).count_ == 1


def test_objects_and_text_are_read_value_by_value() -> None:
    mixed = np.array([DAYS[0], "7", 9, "Bern"], dtype=object)
    given: dict[str, Any] = {"epsilon": SURE, "bounds": (0, 10), "adjacency": "add-remove"}
    assert em.mean(mixed, **given).value == pytest.approx(8.0, rel=1e-3)


def test_what_is_said_of_an_interval_names_the_rule_for_missing_values() -> None:
    common: dict[str, Any] = {"columns": NAMES, "bounds": BOUNDS}
    for adjacency, sentence in (
        (Adjacency.REPLACE, "counts as the middle of its bounds"),
        (Adjacency.ADD_REMOVE, "is left out of its column"),
    ):
        mean = Mean(**common, adjacency=adjacency)
        prepared = prepare_release(mean, epsilon=Fraction(1), count=5)
        assert sentence in mean.missing_statement in prepared.nearness(has_interval=True)
