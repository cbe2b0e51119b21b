"""`expmech verify`: recompute what a certificate claims."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from expmech.cli.common import FALSE, complaints, digest, output, user_errors
from expmech.cli.options import Json
from expmech.errors import ExpmechError, ParameterError
from expmech.ledger import Ledger
from expmech.release import Certificate
from expmech.release.verification import verify_certificate, verify_value
from expmech.samplers import Check

_FILE_HELP = "A certificate, or a file written by release --output."


def verify(
    file: Annotated[Path, typer.Argument(metavar="CERT.json", help=_FILE_HELP)],
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Also look for the certificate in this ledger.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute every claim of a certificate that follows from its other fields."""
    with user_errors():
        certificate, checks = _whole(file)
        checks += verify_certificate(certificate)
        if ledger is not None:
            checks.append(_charged(certificate, Ledger(ledger)))
    stands = all(check.holds for check in checks)
    if as_json:
        output.print_json(
            json.dumps(
                {"stands": stands, "checks": [dataclasses.asdict(check) for check in checks]}
            )
        )
    else:
        for check in checks:
            output.print(
                f"{'ok   ' if check.holds else 'FALSE'} {check.claim:<12} {check.detail}",
                markup=False,
            )
    if not stands:
        wrong = ", ".join(check.claim for check in checks if not check.holds)
        complaints.print(
            f"error: the certificate does not stand: {wrong}. It was altered or is damaged.",
            style="red",
            markup=False,
        )
        raise typer.Exit(FALSE)


def _whole(file: Path) -> tuple[Certificate, list[Check]]:
    """Read a certificate; one that is malformed does not stand."""
    try:
        return _read(file)
    except RecursionError:
        problem = f"{file} is nested too deeply to be a certificate."
    except ExpmechError as error:
        problem = str(error)
    complaints.print(f"error: {problem}", style="red", markup=False)
    raise typer.Exit(FALSE)


def _read(file: Path) -> tuple[Certificate, list[Check]]:
    """Read a certificate, bare or in the record of a release: digest and value are then checked."""
    text = file.read_text(errors="replace")
    try:
        record: Any = json.loads(text)
    except json.JSONDecodeError:
        raise ParameterError(f"{file} must be a certificate in JSON; it is not.") from None
    if not isinstance(record, dict) or "certificate" not in record:
        return Certificate.from_json(text), []
    detail = "of value, statement and certificate, as they were written"
    written = Check(claim="digest", holds=record.get("digest") == digest(record), detail=detail)
    certificate = Certificate.from_json(json.dumps(record["certificate"]))
    value = record.get("value")
    values = list(value.values()) if "groups" in record and isinstance(value, dict) else [value]
    return certificate, [written, *(verify_value(certificate, one) for one in values)]


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
