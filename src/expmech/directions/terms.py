"""The public half of a principal direction: shares of epsilon, and the eta they buy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.adjacency import Adjacency
from expmech.directions.proposal import eta_below
from expmech.directions.whole import MOST_COLUMNS

NAME = "Bingham"
MOST_DIMENSION = MOST_COLUMNS
MOST_ETA = Fraction(256)
"""A larger eta would not pay: with 2^32 rows float64 eigenpairs could not follow it."""

VARIANCE_SHARE = Fraction(1, 10)
"""Of epsilon, where variances are asked for."""

WIDTH = {Adjacency.REPLACE: 2, Adjacency.ADD_REMOVE: 1}
"""Width of the interval in which one row moves ``v'Av``."""


@dataclass(frozen=True, kw_only=True)
class DirectionTerms:
    """Shares of epsilon and what they buy; nothing here is computed from confidential data."""

    epsilon: Fraction
    dimension: int
    n_components: int
    variances: bool
    adjacency: Adjacency

    @property
    def sensitivity(self) -> int:
        """How far apart one row can move ``v'Av``: ``epsilon = eta * width``."""
        return WIDTH[self.adjacency]

    @property
    def variance_epsilon(self) -> Fraction:
        """The part of epsilon that pays for noisy variances."""
        return self.epsilon * VARIANCE_SHARE if self.variances else Fraction(0)

    @property
    def component_epsilon(self) -> Fraction:
        """The part of epsilon that pays for one component."""
        return (self.epsilon - self.variance_epsilon) / self.n_components

    @property
    def eta(self) -> Fraction:
        """Concentration of the law of a component, rounded down to 22 bits."""
        return eta_below(min(self.component_epsilon / self.sensitivity, MOST_ETA))

    def describe(self) -> dict[str, Any]:
        """Return the sampler's part of a certificate; fractions as exact text."""
        return {
            "sampler": NAME,
            "components": self.n_components,
            "component_epsilon": str(self.component_epsilon),
            "variance_epsilon": str(self.variance_epsilon),
        }
