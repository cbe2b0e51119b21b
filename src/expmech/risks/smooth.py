"""Risks with an exponential in them: logistic and softmax. Theory: docs/theory/risks.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.coins.exact import exp_evenly
from expmech.errors import validate_integer
from expmech.risks.base import Floats, settled

_UP = 1.0 + 2.0**-30


class Logistic:
    """``phi_z(t) = log(1 + exp(-z t))``, z = +1 or -1: c = 1, a = 1/4.

    Examples
    --------
    >>> Logistic().derivative(np.array([[0.0], [0.0]]), np.array([1.0, -1.0])).round(9).tolist()
    [[-0.5], [0.5]]
    """

    name = "logistic"
    margins = 1
    bound = Fraction(1)
    spread = Fraction(1)
    lipschitz = Fraction(1, 4)
    rank = 1
    trace = Fraction(1, 4)

    def prepare_targets(self, targets: Any) -> Floats:
        """Return +1 for a target above 0 (True, 1) and -1 for any other."""
        return np.where(np.asarray(targets, dtype=np.float64).ravel() > 0.0, 1.0, -1.0)

    def scales_targets(self) -> bool:
        """Return False: a label is not a length."""
        return False

    def derivative(self, margins: Floats, targets: Floats) -> Floats:
        """Return ``-z / (1 + exp(z t))``, without cancellation."""
        signed = margins[:, 0] * targets
        decay = exp_evenly(-np.abs(signed))
        share = np.where(signed > 0.0, decay, 1.0)
        share /= 1.0 + decay
        share *= -targets
        return share[:, None]

    def derivative_error(self, largest: float, extra: float) -> tuple[float, float]:
        """Return 2^-48 + 2^-52 largest + extra, and 2^-52 (docs/theory/risks.md, 1)."""
        return (2.0**-48 + 2.0**-52 * largest + extra) * _UP, 2.0**-52

    def curvature(self, margins: Floats, targets: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield ``e / (1 + e)^2`` with ``e = exp(-|t|)``."""
        decay = np.exp(-np.abs(margins[:, 0]))
        one = 1.0 + decay
        one *= one
        decay /= one
        yield 0, 0, decay

    def relative_change(self, shift: float) -> float:
        """Return ``exp(shift) - 1``: the third derivative is at most the second."""
        return math.expm1(min(shift, 700.0)) * (1.0 + 2.0**-40)

    def unsettled(self, margins: Floats, targets: Floats, shift: float) -> NDArray[np.bool_]:
        """Return False for every row."""
        return settled(margins)

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose ``-z / (1 + exp(z t))``."""
        sign = int(target)
        return [-sign / (1 + (sign * margins[0]).exp())]

    def describe(self) -> dict[str, Any]:
        """Return the name."""
        return {"name": self.name}


class Softmax:
    """``phi_z(t) = log(sum_k exp(t_k)) - t_z`` over classes z = 0 .. K-1.

    The derivative is ``p - e_z``: entries in [-1, 1], absolute sum at most 2. The second derivative
    is ``diag(p) - p p'``: rank K-1, trace at most 1 - 1/K, eigenvalues at most 1/2.
    """

    name = "softmax"
    bound = Fraction(1)
    spread = Fraction(2)
    lipschitz = Fraction(1, 2)

    def __init__(self, classes: int) -> None:
        self.margins = validate_integer(classes, name="classes", owner="Softmax", low=2, high=1024)
        self.rank = self.margins - 1
        self.trace = Fraction(self.margins - 1, self.margins)

    def prepare_targets(self, targets: Any) -> Floats:
        """Return whole numbers, clipped to 0 .. K-1; anything else becomes 0."""
        numbers = np.nan_to_num(np.asarray(targets, dtype=np.float64).ravel(), nan=0.0)
        return np.floor(np.clip(numbers, 0.0, self.margins - 1.0))

    def scales_targets(self) -> bool:
        """Return False: a label is not a length."""
        return False

    def _shares(self, margins: Floats) -> Floats:
        weights = np.exp(margins - margins.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights)

    def derivative(self, margins: Floats, targets: Floats) -> Floats:
        """Return ``p - e_z``."""
        shares = self._shares(margins)
        shares[np.arange(len(shares)), targets.astype(np.int64)] -= 1.0
        return shares

    def derivative_error(self, largest: float, extra: float) -> tuple[float, float]:
        """Return 2^-48 + 3 2^-52 largest + extra, and (K + 2) 2^-53 (docs/theory/risks.md, 2)."""
        eta = 2.0**-48 + 3.0 * 2.0**-52 * largest + extra
        return eta * _UP, (self.margins + 2.0) * 2.0**-53

    def curvature(self, margins: Floats, targets: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield ``p_k (1 - p_k)`` and ``-p_k p_l``."""
        shares = self._shares(margins)
        for k in range(self.margins):
            yield k, k, shares[:, k] * (1.0 - shares[:, k])
            for other in range(k + 1, self.margins):
                yield k, other, -shares[:, k] * shares[:, other]

    def relative_change(self, shift: float) -> float:
        """Return ``exp(2 shift) - 1``: differences of margins move by twice the shift."""
        return math.expm1(min(2.0 * shift, 700.0)) * (1.0 + 2.0**-40)

    def unsettled(self, margins: Floats, targets: Floats, shift: float) -> NDArray[np.bool_]:
        """Return False for every row."""
        return settled(margins)

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose ``1 / sum_l exp(t_l - t_k)``, minus one for the class of the row."""
        label = int(target)
        zero = flint.arb(0)
        found = [1 / sum(((other - one).exp() for other in margins), zero) for one in margins]
        found[label] -= 1
        return found

    def describe(self) -> dict[str, Any]:
        """Return the name and the number of classes."""
        return {"name": self.name, "classes": self.margins}
