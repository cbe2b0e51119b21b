"""The validated statement of a problem.

Loss, sensitivity, domain, and what is known about the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.domains import Domain, Indices
from expmech.domains.base import probe_indices
from expmech.errors import (
    LossError,
    ParameterTypeError,
)
from expmech.losses.base import (
    AffineForm,
    Curvature,
    Declared,
    Floats,
    Growth,
    IntegerForm,
    Loss,
    facts_of,
    validate_declared,
)
from expmech.rounding import float_up
from expmech.target.calibration import RELATIVE_LOSS_ERROR
from expmech.target.checks import OWNER, Checks, validate_curvature
from expmech.target.measure import REPEATABLE, BaseMeasure, is_repeatable, validate_base

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
    terms: Callable[[NDArray[np.int64], Floats], Any] | None
    terms_lower_bound: Callable[[NDArray[np.int64], Floats, Floats], Any] | None
    find_curvature: Callable[[], Curvature] | None
    evaluation_seconds: float | None
    proved: bool
    assumptions: tuple[str, ...]
    base: BaseMeasure | None = None
    convex: bool = False

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

    def evaluate(self, indices: Indices) -> NDArray[np.float64]:
        """Return the loss at lattice points, checked for type, shape and declared range."""
        return self.evaluate_points(self.domain.points(indices))

    def evaluate_points(self, points: NDArray[Any]) -> NDArray[np.float64]:
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
                f"`loss` of {OWNER} must return one number a row, shape ({len(points)},); got"
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
        loss=loss,
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
