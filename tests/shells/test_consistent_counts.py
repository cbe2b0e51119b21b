"""Counts made consistent: the nearest ones from 0 up with their total, stated and verified."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from expmech.cli.main import app
from expmech.mechanisms.noisy_sums.interpretations import nearest_counts

CROSSED = ("--by", "town", "--groups", "a,b,c,d", "--by", "answer", "--groups", "yes,no")
HISTOGRAM = ("--column", "town", "--categories", "a,b,c,d,e")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    rows = [f"{'aaab'[k % 4]},{'yes' if k % 3 else 'no'}" for k in range(60)]
    path.write_text("\n".join(["town,answer", *rows]) + "\n")
    return path


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_other_counts_with_the_total_are_nearer(size: int) -> None:
    for noisy in itertools.product(range(-3, 4), repeat=size):
        for total in (None, 0, 2, 5):
            whole = max(0, sum(noisy)) if total is None else total
            chosen = nearest_counts(noisy, total)

            def distance(counts: Any, noisy: Any = noisy) -> int:
                return sum((one - other) ** 2 for one, other in zip(counts, noisy, strict=True))

            every = itertools.product(range(whole + 1), repeat=size)
            least = min(distance(counts) for counts in every if sum(counts) == whole)
            assert (min(chosen) >= 0, sum(chosen), distance(chosen)) == (True, whole, least)


def test_a_table_of_many_small_cells_keeps_its_total() -> None:
    """Cut off at 0 alone, the sum of so many empty cells would be far too large."""
    noisy = [50, *((-1) ** k * (k % 7) for k in range(10_000))]
    assert sum(nearest_counts(noisy)) == sum(noisy)
    assert sum(max(0, count) for count in noisy) > sum(noisy) + 1000


@pytest.mark.parametrize(
    ("name", "own", "adjacency"),
    [
        ("count", CROSSED, "add-remove"),
        ("count", CROSSED[:4], "add-remove"),
        ("histogram", HISTOGRAM, "add-remove"),
        ("histogram", HISTOGRAM, "replace"),
    ],
)
def test_consistent_counts_are_stated_charged_and_verified(
    name: str, own: tuple[str, ...], adjacency: str, survey: Path, tmp_path: Path
) -> None:
    ledger, file = tmp_path / "survey.ledger", tmp_path / "r.json"
    kind = ("--adjacency", adjacency)
    assert run("budget", "init", ledger, survey, "--epsilon", 3, *kind).exit_code == 0
    asked = ("release", name, "--ledger", ledger, *own, "--epsilon", "0.5", "--consistent")
    record = read(run(*asked, "--json", "--output", file))
    counts, noisy = record["value"], record["accuracy"]["noisy"]
    assert record["certificate"]["domain"]["kind"] == "ConsistentCounts"
    assert min(counts.values()) >= 0
    total = 60 if adjacency == "replace" else max(0, sum(noisy))
    assert sum(counts.values()) == total
    assert "may lie outside" in record["accuracy"]["statement"]
    checked = run("verify", file, "--ledger", ledger)
    assert checked.exit_code == 0, checked.output
    for change in ("value", "noisy", "kind"):
        altered = json.loads(json.dumps(record))
        first, second = list(counts)[:2]
        if change == "value":
            altered["value"][first] += 1
            altered["value"][second] = max(0, altered["value"][second] - 1)
        elif change == "noisy":
            altered["accuracy"]["noisy"][0] += 7
        else:
            altered["certificate"]["domain"]["kind"] = "Counts"
        file.write_text(json.dumps(altered))
        assert run("verify", file).exit_code != 0


def test_intervals_are_those_of_the_noisy_counts(survey: Path) -> None:
    record = read(
        run(
            *("release", "count", survey, *CROSSED[:4], "--epsilon", "0.1", "--consistent"),
            "--json",
        )
    )
    pairs = zip(record["accuracy"]["noisy"], record["accuracy"]["upper"].values(), strict=True)
    assert len({upper - max(0, noisy) for noisy, upper in pairs}) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ("count",),
        ("count", "--where", "answer = 'yes'"),
        ("count", "--by", "town", "--universe", "text:8"),
        ("histogram", "--column", "town", "--universe", "text:8"),
    ],
)
def test_what_has_no_total_is_refused(wrong: tuple[str, ...], survey: Path) -> None:
    name, *own = wrong
    refused = run("release", name, survey, *own, "--epsilon", 1, "--consistent")
    assert refused.exit_code != 0
    assert "`--consistent`" in refused.output


def test_a_long_table_is_a_card_of_one_screen_and_the_record_has_all(survey: Path) -> None:
    towns = ",".join([*"abcd", *map(str, range(200))])
    asked = ("release", "count", survey, "--by", "town", "--groups", towns, "--epsilon", 100)
    shown = run(*asked).stdout
    assert "the 20 largest of 204" in shown
    assert len(shown.splitlines()) < 40
    assert len(read(run(*asked, "--json"))["value"]) == 204
