"""The validated statement of a problem.

Loss, sensitivity, domain, and what is known about the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Domain, Indices
from expmech.domains.base import probe_indices
from expmech.errors import (
    LossError,
    ParameterError,
    ParameterTypeError,
    validate_choice,
    validate_nonnegative,
    validate_number,
    validate_scale,
    validate_vector,
)
from expmech.losses.base import AffineForm, Curvature, Growth, IntegerForm
from expmech.rounding import float_up
from expmech.target.calibration import RELATIVE_LOSS_ERROR

Loss = Callable[[Any], Any]
ADJACENCIES = ("replace", "add-remove")
_OWNER = "ExponentialMechanism"

NOT_FINITE = (
    "`loss` of ExponentialMechanism must return finite numbers; it returned nan or infinity."
)
OUT_OF_RANGE = (
    "`loss` of ExponentialMechanism must stay within its declared range, `minimum` to `bound`"
    " (where only `lipschitz` is given, `bound` is `minimum` plus what the Lipschitz constants"
    " allow across the domain); it did not. Declare the true range."
)
NOT_REPEATABLE = (
    "`loss` of ExponentialMechanism must give the same float for the same point in any batch, which"
    " a chain sampler needs; it did not. Avoid matrix products over the batch, or use Rejection,"
    " which only needs `loss_error`."
)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A loss with its sensitivity on a public domain, and what is known about it.

    Made by :func:`make_problem`.
    """

    loss: Loss
    domain: Domain
    sensitivity: Fraction
    adjacency: str
    minimum: float
    bound: float | None
    gap: float | None
    loss_error: Fraction | None
    lipschitz: NDArray[np.float64] | None
    growth: Growth | None
    integer_form: IntegerForm | None
    affine: AffineForm | None
    assumptions: tuple[str, ...]

    @cached_property
    def curvature(self) -> Curvature | None:
        """What the loss knows of its curvature on the domain.

        Sought when it is first asked for, since that takes evaluations.
        """
        return _curvature(self.loss, self.domain)

    def evaluate(self, indices: Indices) -> NDArray[np.float64]:
        """Return the loss at lattice points, checked for type, shape and declared range."""
        return self.evaluate_points(self.domain.points(indices))

    def evaluate_points(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Return the loss at points given as the loss takes them."""
        returned = np.asarray(self.loss(points))
        if returned.dtype != np.float64 and returned.dtype.kind not in "iu":
            raise LossError(
                f"`loss` of {_OWNER} must return float64 or integer numbers; got dtype"
                f" {returned.dtype}. Narrower floats are less accurate than `loss_error` can"
                " promise."
            )
        if returned.shape != (len(points),):
            raise LossError(
                f"`loss` of {_OWNER} must return one number a row, shape ({len(points)},); got"
                f" shape {returned.shape}."
            )
        losses = np.asarray(returned, dtype=np.float64)
        if losses.size:
            least, most = float(losses.min()), float(losses.max())
            if not (math.isfinite(least) and math.isfinite(most)):
                raise LossError(NOT_FINITE)
            tolerance = self._tolerance(least, most)
            if least < self.minimum - tolerance or (
                self.bound is not None and most > self.bound + tolerance
            ):
                raise LossError(OUT_OF_RANGE)
        return losses

    def _tolerance(self, least: float, most: float) -> float:
        """Return what rounding alone may do to losses between ``least`` and ``most``."""
        if self.loss_error is not None:
            return float(self.loss_error)
        return float(RELATIVE_LOSS_ERROR) * max(abs(self.minimum), abs(least), abs(most))

    def check_loss(self) -> None:
        """Evaluate the loss on the public probe points.

        Raise before any randomness is used if it breaks its contract.
        """
        self.evaluate(probe_indices(self.domain))

    def check_repeatable(self) -> None:
        """Raise unless the loss gives bit-equal values on the probe points in any batch."""
        probes = probe_indices(self.domain)
        whole = self.evaluate(probes)
        reordered = self.evaluate(np.ascontiguousarray(probes[::-1]))[::-1]
        single = np.concatenate([self.evaluate(probes[j : j + 1]) for j in range(len(probes))])
        if not (np.array_equal(whole, reordered) and np.array_equal(whole, single)):
            raise LossError(NOT_REPEATABLE)


def make_problem(
    *,
    loss: Loss,
    sensitivity: float | Fraction | None,
    domain: Domain,
    adjacency: str = "replace",
    lipschitz: Any = None,
    minimum: float | None = None,
    bound: float | None = None,
    gap: float | None = None,
    loss_error: float | None = None,
    growth: Growth | None = None,
) -> Problem:
    """Validate the parts of a problem.

    What the caller leaves out is taken from what the loss object knows.
    """
    if not callable(loss):
        raise ParameterTypeError(f"`loss` of {_OWNER} must be callable; got {type(loss).__name__}.")
    if not hasattr(domain, "draw_uniform"):
        raise ParameterTypeError(
            f"`domain` of {_OWNER} must be a Box, L1Ball, L2Ball, Simplex or Candidates; got"
            f" {type(domain).__name__}."
        )
    validate_choice(adjacency, name="adjacency", owner=_OWNER, choices=ADJACENCIES)
    assumptions: list[str] = []
    slopes = _lipschitz(loss, domain, lipschitz, assumptions)
    least = _given_or_known("minimum", minimum, loss, domain, assumptions, default=Fraction(0))
    assert least is not None
    least_gap = _given_or_known("gap", gap, loss, domain, assumptions)
    most = _given_or_known("bound", bound, loss, domain, assumptions)
    if most is None and slopes is not None:
        reach = sum(
            (Fraction(g) * Fraction(w) for g, w in zip(slopes, _widths(domain), strict=True)),
            Fraction(0),
        )
        most = (least + (least_gap or 0) + reach) * (1 + Fraction(1, 1 << 40))
        assumptions.append(
            "the loss is at most `minimum` (plus `gap`) plus what `lipschitz` allows across the"
            " domain"
        )
    if most is not None and most < least:
        raise ParameterError(
            f"`bound` of {_OWNER} must be at least `minimum`; got {float(most)} and {float(least)}."
        )
    error = _loss_error(loss, domain, loss_error, least, most, assumptions)
    if (
        getattr(loss, "convex", False)
        and hasattr(loss, "gradient")
        and getattr(loss, "gradient_error", None) is None
    ):
        assumptions.append(
            "the loss is convex, and each entry of its gradient is within 2^-30 of the largest of"
            " the true one"
        )
    return Problem(
        loss=loss,
        domain=domain,
        sensitivity=_sensitivity(loss, sensitivity, adjacency, assumptions),
        adjacency=adjacency,
        minimum=float(least),
        bound=None if most is None else float_up(most),
        gap=None if least_gap is None else float_up(least_gap),
        loss_error=error,
        lipschitz=slopes,
        growth=_growth(loss, domain, growth, assumptions),
        integer_form=_known(loss, "integer_form", domain),
        affine=_known(loss, "affine", domain),
        assumptions=tuple(assumptions),
    )


def _known(loss: Loss, name: str, domain: Domain) -> Any:
    """Return what the loss object knows under ``name``: an attribute, or a method of the domain."""
    fact = getattr(loss, name, None)
    return fact(domain) if callable(fact) else fact


def _given_or_known(
    name: str,
    given: object,
    loss: Loss,
    domain: Domain,
    assumptions: list[str],
    default: Fraction | None = None,
) -> Fraction | None:
    if given is None:
        known = _known(loss, name, domain)
        if known is None and default is not None:
            assumptions.append(f"the loss is at least its declared minimum, {float(default)}")
        return default if known is None else Fraction(known)
    validate = validate_nonnegative if name == "gap" else validate_number
    number = validate(given, name=name, owner=_OWNER)
    assumptions.append(f"declared by the caller: `{name}` = {float(number)!r}")
    return number


def _sensitivity(loss: Loss, given: object, adjacency: str, assumptions: list[str]) -> Fraction:
    known = getattr(loss, "sensitivity", None)
    own = getattr(loss, "adjacency", "replace")
    if known is not None and adjacency != own:
        reason = (
            "whose row count is public" if own == "replace" else "whose sensitivity refers to it"
        )
        raise ParameterError(
            f"`adjacency` of {_OWNER} must be {own!r} for {type(loss).__name__}, {reason}; got"
            f" {adjacency!r}."
        )
    if given is None:
        if known is None:
            raise ParameterError(
                f"`sensitivity` of {_OWNER} must be given for a custom loss; got None."
            )
        return Fraction(known)
    number = validate_scale(given, name="sensitivity", owner=_OWNER)
    if isinstance(given, float):
        number = Fraction(
            math.nextafter(given, math.inf)
        )  # the quotient the caller meant may have been rounded down
    if known is None:
        assumptions.append(
            "the loss moves by at most the sensitivity between adjacent data sets, at every point"
        )
        return number
    if number < known:
        raise ParameterError(
            f"`sensitivity` of {_OWNER} must be at least that of {type(loss).__name__},"
            f" {float(known)!r}; got {given!r}."
        )
    return number


def _widths(domain: Domain) -> NDArray[np.float64]:
    widths = getattr(domain, "widths", None)
    if widths is None:
        raise ParameterError(
            f"`lipschitz` of {_OWNER} must be left out on a list of candidates; declare `bound`"
            " instead."
        )
    return np.asarray(widths, dtype=np.float64)


def _lipschitz(
    loss: Loss, domain: Domain, given: Any, assumptions: list[str]
) -> NDArray[np.float64] | None:
    known = _known(loss, "lipschitz", domain) if given is None else given
    if known is None:
        return None
    slopes = validate_vector(known, name="lipschitz", owner=_OWNER, length=len(_widths(domain)))
    if (slopes < 0).any():
        raise ParameterError(f"`lipschitz` of {_OWNER} must not be negative; got {known!r}.")
    if given is not None:
        assumptions.append(
            "declared by the caller: the loss has the Lipschitz constants `lipschitz`, one a"
            " coordinate"
        )
    return slopes


def _growth(
    loss: Loss, domain: Domain, given: Growth | None, assumptions: list[str]
) -> Growth | None:
    growth = given if given is not None else getattr(loss, "growth", None)
    if growth is None:
        return None
    if not isinstance(growth, Growth):
        raise ParameterTypeError(
            f"`growth` of {_OWNER} must be an expmech.Growth; got {type(growth).__name__}."
        )
    d = domain.dimension
    validate_vector(growth.center, name="growth.center", owner=_OWNER, length=d, confidential=True)
    rates = validate_vector(growth.rates, name="growth.rates", owner=_OWNER, length=d)
    if (rates <= 0).any():
        raise ParameterError(f"`growth.rates` of {_OWNER} must be positive; got {growth.rates!r}.")
    validate_number(growth.slack, name="growth.slack", owner=_OWNER)
    if given is not None:
        assumptions.append("declared by the caller: the loss grows at least as `growth` says")
    return growth


def _curvature(loss: Loss, domain: Domain) -> Curvature | None:
    curvature = _known(loss, "curvature", domain)
    if curvature is None:
        return None
    if not isinstance(curvature, Curvature):
        raise ParameterTypeError(
            f"`curvature` of a loss must be an expmech.Curvature; got {type(curvature).__name__}."
        )
    d = domain.dimension
    numbers = (
        curvature.center,
        curvature.gradient,
        curvature.hessian,
        curvature.value,
        curvature.skew,
        curvature.gradient_error,
    )
    if [np.shape(one) for one in numbers] != [(d,), (d,), (d, d), (), (), ()] or not all(
        np.isfinite(one).all() for one in numbers
    ):
        raise ParameterError(
            f"`curvature` of a loss must hold finite numbers, with vectors of {d} entries and a {d}"
            f" x {d} matrix."
        )
    if (
        curvature.skew < 0
        or curvature.gradient_error < 0
        or not np.array_equal(curvature.hessian, curvature.hessian.T)
    ):
        raise ParameterError(
            "`curvature` of a loss must have a symmetric `hessian`, and `skew` and `gradient_error`"
            " at least 0."
        )
    return curvature


def _loss_error(
    loss: Loss,
    domain: Domain,
    given: object,
    least: Fraction,
    most: Fraction | None,
    assumptions: list[str],
) -> Fraction | None:
    if given is not None:
        assumptions.append(
            "declared by the caller: the computed loss is within `loss_error` of the true one"
        )
        number = validate_nonnegative(given, name="loss_error", owner=_OWNER)
        if number == 0:
            raise ParameterError(
                f"`loss_error` of {_OWNER} must be above 0: no float64 computation is exact; got"
                f" {given!r}."
            )
        return number
    known = _known(loss, "loss_error", domain)
    if known is not None:
        return Fraction(known)
    assumptions.append(
        "the computed loss is within 2^-44 of its public bound (or of where it saturates) of the"
        " true one"
    )
    return None if most is None else RELATIVE_LOSS_ERROR * max(abs(least), abs(most))
