"""Principal components of columns, from integer cross products of standardised rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.adjacency import Adjacency
from expmech.release import Mechanism, PrincipalDirection
from expmech.release.finish import Directions
from expmech.statistics.aggregates import Bounds
from expmech.statistics.base import Statistic
from expmech.statistics.requests import Column, ProductsOf, RowProducts
from expmech.statistics.scaling import centres
from expmech.statistics.standard import standard_of

_PRIVATE_CENTER = "a mean that was released before"


@dataclass(frozen=True, kw_only=True)
class PrincipalComponents(Statistic):
    """The directions along which standardised rows are longest, by the Bingham law.

    Each row is clipped to its bounds, ``center`` is subtracted, the rest divided by ``scale`` and
    then by its own norm; or by ``row_norm``, and longer rows are shortened. None takes the middle
    and the half width of the bounds. ``center_is_private`` says that the center was released
    before: a certificate, which is made before that, then does not name it.
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
    missing: str = "middle"
    named: bool = False

    @property
    def name(self) -> str:
        """What certificates call it."""
        columns = ", ".join(map(str, self.columns))
        if self.n_components == 1:
            return f"principal component of {columns}"
        return f"{self.n_components} principal components of {columns}"

    @property
    def finish(self) -> Directions:
        """Unit vectors on the standardised columns."""
        return Directions(
            components=self.n_components,
            dimension=len(self.columns),
            variances=self.variances,
            names=tuple(map(str, self.columns)) if self.named else None,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """How rows were standardised."""
        asked = self._asked
        center = _PRIVATE_CENTER if self.center_is_private else _shown(asked.center)
        norm = "its own norm" if self.row_norm is None else f"{self.row_norm!r}"
        told = (
            f"each row was clipped to its bounds, centred at {center}, divided by"
            f" {_shown(asked.scale)} and then by {norm}"
        )
        return (*super().notes, told)

    def request(self, epsilon: Fraction) -> ProductsOf:
        """Ask for cross products of standardised rows."""
        return self._asked

    @property
    def _asked(self) -> ProductsOf:
        middles, halves = centres(self.bounds)
        return ProductsOf(
            columns=self.columns,
            bounds=self.bounds,
            center=tuple(middles.tolist()) if self.center is None else self.center,
            scale=tuple(halves.tolist()) if self.scale is None else self.scale,
            row_norm=self.row_norm,
            missing=self.missing,
        )

    def stand_in(self, count: int, epsilon: Fraction) -> RowProducts:
        """Return the products of rows of zeros."""
        d = len(self.columns)
        return RowProducts(products=((0,) * d,) * d, count=count)

    def mechanism(self, found: RowProducts, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the Bingham law on the sphere."""
        standard_of(self._asked)  # raises, before anything is charged, where a number cannot serve
        return PrincipalDirection(
            products=found.products,
            count=found.count,
            n_components=self.n_components,
            variances=self.variances,
            adjacency=self.adjacency,
        )


def _shown(numbers: tuple[float, ...]) -> str:
    return f"({', '.join(f'{number!r}' for number in numbers)})"
