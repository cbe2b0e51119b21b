"""Many quantiles by one exponential mechanism. Theory page: docs/theory/joint_quantiles.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    ENERGY_UNIT,
    SECRET_KEY,
    Check,
    budgets,
    check_assumed,
    check_count,
    check_described,
    check_direct,
    check_equal,
    check_units,
)
from expmech.certificates.forecast import Forecast
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import ParameterError, ParameterTypeError, confidential_array
from expmech.core.rounding import float_down, float_up, validate_epsilon
from expmech.domains import Box
from expmech.losses.quantile import MOST_VALUES, validate_values
from expmech.mechanisms.quantiles.draw import JointDraw
from expmech.mechanisms.quantiles.tables import (
    Levels,
    RankGroups,
    cells_of,
    groups_from_cells,
    groups_from_counts,
    parse_levels,
)

_OWNER, _KIND = "JointQuantiles", "Quantiles"
_ASSUMED = (
    "values were clipped to the public bounds and moved to the middle of one of 2^bits cells one by"
    " one before they were counted",
    f"float64 sums and products are those of IEEE 754; {SECRET_KEY}",
)
_NOTE = (
    "one joint draw of all levels: the numbers above are entries of tables, one per level and"
    " different rank, filled once; then about one proposal per draw"
)


@dataclass(frozen=True, kw_only=True)
class JointQuantiles(Mechanism):
    """Draw all quantiles at once, exactly from ``f(o) ~ exp(-eta L(o))`` on nondecreasing tuples.

    ``L(o) = sum_j |#{o_j-1 <= x < o_j} - (q_j - q_j-1) n|`` over the m + 1 intervals that outputs
    cut the lattice into. D = 2 under "replace", ``2 (1 - min_j (q_j - q_j-1))`` under "add-remove",
    and ``eta = epsilon / 2D`` rounded down to where energies are whole numbers.

    Make one with :meth:`from_values` or :meth:`from_counts`. Tables are built at the first draw of
    what :meth:`prepare` returns and serve all draws of it.

    Parameters
    ----------
    levels : Levels
        The levels, exact and increasing.
    box : Box
        The public bounds and the lattice of outputs.
    adjacency : Adjacency
        Which data sets are neighbours.
    groups : RankGroups
        The sorted values, grouped by rank; confidential.

    Examples
    --------
    >>> values = np.linspace(0.0, 10.0, 101)
    >>> thirds = JointQuantiles.from_values(values, levels=["1/3", "2/3"], lower=0.0, upper=10.0)
    >>> low, high = thirds.release(epsilon=1.0).value.tolist()
    >>> 0.0 <= low <= high <= 10.0
    True
    """

    name = _OWNER
    constant_instead = "Release one quantile at a time, at a share of epsilon."

    levels: Levels
    box: Box
    adjacency: Adjacency
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
        """Sort confidential values, clipped to public bounds.

        Parameters
        ----------
        values : array-like of shape (n,)
            Numbers without nan; confidential.
        levels : sequence
            Increasing: decimal text ("0.1"), fractions ("1/30") or floats read as decimals.
        lower, upper : float
            Public bounds.
        bits : int, default 32
            Outputs are the middles of ``2^bits`` cells of the bounds.
        adjacency : {"replace", "add-remove"}, default "replace"
            Which data sets are neighbours.

        Returns
        -------
        JointQuantiles
        """
        box, parsed = Box([lower], [upper], bits=bits), parse_levels(levels, owner=_OWNER)
        relation = validate_adjacency(adjacency, owner=_OWNER)
        numbers = validate_values(values, owner=_OWNER)
        cells = cells_of(numbers, float(box.lower[0]), float(box.upper[0]), bits)
        return cls._from_groups(parsed, box, relation, groups_from_cells(cells, bits))

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
        """Take how many values lie in each of ``2^bits`` equal cells: what an engine sends back.

        Parameters
        ----------
        counts : array-like of int
            One per cell, a power of two of them; confidential.
        levels : sequence
            As for :meth:`from_values`.
        lower, upper : float
            Public bounds of the cells.
        adjacency : {"replace", "add-remove"}, default "replace"
            Which data sets are neighbours.

        Returns
        -------
        JointQuantiles
        """
        parsed = parse_levels(levels, owner=_OWNER)
        relation = validate_adjacency(adjacency, owner=_OWNER)
        cells = confidential_array(counts, name="counts", owner=_OWNER)
        bits = max(1, (cells.size - 1).bit_length())
        if cells.dtype.kind not in "iu" or cells.ndim != 1 or cells.size != 1 << bits:
            raise ParameterTypeError(
                f"`counts` of {_OWNER} must be whole numbers, one per cell, and a power of two of"
                " them."
            )
        box = Box([lower], [upper], bits=bits)
        wide = cells.astype(np.int64)
        if (wide < 0).any() or int(wide.sum()) > MOST_VALUES:
            raise ParameterError(f"`counts` of {_OWNER} must be at least 0, together at most 2^31.")
        return cls._from_groups(parsed, box, relation, groups_from_counts(wide, bits))

    @classmethod
    def _from_groups(
        cls, levels: Levels, box: Box, adjacency: Adjacency, groups: RankGroups
    ) -> JointQuantiles:
        if adjacency.count_is_public and groups.count == 0:
            raise ParameterError(f"`values` of {_OWNER} must not be empty under 'replace'.")
        return cls(levels=levels, box=box, adjacency=adjacency, groups=groups)

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return what is public about a draw; the number of values is under "replace" only."""
        levels, cells = self.levels, 1 << self.box.bits
        units, many = levels.units(budget, self.adjacency), len(levels.numerators)
        public = self.adjacency.public(self.groups.count)
        ranks = min(public["count"] + 1, cells) if public else cells
        entries = float(many), float(many * ranks)  # of the tables: one rank, or all there can be
        return PublicTerms(
            adjacency=self.adjacency,
            sensitivity=float_up(levels.sensitivity(self.adjacency)),
            eta=_eta(levels, units),
            unit=ENERGY_UNIT,
            domain={
                "kind": _KIND,
                "lower": self.box.lower.tolist(),
                "upper": self.box.upper.tolist(),
                "bits": self.box.bits,
                **public,
            },
            parameters={"levels": levels.texts, "units": units},
            assumptions=_ASSUMED,
            timing=DATA_DEPENDENT,
            forecast=Forecast(expected=entries, nearly_all=entries, typical=entries[1]),
            seconds=1e-2 + many * (1.2e-2 + 6e-7 * ranks),  # measured
            note=_NOTE,
            log_size=math.lgamma(cells + many) - math.lgamma(cells) - math.lgamma(many + 1),
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of tuples, one per row; its tables are built when the first is drawn."""
        joint = self._joint_draw(budget)

        def draw(coins: Coins, size: int) -> Draws:
            indices = np.stack([joint.draw(coins) for _ in range(size)])
            values = self.box.values(indices.reshape(-1, 1)).reshape(indices.shape)
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64))

        return draw

    def _joint_draw(self, budget: Fraction) -> JointDraw:
        return JointDraw(self.groups, self.levels, self.levels.units(budget, self.adjacency))

    def draw_indices(
        self, coins: Coins, *, epsilon: float | Fraction, size: int
    ) -> NDArray[np.int64]:
        """Draw tuples of lattice indices from coins, without a certificate.

        Parameters
        ----------
        coins : Coins
            The source of randomness.
        epsilon : float or Fraction
            The budget of each draw.
        size : int
            How many draws.

        Returns
        -------
        ndarray of int, shape (size, number of levels)
        """
        joint = self._joint_draw(validate_epsilon(epsilon, owner=_OWNER))
        return np.stack([joint.draw(coins) for _ in range(size)])

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute sensitivity and energies from the levels, and the names from the levels too."""
        parameters, domain = certificate.sampler, certificate.domain
        levels = parse_levels(parameters["levels"], owner=_OWNER)
        adjacency = validate_adjacency(certificate.adjacency, owner=_OWNER)
        units = parameters["units"]
        least, most = (levels.units(budget, adjacency) for budget in budgets(certificate))
        box = Box(domain["lower"], domain["upper"], bits=domain["bits"])  # raises unless it is one
        public = {"count": domain["count"]} if "count" in domain else {}
        names = certificate.postprocessing.get("labels", parameters["levels"])
        moved = float_up(levels.sensitivity(adjacency))
        return [
            *check_direct(certificate, _OWNER, _KIND, DATA_DEPENDENT),
            check_equal("one column", (len(domain["lower"]), len(domain["upper"])), (1, 1)),
            check_equal("sensitivity", certificate.sensitivity, moved),
            check_units(units, least, most),
            check_equal("eta", certificate.eta, _eta(levels, units)),
            check_equal("loss error", float(certificate.loss_error), 0.0),
            check_described("lattice", domain, box.describe() | {"kind": _KIND} | public),
            check_count(domain, adjacency),
            check_assumed(certificate, _ASSUMED),
            check_equal("names", parse_levels(names, owner=_OWNER).texts, levels.texts),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
        """Tell whether these can be the quantiles: one per level, in order, on the lattice."""
        many = len(certificate.sampler["levels"])
        if point is None or point.shape != (many,) or (np.diff(point) < 0.0).any():
            return False
        domain = certificate.domain
        box = Box(domain["lower"], domain["upper"], bits=domain["bits"])
        indices = box.locate(point[:, None])
        inside = bool(box.contains(indices).all())
        return inside and box.points(indices).tobytes() == point.tobytes()

    @classmethod
    def bounded_range(cls, certificate: Certificate) -> bool:
        """Tell that it has: one draw of an exponential mechanism."""
        return True


def _eta(levels: Levels, units: int) -> float:
    """Return the energy of a loss of 1 in nats, rounded down."""
    return float_down(Fraction(units * levels.denominator, UNITS_PER_NAT))
