"""Outputs of any mechanism as a table of features, or as labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError

Floats = NDArray[np.float64]

_FEW = 64
_DECIMALS = 16
_TRACES = (
    "binary digits",
    "number of decimals",
    "last decimal",
    "last decimal modulo 2",
    "fraction",
)
_LARGE = 1e300  # stands for infinity; nan goes beyond it


@dataclass(frozen=True)
class Outputs:
    """Outputs as numbers, one row a draw, or as labels where they are no numbers."""

    table: Floats | None
    labels: NDArray[np.str_]
    digits: bool = False

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def features(self) -> Floats:
        """What events of numbers look at, one row a draw."""
        if self.table is None:
            raise ParameterError("the event is one of numbers, and these outputs are none.")
        return features(self.table, self.digits)

    def __getitem__(self, rows: Any) -> Outputs:
        return Outputs(
            None if self.table is None else self.table[rows], self.labels[rows], self.digits
        )


def read_outputs(raw: Any, expected: int, digits: bool = True) -> Outputs:
    """Return what a mechanism gave; raise unless it is one output a draw."""
    if not hasattr(raw, "__len__") or len(raw) != expected:
        raise ParameterError(
            "a mechanism that is audited must be a function (data, n) that returns n outputs;"
            f" asked for {expected}, it gave"
            f" {len(raw) if hasattr(raw, '__len__') else type(raw).__name__}."
        )
    numbers = _as_numbers(raw)
    if numbers is None:
        return Outputs(None, np.array([repr(one) for one in raw], dtype=np.str_))
    labels = np.array([" ".join(map(repr, row)) for row in numbers.tolist()])
    return Outputs(numbers, labels, digits)


def join(parts: Sequence[Outputs]) -> Outputs:
    """Return outputs one after the other."""
    tables = [one.table for one in parts if one.table is not None]
    whole = np.concatenate(tables) if len(tables) == len(parts) else None
    labels = np.concatenate([one.labels for one in parts])
    return Outputs(whole, labels, parts[0].digits)


def feature_names(columns: int) -> list[str]:
    """Return what the features of a table of so many columns are called, in order."""
    entries = ["x"] if columns == 1 else [f"x[{j}]" for j in range(columns)]
    sizes = [f"|{entry}|" for entry in entries]
    traces = [f"{trace} of {entry}" for trace in _TRACES for entry in entries]
    return [*entries, *sizes, "the length of x", *traces]


def features(table: Floats, digits: bool) -> Floats:
    """Return the entries, their sizes and the length; if asked, what lattice each entry is on.

    Values that only one side can produce show in that: noise in floating point leaves some, and so
    does noise on whole numbers that is added to data that are none.
    """
    with np.errstate(all="ignore"):
        length = np.sqrt((table**2).sum(axis=1, keepdims=True))
        columns = [table, np.abs(table), length]
        if digits:
            columns += [_binary_digits(table), *_decimal_digits(table)]
    found = np.nan_to_num(np.hstack(columns), nan=2 * _LARGE, posinf=_LARGE, neginf=-_LARGE)
    return np.asarray(found, dtype=np.float64)


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
    found = np.unique(outputs.labels)
    return found.tolist() if len(found) <= _FEW or outputs.table is None else None


def _as_numbers(raw: Any) -> Floats | None:
    try:
        numbers = np.asarray(raw)
    except ValueError:  # rows of different lengths: labels
        return None
    if numbers.dtype.kind not in "fiub" or numbers.ndim not in (1, 2):
        return None
    return numbers.reshape(len(numbers), -1).astype(np.float64)
