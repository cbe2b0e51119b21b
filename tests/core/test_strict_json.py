"""What is read as JSON, what is refused, and where two values differ."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import expmech as em
from expmech.core.strict_json import differences, read_json
from expmech.ledger.verification import verify_value

REFUSED = {
    '{"a": 1, "a": 1}': "the name 'a' stands twice",
    '{"b": [{"a": 1, "c": 2, "a": 3}]}': "the name 'a' stands twice",
    "NaN": "NaN is no number",
    "[Infinity]": "Infinity is no number",
    "[-Infinity]": "-Infinity is no number",
    "1e999": "beyond what float64 holds",
    "[-1e400]": "beyond what float64 holds",
    "9" * 1001: "more than 1000 digits",
    "9" * 5000: "more than 1000 digits",
    "[" * 33 + "]" * 33: "more than 32 levels",
    '{"a":' * 40 + "1" + "}" * 40: "more than 32 levels",
    "[" * 200000: "must be JSON",
    "{} {}": "it is not",
    "{} x": "it is not",
    "": "it is not",
    "{'a': 1}": "it is not",
    "[1,]": "it is not",
    '"\\ud800"': "no Unicode",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_two_readers_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises(em.ExpmechError, match="`x` must be JSON") as caught:
        read_json(text, name="`x`")
    assert REFUSED[text] in str(caught.value)
    assert len(str(caught.value)) < 100 and caught.value.__context__ is None


def test_what_this_program_writes_is_read() -> None:
    told: Any = {"a": [1, -0.5, 1e300, None, True, "é\n", {"b": {}}], "c": 2**300, "d": "9" * 2000}
    deep: Any = 1
    for _ in range(31):
        deep = [deep]
    whole: list[Any] = [told, deep, 0, "", [], {}]
    for value in whole:
        assert differences(read_json(json.dumps(value), name="x"), value) == []


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": 0.0}, {"a": -0.0}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({}, {"a": None}, ["a"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a[2]"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "d": 2}}, ["a.b", "a.c", "a.d"]),
        ({"a": {}}, {"a": []}, ["a"]),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}, []),
    ],
)
def test_a_difference_is_named_by_the_way_to_it(one: Any, other: Any, where: list[str]) -> None:
    assert differences(one, other) == where


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_no_value_of_a_list_or_a_lattice_is_nan_or_infinite(wrong: float) -> None:
    """In Python too, where no reader of JSON has refused it before."""
    flip = em.PermuteAndFlip.from_scores([1.0, 2.0], sensitivity=1).certificate(epsilon=1.0)
    lists = em.ExponentialMechanism(
        loss=em.losses.Scores([1, 5]), sensitivity=1, domain=em.Candidates([1.5, 2.5])
    ).certificate(epsilon=1.0)
    box = em.ExponentialMechanism(
        loss=em.losses.L1Mean([[0.5], [0.25]]), domain=em.Box([0.0], [1.0])
    ).certificate(epsilon=1.0)
    mean = em.NoisyMean.from_rows([[0.5]], lower=[0.0], upper=[1.0]).certificate(epsilon=1.0)
    for certificate in (flip, lists, box, mean):
        for value in (wrong, [wrong], [0.5, wrong], [[wrong]]):
            assert not verify_value(certificate, value).holds, certificate.mechanism
