"""Cells of numbers by sign and binary exponent: public, exact, the same for every column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from expmech.core.arrays import Floats, Integers
from expmech.core.errors import ParameterError, validate_integer

NOWHERE = -1
"""The place of what is no number."""

LARGEST = 2.0**1022
"""Bounds lie within these, so that their distance is a number; what is beyond is clipped."""

_OWNER = "Magnitudes"


@dataclass(frozen=True, kw_only=True)
class Magnitudes:
    """Places of numbers: zero, and sign, binary exponent and leading bits of the others.

    A number ``m 2^e`` with ``1/2 <= m < 1`` has exponent e, as :func:`math.frexp` says. Numbers of
    one exponent are an octave, divided into ``parts`` equal places. Places are numbered from 0 in
    the order of the numbers; smaller exponents count as the least one, larger ones as the largest.

    Parameters
    ----------
    least, largest : int
        The exponents; by default those that a float64 can have.
    parts : int, default 64
        Places of an octave, a power of two.

    Examples
    --------
    >>> grid = Magnitudes(least=0, largest=3, parts=2)
    >>> grid.places_of(np.array([-0.75, 0.0, 0.5, 0.75, 1.0, np.nan])).tolist()
    [6, 8, 9, 10, 11, -1]
    >>> [grid.edge(place) for place in (9, 10, 11)]
    [0.5, 0.75, 1.0]
    """

    least: int = -1073
    largest: int = 1024
    parts: int = 64

    def __post_init__(self) -> None:
        validate_integer(self.least, name="least", owner=_OWNER, low=-1073, high=1024)
        validate_integer(self.largest, name="largest", owner=_OWNER, low=self.least, high=1024)
        parts = validate_integer(self.parts, name="parts", owner=_OWNER, low=2, high=64)
        if parts.bit_count() > 1:
            raise ParameterError(f"`parts` of {_OWNER} must be a power of two; got {parts}.")

    @property
    def octaves(self) -> int:
        """Return the number of exponents."""
        return self.largest - self.least + 1

    @property
    def zero(self) -> int:
        """Return the place of zero; there are as many places below as above it."""
        return self.octaves * self.parts

    @property
    def size(self) -> int:
        """Return the number of places."""
        return 2 * self.zero + 1

    def places_of(self, values: Floats) -> Integers:
        """Return the place of each value; infinite ones are the largest, NaN is NOWHERE."""
        lost = np.isnan(values)
        sizes = np.minimum(np.abs(np.where(lost, 0.0, values)), np.finfo(np.float64).max)
        mantissa, exponent = np.frexp(sizes)
        part = np.floor((2.0 * mantissa - 1.0) * self.parts).astype(np.int64)  # exact
        steps = (exponent.astype(np.int64) - self.least) * self.parts + part
        steps = np.clip(steps, 0, self.zero - 1) + 1
        places = self.zero + np.where(values > 0, steps, np.where(values < 0, -steps, 0))
        return np.where(lost, NOWHERE, places)

    def count(self, values: Floats) -> dict[int, int]:
        """Return how many values are in each place that has any, NOWHERE among them."""
        places, counts = np.unique(self.places_of(values), return_counts=True)
        return dict(zip(places.tolist(), counts.tolist(), strict=True))

    def is_edge(self, number: float) -> bool:
        """Tell whether a number is an end of a place."""
        place = int(self.places_of(np.array([number]))[0])
        beyond = place + (1 if number > 0.0 else -1)
        return place != NOWHERE and number in (self.edge(place), self.edge(beyond))

    def edge(self, place: int) -> float:
        """Return the end nearer to zero of a place; for the one after the last, its far end."""
        steps = abs(place - self.zero)
        if steps == 0:
            return 0.0
        octave, part = divmod(steps - 1, self.parts)
        exponent = self.least + octave - 1
        size = LARGEST if exponent >= 1022 else math.ldexp(1.0 + part / self.parts, exponent)
        return math.copysign(size, place - self.zero)

    def describe(self) -> dict[str, Any]:
        """Return the grid as certificates state it."""
        return {"exponents": [self.least, self.largest], "parts": self.parts}
