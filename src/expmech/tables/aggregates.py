"""Aggregations: what a statistic asks of the rows, and exact integers as the answer.

Values are clipped to public bounds and snapped to whole numbers row by row, then counted and
summed. Here aggregates come from arrays; an engine computes the same integers where the data live
(:mod:`expmech.tables.engines.rows`). Why that keeps the sensitivity: docs/theory/noisy_mean.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.core.errors import DataError, ParameterError, shielded
from expmech.domains.regions import cells_of, lattice_of
from expmech.mechanisms.noisy_sums.noisy_sums import snap
from expmech.mechanisms.optimum.steps import STEP_BITS
from expmech.tables.arrays import ArrayRows, SparseRows, class_places
from expmech.tables.expressions import Column as Column
from expmech.tables.expressions import Condition, evaluate
from expmech.tables.keys import Key, each_key, spelling, tally_values
from expmech.tables.reading import (
    FOUND_MISSING,
    WHOLE_ROWS,
    fill_missing,
    read_column,
    stand_in,
    validate_missing,
)
from expmech.tables.scaling import (
    STANDARD_BITS,
    Bounds,
    ScaledRows,
    Scaling,
    Standard,
    make_standard,
    scalings,
    snapped_columns,
    validate_bounds,
)

if TYPE_CHECKING:
    from expmech.domains import Box, Multiples
    from expmech.mechanisms.groups import Universe
    from expmech.mechanisms.optimum import ArrayTable

PRODUCT_BITS = 20
"""Bits of columns whose products are summed: steps of 2^-20 of a width, far below the noise.

Products of two fit in 64 bits.
"""

_CACHED = 1 << 15  # numbers worked on at a time: 256 KB
_MULTIPLIED = 1 << 12  # rows whose products, of up to 40 bits, float64 sums exactly

NOWHERE = -1
"""The cell of rows that are in none of those that are counted."""

_SCORING_FAILED = "`scoring` failed on the data, or gave a score that is no finite number."


IN_ENGINE = (
    "the engine's float64 is IEEE 754, its exp is within 2^-44 of the true value, and the table"
    " does not change while it is read"
)
"""What a certificate lists where rows stay in an engine."""


class Rows(Protocol):
    """Confidential rows that answer aggregations."""

    def count(self) -> int:
        """Return how many rows there are; public under "replace", and asked for only then."""

    def aggregate(self, aggregation: Aggregation) -> Any:
        """Return the aggregate; confidential."""


class Aggregation(ABC):
    """What a statistic asks of the rows; public.

    It says how it is computed from arrays. How engines compute it is in the table of
    :mod:`expmech.tables.engines.rows`, and ``engine_notes`` is what a guarantee then rests on.
    """

    engine_notes: ClassVar[tuple[str, ...]] = ()

    @property
    def number_columns(self) -> tuple[Column, ...]:
        """Return the columns that are read as numbers, whose declared type must allow it."""
        return ()

    @property
    def date_columns(self) -> tuple[Column, ...]:
        """Return the columns that are read as dates."""
        return ()

    @abstractmethod
    def of_arrays(self, rows: ArrayRows) -> Any:
        """Return the aggregate of rows in memory; confidential."""

    def of_sparse(self, rows: SparseRows) -> Any:
        """Return the aggregate of a sparse table; confidential."""
        raise ParameterError(
            "This statistic needs a dense table: only linear and logistic regressions take a"
            " sparse one."
        )


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Count, sums and sums of products of columns snapped to ``0 .. 2^bits``; confidential.

    Exact integers. ``products[i][j]`` is the sum of ``k_i k_j``; empty where only sums were asked
    for. ``counts`` are the numbers of values of each column where missing ones are left out of it.
    """

    count: int
    sums: tuple[int, ...]
    products: tuple[tuple[int, ...], ...]
    bits: int
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts of candidates, cells or conditions, and of all rows.

    Confidential, but for the number of rows under replace.
    """

    counts: tuple[int, ...]
    rows: int


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetRows:
    """Rows with a target, a number or a place, each standing for ``counts`` equal ones.

    Confidential, and not clipped yet: what uses them does that first of all.
    """

    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())


@dataclass(frozen=True, kw_only=True)
class RowProducts:
    """Cross products of rows in units of 2^-20, and how many rows. Confidential."""

    products: tuple[tuple[int, ...], ...]
    count: int

    def __add__(self, other: RowProducts) -> RowProducts:
        pairs = zip(self.products, other.products, strict=True)
        lines = (tuple(a + b for a, b in zip(*pair, strict=True)) for pair in pairs)
        return RowProducts(products=tuple(lines), count=self.count + other.count)


@dataclass(frozen=True, kw_only=True)
class ColumnsOf(Aggregation):
    """Columns of numbers with their public bounds, and what a missing value counts as.

    All of it is checked here, for arrays and engines alike.
    """

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    missing: str
    whole_rows: ClassVar[bool] = True

    @property
    def number_columns(self) -> tuple[Column, ...]:
        return self.columns

    def __post_init__(self) -> None:
        validate_missing(self.missing, owner="the data layer")
        if self.missing == "skip" and self.whole_rows:
            raise ParameterError(WHOLE_ROWS)
        names = list(map(str, self.columns))
        if len(self.bounds) != len(names):
            raise ParameterError(
                f"`bounds` must be given once for every column; got {len(self.bounds)} for"
                f" {len(names)} columns."
            )
        validate_different(names)
        for name, pair in zip(names, self.bounds, strict=True):
            validate_bounds(pair, name=name)


@dataclass(frozen=True, kw_only=True)
class MomentsOf(ColumnsOf):
    """Count, integer sums and, if asked, integer cross products of clipped, snapped columns.

    A missing value that is skipped adds nothing to the sums of its column and to its count.
    ``dates``: the columns hold dates, read as days since 1970 (:mod:`expmech.tables.dates`).
    """

    bits: int
    products: bool = False
    dates: bool = False
    whole_rows = False

    @property
    def number_columns(self) -> tuple[Column, ...]:
        return () if self.dates else self.columns

    @property
    def date_columns(self) -> tuple[Column, ...]:
        return self.columns if self.dates else ()

    def of_arrays(self, rows: ArrayRows) -> Moments:
        """Fill, clip and snap columns, then sum them, and products of at most 20 bits.

        So few rows at a time that they stay in the cache, and column by column, for NumPy is slow
        where it repeats short rows.
        """
        values, skipped = rows.columns(self.columns), self.missing == "skip"
        if self.missing in ("drop", "error"):
            values = fill_missing(values, self.bounds, self.missing)
        lower, upper = np.array(self.bounds, dtype=np.float64).T[:, :, None]
        # one that is skipped stands at the lower bound, which snaps to 0
        stands = np.array([[stand_in(pair, self.missing)] for pair in self.bounds])
        d = len(self.bounds)
        sums, table = np.zeros(d, dtype=np.int64), np.zeros((d, d), dtype=object)
        size = _MULTIPLIED if self.products else max(1, _CACHED // d)
        for first in range(0, len(values), size):
            part = np.ascontiguousarray(values[first : first + size].T)
            snapped = snap(np.where(np.isnan(part), stands, part), lower, upper, self.bits)
            sums += snapped.sum(axis=1)
            if self.products:
                lot = snapped.astype(np.float64)
                table += (lot @ lot.T).astype(np.int64).astype(object)
        return Moments(
            count=len(values),
            sums=tuple(sums.tolist()),  # below 2^63: fewer than 2^31 rows fit in memory
            products=tuple(map(tuple, table.tolist())) if self.products else (),
            bits=self.bits,
            counts=tuple((~np.isnan(values)).sum(axis=0).tolist()) if skipped else (),
        )


@dataclass(frozen=True, kw_only=True)
class ProductsOf(ColumnsOf):
    """Integer cross products of standardised rows, each of norm at most one.

    Clipped columns minus ``center``, over ``scale``, then each row by itself over its own norm, or
    over ``row_norm`` and shortened: :class:`expmech.tables.scaling.Standard`.
    """

    center: tuple[float, ...]
    scale: tuple[float, ...]
    row_norm: float | None

    def standard(self) -> Standard:
        """Return the map to rows of norm at most one; raise where a number cannot serve."""
        lower, upper = np.array(self.bounds, dtype=np.float64).T
        return make_standard(
            lower=lower,
            upper=upper,
            center=self.center,
            scale=self.scale,
            row_norm=self.row_norm,
            owner="a principal component analysis",
        )

    def of_arrays(self, rows: ArrayRows) -> RowProducts:
        values = rows.columns(self.columns)
        if self.missing in ("drop", "error"):
            values = fill_missing(values, self.bounds, self.missing)
        lower, upper = np.array(self.bounds, dtype=np.float64).T

        def steps(part: NDArray[np.float64]) -> NDArray[np.int64]:
            return snap(fill_missing(part, self.bounds, self.missing), lower, upper, STANDARD_BITS)

        return self.of_steps(values, steps)

    def of_steps(
        self, table: NDArray[Any], steps: Callable[[NDArray[Any]], NDArray[np.int64]] = np.asarray
    ) -> RowProducts:
        """Return the cross products of rows that are given as steps of their bounds, or made so."""
        products = self.standard().products(table, steps)
        return RowProducts(products=tuple(map(tuple, products.tolist())), count=len(table))


@dataclass(frozen=True, kw_only=True)
class CellsAggregation(Aggregation):
    """How many values of a column are in each of public cells.

    The cell of a value depends on that value alone; of some values it is :data:`NOWHERE`.
    ``dates``: the column holds dates, read as days since 1970 (:mod:`expmech.tables.dates`).
    """

    column: Column
    dates: bool = False

    @property
    def number_columns(self) -> tuple[Column, ...]:
        return () if self.dates else (self.column,)

    @property
    def date_columns(self) -> tuple[Column, ...]:
        return (self.column,) if self.dates else ()

    @property
    @abstractmethod
    def cells(self) -> int:
        """The number of cells, NOWHERE left out."""

    @abstractmethod
    def of_counts(self, counts: NDArray[np.int64]) -> Any:
        """Return the aggregate from how many rows are NOWHERE, and in each cell."""


@dataclass(frozen=True, kw_only=True)
class HistogramOf(CellsAggregation):
    """How many clipped values of a column fall in each of ``2^bits`` cells of its bounds.

    With a ``step`` there is instead one cell about each multiple of it between the bounds.
    """

    bounds: Bounds
    bits: int
    missing: str
    step: Fraction | None = None

    def __post_init__(self) -> None:
        validate_missing(self.missing, owner="the data layer")
        validate_bounds(self.bounds, name=str(self.column))

    @cached_property
    def lattice(self) -> Box | Multiples:
        """The middles of the cells."""
        return lattice_of(*self.bounds, bits=self.bits, step=self.step)

    def of_arrays(self, rows: ArrayRows) -> NDArray[np.int64]:
        values = fill_missing(rows.columns((self.column,)), (self.bounds,), self.missing)
        cells = cells_of(values[:, 0], self.bounds, self.lattice)
        return np.bincount(cells, minlength=self.lattice.count)

    @property
    def cells(self) -> int:
        return self.lattice.count

    def of_counts(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.missing == "error" and counts[0]:
            raise DataError(FOUND_MISSING)
        return counts[1:]


@dataclass(frozen=True, kw_only=True)
class CellsOf(CellsAggregation):
    """How many numbers of a column fall between each edge and the next, which the last one holds.

    Numbers outside of the edges and what is missing are in no cell.
    """

    edges: tuple[float, ...]

    def of_arrays(self, rows: ArrayRows) -> Tally:
        values = rows.columns((self.column,))[:, 0]
        last = len(self.edges) - 2
        cells = np.searchsorted(self.edges, values, side="right") - 1  # NaN: beyond the last edge
        cells = np.where(values == self.edges[-1], last, cells)
        counts = np.bincount(cells[(cells >= 0) & (cells <= last)], minlength=last + 1)
        return Tally(counts=tuple(counts.tolist()), rows=rows.count())

    @property
    def cells(self) -> int:
        return len(self.edges) - 1

    def of_counts(self, counts: NDArray[np.int64]) -> Tally:
        return Tally(counts=tuple(counts[1:].tolist()), rows=int(counts.sum()))


@dataclass(frozen=True, kw_only=True)
class MagnitudesOf(CellsAggregation):
    """How many numbers of a column have each sign, binary exponent and leading bits.

    What is missing is NOWHERE, and counted there.
    """

    missing: str

    def of_arrays(self, rows: ArrayRows) -> dict[int, int]:
        from expmech.mechanisms.bounds.grid import Magnitudes

        counts = Magnitudes().count(rows.columns((self.column,))[:, 0])
        return self._checked(counts)

    @property
    def cells(self) -> int:
        from expmech.mechanisms.bounds.grid import Magnitudes

        return Magnitudes().size

    def of_counts(self, counts: NDArray[np.int64]) -> dict[int, int]:
        places = np.flatnonzero(counts)
        return self._checked(
            dict(zip((places + NOWHERE).tolist(), counts[places].tolist(), strict=True))
        )

    def _checked(self, counts: dict[int, int]) -> dict[int, int]:
        if self.missing == "error" and NOWHERE in counts:
            raise DataError(FOUND_MISSING)
        return counts


@dataclass(frozen=True, kw_only=True)
class TallyOf(Aggregation):
    """How many values of a column equal each of a public list, by their canonical keys."""

    column: Column
    candidates: tuple[Any, ...]

    def of_arrays(self, rows: ArrayRows) -> Tally:
        return Tally(counts=tally_values(rows.raw, self.candidates), rows=rows.count())


@dataclass(frozen=True, kw_only=True)
class KeysOf(Aggregation):
    """How many rows have each key of a public universe, by what their values spell.

    With ``unit`` it is how many of the units that this column names; each counts once per key. A
    value that is missing, or outside of the universe, counts nowhere.
    """

    column: Column
    universe: Universe
    unit: str | None = None

    def of_arrays(self, rows: ArrayRows) -> dict[str, int]:
        return self.of_keys(each_key(rows.raw))

    def of_keys(self, counts: Mapping[Key, int]) -> dict[str, int]:
        """Return the counts by text."""
        texts: dict[str, int] = {}
        for key, count in counts.items():
            text = self.spelt(key)
            if text is not None:
                texts[text] = texts.get(text, 0) + count
        return texts

    def spelt(self, key: Key) -> str | None:
        """Return the key of the universe that a value has: a whole number also with zeros before.

        Text that spells a number is that number, so a pattern of five digits means 01067 by 1067.
        """
        plain = spelling(key)
        if plain is None or plain in self.universe:
            return plain
        if key.kind != "number" or not plain.isdecimal():
            return None
        padded = (plain.zfill(width) for width in range(len(plain) + 1, self.universe.longest + 1))
        return next((text for text in padded if text in self.universe), None)


@dataclass(frozen=True, kw_only=True)
class CrossedOf(Aggregation):
    """How many rows are in each of disjoint groups: those with its public value in every column.

    With ``condition`` only rows for which it holds are counted.
    """

    by: tuple[Column, ...]
    groups: tuple[tuple[Any, ...], ...]
    condition: Condition | None = None

    def of_arrays(self, rows: ArrayRows) -> tuple[int, ...]:
        raise ParameterError("Groups of rows need a table, such as open_frame makes, not arrays.")


@dataclass(frozen=True, kw_only=True)
class GroupedOf(Aggregation):
    """The same moments of each of disjoint groups, as :class:`CrossedOf` has them."""

    by: tuple[Column, ...]
    groups: tuple[tuple[Any, ...], ...]
    each: MomentsOf

    def of_arrays(self, rows: ArrayRows) -> tuple[Moments, ...]:
        raise ParameterError("Groups of rows need a table, such as open_frame makes, not arrays.")


@dataclass(frozen=True, kw_only=True)
class FlagsOf(Aggregation):
    """How many rows satisfy each of several conditions, and how many there are."""

    conditions: tuple[Condition, ...]

    def of_arrays(self, rows: ArrayRows) -> Tally:
        count = rows.count()

        def holds(condition: Condition) -> int:
            flags = evaluate(condition, lambda column: rows.columns((column,))[:, 0])
            return int(np.broadcast_to(flags == 1.0, (count,)).sum())

        return Tally(counts=tuple(map(holds, self.conditions)), rows=count)


@dataclass(frozen=True, kw_only=True)
class LabelledRowsOf(ColumnsOf):
    """Columns, and the class of each row by the column ``target``: its place in a public list.

    ``classes`` are those after the first one, places 1, 2, ...; any other label has place 0.
    """

    target: Column
    classes: tuple[Any, ...]

    def of_arrays(self, rows: ArrayRows) -> TargetRows:
        places = class_places(rows.target, self.classes, self.missing)
        features, targets = rows.with_targets(self.columns, places, (0.0, 1.0), self.missing)
        return TargetRows(
            features=fill_missing(features, self.bounds, self.missing),
            targets=targets,
            counts=np.ones(len(targets), dtype=np.int64),
        )


@dataclass(frozen=True, kw_only=True)
class DesignOf(ColumnsOf):
    """Rows of a regression: a constant and scaled columns, and the column ``target``.

    Which is a number, scaled by ``target_bounds``, or, where these are None, the place of a class
    as of :class:`LabelledRowsOf`. The aggregate is a :class:`expmech.mechanisms.optimum.Table`:
    arrays, or a table that stays in its engine.
    """

    engine_notes = (IN_ENGINE,)
    target: Column
    target_bounds: Bounds | None = None
    classes: tuple[Any, ...] = ()
    center: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_bounds is not None:
            validate_bounds(self.target_bounds, name=str(self.target))

    @property
    def number_columns(self) -> tuple[Column, ...]:
        return self.columns if self.target_bounds is None else (*self.columns, self.target)

    @cached_property
    def scalings(self) -> tuple[Scaling, ...]:
        """The maps of the columns to [-1, 1]."""
        return scalings(self.bounds, center=self.center)

    @cached_property
    def target_scaling(self) -> Scaling | None:
        """The map of a target that is a number."""
        return None if self.target_bounds is None else scalings((self.target_bounds,))[0]

    def of_arrays(self, rows: ArrayRows) -> ArrayTable:
        from expmech.mechanisms.optimum.draw import ArrayTable

        if self.target_bounds is None:
            targets = class_places(rows.target, self.classes, self.missing)
        else:
            targets = rows.columns((self.target,))[:, 0]
        features, targets = rows.with_targets(
            self.columns, targets, self.target_bounds or (0.0, 1.0), self.missing
        )
        stands = [stand_in(pair, self.missing) for pair in self.bounds]
        design = ScaledRows(features, self.scalings, stands)
        return ArrayTable(design, self._scaled_target(targets))

    def of_sparse(self, rows: SparseRows) -> ArrayTable:
        if self.center:
            return super().of_sparse(rows)  # type: ignore[no-any-return]
        from scipy.sparse import hstack

        from expmech.mechanisms.optimum.draw import ArrayTable

        matrix = rows.matrix.astype(np.float64).copy()
        matrix.sum_duplicates()
        if self.target_bounds is None:
            targets = class_places(rows.target, self.classes, self.missing)
        else:
            targets = read_column(rows.target)
        lost = np.isnan(targets)
        row_of_entry = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        np.logical_or.at(lost, row_of_entry, np.isnan(matrix.data))
        if self.missing == "error" and lost.any():
            raise DataError(FOUND_MISSING)
        if self.missing == "drop":
            matrix, targets = matrix[~lost], targets[~lost]
        matrix.data = self._scaled_entries(matrix)
        if self.target_bounds is not None:
            replacement = stand_in(self.target_bounds, self.missing)
            targets = np.where(np.isnan(targets), replacement, targets)
        with_constant = hstack([np.ones((matrix.shape[0], 1)), matrix], format="csr")
        return ArrayTable(with_constant, self._scaled_target(targets))

    def _scaled_entries(self, matrix: Any) -> NDArray[np.float64]:
        """Scale the stored entries, each by the map of its column; 0 is 0 on every scale."""
        table = np.array(
            [(*s.bounds, s.factor, stand_in(s.bounds, self.missing)) for s in self.scalings]
        )
        lower, upper, factor, replacement = table[matrix.indices].T
        values = np.where(np.isnan(matrix.data), replacement, matrix.data)
        steps = np.floor(np.minimum(np.maximum(values, lower), upper) * factor + 0.5)
        return np.asarray(steps * 2.0**-STEP_BITS)

    def _scaled_target(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        scaling = self.target_scaling
        return targets if scaling is None else snapped_columns(targets[:, None], [scaling])[:, 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoresOf(Aggregation):
    """The score of each candidate by a function of the caller's, of whole tables."""

    scoring: Any
    candidates: tuple[Any, ...]

    def of_arrays(self, rows: ArrayRows) -> tuple[float, ...]:
        def work() -> tuple[float, ...]:
            scores = (self.scoring(rows.raw, rows.target, option) for option in self.candidates)
            return tuple(map(float, scores))

        scores = shielded(work, DataError(_SCORING_FAILED))
        if not np.isfinite(scores).all():
            raise DataError(_SCORING_FAILED)
        return scores


def validate_different(columns: Sequence[str]) -> None:
    """Raise unless the columns differ, whatever their case."""
    if len({name.lower() for name in columns}) != len(columns):
        raise ParameterError(f"`columns` must differ; got {', '.join(columns)}.")
