"""From raw columns and public numbers to the rows of a principal component analysis.

Theory page: docs/theory/principal_direction.md, section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.directions.rows import row_products, unit_rows
from expmech.errors import ParameterError, validate_scale, validate_vector
from expmech.statistics.requests import ProductsOf, RowProducts

_OWNER = "a principal component analysis"
STEP_BITS = 40
"""Rows are read as whole steps of 2^-40 of the width of their bounds, in arrays and in engines."""


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
        with np.errstate(all="ignore"):  # a warning would tell that a row is far out
            inside = np.clip(table, self.lower, self.upper)
            found = (inside - self.center) / self.scale
            return unit_rows(found) if self.row_norm is None else found / self.row_norm

    def products(self, steps: NDArray[np.int64]) -> NDArray[np.object_]:
        """Return the integer cross products of rows given as steps of 2^-STEP_BITS of the width."""
        return row_products(self.rows(self.lower + steps * (self._widths * 2.0**-STEP_BITS)))

    @property
    def _widths(self) -> NDArray[np.float64]:
        return self.upper - self.lower


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


def products_of(steps: NDArray[np.int64], request: ProductsOf) -> RowProducts:
    """Return cross products and count of rows that are given as steps of their bounds."""
    products = standard_of(request).products(steps)
    return RowProducts(products=tuple(map(tuple, products.tolist())), count=len(steps))


def standard_of(request: ProductsOf) -> Standard:
    """Return the map that a request asks for."""
    lower, upper = np.array(request.bounds, dtype=np.float64).T
    return make_standard(
        lower=lower,
        upper=upper,
        center=request.center,
        scale=request.scale,
        row_norm=request.row_norm,
        owner=_OWNER,
    )
