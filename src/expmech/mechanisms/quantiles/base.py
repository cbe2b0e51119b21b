"""What mechanisms of several quantiles share: the public cells, the counts in them, the checks.

Equal values are spread over the points of their cell, so that several quantiles find room in it.
Theory page: docs/theory/quantiles.md, section 3.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    ENERGY_UNIT,
    SECRET_KEY,
    Check,
    check_assumed,
    check_count,
    check_described,
    check_direct,
    check_equal,
)
from expmech.certificates.forecast import Forecast
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import Array, ArrayLike, Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    validate_integer,
)
from expmech.domains import Box, Multiples
from expmech.domains.base import draw_distinct_sorted
from expmech.domains.regions import DEFAULT_BITS, cells_of, lattice_of
from expmech.losses.quantile import MOST_VALUES, validate_values
from expmech.mechanisms.quantiles.tables import Levels, RankGroups, parse_levels, rank_groups

KIND = "Quantiles"
_MOST_SPREAD = 1 << 12
_PLATFORM = f"float64 sums and products are those of IEEE 754; {SECRET_KEY}"
_EARLIER = (
    "values were clipped to the public bounds and moved to the middle of one of 2^bits cells one by"
    " one before they were counted",
    _PLATFORM,
)
_ASSUMED = (
    "values were clipped to the public bounds and moved to the middle of one of the public cells"
    " one by one before they were counted",
    _PLATFORM,
)
_USUAL_ROWS = 1 << 20  # for which a draw is forecast where their number is confidential
LEAST_SPREAD = 32
"""Points of a cell; 4 were too few for nine quantiles in one atom."""


def default_spread(levels: int) -> int:
    """Return the points of a cell: a power of two, two for each level and more, at least 32."""
    return max(LEAST_SPREAD, 1 << (2 * levels + 1).bit_length())


@dataclass(frozen=True)
class CellCounts:
    """How many values lie in each occupied cell; confidential, but for the number of cells."""

    occupied: Integers
    counts: Integers
    cells: int

    @property
    def total(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    def spread(self, coins: Coins, points: int) -> CellCounts:
        """Move each value to one of the ``points`` points of its cell, which are cells then.

        A cell of c values has ``c // points`` at each, and one more at a uniform subset of ``c %
        points``: one value more is one point more, so neighbours stay neighbours.
        """
        if points == 1:
            return self
        # A row more adds one value to one cell, and the subsets of neighbours can be coupled so
        # that the moved values differ by that one (docs/theory/quantiles.md, Theorem 2).
        full, rest = np.divmod(self.counts, points)
        crowded = full > 0  # cells with a value at every point
        every = self.occupied[crowded, None] * points + np.arange(points)
        table = np.repeat(full[crowded, None], points, axis=1)
        # one call draws the subsets of all cells with the same remainder
        fine, ones = [every.ravel()], 0
        for size in np.unique(rest[rest > 0]).tolist():
            cells = np.flatnonzero(rest == size)
            chosen = draw_subsets(coins, points, size, cells.size)
            few = ~crowded[cells]
            fine.append((self.occupied[cells[few], None] * points + chosen[few]).ravel())
            ones += fine[-1].size
            rows = np.cumsum(crowded)[cells[~few]] - 1
            table[rows[:, None], chosen[~few]] += 1
        placed = np.concatenate(fine)
        order = np.argsort(placed)
        counts = np.concatenate([table.ravel(), np.ones(ones, dtype=np.int64)])
        return CellCounts(placed[order], counts[order], self.cells * points)

    def between(self, first: int, last: int) -> CellCounts:
        """Return the cells from ``first`` to ``last``, counted from 0, and what lies in them."""
        start, end = np.searchsorted(self.occupied, [first, last + 1])
        part = slice(int(start), int(end))
        return CellCounts(self.occupied[part] - first, self.counts[part], last + 1 - first)

    @property
    def groups(self) -> RankGroups:
        """The cells by how many values lie below them."""
        return rank_groups(self.occupied, self.counts, self.cells)


def draw_subsets(coins: Coins, points: int, size: int, many: int) -> Integers:
    """Draw ``many`` uniform subsets of ``size`` of the points, one per row."""
    if 2 * size <= points:
        return draw_distinct_sorted(coins, points, size, many)
    left_out = draw_distinct_sorted(coins, points, points - size, many)
    taken = np.ones((many, points), dtype=np.bool_)
    np.put_along_axis(taken, left_out, values=False, axis=1)
    return np.nonzero(taken)[1].reshape(many, size)


@dataclass(frozen=True, kw_only=True)
class SeveralQuantiles(Mechanism):
    """Quantiles of values in public cells, equal values spread over the points of their cell.

    ``spread`` is the number of points of a cell. What is released is the middle of the cell that
    holds the drawn point.
    """

    constant_instead = "Release one quantile at a time, at a share of epsilon."
    note: ClassVar[str]

    levels: Levels
    lattice: Box | Multiples
    adjacency: Adjacency
    spread: int
    cells: CellCounts = field(repr=False)

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        *,
        levels: Any,
        lower: float,
        upper: float,
        bits: int = DEFAULT_BITS,
        step: Any = None,
        spread: int | None = None,
        adjacency: str = "replace",
    ) -> Self:
        """Sort confidential values, clipped to public bounds, into public cells.

        Parameters
        ----------
        values : array-like of shape (n,)
            Numbers without nan; confidential.
        levels : sequence
            Increasing: decimal text ("0.1"), fractions ("1/30") or floats read as decimals.
        lower, upper : float
            Public bounds.
        bits : int
            Outputs are the middles of ``2^bits`` cells of the bounds.
        step : number, optional
            Instead of ``bits``: outputs are multiples of this number, 1 for whole numbers.
        spread : int, optional
            Points of a cell that equal values are spread over; a power of two. Default: two for
            each level and more, at least 32.
        adjacency : {"replace", "add-remove"}
            Which data sets are neighbours.

        Returns
        -------
        The mechanism
        """
        parsed = parse_levels(levels, owner=cls.name)
        lattice = lattice_of(lower, upper, bits=bits, step=step)
        numbers = validate_values(values, owner=cls.name)
        cells = cells_of(numbers, (float(lower), float(upper)), lattice)
        occupied, counts = np.unique(cells, return_counts=True)
        counted = CellCounts(occupied, counts.astype(np.int64), lattice.count)
        return cls._make(parsed, lattice, adjacency, spread, counted)

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        levels: Any,
        lower: float,
        upper: float,
        step: Any = None,
        spread: int | None = None,
        adjacency: str = "replace",
    ) -> Self:
        """Take how many values lie in each cell: what an engine sends back.

        Parameters
        ----------
        counts : array-like of int
            Counts of the ``2^bits`` equal cells, or of the multiples of ``step``; confidential.
        levels, lower, upper, step, spread, adjacency
            As for :meth:`from_values`.

        Returns
        -------
        The mechanism
        """
        parsed = parse_levels(levels, owner=cls.name)
        cells = confidential_array(counts, name="counts", owner=cls.name)
        bits = max(1, (cells.size - 1).bit_length())
        lattice = lattice_of(lower, upper, bits=bits, step=step)
        return cls._make(parsed, lattice, adjacency, spread, cls._occupied(cells, lattice))

    @classmethod
    def at_lower(
        cls, count: int, *, levels: Any, lattice: Box | Multiples, adjacency: str = "replace"
    ) -> Self:
        """Take ``count`` public values, all in the first cell; :meth:`with_data` brings others."""
        first = np.zeros(1, dtype=np.int64)
        cells = CellCounts(first, first + count, lattice.count)
        return cls._make(parse_levels(levels, owner=cls.name), lattice, adjacency, None, cells)

    @classmethod
    def _occupied(cls, cells: Array, lattice: Box | Multiples) -> CellCounts:
        """Return the cells that hold values; ``cells`` are the counts in all of them."""
        if cells.dtype.kind not in "iu" or cells.shape != (lattice.count,):
            raise ParameterTypeError(
                f"`counts` of {cls.name} must be whole numbers, one per cell: a power of two of"
                " them, or as many as there are multiples of the step."
            )
        wide = cells.astype(np.int64)
        if (wide < 0).any() or int(wide.sum()) > MOST_VALUES:
            raise ParameterError(
                f"`counts` of {cls.name} must be at least 0, together at most 2^31."
            )
        occupied = np.flatnonzero(wide)
        return CellCounts(occupied, wide[occupied], lattice.count)

    def with_data(self, counts: ArrayLike) -> Self:
        """Return the same levels of other values, by how many lie in each cell."""
        cells = confidential_array(counts, name="counts", owner=self.name)
        counted = self._occupied(cells, self.lattice)
        # the charge was made for this count, which the certificate states
        if self.adjacency.count_is_public and counted.total != self.cells.total:
            raise ParameterError(f"`counts` of {self.name} must be of as many values as before.")
        return dataclasses.replace(self, cells=counted)

    @classmethod
    def _make(
        cls,
        levels: Levels,
        lattice: Box | Multiples,
        adjacency: str,
        spread: int | None,
        cells: CellCounts,
    ) -> Self:
        relation = validate_adjacency(adjacency, owner=cls.name)
        if relation.count_is_public and cells.total == 0:
            raise ParameterError(f"`values` of {cls.name} must not be empty under 'replace'.")
        points = default_spread(len(levels.numerators)) if spread is None else spread
        return cls(
            levels=levels,
            lattice=lattice,
            adjacency=relation,
            spread=_validate_spread(points, cls.name),
            cells=cells,
        )

    @abstractmethod
    def points_draw(self, spread: CellCounts, budget: Fraction) -> Callable[[Coins], Integers]:
        """Return the draw of a tuple of points, from values that are spread over their cells.

        Parameters
        ----------
        spread : CellCounts
            How many values there are at each point.
        budget : Fraction
            The epsilon of a draw.
        """

    @abstractmethod
    def energy_terms(self, budget: Fraction) -> dict[str, Any]:
        """Return ``sensitivity``, ``eta`` and ``parameters`` of a draw."""

    @abstractmethod
    def _seconds(self, ranks: int, budget: Fraction) -> float:
        """Return the time of a draw by measured constants, from up to so many different ranks."""

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return what is public about a draw; the number of values is under "replace" only."""
        many, points = len(self.levels.numerators), self.lattice.count * self.spread
        # Empty under add-remove: then nothing here depends on how many values there are.
        public = self.adjacency.public(self.cells.total)
        ranks = min((public["count"] if public else _USUAL_ROWS) + 1, points)
        most = float(many * (ranks if public else points))  # entries of the tables
        own = self.energy_terms(budget)
        own["parameters"] = {"levels": self.levels.texts, "spread": self.spread} | own["parameters"]
        return PublicTerms(
            adjacency=self.adjacency,
            unit=ENERGY_UNIT,
            domain=self.lattice.describe() | {"kind": KIND} | public,
            assumptions=_ASSUMED,
            timing=DATA_DEPENDENT,
            forecast=Forecast(
                expected=(float(many), most), nearly_all=(float(many), most), typical=many * ranks
            ),
            seconds=self._seconds(ranks, budget),
            note=self.note,
            **own,
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of tuples, one per row; values are spread anew for each of them."""
        unspread = self.points_draw(self.cells, budget) if self.spread == 1 else None

        def draw_cells(coins: Coins) -> Integers:
            if unspread is not None:
                return unspread(coins)
            # neighbours stay neighbours when values are spread: docs/theory/quantiles.md, Theorem 2
            spread = self.cells.spread(coins, self.spread)
            return self.points_draw(spread, budget)(coins) // self.spread

        def draw(coins: Coins, size: int) -> Draws:
            indices = np.stack([draw_cells(coins) for _ in range(size)])
            values = self.lattice.values(indices.reshape(-1, 1)).reshape(indices.shape)
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64))

        return draw

    @classmethod
    def verify_common(cls, certificate: Certificate, levels: Levels) -> list[Check]:
        """Recompute what certificates of several quantiles have in common."""
        parameters, domain = certificate.sampler, certificate.domain
        adjacency = validate_adjacency(certificate.adjacency, owner=cls.name)
        lattice = rebuild_lattice(domain)
        public = {"count": domain["count"]} if "count" in domain else {}
        names = certificate.postprocessing.get("labels", parameters["levels"])
        spread = parameters.get("spread", 1)
        earlier = "spread" not in parameters
        return [
            *check_direct(certificate, cls.name, KIND, DATA_DEPENDENT),
            check_equal("one column", lattice.dimension, 1),
            check_equal("loss error", float(certificate.loss_error), 0.0),
            check_described("lattice", domain, lattice.describe() | {"kind": KIND} | public),
            check_equal("spread", spread, _validate_spread(spread, cls.name)),
            check_count(domain, adjacency),
            check_assumed(certificate, _EARLIER if earlier else _ASSUMED),
            check_equal("names", parse_levels(names, owner=cls.name).texts, levels.texts),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Floats | None) -> bool:
        """Tell whether these can be the quantiles: one per level, in order, on the lattice."""
        many = len(certificate.sampler["levels"])
        if point is None or point.shape != (many,) or (np.diff(point) < 0.0).any():
            return False
        lattice = rebuild_lattice(certificate.domain)
        if not bool(lattice.contains_points(point[:, None]).all()):
            return False
        indices = lattice.locate(point[:, None])
        inside = bool(lattice.contains(indices).all())
        return inside and lattice.points(indices).tobytes() == point.tobytes()


def rebuild_lattice(domain: dict[str, Any]) -> Box | Multiples:
    """Return the cells that a certificate describes; raise where there are none."""
    if "step" in domain:
        return Multiples(step=domain["step"], lower=domain["lower"], upper=domain["upper"])
    return Box(domain["lower"], domain["upper"], bits=domain["bits"])


def _validate_spread(spread: Any, owner: str) -> int:
    points = validate_integer(spread, name="spread", owner=owner, low=1, high=_MOST_SPREAD)
    if points & (points - 1):
        raise ParameterError(f"`spread` of {owner} must be a power of two; got {spread!r}.")
    return points
