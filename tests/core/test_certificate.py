"""Certificates round-trip, read well and hold nothing confidential."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expmech as em
from expmech.core.errors import ParameterError

ROWS = np.random.default_rng(0).beta(5, 5, (100, 2))
SAMPLERS: list[Any] = [
    "auto",
    em.Rejection(em.Uniform()),
    em.ConfAtomPerfect(0.5),
    em.ConfAtomPerfect(0.5, center=[0.31415926, 0.27182818]),
    em.RandomAtomPerfect([[0.2, 0.3], [0.5, 0.5]]),
    em.ConfAtomAndRuntimePerfect("constant"),
    em.ConfAtomAndRuntimePerfect("pad"),
    em.Metropolis(delta=1e-6),
    em.Metropolis(pure=True),
]
TIMING = (
    ["constant"] + ["data-dependent"] * 4 + ["constant", "data-independent", "constant", "constant"]
)


def mechanism(rows: Any = ROWS) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=em.losses.L1Mean(rows), sensitivity=0.02, domain=em.Box([0.0] * 2, [1.0] * 2, bits=20)
    )


@pytest.mark.parametrize(
    ("sampler", "timing"), list(zip(SAMPLERS, TIMING, strict=True)), ids=range(len(SAMPLERS))
)
def test_a_release_carries_a_certificate_that_round_trips(sampler: Any, timing: str) -> None:
    release = mechanism().release(epsilon=0.2, sampler=sampler)
    certificate = release.certificate
    assert release.value.shape == (2,)
    assert em.Certificate.from_json(certificate.to_json()) == certificate
    assert (certificate.kind, certificate.epsilon, certificate.timing) == ("release", 0.2, timing)
    assert certificate.delta == (
        pytest.approx(1e-6, rel=0.5)
        if isinstance(sampler, em.Metropolis) and sampler.delta
        else 0.0
    )
    card = str(certificate)
    for words in (
        "epsilon = 0.2",
        "replace adjacency",
        "operating system",
        "Box: lower",
        timing,
        "expmech 0.",
    ):
        assert words in card


@pytest.mark.parametrize("sampler", SAMPLERS, ids=range(len(SAMPLERS)))
def test_the_certificate_is_the_same_for_every_data_set(sampler: Any) -> None:
    """Nothing in it is computed from the data.

    Data sets that could not differ more give equal certificates.
    """
    certificates = {
        mechanism(rows).certificate(epsilon=0.2, sampler=sampler).to_json()
        for rows in (ROWS, 0 * ROWS, 0 * ROWS + 1)
    }
    assert len(certificates) == 1
    assert "0.314159" not in certificates.pop()


def test_sampled_values_are_a_function_of_the_seed_and_releases_are_not() -> None:
    mech = mechanism()
    one, other = (mech.sample(epsilon=1.0, size=50, seed=3) for _ in range(2))
    assert np.array_equal(one.values, other.values)
    assert not np.array_equal(one.values, mech.sample(epsilon=1.0, size=50, seed=4).values)
    assert not np.array_equal(mech.release(epsilon=1.0).value, mech.release(epsilon=1.0).value)
    with pytest.raises(TypeError, match="seed"):
        mech.release(epsilon=1.0, seed=1)  # type: ignore[call-arg]


def test_altered_certificates_are_refused() -> None:
    fields = json.loads(mechanism().certificate(epsilon=1.0).to_json())
    for change in ({"epsilon": "1"}, {"extra": 1}, {"assumptions": "none"}, {"domain": None}):
        with pytest.raises(em.ExpmechError):
            em.Certificate.from_json(json.dumps(fields | change))
    del fields["timing"]
    with pytest.raises(ParameterError, match="'timing' is missing"):
        em.Certificate.from_json(json.dumps(fields))
    with pytest.raises(ParameterError, match="must be JSON"):
        em.Certificate.from_json("{")


@settings(max_examples=50)
@given(st.floats(2.0**-20, 2.0**20), st.sampled_from(["replace", "add-remove"]), st.integers(1, 32))
def test_certificates_of_any_mechanism_round_trip(
    epsilon: float, adjacency: str, bits: int
) -> None:
    mech = em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0]),
        sensitivity=1.0,
        domain=em.Box([0.0], [1.0], bits=bits),
        lipschitz=[1.0],
        adjacency=adjacency,
    )
    certificate = mech.certificate(epsilon=epsilon)
    assert em.Certificate.from_json(certificate.to_json()) == certificate
    assert 2 * certificate.eta * certificate.sensitivity < epsilon


def test_law_lists_a_small_lattice_and_refuses_a_large_one() -> None:
    mech = em.ExponentialMechanism(
        loss=lambda i: np.array([0.0, 1.0, 2.0])[i],
        sensitivity=1.0,
        domain=em.Candidates(["a", "b", "c"]),
        bound=2.0,
    )
    points, probabilities = mech.law(epsilon=2.0)
    assert points.tolist() == ["a", "b", "c"]
    assert probabilities == pytest.approx(
        np.exp([0.0, -1.0, -2.0]) / np.exp([0.0, -1.0, -2.0]).sum(), rel=1e-6
    )
    assert mech.release(epsilon=2.0).value in ("a", "b", "c")
    with pytest.raises(em.UnsupportedError, match="fewer bits"):
        mechanism().law(epsilon=1.0)


def test_import_is_light() -> None:
    """`import expmech` loads the three core dependencies and nothing heavy."""
    code = "import sys, expmech; print(' '.join(sys.modules))"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {
        "scipy",
        "matplotlib",
        "pandas",
        "duckdb",
        "ibis",
        "sklearn",
        "opendp",
        "typer",
    } & set(modules)
