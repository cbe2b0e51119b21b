"""The validated statement of a problem.

Loss, sensitivity, domain, and what is known about the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import Array, Floats, Integers
from expmech.core.errors import (
    LossError,
    ParameterError,
    ParameterTypeError,
    validate_nonnegative,
    validate_number,
    validate_positive,
    validate_scale,
    validate_vector,
)
from expmech.core.rounding import float_up
from expmech.domains import Domain, Indices, Region
from expmech.domains.base import probe_indices
from expmech.exponential.target.calibration import RELATIVE_LOSS_ERROR
from expmech.exponential.target.measure import REPEATABLE, BaseMeasure, is_repeatable, validate_base
from expmech.losses.base import (
    AffineForm,
    Curvature,
    Declared,
    Facts,
    Growth,
    IntegerForm,
    Loss,
    facts_of,
    validate_declared,
    validate_function,
)

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
            rise = sum((Fraction(slope) * Fraction(width) for slope, width in sides), Fraction(0))
            most = (least + (gap or 0) + rise) * (1 + Fraction(1, 1 << 40))
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
        """Return the seconds of one evaluation, for forecasts; no guarantee rests on them."""
        stated = self._stated("evaluation_seconds")
        if stated is None:
            return None
        return float(validate_positive(stated, name="evaluation_seconds", owner=OWNER))

    def _stated(self, name: str) -> Any:
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
        """Return one constant per coordinate, none negative."""
        stated = self._stated("lipschitz")
        if stated is None:
            return None
        slopes = validate_vector(stated, name="lipschitz", owner=OWNER, length=len(self._widths()))
        if (slopes < 0).any():
            raise ParameterError(f"`lipschitz` of {OWNER} must not be negative; got {stated!r}.")
        if self.given.get("lipschitz") is not None:
            self.assumptions.append(
                "declared by the caller: the loss has the Lipschitz constants `lipschitz`, one per"
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
        """Return the declared growth, with one positive rate per coordinate."""
        growth = self._stated("growth")
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
        stated = self._stated(name)
        return None if stated is None else validate_function(stated, name=name, owner=OWNER)


def validate_curvature(curvature: object, dimension: int) -> Curvature:
    """Return the curvature; raise unless its numbers are finite and of the right shape."""
    if not isinstance(curvature, Curvature):
        raise ParameterTypeError(
            "`curvature` of a loss must be an expmech.losses.Curvature; got"
            f" {type(curvature).__name__}."
        )
    d, c = dimension, curvature
    numbers = (c.center, c.gradient, c.hessian, c.value, c.skew, c.gradient_error)
    shapes = [np.shape(number) for number in numbers]
    finite = all(np.isfinite(number).all() for number in numbers)
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


NOT_FINITE = (
    "`loss` of ExponentialMechanism must return finite numbers; it returned nan or infinity. A"
    " data-dependent infinity has no finite sensitivity; points that are impossible for every data"
    " set are excluded in public, by `base`."
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


OTHER_FACTS = (
    "`loss` of ExponentialMechanism must state the same public facts for all data; it stated others"
    " than before a row was read."
)
_OF_DATA = (
    *("growth", "integer_form", "affine", "gradient", "gradient_error", "curvature"),
    *("lower_bound", "terms", "terms_lower_bound"),
)
_PUBLIC = (
    *("sensitivity", "adjacency", "minimum", "bound", "gap", "loss_error", "lipschitz", "convex"),
    *("exact_lower_bound", "proved", "assumptions"),
)


def _plain(fact: Any) -> Any:
    return tuple(np.ravel(fact).tolist()) if isinstance(fact, (np.ndarray, list)) else fact


def _public_facts(known: Facts) -> list[Any]:
    """Return the public facts, and which of the facts that depend on the data are known."""
    return [
        *(_plain(getattr(known, name)) for name in _PUBLIC),
        *(getattr(known, name) is None for name in _OF_DATA),
    ]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A loss with its sensitivity on a public domain, and what is known of it, validated.

    Made by :func:`make_problem`. What each field means: :class:`~expmech.losses.Facts`.
    """

    loss: Loss
    domain: Domain
    sensitivity: Fraction
    adjacency: Adjacency
    minimum: float
    bound: float | None
    gap: float | None
    loss_error: Fraction | None
    lipschitz: Floats | None
    growth: Growth | None
    integer_form: IntegerForm | None
    affine: AffineForm | None
    gradient: Callable[[Floats], Any] | None
    gradient_error: float | None
    lower_bound: Callable[[Floats, Floats], Any] | None
    exact_lower_bound: bool
    terms: Callable[[Integers, Floats], Any] | None
    terms_lower_bound: Callable[[Integers, Floats, Floats], Any] | None
    find_curvature: Callable[[], Curvature] | None
    evaluation_seconds: float | None
    proved: bool
    assumptions: tuple[str, ...]
    known: Facts
    base: BaseMeasure | None = None
    convex: bool = False

    def with_loss(self, loss: Loss) -> Problem:
        """Return the problem of other data: their loss must state the same public facts.

        What depends on the data comes from the new loss; everything public stays as it is.
        """
        known = facts_of(loss, self.domain)
        # A fact that followed the data would be published with the certificate, and would change
        # the law in a way that no sensitivity covers.
        if _public_facts(known) != _public_facts(self.known):
            raise LossError(OTHER_FACTS)
        return replace(
            self,
            loss=known.on_lattice or loss,
            known=known,
            growth=Checks(self.domain, known, {}, type(loss).__name__).growth(),
            integer_form=known.integer_form,
            affine=known.affine,
            gradient=None if self.gradient is None else known.gradient,
            gradient_error=self.gradient_error
            if self.gradient is None or known.gradient_error is None
            else float(known.gradient_error),
            lower_bound=known.lower_bound,
            terms=known.terms,
            terms_lower_bound=known.terms_lower_bound,
            find_curvature=known.curvature,
        )

    @property
    def public_key(self) -> tuple[Any, ...]:
        """All that is public about the problem: equal keys share what was computed."""
        growth, form, affine = self.growth, self.integer_form, self.affine
        named = ("gradient", "gradient_error", "find_curvature", *_OF_DATA[-3:])
        return (
            *(type(self.loss), type(self.domain), repr(self.domain.describe())),
            *(_plain(getattr(self, name)) for name in _PUBLIC),
            *(getattr(self, name) is None for name in named),
            None if growth is None else _plain(growth.rates),
            growth.slack if growth is not None and growth.public_slack else None,
            None if form is None else (form.count, form.scales),
            None if affine is None else affine.norm,
            self.evaluation_seconds,
        )

    @property
    def largest(self) -> Fraction:
        """How large a loss must not saturate, either sign.

        From ``minimum`` and ``bound``; without a bound from ``minimum`` and what ``gap`` says of
        the least loss: larger ones may saturate and are then as good as impossible. With neither
        nothing is known, and any loss may saturate.
        """
        least = Fraction(self.minimum)
        if self.bound is not None:
            return max(abs(least), abs(Fraction(self.bound)))
        return Fraction(0) if self.gap is None else max(abs(least), abs(least + Fraction(self.gap)))

    @cached_property
    def curvature(self) -> Curvature | None:
        """What the loss knows of its curvature; sought when it is first asked for.

        It is not sought before, since that takes evaluations.
        """
        if self.find_curvature is None:
            return None
        return validate_curvature(self.find_curvature(), self.domain.dimension)

    def evaluate(self, indices: Indices) -> Floats:
        """Return the loss at lattice points, checked for type, shape and declared range."""
        return self.evaluate_points(self.domain.points(indices))

    def evaluate_points(self, points: Array) -> Floats:
        """Return the loss at points given as the loss takes them."""
        returned = np.asarray(self.loss(points))
        if returned.dtype != np.float64 and returned.dtype.kind not in "iu":
            raise LossError(
                f"`loss` of {OWNER} must return float64 or integer numbers; got dtype"
                f" {returned.dtype}. Narrower floats are less accurate than `loss_error` can"
                " promise."
            )
        if returned.shape != (len(points),):
            raise LossError(
                f"`loss` of {OWNER} must return one number per row, shape ({len(points)},); got"
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
                # Floors and the unit of energies rest on the range. The text is fixed: at which
                # point the loss left it depends on the data.
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
        self.evaluate(self.probes)

    @cached_property
    def probes(self) -> Indices:
        """Public points at which the loss is checked: those that the base does not exclude."""
        probes = probe_indices(self.domain)
        if self.base is None or not self.base.excludes:
            return probes
        kept = self.base.evaluate(self.domain.points(probes)) > -np.inf
        return np.ascontiguousarray(probes[kept])

    def check_repeatable(self) -> None:
        """Raise unless the loss gives bit-equal values on the probe points in any batch."""
        if not is_repeatable(self.evaluate, self.probes):
            raise LossError(NOT_REPEATABLE)


def make_problem(
    *,
    loss: Loss,
    domain: Domain,
    adjacency: str = "replace",
    base: object = None,
    **declared: Unpack[Declared],
) -> Problem:
    """Validate the parts of a problem; what is not declared is what the loss knows."""
    _validate_parts(loss, domain)
    validate_declared(declared, owner=OWNER)
    relation = validate_adjacency(adjacency, owner=OWNER)
    known = facts_of(loss, domain)
    measure = validate_base(base, domain)
    check = Checks(domain, known, declared, type(loss).__name__)
    slopes = check.lipschitz()
    least = check.minimum()
    gap = check.gap()
    most = check.bound(least, gap, slopes)
    error = check.loss_error(least, most)
    gradient, gradient_error = check.gradient()
    return Problem(
        loss=known.on_lattice or loss,
        domain=domain,
        sensitivity=check.sensitivity(relation),
        adjacency=relation,
        minimum=float(least),
        bound=None if most is None else float_up(most),
        gap=None if gap is None else float_up(gap),
        loss_error=error,
        lipschitz=slopes,
        growth=check.growth(),
        integer_form=known.integer_form,
        affine=known.affine,
        convex=check.convex(),
        gradient=gradient,
        gradient_error=gradient_error,
        lower_bound=check.function("lower_bound"),
        exact_lower_bound=known.exact_lower_bound,
        terms=check.function("terms"),
        terms_lower_bound=check.function("terms_lower_bound"),
        find_curvature=known.curvature,
        evaluation_seconds=check.evaluation_seconds(),
        proved=known.proved,
        assumptions=(*check.assumptions, *known.assumptions, *([REPEATABLE] if measure else [])),
        known=known,
        base=measure,
    )


def _validate_parts(loss: object, domain: object) -> None:
    """Raise unless there is a function and a domain."""
    if not callable(loss):
        raise ParameterTypeError(f"`loss` of {OWNER} must be callable; got {type(loss).__name__}.")
    if not isinstance(domain, Domain):
        raise ParameterTypeError(
            f"`domain` of {OWNER} must be a Box, L1Ball, L2Ball, Simplex, Candidates or Product, or"
            f" another expmech.Domain; got {type(domain).__name__}."
        )
