"""A certificate of every kind with one field changed, or one assumption lost, does not stand."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from support.certificates import every_certificate

import expmech as em
from expmech.certificates.certificate import digest_of
from expmech.exponential.samplers import SAMPLERS
from expmech.ledger.verification import MECHANISMS, verify_certificate

CERTIFICATES = every_certificate()
NO_NUMBERS: tuple[Any, ...] = (math.nan, math.inf, -math.inf, None, True, False, "x", [], {})
SIGNED = ("lower", "upper", "centers", "shift", "log_floor", "log_floors", "log_beta", "base")


def failures(certificate: em.Certificate) -> list[str]:
    return [check.claim for check in verify_certificate(certificate) if not check.holds]


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Return every number of a value of JSON, with the way to it."""
    if isinstance(value, (dict, list)):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(entry, (*path, key))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def changed(certificate: em.Certificate, path: tuple[Any, ...], new: Any) -> em.Certificate:
    fields = copy.deepcopy(dataclasses.asdict(certificate))
    inner: Any = fields
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return em.Certificate(**fields)


def test_there_is_a_certificate_of_every_mechanism_and_sampler() -> None:
    assert {one.mechanism for one in CERTIFICATES.values()} == set(MECHANISMS)
    drawn = {one.sampler["sampler"] for one in CERTIFICATES.values()}
    assert set(SAMPLERS) <= drawn


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_stands_as_written_and_as_read(name: str) -> None:
    certificate = CERTIFICATES[name]
    assert failures(certificate) == []
    assert failures(em.Certificate.from_json(certificate.to_json())) == []


@pytest.mark.parametrize("name", CERTIFICATES)
def test_what_is_no_number_stands_in_no_field(name: str) -> None:
    """NaN, infinities, texts, truths and nothing, in the place of every number at every depth."""
    certificate = CERTIFICATES[name]
    untold: list[tuple[str, ...]] = [("domain", "base", "least")]  # a measure need not tell it
    if certificate.sampler.get("declared"):
        untold.append(("sampler", "energy_range"))  # nothing rests on it where beta is declared
    for path, value in numbers(json.loads(certificate.to_json())):
        for new in (*NO_NUMBERS, str(value), [value]):
            if new is None and path in untold:
                continue
            assert failures(changed(certificate, path, new)), (path, new)
        if not set(path) & set(SIGNED):
            assert failures(changed(certificate, path, -abs(value) - 1)), path


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_file_with_what_is_no_number_is_refused_or_does_not_stand(name: str) -> None:
    certificate = CERTIFICATES[name]
    for field in ("epsilon", "delta", "sensitivity", "loss_error", "eta"):
        for new in (math.nan, math.inf, "1", None, True):
            fields = json.loads(certificate.to_json()) | {field: new}
            with pytest.raises(em.ExpmechError):
                em.Certificate.from_json(json.dumps(fields))


@pytest.mark.parametrize("name", CERTIFICATES)
def test_no_assumption_can_be_lost_changed_or_said_twice(name: str) -> None:
    certificate = CERTIFICATES[name]
    stated = certificate.assumptions
    for k, text in enumerate(stated):
        for new in (
            stated[:k] + stated[k + 1 :],
            (*stated[:k], f"{text}.", *stated[k + 1 :]),
            (*stated, text),
        ):
            altered = dataclasses.replace(certificate, assumptions=new)
            assert "assumptions" in failures(altered), text
    assert "assumptions" in failures(dataclasses.replace(certificate, assumptions_digest=""))


OF_THE_DATA = (
    "declared by the caller",
    "the loss is at least",
    "the loss moves by",
    "the loss is at most",
    "the computed loss is",
    "no row holds nan",
    "a note of the source",
)


@pytest.mark.parametrize("name", CERTIFICATES)
def test_an_assumption_that_other_fields_tell_is_missed_although_the_digest_is_renewed(
    name: str,
) -> None:
    """What the mechanism, the sampler and their options rest on; not what is said of the loss."""
    certificate = CERTIFICATES[name]
    told = [one for one in certificate.assumptions if not one.startswith(OF_THE_DATA)]
    assert told
    for text in told:
        rest = tuple(one for one in certificate.assumptions if one != text)
        altered = dataclasses.replace(
            certificate, assumptions=rest, assumptions_digest=digest_of(rest)
        )
        assert "assumptions" in failures(altered), text


def test_a_monotone_choice_needs_its_assumption() -> None:
    monotone = [
        one
        for one in CERTIFICATES.values()
        if one.mechanism == "PermuteAndFlip" and one.sampler["monotone"]
    ]
    assert monotone
    for certificate in monotone:
        assert any("move the same way" in text for text in certificate.assumptions)
        rest = tuple(one for one in certificate.assumptions if "move the same way" not in one)
        altered = dataclasses.replace(
            certificate, assumptions=rest, assumptions_digest=digest_of(rest)
        )
        assert {"monotone", "assumptions"} <= set(failures(altered))


def test_a_certificate_of_an_earlier_version_is_read() -> None:
    certificate = next(iter(CERTIFICATES.values()))
    fields = json.loads(certificate.to_json())
    del fields["assumptions_digest"]
    found = em.Certificate.from_json(json.dumps(fields))
    assert found.assumptions == certificate.assumptions
    assert failures(found) == ["assumptions"]
