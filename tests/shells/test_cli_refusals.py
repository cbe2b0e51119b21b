"""The command line where a slip would cost most.

Nothing is released that was not asked for, and nothing charged is lost.
"""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from expmech.cli import release
from expmech.cli.main import app
from expmech.exponential.samplers import Sampler
from expmech.ledger import Ledger

MEAN = ("mean", "--column", "age", "--bounds", "0,100")
QUANTILE = ("quantile", "--column", "age", "--bounds", "0,100", "--bits", "4")
SELECT = ("select", "--column", "city", "--candidates", "a,b")
LOGISTIC = ("logistic", "--column", "age", "--bounds", "0,100", "--target", "city")
LINEAR = ("linear", "--column", "age", "--target", "city")
LIKELIHOOD = ("--positive", "a", "--law", "log-likelihood", "--radius", "1")


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    path.write_text("age,city\n" + "".join(f"{20 + k},{'ab'[k % 2]}\n" for k in range(40)))
    Ledger.create(tmp_path / "survey.ledger", data_set=str(path), epsilon="10")
    return path


def run(survey: Path, statistic: tuple[str, ...], *more: object, epsilon: str = "0.5") -> Result:
    ledger = survey.with_suffix(".ledger")
    arguments = [
        "release",
        statistic[0],
        survey,
        *statistic[1:],
        "--epsilon",
        epsilon,
        "--ledger",
        ledger,
        *more,
    ]
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def spent(survey: Path) -> Fraction:
    return Ledger(survey.with_suffix(".ledger")).spent[0]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--by", "city", "--groups", ","), "must name at least one group"),
        (("--by", "city", "--groups", ""), "must name at least one group"),
        (("--by", "", "--groups", "a"), "There is no column ''"),
        (("--by", "city"), "must list the groups"),
        (("--groups", "a"), "belong together"),
        (("--sampler", ""), "`--sampler` of release must be one of"),
        (("--sampler", "metropolis"), "Did you mean 'Metropolis'?"),
        (("--adjacency", "add-remov"), "Did you mean 'add-remove'?"),
        (("--missing", "eror"), "Did you mean 'error'?"),
        (("--timing", "Constant"), "Did you mean 'constant'?"),
        (("--output", "/proc/expmech.json"), "must be a file that can be written"),
    ],
)
def test_what_was_not_meant_is_refused_and_not_charged(
    more: tuple[str, ...], message: str, survey: Path
) -> None:
    if {"--by", "--groups"} & set(more):
        ledger = survey.with_name("groups.ledger")
        Ledger.create(ledger, data_set=str(survey), epsilon="10", adjacency="add-remove")
        more = (*more, "--ledger", str(ledger))
    result = run(survey, MEAN, *more)
    assert result.exit_code == 1 and result.stdout == ""
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert spent(survey) == 0


@pytest.mark.parametrize(
    ("statistic", "message"),
    [
        (("count", "--by", "city", "--universe", "text"), "must have two keys or more"),
        (("count", "--by", "city", "--universe", ""), "`universe` must be text:20"),
        (("count", "--by", "city", "--delta", "2"), "must be below 1; got 2."),
        ((*QUANTILE, "--step", "1"), "`--bits` must be left out where answers are multiples"),
        (
            ("median", "--column", "age", "--bounds", "2020-01-01,2021-01-01", "--bits", "4"),
            "answers between dates are whole days",
        ),
        ((*LOGISTIC, "--positive", " "), "counts as missing"),
        ((*MEAN, "--delta", "1e-6"), "`delta` of a mean need 'replace' adjacency"),
        ((*MEAN, "--sampler", "auto"), "which takes neither. Leave them out."),
        ((*LOGISTIC, "--positive", "a", "--classes", "a,b"), "and not both"),
        (
            (*LINEAR, "--bounds", "0,100", "--target-bounds", "0;9"),
            "`--target-bounds` must be two numbers LOWER,UPPER; got '0;9'.\n",
        ),
        (("missing", "--column", "town"), "If it is text of a condition,"),
    ],
)
def test_options_that_ask_for_nothing_are_refused_and_not_charged(
    statistic: tuple[str, ...], message: str, survey: Path
) -> None:
    ledger = survey.with_name("groups.ledger")
    Ledger.create(ledger, data_set=str(survey), epsilon="10", adjacency="add-remove")
    result = run(survey, statistic, "--ledger", ledger)
    assert result.exit_code == 1 and result.stdout == ""
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert Ledger(ledger).spent[0] == 0


def test_bounds_of_features_may_be_given_once_for_all(survey: Path) -> None:
    survey.write_text("age,size,city\n" + "1,2,3\n" * 40)
    columns = ("--column", "age", "--column", "size", "--target", "city", "--target-bounds", "0,9")
    common = ("--adjacency", "replace", "--json")
    once = run(survey, ("linear", *columns, "--bounds", "0,100"), *common)
    twice = run(survey, ("linear", *columns, "--bounds", "0,100", "--bounds", "0,100"), *common)
    assert once.exit_code == twice.exit_code == 0, once.stderr
    stated = [json.loads(each.stdout)["certificate"]["domain"] for each in (once, twice)]
    assert stated[0] == stated[1]


def test_a_short_list_has_as_many_places_as_values(survey: Path) -> None:
    top = ("top", "--column", "city", "--candidates", "a,b,c", "--adjacency", "replace", "--json")
    result = run(survey, top)
    assert result.exit_code == 0, result.stderr
    assert sorted(json.loads(result.stdout)["value"]) == ["a", "b", "c"]


@pytest.mark.parametrize("epsilon", ["1e-9", "1e300"])
def test_a_budget_out_of_range_is_quoted_as_it_was_written(epsilon: str, survey: Path) -> None:
    planned = CliRunner().invoke(app, ["plan", "mean", "--bounds", "0,1", "--epsilon", epsilon])
    for result in (run(survey, MEAN, epsilon=epsilon), planned):
        assert result.exit_code == 1 and f"from 2^-20 to 2^20; got {epsilon}." in result.stderr


def test_a_refused_release_leaves_no_output_file(survey: Path) -> None:
    file = survey.parent / "mean.json"
    assert run(survey, MEAN, "--output", file, epsilon="11").exit_code == 3
    assert run(survey, MEAN, "--output", file, "--timing", "fast").exit_code == 1
    assert not file.exists()


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_value_that_was_charged_is_shown_even_if_it_cannot_be_written(
    survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def full(path: Path | None) -> Iterator[FullDisk]:
        yield FullDisk()

    monkeypatch.setattr(release, "new_file", full)
    result = run(survey, MEAN, "--json")
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert 0.0 <= json.loads(result.stdout)["value"] <= 100.0
    assert spent(survey) == Fraction(1, 2)


def test_a_model_of_odds_needs_to_be_told_of_what(survey: Path) -> None:
    result = run(survey, LOGISTIC)
    assert result.exit_code == 1 and "`--positive` or `--classes` must be given" in result.stderr
    assert spent(survey) == 0


@pytest.mark.parametrize(
    "statistic",
    [MEAN, (*MEAN, "--sampler", "Metropolis"), QUANTILE, SELECT, (*LOGISTIC, *LIKELIHOOD)],
)
def test_constant_time_is_kept(statistic: tuple[str, ...], survey: Path) -> None:
    result = run(survey, statistic, "--timing", "constant", "--json", epsilon="0.1")
    assert result.exit_code == 0, result.stderr
    timing = json.loads(result.stdout)["certificate"]["timing"]
    assert timing == ("data-independent" if statistic is MEAN else "constant")
    assert "the running time depends" not in result.stderr


def test_constant_time_that_nothing_affordable_keeps_is_refused(survey: Path) -> None:
    result = run(survey, (*LOGISTIC, *LIKELIHOOD), "--timing", "constant", epsilon="5")
    assert result.exit_code == 1 and "found no exact sampler" in result.stderr
    assert spent(survey) == 0


def test_a_sampler_of_another_timing_is_refused(survey: Path) -> None:
    result = run(survey, QUANTILE, "--timing", "constant", "--sampler", "Rejection")
    assert result.exit_code == 1 and "whose running time depends on the data" in result.stderr
    assert spent(survey) == 0


def test_a_selection_is_planned_as_it_is_released(survey: Path) -> None:
    planned = [
        "plan",
        "select",
        "--candidates",
        "2",
        "--adjacency",
        "replace",
        "--rows",
        "40",
        "--epsilon",
        "0.5",
        "--timing",
        "constant",
        "--json",
    ]
    plan = json.loads(CliRunner().invoke(app, planned).stdout)
    record = json.loads(run(survey, SELECT, "--timing", "constant", "--json").stdout)
    assert plan["chosen"].startswith(record["certificate"]["sampler"]["sampler"])
    applies = [
        option["name"]
        for option in plan["options"]
        if option["applies"] and option["timing"] == "constant"
    ]
    assert plan["chosen"] in applies


def test_a_named_sampler_is_made_so_that_its_running_time_is_checked() -> None:
    assert release.choose(None, None) == release.choose("auto", None) == "auto"
    for name in ("Tabulated", "Metropolis"):
        assert isinstance(release.choose(name, None), Sampler)
