"""Several quantiles of a column by one joint draw, from the histogram of its cells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_integer
from expmech.quantiles.levels import MOST_DENOMINATOR
from expmech.release import JointQuantiles, Mechanism
from expmech.release.finish import ByName, Finish, Unchanged
from expmech.statistics.cells import OfCells
from expmech.statistics.quantile import MOST_BITS

_STEPS = 10**9  # levels without a small common denominator go to the nearest of these


@dataclass(frozen=True, kw_only=True)
class QuantilesOf(OfCells):
    """Quantiles of increasing ``levels`` by one draw from the joint exponential mechanism.

    They come in order, and together cost what one would. ``texts`` are the names of the levels
    where they are released by name.
    """

    shortfall = (
        "the numbers of rows between the values miss their shares by at most {:.3g} in all more"
        " than those of the best answer do"
    )
    levels: tuple[Fraction, ...]
    texts: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for level in self.levels:
            if not 0 < level < 1:
                raise ParameterError(
                    f"`q` of a quantile must be strictly between 0 and 1; got {float(level):g}."
                )
        validate_integer(self.bits, name="bits", owner="a quantile", low=1, high=MOST_BITS)

    @property
    def name(self) -> str:
        """What certificates call it."""
        listed = ", ".join(self.texts or [f"{float(level):g}" for level in self.levels])
        return f"quantiles {listed} of {self.label or self.column}"

    @property
    def finish(self) -> Finish:
        """Numbers by level where levels have names, else as they are: a tuple is in order."""
        return Unchanged() if self.texts is None else ByName(labels=self.texts)

    def mechanism(self, found: NDArray[np.int64], epsilon: Fraction, timing: str) -> Mechanism:
        """Return the joint exponential mechanism on the middles of the cells."""
        return JointQuantiles.from_counts(
            found,
            levels=self.levels,
            lower=self.bounds[0],
            upper=self.bounds[1],
            adjacency=self.adjacency,
        )


def near_levels(levels: list[Fraction]) -> list[Fraction]:
    """Return levels with a common denominator of at most 2^30, at most 5e-10 from those given.

    Floats that were computed (0.30000000000000004) have none. Levels are public, and so is this.
    """
    if lcm(*(level.denominator for level in levels)) <= MOST_DENOMINATOR:
        return levels
    return [Fraction(round(level * _STEPS), _STEPS) for level in levels]
