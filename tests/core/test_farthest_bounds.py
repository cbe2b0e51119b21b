"""Bounds as far as float64 goes: a release, or a refusal before anything is spent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.core.errors import ParameterError

VALUES = np.array([0.0, 1.0, math.nan, 2.0, math.inf, 1e308, -1e308])
BOUNDS = [(0, 1e308), (0, 1e290), (-1e140, 1e140), (-8e307, 8e307), (1e308, 1.7e308)]
EPSILONS = [2.0**-20, 1.0, 1e6]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("function", [em.mean, em.sum, em.variance, em.median])
def test_no_release_ends_in_an_error_after_its_charge(
    function: Callable[..., Any], adjacency: str, bounds: tuple[float, float], tmp_path: Any
) -> None:
    for epsilon, values in itertools.product(EPSILONS, (VALUES, np.full(100, bounds[1]))):
        ledger = em.Ledger.create(
            tmp_path / f"{epsilon}-{len(values)}", data_set="x", epsilon=1e6, adjacency=adjacency
        )
        try:
            released = function(
                values, epsilon=epsilon, bounds=bounds, adjacency=adjacency, ledger=ledger
            )
        except ParameterError:
            assert sum(ledger.spent) == 0, (epsilon, len(values))
        else:
            assert math.isfinite(released.value), (epsilon, len(values))
            assert str(released)
