"""Releases in one line, of arrays, series, frames and files: the same road, the same numbers."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import expmech as em
from expmech.certificates.accuracy import Accuracy
from expmech.certificates.mechanism import Release
from expmech.core.errors import DataError
from expmech.estimators import PrivateHistogram, PrivateSelector
from expmech.ledger import LedgerError
from expmech.ledger.verification import verify_certificate, verify_value
from expmech.tables.sources import open_source

SURE = 10**6  # an epsilon at which noise is nothing
AGES = [31.0, 48.0, 52.0, 77.0, 64.0, 23.0, 40.0, 35.0]
NUMBERS: list[tuple[Callable[..., Any], float]] = [
    (em.mean, float(np.mean(AGES))),
    (em.sum, float(np.sum(AGES))),
    (em.variance, float(np.var(AGES))),
]


@pytest.fixture(name="forms")
def _forms(tmp_path: Path) -> dict[str, tuple[Any, str | None]]:
    frame = pd.DataFrame({"age": AGES, "town": ["Bern", "Chur"] * 4})
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    return {
        "list": (AGES, None),
        "array": (np.array(AGES), None),
        "pandas series": (frame["age"], None),
        "polars series": (pl.Series("age", AGES), None),
        "pandas frame": (frame, "age"),
        "polars frame": (pl.DataFrame({"age": AGES}), "age"),
        "csv": (tmp_path / "people.csv", "age"),
        "parquet": (str(tmp_path / "people.parquet"), "age"),
        "source": (open_source(str(tmp_path / "people.csv")), "age"),
    }


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_every_form_of_data_gives_the_same_numbers(forms: Any, adjacency: str) -> None:
    given: dict[str, Any] = {"epsilon": SURE, "bounds": (0, 100), "adjacency": adjacency}
    for form, (data, column) in forms.items():
        for function, truth in NUMBERS:
            release = function(data, column=column, **given)
            assert release.value == pytest.approx(truth, rel=1e-3), (form, function)
            near = release.accuracy
            assert near.lower <= release.value <= near.upper, (form, function)
        middle = em.median(data, column=column, step=1, **given)
        assert 40 <= middle.value <= 48, form
        levels = em.quantiles(data, [0.25, 0.75], column=column, step=1, **given).value
        assert list(levels) == ["0.25", "0.75"] and 31 <= levels["0.25"] <= 35, form
        cells = em.histogram(
            data, column=column, edges=[0, 40, 100], epsilon=SURE, adjacency=adjacency
        )
        assert cells.value == {"[0, 40)": 3, "[40, 100]": 5, "other": 0}, form


def test_counts_are_of_rows_of_booleans_or_of_a_condition(forms: Any) -> None:
    ages = np.array(AGES)
    frame, file = forms["pandas frame"][0], forms["csv"][0]
    for truths in (ages >= 50, pd.Series(ages) >= 50, pl.Series(AGES) >= 50):
        release = em.count(truths, epsilon=SURE)
        assert (release.value, release.certificate.adjacency) == (3, "replace")
    nullable = pd.Series([True, None, False], dtype="boolean")
    assert em.count(nullable, epsilon=SURE, adjacency="add-remove").value == 1
    for rows in (ages, frame, forms["polars frame"][0], file):
        release = em.count(rows, epsilon=SURE)
        assert (release.value, release.certificate.adjacency) == (8, "add-remove")
    assert em.count(file, epsilon=SURE, where="age >= 50 and town = 'Bern'").value == 2
    towns = em.histogram(frame, column="town", epsilon=SURE, categories=["Bern", "Genf"])
    assert towns.value == {"Bern": 4, "Genf": 0, "other": 4}


@pytest.mark.parametrize("function", [em.mean, em.sum, em.variance, em.median, em.quantiles])
def test_certificate_and_value_are_verified(function: Any) -> None:
    release = function(pd.Series(AGES, name="age"), epsilon=1, bounds=(0, 100))
    assert release.certificate.statistic.endswith(" of age")
    assert release.certificate.kind == "release"
    assert all(check.holds for check in verify_certificate(release.certificate))
    assert verify_value(release.certificate, release.value).holds


def test_a_ledger_is_charged_and_refuses_before_a_value_is_read(tmp_path: Path) -> None:
    class Series:
        shape, dtype, name = (3,), np.dtype(float), "age"

        def to_numpy(self) -> Any:
            raise RuntimeError("A value is read.")

    ledger = em.Ledger.create(tmp_path / "people.ledger", data_set="people", epsilon=1)
    em.mean(AGES, epsilon="0.75", bounds=(0, 100), ledger=ledger)
    assert ledger.left[0] == 0.25
    with pytest.raises(LedgerError, match="Nothing was charged"):
        em.mean(Series(), epsilon=0.5, bounds=(0, 100), ledger=str(ledger.path))
    assert ledger.left[0] == 0.25
    with pytest.raises(RuntimeError, match="A value is read"):
        em.mean(Series(), epsilon=0.25, bounds=(0, 100), ledger=ledger)
    assert ledger.left[0] == 0


def test_a_ledger_of_another_file_is_refused(forms: Any, tmp_path: Path) -> None:
    ledger = em.Ledger.create(tmp_path / "other.ledger", data_set="something else", epsilon=1)
    with pytest.raises(LedgerError, match="another data set"):
        em.mean(forms["csv"][0], column="age", epsilon=0.5, bounds=(0, 100), ledger=ledger)
    assert ledger.left[0] == 1


def test_a_seed_makes_a_study() -> None:
    given: dict[str, Any] = {"epsilon": 1, "bounds": (0, 100), "random_state": 3}
    first, again = em.mean(AGES, **given), em.mean(AGES, **given)
    assert first.value == again.value and first.certificate.kind == "study, not a release"
    assert "kind          study, not a release" in str(first)


def test_the_text_of_a_release_has_value_interval_and_guarantee() -> None:
    given: dict[str, Any] = {"epsilon": 1, "bounds": (0, 100), "random_state": 1}
    certificate = em.mean(pd.Series(AGES, name="age"), **given).certificate

    def text(value: Any, lower: Any, upper: Any) -> str:
        near = Accuracy(lower=lower, upper=upper)
        title, line, *_ = str(
            Release(value=value, certificate=certificate, accuracy=near)
        ).splitlines()
        assert title == "Mean of age"
        return line.strip()

    assert text(46.2468, 45.8641, 46.6202) == "46.25 (95% interval 45.86 to 46.63)"
    assert text(52310.4, 49000.2, 53999.9) == "52,310 (95% interval 49,000 to 54,000)"
    assert text(3, 0, math.inf) == "3 (95% interval 0 to inf)"
    cells = str(em.histogram(AGES, epsilon=SURE, edges=[0, 40, 100])).splitlines()
    assert cells[:2] == ["Histogram of x", "  [0, 40): 3 (95% interval 3 to 3)"]
    assert "[" not in str(em.median(AGES, epsilon=1, bounds=(0, 100))).splitlines()[0]


FRAME = pd.DataFrame({"age": AGES})
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: em.mean(AGES, epsilon=1, bounds=None), "`bounds` of mean must be a pair"),
    (lambda: em.mean(AGES, epsilon=1, bounds=(3, 2)), "LOWER < UPPER"),
    (lambda: em.mean(AGES, epsilon=0, bounds=(0, 1)), "`epsilon` of mean"),
    (lambda: em.mean(AGES, epsilon=1, bounds=(0, 1), column="age"), "is for frames"),
    (lambda: em.mean(FRAME, epsilon=1, bounds=(0, 1)), "must name a column of the frame"),
    (lambda: em.mean(FRAME, epsilon=1, bounds=(0, 1), column="aeg"), "Did you mean 'age'"),
    (lambda: em.mean(FRAME.to_numpy(), epsilon=1, bounds=(0, 1)), "must be one column"),
    (lambda: em.mean(3, epsilon=1, bounds=(0, 1)), "must be an array"),
    (lambda: em.mean([], epsilon=1, bounds=(0, 1)), "no rows"),
    (lambda: em.mean(AGES, epsilon=1, bounds=(0, 1), missing="drop"), "'drop' under 'replace'"),
    (lambda: em.mean(AGES, epsilon=1, bounds=(0, 1), adjacency="x"), "adjacency"),
    (lambda: em.mean(AGES, epsilon=1, bounds=(0, 1), random_state=-1), "`random_state` of mean"),
    (
        lambda: em.mean(AGES, epsilon=1, bounds=(0, 1), random_state=1, ledger="l"),
        "`ledger` of mean must be None",
    ),
    (lambda: em.quantiles(AGES, 0.5, epsilon=1, bounds=(0, 1)), "`q` of quantiles"),
    (lambda: em.quantiles(AGES, [1.5], epsilon=1, bounds=(0, 1)), "strictly between 0 and 1"),
    (lambda: em.histogram(AGES, epsilon=1), "either `edges` or `categories`"),
    (lambda: em.histogram(AGES, epsilon=1, edges=["a", "b"]), "`edges` of histogram"),
    (lambda: em.mean(AGES, epsilon=1, bounds=(0, 10**400)), "`bounds` of mean must be numbers bel"),
    (lambda: em.mean(AGES, epsilon=1, bounds=(0, 1), ledger=5), "`ledger` must be a Ledger"),
    (lambda: em.median(AGES, epsilon=1, bounds=(0, 9), step=-2.5), r"few digits; got -2\.5\."),
    (lambda: em.histogram(AGES, epsilon=1, categories=["a", "a"]), "`categories` must be at least"),
    (lambda: em.count(AGES, epsilon=1), "got a list"),
    (lambda: em.count(FRAME, epsilon=1, where="age > 3"), "as booleans"),
    (lambda: em.count(FRAME, epsilon=1, adjacency="replace"), "public under 'replace'"),
]


@pytest.mark.parametrize(("call", "sentence"), WRONG)
def test_wrong_arguments_are_refused_in_a_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(em.ExpmechError, match=sentence):
        call()


def test_a_file_needs_a_column_and_near_names_are_offered(forms: Any) -> None:
    with pytest.raises(em.ParameterError, match="`column` of mean must name a column"):
        em.mean(forms["csv"][0], epsilon=1, bounds=(0, 100))
    with pytest.raises(DataError, match="Did you mean 'age'"):
        em.mean(forms["parquet"][0], column="aged", epsilon=1, bounds=(0, 100))


def test_functions_called_like_builtins_shadow_none_of_them_inside() -> None:
    """Within the module of the functions, the builtins of the same names are not called."""
    functions = Path(em.__file__).parent / "tables" / "functions.py"
    same = {name for name in em.__all__ if hasattr(builtins, name)} - {"__doc__", "__name__"}
    assert same == {"sum"}
    for path in (functions, Path(em.__file__)):
        calls = [
            node.func.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert not same & set(calls), path


def test_a_text_is_no_list_of_its_letters_and_no_bound() -> None:
    answers = ["yes", "no"] * 9
    for refused in (
        lambda: em.histogram(answers, epsilon=1, categories="yes,no"),
        lambda: PrivateHistogram(categories="yes,no").fit([[answer] for answer in answers]),
        lambda: PrivateSelector(candidates="yes,no").fit([[answer] for answer in answers]),
    ):
        with pytest.raises(em.ExpmechError, match=r"must be a list of values, such as \['yes'"):
            refused()
    for bounds in (("0", "100"), ("01.01.2020", "31.12.2020"), ("0 %", "100 %")):
        with pytest.raises(em.ExpmechError, match="must be numbers, or dates such as"):
            em.mean(AGES, epsilon=1, bounds=bounds)


def test_text_without_quotes_in_a_condition_is_told_of_them(forms: Any) -> None:
    for form in ("csv", "parquet"):
        for condition in ("town = Bern", 'town = "Bern"'):
            with pytest.raises(DataError, match="'Bern' in single quotes"):
                em.count(forms[form][0], epsilon=1, where=condition)
    with pytest.raises(DataError) as caught:
        em.mean(forms["csv"][0], column="agee", epsilon=1, bounds=(0, 1))
    assert "single quotes" not in str(caught.value)
