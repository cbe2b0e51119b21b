"""The neighbours.

OpenDP measurements in an OpenDP Context, and events for dp_accounting's accountants.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import dp_accounting
import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting import pld, rdp

import expmech as em
from expmech.certificates.mechanism import Mechanism
from expmech.core.errors import ParameterTypeError
from expmech.interop import dp_accounting as bridge
from expmech.interop import opendp
from expmech.ledger.verification import MECHANISMS
from expmech.mechanisms.noisy_sums import Counts

ROWS = np.array([[0.2], [0.4], [0.9], [0.1]])


@pytest.fixture(autouse=True)
def _features() -> None:
    dp.enable_features("contrib", "honest-but-curious")


def make(rows: Any) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0]))


def context_of_two() -> Any:
    return dp.Context.compositor(
        data=ROWS,
        privacy_unit=dp.unit_of(changes=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=2,
        domain=opendp.data_domain(),
    )


def test_a_measurement_composes_in_a_context_until_its_budget_is_spent() -> None:
    measurement = opendp.as_measurement(make, epsilon=0.5, adjacency="replace")
    assert measurement.map(1) == 0.5
    assert measurement.map(2) == 1.0
    context = context_of_two()
    for _ in range(2):
        assert 0.0 < context(measurement)[0] < 1.0
    with pytest.raises(Exception, match=r"[Oo]ut of queries|exceed|budget|Privacy"):
        context(measurement)


def test_a_measurement_beyond_the_context_budget_is_refused() -> None:
    context = context_of_two()
    with pytest.raises(Exception, match=r"insufficient budget|exceed"):
        context(opendp.as_measurement(make, epsilon=0.6, adjacency="replace"))


def test_a_mechanism_is_a_measurement_of_itself() -> None:
    mechanism = em.NoisyMean.from_rows(ROWS, lower=[0.0], upper=[1.0], adjacency="add-remove")
    measurement = opendp.as_measurement(mechanism, epsilon=Fraction(1, 3))
    assert measurement.map(1) >= Fraction(1, 3)
    assert measurement.input_metric == dp.symmetric_distance()
    assert 0.0 <= measurement(mechanism)[0] <= 1.0
    with pytest.raises(Exception, match="invoked on that mechanism"):
        measurement(ROWS)
    assert opendp.as_measurement(make(ROWS), epsilon=1.0).input_metric == dp.change_one_distance()


def test_measurements_without_a_pure_guarantee_or_a_matching_adjacency_are_refused() -> None:
    with pytest.raises(em.UnsupportedError, match="pure guarantee"):
        opendp.as_measurement(make(ROWS), epsilon=1.0, sampler=em.Metropolis(delta=1e-6))
    with pytest.raises(em.ParameterError, match="that of the mechanism"):
        opendp.as_measurement(make(ROWS), epsilon=1.0, adjacency="add-remove")
    with pytest.raises(em.ParameterError, match="adjacency"):
        opendp.as_measurement(make, epsilon=1.0)
    with pytest.raises(ParameterTypeError, match="function that makes one"):
        opendp.as_measurement(3, epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="it did not"):
        opendp.as_measurement(make, epsilon=1.0, adjacency="add-remove")(ROWS)


def every_kind() -> dict[str, Mechanism]:
    """Return one mechanism of each kind, half of them under add-remove."""
    add_remove: Any = {"adjacency": "add-remove"}
    return {
        "ExponentialMechanism": make(ROWS),
        "NoisyMean": em.NoisyMean.from_rows(ROWS, lower=[0.0], upper=[1.0], **add_remove),
        "KNorm": em.KNorm(totals=[3, 5], body=em.bodies.BoxBody([1, 1]), **add_remove),
        "NoisySums": em.NoisySums(
            totals=[3, 5], interpretation=Counts(size=2, disjoint=True, count=8)
        ),
        "PrincipalDirection": em.PrincipalDirection.from_rows(np.eye(3), **add_remove),
        "JointQuantiles": em.JointQuantiles.from_values(
            ROWS[:, 0], levels=["1/3", "2/3"], lower=0.0, upper=1.0, bits=8
        ),
        "RecursiveQuantiles": em.RecursiveQuantiles.from_values(
            ROWS[:, 0], levels=["1/3", "2/3"], lower=0.0, upper=1.0, step=0.25, **add_remove
        ),
        "PermuteAndFlip": em.PermuteAndFlip.from_scores([1, 5, 4], sensitivity=1, **add_remove),
        "TopK": em.TopK.from_counts([3, 2, 1], k=2),
        "UnknownGroups": em.UnknownGroups.from_counts({"a": 9}, universe="[a-z]{3}"),
        "PrivateBounds": em.PrivateBounds.from_values(ROWS[:, 0], **add_remove),
        "PerturbedOptimum": em.PerturbedOptimum(
            em.risks.Logistic(), np.hstack([np.ones((4, 1)), ROWS]), [0, 1, 1, 0], **add_remove
        ),
    }


def test_every_kind_of_mechanism_is_here() -> None:
    assert {*every_kind()} == {*MECHANISMS}


@pytest.mark.parametrize("kind", every_kind())
def test_every_mechanism_is_a_measurement_and_its_certificate_an_event(kind: str) -> None:
    mechanism = every_kind()[kind]
    measurement = opendp.as_measurement(mechanism, epsilon=0.5)
    certificate = mechanism.certificate(epsilon=0.5)
    replace = certificate.adjacency == "replace"
    assert (measurement.map(1), measurement.map(3)) == (0.5, 1.5)
    assert measurement.input_metric == (
        dp.change_one_distance() if replace else dp.symmetric_distance()
    )
    drawn = [measurement(mechanism) for _ in range(3)]
    assert [type(value) for value in drawn] == [type(mechanism.release(epsilon=0.5).value)] * 3
    with pytest.raises(Exception, match="invoked on that mechanism"):
        measurement(ROWS)
    event = bridge.event(certificate)
    accountant = rdp.RdpAccountant(
        neighboring_relation=(
            dp_accounting.NeighboringRelation.REPLACE_ONE
            if replace
            else dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
        )
    )
    accountant.compose(event)
    # 0.5 as randomised response; rho = 1/8 gives sqrt(ln(1e9) / 2) = 3.2 and a little more
    response = isinstance(event, dp_accounting.RandomizedResponseDpEvent)
    assert not response or replace
    assert 0.3 < accountant.get_epsilon(1e-9) < (0.6 if response else 3.5)
    alone = bridge.privacy_loss_distribution(certificate)
    assert 0.49 < alone.get_epsilon_for_delta(1e-9) < 0.501


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_events_cost_what_the_certificate_says(epsilon: float) -> None:
    flip = em.PermuteAndFlip.from_scores([1.0, 2.0], sensitivity=1)
    event = bridge.event(flip.certificate(epsilon=epsilon))
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(event)
    assert epsilon * (1 - 1e-6) <= accountant.get_epsilon(1e-12) <= epsilon + 2e-4
    accountant.compose(event)
    assert accountant.get_epsilon(1e-12) <= 2 * epsilon + 4e-4


def test_many_events_compose_better_than_their_sum() -> None:
    for adjacency, relation in (
        ("replace", dp_accounting.NeighboringRelation.REPLACE_ONE),
        ("add-remove", dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE),
    ):
        noisy = em.NoisyMean.from_rows(ROWS, lower=[0.0], upper=[1.0], adjacency=adjacency)
        accountant = rdp.RdpAccountant(neighboring_relation=relation)
        event = bridge.event(noisy.certificate(epsilon=0.01))
        accountant.compose(event, 1000)
        assert 0.5 < accountant.get_epsilon(1e-6) < 3.0


def test_events_need_a_pure_certificate() -> None:
    with pytest.raises(em.UnsupportedError, match="pure guarantee"):
        bridge.event(make(ROWS).certificate(epsilon=1.0, sampler=em.Metropolis(delta=1e-6)))
    with pytest.raises(ParameterTypeError, match=r"expmech\.Certificate"):
        bridge.event({"epsilon": 1.0})  # type: ignore[arg-type]


def test_importing_the_library_loads_none_of_its_neighbours() -> None:
    script = (
        "import sys, expmech; print(*{'opendp', 'dp_accounting', 'ibis', 'duckdb', 'typer',"
        " 'pandas'} & set(sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()
        == ""
    )
    with pytest.raises(AttributeError, match="no attribute 'opendb'"):
        em.opendb  # noqa: B018
