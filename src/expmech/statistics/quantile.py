"""A quantile of a column: the rank loss on the middles of the cells of a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Box
from expmech.errors import ParameterError, validate_integer
from expmech.losses import Quantile
from expmech.release import ExponentialMechanism, Mechanism
from expmech.release.finish import OneNumber
from expmech.statistics.cells import OfCells

MOST_BITS = 22
_MOST_ROWS = 1 << 31


@dataclass(frozen=True, kw_only=True)
class QuantileOf(OfCells):
    """The q-quantile: the rank loss ``|#{x < y} - q n|`` on ``2^bits`` points.

    Values are first moved to the middle of their cell, so ranks are cumulative counts. D = 1, and
    max(q, 1 - q) under add-remove.
    """

    shortfall = (
        "the number of rows below the value misses its share by at most {:.3g} more than that of"
        " the best answer does"
    )
    q: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise ParameterError(
                f"`q` of a quantile must be strictly between 0 and 1; got {float(self.q):g}."
            )
        validate_integer(self.bits, name="bits", owner="a quantile", low=1, high=MOST_BITS)

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"{float(self.q):g}-quantile of {self.label or self.column}"

    @property
    def finish(self) -> OneNumber:
        """The only coordinate."""
        return OneNumber()

    def mechanism(self, found: NDArray[np.int64], epsilon: Fraction, timing: str) -> Mechanism:
        """Return the exponential mechanism with the rank loss."""
        box = Box([self.bounds[0]], [self.bounds[1]], bits=(len(found) - 1).bit_length())
        loss = rank_loss(found, self.q, box, self.adjacency)
        return ExponentialMechanism(loss=loss, domain=box, adjacency=self.adjacency)


def rank_loss(counts: NDArray[np.int64], q: Fraction, box: Box, adjacency: str) -> Quantile:
    """Return the rank loss of values moved to the middle of their cell, from the cells' counts."""
    total = int(counts.sum())
    if total > _MOST_ROWS:
        raise ParameterError("A quantile takes at most 2^31 rows.")
    middles = box.points(np.arange(len(counts))[:, None])[:, 0]
    return Quantile.from_ranks(
        edges=middles,
        ranks=np.cumsum(counts) - counts,
        count=total,
        q=q,
        lower=float(box.lower[0]),
        upper=float(box.upper[0]),
        adjacency=adjacency,
    )
