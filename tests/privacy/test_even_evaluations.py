"""A sampler that promises a number of evaluations keeps it on every data set: they are counted."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.domains import Indices
from expmech.exponential.samplers import Sampler
from expmech.exponential.samplers.chain import run
from expmech.exponential.target import Energies, Target

DATA = {
    "at the lower corner": [0.0] * 6,
    "at the upper corner": [1.0] * 6,
    "in the middle": [0.5] * 6,
    "spread": [0.0, 0.1, 0.4, 0.6, 0.9, 1.0],
}
EPSILON = 8.0


class Counted:
    """Counts the rows whose energy is looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        real = Target.energy

        def energy(target: Target, indices: Indices) -> Energies:
            self.rows += len(indices)
            assert target.domain.contains(indices).all(), "a loss is asked outside its domain"
            return real(target, indices)

        monkeypatch.setattr(Target, "energy", energy)


def integer_problem(rows: list[float]) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=em.losses.L1Mean(np.array(rows)), domain=em.Box([0.0], [1.0], bits=6)
    )


def float_problem(rows: list[float]) -> em.ExponentialMechanism:
    mean = float(np.mean(rows))

    def loss(y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.abs(y[:, 0] - mean) + np.abs(y[:, 1] - mean))

    return em.ExponentialMechanism(
        loss=loss,
        sensitivity=2 / len(rows),
        domain=em.Box([0.0, 0.0], [1.0, 1.0], bits=4),
        lipschitz=[1.0, 1.0],
        gap=1 / 8,
    )


SAMPLERS: list[Any] = [
    em.ConfAtomAndRuntimePerfect("pad"),
    em.ConfAtomAndRuntimePerfect("pad", proposal="uniform"),
    em.ConfAtomAndRuntimePerfect("constant"),
    em.ConfAtomAndRuntimePerfect("constant", proposal="uniform"),
    em.Metropolis(steps=40),
    em.Metropolis(steps=40, proposal="laplace"),
    em.Metropolis(steps=40, proposal="laplace", rate=8.0),
]


def _name(sampler: Sampler) -> str:
    if isinstance(sampler, em.Metropolis):
        return f"{sampler.label} {sampler.kernel.describe()}"
    return f"{sampler.label} {vars(sampler).get('proposal')}"


@pytest.mark.parametrize("make", [integer_problem, float_problem])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=_name)
def test_every_proposal_costs_one_evaluation_wherever_the_answer_lies(
    sampler: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    totals = set()
    for rows in DATA.values():
        mechanism = make(rows)
        target = mechanism.target(epsilon=EPSILON)
        chain = sampler.prepare(target)
        for size in (1, 3):
            counted.rows = 0
            draws = run(chain, Coins(seeded_bits(size)), size)
            # Metropolis looks at its start as well
            started = size if isinstance(sampler, em.Metropolis) else 0
            proposals = int(draws.proposals.sum())
            if sampler.label.endswith("pad"):
                assert counted.rows == proposals
            else:
                assert len(set(draws.proposals.tolist())) == 1
                assert counted.rows == proposals + started
                totals.add((size, counted.rows))
    assert len(totals) <= 2  # one number for each size, whatever the data


@pytest.mark.parametrize("make", [integer_problem, float_problem])
def test_a_constant_release_has_one_number_of_evaluations(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    found = set()
    for rows in DATA.values():
        counted.rows = 0
        ready = make(rows).prepare(epsilon=EPSILON, timing="constant")
        assert ready.certificate.timing == "constant"
        ready.release()
        found.add(counted.rows)
    assert len(found) == 1, found


@pytest.mark.parametrize("make", [integer_problem, float_problem])
def test_a_table_in_constant_rounds_evaluates_every_point_once(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    for rows in DATA.values():
        for size in (1, 3):
            counted.rows = 0
            target = make(rows).target(epsilon=EPSILON)
            chain = em.ConstantTabulated().prepare(target)
            draws = run(chain, Coins(seeded_bits(size)), size)
            points = target.domain.all_indices(1 << 10)
            assert points is not None and counted.rows == len(points)
            assert draws.proposals.tolist() == [2] * size


def test_constant_timing_refuses_samplers_that_do_not_promise_it() -> None:
    mechanism = integer_problem(DATA["spread"])
    for sampler in (em.Rejection(), em.BoxTree(), em.Separable(), em.ConfAtomPerfect(0.5)):
        with pytest.raises(em.ExpmechError, match="running time depends on the data"):
            mechanism.prepare(epsilon=1.0, sampler=sampler, timing="constant")


def test_timing_classes_are_what_was_counted_above() -> None:
    mechanism = integer_problem(DATA["spread"])
    classes = {
        sampler.label: mechanism.certificate(epsilon=1.0, sampler=sampler).timing
        for sampler in (
            *SAMPLERS,
            em.Tabulated(),
            em.ConstantTabulated(),
            em.Rejection(),
            em.BoxTree(),
            em.ConfAtomPerfect(0.5),
        )
    }
    assert classes == {
        "ConfAtomAndRuntimePerfect, pad": "data-independent",
        "ConfAtomAndRuntimePerfect, constant": "constant",
        "Metropolis, 40 steps": "constant",
        "Tabulated": "data-dependent",
        "ConstantTabulated": "constant",
        "Rejection": "data-dependent",
        "BoxTree": "data-dependent",
        "ConfAtomPerfect, laplace": "data-dependent",
    }


@pytest.mark.parametrize("lot", [1, 7, 64])
@pytest.mark.parametrize("make", [integer_problem, float_problem])
def test_constant_rounds_are_those_of_the_certificate_however_they_are_made(
    make: Any, lot: int
) -> None:
    sampler = em.ConfAtomAndRuntimePerfect("constant", proposal="uniform")
    for rows in DATA.values():
        mechanism = make(rows)
        told = mechanism.prepare(epsilon=1.0, sampler=sampler).certificate
        chain: Any = sampler.prepare(mechanism.target(epsilon=1.0))
        draws = run(dataclasses.replace(chain, lot=lot), Coins(seeded_bits(lot)), 3)
        assert chain.rounds == told.sampler["rounds"]
        assert set(draws.proposals.tolist()) == {chain.rounds}


@pytest.mark.parametrize("proposal", ["laplace", "uniform"])
def test_the_padded_wait_does_not_depend_on_the_data(proposal: str) -> None:
    """The same mean number of proposals, 1 / p_0, wherever the answer lies."""
    means = []
    for rows in DATA.values():
        target = integer_problem(rows).target(epsilon=4.0)
        chain: Any = em.ConfAtomAndRuntimePerfect("pad", proposal=proposal).prepare(target)
        draws = run(chain, Coins(seeded_bits(9)), 4000)
        means.append(float(draws.proposals.mean()) * float(chain.floor))
    assert all(abs(mean - 1.0) < 6 / np.sqrt(4000) for mean in means), means
