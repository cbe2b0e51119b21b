"""Many quantiles by one exponential mechanism. Theory page: docs/theory/joint_quantiles.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.coins import Coins
from expmech.cost import Forecast
from expmech.domains import Box
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
)
from expmech.losses.quantile import MOST_VALUES, validate_values
from expmech.quantiles import (
    JointDraw,
    Levels,
    RankGroups,
    cells_of,
    groups_from_cells,
    groups_from_counts,
    parse_levels,
)
from expmech.release.direct import DirectMechanism, DirectTerms
from expmech.release.joint_quantiles_checks import (
    CLIPPED,
    KIND,
    OWNER,
    PLATFORM,
    energy_scale,
)
from expmech.release.prepared import Draw
from expmech.rounding import float_up
from expmech.samplers import Draws
from expmech.samplers.base import DATA_DEPENDENT
from expmech.target import validate_epsilon

_NOTE = (
    "one joint draw of all levels: the numbers above are entries of tables, one a level and"
    " different rank, filled once; then about one proposal a draw"
)


@dataclass(frozen=True, kw_only=True)
class QuantileTerms:
    """The public half: what is promised, for whatever values.

    ``count`` is the number of values under "replace", and None under "add-remove", where it is
    confidential.
    """

    levels: Levels
    box: Box
    adjacency: Adjacency
    count: int | None

    def units(self, budget: Fraction) -> int:
        """Return the energy of a loss of one over the levels' denominator, in 2^-40 nats."""
        return self.levels.units(budget, self.adjacency)

    def certify(self, budget: Fraction) -> DirectTerms:
        """Return the terms of a draw, which no value enters."""
        units = self.units(budget)
        domain: dict[str, Any] = {
            "kind": KIND,
            "lower": self.box.lower.tolist(),
            "upper": self.box.upper.tolist(),
            "bits": self.box.bits,
        }
        if self.count is not None:
            domain["count"] = self.count
        many = len(self.levels.numerators)
        points = float(1 << self.box.bits)
        return DirectTerms(
            sensitivity=float_up(self.levels.sensitivity(self.adjacency)),
            loss_error=0.0,
            eta=energy_scale(self.levels, units),
            domain=domain,
            parameters={"levels": self.levels.texts, "units": units},
            assumptions=(CLIPPED, PLATFORM),
            adjacency=self.adjacency,
            log_size=math.lgamma(points + many) - math.lgamma(points) - math.lgamma(many + 1),
        )


@dataclass(frozen=True, kw_only=True)
class JointQuantiles(DirectMechanism):
    """Draw all quantiles at once, exactly from ``f(o) ~ exp(-eta L(o))`` on nondecreasing tuples.

    ``L(o) = sum_j |#{o_j-1 <= x < o_j} - (q_j - q_j-1) n|`` over the m + 1 intervals that outputs
    cut the lattice into. D = 2 under "replace", ``2 (1 - min_j (q_j - q_j-1))`` under "add-remove",
    and ``eta = epsilon / 2D`` rounded down to where energies are whole numbers.

    Make one with :meth:`from_values` or :meth:`from_counts`. Tables are built at the first draw of
    what :meth:`prepare` returns and serve all draws of it.

    Examples
    --------
    >>> values = np.linspace(0.0, 10.0, 101)
    >>> thirds = JointQuantiles.from_values(values, levels=["1/3", "2/3"], lower=0.0, upper=10.0)
    >>> low, high = thirds.release(epsilon=1.0).value.tolist()
    >>> 0.0 <= low <= high <= 10.0
    True
    """

    owner = OWNER
    timing = DATA_DEPENDENT
    constant_instead = "Release one quantile at a time, at a share of epsilon."

    public: QuantileTerms
    groups: RankGroups = field(repr=False)

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        *,
        levels: Any,
        lower: float,
        upper: float,
        bits: int = 32,
        adjacency: str = "replace",
    ) -> JointQuantiles:
        """Sort values of shape (n,), clipped to public bounds; they are confidential.

        Parameters
        ----------
        values
            Numbers without nan.
        levels
            Increasing: decimal text ("0.1"), fractions ("1/30") or floats read as decimals.
        lower, upper, bits
            Public: outputs are the middles of ``2^bits`` cells of the bounds.
        adjacency
            "replace" or "add-remove".
        """
        box = Box([lower], [upper], bits=bits)
        parsed, relation = (
            parse_levels(levels, owner=OWNER),
            validate_adjacency(adjacency, owner=OWNER),
        )
        numbers = validate_values(values, owner=OWNER)
        cells = cells_of(numbers, float(box.lower[0]), float(box.upper[0]), bits)
        return cls._make(parsed, box, relation, groups_from_cells(cells, bits))

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        levels: Any,
        lower: float,
        upper: float,
        adjacency: str = "replace",
    ) -> JointQuantiles:
        """Take how many values lie in each of ``2^bits`` equal cells: what an engine sends back."""
        parsed, relation = (
            parse_levels(levels, owner=OWNER),
            validate_adjacency(adjacency, owner=OWNER),
        )
        cells = confidential_array(counts, name="counts", owner=OWNER)
        bits = max(1, (cells.size - 1).bit_length())
        if cells.dtype.kind not in "iu" or cells.ndim != 1 or cells.size != 1 << bits:
            raise ParameterTypeError(
                f"`counts` of {OWNER} must be whole numbers, one a cell, and a power of two of"
                " them."
            )
        box = Box([lower], [upper], bits=bits)
        wide = cells.astype(np.int64)
        if (wide < 0).any() or int(wide.sum()) > MOST_VALUES:
            raise ParameterError(f"`counts` of {OWNER} must be at least 0, together at most 2^31.")
        return cls._make(parsed, box, relation, groups_from_counts(wide, bits))

    @classmethod
    def _make(
        cls, levels: Levels, box: Box, adjacency: Adjacency, groups: RankGroups
    ) -> JointQuantiles:
        if adjacency.count_is_public and groups.count == 0:
            raise ParameterError(f"`values` of {OWNER} must not be empty under 'replace'.")
        count = groups.count if adjacency.count_is_public else None
        public = QuantileTerms(levels=levels, box=box, adjacency=adjacency, count=count)
        return cls(public=public, groups=groups)

    def terms(self, budget: Fraction) -> DirectTerms:
        """Return what is public about a draw."""
        return self.public.certify(budget)

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of tuples, one a row; its tables are built when the first is drawn."""
        joint = self._fit(budget)

        def draw(coins: Coins, size: int) -> Draws:
            indices = np.stack([joint.draw(coins) for _ in range(size)])
            values = self.public.box.values(indices.reshape(-1, 1)).reshape(indices.shape)
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64))

        return draw

    def _fit(self, budget: Fraction) -> JointDraw:
        return JointDraw(self.groups, self.public.levels, self.public.units(budget))

    def forecast(self) -> Forecast:
        """Count entries of the tables: levels times different ranks, between one and all."""
        many, ranks = self._sizes
        both = float(many), float(many * ranks)
        return Forecast(expected=both, nearly_all=both, typical=both[1])

    def seconds(self) -> float:
        """Return about how long a draw takes, by a public table; measured."""
        many, ranks = self._sizes
        return 1e-2 + many * (1.2e-2 + 6e-7 * ranks)

    @property
    def _sizes(self) -> tuple[int, int]:
        """The number of levels, and of ranks there can be."""
        cells, count = 1 << self.public.box.bits, self.public.count
        ranks = cells if count is None else min(count + 1, cells)
        return len(self.public.levels.numerators), ranks

    @property
    def note(self) -> str:
        """What a plan says about it."""
        return _NOTE

    def draw_indices(
        self, coins: Coins, *, epsilon: float | Fraction, size: int
    ) -> NDArray[np.int64]:
        """Draw ``size`` tuples of lattice indices, one a row."""
        joint = self._fit(validate_epsilon(epsilon, owner=OWNER))
        return np.stack([joint.draw(coins) for _ in range(size)])
