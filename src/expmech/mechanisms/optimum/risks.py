"""Convex risks of a row, by their first two derivatives. Theory: docs/theory/risks.md.

A row x with target z and parameters y (one vector, or one per class) contributes ``phi_z(t)`` with
margins ``t_k = x.y_k``. Nothing here sees more than margins and targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Protocol

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats
from expmech.core.coins import exp_evenly
from expmech.core.errors import (
    ParameterError,
    validate_fraction,
    validate_integer,
    validate_nonnegative,
    validate_positive,
    validate_scale,
)
from expmech.core.registry import Registry

__all__ = [
    "RISKS",
    "Custom",
    "Huber",
    "LogCosh",
    "Logistic",
    "Risk",
    "SmoothedHinge",
    "SmoothedPinball",
    "Softmax",
    "rebuild_risk",
]


MARGIN_ROUNDING = 2.0**-52
"""A computed margin is within ``2^-52 |t| + extra`` of the true one t."""

_UP = 1.0 + 2.0**-30


CurvatureBound = tuple[Fraction, Fraction, Fraction]
"""w0, w1, w2 of ``phi'' <= w0 + w1 |phi'| - w2 phi'^2``."""


class Risk(Protocol):
    """A convex risk of a row: bounds on its derivatives, and the derivatives themselves.

    Attributes
    ----------
    name : str
        The risk in a certificate.
    margins : int
        How many margins a row has: 1, or the number of classes.
    bound : Fraction
        c: every partial derivative lies in [-c, c].
    spread : Fraction
        Bound on the sum over the margins of the absolute partial derivatives.
    lipschitz : Fraction
        a: the largest eigenvalue of the second derivative is at most a.
    rank : int
        Bound on the rank of the second derivative; 1 for one margin.
    trace : Fraction
        Bound on the trace of the second derivative; a for one margin.
    squared_length : Fraction
        Bound on the sum over the margins of the squared partial derivatives.
    curvature_bound : tuple of three Fractions
        Of one margin: ``phi'' <= w0 + w1 |phi'| - w2 phi'^2`` everywhere, all three at least 0 and
        the bound not negative on [0, c]. (a, 0, 0) says no more than a does.
    """

    name: str
    margins: int
    bound: Fraction
    spread: Fraction
    lipschitz: Fraction
    rank: int
    trace: Fraction

    @property
    def squared_length(self) -> Fraction:
        """Bound on the sum over the margins of the squared partial derivatives."""

    @property
    def curvature_bound(self) -> CurvatureBound:
        """Coefficients of a concave quadratic in ``|phi'|`` above ``phi''``."""

    def prepare_targets(self, targets: Any) -> Floats:
        """Return targets as floats, each by a rule of its own: nothing is refused for a record."""

    def scales_targets(self) -> bool:
        """Return whether a target is in the units of a margin, and shrinks with its row."""

    def derivative(self, margins: Floats, targets: Floats) -> Floats:
        """Return the partial derivatives of the risk of each row.

        Parameters
        ----------
        margins : ndarray of shape (n, margins)
            One row of margins per row of the table.
        targets : ndarray of shape (n,)
            As :meth:`prepare_targets` returns them.

        Returns
        -------
        ndarray of shape (n, margins)
        """

    def derivative_error(self, largest: float, extra: float) -> tuple[float, float]:
        """Return eta and beta that bound the error of :meth:`derivative`.

        The computed derivative is the true one at margins that differ by at most eta from the true
        ones, up to beta. The rounding of the margins is included.

        Parameters
        ----------
        largest : float
            Bound on the absolute margins.
        extra : float
            What the margins are off by, besides their rounding.

        Returns
        -------
        tuple of float
            eta and beta.
        """

    def curvature(self, margins: Floats, targets: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield the second derivatives ``(k, l, d2 phi / dt_k dt_l)`` for ``k <= l``.

        Parameters
        ----------
        margins, targets
            As for :meth:`derivative`.

        Yields
        ------
        tuple of int, int and ndarray of shape (n,)
            Each entry within 2^-46 times a.
        """

    def relative_change(self, shift: float) -> float:
        """Bound the factor, minus one, by which the second derivative can change.

        The bound is on matrices, for rows that do not jump (:meth:`may_jump`), when every margin
        moves by at most ``shift``.
        """

    def may_jump(self, margins: Floats, targets: Floats, shift: float) -> Flags:
        """Return the rows that :meth:`relative_change` does not cover: they change by up to a.

        Parameters
        ----------
        margins, targets
            As for :meth:`derivative`.
        shift : float
            By how much every margin may move.

        Returns
        -------
        ndarray of bool, shape (n,)
        """

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose the partial derivatives of one row, in flint's current precision.

        Parameters
        ----------
        margins : list of flint.arb
            The margins of the row.
        target : float
            As :meth:`prepare_targets` returns it.

        Returns
        -------
        list of flint.arb
        """

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, from which the constants follow."""


class _OneMargin:
    """A risk of one margin, whose targets are numbers or labels of two classes."""

    name: str
    margins = 1
    rank = 1
    bound: Fraction
    lipschitz: Fraction
    labels: bool = False
    parameters: ClassVar[tuple[str, ...]] = ()

    @property
    def squared_length(self) -> Fraction:
        return self.bound**2

    @property
    def curvature_bound(self) -> CurvatureBound:
        """Return a: nothing is known but the largest second derivative."""
        return self.lipschitz, Fraction(0), Fraction(0)

    def describe(self) -> dict[str, Any]:
        return {"name": self.name} | {name: getattr(self, name) for name in self.parameters}

    def prepare_targets(self, targets: Any) -> Floats:
        """Return targets clipped to [-1, 1], missing ones as 0; or labels as +1 and -1."""
        numbers = np.asarray(targets, dtype=np.float64).ravel()
        if self.labels:
            return np.where(numbers > 0.0, 1.0, -1.0)
        return np.clip(np.nan_to_num(numbers, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)

    def scales_targets(self) -> bool:
        return not self.labels

    def may_jump(self, margins: Floats, targets: Floats, shift: float) -> Flags:
        return np.zeros(len(margins), dtype=np.bool_)


class Logistic(_OneMargin):
    """``phi_z(t) = log(1 + exp(-z t))``, z = +1 or -1: c = 1, a = 1/4.

    Targets above 0 (True, 1) are the class +1, all others the class -1.

    Examples
    --------
    >>> Logistic().derivative(np.array([[0.0], [0.0]]), np.array([1.0, -1.0])).round(9).tolist()
    [[-0.5], [0.5]]
    """

    name = "logistic"
    bound = Fraction(1)
    spread = Fraction(1)
    lipschitz = Fraction(1, 4)
    trace = Fraction(1, 4)
    labels = True

    @property
    def curvature_bound(self) -> CurvatureBound:
        """Return ``p (1 - p)``, p the size of the derivative: equality."""
        return Fraction(0), Fraction(1), Fraction(1)

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
        square = 1.0 + decay
        square *= square
        decay /= square
        yield 0, 0, decay

    def relative_change(self, shift: float) -> float:
        """Return ``exp(shift) - 1``: the third derivative is at most the second."""
        return math.expm1(min(shift, 700.0)) * (1.0 + 2.0**-40)

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose ``-z / (1 + exp(z t))``."""
        sign = int(target)
        return [-sign / (1 + (sign * margins[0]).exp())]


class Softmax:
    """``phi_z(t) = log(sum_k exp(t_k)) - t_z`` over classes z = 0 .. K-1.

    The derivative is ``p - e_z``: entries in [-1, 1], absolute sum at most 2. The second derivative
    is ``diag(p) - p p'``: rank K-1, trace at most 1 - 1/K, eigenvalues at most 1/2.

    Parameters
    ----------
    classes : int
        The number K of classes, from 2 to 1024. Targets are whole numbers from 0 to K-1; smaller
        and larger ones are clipped, a missing one is class 0.

    Examples
    --------
    >>> Softmax(2).derivative(np.zeros((1, 2)), np.array([1.0])).tolist()
    [[0.5, -0.5]]
    """

    name = "softmax"
    parameters = ("classes",)
    bound = Fraction(1)
    spread = Fraction(2)
    lipschitz = Fraction(1, 2)
    squared_length = Fraction(2)
    curvature_bound = (Fraction(1, 2), Fraction(0), Fraction(0))

    def __init__(self, classes: int) -> None:
        self.margins = validate_integer(classes, name="classes", owner="Softmax", low=2, high=1024)
        self.rank = self.margins - 1
        self.trace = Fraction(self.margins - 1, self.margins)

    def prepare_targets(self, targets: Any) -> Floats:
        """Return whole numbers, clipped to 0 .. K-1; anything else becomes 0."""
        numbers = np.nan_to_num(np.asarray(targets, dtype=np.float64).ravel(), nan=0.0)
        return np.floor(np.clip(numbers, 0.0, self.margins - 1.0))

    def scales_targets(self) -> bool:
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

    def may_jump(self, margins: Floats, targets: Floats, shift: float) -> Flags:
        return np.zeros(len(margins), dtype=np.bool_)

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose ``1 / sum_l exp(t_l - t_k)``, minus one for the class of the row."""
        zero = flint.arb(0)
        shares = [1 / sum(((other - t).exp() for other in margins), zero) for t in margins]
        shares[int(target)] -= 1
        return shares

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "classes": self.margins}


class Ramp(_OneMargin):
    """``phi'_z(t) = clip(slope u + offset, low, high)`` of ``u = t - z``.

    For labels z = +1 and -1 it is ``z clip(slope u + offset, low, high)`` of ``u = z t - 1``.
    The slope is a power of two, so that a product with it is never rounded.
    """

    def __init__(
        self, *, slope: Fraction, ends: tuple[Fraction, Fraction], offset: Fraction = Fraction(0)
    ) -> None:
        if math.frexp(float(slope))[0] != 0.5 or not Fraction(1, 1 << 20) <= slope <= 1 << 20:
            raise ParameterError(
                f"`width` of {self.name} must be a power of two between 2^-20 and 2^20;"
                f" got {float(1 / slope)!r}."
            )
        bottoms = [number.denominator for number in (offset, *ends)]
        if any(bottom & (bottom - 1) for bottom in bottoms):
            raise ParameterError(f"the parameters of {self.name} must be float64 numbers.")
        self.slope, self.offset = float(slope), float(offset)
        self.low, self.high = float(ends[0]), float(ends[1])
        self.bound = max(abs(ends[0]), abs(ends[1]))
        self.spread = self.bound
        self.lipschitz = slope
        self.trace = slope
        # |u| on the ramp, and so |t| <= |u| + 1 there
        self._farthest = float(max(abs(end - offset) for end in ends) / slope) + 1.0

    def _height(self, margins: Floats, targets: Floats) -> Floats:
        """Return ``slope u + offset``, before it is clipped."""
        margin = margins[:, 0]
        residual = margin * targets - 1.0 if self.labels else margin - targets
        return np.asarray(residual * self.slope + self.offset)

    def derivative(self, margins: Floats, targets: Floats) -> Floats:
        ramp = np.clip(self._height(margins, targets), self.low, self.high)
        if self.labels:
            ramp *= targets
        return ramp[:, None]

    def derivative_error(self, largest: float, extra: float) -> tuple[float, float]:
        """Return what rounding moves a margin on the ramp by, and 0 (docs/theory/risks.md, 3).

        Off the ramp derivatives are exact, however large the margins are.
        """
        rounded = 2.0 * MARGIN_ROUNDING * self._farthest + extra * (1.0 + 2.0**-30)
        offset = MARGIN_ROUNDING * (self._farthest + 1.0 / self.slope) if self.offset else 0.0
        return rounded + offset, 0.0

    def curvature(self, margins: Floats, targets: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield the slope on the ramp and 0 off it."""
        height = self._height(margins, targets)
        yield 0, 0, np.where((height > self.low) & (height < self.high), self.slope, 0.0)

    def relative_change(self, shift: float) -> float:
        """Return 0: a row that stays on its side of both kinks does not change."""
        return 0.0

    def may_jump(self, margins: Floats, targets: Floats, shift: float) -> Flags:
        """Return the rows within ``shift`` of a kink."""
        height = self._height(margins, targets)
        size = self.slope * shift * (1.0 + 2.0**-40) + 2.0**-48 * (
            1.0 + abs(self.low) + abs(self.high)
        )
        near: Flags = np.abs(height - self.low) <= size
        near |= np.abs(height - self.high) <= size
        return near

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose the ramp; where a ball straddles a kink, by the ball's own radius."""
        sign = flint.arb(int(target)) if self.labels else flint.arb(1)
        residual = sign * margins[0] - 1 if self.labels else margins[0] - flint.arb(target)
        height = residual * flint.arb(self.slope) + flint.arb(self.offset)
        return [sign * height.max(flint.arb(self.low)).min(flint.arb(self.high))]


class Huber(Ramp):
    """``phi'_z(t) = clip(t - z, -c, c)``: c the threshold, a = 1.

    Parameters
    ----------
    threshold : float or Fraction
        c, from 2^-20 to 2^10: larger residuals count linearly. Targets are clipped to [-1, 1].

    Examples
    --------
    >>> Huber(0.5).derivative(np.array([[0.25], [2.0]]), np.array([0.0, 0.0])).tolist()
    [[0.25], [0.5]]
    """

    name = "huber"
    parameters = ("threshold",)

    def __init__(self, threshold: float | Fraction) -> None:
        c = validate_positive(threshold, name="threshold", owner="Huber")
        if not Fraction(1, 1 << 20) <= c <= 1 << 10:
            raise ParameterError(
                f"`threshold` of Huber must be between 2^-20 and 2^10; got {threshold!r}."
            )
        self.threshold = float(c)
        super().__init__(slope=Fraction(1), ends=(-c, c))


class LogCosh(_OneMargin):
    """``phi_z(t) = c^2 log cosh((t - z)/c)``: ``phi' = c tanh((t - z)/c)``, a = 1.

    Close to Huber's risk of the same threshold; its second derivative, ``1 - (phi'/c)^2``, falls
    where the first one grows.

    Parameters
    ----------
    threshold : float or Fraction
        c, from 2^-10 to 2^10: larger residuals count about linearly. Targets are clipped to
        [-1, 1].

    Examples
    --------
    >>> LogCosh(0.5).derivative(np.array([[0.25], [9.0]]), np.array([0.0, 0.0])).round(4).tolist()
    [[0.2311], [0.5]]
    """

    name = "log-cosh"
    parameters = ("threshold",)
    lipschitz = Fraction(1)
    trace = Fraction(1)

    def __init__(self, threshold: float | Fraction) -> None:
        c = validate_positive(threshold, name="threshold", owner="LogCosh")
        if not Fraction(1, 1 << 10) <= c <= 1 << 10 or Fraction(float(c)) != c:
            raise ParameterError(
                "`threshold` of LogCosh must be a float64 number between 2^-10 and 2^10; got"
                f" {threshold!r}."
            )
        self.threshold = float(c)
        self.bound = c
        self.spread = c

    @property
    def curvature_bound(self) -> CurvatureBound:
        """Return ``1 - (phi'/c)^2``: equality."""
        return Fraction(1), Fraction(0), 1 / self.bound**2

    def derivative(self, margins: Floats, targets: Floats) -> Floats:
        """Return ``c sign(u) (1 - e)/(1 + e)`` with ``u = t - z`` and ``e = exp(-2 |u|/c)``."""
        residual = margins[:, 0] - targets
        decay = exp_evenly(np.abs(residual) * (-2.0 / self.threshold))
        slope = 1.0 - decay
        slope /= 1.0 + decay
        slope *= self.threshold
        return np.copysign(slope, residual)[:, None]

    def derivative_error(self, largest: float, extra: float) -> tuple[float, float]:
        """Return what shifts a margin, and 2^-50 c (docs/theory/risks.md, 4)."""
        eta = 3.0 * MARGIN_ROUNDING * (largest + 1.0) + 2.0**-48 * self.threshold + extra
        return eta * _UP, 2.0**-50 * self.threshold

    def curvature(self, margins: Floats, targets: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield ``4 e / (1 + e)^2``."""
        decay = np.exp(np.abs(margins[:, 0] - targets) * (-2.0 / self.threshold))
        square = 1.0 + decay
        square *= square
        decay *= 4.0
        decay /= square
        yield 0, 0, decay

    def relative_change(self, shift: float) -> float:
        """Return ``exp(2 shift/c) - 1``: the third derivative is at most 2/c times the second."""
        return math.expm1(min(2.0 * shift / self.threshold, 700.0)) * (1.0 + 2.0**-40)

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        """Enclose ``c tanh((t - z)/c)``."""
        c = flint.arb(self.threshold)
        return [c * ((margins[0] - flint.arb(target)) / c).tanh()]


class SmoothedHinge(Ramp):
    """The hinge ``max(0, 1 - z t)`` with its kink rounded over ``[1 - width, 1]``.

    ``phi' = z clip((z t - 1)/width, -1, 0)``: c = 1, a = 1/width.

    Parameters
    ----------
    width : float or Fraction, default 0.5
        A power of two from 2^-20 to 2^20. Targets above 0 are the class +1, all others -1.

    Examples
    --------
    >>> SmoothedHinge(0.5).derivative(np.array([[0.75], [2.0]]), np.array([1.0, 1.0])).tolist()
    [[-0.5], [0.0]]
    """

    name = "smoothed-hinge"
    parameters = ("width",)
    labels = True

    def __init__(self, width: float | Fraction = 0.5) -> None:
        w = validate_positive(width, name="width", owner="SmoothedHinge")
        self.width = float(w)
        super().__init__(slope=1 / w, ends=(Fraction(-1), Fraction(0)))


class SmoothedPinball(Ramp):
    """The quantile risk with its kink rounded over a width.

    ``phi' = clip((t - z)/width + 1/2 - q, -q, 1 - q)``: c = max(q, 1 - q), a = 1/width.

    Parameters
    ----------
    q : float or Fraction
        Which quantile, strictly between 0 and 1.
    width : float or Fraction, default 0.25
        A power of two from 2^-20 to 2^20. Targets are clipped to [-1, 1].

    Examples
    --------
    >>> SmoothedPinball(0.25).derivative(np.array([[0.0], [2.0]]), np.array([0.0, 0.0])).tolist()
    [[0.25], [0.75]]
    """

    name = "smoothed-pinball"
    parameters = ("q", "width")

    def __init__(self, q: float | Fraction, width: float | Fraction = 0.25) -> None:
        level = validate_fraction(q, name="q", owner="SmoothedPinball")
        w = validate_positive(width, name="width", owner="SmoothedPinball")
        level = Fraction(float(level))  # a float64, of which 1 - q is made without rounding
        if Fraction(float(1 - level)) != 1 - level:
            level = Fraction(round(level * (1 << 50)), 1 << 50)
        self.q, self.width = float(level), float(w)
        super().__init__(slope=1 / w, offset=Fraction(1, 2) - level, ends=(-level, 1 - level))


class Custom(_OneMargin):
    """A convex risk given by ``phi'_z(t)``, ``phi''_z(t)`` and their bounds.

    Parameters
    ----------
    name : str
        What certificates call it, after "custom: ".
    derivative, curvature : callable
        Functions of margins and targets, arrays of shape (n,); the first in [-bound, bound] and
        nondecreasing in the margin, the second in [0, lipschitz].
    ball : callable
        ``phi'`` of a flint ball and a float target, as a ball: it decides where float64 cannot.
    bound, lipschitz : float or Fraction
        Public bounds c and a, float64 numbers. That they hold is the caller's assumption.
    error : float
        Bound on the float64 error of ``derivative`` at an exact margin.
    labels : bool, default False
        Whether targets become +1 and -1 by their sign; else they are clipped to [-1, 1].
    curvature_bound : tuple of three floats or Fractions, optional
        w0, w1, w2, float64 numbers of at least 0, with ``phi'' <= w0 + w1 |phi'| - w2 phi'^2``
        everywhere: less noise is needed where ``phi''`` falls as ``|phi'|`` grows. That it holds is
        the caller's assumption too; None says no more than ``lipschitz``.

    Notes
    -----
    Nothing is known of how ``phi''`` changes, so the enclosure rests on the penalty alone: more
    releases need the slow path than with a built-in risk.

    Examples
    --------
    >>> square = Custom(
    ...     name="half a square of t, linear beyond 1",
    ...     derivative=lambda t, z: np.clip(t, -1.0, 1.0),
    ...     curvature=lambda t, z: (np.abs(t) < 1.0).astype(float),
    ...     ball=lambda t, z: t.max(flint.arb(-1)).min(flint.arb(1)),
    ...     bound=1.0,
    ...     lipschitz=1.0,
    ...     error=0.0,
    ... )
    >>> square.derivative(np.array([[0.5], [3.0]]), np.zeros(2)).tolist()
    [[0.5], [1.0]]
    """

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
        curvature_bound: tuple[float | Fraction, float | Fraction, float | Fraction] | None = None,
    ) -> None:
        self.name = f"custom: {name}"
        self._derivative, self._curvature, self._ball = derivative, curvature, ball
        self.bound = validate_scale(bound, name="bound", owner="Custom")
        self.spread = self.bound
        self.lipschitz = validate_scale(lipschitz, name="lipschitz", owner="Custom")
        if any(Fraction(float(number)) != number for number in (self.bound, self.lipschitz)):
            raise ParameterError("`bound` and `lipschitz` of Custom must be float64 numbers.")
        self.trace = self.lipschitz
        self.error = float(validate_nonnegative(error, name="error", owner="Custom"))
        self.labels = labels
        self._declared = None
        if curvature_bound is not None:
            self._declared = validate_curvature_bound(curvature_bound, self.bound)
            self._probe_curvature_bound()

    def _probe_curvature_bound(self) -> None:
        """Raise where the declared bound fails at one of many public margins."""
        sizes = np.concatenate([np.linspace(0.0, 8.0, 2049), np.logspace(1.0, 4.0, 256)])
        margins = np.concatenate([-sizes, sizes])[:, None]
        first, second, third = (float(number) for number in self.curvature_bound)
        for target in (-1.0, 0.0, 1.0):
            targets = np.full(len(margins), target)
            size = np.abs(self.derivative(margins, targets)[:, 0])
            ((_, _, bend),) = self.curvature(margins, targets)
            slack = 2.0**-20 * float(self.lipschitz) + 4.0 * (second + third) * self.error
            if (bend > first + second * size - third * size**2 + slack).any():
                raise ParameterError(
                    "`curvature_bound` of Custom must hold at every margin; it does not at some of"
                    " a public list."
                )

    @property
    def curvature_bound(self) -> CurvatureBound:
        """Return what the caller declared."""
        return super().curvature_bound if self._declared is None else self._declared

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
        """Return 0: every row may jump."""
        return 0.0

    def may_jump(self, margins: Floats, targets: Floats, shift: float) -> Flags:
        return np.ones(len(margins), dtype=np.bool_)

    def ball(self, margins: list[flint.arb], target: float) -> list[flint.arb]:
        return [self._ball(margins[0], target)]

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {
            "name": self.name,
            "bound": float(self.bound),
            "lipschitz": float(self.lipschitz),
            "error": self.error,
        }
        if self._declared is not None:
            described["curvature_bound"] = [float(number) for number in self._declared]
        return described


def validate_curvature_bound(constants: Any, bound: Fraction) -> CurvatureBound:
    """Return three float64 numbers whose quadratic is concave and not negative on [0, bound]."""
    rule = "`curvature_bound` of Custom must be three float64 numbers of at least 0"
    if not isinstance(constants, (tuple, list)) or len(constants) != 3:
        raise ParameterError(f"{rule}; got {constants!r}.")
    first, second, third = (
        Fraction(validate_nonnegative(number, name="curvature_bound", owner="Custom"))
        for number in constants
    )
    if any(Fraction(float(number)) != number for number in (first, second, third)):
        raise ParameterError(f"{rule}; got {constants!r}.")
    if first + second * bound - third * bound**2 < 0:
        raise ParameterError("`curvature_bound` of Custom must not be negative at `bound`.")
    return first, second, third


def _rebuild(kind: Any, described: Mapping[str, Any]) -> Risk:
    risk: Risk = kind(*(described[name] for name in kind.parameters))
    return risk


RISKS: Registry[Callable[[Mapping[str, Any]], Risk]] = Registry(
    "expmech.risks",
    [
        (str(kind.name), partial(_rebuild, kind))
        for kind in (Logistic, Softmax, Huber, LogCosh, SmoothedHinge, SmoothedPinball)
    ],
)
"""How a risk is made from its own description, by the name that certificates call it."""


def rebuild_risk(described: Mapping[str, Any]) -> Risk | None:
    """Return the risk of a certificate; None for one whose constants its caller declared."""
    make = RISKS.find(str(described["name"]))
    return None if make is None else make(described)
