"""`verify` recomputes the interval that a release states; a forged one does not stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.shell import run

from expmech.cli.records import with_digest

COLUMNS = "--column age --bounds 0,100 --column income --bounds -50,9000"
ASKED = {
    "count": "count --where age>=40",
    "missing": "missing --column age --column income",
    "sum": f"sum {COLUMNS}",
    "far": "sum --column income --bounds 8999,9000",
    "mean": f"mean {COLUMNS}",
    "zero": "mean --column zero --bounds=-1,1",
    "variance": f"variance {COLUMNS}",
    "histogram": "histogram --column age --edges 0,40,inf",
}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(6)
    lines = ["age,income,zero,sex"]
    for k in range(300):
        lines.append(f"{int(rng.integers(0, 90))},{rng.uniform(0, 9000)!r},0,{'fm'[k % 2]}")
    file = tmp_path_factory.mktemp("survey") / "survey.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def check(record: dict[str, Any], file: Path) -> dict[str, bool]:
    """Return what `verify` says of each claim of a record whose digest was renewed."""
    record = {name: value for name, value in record.items() if name != "digest"}
    file.write_text(json.dumps(with_digest(record)))
    done = run("verify", file, "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == (0 if told["stands"] else 4)
    claims: dict[str, bool] = {}
    for one in told["checks"]:
        claims[one["claim"]] = claims.get(one["claim"], True) and one["holds"]
    return claims


@pytest.mark.parametrize("name", ASKED)
def test_the_interval_of_every_release_follows(name: str, survey: Path, tmp_path: Path) -> None:
    command, *own = ASKED[name].split()
    for more, epsilon in (((), "1/3"), (ADDED, "0.0007")):
        asked = ("release", command, survey, *own, "--epsilon", epsilon, *more, "--json")
        done = run(*asked)
        assert done.exit_code == 0, done.stderr
        record = json.loads(done.stdout)
        claims = check(record, tmp_path / "record.json")
        assert all(claims.values()) and "interval" in claims, (record, claims)


ADDED = ("--adjacency", "add-remove", "--by", "sex", "--groups", "f,m,x")


def narrower(value: Any) -> Any:
    """Return the ends of an interval moved by a hundredth part and more, at every depth."""
    if isinstance(value, dict):
        return {name: narrower(one) for name, one in value.items()}
    return value + 1.37 + abs(value) / 100


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("more", [(), ADDED], ids=["replace", "groups"])
def test_a_forged_interval_does_not_stand(
    name: str, more: tuple[str, ...], survey: Path, tmp_path: Path
) -> None:
    command, *own = ASKED[name].split()
    done = run("release", command, survey, *own, "--epsilon", "2", *more, "--json")
    record = json.loads(done.stdout)
    forged = [{"level": 0.99}, {"scale": None}, {"scale": narrower(record["accuracy"]["lower"])}]
    forged += [{end: narrower(record["accuracy"][end])} for end in ("lower", "upper")]
    joint = [end for end in ("joint_lower", "joint_upper") if end in record["accuracy"]]
    several = ("missing", "sum", "mean", "variance", "histogram", *(("count",) if more else ()))
    assert len(joint) == (2 if name in several else 0)
    forged += [{end: narrower(record["accuracy"][end])} for end in joint]
    if "noisy" in record["accuracy"]:
        forged[1] = {"noisy": None}
    for change in forged:
        near = record["accuracy"] | change
        claims = check(record | {"accuracy": near}, tmp_path / "record.json")
        assert not claims["interval"], (change, record["accuracy"])
        assert all(holds for claim, holds in claims.items() if claim != "interval")


def test_an_interval_for_what_has_none_does_not_stand(survey: Path, tmp_path: Path) -> None:
    own = ("--column", "age", "--bounds", "0,100", "--epsilon", "1", "--json")
    record = json.loads(run("release", "quantile", survey, *own).stdout)
    assert "interval" not in check(record, tmp_path / "record.json")
    near = {"lower": 30.0, "upper": 40.0, "scale": None, "level": 0.95}
    forged = record | {"accuracy": record["accuracy"] | near}
    assert not check(forged, tmp_path / "record.json")["interval"]
