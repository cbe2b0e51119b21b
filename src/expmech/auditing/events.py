"""Outputs of an audited mechanism, and the events of outputs that an audit may bet on."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.errors import ParameterError

_FEW = 64
_DECIMALS = 16
_TRACES = (
    "binary digits",
    "number of decimals",
    "last decimal",
    "last decimal modulo 2",
    "fraction",
)
_LARGE = 1e300  # stands for infinity; nan, and what an output does not have, go beyond it
_ABSENT = 2 * _LARGE
_EXTRA = ("number of parts of ", "code of ")
_PARTS, _CODE = (f"{prefix}{{}}" for prefix in _EXTRA)
_MOST_PARTS = 256  # first parts of an output that are looked at
_MOST_NAMES = 1024


@dataclass(frozen=True)
class Outputs:
    """Outputs as labels and as numbers, one row per draw.

    ``table`` has a column for each number in an output, ``extra`` one for each count of parts and
    each code of a text; a part that an output does not have is nan. What a name stands for in one
    output depends on that output alone, whatever else was drawn with it.
    """

    labels: NDArray[np.str_]
    table: Floats
    columns: tuple[str, ...]
    extra: Floats
    extra_columns: tuple[str, ...]
    digits: bool

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def feature_names(self) -> list[str]:
        """Return what the features are called, in order."""
        sizes = [f"|{entry}|" for entry in self.columns]
        traces = [f"{trace} of {entry}" for trace in _TRACES for entry in self.columns]
        traces = traces if self.digits else []
        return [*self.columns, *sizes, "the length of x", *traces, *self.extra_columns]

    @property
    def features(self) -> Floats:
        """What events of numbers look at, one row per draw."""
        extra = np.nan_to_num(self.extra, nan=_ABSENT)
        return np.hstack([features(self.table, self.digits), extra])

    def named(self, names: Sequence[str]) -> Floats:
        """Return features by name, one column each; none of these outputs may have one."""
        numbers = {name: j for j, name in enumerate(self.feature_names)}
        whole = np.hstack([self.features, np.full((len(self), 1), _ABSENT)])
        return whole[:, [numbers.get(name, -1) for name in names]]

    def __getitem__(self, rows: Any) -> Outputs:
        return replace(
            self, labels=self.labels[rows], table=self.table[rows], extra=self.extra[rows]
        )


def read_outputs(raw: Any, expected: int, digits: bool = True) -> Outputs:
    """Return the outputs of a mechanism; raise unless there is one per draw."""
    if not hasattr(raw, "__len__") or len(raw) != expected:
        raise ParameterError(
            "a mechanism that is audited must be a function (data, n) that returns n outputs;"
            f" asked for {expected}, it gave"
            f" {len(raw) if hasattr(raw, '__len__') else type(raw).__name__}."
        )
    numbers = _as_numbers(raw)
    if numbers is None:
        return _read_parts(list(raw), digits)
    labels = np.array([" ".join(map(repr, row)) for row in numbers.tolist()])
    if np.ndim(raw) == 1:
        return Outputs(labels, numbers, ("x",), np.zeros((expected, 0)), (), digits)
    columns = tuple(f"x[{j}]" for j in range(numbers.shape[1]))
    count = np.full((expected, 1), float(numbers.shape[1]))
    return Outputs(labels, numbers, columns, count, (_PARTS.format("x"),), digits)


def _read_parts(raw: list[Any], digits: bool) -> Outputs:
    """Return outputs that are no numbers by what they are made of: dicts, lists, texts."""
    labels = np.array([repr(output) for output in raw], dtype=np.str_)
    rows = [dict(itertools.islice(_parts(output, "x"), _MOST_PARTS)) for output in raw]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(names) > _MOST_NAMES:
        raise ParameterError(
            f"outputs of a mechanism that is audited must have at most {_MOST_NAMES} different"
            f" parts in all; they have {len(names)}. Return vectors, or a part of each output."
        )
    whole = np.array([[row.get(name, np.nan) for name in names] for row in rows])
    extra = np.array([name.startswith(_EXTRA) for name in names], dtype=np.bool_)
    columns, others = (tuple(itertools.compress(names, keep)) for keep in (~extra, extra))
    return Outputs(labels, whole[:, ~extra], columns, whole[:, extra], others, digits)


def _parts(output: Any, path: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers an output is made of, how many parts it has, and codes of its texts."""
    if isinstance(output, np.ndarray):
        output = output.tolist()  # of three dimensions: lists of lists of lists
    if isinstance(output, Mapping | list | tuple | set | frozenset):
        yield _PARTS.format(path), float(len(output))
        if isinstance(output, Mapping):
            inner = [(f"{path}[{key!r}]", part) for key, part in output.items()]
        else:
            listed = sorted(output, key=repr) if isinstance(output, set | frozenset) else output
            inner = [(f"{path}[{j}]", part) for j, part in enumerate(listed)]
        for name, part in inner:
            yield from _parts(part, name)
    elif isinstance(output, complex | np.complexfloating):
        yield f"{path}.real", float(output.real)
        yield f"{path}.imag", float(output.imag)
    elif isinstance(output, bool | int | float | np.number | np.bool_):
        try:
            yield path, float(output)
        except OverflowError:
            yield path, math.copysign(math.inf, output)
    else:  # a text, None, anything that shows itself
        yield _CODE.format(path), zlib.crc32(repr(output).encode()) / 2.0**32


def join(parts: Sequence[Outputs]) -> Outputs:
    """Return the outputs of several lots as one, in order."""
    labels = np.concatenate([part.labels for part in parts])
    columns = tuple(dict.fromkeys(name for part in parts for name in part.columns))
    others = tuple(dict.fromkeys(name for part in parts for name in part.extra_columns))
    table = np.concatenate([_aligned(part.table, part.columns, columns) for part in parts])
    extra = np.concatenate([_aligned(part.extra, part.extra_columns, others) for part in parts])
    return Outputs(labels, table, columns, extra, others, parts[0].digits)


def _aligned(table: Floats, names: tuple[str, ...], columns: tuple[str, ...]) -> Floats:
    """Return a table with these columns; nan where it has none of the name."""
    numbers = {name: j for j, name in enumerate(names)}
    whole = np.hstack([table, np.full((len(table), 1), np.nan)])
    return whole[:, [numbers.get(name, -1) for name in columns]]


def features(table: Floats, digits: bool) -> Floats:
    """Return entries, sizes and length; with ``digits`` also on which lattice each entry lies.

    The lattice shows values that only one side can produce: floating-point noise leaves such
    values, and so does whole-number noise on data that are not whole.
    """
    with np.errstate(all="ignore"):
        length = np.sqrt(np.nansum(table**2, axis=1, keepdims=True))
        columns = [table, np.abs(table), length]
        if digits:
            traces = [_binary_digits(table), *_decimal_digits(table)]
            columns += [np.where(np.isnan(table), np.nan, trace) for trace in traces]
    finite = np.nan_to_num(np.hstack(columns), nan=_ABSENT, posinf=_LARGE, neginf=-_LARGE)
    return np.asarray(finite, dtype=np.float64)


def _decimal_digits(table: Floats) -> list[Floats]:
    """Return how many decimals each entry has, its last one, whether that is odd, the fraction.

    The last one is counted from below, also left of zero, so that a lattice has the same on it.
    """
    entries = np.nan_to_num(table, posinf=0.0, neginf=0.0)
    decimals = np.full(table.shape, float(_DECIMALS))
    for places in range(_DECIMALS - 1, -1, -1):
        decimals = np.where(np.round(entries, places) == entries, float(places), decimals)
    last = np.mod(np.round(entries * 10.0**decimals), 10.0)
    fraction = np.round(np.mod(table, 1.0), 9)  # beyond that it is noise of floating point
    return [decimals, last, np.mod(last, 2.0), np.asarray(fraction)]


def _binary_digits(table: Floats) -> Floats:
    """Return the number of digits of each mantissa up to its last one that is not 0."""
    mantissas = np.nan_to_num(np.abs(np.frexp(table)[0])) * 2.0**53
    whole = mantissas.astype(np.int64)
    zeros = np.log2(np.maximum(whole & -whole, 1)).astype(np.float64)
    return np.asarray(np.where(whole == 0, 0.0, 53.0 - zeros))


def few_labels(outputs: Outputs) -> list[str] | None:
    """Return the different labels, where there are few enough to look at one by one."""
    labels = np.unique(outputs.labels)
    return labels.tolist() if len(labels) <= _FEW or not outputs.columns else None


def _as_numbers(raw: Any) -> Floats | None:
    try:
        numbers = np.asarray(raw)
    except ValueError:  # rows of different lengths
        return None
    if numbers.dtype.kind not in "fiub" or numbers.ndim not in (1, 2):
        return None
    return numbers.reshape(len(numbers), -1).astype(np.float64)


class Event(Protocol):
    """A set of outputs."""

    def holds(self, outputs: Outputs) -> Flags:
        """Return which outputs are in the set."""

    def describe(self) -> dict[str, Any]:
        """Return the set as JSON holds it: ``kind``, ``text`` and its parameters."""


@dataclass(frozen=True)
class LabelsEvent:
    """Outputs that equal one of a list."""

    labels: tuple[str, ...]

    def holds(self, outputs: Outputs) -> Flags:
        return np.isin(outputs.labels, self.labels)

    def describe(self) -> dict[str, Any]:
        text = f"output in {{{', '.join(self.labels)}}}"
        return {"kind": "labels", "text": text, "labels": list(self.labels)}


@dataclass(frozen=True)
class IntervalEvent:
    """Outputs with a feature in ``[low, high)``."""

    feature: str
    low: float
    high: float

    def holds(self, outputs: Outputs) -> Flags:
        values = outputs.named([self.feature])[:, 0]
        return (values >= self.low) & (values < self.high)

    def describe(self) -> dict[str, Any]:
        ends = [None if np.isinf(end) else end for end in (self.low, self.high)]
        return {"kind": "interval", "text": self._text, "feature": self.feature, "ends": ends}

    @property
    def _text(self) -> str:
        below = "" if np.isinf(self.low) else f"{self.low:.6g} <= "
        above = "" if np.isinf(self.high) else f" < {self.high:.6g}"
        return f"{below}{self.feature}{above}"


@dataclass(frozen=True)
class HalfSpaceEvent:
    """Outputs whose features have a weighted sum in ``[low, high)``."""

    features: tuple[str, ...]
    weights: tuple[float, ...]
    low: float
    high: float

    def holds(self, outputs: Outputs) -> Flags:
        values = outputs.named(self.features)
        total = np.clip(values, -1e100, 1e100) @ np.array(self.weights)
        return np.asarray((total >= self.low) & (total < self.high))

    def describe(self) -> dict[str, Any]:
        ends = [None if np.isinf(end) else end for end in (self.low, self.high)]
        text = "a weighted sum of features within an interval"
        return {
            "kind": "half space",
            "text": text,
            "features": list(self.features),
            "weights": list(self.weights),
            "ends": ends,
        }


@dataclass(frozen=True, eq=False)
class CellsEvent:
    """Outputs in some cells of a grid over two features."""

    pair: tuple[str, str]
    edges: tuple[Floats, Floats]
    chosen: Flags

    def holds(self, outputs: Outputs) -> Flags:
        return self.chosen[self.cell_numbers(outputs.named(self.pair))]

    def cell_numbers(self, features: Floats) -> Integers:
        """Return the number of the cell of each row of two features."""
        rows, columns = (
            np.searchsorted(edges, features[:, j], side="right")
            for j, edges in enumerate(self.edges)
        )
        return np.asarray(rows * (len(self.edges[1]) + 1) + columns, dtype=np.int64)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "cells",
            "text": f"{int(self.chosen.sum())} cells of a grid over two features",
            "pair": list(self.pair),
            "edges": [edges.tolist() for edges in self.edges],
            "chosen": np.flatnonzero(self.chosen).tolist(),
        }


def read_event(stated: dict[str, Any]) -> Event:
    """Return the event that :meth:`Event.describe` wrote down."""
    kind = stated.get("kind")
    if kind == "labels":
        return LabelsEvent(tuple(stated["labels"]))
    if kind == "interval":
        return IntervalEvent(stated["feature"], *_ends(stated))
    if kind == "half space":
        return HalfSpaceEvent(tuple(stated["features"]), tuple(stated["weights"]), *_ends(stated))
    if kind == "cells":
        edges = [np.array(axis, dtype=np.float64) for axis in stated["edges"]]
        chosen = np.zeros((len(edges[0]) + 1) * (len(edges[1]) + 1), dtype=np.bool_)
        chosen[stated["chosen"]] = True
        return CellsEvent((stated["pair"][0], stated["pair"][1]), (edges[0], edges[1]), chosen)
    raise ParameterError(f"`kind` of an event must be one that an audit writes; got {kind!r}.")


def _ends(stated: dict[str, Any]) -> tuple[float, float]:
    low, high = stated["ends"]
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)
