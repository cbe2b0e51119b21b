"""What certificates of permute-and-flip and of lists claim, and changes that are found out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from expmech.certificates.certificate import Certificate
from expmech.core.errors import ExpmechError, UnsupportedError
from expmech.ledger.verification import verify_certificate
from expmech.mechanisms.selection.permute_and_flip import PermuteAndFlip
from expmech.mechanisms.selection.top_k import TopK


def stands(certificate: Certificate, **changes: Any) -> bool:
    return all(check.holds for check in verify_certificate(replace(certificate, **changes)))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, Fraction(1, 3)])
@pytest.mark.parametrize("monotone", [False, True])
def test_a_certificate_of_permute_and_flip_can_be_recomputed(
    epsilon: float | Fraction, monotone: bool
) -> None:
    best = PermuteAndFlip.from_scores([1.0, 2.0, 4.0], sensitivity=0.7, monotone=monotone)
    certificate = best.certificate(epsilon=epsilon)
    assert stands(certificate)
    assert not stands(certificate, eta=2 * certificate.eta)
    assert not stands(certificate, epsilon=0.9 * certificate.epsilon)
    assert not stands(certificate, sensitivity=1.4)
    assert not stands(certificate, timing="data-dependent")
    assert not stands(certificate, sampler=certificate.sampler | {"monotone": not monotone})
    assert not stands(certificate, sampler=certificate.sampler | {"coins": 2})
    assert not stands(certificate, domain=certificate.domain | {"count": -3})


@pytest.mark.parametrize("epsilon", [0.1, 1.0, Fraction(1, 3)])
@pytest.mark.parametrize("objective", ["worst", "mean"])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_certificate_of_a_list_can_be_recomputed(
    epsilon: float | Fraction, objective: str, adjacency: str
) -> None:
    top = TopK.from_counts([3, 2, 1], k=2, objective=objective, adjacency=adjacency)
    certificate = top.certificate(epsilon=epsilon)
    assert stands(certificate)
    assert not stands(certificate, eta=1.01 * certificate.eta)
    assert not stands(certificate, epsilon=0.9 * certificate.epsilon)
    assert not stands(certificate, timing="constant")
    assert not stands(certificate, domain=certificate.domain | {"k": 4})
    assert not stands(certificate, sampler=certificate.sampler | {"one_item_each": True})
    other = "replace" if adjacency == "add-remove" else "add-remove"
    assert not stands(certificate, adjacency=other)


def test_the_public_half_does_not_look_at_the_data_and_plans_are_public() -> None:
    made = [
        (PermuteAndFlip.from_scores(scores, sensitivity=1), TopK.from_counts(counts, k=2))
        for scores, counts in (([0.0, 1.0, 5.0], [7, 0, 2]), ([3.0, 3.0, 3.0], [1, 1, 1]))
    ]
    for one, other in zip(*made, strict=True):
        assert one.certificate(epsilon=1.0) == other.certificate(epsilon=1.0)
        assert one.plan(1.0) == other.plan(1.0)
    flip, top = made[0]
    assert flip.plan(1.0, timing="constant").chosen == "PermuteAndFlip"
    assert top.plan(1.0).chosen == "TopK"
    assert top.plan(1.0, timing="constant").chosen is None
    with pytest.raises(UnsupportedError, match="depends on the data"):
        top.prepare(epsilon=1.0, timing="constant")
    with pytest.raises(ExpmechError, match="must be 'auto'"):
        flip.prepare(epsilon=1.0, sampler="BoxTree")
