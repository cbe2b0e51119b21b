"""`expmech verify`: recompute what a certificate claims."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from expmech.adjacency import Adjacency
from expmech.cli.common import FALSE, complaints, digest, output, user_errors
from expmech.cli.drawing import rows_of_each
from expmech.cli.options import Json
from expmech.data.units import Units, speaks_of_units
from expmech.errors import ExpmechError
from expmech.ledger import Ledger, exact_amount, show_amount
from expmech.release import Certificate
from expmech.release.certificate import epsilon_up
from expmech.release.verification import (
    gives_interval,
    verify_certificate,
    verify_interval,
    verify_value,
)
from expmech.samplers import Check
from expmech.strict_json import differences, read_json

_OF_GROUPS = ("lower", "upper", "scale", "noisy")
_FILE_HELP = "A certificate, or a file written by release --output."
_FIELDS = ("statement", "value", "accuracy", "certificate", "digest")
_OPTIONAL = ("groups", "unit", "charge", "left")
Told = tuple[str, list[Check]]
"""What a release is called, and what was checked of it."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A certificate of the file, and the record of the release that it stands in, if in one."""

    certificate: Certificate
    record: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """What the release is called."""
        return "" if self.record is None else str(self.record.get("statement"))


def verify(
    file: Annotated[Path, typer.Argument(metavar="CERT.json", help=_FILE_HELP)],
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Also compare with what this ledger charged and keeps."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute every claim of a certificate that follows from its other fields."""
    with user_errors():
        found = _whole(file)
        kept = None if ledger is None else Ledger(ledger)
        told = [(one.name, check_release(one, kept)) for one in found]
        told[0][1].extend(_charged_once(found))
    wrong = [check.claim for _, checks in told for check in checks if not check.holds]
    if as_json:
        output.print_json(json.dumps(_described(told, stands=not wrong)))
    else:
        for name, checks in told:
            _print(name if len(told) > 1 else "", checks)
    if wrong:
        complaints.print(
            f"error: the certificate does not stand: {', '.join(wrong)}. It was altered or is"
            " damaged.",
            style="red",
            markup=False,
        )
        raise typer.Exit(FALSE)


def check_release(found: Found, ledger: Ledger | None) -> list[Check]:
    """Return everything that is checked of a release; a ledger is compared where there is one."""
    certificate, record = found.certificate, found.record
    checks = [] if record is None else _check_record(record, certificate)
    checks += verify_certificate(certificate)
    if ledger is not None and record is None:
        checks.append(_charged(certificate, ledger))
    elif ledger is not None and record is not None:
        checks += _compared(record, certificate, ledger)
    return checks


def _charged_once(found: list[Found]) -> list[Check]:
    """Check that no two releases of a file are of one charge: one charge gives one value."""
    numbers = [one.record["charge"] for one in found if one.record and "charge" in one.record]
    twice = sorted({str(number) for number in numbers if numbers.count(number) > 1})
    detail = f"charge {', '.join(twice)} stands twice in the file"
    return [Check(claim="charge", holds=False, detail=detail)] if twice else []


def _described(told: list[Told], *, stands: bool) -> dict[str, Any]:
    """Return the result for machines; several releases each by its statement."""
    described = [
        {"statement": name, "checks": [dataclasses.asdict(check) for check in checks]}
        for name, checks in told
    ]
    if len(described) == 1:
        return {"stands": stands, "checks": described[0]["checks"]}
    return {"stands": stands, "releases": described}


def _print(title: str, checks: list[Check]) -> None:
    if title:
        output.print(title, style="bold", markup=False)
    for check in checks:
        mark = "ok   " if check.holds else "FALSE"
        output.print(f"{mark} {check.claim:<12} {check.detail}", markup=False)


def _whole(file: Path) -> list[Found]:
    """Read a certificate; one that is malformed does not stand."""
    try:
        return read_releases(file.read_bytes().decode(), name=str(file))
    except UnicodeDecodeError:
        problem = f"{file} must be JSON; it is not."
    except ExpmechError as error:
        problem = str(error)
    complaints.print(f"error: {problem}", style="red", markup=False)
    raise typer.Exit(FALSE)


def read_releases(text: str, *, name: str) -> list[Found]:
    """Read a certificate, bare or in the record of a release, or the records of several."""
    record: Any = read_json(text, name=name)
    if isinstance(record, list) and record and all(isinstance(one, dict) for one in record):
        return [_of_record(one) for one in record]
    if not isinstance(record, dict) or "certificate" not in record:
        return [Found(certificate=Certificate.from_json(text))]
    return [_of_record(record)]


def _of_record(record: dict[str, Any]) -> Found:
    certificate = Certificate.from_json(json.dumps(record.get("certificate")))
    return Found(certificate=certificate, record=record)


def _check_record(record: dict[str, Any], certificate: Certificate) -> list[Check]:
    """Check the digest, and what the record says beside its certificate."""
    detail = "of value, statement and certificate, as they were written"
    written = Check(claim="digest", holds=record.get("digest") == digest(record), detail=detail)
    wrong = _wrong_fields(record)
    if wrong:
        return [written, Check(claim="record", holds=False, detail=wrong)]
    values = _by_group(record, record["value"])
    checks = [written, _groups(record, certificate), _unit(record.get("unit"), certificate)]
    checks.append(_statement(record, certificate))
    checks += [verify_value(certificate, one) for one in values.values()]
    return [*checks, *_intervals(record, certificate, values)]


def _wrong_fields(record: dict[str, Any]) -> str:
    """Return what is wrong with the fields of a record; empty where they are as they should be."""
    missing = [name for name in _FIELDS if name not in record]
    unknown = [name for name in record if name not in (*_FIELDS, *_OPTIONAL)]
    if missing or unknown:
        return f"missing: {', '.join(missing) or 'nothing'}; unknown: {', '.join(unknown) or 'no'}"
    near, charge = record["accuracy"], record.get("charge", 1)
    if not isinstance(near, dict) or not set(near) <= {"words", "level", *_OF_GROUPS}:
        return "`accuracy` must hold words, and an interval where there is one"
    if set(near) != {"words"} and not {"words", "level", "lower", "upper", "scale"} <= set(near):
        return "`accuracy` must say the level, both ends and the scale of an interval"
    if type(charge) is not int or charge < 1 or ("charge" in record) != ("left" in record):
        return "`charge` must be the number of a charge, and stand with what is left"
    return ""


def _groups(record: dict[str, Any], certificate: Certificate) -> Check:
    """Check that there is one value, and one interval if any, for each of the groups named."""
    groups = record.get("groups")
    if groups is None:
        holds = "groups" not in record
        return Check(claim="groups", holds=holds, detail="none")
    near = record["accuracy"]
    ends = [near[part] for part in _OF_GROUPS if isinstance(near.get(part), dict)]
    holds = (
        isinstance(groups, list)
        and bool(groups)
        and all(isinstance(one, str) for one in groups)
        and len(set(groups)) == len(groups)
        and isinstance(record["value"], dict)
        and all(set(part) == set(groups) for part in (record["value"], *ends))
        and certificate.adjacency == Adjacency.ADD_REMOVE
    )
    return Check(claim="groups", holds=holds, detail="one value for each that is named")


def _statement(record: dict[str, Any], certificate: Certificate) -> Check:
    """Check that the release is called what its certificate, groups and units make of it."""
    start = certificate.statistic + (" by " if "groups" in record else "")
    unit = record.get("unit")
    end = ""
    if isinstance(unit, dict):
        end = rows_of_each(unit.get("max_rows"), unit.get("column"))
    statement = str(record["statement"])
    holds = statement.startswith(start) and statement.endswith(end)
    if "groups" not in record:
        holds = statement == start + end
    return Check(claim="statement", holds=holds, detail=f"{statement!r}")


def _intervals(
    record: dict[str, Any], certificate: Certificate, values: dict[str, Any]
) -> list[Check]:
    """Check the interval of each value: there is one if and only if the mechanism gives one."""
    near = record["accuracy"]
    stated = [name for name in ("level", *_OF_GROUPS) if name in near]
    if not stated and not gives_interval(certificate):
        return []
    parts = {name: _by_group(record, near[name]) for name in _OF_GROUPS if name in near}
    checks = []
    for group, value in values.items():
        of_group = {name: each.get(group) for name, each in parts.items()}
        of_group["level"] = near.get("level")
        checks.append(verify_interval(certificate, value, of_group))
    return checks


def _unit(told: Any, certificate: Certificate) -> Check:
    """Check that the epsilon of a person is that of so many rows, as the certificate has it."""
    holds, detail = False, "not what the certificate says of people"
    if told is None:
        holds = not speaks_of_units(certificate.assumptions)
        return Check(claim="unit", holds=holds, detail="one row" if holds else detail)
    try:
        units = Units(column=told["column"], max_rows=told["max_rows"])
        epsilon = exact_amount(told["epsilon"], name="epsilon", owner="unit")
        said = set(units.notes(epsilon)) <= set(certificate.assumptions)
        holds = said and epsilon_up(epsilon / units.max_rows) == certificate.epsilon
    except (KeyError, TypeError, ValueError, ArithmeticError):
        pass
    if holds:
        detail = f"{units.max_rows} rows of each {units.column}: epsilon = {show_amount(epsilon)}"
    return Check(claim="unit", holds=holds, detail=detail)


def _by_group(record: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return what is said of each group; without groups there is one, without a name."""
    return value if "groups" in record and isinstance(value, dict) else {"": value}


def _charged(certificate: Certificate, ledger: Ledger) -> Check:
    """Look for a bare certificate among the charges."""
    entries = [
        charge.number for charge in ledger.history() if charge.certificate == certificate.to_json()
    ]
    detail = (
        f"charge {', '.join(map(str, entries))} of {ledger.path}"
        if entries
        else f"no such charge in {ledger.path}"
    )
    return Check(claim="ledger", holds=bool(entries), detail=detail)


def _compared(record: dict[str, Any], certificate: Certificate, ledger: Ledger) -> list[Check]:
    """Compare a release with its charge, and with the record that the ledger keeps of it.

    What differs is named; what the ledger holds instead is not shown.
    """
    number = record.get("charge")
    charge = next((one for one in ledger.history() if one.number == number), None)
    if charge is None:
        detail = f"the release names no charge of {ledger.path}"
        return [Check(claim="ledger", holds=False, detail=detail)]
    made = {
        "certificate": charge.certificate == certificate.to_json(),
        "statement": charge.statement == record.get("statement"),
        "groups": list(charge.parallel) == record.get("groups", []),
    }
    other = [name for name, same in made.items() if not same]
    detail = f"charge {number} of {ledger.path}"
    if other:
        detail += f" was made for another release: {', '.join(other)}"
    return [
        Check(claim="ledger", holds=not other, detail=detail),
        _as_kept(record, ledger.outbox().get(charge.number), detail=f"charge {number}"),
    ]


def _as_kept(record: dict[str, Any], kept: str | None, *, detail: str) -> Check:
    if kept is None:
        detail = f"the ledger keeps no value of {detail}: none was released from it"
        return Check(claim="kept", holds=False, detail=detail)
    other = differences(record, read_json(kept, name="The ledger's record"))
    detail = f"differs from {detail} in: {', '.join(other)}" if other else f"as kept for {detail}"
    return Check(claim="kept", holds=not other, detail=detail)
