"""Validate what a caller declares about a loss, against what the loss itself knows.

What the caller declares is an assumption of the certificate; what a built-in loss knows is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.adjacency import Adjacency
from expmech.domains import Domain, Region
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    validate_nonnegative,
    validate_number,
    validate_positive,
    validate_scale,
    validate_vector,
)
from expmech.losses.base import Curvature, Declared, Facts, Floats, Growth
from expmech.target.calibration import RELATIVE_LOSS_ERROR

OWNER = "ExponentialMechanism"


class Checks:
    """Each method returns one fact, validated, and notes what has to be assumed for it."""

    def __init__(self, domain: Domain, known: Facts, given: Declared, loss_name: str) -> None:
        self.domain, self.known, self.given, self.loss_name = domain, known, given, loss_name
        self.assumptions: list[str] = []

    def minimum(self) -> Fraction:
        """Return the public lower bound on the loss; 0 unless one is known or declared."""
        least = self._number("minimum", validate_number)
        if least is None:
            self.assumptions.append("the loss is at least its declared minimum, 0.0")
        return Fraction(0) if least is None else least

    def gap(self) -> Fraction | None:
        """Return the public bound on the least loss above the minimum."""
        return self._number("gap", validate_nonnegative)

    def bound(
        self, least: Fraction, gap: Fraction | None, lipschitz: Floats | None
    ) -> Fraction | None:
        """Return the public upper bound on the loss, if only by Lipschitz constants."""
        most = self._number("bound", validate_number)
        # Lipschitz constants say nothing about what another candidate of a list has
        if most is None and lipschitz is not None and isinstance(self.domain, Region):
            sides = zip(lipschitz.tolist(), self._widths().tolist(), strict=True)
            reach = sum((Fraction(slope) * Fraction(width) for slope, width in sides), Fraction(0))
            most = (least + (gap or 0) + reach) * (1 + Fraction(1, 1 << 40))
            self.assumptions.append(
                "the loss is at most `minimum` (plus `gap`) plus what `lipschitz` allows across the"
                " domain"
            )
        if most is not None and most < least:
            raise ParameterError(
                f"`bound` of {OWNER} must be at least `minimum`; got {float(most)} and"
                f" {float(least)}."
            )
        return most

    def evaluation_seconds(self) -> float | None:
        """Return what one evaluation takes; a forecast goes by it, the guarantee does not."""
        told = self._told("evaluation_seconds")
        if told is None:
            return None
        return float(validate_positive(told, name="evaluation_seconds", owner=OWNER))

    def _told(self, name: str) -> Any:
        """Return what the caller declares, or else what the loss knows."""
        given = self.given.get(name)
        return getattr(self.known, name) if given is None else given

    def _number(self, name: str, validate: Callable[..., Fraction]) -> Fraction | None:
        value: object = self.given.get(name)
        if value is None:
            known: Any = getattr(self.known, name)
            return None if known is None else Fraction(known)
        number = validate(value, name=name, owner=OWNER)
        self.assumptions.append(f"declared by the caller: `{name}` = {float(number)!r}")
        return number

    def sensitivity(self, adjacency: Adjacency) -> Fraction:
        """Return ``D``, rounded up; at least what the loss itself says."""
        known, given = self.known.sensitivity, self.given.get("sensitivity")
        own = self.known.adjacency or Adjacency.REPLACE
        if known is not None and adjacency != own:
            reason = "whose sensitivity refers to it"
            if own == Adjacency.REPLACE:
                reason = "whose row count is public"
            raise ParameterError(
                f"`adjacency` of {OWNER} must be {str(own)!r} for {self.loss_name}, {reason}; got"
                f" {str(adjacency)!r}."
            )
        if given is None:
            if known is None:
                raise ParameterError(
                    f"`sensitivity` of {OWNER} must be given for a custom loss; got None."
                )
            return Fraction(known)
        number = validate_scale(given, name="sensitivity", owner=OWNER)
        if isinstance(given, float):  # the quotient the caller meant may have been rounded down
            number = Fraction(math.nextafter(given, math.inf))
        if known is None:
            self.assumptions.append(
                "the loss moves by at most the sensitivity between adjacent data sets, at every"
                " point"
            )
        elif number < known:
            raise ParameterError(
                f"`sensitivity` of {OWNER} must be at least that of {self.loss_name},"
                f" {float(known)!r}; got {given!r}."
            )
        return number

    def lipschitz(self) -> Floats | None:
        """Return one constant a coordinate, none negative."""
        told = self._told("lipschitz")
        if told is None:
            return None
        slopes = validate_vector(told, name="lipschitz", owner=OWNER, length=len(self._widths()))
        if (slopes < 0).any():
            raise ParameterError(f"`lipschitz` of {OWNER} must not be negative; got {told!r}.")
        if self.given.get("lipschitz") is not None:
            self.assumptions.append(
                "declared by the caller: the loss has the Lipschitz constants `lipschitz`, one a"
                " coordinate"
            )
        return slopes

    def _widths(self) -> Floats:
        widths = self.domain.axis_widths
        if widths is not None:
            return widths
        raise ParameterError(
            f"`lipschitz` of {OWNER} must be left out on a list of candidates; declare `bound`"
            " instead."
        )

    def growth(self) -> Growth | None:
        """Return the declared growth, with one positive rate a coordinate."""
        growth = self._told("growth")
        if growth is None:
            return None
        if not isinstance(growth, Growth):
            raise ParameterTypeError(
                f"`growth` of {OWNER} must be an expmech.Growth; got {type(growth).__name__}."
            )
        d = self.domain.dimension
        validate_vector(
            growth.center, name="growth.center", owner=OWNER, length=d, confidential=True
        )
        rates = validate_vector(growth.rates, name="growth.rates", owner=OWNER, length=d)
        if (rates <= 0).any():
            raise ParameterError(
                f"`growth.rates` of {OWNER} must be positive; got {growth.rates!r}."
            )
        validate_number(growth.slack, name="growth.slack", owner=OWNER)
        if self.given.get("growth") is not None:
            self.assumptions.append(
                "declared by the caller: the loss grows at least as `growth` says"
            )
        return growth

    def loss_error(self, least: Fraction, most: Fraction | None) -> Fraction | None:
        """Return the bound on the loss's rounding; None where it follows from saturation."""
        given = self.given.get("loss_error")
        if given is not None:
            self.assumptions.append(
                "declared by the caller: the computed loss is within `loss_error` of the true one"
            )
            number = validate_nonnegative(given, name="loss_error", owner=OWNER)
            if number == 0:
                raise ParameterError(
                    f"`loss_error` of {OWNER} must be above 0: no float64 computation is exact;"
                    f" got {given!r}."
                )
            return number
        if self.known.loss_error is not None:
            return Fraction(self.known.loss_error)
        self.assumptions.append(
            "the computed loss is within 2^-44 of its public bound (or of where it saturates) of"
            " the true one"
        )
        return None if most is None else RELATIVE_LOSS_ERROR * max(abs(least), abs(most))

    def convex(self) -> bool:
        """Return whether the loss is convex: by what it knows, or as the caller declares."""
        if self.known.affine is not None or self.known.convex:
            return True
        declared = bool(self.given.get("convex", False))
        if declared and self.function("gradient") is None:
            self.assumptions.append("declared by the caller: the loss is convex")
        return declared

    def gradient(self) -> tuple[Callable[[Floats], Any] | None, float | None]:
        """Return the gradient of a convex loss and the error its entries are declared to have."""
        gradient = self.function("gradient")
        if gradient is None or not (self.known.convex or self.given.get("convex", False)):
            return None, None
        declared = self.given.get("gradient_error")
        error = self.known.gradient_error if declared is None else declared
        if error is None:
            self.assumptions.append(
                "the loss is convex, and each entry of its gradient is within 2^-30 of the largest"
                " of the true one"
            )
            return gradient, None
        if declared is not None or not self.known.proved:
            self.assumptions.append("the loss is convex, and its `gradient_error` is true")
        owner = "a loss"
        return gradient, float(validate_nonnegative(error, name="gradient_error", owner=owner))

    def function(self, name: str) -> Any:
        """Return the function declared under ``name``, or the loss's own; None if there is none."""
        given: object = self.given.get(name)
        function = getattr(self.known, name) if given is None else given
        if function is not None and not callable(function):
            kind = type(function).__name__
            raise ParameterTypeError(f"`{name}` of {OWNER} must be a function; got {kind}.")
        return function


def validate_curvature(curvature: object, dimension: int) -> Curvature:
    """Return the curvature; raise unless its numbers are finite and of the right shape."""
    if not isinstance(curvature, Curvature):
        raise ParameterTypeError(
            f"`curvature` of a loss must be an expmech.Curvature; got {type(curvature).__name__}."
        )
    d, c = dimension, curvature
    numbers = (c.center, c.gradient, c.hessian, c.value, c.skew, c.gradient_error)
    shapes = [np.shape(one) for one in numbers]
    finite = all(np.isfinite(one).all() for one in numbers)
    if shapes != [(d,), (d,), (d, d), (), (), ()] or not finite:
        raise ParameterError(
            "`curvature` of a loss must hold finite numbers, with vectors of"
            f" {d} entries and a {d} x {d} matrix."
        )
    if c.skew < 0 or c.gradient_error < 0 or not np.array_equal(c.hessian, c.hessian.T):
        raise ParameterError(
            "`curvature` of a loss must have a symmetric `hessian`, and `skew` and `gradient_error`"
            " at least 0."
        )
    return curvature
