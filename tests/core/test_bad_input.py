"""Bad input gets one clear error that names the parameter, the rule and the value.

And nothing confidential.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.core.errors import (
    EnvelopeViolatedError,
    LossError,
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
)

BOX = em.Box([0.0], [1.0])
SECRET = 0.7654321


def mechanism(**changes: Any) -> em.ExponentialMechanism:
    arguments: dict[str, Any] = {
        "loss": lambda y: np.abs(y[:, 0] - SECRET),
        "sensitivity": 0.01,
        "domain": BOX,
        "lipschitz": [1.0],
    }
    return em.ExponentialMechanism(**arguments | changes)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 2.0**-21, float("nan"), float("inf"), 2.0**21])
def test_epsilon_outside_its_range_is_refused(epsilon: float) -> None:
    with pytest.raises(
        ParameterError,
        match=(
            r"`epsilon` of ExponentialMechanism must be a finite number from 2\^-20 to 2\^20; got"
        ),
    ):
        mechanism().release(epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [True, "1", None, 1j])
def test_epsilon_of_the_wrong_type_is_refused(epsilon: Any) -> None:
    with pytest.raises(ParameterTypeError, match="`epsilon` of ExponentialMechanism"):
        mechanism().release(epsilon=epsilon)


BAD_MECHANISMS: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"sensitivity": 0.0},
        ParameterError,
        "`sensitivity` of ExponentialMechanism must be a positive finite number; got 0.0.",
    ),
    ({"sensitivity": -2.0}, ParameterError, "`sensitivity`"),
    ({"sensitivity": float("nan")}, ParameterError, "`sensitivity`"),
    ({"sensitivity": "a"}, ParameterTypeError, "`sensitivity`"),
    ({"sensitivity": None}, ParameterError, "`sensitivity`"),
    ({"loss": 3}, ParameterTypeError, "`loss` of ExponentialMechanism must be callable; got int."),
    ({"domain": [0, 1]}, ParameterTypeError, "`domain`"),
    ({"adjacency": "swap"}, ParameterError, "must be one of 'replace', 'add-remove'; got 'swap'"),
    (
        {"lipschitz": [1.0, 1.0]},
        ParameterError,
        "`lipschitz` of ExponentialMechanism must be a list of 1 finite numbers",
    ),
    ({"lipschitz": [-1.0]}, ParameterError, "`lipschitz`"),
    ({"loss_error": 0.0}, ParameterError, "`loss_error`"),
    ({"loss_error": -1.0}, ParameterError, "`loss_error`"),
    ({"bound": -1.0}, ParameterError, "`bound`"),
    ({"gap": -1.0}, ParameterError, "`gap`"),
    ({"growth": "steep"}, ParameterTypeError, "`growth`"),
    (
        {"growth": em.Growth(center=np.zeros(2), rates=np.ones(2))},
        ParameterError,
        "`growth.center`",
    ),
    (
        {"growth": em.Growth(center=np.zeros(1), rates=np.zeros(1))},
        ParameterError,
        "`growth.rates`",
    ),
    ({"loss": lambda y: y}, LossError, "shape (29,); got shape (29, 1)"),
    ({"loss": lambda y: 0.5}, LossError, "got shape ()"),
    ({"loss": lambda y: y[:, 0] * 1j}, LossError, "got dtype complex128"),
    ({"loss": lambda y: y[:, 0].astype(np.float32)}, LossError, "got dtype float32"),
    ({"loss": lambda y: y[:, 0] > 0.5}, LossError, "got dtype bool"),
    ({"loss": lambda y: np.full(len(y), np.nan)}, LossError, "nan or infinity"),
    ({"loss": lambda y: np.full(len(y), np.inf)}, LossError, "nan or infinity"),
    ({"loss": lambda y: -1.0 - y[:, 0]}, LossError, "declared range"),
    ({"loss": lambda y: 9.0 + y[:, 0]}, LossError, "declared range"),
]


@pytest.mark.parametrize(
    ("changes", "error", "words"), BAD_MECHANISMS, ids=[words for *_, words in BAD_MECHANISMS]
)
def test_bad_mechanisms_are_refused_before_any_randomness(
    changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        mechanism(**changes)
    assert words in str(caught.value)
    assert str(SECRET) not in str(caught.value)


BAD_SAMPLERS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: em.ConfAtomPerfect(0.0),
        ParameterError,
        "`k` of ConfAtomPerfect must be a number strictly between 0 and 1; got 0.0.",
    ),
    (lambda: em.ConfAtomPerfect(1.0), ParameterError, "`k` of ConfAtomPerfect"),
    (lambda: em.ConfAtomPerfect(True), ParameterTypeError, "`k` of ConfAtomPerfect"),
    (
        lambda: em.ConfAtomPerfect(proposal="gauss"),
        ParameterError,
        "must be one of 'laplace', 'uniform'; got 'gauss'",
    ),
    (lambda: em.ConfAtomPerfect(factory=1), ParameterTypeError, "`factory`"),  # type: ignore[arg-type]
    (lambda: em.RandomAtomPerfect([], 0.5), ParameterTypeError, "`points`"),
    (lambda: em.RandomAtomPerfect([[np.nan]], 0.5), ParameterError, "`points`"),
    (lambda: em.RandomAtomPerfect([0.5], 1.5), ParameterError, "`k` of RandomAtomPerfect"),
    (lambda: em.ConfAtomAndRuntimePerfect("fast"), ParameterError, "`mode`"),
    (lambda: em.Metropolis(), ParameterError, "exactly one of `delta`, `steps` and `pure=True`"),
    (lambda: em.Metropolis(delta=1e-9, pure=True), ParameterError, "exactly one"),
    (lambda: em.Metropolis(delta=2.0), ParameterError, "`delta`"),
    (lambda: em.Metropolis(steps=0), ParameterError, "`steps`"),
    (lambda: em.Rejection("uniform"), ParameterTypeError, "`envelope`"),  # type: ignore[arg-type]
    (lambda: em.Rejection(batch=0), ParameterError, "`batch`"),
]


@pytest.mark.parametrize(
    ("make", "error", "words"), BAD_SAMPLERS, ids=[f"{j}" for j in range(len(BAD_SAMPLERS))]
)
def test_bad_samplers_are_refused(
    make: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        make()
    assert words in str(caught.value)


def test_an_unknown_sampler_name_is_answered_with_the_list_and_a_suggestion() -> None:
    with pytest.raises(
        ParameterError,
        match=r"'auto', 'Tabulated', .*'Rejection'.*got 'Rejektion'. Did you mean 'Rejection'\?",
    ):
        mechanism().release(epsilon=1.0, sampler="Rejektion")
    with pytest.raises(ParameterTypeError, match="sampler object"):
        mechanism().release(epsilon=1.0, sampler=em.Rejection)  # type: ignore[arg-type]


UNSUPPORTED: list[tuple[dict[str, Any], Any, str]] = [
    ({}, em.ConfAtomPerfect(), "declares its growth"),
    (
        {"lipschitz": None},
        em.Metropolis(pure=True),
        "Declare one of them, or `beta`, or use Rejection",
    ),
    ({}, em.ConfAtomAndRuntimePerfect("constant"), "Declare `gap`, or use Metropolis(pure=True)"),
    (
        {"lipschitz": None},
        em.ConfAtomAndRuntimePerfect("constant"),
        "Declare `lipschitz` or `bound`",
    ),
    ({}, em.ConfAtomAndRuntimePerfect("pad"), "mode='constant' or Metropolis(pure=True)"),
    ({}, em.Tabulated(), "Use Rejection, or fewer bits"),
]


@pytest.mark.parametrize(
    ("changes", "sampler", "words"), UNSUPPORTED, ids=[str(j) for j in range(len(UNSUPPORTED))]
)
def test_what_a_problem_cannot_support_is_refused_with_reason_and_alternative(
    changes: dict[str, Any], sampler: Any, words: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        mechanism(**changes).release(epsilon=1.0, sampler=sampler)
    assert words in str(caught.value)


def test_pad_suggests_a_lattice_on_which_it_would_work() -> None:
    rows = np.full(100, 0.3)
    with pytest.raises(UnsupportedError, match=r"Box\(\.\.\., bits=(\d+)\) would do") as caught:
        em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=BOX).release(
            epsilon=0.5, sampler=em.ConfAtomAndRuntimePerfect("pad")
        )
    bits = int(str(caught.value).split("bits=")[1].split(")")[0])
    mech = em.ExponentialMechanism(
        loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0], bits=bits)
    )
    assert (
        mech.release(epsilon=0.5, sampler=em.ConfAtomAndRuntimePerfect("pad")).certificate.timing
        == "data-independent"
    )


def test_auto_refuses_what_would_take_forever_in_public_terms() -> None:
    d = 12
    mech = em.ExponentialMechanism(
        loss=lambda y: np.abs(y - 0.5).sum(1),
        sensitivity=0.001,
        domain=em.Box([0.0] * d, [1.0] * d),
        lipschitz=[1.0] * d,
    )
    with pytest.raises(UnsupportedError, match="no affordable exact sampler"):
        mech.release(epsilon=1.0)


def test_a_violated_envelope_raises_one_fixed_sentence() -> None:
    texts = set()
    for center in (0.1, 0.9):
        lying = em.Growth(center=np.array([center]), rates=np.array([5.0]))
        mech = mechanism(growth=lying)
        with pytest.raises(EnvelopeViolatedError) as caught:
            mech.sample(epsilon=0.05, size=1000, sampler=em.Rejection(em.ProductLaplace()), seed=0)
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_a_loss_that_turns_bad_during_the_draw_is_stopped() -> None:
    calls = {"n": 0}

    def loss(y: Any) -> Any:
        calls["n"] += 1
        return np.full(len(y), np.nan) if calls["n"] > 1 else np.abs(y[:, 0] - SECRET)

    with pytest.raises(LossError, match="nan or infinity"):
        mechanism(loss=loss).release(epsilon=1.0)


def test_a_loss_that_depends_on_its_batch_is_refused_by_chains_and_served_by_rejection() -> None:
    mech = mechanism(loss=lambda y: np.abs(y[:, 0] - SECRET) * (1.0 + 2.0**-50 * len(y)), bound=2.0)
    with pytest.raises(LossError, match="same float for the same point in any batch"):
        mech.release(epsilon=1.0, sampler=em.Metropolis(delta=1e-6))
    assert mech.release(epsilon=1.0, sampler=em.Rejection()).value.shape == (1,)


def test_bad_confidential_vectors_are_refused_without_showing_them() -> None:
    for make in (
        lambda: em.ConfAtomPerfect(center=[SECRET, np.nan]),
        lambda: em.ProductLaplace(center=[SECRET, np.inf]),
        lambda: mechanism(growth=em.Growth(center=np.array([SECRET, np.nan]), rates=np.ones(1))),
        lambda: mechanism(growth=em.Growth(center=np.array([str(SECRET)]), rates=np.ones(1))),
        lambda: em.losses.Scores([SECRET, np.nan]),
        lambda: em.losses.Scores([str(SECRET)]),
    ):
        with pytest.raises(em.ExpmechError, match=r"center|scores") as caught:
            make()
        assert str(SECRET) not in str(caught.value)


def test_rounding_just_below_the_minimum_is_no_violation() -> None:
    mech = mechanism(
        loss=lambda y: np.maximum(-1e-17, np.abs(y[:, 0] - SECRET)) - 1e-17,
        lipschitz=None,
    )
    assert mech.release(epsilon=1.0, sampler="Rejection").value.shape == (1,)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True])
def test_bad_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(em.ExpmechError, match="`seed`"):
        mechanism().sample(epsilon=1.0, seed=seed)


@pytest.mark.parametrize("rows", [[], [[]], [["a"]], [[np.nan]], np.zeros((2, 2, 2))])
def test_bad_rows_are_refused_without_showing_them(rows: Any) -> None:
    with pytest.raises(em.ExpmechError, match="`rows` of L1Mean"):
        em.losses.L1Mean(rows)


def test_a_sensitivity_below_what_a_built_in_loss_knows_is_refused() -> None:
    with pytest.raises(
        ParameterError,
        match=r"`sensitivity` of ExponentialMechanism must be at least that of L1Mean",
    ):
        em.ExponentialMechanism(
            loss=em.losses.L1Mean(np.full(10, 0.5)), sensitivity=0.05, domain=BOX
        )
    em.ExponentialMechanism(loss=em.losses.L1Mean(np.full(3, 0.5)), sensitivity=1 / 3, domain=BOX)
