"""Outputs with the time or the evaluations they took: what an observer with a clock sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.release import ExponentialMechanism
from expmech.samplers import Sampler


def timed(
    release: Callable[[Any], Any], *, clock: Callable[[], float] = time.perf_counter
) -> Callable[[Any, int], list[list[float]]]:
    """Return a mechanism whose outputs are the number released and the seconds it took.

    ``release`` maps a data set to one value, ``clock`` returns seconds. Audit it with
    ``interleave=True``: a clock drifts.
    """

    def mechanism(data: Any, n: int) -> list[list[float]]:
        found = []
        for _ in range(n):
            start = clock()
            value = release(data)
            seconds = clock() - start
            found.append([*np.ravel(np.asarray(value, dtype=np.float64)).tolist(), seconds])
        return found

    return mechanism


def counted(
    make: Callable[[Any], ExponentialMechanism],
    *,
    epsilon: float | Fraction,
    sampler: Sampler | str = "auto",
    seed: int = 0,
) -> Callable[[Any, int], Any]:
    """Return a mechanism whose outputs are a value and how many proposals it took."""
    calls = [0]

    def mechanism(data: Any, n: int) -> Any:
        calls[0] += 1
        draws = make(data).sample(epsilon=epsilon, size=n, sampler=sampler, seed=[seed, calls[0]])
        values = np.asarray(draws.values, dtype=np.float64).reshape(n, -1)
        return np.column_stack([values, draws.proposals])

    return mechanism
