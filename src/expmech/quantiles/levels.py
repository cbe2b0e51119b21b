"""Which quantiles: increasing fractions with a common denominator. Public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np

from expmech.adjacency import Adjacency
from expmech.coins import UNITS_PER_NAT
from expmech.errors import ParameterError, ParameterTypeError

MOST_LEVELS = 999
MOST_DENOMINATOR = 1 << 30
_RULE = "increasing numbers strictly between 0 and 1, at most 999 of them"


@dataclass(frozen=True)
class Levels:
    """The levels ``numerators[j] / denominator``, strictly increasing between 0 and 1.

    Examples
    --------
    >>> levels = parse_levels(["0.1", "1/3", 0.5])
    >>> levels.numerators, levels.denominator, levels.widths
    ((3, 10, 15), 30, (3, 7, 5, 15))
    """

    numerators: tuple[int, ...]
    denominator: int

    @property
    def widths(self) -> tuple[int, ...]:
        """The m + 1 steps from 0 to 1 between neighbouring levels, times the denominator."""
        ends = (0, *self.numerators, self.denominator)
        return tuple(above - below for below, above in pairwise(ends))

    @property
    def texts(self) -> list[str]:
        """The levels as text that :func:`parse_levels` reads."""
        return [str(Fraction(above, self.denominator)) for above in self.numerators]

    def sensitivity(self, adjacency: str) -> Fraction:
        """Return D of the joint loss: 2, or ``2 (1 - least width)`` under add-remove.

        Theory page: docs/theory/joint_quantiles.md, Fact 1.
        """
        if Adjacency(adjacency) is Adjacency.REPLACE:
            return Fraction(2)
        return 2 * (1 - Fraction(min(self.widths), self.denominator))

    def units(self, epsilon: Fraction, adjacency: str) -> int:
        """Return the energy, in units of 2^-40 nats, of a loss of ``1 / denominator``.

        The largest whole number s with ``2 s 2^-40 denominator D <= epsilon``.
        """
        share = epsilon * UNITS_PER_NAT / (2 * self.denominator * self.sensitivity(adjacency))
        if share < 1:
            most = int(share * self.denominator)
            raise ParameterError(
                f"`levels` must have a common denominator of at most {most} at this epsilon; got"
                f" {self.denominator}. Write them as decimal text with fewer digits."
            )
        return int(share)


def parse_levels(levels: Any, *, owner: str = "JointQuantiles", name: str = "levels") -> Levels:
    """Return levels given as decimal text ("0.1"), fractions ("1/30", Fraction) or floats.

    A float counts as the shortest decimal that names it: 0.1 is one tenth.
    """
    listed = [levels] if isinstance(levels, (str, float, Fraction)) else levels
    if not isinstance(listed, (Sequence, np.ndarray)) or len(listed) == 0:
        raise ParameterTypeError(f"`{name}` of {owner} must be {_RULE}; got {levels!r}.")
    found = [_fraction(level, levels, owner=owner, name=name) for level in listed]
    increasing = all(below < above for below, above in pairwise(found))
    if not increasing or found[0] <= 0 or found[-1] >= 1 or len(found) > MOST_LEVELS:
        raise ParameterError(f"`{name}` of {owner} must be {_RULE}; got {levels!r}.")
    denominator = lcm(*(level.denominator for level in found))
    if denominator > MOST_DENOMINATOR:
        raise ParameterError(
            f"`{name}` of {owner} must have a common denominator of at most 2^30; got"
            f" {denominator}. Write them as decimal text with fewer digits."
        )
    return Levels(tuple(int(level * denominator) for level in found), denominator)


def _fraction(level: Any, levels: Any, *, owner: str, name: str) -> Fraction:
    known = isinstance(level, (str, float, Fraction, np.floating))
    if not known or isinstance(level, (bool, np.bool_)):
        raise ParameterTypeError(f"`{name}` of {owner} must be {_RULE}; got {levels!r}.")
    text = repr(float(level)) if isinstance(level, (float, np.floating)) else level
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(f"`{name}` of {owner} must be {_RULE}; got {levels!r}.") from None
