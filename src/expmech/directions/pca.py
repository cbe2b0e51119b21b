"""From raw columns and public numbers to the rows of a principal component analysis.

Theory page: docs/theory/principal_direction.md, section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.directions.rows import unit_rows
from expmech.errors import ParameterError, validate_scale, validate_vector

MEAN_SHARE = Fraction(1, 5)


@dataclass(frozen=True, kw_only=True)
class PcaBudget:
    """How epsilon is split: for the mean, if it is to be private, and for the components."""

    mean: Fraction
    components: Fraction


def split_epsilon(epsilon: Fraction, *, private_mean: bool) -> PcaBudget:
    """Give a fifth of epsilon to a private mean, else all of it to the components."""
    mean = epsilon * MEAN_SHARE if private_mean else Fraction(0)
    return PcaBudget(mean=mean, components=epsilon - mean)


@dataclass(frozen=True, eq=False, kw_only=True)
class Standard:
    """Public numbers that turn raw rows into rows of norm at most one, each row by itself.

    ``z = (clip(x) - center) / scale``, then divided by its own norm (``row_norm`` None) or by
    ``row_norm``, in which case longer rows are shortened to it.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    row_norm: float | None = None

    def rows(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows, of norm one or to be shortened to it."""
        inside = np.clip(table, self.lower, self.upper)
        found = (inside - self.center) / self.scale
        return unit_rows(found) if self.row_norm is None else found / self.row_norm

    @property
    def unit(self) -> float:
        """The square that a mean square of rows is to be multiplied with."""
        return 1.0 if self.row_norm is None else self.row_norm**2


def make_standard(
    *,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    center: Any,
    scale: Any,
    row_norm: float | None,
    owner: str,
) -> Standard:
    """Check public numbers; a scale that is None is half the width of the bounds.

    Parameters
    ----------
    lower, upper
        Bounds, one pair a column.
    center
        One number a column: public, or a private mean that was released.
    scale
        One positive number a column, or None.
    row_norm
        A positive number, or None for rows of norm one.
    owner
        Whose parameters these are, for errors.
    """
    columns = lower.size
    middle = validate_vector(center, name="center", owner=owner, length=columns)
    if scale is None:
        widths = upper / 2.0 - lower / 2.0
    else:
        widths = validate_vector(scale, name="scale", owner=owner, length=columns)
    if not ((widths > 1e-120) & (widths < 1e120)).all():
        raise ParameterError(
            f"`scale` of {owner} must hold positive numbers of usual size; got {widths.tolist()!r}."
        )
    norm = None
    if row_norm is not None:
        norm = float(validate_scale(row_norm, name="row_norm", owner=owner))
    return Standard(lower=lower, upper=upper, center=middle, scale=widths, row_norm=norm)
