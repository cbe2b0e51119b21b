"""`expmech verify`: recompute what a certificate claims."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from expmech.cli.common import FALSE, complaints, digest, output, user_errors
from expmech.cli.options import Json
from expmech.data.units import Units
from expmech.errors import ExpmechError, ParameterError
from expmech.ledger import Ledger, exact_amount, show_amount
from expmech.release import Certificate
from expmech.release.certificate import epsilon_up
from expmech.release.verification import verify_certificate, verify_interval, verify_value
from expmech.samplers import Check

_OF_GROUPS = ("lower", "upper", "scale", "noisy")
_FILE_HELP = "A certificate, or a file written by release --output."
Told = tuple[str, list[Check]]
"""What a release is called, and what was checked of it."""

Found = tuple[str, Certificate, list[Check]]


def verify(
    file: Annotated[Path, typer.Argument(metavar="CERT.json", help=_FILE_HELP)],
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Also look for the certificate in this ledger.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute every claim of a certificate that follows from its other fields."""
    with user_errors():
        found = _whole(file)
        kept = None if ledger is None else Ledger(ledger)
        told = [_checked(name, certificate, checks, kept) for name, certificate, checks in found]
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


def _checked(
    name: str, certificate: Certificate, checks: list[Check], ledger: Ledger | None
) -> Told:
    checks = [*checks, *verify_certificate(certificate)]
    if ledger is not None:
        checks.append(_charged(certificate, ledger))
    return name, checks


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
        return _read(file)
    except RecursionError:
        problem = f"{file} is nested too deeply to be a certificate."
    except ExpmechError as error:
        problem = str(error)
    complaints.print(f"error: {problem}", style="red", markup=False)
    raise typer.Exit(FALSE)


def _read(file: Path) -> list[Found]:
    """Read a certificate, bare or in the record of a release, or the records of several."""
    text = file.read_text(errors="replace")
    try:
        record: Any = json.loads(text)
    except json.JSONDecodeError:
        raise ParameterError(f"{file} must be a certificate in JSON; it is not.") from None
    if isinstance(record, list) and record and all(isinstance(one, dict) for one in record):
        return [_of_record(one) for one in record]
    if not isinstance(record, dict) or "certificate" not in record:
        return [("", Certificate.from_json(text), [])]
    return [_of_record(record)]


def _of_record(record: dict[str, Any]) -> Found:
    """Return the certificate of a release; digest and value are checked."""
    detail = "of value, statement and certificate, as they were written"
    written = Check(claim="digest", holds=record.get("digest") == digest(record), detail=detail)
    certificate = Certificate.from_json(json.dumps(record.get("certificate")))
    values = _by_group(record, record.get("value"))
    checks = [written, *(verify_value(certificate, one) for one in values.values())]
    if "unit" in record:
        checks.append(_unit(record["unit"], certificate))
    near = record.get("accuracy")
    if isinstance(near, dict) and ("lower" in near or "upper" in near):
        parts = {name: _by_group(record, near.get(name)) for name in _OF_GROUPS if name in near}
        for group, value in values.items():
            stated = {name: each.get(group) for name, each in parts.items()}
            stated["level"] = near.get("level")
            checks.append(verify_interval(certificate, value, stated))
    return str(record.get("statement")), certificate, checks


def _unit(told: Any, certificate: Certificate) -> Check:
    """Check that the epsilon of a person is that of so many rows, as the certificate has it."""
    holds, detail = False, "not what the certificate says of people"
    try:
        units = Units(column=str(told["column"]), max_rows=int(told["max_rows"]))
        epsilon = exact_amount(str(told["epsilon"]), name="epsilon", owner="unit")
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
    entries = [
        charge.number for charge in ledger.history() if charge.certificate == certificate.to_json()
    ]
    detail = (
        f"charge {', '.join(map(str, entries))} of {ledger.path}"
        if entries
        else f"no such charge in {ledger.path}"
    )
    return Check(claim="ledger", holds=bool(entries), detail=detail)
