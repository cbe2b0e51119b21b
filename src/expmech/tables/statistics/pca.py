"""Principal components of columns, from integer cross products of standardised rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import Directions
from expmech.core.adjacency import Adjacency
from expmech.mechanisms.directions.principal_direction import PrincipalDirection
from expmech.tables.aggregates import Column, ProductsOf, RowProducts
from expmech.tables.reading import AUTO_MISSING
from expmech.tables.scaling import Bounds, centres
from expmech.tables.statistics.base import Statistic, listed

_PRIVATE_CENTER = "a mean that was released before"


@dataclass(frozen=True, kw_only=True)
class PrincipalComponents(Statistic):
    """The directions along which standardised rows are longest, by the Bingham law.

    Each row is clipped to its bounds, ``center`` is subtracted, the rest divided by ``scale`` and
    then by its own norm; or by ``row_norm``, and longer rows are shortened.

    Parameters
    ----------
    columns, bounds, adjacency, missing, named, labels
        As for :class:`~expmech.tables.statistics.Mean`.
    n_components : int, default=1
        How many directions are released.
    center, scale : tuple of float, optional
        One public number per column. Default: the middle and the half width of the bounds.
    center_is_private : bool, default=False
        Whether the center was released before: a certificate, which is made before that, then does
        not name it.
    row_norm : float, optional
        The norm that longer rows are shortened to. Default: each row is divided by its own.
    variances : bool, default=False
        Whether the shares of variance along the directions are released as well.

    Examples
    --------
    >>> PrincipalComponents(
    ...     columns=("height", "weight"),
    ...     bounds=((100.0, 220.0), (30.0, 150.0)),
    ...     adjacency=Adjacency.REPLACE,
    ... ).name
    'principal component of height, weight'
    """

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    adjacency: Adjacency
    n_components: int = 1
    center: tuple[float, ...] | None = None
    center_is_private: bool = False
    scale: tuple[float, ...] | None = None
    row_norm: float | None = None
    variances: bool = False
    missing: str = AUTO_MISSING
    named: bool = False
    labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        columns = listed(self.columns, self.labels)
        if self.n_components == 1:
            return f"principal component of {columns}"
        return f"{self.n_components} principal components of {columns}"

    @property
    def postprocessing(self) -> Directions:
        return Directions(
            components=self.n_components,
            dimension=len(self.columns),
            variances=self.variances,
            names=tuple(map(str, self.columns)) if self.named else None,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        aggregation = self._aggregation
        center = _PRIVATE_CENTER if self.center_is_private else _shown(aggregation.center)
        norm = "its own norm" if self.row_norm is None else f"{self.row_norm!r}"
        standardised = (
            f"each row was clipped to its bounds, centred at {center}, divided by"
            f" {_shown(aggregation.scale)} and then by {norm}"
        )
        return (*super().notes, standardised)

    def aggregation(self, epsilon: Fraction) -> ProductsOf:
        return self._aggregation

    @property
    def _aggregation(self) -> ProductsOf:
        middles, halves = centres(self.bounds)
        return ProductsOf(
            columns=self.columns,
            bounds=self.bounds,
            center=tuple(middles.tolist()) if self.center is None else self.center,
            scale=tuple(halves.tolist()) if self.scale is None else self.scale,
            row_norm=self.row_norm,
            missing=self.missing_rule,
        )

    def data(self, rows: RowProducts, epsilon: Fraction) -> tuple[Any, int]:
        return rows.products, rows.count

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        self._aggregation.standard()  # raises before anything is charged
        d = len(self.columns)
        return PrincipalDirection(
            products=((0,) * d,) * d,
            count=count,
            n_components=self.n_components,
            variances=self.variances,
            adjacency=self.adjacency,
        )


def _shown(numbers: tuple[float, ...]) -> str:
    return f"({', '.join(f'{number!r}' for number in numbers)})"
