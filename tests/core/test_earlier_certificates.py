"""Certificates of an earlier version, which called post-processing `finish`, are read and verified.

The file beside this one was written before the field was renamed: one certificate of each
mechanism, and of the exponential mechanism one of each sampler.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import expmech as em
from expmech.ledger.verification import MECHANISMS, verify_certificate

EARLIER: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "earlier_certificates.json").read_text()
)


def named(fields: dict[str, Any]) -> str:
    return f"{fields['mechanism']}-{fields['sampler']['sampler']}-{fields['domain']['kind']}"


NEWER = {"KNorm", "RecursiveQuantiles", "UnknownGroups", "PrivateBounds"}  # than the file


def test_every_mechanism_has_an_earlier_certificate() -> None:
    assert {fields["mechanism"] for fields in EARLIER} == {*MECHANISMS} - NEWER
    assert all("finish" in fields and "postprocessing" not in fields for fields in EARLIER)


@pytest.mark.parametrize("fields", EARLIER, ids=named)
def test_an_earlier_certificate_stands(fields: dict[str, Any]) -> None:
    certificate = em.Certificate.from_json(json.dumps(fields))
    wrong = [check for check in verify_certificate(certificate) if not check.holds]
    assert [check for check in wrong if check.claim != "version"] == []
    assert certificate.postprocessing == fields["finish"]
    again = em.Certificate.from_json(certificate.to_json())
    assert again == certificate and "finish" not in json.loads(certificate.to_json())


@pytest.mark.parametrize("fields", EARLIER, ids=named)
def test_an_earlier_certificate_that_was_altered_does_not(fields: dict[str, Any]) -> None:
    altered = fields | {"epsilon": fields["epsilon"] / 2, "eta": fields["eta"] * 2}
    checks = verify_certificate(em.Certificate.from_json(json.dumps(altered)))
    assert not all(check.holds for check in checks if check.claim != "version")
    both = json.dumps(fields | {"postprocessing": fields["finish"]})
    with pytest.raises(em.ParameterError, match="unknown"):
        em.Certificate.from_json(both)
