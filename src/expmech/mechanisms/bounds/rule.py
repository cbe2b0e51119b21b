"""From noisy counts of cells to bounds: public rules that look at nothing else.

Whatever is done here is post-processing, so its floats cannot cost privacy. Theory page:
docs/theory/private_bounds.md.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

FALSE = 5e-4
"""How often a test of cells without rows shows one, at most."""

_WALKED = 0.03  # how often a next cell without rows is taken for one with rows
_LEFT_OUT = 1 / 16  # share of rows that equal cells may leave out
_FADING = 3.0  # times the level of the walk: an end with fewer rows is not a sharp one
WINDOWS = (1, 2, 4)
"""How many neighbouring cells are tested together: rows that are spread are seen as well."""

_HALF_WEIGHT = 8.0  # octaves from 1 at which a cell is looked for less: (1 + |exponent| / 8)^-2

Counts = NDArray[np.int64]
Ends = tuple[int, int]
Levels = tuple[NDArray[np.float64], ...]
"""For each size of a window, what its sum must reach, window by window, in units of 1/rate."""


def tail(width: int, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability that ``width`` Laplace numbers of scale 1 add up to ``at`` or more."""
    total = np.zeros_like(at)
    term = np.ones_like(at)
    for i in range(width):
        share = sum(math.comb(width + r - 1, r) * 0.5 ** (width + r) for r in range(width - i))
        total += share * term
        term = term * at / (i + 1)
    return np.asarray(np.exp(-at) * total)


def level(width: int, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a sum of ``width`` Laplace numbers of scale 1 reaches with this chance."""
    low, high = np.zeros_like(chance), np.full_like(chance, 2000.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = tail(width, middle) > chance
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


WALK = float(level(1, np.array([_WALKED]))[0])


def threshold(units: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Return the least whole number of rows from a level; noise is discrete, so one more."""
    return np.asarray(np.ceil(units / rate) + 1.0)


@functools.cache
def octave_levels(octaves: int, least: int, split: int) -> Levels:
    """Return the levels of cells by sign and exponent, with zero in the middle.

    Cells near 1 are tested at lower levels than far ones. No window has cells of both signs.
    """
    exponents = least + np.arange(octaves * split) // split
    size = (1.0 + np.abs(exponents) / _HALF_WEIGHT) ** -2.0
    weights = np.concatenate([size[::-1], [1.0], size])
    weights *= FALSE / (len(WINDOWS) * weights.sum())
    middle = octaves * split
    levels = []
    for width in WINDOWS:
        starts = np.arange(len(weights) - width + 1)
        units = level(width, weights[starts + width // 2])
        mixed = (starts <= middle) & (starts + width > middle) & (width > 1)
        levels.append(np.where(mixed, np.inf, units))
    return tuple(levels)


@functools.cache
def equal_levels(cells: int) -> Levels:
    """Return the levels of cells that are looked for alike."""
    chance = np.array([FALSE / (len(WINDOWS) * cells)])
    return tuple(
        np.full(max(0, cells - width + 1), float(level(width, chance)[0])) for width in WINDOWS
    )


def seen(noisy: Counts, rate: float, levels: Levels) -> set[int]:
    """Return the cells that are seen: alone, or in windows of which no part is seen.

    Of a window, the cells count that reach the level of the walk; all of them where none does.
    """
    sums = np.concatenate([[0], np.cumsum(noisy)])
    least = threshold(np.array([WALK]), rate)[0]
    cells: set[int] = set()
    for width, units in zip(WINDOWS, levels, strict=True):
        if len(units) == 0:
            continue
        shown = np.flatnonzero(sums[width:] - sums[:-width] >= threshold(units, rate))
        new: set[int] = set()
        for start in shown.tolist():
            window = range(start, start + width)
            if not cells.intersection(window):
                new.update([k for k in window if noisy[k] >= least] or window)
        cells |= new
    return cells


def hull(noisy: Counts, rate: float, cells: set[int]) -> Ends | None:
    """Return the first and the last cell seen, walked outward while the next one has rows."""
    if not cells:
        return None
    least = threshold(np.array([WALK]), rate)[0]
    first, last = min(cells), max(cells)
    while first > 0 and noisy[first - 1] >= least:
        first -= 1
    while last < len(noisy) - 1 and noisy[last + 1] >= least:
        last += 1
    return first, last


def find_octaves(noisy: Counts, rate: float, levels: Levels) -> Ends | None:
    """Return the first and the last cell of a column, from cells by sign and exponent.

    Where only one sign is seen, the cells of the same sizes with the other sign are tested at a
    lower level: a column about zero has both.
    """
    cells = seen(noisy, rate, levels)
    middle = len(noisy) // 2
    sides = {np.sign(cell - middle) for cell in cells} - {0}
    if len(sides) == 1:
        ends = hull(noisy, rate, {cell for cell in cells if cell != middle})
        first, last = ends if ends is not None else (middle, middle)
        mirrored = slice(2 * middle - last, 2 * middle - first + 1)
        other = noisy[mirrored]
        cells |= {k + mirrored.start for k in seen(other, rate, equal_levels(len(other)))}
    return hull(noisy, rate, cells)


def find_equal(noisy: Counts, rate: float) -> Ends | None:
    """Return the first and the last cell of a column, from cells of equal width.

    Where the outermost cell has few rows, rows that thin out were missed beyond it: that end is
    moved outward by half of the width.
    """
    ends = hull(noisy, rate, seen(noisy, rate, equal_levels(len(noisy))))
    if ends is None:
        return None
    first, last = ends
    few = _FADING * threshold(np.array([WALK]), rate)[0]
    more = (last - first + 1) // 3
    if noisy[first] < few:
        first = max(0, first - more)
    if noisy[ends[1]] < few:
        last = min(len(noisy) - 1, last + more)
    return first, last


def holds_most(noisy: Counts, ends: Ends, rate: float, octaves: int) -> bool:
    """Tell whether equal cells from first to last hold what was counted by exponent, nearly.

    Where few of them are seen because rows are spread over many, they hold a part only. Then
    ``octaves``, the noisy count by exponent, is larger by more than noise explains.
    """
    first, last = ends
    inside = int(noisy[first : last + 1].sum())
    noise = math.sqrt(2.0 * (last - first + 1)) / rate  # standard deviation of their sum
    return octaves - inside <= _LEFT_OUT * octaves + 2.0 * noise
