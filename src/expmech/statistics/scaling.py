"""Columns scaled by public bounds, and the checks regressions share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_nonnegative, validate_positive
from expmech.rounding import float_down
from expmech.statistics.aggregates import Bounds


def centres(bounds: Sequence[Bounds]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle and the half width of each pair of bounds."""
    lower, upper = np.array(bounds, dtype=np.float64).T
    halves = (upper - lower) / 2
    return lower + halves, halves  # the sum of two bounds of 1e308 would be infinite


def scaled(rows: NDArray[np.float64], bounds: Sequence[Bounds]) -> NDArray[np.float64]:
    """Return columns clipped to their bounds and scaled to [-1, 1]."""
    middles, halves = centres(bounds)
    lower, upper = np.array(bounds, dtype=np.float64).T
    clipped = np.minimum(np.maximum(rows, lower), upper)  # first: nothing overflows
    clipped -= middles
    clipped /= halves
    return np.asarray(np.clip(clipped, -1.0, 1.0))


def scaled_rows(rows: NDArray[np.float64], bounds: Sequence[Bounds]) -> NDArray[np.float64]:
    """Return a constant and the scaled columns."""
    return np.column_stack([np.ones(len(rows)), scaled(rows, bounds)])


def squared_norm(data_norm: float | None, columns: int, owner: str) -> Fraction | None:
    """Return the squared norm of a row with its constant whose columns have norm ``data_norm``.

    A float64 number, as a certificate holds it, and at most what rows of a cube can be. None stays
    None: the rule of the mechanism.
    """
    if data_norm is None:
        return None
    norm = validate_positive(data_norm, name="data_norm", owner=owner)
    return Fraction(float_down(1 + min(norm**2, Fraction(columns))))


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
