"""Many quantiles by one exponential mechanism. Theory page: docs/theory/joint_quantiles.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import Check, budgets, check_equal, check_units
from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import Integers
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.rounding import float_down, float_up
from expmech.mechanisms.quantiles.base import CellCounts, SeveralQuantiles
from expmech.mechanisms.quantiles.draw import JointDraw
from expmech.mechanisms.quantiles.tables import Levels, parse_levels
from expmech.theory.concentrated import rho_of_bounded_range

_OWNER = "JointQuantiles"


@dataclass(frozen=True, kw_only=True)
class JointQuantiles(SeveralQuantiles):
    """Draw all quantiles at once, exactly from ``f(o) ~ exp(-eta L(o))`` on nondecreasing tuples.

    ``L(o) = sum_j |#{o_j-1 <= x < o_j} - (q_j - q_j-1) n|`` over the m + 1 intervals that outputs
    cut the points into, after equal values were spread over the points of their cell. D = 2 under
    "replace", ``2 (1 - min_j (q_j - q_j-1))`` under "add-remove", and ``eta = epsilon / 2D``
    rounded down to where energies are whole numbers.

    Make one with :meth:`from_values` or :meth:`from_counts`.

    Parameters
    ----------
    levels : Levels
        The levels, exact and increasing.
    lattice : Box or Multiples
        The public cells, by their middles: the possible answers.
    adjacency : Adjacency
        Which data sets are neighbours.
    spread : int
        Points of a cell that equal values are spread over.
    cells : CellCounts
        How many values lie in each cell; confidential.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.linspace(0.0, 10.0, 101)
    >>> thirds = JointQuantiles.from_values(values, levels=["1/3", "2/3"], lower=0.0, upper=10.0)
    >>> low, high = thirds.release(epsilon=1.0).value.tolist()
    >>> 0.0 <= low <= high <= 10.0
    True
    """

    name = _OWNER
    note = (
        "one joint draw of all levels: the numbers above are entries of tables, one per level and"
        " different rank, filled once; then about one proposal per draw"
    )

    def energy_terms(self, budget: Fraction) -> dict[str, Any]:
        units = self.levels.units(budget, self.adjacency)
        return {
            "sensitivity": float_up(self.levels.sensitivity(self.adjacency)),
            "eta": _eta(self.levels, units),
            "parameters": {"units": units},
        }

    def _seconds(self, ranks: int, budget: Fraction) -> float:
        many = len(self.levels.numerators)
        near = min(float(ranks), 450.0 * many / float(budget))  # others are merged
        return 5e-3 + 2.5e-5 * many**2 + 2.2e-7 * many * near + 1e-7 * ranks

    def points_draw(self, spread: CellCounts, budget: Fraction) -> Callable[[Coins], Integers]:
        units = self.levels.units(budget, self.adjacency)
        return JointDraw(spread.groups, self.levels, units).draw

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute sensitivity and energies from the levels, and the names from the levels too."""
        levels = parse_levels(certificate.sampler["levels"], owner=_OWNER)
        adjacency = validate_adjacency(certificate.adjacency, owner=_OWNER)
        units = certificate.sampler["units"]
        least, most = (levels.units(budget, adjacency) for budget in budgets(certificate))
        moved = float_up(levels.sensitivity(adjacency))
        return [
            *cls.verify_common(certificate, levels),
            check_equal("sensitivity", certificate.sensitivity, moved),
            check_units(units, least, most),
            check_equal("eta", certificate.eta, _eta(levels, units)),
        ]

    @classmethod
    def bounded_range(cls, certificate: Certificate) -> bool:
        """Tell whether no values were spread: of a mixture over spread values it is not proved."""
        return bool(certificate.sampler.get("spread", 1) == 1)

    @classmethod
    def rho(cls, certificate: Certificate, epsilon: Fraction) -> Fraction:
        """Return the rho of a bounded range, which a mixture over spread values has, too."""
        return rho_of_bounded_range(epsilon)


def _eta(levels: Levels, units: int) -> float:
    """Return the energy of a loss of 1 in nats, rounded down."""
    return float_down(Fraction(units * levels.denominator, UNITS_PER_NAT))
