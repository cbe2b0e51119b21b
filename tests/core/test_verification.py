"""Certificates of every sampler verify.

And any change to a claim that can be recomputed is caught.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.exponential.samplers import Sampler
from expmech.ledger.verification import verify_certificate

ROWS = np.array([[0.2], [0.4], [0.9], [0.1]])
BOX = em.Box([0.0], [1.0], bits=8)
SAMPLERS: list[Sampler] = [
    em.Rejection(),
    em.Tabulated(),
    em.ConstantTabulated(),
    em.Separable(),
    em.BoxTree(),
    em.ConfAtomPerfect(),
    em.RandomAtomPerfect([[0.25], [0.75]]),
    em.ConfAtomAndRuntimePerfect(mode="pad"),
    em.ConfAtomAndRuntimePerfect(mode="constant"),
    em.Metropolis(pure=True),
    em.Metropolis(delta=1e-6),
    em.Metropolis(steps=50, proposal="laplace"),
]


def certificates() -> list[em.Certificate]:
    mechanism = em.ExponentialMechanism(loss=em.losses.L1Mean(ROWS), domain=BOX)
    custom = em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - 0.3), sensitivity=0.1, domain=BOX, bound=1.0
    )
    scores = em.ExponentialMechanism(
        loss=em.losses.Scores([1, 5, 2]), sensitivity=1, domain=em.Candidates(["a", "b", "c"])
    )
    noisy = [
        em.NoisyMean.from_rows(ROWS, lower=[0.0], upper=[1.0], adjacency=kind)
        for kind in ("replace", "add-remove")
    ]
    directions = [
        em.PrincipalDirection.from_rows(np.eye(3), n_components=2, variances=True, adjacency=kind)
        for kind in ("replace", "add-remove")
    ]
    return [
        *(mechanism.certificate(epsilon=0.1, sampler=sampler) for sampler in SAMPLERS),
        custom.certificate(epsilon=2.0),
        scores.certificate(epsilon=1.0),
        *(one.certificate(epsilon=0.1) for one in (*directions, *noisy)),
    ]


def failures(certificate: em.Certificate) -> set[str]:
    return {check.claim for check in verify_certificate(certificate) if not check.holds}


@pytest.mark.parametrize(
    "certificate", certificates(), ids=lambda certificate: str(certificate.sampler["sampler"])
)
def test_every_certificate_stands_and_no_altered_one_does(certificate: em.Certificate) -> None:
    assert failures(certificate) == set()
    changes: list[tuple[str, Any, str]] = [
        ("epsilon", certificate.epsilon / 2, "eta"),
        ("epsilon", certificate.epsilon * 1.01, "eta"),
        ("sensitivity", certificate.sensitivity * 1.001, "eta"),
        ("eta", certificate.eta * (1 + 1e-9), "eta"),
        ("delta", certificate.delta / 2 + 1e-9, "delta"),
        ("timing", "instant", "timing"),
        ("kind", "study, not a release", "kind"),
        ("randomness", "dice", "kind"),
        ("version", "0.0.0", "version"),
        ("adjacency", "friends", "adjacency"),
        ("epsilon", -1.0, "budget"),
        ("delta", 1.0, "budget"),
        ("domain", certificate.domain | {"kind": "Torus"}, "domain"),
        ("sampler", {"sampler": "Guess"}, "timing"),
        ("sensitivity", 0.0, "fields" if certificate.sampler["sampler"] == "NoisyMean" else "eta"),
    ]
    for name, value, claim in changes:
        assert claim in failures(dataclasses.replace(certificate, **{name: value})), (name, value)
    for name in ("steps", "rounds"):
        if name in certificate.sampler:
            fewer = certificate.sampler | {name: certificate.sampler[name] - 1}
            altered = failures(dataclasses.replace(certificate, sampler=fewer))
            assert altered & {"steps", "rounds", "delta"}


def test_a_noisy_sum_cannot_pass_for_the_other_adjacency() -> None:
    certificate = certificates()[-1]
    assert certificate.adjacency == "add-remove"
    assert {"sums", "public count"} <= failures(
        dataclasses.replace(certificate, adjacency="replace")
    )
    assert "sensitivity" in failures(
        dataclasses.replace(certificate, domain=certificate.domain | {"bits": 31})
    )
    assert failures(dataclasses.replace(certificate, domain={"kind": "Mean"})) == {"fields"}
