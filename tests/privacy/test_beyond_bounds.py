"""Values on and beyond both bounds: through every constructor they count as the bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.aggregates import histogram_of, moments_of
from support.problems import draw_cells

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.domains.regions import cells_of, lattice_of
from expmech.losses import L1Mean, Quantile
from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles
from expmech.tables.scaling import scaled, scalings, snapped_columns

LOWER, UPPER = -3.0, 7.0
INSIDE = np.linspace(LOWER, UPPER, 41)
POINTS = np.linspace(LOWER, UPPER, 97)[:, None]
Values = NDArray[np.float64]


def quantile(values: Values) -> Any:
    loss = Quantile(values, q=0.3, lower=LOWER, upper=UPPER)
    return [loss(POINTS).tolist(), loss.lower_bound(POINTS[:-1], POINTS[1:]).tolist()]


def joint(values: Values) -> Any:
    made = JointQuantiles.from_values(
        values, levels=["0.25", "0.5"], lower=LOWER, upper=UPPER, bits=6
    )
    return draw_cells(made, Coins(seeded_bits(3)), epsilon=5.0, size=3).tolist()


def noisy_mean(values: Values) -> Any:
    made = em.NoisyMean.from_rows(values[:, None], lower=[LOWER], upper=[UPPER])
    return made.study(epsilon=1.0, seed=4).value.tolist()


MADE: dict[str, Callable[[Values], Any]] = {
    "Quantile": quantile,
    "L1Mean": lambda v: L1Mean(v[:, None], lower=LOWER, upper=UPPER)(POINTS).tolist(),
    "JointQuantiles": joint,
    "NoisyMean": noisy_mean,
    "cells": lambda v: cells_of(v, (LOWER, UPPER), lattice_of(LOWER, UPPER, bits=6)).tolist(),
    "multiples": lambda v: cells_of(
        v, (LOWER, UPPER), lattice_of(LOWER, UPPER, bits=6, step=0.7)
    ).tolist(),
    "histogram": lambda v: histogram_of(v, (LOWER, UPPER), bits=6).tolist(),
    "moments": lambda v: moments_of(v[:, None], [(LOWER, UPPER)], bits=12, products=True),
    "scaled": lambda v: scaled(v[:, None], [(LOWER, UPPER)]).tolist(),
    "snapped": lambda v: snapped_columns(v[:, None], scalings([(LOWER, UPPER)])).tolist(),
    "snapped about 0": lambda v: snapped_columns(
        v[:, None], scalings([(LOWER, UPPER)], center=False)
    ).tolist(),
}


@pytest.mark.filterwarnings("error")  # a warning would tell of a row
@pytest.mark.parametrize("name", MADE)
def test_what_lies_beyond_the_bounds_counts_as_the_bounds(name: str) -> None:
    make = MADE[name]
    for odd in (
        [LOWER, UPPER],
        [np.nextafter(LOWER, -9.0), np.nextafter(UPPER, 9.0)],
        [-1e6, 1e6],
        [-1.7e308, 1.7e308],
        [-np.inf, np.inf],
        [np.inf, np.inf],
    ):
        values = np.concatenate([INSIDE, odd])
        assert make(values) == make(np.clip(values, LOWER, UPPER)), odd
    assert make(np.append(INSIDE, LOWER)) != make(np.append(INSIDE, UPPER))


@pytest.mark.parametrize("size", [1, 2, 65, 300])
def test_one_value_and_many_equal_ones_are_served(size: int) -> None:
    for at in (LOWER, 0.5, UPPER):
        values = np.full(size, at)
        loss = Quantile(values, q=0.5, lower=LOWER, upper=UPPER)
        assert loss(POINTS).min() >= 0.0
        assert histogram_of(values, (LOWER, UPPER), bits=3).max() == size
        assert joint(values)
