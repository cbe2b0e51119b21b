"""`expmech verify`: recompute what a certificate claims."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from expmech.certificates.certificate import Certificate, epsilon_up
from expmech.certificates.checks import Check
from expmech.cli.common import user_errors
from expmech.cli.console import FALSE, complaints, output
from expmech.cli.options import Json
from expmech.cli.records import digest_of
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ExpmechError
from expmech.core.strict_json import differences, read_json
from expmech.ledger import Ledger, exact_amount
from expmech.ledger.amounts import show_amount
from expmech.ledger.verification import (
    gives_interval,
    verify_certificate,
    verify_interval,
    verify_value,
)
from expmech.tables.sources.units import Units, speaks_of_units

app = typer.Typer(add_completion=False)

_FIELDS = ("statement", "value", "accuracy", "certificate", "digest")
_OPTIONAL = ("reading", "groups", "unit", "charge", "left")
_OF_INTERVAL = ("lower", "upper", "scale", "joint_lower", "joint_upper", "noisy")


@dataclass(frozen=True, kw_only=True)
class ReadRelease:
    """A certificate of a file, and the record of the release that holds it, if there is one."""

    certificate: Certificate
    record: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return "" if self.record is None else str(self.record.get("statement"))


@app.command()
def verify(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="CERT.json", help="A certificate, or a file written by release --output."
        ),
    ],
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Also compare with what this ledger charged and keeps."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute every claim of a certificate that follows from its other fields."""
    with user_errors():
        releases = _read_file(file)
        opened = None if ledger is None else Ledger(ledger)
        results = [(release.name, check_release(release, opened)) for release in releases]
        results[0][1].extend(_charged_once(releases))
    wrong = [check.claim for _, checks in results for check in checks if not check.holds]
    if as_json:
        _print_json(results, stands=not wrong)
    else:
        for name, checks in results:
            if len(results) > 1 and name:
                output.print(name, style="bold")
            for check in checks:
                mark = "ok   " if check.holds else "FALSE"
                output.print(f"{mark} {check.claim:<12} {check.detail}")
        if not wrong:
            output.print(_verdict(releases, results), style="bold")
    if wrong:
        complaints.print(
            f"error: the certificate does not stand: {', '.join(wrong)}. It was altered or is"
            " damaged.",
            style="red",
        )
        raise typer.Exit(FALSE)


def _verdict(releases: list[ReadRelease], results: list[tuple[str, list[Check]]]) -> str:
    """Return the last line of what stands: how much was recomputed, and what for."""
    many = sum(len(checks) for _, checks in results)
    what = "The certificate stands" if len(results) == 1 else f"All {len(results)} releases stand"
    if len(results) == 1 and releases[0].record is not None:
        what = "The release and its certificate stand"
    return f"{what}: {many} of {many} checks hold."


def check_release(release: ReadRelease, ledger: Ledger | None) -> list[Check]:
    """Return every check of a release; it is compared with a ledger where there is one."""
    certificate, record = release.certificate, release.record
    checks = [] if record is None else _check_record(record, certificate)
    checks += verify_certificate(certificate)
    if ledger is not None and record is None:
        checks.append(_find_charge(certificate, ledger))
    elif ledger is not None and record is not None:
        checks += _compare_with_ledger(record, certificate, ledger)
    return checks


def _charged_once(releases: list[ReadRelease]) -> list[Check]:
    """Check that no two releases of a file have the same charge: one charge gives one value."""
    records = [release.record or {} for release in releases]
    numbers = [record["charge"] for record in records if "charge" in record]
    twice = sorted({str(number) for number in numbers if numbers.count(number) > 1})
    detail = f"charge {', '.join(twice)} stands twice in the file"
    return [Check(claim="charge", holds=False, detail=detail)] if twice else []


def _print_json(results: list[tuple[str, list[Check]]], *, stands: bool) -> None:
    described: list[dict[str, Any]] = [
        {"statement": name, "checks": [dataclasses.asdict(check) for check in checks]}
        for name, checks in results
    ]
    rest = {"releases": described} if len(results) > 1 else {"checks": described[0]["checks"]}
    output.print_json(json.dumps({"stands": stands} | rest))


def _read_file(file: Path) -> list[ReadRelease]:
    """Read a certificate or records of releases; what is malformed does not stand."""
    try:
        return read_releases(file.read_bytes().decode(), name=str(file))
    except UnicodeDecodeError:
        problem = f"{file} must be JSON; it is not."
    except ExpmechError as error:
        problem = str(error)
    complaints.print(f"error: {problem}", style="red")
    raise typer.Exit(FALSE)


def read_releases(text: str, *, name: str) -> list[ReadRelease]:
    """Read a certificate, the record of a release, or a list of records."""
    content: Any = read_json(text, name=name)
    records = content if isinstance(content, list) else [content]
    bare = isinstance(content, dict) and "certificate" not in content
    if bare or not records or not all(isinstance(record, dict) for record in records):
        return [ReadRelease(certificate=Certificate.from_json(text))]
    certificates = [json.dumps(record.get("certificate")) for record in records]
    return [
        ReadRelease(certificate=Certificate.from_json(certificate), record=record)
        for certificate, record in zip(certificates, records, strict=True)
    ]


def _check_record(record: dict[str, Any], certificate: Certificate) -> list[Check]:
    """Check the digest, and what the record says beside its certificate."""
    detail = "of value, statement and certificate, as they were written"
    written = Check(claim="digest", holds=record.get("digest") == digest_of(record), detail=detail)
    wrong = _wrong_fields(record)
    if wrong:
        return [written, Check(claim="record", holds=False, detail=wrong)]
    apart = _has_laws_apart(record, certificate)
    values = record["value"] if apart else {"": record["value"]}
    checks = [written, _check_groups(record, certificate)]
    checks.append(_check_unit(record.get("unit"), certificate))
    checks.append(_check_statement(record, certificate))
    checks += [verify_value(certificate, value) for value in values.values()]
    return [*checks, *_check_intervals(record["accuracy"], certificate, values)]


def _wrong_fields(record: dict[str, Any]) -> str:
    """Return what is wrong with the fields of a record; empty where they are as they should be."""
    missing = [name for name in _FIELDS if name not in record]
    unknown = [name for name in record if name not in (*_FIELDS, *_OPTIONAL)]
    if missing or unknown:
        return f"missing: {', '.join(missing) or 'nothing'}; unknown: {', '.join(unknown) or 'no'}"
    accuracy, charge = record["accuracy"], record.get("charge", 1)
    fields = set(accuracy) if isinstance(accuracy, dict) else set()
    sentence = fields & {"statement", "words"}  # the second is its name in earlier versions
    if len(sentence) != 1 or not fields <= {*sentence, "level", *_OF_INTERVAL}:
        return "`accuracy` must hold a statement, and an interval where there is one"
    if fields != sentence and not {"level", "lower", "upper", "scale"} <= fields:
        return "`accuracy` must say the level, both ends and the scale of an interval"
    if type(charge) is not int or charge < 1 or ("charge" in record) != ("left" in record):
        return "`charge` must be the number of a charge, and stand with what is left"
    reading = record.get("reading", [])
    if not isinstance(reading, list) or not all(isinstance(text, str) for text in reading):
        return "`reading` must be a list of sentences"
    return ""


def _check_groups(record: dict[str, Any], certificate: Certificate) -> Check:
    """Check that there is one value, and one interval if any, for each of the groups named."""
    groups = record.get("groups")
    if groups is None:
        holds = "groups" not in record
        return Check(claim="groups", holds=holds, detail="none")
    accuracy = record["accuracy"]
    ends = [accuracy[part] for part in _OF_INTERVAL if isinstance(accuracy.get(part), dict)]
    holds = (
        isinstance(groups, list)
        and bool(groups)
        and all(isinstance(group, str) for group in groups)
        and len(set(groups)) == len(groups)
        and isinstance(record["value"], dict)
        and all(set(part) == set(groups) for part in (record["value"], *ends))
        and certificate.adjacency == Adjacency.ADD_REMOVE
    )
    return Check(claim="groups", holds=holds, detail="one value for each that is named")


def _check_statement(record: dict[str, Any], certificate: Certificate) -> Check:
    """Check that the release is called what its certificate, groups and units imply."""
    start = certificate.statistic + (" by " if "groups" in record else "")
    unit, end = record.get("unit"), ""
    if isinstance(unit, dict):
        end = f", at most {unit.get('max_rows')} rows of each {unit.get('column')}"
        end = "" if unit.get("counted") is True else end
    statement = str(record["statement"])
    holds = statement.startswith(start) and statement.endswith(end)
    if "groups" not in record:
        holds = statement == start + end
    return Check(claim="statement", holds=holds, detail=f"{statement!r}")


def _check_intervals(
    accuracy: dict[str, Any], certificate: Certificate, values: dict[str, Any]
) -> list[Check]:
    """Check the interval of each value: there is one if and only if the mechanism gives one."""
    stated = [name for name in ("level", *_OF_INTERVAL) if name in accuracy]
    if not stated and not gives_interval(certificate):
        return []
    parts = {name: accuracy[name] for name in _OF_INTERVAL if name in accuracy}
    checks = []
    for group, value in values.items():
        of_group = {name: _of_group(part, group) for name, part in parts.items()}
        of_group["level"] = accuracy.get("level")
        checks.append(verify_interval(certificate, value, of_group))
    return checks


def _check_unit(unit: Any, certificate: Certificate) -> Check:
    """Check that the epsilon of a unit is that of its rows together, as the certificate says."""
    holds, detail = False, "not what the certificate says of people"
    if unit is None:
        holds = not speaks_of_units(certificate.assumptions)
        return Check(claim="unit", holds=holds, detail="one row" if holds else detail)
    try:
        counted = unit.get("counted", False)
        units = Units(column=unit["column"], max_rows=unit["max_rows"], counted=counted is True)
        epsilon = exact_amount(unit["epsilon"], name="epsilon", owner="unit")
        noted = set(units.notes(epsilon)) <= set(certificate.assumptions)
        holds = noted and epsilon_up(epsilon / units.max_rows) == certificate.epsilon
    except (KeyError, TypeError, ValueError, ArithmeticError):
        pass
    if holds:
        detail = f"{units.max_rows} rows of each {units.column}: epsilon = {show_amount(epsilon)}"
    return Check(claim="unit", holds=holds, detail=detail)


def _of_group(part: Any, group: str) -> Any:
    """Return the part of a group; without groups there is one, without a name."""
    if not group:
        return part
    return part.get(group) if isinstance(part, dict) else None


def _has_laws_apart(record: dict[str, Any], certificate: Certificate) -> bool:
    """Tell whether each group was drawn by itself; counts of all groups are one vector."""
    together = certificate.postprocessing.get("labels") == record.get("groups")
    return "groups" in record and isinstance(record["value"], dict) and not together


def _find_charge(certificate: Certificate, ledger: Ledger) -> Check:
    """Look for a certificate that came without a record among the charges."""
    numbers = [str(charge.number) for charge in ledger.history() if charge.certifies(certificate)]
    detail = f"charge {', '.join(numbers)} of {ledger.path}"
    if not numbers:
        detail = f"no such charge in {ledger.path}"
    return Check(claim="ledger", holds=bool(numbers), detail=detail)


def _compare_with_ledger(
    record: dict[str, Any], certificate: Certificate, ledger: Ledger
) -> list[Check]:
    """Compare a release with its charge, and with the record that the ledger keeps of it.

    What differs is named; what the ledger holds instead is not shown.
    """
    number = record.get("charge")
    charge = next((charge for charge in ledger.history() if charge.number == number), None)
    if charge is None:
        detail = f"the release names no charge of {ledger.path}"
        return [Check(claim="ledger", holds=False, detail=detail)]
    same = {
        "certificate": charge.certifies(certificate),
        "statement": charge.statement == record.get("statement"),
        "groups": list(charge.groups) == record.get("groups", []),
    }
    other = [name for name, holds in same.items() if not holds]
    detail = f"charge {number} of {ledger.path}"
    if other:
        detail += f" was made for another release: {', '.join(other)}"
    charged = Check(claim="ledger", holds=not other, detail=detail)
    kept = ledger.outbox().get(charge.number)
    if kept is None:
        detail = f"the ledger keeps no value of charge {number}: none was released from it"
        return [charged, Check(claim="kept", holds=False, detail=detail)]
    other = differences(record, read_json(kept, name="The ledger's record"))
    detail = f"as kept for charge {number}"
    if other:
        detail = f"differs from charge {number} in: {', '.join(other)}"
    return [charged, Check(claim="kept", holds=not other, detail=detail)]
