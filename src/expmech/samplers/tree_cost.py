"""What a box tree costs: cells looked at and points proposed for a first draw.

Derivations, and what is measured and not proved: docs/theory/plan.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from expmech.cost import Forecast, power

LOT = 1 << 6
"""Cells refined, and points proposed, together: for fewer, calls cost more than is wasted."""

_CELLS = 4.0  # evaluations a cell of the flat tree: look, split, proposals that follow; measured
_LEVELS = 8.0  # evaluations a level of the lattice where bounds are exact; measured
_PASS, _PASSES = 7.0, 4.0  # calls a pass is worth, and passes of the smallest trees; measured
_PATIENT = 0.45  # power of the worst number that a tree cut without evaluations takes; measured
_PATIENT_CALLS = 50.0  # calls of plain proposals that cutting for one evaluation is worth; measured
_MEMORY = (1 << 30) / 48  # words of 8 bytes of which a tree may hold six copies
_CELL_WORDS = 4


def forecast_tree(
    slopes: Sequence[float], bits: int, *, least: float, convex: bool = False
) -> Forecast:
    """Forecast a tree with Lipschitz bounds, whose worst loss is a flat one.

    Tangents of a ``convex`` loss are nearer to it: the guess is a lot for each corner of a cell.
    """
    d = len(slopes)
    most_cells = math.log(_MEMORY / (_CELL_WORDS + 3 * d))
    drop = _flat_drop(slopes, min(bits * d * math.log(2.0), most_cells))
    cells, proposals = power(_log_cells(slopes, drop)), power(drop)
    found = _between(least, 2 * LOT + _CELLS * max(cells, proposals), d)
    usual = min(found.typical, LOT * 2.0 ** (d - 1)) if convex else found.typical
    return replace(found, typical=usual, calls=_calls(usual), ranked=found.typical)


def forecast_patient(ordinary: Forecast) -> Forecast:
    """Forecast a tree that is cut without evaluations, from that of one that looks at its cells."""
    worst, most = ordinary.expected[1], ordinary.nearly_all[1]
    typical = (LOT if worst is None else worst) ** _PATIENT
    return Forecast(
        expected=(2.0, worst),
        nearly_all=(2.0, most),
        typical=typical,
        calls=_PATIENT_CALLS * typical,
    )


def forecast_own_bounds(bits: int, dimension: int, *, exact: bool, least: float) -> Forecast:
    """Forecast a tree with bounds of the loss's own; only exact ones have a public limit."""
    worst = 2 * LOT + _LEVELS * bits * dimension if exact else None
    return _between(least, worst, dimension)


def _between(best: float, worst: float | None, dimension: int) -> Forecast:
    if worst is None:
        typical = 4.0 * LOT * dimension
        most: tuple[float | None, float | None] = (None, None)
    else:
        typical, most = math.sqrt(LOT * worst), (worst, 2.0 * worst)
    return Forecast(
        expected=(best, most[0]), nearly_all=(best, most[1]), typical=typical, calls=_calls(typical)
    )


def _calls(evaluations: float) -> float:
    """Return the passes over the cells, each worth several calls of plain proposals; measured.

    A pass refines a lot of cells, or a quarter of them where that is more.
    """
    return _PASS * (_PASSES + math.log(max(1.0, evaluations / LOT)) / math.log(1.25))


def _flat_drop(slopes: Sequence[float], log_most: float) -> float:
    """Return how many nats below a flat loss the bounds of N equal cells end: log N.

    Then the mass the bounds add, a factor exp of that, is worth one evaluation a cell. Where memory
    allows fewer cells the bounds stay lower. An axis whose slope is smaller than the others' is cut
    less often.
    """
    low, high = 0.0, sum(slopes) / 2
    while high - low > 1e-9 * (1.0 + high):
        middle = (low + high) / 2
        if _log_cells(slopes, middle) > min(middle, log_most):
            low = middle
        else:
            high = middle
    return high


def _log_cells(slopes: Sequence[float], drop: float) -> float:
    """Return the log of the number of cells whose bounds lie ``drop`` nats below their center.

    Each axis takes an equal part.
    """
    steep = sorted((slope for slope in slopes if slope > 0), reverse=True)
    parts, rest = len(steep), drop
    for slope in reversed(steep):  # a flat axis that uses up less than its part is never cut
        if slope / 2 > rest / parts:
            break
        rest -= slope / 2
        parts -= 1
        if parts == 0:
            return 0.0
    if rest <= 0:
        return math.inf
    return sum(math.log(slope / 2 * parts / rest) for slope in steep[:parts])
