"""Columns clipped to public bounds and snapped to whole numbers, row by row, in the engine.

Clipped first of all: nothing is computed from a value outside its bounds, so nothing can overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from expmech.data.source import Source
from expmech.data.values import constant
from expmech.statistics.aggregates import Bounds, validate_bounds, validate_columns
from expmech.statistics.reading import stand_in, validate_missing

Whole = Callable[[Any, int], Any]
"""How ``(clipped - lower) 2^bits / width`` becomes a whole number."""


@dataclass(frozen=True, kw_only=True)
class Snapped:
    """A table of whole numbers, with no column of the source left in it.

    ``values`` are the names of its columns in order; ``lost``, where missing values are to be
    refused, names the flag of rows that have one; ``prefix`` starts names that are free.
    """

    table: Any
    values: tuple[str, ...]
    lost: str | None
    prefix: str


def snapped(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    bits: int,
    missing: str,
    whole: Whole,
    label: tuple[Any, Any] | None = None,
    maps: Sequence[tuple[float, float]] | None = None,
) -> Snapped:
    """Return columns clipped and snapped to whole numbers, missing values by the public rule.

    ``label`` is an expression of whole numbers, and one that says whether it is missing; it becomes
    the last column. ``maps`` are the origin and the number of steps a unit of each column; None:
    the lower bound, and ``2^bits`` steps a width.
    """
    rule = validate_missing(missing, owner="the data layer")
    limits = _limits(columns, bounds)
    (prefix,) = fresh_names(source.table.columns, 1)
    raw = {f"{prefix}r{j}": source.number(name) for j, name in enumerate(columns)}
    flags = {} if label is None else {f"{prefix}f": label[0], f"{prefix}g": label[1]}
    table = source.staged({**raw, **flags})
    numbers = [table[name] for name in raw]
    lost = _any([~present(number) for number in numbers] + ([table[f"{prefix}g"]] if flags else []))
    if rule == "drop":
        table = table.filter(~lost)
    names = tuple(f"{prefix}v{j}" for j in range(len(columns) + bool(flags)))
    lines = maps or [(lower, 2.0**bits / (upper - lower)) for lower, upper in limits]
    cells = [
        whole(steps_of(table[name], pair, stand_in(pair, rule), line, source.engine), bits)
        for name, pair, line in zip(raw, limits, lines, strict=True)
    ]
    if flags:
        cells.append(table[f"{prefix}f"].cast("int64"))
    flag = {f"{prefix}l": lost} if rule == "error" else {}
    chosen = table.select(**dict(zip(names, cells, strict=True)), **flag)
    return Snapped(table=chosen, values=names, lost=next(iter(flag), None), prefix=prefix)


def nearest(steps: Any, bits: int) -> Any:
    """Snap to the nearest of ``0 .. 2^bits``, as :func:`expmech.release.snapping.snap` does."""
    return (steps + constant(0.5)).floor().cast("int64")


def unrounded(steps: Any, bits: int) -> Any:
    """Leave steps as floats: what takes them rounds them as :func:`nearest` does."""
    return steps


def cell(steps: Any, bits: int) -> Any:
    """Snap to the cell ``0 .. 2^bits - 1`` that holds the value; the upper bound is in the last."""
    import ibis

    return ibis.least(steps.floor().cast("int64"), (1 << bits) - 1)


def fresh_names(columns: Sequence[str], count: int) -> list[str]:
    """Return names that no column starts with, whatever the case.

    Some engines do not tell ``A`` from ``a``.
    """
    prefix = "em"
    while any(column.lower().startswith(prefix) for column in columns):
        prefix += "_"
    return [f"{prefix}{chr(ord('a') + k)}" for k in range(count)]


def _limits(columns: Sequence[str], bounds: Sequence[Bounds]) -> list[Bounds]:
    validate_columns(columns, bounds)
    return [validate_bounds(pair, name=name) for pair, name in zip(bounds, columns, strict=True)]


def present(number: Any) -> Any:
    """Return whether there is a number; never NULL."""
    return number.notnull() & ~number.isnan()


def _any(flags: list[Any]) -> Any:
    found = flags[0]
    for flag in flags[1:]:
        found = found | flag
    return found


def steps_of(
    number: Any, pair: Bounds, stand: float, line: tuple[float, float], engine: str
) -> Any:
    """Return ``(clipped - origin) factor`` of a value, or of its stand-in."""
    import ibis

    low, high = map(constant, pair)
    origin, factor = line
    # NaN is sorted out before anything is compared. Comparisons take DuckDB half the time of
    # `least` and `greatest`.
    clipped = ibis.cases(
        (number.isnull() | number.isnan(), constant(stand)),
        (number < low, low),
        (number > high, high),
        else_=number,
    )
    rise = clipped - constant(origin)
    if engine == "postgres":  # it raises where a product underflows; so small a rise snaps to 0
        least = constant(max(2.0**-70 / factor, 2.0**-1000))
        rise = (rise.abs() > least).ifelse(rise, constant(0.0))
    return rise * constant(factor)
