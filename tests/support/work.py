"""What a computation does, without a clock: its lines, the shapes of its arrays, its exponents."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expmech

SOURCE = str(Path(expmech.__file__).parent)
Event = tuple[Any, ...]


class Work:
    """Records every line of the package that runs, and what its functions held at their end.

    Of an array its shape and type, of a list its length; values are not looked at, so the work of
    two data sets is equal where no branch, no early end, no mask and no type followed the data.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.exponents: list[NDArray[np.float64]] = []
        self.integers = 0
        real = np.exp

        def exp(x: Any, *more: Any, **options: Any) -> Any:
            self.exponents.append(np.array(x, dtype=np.float64).ravel())
            return real(x, *more, **options)

        patch.setattr(np, "exp", exp)

    def of(self, call: Callable[[], Any]) -> list[Event]:
        """Return the work of a call, line by line."""
        events: list[Event] = []

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            code = frame.f_code
            if not code.co_filename.startswith(SOURCE):
                return None
            place = code.co_filename[len(SOURCE) :], frame.f_lineno
            if event == "line":
                events.append(place)
            elif event == "return":
                held = sorted(frame.f_locals.items())
                events.append((*place, *((name, self._shape(value)) for name, value in held)))
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(before)
        return events

    def _shape(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.shape, value.dtype.str
        if isinstance(value, int):
            self.integers = max(self.integers, value.bit_length())
        return len(value) if isinstance(value, (list, tuple, dict, set)) else type(value).__name__

    def slow_exponents(self) -> list[float]:
        """Return the arguments of exponentials that are subnormal, or take another way."""
        if not self.exponents:
            return []
        seen = np.concatenate(self.exponents)
        slow = seen[(seen < -512.0) | (np.abs(seen) < 2.0**-54)]
        return [float(one) for one in np.unique(slow)]


def first_difference(one: list[Event], other: list[Event]) -> tuple[Any, Any] | None:
    """Return the first place where two works differ, None where they are equal."""
    pairs = zip_longest(one, other)
    return next((pair for pair in pairs if pair[0] != pair[1]), None)
