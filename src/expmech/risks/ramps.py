"""Risks whose derivative is a ramp: Huber, smoothed hinge, smoothed pinball.

Theory: docs/theory/risks.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.errors import (
    ParameterError,
    validate_fraction,
    validate_positive,
)
from expmech.risks.base import MARGIN_ROUNDING, Floats, OneTarget, exactly_dyadic


class Ramp(OneTarget):
    """``phi'_z(t) = clip(slope u + offset, low, high)`` of ``u = t - z``.

    For labels z = +1 and -1 it is ``z clip(slope u + offset, low, high)`` of ``u = z t - 1``.

    The slope is a power of two, so that a product with it is never rounded.
    """

    margins = 1
    rank = 1

    def __init__(
        self, *, name: str, slope: Fraction, offset: Fraction, ends: tuple[Fraction, Fraction]
    ) -> None:
        self.name = name
        if math.frexp(float(slope))[0] != 0.5 or not Fraction(1, 1 << 20) <= slope <= 1 << 20:
            raise ParameterError(
                f"`width` of {name} must be a power of two between 2^-20 and 2^20;"
                f" got {float(1 / slope)!r}."
            )
        if not all(exactly_dyadic(one) for one in (offset, *ends)):
            raise ParameterError(f"the parameters of {name} must be float64 numbers.")
        self.slope, self.offset = float(slope), float(offset)
        self.low, self.high = float(ends[0]), float(ends[1])
        self.bound = max(abs(ends[0]), abs(ends[1]))
        self.spread = self.bound
        self.lipschitz = slope
        self.trace = slope
        # |u| on the ramp, and so |t| <= |u| + 1 there
        self._reach = float(max(abs(end - offset) for end in ends) / slope) + 1.0

    def _residual(self, margins: Floats, targets: Floats) -> Floats:
        if self.labels:
            return np.asarray(margins[:, 0] * targets - 1.0)
        return np.asarray(margins[:, 0] - targets)

    def derivative(self, margins: Floats, targets: Floats) -> Floats:
        """Return the ramp at the residual."""
        ramp = np.clip(
            self._residual(margins, targets) * self.slope + self.offset, self.low, self.high
        )
        if self.labels:
            ramp *= targets
        return ramp[:, None]

    def derivative_error(self, largest: float, extra: float) -> tuple[float, float]:
        """Return what rounding moves a margin on the ramp by, and 0 (docs/theory/risks.md, 3).

        Off the ramp derivatives are exact, however large the margins are.
        """
        rounded = 2.0 * MARGIN_ROUNDING * self._reach + extra * (1.0 + 2.0**-30)
        offset = 0.0 if self.offset == 0.0 else MARGIN_ROUNDING * (self._reach + 1.0 / self.slope)
        return rounded + offset, 0.0

    def curvature(self, margins: Floats, targets: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield the slope on the ramp and 0 elsewhere."""
        value = self._residual(margins, targets) * self.slope + self.offset
        yield 0, 0, np.where((value > self.low) & (value < self.high), self.slope, 0.0)

    def relative_change(self, shift: float) -> float:
        """Return 0: a row that stays on its side of both kinks does not change."""
        return 0.0

    def unsettled(self, margins: Floats, targets: Floats, shift: float) -> NDArray[np.bool_]:
        """Return the rows within ``shift`` of a kink."""
        value = self._residual(margins, targets) * self.slope + self.offset
        size = self.slope * shift * (1.0 + 2.0**-40) + 2.0**-48 * (
            1.0 + abs(self.low) + abs(self.high)
        )
        near: NDArray[np.bool_] = np.abs(value - self.low) <= size
        near |= np.abs(value - self.high) <= size
        return near

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose the ramp; where a ball straddles a kink, by the ball's own radius."""
        sign = flint.arb(int(target)) if self.labels else flint.arb(1)
        residual = sign * margins[0] - 1 if self.labels else margins[0] - flint.arb(target)
        value = residual * flint.arb(self.slope) + flint.arb(self.offset)
        return [sign * _clip(value, flint.arb(self.low), flint.arb(self.high))]

    def describe(self) -> dict[str, Any]:
        """Return name and parameters."""
        return {"name": self.name}


def _clip(value: flint.arb, low: flint.arb, high: flint.arb) -> flint.arb:
    """Enclose min(max(value, low), high)."""
    return value.max(low).min(high)


class Huber(Ramp):
    """``phi'_z(t) = clip(t - z, -c, c)``: c the threshold, a = 1. Targets lie in [-1, 1].

    Examples
    --------
    >>> Huber(0.5).derivative(np.array([[0.25], [2.0]]), np.array([0.0, 0.0])).tolist()
    [[0.25], [0.5]]
    """

    def __init__(self, threshold: float | Fraction) -> None:
        c = validate_positive(threshold, name="threshold", owner="Huber")
        if not Fraction(1, 1 << 20) <= c <= 1 << 10:
            raise ParameterError(
                f"`threshold` of Huber must be between 2^-20 and 2^10; got {threshold!r}."
            )
        self.threshold = float(c)
        super().__init__(name="huber", slope=Fraction(1), offset=Fraction(0), ends=(-c, c))

    def describe(self) -> dict[str, Any]:
        """Return the name and the threshold."""
        return {"name": self.name, "threshold": self.threshold}


class SmoothedHinge(Ramp):
    """The hinge ``max(0, 1 - z t)`` with its kink rounded over ``[1 - width, 1]``.

    ``phi' = z clip((z t - 1)/width, -1, 0)``: c = 1, a = 1/width.
    """

    labels = True

    def __init__(self, width: float | Fraction = 0.5) -> None:
        w = validate_positive(width, name="width", owner="SmoothedHinge")
        self.width = float(w)
        super().__init__(
            name="smoothed-hinge",
            slope=1 / w,
            offset=Fraction(0),
            ends=(Fraction(-1), Fraction(0)),
        )

    def describe(self) -> dict[str, Any]:
        """Return the name and the width."""
        return {"name": self.name, "width": self.width}


class SmoothedPinball(Ramp):
    """The quantile risk with its kink rounded over a width.

    ``phi' = clip((t - z)/width + 1/2 - q, -q, 1 - q)``: c = max(q, 1 - q), a = 1/width.
    """

    def __init__(self, q: float | Fraction, width: float | Fraction = 0.25) -> None:
        level = validate_fraction(q, name="q", owner="SmoothedPinball")
        w = validate_positive(width, name="width", owner="SmoothedPinball")
        level = Fraction(float(level))  # a float64, of which 1 - q is made without rounding
        if Fraction(float(1 - level)) != 1 - level:
            level = Fraction(round(level * (1 << 50)), 1 << 50)
        self.q, self.width = float(level), float(w)
        super().__init__(
            name="smoothed-pinball",
            slope=1 / w,
            offset=Fraction(1, 2) - level,
            ends=(-level, 1 - level),
        )

    def describe(self) -> dict[str, Any]:
        """Return name, level and width."""
        return {"name": self.name, "q": self.q, "width": self.width}
