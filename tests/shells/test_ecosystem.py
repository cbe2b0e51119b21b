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

ROWS = np.array([[0.2], [0.4], [0.9], [0.1]])


@pytest.fixture(autouse=True)
def _features() -> None:
    dp.enable_features("contrib", "honest-but-curious")


def make(rows: Any) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=em.Box([0.0], [1.0]))


def test_a_measurement_composes_in_a_context_until_its_budget_is_spent() -> None:
    measurement = em.opendp.as_measurement(make, epsilon=0.5, adjacency="replace")
    assert measurement.map(1) == 0.5
    assert measurement.map(2) == 1.0
    context = dp.Context.compositor(
        data=ROWS,
        privacy_unit=dp.unit_of(changes=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=2,
        domain=em.opendp.data_domain(),
    )
    for _ in range(2):
        assert 0.0 < context(measurement)[0] < 1.0
    with pytest.raises(Exception, match=r"[Oo]ut of queries|exceed|budget|Privacy"):
        context(measurement)


def test_a_measurement_beyond_the_context_budget_is_refused() -> None:
    context = dp.Context.compositor(
        data=ROWS,
        privacy_unit=dp.unit_of(changes=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=2,
        domain=em.opendp.data_domain(),
    )
    with pytest.raises(Exception, match=r"insufficient budget|exceed"):
        context(em.opendp.as_measurement(make, epsilon=0.6, adjacency="replace"))


def test_a_mechanism_is_a_measurement_of_itself() -> None:
    mechanism = em.NoisyMean.from_rows(ROWS, lower=[0.0], upper=[1.0], adjacency="add-remove")
    measurement = em.opendp.as_measurement(mechanism, epsilon=Fraction(1, 3))
    assert measurement.map(1) >= Fraction(1, 3)
    assert measurement.input_metric == dp.symmetric_distance()
    assert 0.0 <= measurement(mechanism)[0] <= 1.0
    with pytest.raises(Exception, match="invoked on that mechanism"):
        measurement(ROWS)
    assert (
        em.opendp.as_measurement(make(ROWS), epsilon=1.0).input_metric == dp.change_one_distance()
    )


def test_measurements_without_a_pure_guarantee_or_a_matching_adjacency_are_refused() -> None:
    with pytest.raises(em.UnsupportedError, match="pure guarantee"):
        em.opendp.as_measurement(make(ROWS), epsilon=1.0, sampler=em.Metropolis(delta=1e-6))
    with pytest.raises(em.ParameterError, match="that of the mechanism"):
        em.opendp.as_measurement(make(ROWS), epsilon=1.0, adjacency="add-remove")
    with pytest.raises(em.ParameterError, match="adjacency"):
        em.opendp.as_measurement(make, epsilon=1.0)
    with pytest.raises(em.ParameterTypeError, match="function that makes one"):
        em.opendp.as_measurement(3, epsilon=1.0)
    with pytest.raises(Exception, match="it did not"):
        em.opendp.as_measurement(make, epsilon=1.0, adjacency="add-remove")(ROWS)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_events_cost_what_the_certificate_says(epsilon: float) -> None:
    event = em.dp_accounting.event(make(ROWS).certificate(epsilon=epsilon))
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
        event = em.dp_accounting.event(noisy.certificate(epsilon=0.01))
        accountant.compose(event, 1000)
        assert 0.5 < accountant.get_epsilon(1e-6) < 3.0


def test_events_need_a_pure_certificate() -> None:
    with pytest.raises(em.UnsupportedError, match="pure guarantee"):
        em.dp_accounting.event(
            make(ROWS).certificate(epsilon=1.0, sampler=em.Metropolis(delta=1e-6))
        )
    with pytest.raises(em.ParameterTypeError, match=r"expmech\.Certificate"):
        em.dp_accounting.event({"epsilon": 1.0})


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
