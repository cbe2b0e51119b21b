"""The command line.

A release from start to end, every mistake in one message, and nothing charged or written by it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.shell import read, run

from expmech.certificates.mechanism import PreparedDraw
from expmech.ledger import Ledger


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    generator = np.random.default_rng(2)
    path = tmp_path / "survey.csv"
    regions = generator.choice(["north", "south"], 400)
    lines = [
        f"{age},{region},note"
        for age, region in zip(generator.integers(20, 80, 400), regions, strict=True)
    ]
    path.write_text("Age,region,remark\n" + "\n".join(lines) + "\n")
    return path


def make_ledger(survey: Path, *more: str) -> Path:
    path = survey.parent / "survey.ledger"
    budget = ("--epsilon", "1", "--delta", "1e-6", "--composition", "basic", "--json")
    shown = read(run("budget", "init", path, survey, *budget, *more))
    assert shown["left"] == {"epsilon": "1", "delta": "0.000001"}
    return path


@pytest.fixture
def ledger(survey: Path) -> Path:
    return make_ledger(survey)


@pytest.fixture
def replace_ledger(survey: Path) -> Path:
    return make_ledger(survey, "--adjacency", "replace")


def mean(survey: Path, *more: object, epsilon: str = "0.1") -> tuple[object, ...]:
    return (
        "release",
        "mean",
        survey,
        "--column",
        "age",
        "--bounds",
        "0,100",
        "--epsilon",
        epsilon,
        *more,
    )


def test_ten_releases_fit_and_the_eleventh_is_refused(survey: Path, ledger: Path) -> None:
    for k in range(10):
        record = read(run(*mean(survey, "--ledger", ledger, "--json")))
        assert 0.0 <= record["value"] <= 100.0
        assert Fraction(record["left"]["epsilon"]) == 1 - Fraction(k + 1, 10)
    refused = run(*mean(survey, "--ledger", ledger))
    assert refused.exit_code == 3
    assert "0 is left of 1" in refused.stderr
    assert refused.stdout == ""
    history = read(run("budget", "history", ledger, "--json"))
    assert [entry["statement"] for entry in history] == ["mean of age"] * 10
    assert history[0]["certificate"]["epsilon"] == 0.1
    shown = run("budget", "show", ledger)
    assert "left    epsilon = 0, delta = 0.000001" in shown.stdout
    assert "mean of age" in run("budget", "history", ledger).stdout


def test_a_written_release_verifies_and_an_altered_one_does_not(
    survey: Path, ledger: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mean.json"
    read(run(*mean(survey, "--ledger", ledger, "--output", file, "--json")))
    assert run("verify", file, "--ledger", ledger).exit_code == 0
    assert read(run("verify", file, "--json"))["stands"] is True
    record = json.loads(file.read_text())
    changes: list[tuple[str, object]] = [
        ("epsilon", 0.05),
        ("adjacency", "replace"),
        ("timing", "constant"),
        ("kind", "x"),
    ]
    for name, value in changes:
        altered = tmp_path / "altered.json"
        altered.write_text(
            json.dumps(record | {"certificate": record["certificate"] | {name: value}})
        )
        result = run("verify", altered, "--ledger", ledger)
        assert result.exit_code == 4
        assert "does not stand: digest" in result.stderr
        assert "ledger" in result.stderr
    altered.write_text(json.dumps(record | {"value": 1.0}))
    assert "does not stand: digest, interval." in run("verify", altered).stderr


def add_remove(survey: Path) -> Path:
    path = survey.parent / "add-remove.ledger"
    made = run("budget", "init", path, survey, "--epsilon", "1", "--adjacency", "add-remove")
    assert made.exit_code == 0, made.stderr
    return path


def test_groups_are_one_parallel_charge(survey: Path) -> None:
    ledger = add_remove(survey)
    asked = mean(
        survey, "--ledger", ledger, "--json", "--by", "region", "--groups", "north, south,east"
    )
    record = read(run(*asked))
    assert sorted(record["value"]) == ["east", "north", "south"]
    assert "count" not in record["certificate"]["domain"]
    charges = Ledger(ledger).history()
    assert [(charge.epsilon, charge.groups) for charge in charges] == [
        (Fraction(1, 10), ("north", "south", "east"))
    ]
    grouped = ("--by", "region", "--groups", "north,south", "--adjacency", "replace")
    refused = run(*mean(survey, *grouped))
    assert refused.exit_code == 1
    assert "a row can change group" in refused.stderr


def test_selection_and_the_exponential_mechanism(survey: Path, replace_ledger: Path) -> None:
    ledger, replace = replace_ledger, ("--adjacency", "replace")
    asked = (
        "release",
        "select",
        survey,
        "--column",
        "region",
        "--candidates",
        "north,south,west",
        "--epsilon",
        "0.2",
    )
    result = run(*asked, "--ledger", ledger)
    assert result.exit_code == 0
    assert "the running time depends on the data" not in result.stderr
    assert "most frequent region: " in result.stdout and "PermuteAndFlip" not in result.stdout
    result = run(*asked, "--sampler", "Tabulated", "--epsilon", "0.2", "--verbose", *replace)
    assert "the running time depends on the data" in result.stderr
    assert "by ExponentialMechanism" in result.stdout
    record = read(run(*mean(survey, "--sampler", "Rejection", "--json", *replace)))
    assert record["certificate"]["sampler"]["sampler"] == "Rejection"
    record = read(run(*mean(survey, "--delta", "1e-7", "--json", "--ledger", ledger)))
    assert 0.0 < record["certificate"]["delta"] <= 1e-7
    assert record["left"] == {"epsilon": "0.7", "delta": "0.0000009"}


def test_ridge_is_released_with_names(survey: Path, ledger: Path) -> None:
    lines = [f"{k % 50},{(k % 50) / 10}" for k in range(300)]
    survey.write_text("x,z\n" + "\n".join(lines) + "\n")
    asked = (
        "release",
        "ridge",
        survey,
        "--column",
        "x",
        "--bounds",
        "0,50",
        "--target",
        "z",
        "--target-bounds",
        "0,5",
    )
    record = read(run(*asked, "--epsilon", "0.9", "--ledger", ledger, "--json"))
    assert sorted(record["value"]) == ["intercept", "x"]
    assert record["left"]["epsilon"] == "0.1"


def test_quantiles_are_released_in_the_units_of_the_table(survey: Path, ledger: Path) -> None:
    asked = (
        "release",
        "quantile",
        survey,
        "--column",
        "age",
        "--bounds",
        "0,100",
        "--q",
        "0.25",
        "--epsilon",
        "0.9",
    )
    record = read(run(*asked, "--ledger", ledger, "--json"))
    assert 0.0 < record["value"] < 100.0
    assert record["statement"] == "0.25-quantile of age"
    refused = run(*asked[:-4], "--q", "1.5", "--epsilon", "0.1")
    assert refused.exit_code == 1
    assert "between 0 and 1" in refused.stderr


def test_a_large_epsilon_is_warned_about_in_plain_words(survey: Path) -> None:
    result = run(*mean(survey, epsilon="20"))
    assert result.exit_code == 0
    assert "epsilon = 20 is above 10" in result.stderr
    assert "warning" not in run(*mean(survey, epsilon="10")).stderr


def test_nothing_confidential_is_printed(survey: Path) -> None:
    """All that is printed but the value itself is the same whatever the number of rows."""
    printed = []
    for rows in (400, 399, 3):
        lines = survey.read_text().splitlines()[: rows + 1]
        survey.write_text("\n".join(lines) + "\n")
        result = run(*mean(survey))
        released = r"mean of age: [0-9.]+\n  95% interval  [0-9.]+ to [0-9.]+\n"
        shown, found = re.subn(released, "", result.stdout)
        assert (result.exit_code, found) == (0, 1), result.stderr
        at_bound = re.search(r"interval  0[.0]* to|to 100[.0]*\n", result.stdout)  # released
        shown, cautions = re.subn(r"  caution .*\n( {16}.*\n)*", "", shown)
        assert not cautions or at_bound
        printed.append((shown, result.stderr))
    assert printed[0] == printed[1] == printed[2]
    ledger = add_remove(survey)
    result = run(*mean(survey, "--ledger", ledger))
    assert result.exit_code == 0
    other = mean(survey, "--ledger", ledger, "--adjacency", "replace")
    assert run(*other).exit_code == 3


MISTAKES: list[tuple[str, dict[str, object], str]] = [
    ("missing file", {"source": "surwey.csv"}, "There is no file"),
    ("missing column", {"column": "agee"}, "There is no column 'agee'"),
    ("drop", {"source": "gaps.csv", "missing": "drop"}, "must not be 'drop'"),
    ("empty", {"source": "empty.csv"}, "The table has no rows."),
    ("one row", {"source": "one.csv"}, "The table has one row"),
    ("reversed", {"bounds": "100,0"}, "LOWER < UPPER"),
    ("no bounds", {"bounds": "wide"}, "two numbers LOWER,UPPER"),
    ("nan bounds", {"bounds": "0,nan"}, "finite number"),
    ("too much", {"epsilon": "1.0000001"}, "1 is left of 1"),
    ("zero", {"epsilon": "0"}, "must be a positive number"),
    ("tiny", {"epsilon": "1e-9"}, "from 2^-20 to 2^20"),
    ("words", {"epsilon": "little"}, "must be a positive number"),
    ("adjacency", {"adjacency": "swap"}, "'replace', 'add-remove'"),
    ("sampler", {"sampler": "Rejecton"}, "Did you mean 'Rejection'?"),
    ("delta", {"delta": "1e-5"}, "0.000001 is left of 0.000001"),
    ("by", {"by": "region"}, "must list the groups"),
    ("ending", {"source": "survey.xyz"}, "must end in"),
    ("no folder", {"output": "nowhere/mean.json"}, "in a folder that exists"),
    ("not a file", {"source": "broken.parquet"}, "cannot read"),
]


@pytest.mark.parametrize(
    ("change", "message"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES]
)
def test_a_mistake_is_one_message_and_costs_nothing(
    change: dict[str, object],
    message: str,
    survey: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = survey.parent
    ledger = make_ledger(survey, "--adjacency", "replace" if "delta" in change else "add-remove")
    monkeypatch.chdir(folder)
    for name, text in {"gaps": "age\n1\n\n\n3\nnan\n", "empty": "age\n", "one": "age\n4\n"}.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "broken.parquet").write_text("not parquet")
    source = str(change.get("source", "survey.csv"))
    if source != "survey.csv" and (folder / source).exists():
        ledger = folder / f"{source}.ledger"
        Ledger.create(ledger, data_set=str(folder / source), epsilon="1")
    options = {
        "column": "age",
        "bounds": "0,100",
        "epsilon": "0.1",
        "ledger": ledger,
        "output": "mean.json",
    } | change
    options.pop("source", None)
    before = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    result = run(
        "release",
        "mean",
        source,
        *(part for name, value in options.items() for part in (f"--{name}", value)),
    )
    assert result.exit_code in (1, 3), result.output
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in sorted(folder.iterdir())} == before


def test_a_ledger_of_another_data_set_is_refused(survey: Path, ledger: Path) -> None:
    other = survey.parent / "other.csv"
    other.write_text(survey.read_text())
    refused = run(*mean(other, "--ledger", ledger))
    assert refused.exit_code == 3
    assert "belongs to another data set" in refused.stderr
    assert Ledger(ledger).history() == []
    assert run("budget", "init", ledger, survey, "--epsilon", "9").exit_code == 3
    assert run("budget", "show", survey).exit_code == 3


def test_an_existing_output_is_not_overwritten(survey: Path, ledger: Path) -> None:
    refused = run(*mean(survey, "--ledger", ledger, "--output", survey))
    assert refused.exit_code == 1
    assert "must not exist yet" in refused.stderr
    assert Ledger(ledger).history() == []


def test_a_misspelt_command_is_met_with_a_suggestion(survey: Path) -> None:
    result = run("release", "meen", survey)
    assert result.exit_code == 2
    assert "Did you mean 'mean'" in result.stderr
    assert run("verify", survey).exit_code == 4  # no certificate stands in it
    assert run("verify", survey.parent / "none.json").exit_code == 1


def test_the_demo_runs_and_the_installed_program_starts() -> None:
    result = run("demo")
    assert result.exit_code == 0
    assert "left          epsilon = 0.4, delta = 0" in result.stdout
    program = [sys.executable, "-c", "from expmech.cli.main import main; main()", "--help"]
    assert "release" in subprocess.run(program, capture_output=True, text=True, check=True).stdout


def test_a_crash_between_charge_and_draw_wastes_budget_and_never_overspends(
    survey: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_: PreparedDraw) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PreparedDraw, "release", crash)
    assert run(*mean(survey, "--ledger", ledger)).exit_code != 0
    assert [charge.epsilon for charge in Ledger(ledger).history()] == [Fraction(1, 10)]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("release", "average"), ["mean"]),
        (("release", "mode"), ["select"]),
        (("release", "Regression"), ["linear", "ridge", "logistic"]),
        (("mean", "survey.csv"), ["release mean"]),
        (("init", "survey.ledger"), ["budget init"]),
        (("avg",), ["release mean"]),
    ],
)
def test_a_command_by_another_name_is_met_with_its_own(
    words: tuple[str, ...], names: list[str]
) -> None:
    refused = run(*words)
    assert refused.exit_code == 2
    message = " ".join(refused.stderr.replace("│", " ").split())
    assert f"Did you mean {' or '.join(map(repr, names))}?" in message


def test_an_option_that_is_missing_is_told_with_its_help(survey: Path) -> None:
    refused = run("release", "mean", survey, "--column", "age", "--epsilon", "1")
    message = " ".join(refused.stderr.replace("│", " ").split())
    assert refused.exit_code == 2
    assert "Missing option '--bounds'. Public bounds LOWER,UPPER" in message
    assert "Missing argument 'CERT.json'." in run("verify").stderr
