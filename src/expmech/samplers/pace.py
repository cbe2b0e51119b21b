"""How fast evaluations go: by a public table, or measured on a public stand-in.

The table is the same on every machine, so whatever is chosen by it repeats. What is measured may
refuse a draw and never chooses one. Theory page: docs/theory/plan.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from expmech.bits import seeded_bits
from expmech.coins import Coins
from expmech.cost import BLOCK, Pace
from expmech.envelopes import Uniform
from expmech.samplers.rejection import propose
from expmech.target import Target

CALL = 1e-4
"""Seconds of a call in the table: drawing, checking, evaluating and accepting a lot of one."""

_POINT = 6e-8  # seconds a point and, again, a coordinate of it, in large lots
_SHORTEST = 4e-3  # seconds that a measurement must take to be believed
_REPEATS = 3


def table_pace(target: Target) -> Pace:
    """Return the pace of the table; a loss that declares its cost is taken at its word."""
    point = _POINT * (1 + target.domain.dimension)
    declared = target.problem.evaluation_seconds or 0.0
    return Pace(call=CALL, evaluation=point + declared)


def measured_pace(stand_in: Target, *, clock: Callable[[], float] = time.perf_counter) -> Pace:
    """Measure proposals of one point and of many; the target must be a public stand-in."""
    coins, envelope = Coins(seeded_bits(0)), Uniform().bind(stand_in)

    def least(size: int) -> float:
        found = []
        for _ in range(_REPEATS):
            start = clock()
            propose(stand_in, envelope, coins, size)
            found.append(clock() - start)
            if found[-1] > _SHORTEST:
                break
        return min(found)

    call, size = least(1), 1
    whole = call
    while whole < _SHORTEST and size < BLOCK:
        size *= 8
        whole = least(size)
    if size == 1:  # a slow loss: what a call takes besides is not seen
        return Pace(call=min(call, CALL), evaluation=call)
    return Pace(call=call, evaluation=max(0.0, whole - call) / (size - 1))
