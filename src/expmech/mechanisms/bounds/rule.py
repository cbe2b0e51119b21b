"""From noisy counts of cells to bounds: public rules that look at nothing else.

Whatever is done here is post-processing, so its floats cannot cost privacy. Theory page:
docs/theory/private_bounds.md.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from expmech.core.arrays import Floats, Integers

FALSE = 5e-4
"""How often a test of cells without rows shows one, at most."""

_OTHER = FALSE / 2  # and cells of the other sign, in each of two tests
_WALKED = 0.03  # how often a next cell without rows is taken for one with rows
_SMALLER = 2  # cells of smaller sizes that are counted for the other sign
_FALLING = 0.75  # an end has so many rows of its neighbour at most where rows thin out
_RISING = 1.25  # and the neighbour hardly more than the one before it
_BELOW = 0.2  # of the rows within bounds of one sign: with more below, rows go on towards zero
_CERTAIN = 0.15  # of the rows within bounds: a cell with as many is not noise alone
_MATTERS = 0.3  # rows times the rate of noise from which they are worth a wider cell
_WORTH = 0.15  # of the rows, times the rate: what half the width is worth
_MOST_WORTH = 4.0  # nats; more would cut off rows that matter
_MANY = 28.0  # rows times the rate from which five halvings are worth fewer nats than most rows
WINDOWS = (1, 2, 4)
"""How many neighbouring cells are tested together: rows that are spread are seen as well."""

_HALF_WEIGHT = 8.0  # octaves from 1 at which a cell is looked for less: (1 + |exponent| / 8)^-2

Ends = tuple[int, int]
Levels = tuple[Floats, ...]
"""For each size of a window, what its sum must reach, window by window, in units of 1/rate."""


def tail(width: int, at: Floats) -> Floats:
    """Return the probability that ``width`` Laplace numbers of scale 1 add up to ``at`` or more."""
    total = np.zeros_like(at)
    term = np.ones_like(at)
    for i in range(width):
        share = sum(math.comb(width + r - 1, r) * 0.5 ** (width + r) for r in range(width - i))
        total += share * term
        term = term * at / (i + 1)
    return np.asarray(np.exp(-at) * total)


def level(width: int, chance: Floats) -> Floats:
    """Return what a sum of ``width`` Laplace numbers of scale 1 reaches with this chance."""
    low, high = np.zeros_like(chance), np.full_like(chance, 2000.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = tail(width, middle) > chance
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


WALK = float(level(1, np.array([_WALKED]))[0])
JUMPS = tuple(float(level(1, np.array([chance]))[0]) for chance in (_WALKED, 2e-3, 5e-4))
"""What the next cells must reach: the next one, and those one and two beyond it."""


def threshold(units: Floats, rate: float) -> Floats:
    """Return the least whole number of rows from a level; noise is discrete, so one more."""
    return np.asarray(np.ceil(units / rate) + 1.0)


@functools.cache
def octave_levels(octaves: int, least: int, split: int) -> Levels:
    """Return the levels of windows of cells by sign and exponent, with zero in the middle.

    Cells near 1 are tested at lower levels than far ones. No window has cells of both signs. After
    the levels of each size come those of such windows together with their mirrors, which begin at
    the first cell above zero.
    """
    exponents = least + np.arange(octaves * split) // split
    size = (1.0 + np.abs(exponents) / _HALF_WEIGHT) ** -2.0
    weights = np.concatenate([size[::-1], [1.0], size])
    weights *= FALSE / (2 * len(WINDOWS) * weights.sum())
    middle = octaves * split
    levels = []
    for width in WINDOWS:
        starts = np.arange(len(weights) - width + 1)
        units = level(width, weights[starts + width // 2])
        mixed = (starts <= middle) & (starts + width > middle) & (width > 1)
        levels.append(np.where(mixed, np.inf, units))
    positive = 2.0 * weights[middle + 1 :]
    for width in WINDOWS:
        starts = np.arange(max(0, len(positive) - width + 1))
        levels.append(level(2 * width, positive[starts + width // 2]))
    return tuple(levels)


@functools.cache
def equal_levels(cells: int) -> Levels:
    """Return the levels of cells that are looked for alike."""
    chance = np.array([_OTHER / (len(WINDOWS) * cells)])
    return tuple(
        np.full(max(0, cells - width + 1), float(level(width, chance)[0])) for width in WINDOWS
    )


def seen(noisy: Integers, rate: float, levels: Levels) -> set[int]:
    """Return the cells that are seen: alone, or in windows of which no part is seen.

    Of a window, the cells count that reach the level of the walk; all of them where none does.
    """
    least = threshold(np.array([WALK]), rate)[0]
    cells: set[int] = set()
    for width, units in zip(WINDOWS, levels, strict=False):
        for start in _reaching(noisy, width, threshold(units, rate)):
            window = range(start, start + width)
            if not cells.intersection(window):
                cells.update([k for k in window if noisy[k] >= least] or window)
    return cells


def seen_on_both_sides(noisy: Integers, rate: float, levels: Levels) -> set[int]:
    """Return the cells of windows that are seen together with their mirrors, on both sides."""
    middle = len(noisy) // 2
    both = noisy[middle + 1 :] + noisy[:middle][::-1]
    least = threshold(level(2, np.array([_WALKED])), rate)[0]
    steps: set[int] = set()
    for width, units in zip(WINDOWS, levels[len(WINDOWS) :], strict=False):
        for start in _reaching(both, width, threshold(units, rate)):
            window = range(start, start + width)
            if not steps.intersection(window):
                steps.update([k for k in window if both[k] >= least] or window)
    return {middle + sign * (step + 1) for step in steps for sign in (-1, 1)}


def _reaching(noisy: Integers, width: int, least: Floats) -> list[int]:
    """Return where windows of this width begin whose sums reach their levels."""
    if len(least) == 0:
        return []
    sums = np.concatenate([[0], np.cumsum(noisy)])
    return np.flatnonzero(sums[width:] - sums[:-width] >= least).tolist()


def hull(noisy: Integers, rate: float, cells: set[int]) -> Ends | None:
    """Return the first and the last cell seen, walked outward while one of the next has rows.

    Zero is not walked from: the next cells are those of the least sizes that there are.
    """
    if not cells:
        return None
    return _walk(noisy, rate, min(cells), -1), _walk(noisy, rate, max(cells), 1)


def _walk(noisy: Integers, rate: float, start: int, step: int) -> int:
    levels = [threshold(np.array([units]), rate)[0] for units in JUMPS]
    while start != len(noisy) // 2:
        ahead = [start + step * k for k in range(1, len(levels) + 1)]
        reached = [
            cell
            for cell, least in zip(ahead, levels, strict=True)
            if 0 <= cell < len(noisy) and noisy[cell] >= least
        ]
        if not reached:
            break
        start = reached[-1]
    return start


def thins_out(noisy: Integers, rate: float, last: int, step: int) -> bool:
    """Tell whether rows go on beyond an end, by the last three counts towards it.

    Their ratios fall evenly towards an end of many columns: so much is expected in the next cell.
    """
    cells = [last - 2 * step, last - step, last]
    middle = len(noisy) // 2
    if any((cell - middle) * step <= 0 for cell in cells):
        return False
    before, near, end = (float(noisy[cell]) for cell in cells)
    if not (0.0 < end < _FALLING * near and near < _RISING * before):
        return False
    return end * (end / near) ** 2 * before / near >= _MATTERS / rate


def find_octaves(noisy: Integers, rate: float, levels: Levels) -> Ends | None:
    """Return the first and the last cell of a column, from cells by sign and exponent.

    Where only one sign is seen, the cells of the same sizes with the other sign are tested at a
    lower level: a column about zero has both.
    """
    cells = seen(noisy, rate, levels)
    middle = len(noisy) // 2
    if not cells - {middle}:
        cells |= seen_on_both_sides(noisy, rate, levels)
    sides = {np.sign(cell - middle) for cell in cells} - {0}
    if len(sides) == 1:
        ends = hull(noisy, rate, {cell for cell in cells if cell != middle})
        first, last = ends if ends is not None else (middle, middle)
        cells |= other_side(noisy, rate, 2 * middle - last, 2 * middle - first)
    ends = hull(noisy, rate, cells)
    if ends is None:
        return None
    first, last = ends
    return (
        max(0, first - thins_out(noisy, rate, first, -1)),
        min(len(noisy) - 1, last + thins_out(noisy, rate, last, 1)),
    )


def other_side(noisy: Integers, rate: float, first: int, last: int) -> set[int]:
    """Return the cells of the other sign that are seen, by windows and by all of them together.

    Smaller sizes are added to the latter: a column about zero has them.
    """
    new = {first + k for k in seen(noisy[first : last + 1], rate, equal_levels(last + 1 - first))}
    middle = len(noisy) // 2
    if first > middle:
        inner = slice(max(middle + 1, first - _SMALLER), last + 1)
    else:
        inner = slice(first, min(middle, last + 1 + _SMALLER))
    together = noisy[inner]
    if new or together.sum() < threshold(level(len(together), np.array([_OTHER])), rate)[0]:
        return new
    return set(range(first, last + 1))


def goes_on_to_zero(noisy: Integers, ends: Ends, split: int) -> bool:
    """Tell whether the two octaves between zero and bounds of one sign have many rows."""
    first, last = ends
    middle = len(noisy) // 2
    if first > middle:
        below = noisy[max(middle + 1, first - 2 * split) : first]
    else:
        below = noisy[last + 1 : min(middle, last + 1 + 2 * split)]
    return bool(below.sum() > _BELOW * noisy[first : last + 1].sum())


def certain(noisy: Integers, ends: Ends) -> Ends:
    """Return the first and the last cell, within bounds, of which an interval must have a part."""
    first, last = ends
    within = noisy[first : last + 1]
    cells = first + np.flatnonzero(within >= _CERTAIN * within.sum())
    return int(cells[0]), int(cells[-1])


def intervals(parts: int, rows: float, rate: float) -> tuple[Integers, Floats]:
    """Return intervals between zero and a power of two, and how many halvings narrower they are.

    Ends are counted in places of the outermost octave: from zero on there are ``2 * parts``. Few
    rows choose among fewer intervals, or they would often choose a wrong one.
    """
    return _intervals(parts, rows * rate >= _MANY)


@functools.cache
def _intervals(parts: int, many: bool) -> tuple[Integers, Floats]:
    whole = 2 * parts
    ends, halvings = [], []
    width = whole
    while width >= (4 if many else max(4, whole // 16)):
        for narrowed in (width, width * 3 // 4)[: 1 + many]:
            starts = np.arange(0, whole - narrowed + 1, width // 4)
            ends.append(np.column_stack([starts, starts + narrowed]))
            halvings.append(np.full(len(starts), math.log2(whole / narrowed)))
        width //= 2
    return np.concatenate(ends), np.concatenate(halvings)


def worth_of_a_halving(rows: float, rate: float) -> float:
    """Return by how many nats an interval is preferred to one of twice its width."""
    return max(0.0, min(_MOST_WORTH, rows * rate * _WORTH))
