"""Public points beside a lattice, as two samplers take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.domains import Region
from expmech.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.target import Target

CHOSEN_BLINDLY = "the points were chosen without looking at the data"


def read_points(points: ArrayLike, *, owner: str) -> NDArray[np.float64]:
    """Return points as rows of finite float64 numbers, at least one."""
    table = np.array(points)
    if table.dtype.kind not in "fiu" or table.ndim not in (1, 2) or table.size == 0:
        raise ParameterTypeError(
            f"`points` of {owner} must be numbers of shape (l, d), l at least 1; got dtype"
            f" {table.dtype}, shape {table.shape}."
        )
    table = np.ascontiguousarray(table[:, None] if table.ndim == 1 else table, dtype=np.float64)
    if not np.isfinite(table).all():
        raise ParameterError(f"`points` of {owner} must be finite; got nan or infinity.")
    return table


def validate_points(points: NDArray[np.float64], target: Target, *, owner: str) -> None:
    """Raise unless the points lie in the domain and the base measure excludes none."""
    domain, base = target.domain, target.problem.base
    if not isinstance(domain, Region):
        raise UnsupportedError(
            f"{owner} needs a continuous domain; on a list of candidates use Tabulated."
        )
    if points.shape[1] != domain.dimension:
        raise ParameterError(
            f"`points` of {owner} must have {domain.dimension} columns; got {points.shape[1]}."
        )
    outside = np.flatnonzero(~domain.contains_points(points))
    if outside.size:
        raise ParameterError(
            f"`points` of {owner} must lie in the domain; row {outside[0]} does not:"
            f" {points[outside[0]]}."
        )
    if base is not None and (base.evaluate(points) == -np.inf).any():
        raise ParameterError(f"`points` of {owner} must not be excluded by `base`; some are.")
