"""What a mechanism needs to know about the risk of a row. Theory: docs/theory/perturbed_optimum.md.

A row x with target z and parameters y (one vector a class, or one) contributes ``phi_z(t)`` with
margins ``t_k = x.y_k``. Nothing here sees more than margins and targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Protocol

import flint
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MARGIN_ROUNDING = 2.0**-52
"""A computed margin is within ``2^-52 |t| + extra`` of the true one t."""


class Risk(Protocol):
    """A convex risk of a row: bounds on its derivatives, and the derivatives themselves.

    Attributes
    ----------
    name
        The risk in a certificate.
    margins
        How many margins a row has: 1, or the number of classes.
    bound
        c: every partial derivative lies in [-c, c].
    spread
        Bound on the sum over the margins of the absolute partial derivatives.
    lipschitz
        a: the largest eigenvalue of the second derivative is at most a.
    rank, trace
        Rank and trace of the second derivative are at most these. For one margin 1 and a.
    """

    name: str
    margins: int
    bound: Fraction
    spread: Fraction
    lipschitz: Fraction
    rank: int
    trace: Fraction

    def prepare_targets(self, targets: Any) -> Floats:
        """Return targets as floats, each by a rule of its own: nothing is refused for a record."""

    def scales_targets(self) -> bool:
        """Whether a target is in the units of a margin, and shrinks with its row."""

    def derivative(self, margins: Floats, targets: Floats) -> Floats:
        """Return the partial derivatives, shape (n, margins)."""

    def derivative_error(self, largest: float, extra: float) -> tuple[float, float]:
        """Return eta and beta that bound the error of :meth:`derivative`.

        Where margins are at most ``largest``, the computed derivative is the true one at margins
        that differ by at most eta from the true ones, up to beta. The rounding of the margins is
        included, and what ``extra`` they are off by.
        """

    def curvature(self, margins: Floats, targets: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield ``(k, l, d2 phi / dt_k dt_l)`` for ``k <= l``, each within 2^-46 times a."""

    def relative_change(self, shift: float) -> float:
        """Bound by which factor minus one the second derivative can change.

        The bound is on matrices, in rows that are settled, when every margin moves by at most
        ``shift``.
        """

    def unsettled(self, margins: Floats, targets: Floats, shift: float) -> NDArray[np.bool_]:
        """Return the rows that :meth:`relative_change` does not speak of: there it is at most a."""

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose the partial derivatives of one row, in flint's current precision."""

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, from which the constants follow."""


def settled(margins: Floats) -> NDArray[np.bool_]:
    """Return that no row is unsettled."""
    return np.zeros(len(margins), dtype=np.bool_)


def exactly_dyadic(number: Fraction) -> bool:
    """Return whether a number has finitely many binary digits."""
    return number.denominator & (number.denominator - 1) == 0


class OneTarget:
    """How a risk of one margin reads targets: as numbers, or as labels of two classes."""

    labels: bool = False

    def prepare_targets(self, targets: Any) -> Floats:
        """Return targets clipped to [-1, 1], missing ones as 0; or labels as +1 and -1."""
        numbers = np.asarray(targets, dtype=np.float64).ravel()
        if self.labels:
            return np.where(numbers > 0.0, 1.0, -1.0)
        return np.clip(np.nan_to_num(numbers, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)

    def scales_targets(self) -> bool:
        """Return whether the target shrinks with its row."""
        return not self.labels
