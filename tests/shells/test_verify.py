"""`verify` against a release with one thing changed and its digest renewed."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.shell import run

from expmech.cli import verify as verifying
from expmech.cli.records import with_digest
from expmech.core.errors import ExpmechError
from expmech.ledger import Entry, Ledger

COLUMNS = "--column age --bounds 0,100 --column income --bounds 0,9000"
GROUPS = "--by sex --groups f,m,x"
ASKED = {
    "count by group": f"count --where age>=40 {GROUPS}",
    "mean": f"mean {COLUMNS}",
    "mean by group": f"mean {COLUMNS} {GROUPS}",
    "sum": f"sum {COLUMNS}",
    "histogram": "histogram --column age --edges 0,40,inf",
    "quantile": "quantile --column age --bounds 0,100 --bits 10",
    "quantiles": "quantile --column age --bounds 0,100 --q 0.1,0.5,0.9",
    "select": "select --column sex --candidates f,m,x",
    "top": "top --column sex --candidates f,m,x --k 2",
    "pca": f"pca {COLUMNS} --variances",
    "linear": "linear --target income --target-bounds 0,9000 --column age --bounds 0,100",
}
PERSON = "count --unit who --max-rows 2"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Return the folder of two ledgers, and one release of every kind charged to them."""
    folder = tmp_path_factory.mktemp("desk")
    survey = folder / "survey.csv"
    rng = np.random.default_rng(6)
    lines = ["age,income,sex,who"]
    for k in range(200):
        lines.append(
            f"{int(rng.integers(0, 90))},{int(rng.integers(0, 9000))},{'fm'[k % 2]},p{k // 3}"
        )
    survey.write_text("\n".join(lines) + "\n")
    rows, people = folder / "rows.ledger", folder / "people.ledger"
    common = ("--epsilon", 100, "--adjacency", "add-remove")
    assert run("budget", "init", rows, survey, *common).exit_code == 0
    assert run("budget", "init", people, survey, *common, "--unit", "who", "--again").exit_code == 0
    records = {}
    for name, asked in (*ASKED.items(), ("person", PERSON)):
        command, *own = asked.split()
        ledger = people if name == "person" else rows
        words = ("--epsilon", "1", "--adjacency", "add-remove", "--ledger", ledger, "--json")
        done = run("release", command, survey, *own, *words)
        assert done.exit_code == 0, done.stderr
        records[name] = json.loads(done.stdout)
    return folder, records


KINDS = [*ASKED, "person"]


def claims(record: Any, ledger: Path | None = None, *, seal: bool = True) -> dict[str, str]:
    """Return the claims that do not hold, each with its detail."""
    if seal:
        record = with_digest({name: value for name, value in record.items() if name != "digest"})
    try:
        (found,) = verifying.read_releases(json.dumps(record), name="the file")
    except ExpmechError as error:
        return {"file": str(error)}
    checks = verifying.check_release(found, None if ledger is None else Ledger(ledger))
    return {one.claim: one.detail for one in checks if not one.holds}


def ledger_of(name: str, folder: Path) -> Path:
    return folder / ("people.ledger" if name == "person" else "rows.ledger")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the way to everything that a value of JSON holds."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in entries if isinstance(value, (dict, list)) else ():
        yield (*path, key)
        if isinstance(entry, (dict, list)):
            yield from places(entry, (*path, key))


def changed(record: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    """Return the record with another entry at the end of a path; ``...`` leaves it out."""
    record = copy.deepcopy(record)
    inner: Any = record
    for key in path[:-1]:
        inner = inner[key]
    if new is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return record


def another(value: Any) -> Any:
    """Return a value of the same kind that could have been released as well, as far as one sees."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    if isinstance(value, str):
        return f"{value}, nearly"
    if value is None:
        return 0.5
    return [*value, *value] if isinstance(value, list) else {**value, "more": 1}


def test_the_command_tells_what_differs(desk: Any, tmp_path: Path) -> None:
    folder, records = desk
    file, record = tmp_path / "record.json", records["quantiles"]
    file.write_text(json.dumps(record))
    ledger = ("--ledger", folder / "rows.ledger")
    assert run("verify", file, *ledger).exit_code == 0
    low, middle, high = record["value"].values()
    forged = record | {"value": dict(zip(record["value"], (low, high, high), strict=True))}
    file.write_text(json.dumps(with_digest({k: v for k, v in forged.items() if k != "digest"})))
    assert run("verify", file).exit_code == 0
    done = run("verify", file, *ledger)
    assert done.exit_code == 4 and "does not stand: kept." in done.stderr
    assert "value.0.5" in done.stdout and repr(middle) not in done.stdout


@pytest.mark.parametrize("name", KINDS)
def test_every_release_stands_beside_its_ledger(name: str, desk: Any) -> None:
    folder, records = desk
    assert claims(records[name], ledger_of(name, folder)) == {}
    assert claims(records[name]) == {}


@pytest.mark.parametrize("name", KINDS)
def test_nothing_of_a_release_can_differ_from_what_the_ledger_keeps(name: str, desk: Any) -> None:
    """One entry is changed or left out, at every depth; the part that differs is named."""
    folder, records = desk
    record, ledger = records[name], ledger_of(name, folder)
    for path in places({key: record[key] for key in record if key != "certificate"}):
        entry: Any = record
        for key in path:
            entry = entry[key]
        if path == ("digest",):
            continue
        for new in (another(entry), ...):
            found = claims(changed(record, path, new), ledger)
            assert found, (path, new)
            if path[0] != "charge":
                assert str(path[0]) in found["kept"], (path, new, found)
                if isinstance(entry, float):
                    assert repr(entry) not in found["kept"], "the ledger's value is not shown"


def test_the_choice_of_another_release_of_the_same_certificate_does_not_stand(desk: Any) -> None:
    folder, records = desk
    record, ledger = records["select"], ledger_of("select", folder)
    other = next(label for label in "fmx" if label != record["value"])
    found = claims(record | {"value": other}, ledger)
    assert list(found) == ["kept"] and "in: value, digest" in found["kept"]
    elsewhere = claims(record | {"charge": record["charge"] + 1}, ledger)
    assert {"ledger", "kept"} <= set(elsewhere)
    without = {name: value for name, value in record.items() if name not in ("charge", "left")}
    assert "names no charge" in claims(without, ledger)["ledger"]


def test_a_value_of_a_charge_that_gave_none_does_not_stand(desk: Any, tmp_path: Path) -> None:
    _, records = desk
    record = records["select"]
    Ledger.create(tmp_path / "own.ledger", data_set="x", epsilon="1", adjacency="add-remove")
    ledger = Ledger(tmp_path / "own.ledger")
    told = json.dumps(record["certificate"], indent=2, sort_keys=True)
    ledger.charge(epsilon="1", statement=record["statement"], certificate=told)
    found = claims(record | {"charge": 1}, ledger.path)
    assert list(found) == ["kept"] and "keeps no value of charge 1" in found["kept"]


def test_a_value_that_is_kept_for_a_charge_of_another_release_does_not_stand(
    desk: Any, tmp_path: Path
) -> None:
    _, records = desk
    record = records["count by group"] | {"charge": 1}
    record = with_digest({name: value for name, value in record.items() if name != "digest"})
    own = {
        "statement": record["statement"],
        "certificate": json.dumps(record["certificate"], indent=2, sort_keys=True),
        "groups": tuple(record["groups"]),
    }
    other = records["histogram"]["certificate"]
    changes: list[dict[str, Any]] = [
        {},
        {"certificate": json.dumps(other, indent=2, sort_keys=True)},
        {"statement": "number of rows"},
        {"groups": ("f", "m")},
    ]
    for k, change in enumerate(changes):
        path = tmp_path / f"{k}.ledger"
        ledger = Ledger.create(path, data_set="x", epsilon="1", adjacency="add-remove")
        ledger.charge_all([Entry(epsilon="1", **own | change)])
        ledger.deliver(1, json.dumps(record))
        found = claims(record, path)
        assert list(found) == (["ledger"] if change else [])
        assert not change or f"another release: {next(iter(change))}" in found["ledger"]


def test_two_releases_of_one_charge_do_not_stand(desk: Any) -> None:
    folder, records = desk
    file = folder / "several.json"
    for chosen, code in ((("mean", "sum"), 0), (("mean", "sum", "mean"), 4)):
        file.write_text(json.dumps([records[name] for name in chosen]))
        assert run("verify", file).exit_code == code
    assert (
        "charge 3 stands twice" in run("verify", file).stdout
        or "stands twice" in run("verify", file).stdout
    )


def test_a_name_that_was_not_released_does_not_stand(desk: Any) -> None:
    _, records = desk
    for name in ("mean", "sum", "histogram", "quantiles", "pca", "linear"):
        record = records[name]
        value = record["value"]
        first = next(iter(value))
        for new in (value | {"more": value[first]}, {"more": value[first]}):
            assert "value" in claims(record | {"value": new}), name
        if isinstance(value[first], dict):
            inner = value[first] | {"more": 0.0}
            assert "value" in claims(record | {"value": value | {first: inner}}), name


def numbers_of(value: Any) -> list[tuple[Any, ...]]:
    """Return the way to every number of a value that is kept under the name "value"."""
    whole = {"value": value}
    found = []
    for path in places(whole):
        entry: Any = whole
        for key in path:
            entry = entry[key]
        if isinstance(entry, (int, float)):
            found.append(path)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_number_is_no_value(name: str, desk: Any) -> None:
    _, records = desk
    record = records[name]
    inner: list[Any] = [math.nan, math.inf, -math.inf, "1", "1.5", None, True, False, [1.0], [], {}]
    for path in numbers_of(record["value"]):
        for new in inner:
            assert claims(changed(record, path, new)), (path, new)
    whole: list[Any] = [None, {}, [], [[]], math.nan, {"a": {"b": 1}}]
    for new in whole:
        assert claims(record | {"value": new}), new


@pytest.mark.parametrize("name", [name for name in ASKED if name not in ("select", "top")])
def test_a_value_off_the_public_lattice_does_not_stand(name: str, desk: Any) -> None:
    """Of a mean under add-remove, which has no lattice, the interval does not follow."""
    _, records = desk
    record = records[name]
    for path in [path for path in numbers_of(record["value"]) if "variance" not in path]:
        value: Any = record
        for key in path:
            value = value[key]
        for new in (value + 0.37, value * 1.001 + 1e-3, 1e15, -1e15):
            assert claims(changed(record, path, new)), (path, new)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("kind", ["mean", "sum", "variance", "count", "quantile"])
def test_the_least_step_off_the_lattice_is_seen(
    kind: str, adjacency: str, desk: Any, tmp_path: Path
) -> None:
    """A thousand units in the last place, and zero with a sign, where the lattice is known."""
    folder, _ = desk
    own: tuple[str, ...] = ("--column", "age", "--bounds", "0,100")
    own = ("--where", "age>=40") if kind == "count" else own
    words = ("--epsilon", "1", "--adjacency", adjacency, "--json")
    done = run("release", kind, folder / "survey.csv", *own, *words)
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    path = numbers_of(record["value"])[0]
    value: Any = record
    for key in path:
        value = value[key]
    # elsewhere there is no lattice, or a finer one: the interval tells
    told = kind in ("count", "sum", "quantile") or (kind, adjacency) == ("mean", "replace")
    off = 0.5 if kind == "count" else (1e3 if told else 4e4) * math.ulp(value)
    assert claims(record) == {}
    for new in (value + off, value - off):
        assert ("value" if told else "interval") in claims(changed(record, path, new))
    assert claims(changed(record, path, -0.0))


@pytest.mark.parametrize("name", KINDS)
def test_an_interval_or_a_group_cannot_be_dropped_or_invented(name: str, desk: Any) -> None:
    _, records = desk
    record = records[name]
    near = record["accuracy"]
    for part in [part for part in near if part != "statement"]:
        assert claims(changed(record, ("accuracy", part), ...)), part
    if "lower" in near:
        bare = {"statement": near["statement"]}
        assert "interval" in claims(record | {"accuracy": bare})
    given = {"statement": ""} | near | {"level": 0.95, "lower": 1, "upper": 2}
    forged: list[Any] = [given, None, [], {"x": 1}]
    for new in forged:
        if new != near:
            assert claims(record | {"accuracy": new}), new
    for groups in ([], ["f"], None, ["f", "f"]):
        assert claims(record | {"groups": groups}), groups
    if "groups" in record:
        without = {key: value for key, value in record.items() if key != "groups"}
        assert claims(without)
        first = record["value"]["f"]
        assert "groups" in claims(record | {"value": record["value"] | {"y": first}})
        more = record | {"groups": [*record["groups"], "y"]}
        assert "groups" in claims(more)
        both = more | {"value": record["value"] | {"y": first}}
        assert {"groups", "interval"} & set(claims(both))
    for key in record:
        # without "reading" a record is as earlier versions wrote it: only its digest tells
        seal = key not in ("digest", "reading")
        assert claims(changed(record, (key,), ...), seal=seal), key
    assert claims(record | {"note": "all is well"})
    for statement in ("mean of wealth", f"{record['statement']}, nearly", ""):
        if statement.startswith("mean of w") or "groups" not in record or not statement:
            assert "statement" in claims(record | {"statement": statement})


def test_a_person_cannot_be_left_out_or_given_more_rows(desk: Any) -> None:
    _, records = desk
    record = records["person"]
    assert "unit" in claims(changed(record, ("unit",), ...))
    for part, new in (("max_rows", 3), ("max_rows", True), ("column", "age"), ("epsilon", "0.5")):
        assert "unit" in claims(changed(record, ("unit", part), new)), part
    row = {"column": "who", "max_rows": 2, "epsilon": "1"}
    assert "unit" in claims(records["mean"] | {"unit": row})


BROKEN = {
    "a name twice": '{"certificate": %s, "certificate": %s}',
    "nan": '{"certificate": NaN}',
    "infinity": '{"certificate": -Infinity}',
    "too large": '{"certificate": 1e999}',
    "too long": '{"certificate": ' + "9" * 5000 + "}",
    "deep": "[" * 60 + "]" * 60,
    "deeper": "[" * 100000 + "]" * 100000,
    "trailing": "{} {}",
    "a surrogate": '{"certificate": "\\ud800"}',
    "empty": "",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_one_message(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "cert.json"
    file.write_text(BROKEN[kind].replace("%s", "{}"))
    done = run("verify", file)
    assert done.exit_code == 4
    assert done.stderr.count("\n") == 1 and "must be JSON" in done.stderr
    assert done.stdout == ""


def test_a_name_twice_is_found_at_every_depth(desk: Any, tmp_path: Path) -> None:
    _, records = desk
    file = tmp_path / "cert.json"
    text = json.dumps(records["mean"], sort_keys=True)
    for name in ("value", "age", "epsilon", "kind", "level"):
        file.write_text(text.replace(f'"{name}":', f'"{name}": 1, "{name}":', 1))
        done = run("verify", file)
        assert done.exit_code == 4 and f"the name '{name}' stands twice" in done.stderr
