"""How fast a chain comes near its target, for every data set at once: proved, or declared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from expmech.errors import ParameterError, validate_fraction, validate_positive
from expmech.theory import (
    delta_from_ergodicity,
    delta_from_steps,
    steps_from_delta,
    steps_from_ergodicity,
)

_ROUND = 1.0 + 2.0**-40  # far above the rounding of a delta's few operations


@dataclass(frozen=True)
class Minorisation:
    """``Pi(y, .) >= beta nu`` for every y: total variation at most ``(1 - beta)^m``."""

    log_beta: float

    @classmethod
    def declared(cls, beta: object) -> Minorisation:
        """Return a caller's beta, rounded down."""
        exact = validate_fraction(beta, name="beta", owner="Metropolis")
        logged = math.log(exact)
        return cls(logged - 2.0**-50 * (1.0 + abs(logged)))

    def steps_for(self, epsilon: float, delta: float) -> int:
        """Return the fewest steps whose delta is at most ``delta``."""
        return steps_from_delta(epsilon, self.log_beta, delta)

    def delta_after(self, epsilon: float, steps: int) -> float:
        """Return ``(1 + e^epsilon) (1 - beta)^steps``."""
        return delta_from_steps(epsilon, self.log_beta, steps)

    def describe(self) -> dict[str, Any]:
        """Return what a certificate holds of it."""
        return {"log_beta": self.log_beta}


@dataclass(frozen=True, kw_only=True)
class Ergodicity:
    """``TV <= constant * potential * ratio^m`` for every data set: V-geometric ergodicity.

    Parameters
    ----------
    constant, ratio
        C and r, 0 < r < 1, of ``C V(y_0) r^m``; the paper prints r^-m (errata, row 11).
    potential
        The mean of ``V`` over the chain's public uniform start; 1 for a uniformly ergodic chain.

    Examples
    --------
    >>> Ergodicity(constant=2.0, potential=1.0, ratio=0.5).steps_for(1.0, 1e-3)
    13
    """

    constant: float
    potential: float
    ratio: float

    def __post_init__(self) -> None:
        for name, value in (("constant", self.constant), ("potential", self.potential)):
            validate_positive(value, name=name, owner="Ergodicity")
        if self.potential < 1.0:
            raise ParameterError(
                f"`potential` of Ergodicity must be at least 1; got {self.potential!r}."
            )
        validate_fraction(self.ratio, name="ratio", owner="Ergodicity")

    def steps_for(self, epsilon: float, delta: float) -> int:
        """Return the fewest steps whose delta is at most ``delta``."""
        return steps_from_ergodicity(epsilon, delta=delta / _ROUND, **self.describe())

    def delta_after(self, epsilon: float, steps: int) -> float:
        """Return ``(1 + e^epsilon) C V(y_0) r^steps``, rounded up."""
        found = delta_from_ergodicity(epsilon, steps=steps, **self.describe())
        return min(1.0, math.nextafter(found * _ROUND, 1.0))

    def describe(self) -> dict[str, float]:
        """Return the three numbers."""
        return {"constant": self.constant, "potential": self.potential, "ratio": self.ratio}


Convergence = Minorisation | Ergodicity


def convergence_of(parameters: Mapping[str, Any]) -> Convergence:
    """Return the convergence that a certificate names."""
    if "ergodicity" in parameters:
        return Ergodicity(**parameters["ergodicity"])
    return Minorisation(parameters["log_beta"])
