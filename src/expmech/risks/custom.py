"""A risk from functions of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_nonnegative, validate_scale
from expmech.risks.base import MARGIN_ROUNDING, Floats, OneTarget


class Custom(OneTarget):
    """A convex risk given by ``phi'_z(t)``, ``phi''_z(t)`` and their bounds.

    Parameters
    ----------
    derivative, curvature
        Functions of margins and targets, arrays of shape (n,); the first in [-bound, bound] and
        nondecreasing in the margin, the second in [0, lipschitz].
    ball
        ``phi'`` of a flint ball and a float target, as a ball: it decides where float64 cannot.
    bound, lipschitz
        Public bounds c and a. That they hold is the caller's assumption.
    error
        Bound on the float64 error of ``derivative`` at an exact margin.
    labels
        Targets become +1 and -1 by their sign; else they are clipped to [-1, 1].

    Notes
    -----
    Nothing is known of how ``phi''`` changes, so the enclosure rests on the penalty alone: more
    releases need the slow path than with a built-in risk.
    """

    margins = 1
    rank = 1

    def __init__(
        self,
        *,
        name: str,
        derivative: Callable[[Floats, Floats], Floats],
        curvature: Callable[[Floats, Floats], Floats],
        ball: Callable[[flint.arb, float], flint.arb],
        bound: float | Fraction,
        lipschitz: float | Fraction,
        error: float,
        labels: bool = False,
    ) -> None:
        self.name = f"custom: {name}"
        self._derivative, self._curvature, self._ball = derivative, curvature, ball
        self.bound = validate_scale(bound, name="bound", owner="Custom")
        self.spread = self.bound
        self.lipschitz = validate_scale(lipschitz, name="lipschitz", owner="Custom")
        if not all(Fraction(float(one)) == one for one in (self.bound, self.lipschitz)):
            raise ParameterError("`bound` and `lipschitz` of Custom must be float64 numbers.")
        self.trace = self.lipschitz
        self.error = float(validate_nonnegative(error, name="error", owner="Custom"))
        self.labels = labels

    def derivative(self, margins: Floats, targets: Floats) -> Floats:
        """Return the caller's derivative, clipped to its bound."""
        c = float(self.bound)
        return np.clip(self._derivative(margins[:, 0], targets), -c, c)[:, None]

    def derivative_error(self, largest: float, extra: float) -> tuple[float, float]:
        """Return 0, and the declared error with what a rounded margin moves the derivative by."""
        moved = float(self.lipschitz) * (largest * MARGIN_ROUNDING + extra)
        return 0.0, (self.error + moved) * (1.0 + 2.0**-30)

    def curvature(self, margins: Floats, targets: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield the caller's second derivative, clipped to [0, a]."""
        yield 0, 0, np.clip(self._curvature(margins[:, 0], targets), 0.0, float(self.lipschitz))

    def relative_change(self, shift: float) -> float:
        """Return 0: every row is unsettled."""
        return 0.0

    def unsettled(self, margins: Floats, targets: Floats, shift: float) -> NDArray[np.bool_]:
        """Return True for every row."""
        return np.ones(len(margins), dtype=np.bool_)

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose the derivative by the caller's function."""
        return [self._ball(margins[0], target)]

    def describe(self) -> dict[str, Any]:
        """Return name and declared bounds."""
        return {
            "name": self.name,
            "bound": float(self.bound),
            "lipschitz": float(self.lipschitz),
            "error": self.error,
        }
