"""Columns scaled by public bounds, and the checks regressions share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_nonnegative, validate_positive
from expmech.statistics.aggregates import Bounds


def centres(bounds: Sequence[Bounds]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle and the half width of each pair of bounds."""
    lower, upper = np.array(bounds, dtype=np.float64).T
    halves = (upper - lower) / 2
    return lower + halves, halves  # the sum of two bounds of 1e308 would be infinite


def check_radius(radius: float, owner: str) -> float:
    """Return the radius as a float, between 2^-10 and 2^10 on scaled columns."""
    found = float(validate_positive(radius, name="radius", owner=owner))
    if not 2.0**-10 <= found <= 2.0**10:
        raise ParameterError(
            f"`radius` of {owner} must be between 2^-10 and 2^10, on scaled columns; got"
            f" {radius!r}."
        )
    return found


def check_penalty(penalty: float, most: float, owner: str) -> None:
    """Raise unless the penalty is a number up to ``most``."""
    if validate_nonnegative(penalty, name="penalty", owner=owner) > most:
        raise ParameterError(
            f"`penalty` of {owner} must be at most {most:.3g} with this epsilon and radius; got"
            f" {penalty!r}."
        )
