"""Kernels that are not symmetric: lattice MALA, and independence proposals from an envelope.

They buy nothing that is proved about time; they are here to study what people run. Proofs:
docs/theory/kernels.md, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from expmech.core.arrays import Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    validate_choice,
    validate_scale,
)
from expmech.domains import Domain, Grid, Indices
from expmech.exponential.envelopes import ENVELOPES, Envelope, ReentryLaw
from expmech.exponential.kernels.base import Kernel, Moves, Ratio, steps_across
from expmech.exponential.kernels.steps import Gaussian, Laplace, StepKernel
from expmech.exponential.target import Target

LAWS = ("gaussian", "laplace")
_MOST_CLIP = 4.0  # widths; beyond, no move comes back into the domain
_ROUND = 1e-9  # far above the rounding of a log mass, relative


class MALA(Kernel):
    """Steps about a point down the gradient: the Metropolis-adjusted Langevin algorithm.

    A move from y is ``c(y)`` plus a step, ``c(y) = round(y - (s^2 / 2) grad E(y))``, s the standard
    deviation of the step: an integer centre, so that the step's law has the same normaliser
    wherever it starts. A point outside the domain is refused.

    Parameters
    ----------
    scale : float
        Standard deviation of a step, in widths of the domain.
    law : {"gaussian", "laplace"}, default "gaussian"
        Law of the step on each axis.
    clip : float, optional
        Longest drift on an axis, in widths of the domain, at most 4; None takes ``2 scale``, at
        most 1. It is public.

    Notes
    -----
    The gradient is the loss's own where the loss has one, else differences of energies. Any
    function of y keeps the law exact.

    References
    ----------
    Roberts, Tweedie (1996), Exponential convergence of Langevin distributions.

    Examples
    --------
    >>> MALA(scale=0.1).describe()
    {'kernel': 'mala', 'scale': 0.1, 'law': 'gaussian', 'clip': 0.2}
    """

    name = "mala"
    assumptions = ()

    def __init__(self, scale: float, *, law: str = "gaussian", clip: float | None = None) -> None:
        self.scale = float(validate_scale(scale, name="scale", owner="MALA"))
        self.law = validate_choice(law, name="law", owner="MALA", choices=LAWS)
        drift = min(1.0, 2.0 * self.scale) if clip is None else clip
        self.clip = float(validate_scale(drift, name="clip", owner="MALA"))
        if self.clip > _MOST_CLIP:
            raise ParameterError(
                f"`clip` of MALA must be at most {_MOST_CLIP:g} widths of the domain; got {clip!r}."
            )
        # a Laplace law of rate r has the variance 2 / r^2
        self.step: StepKernel = (
            Gaussian(self.scale) if law == "gaussian" else Laplace(math.sqrt(2.0) / self.scale)
        )

    def validate(self, domain: Domain) -> None:
        if not isinstance(domain, Grid):
            raise UnsupportedError(
                f"The mala kernel needs a Box, L1Ball or L2Ball; got {type(domain).__name__}. Use"
                " another kernel."
            )
        self.step.validate(domain)

    def bind(self, target: Target) -> Moves:
        self.validate(target.domain)
        target.check_gradient()
        steps = np.array(steps_across(target.domain, self.name), dtype=np.float64)
        pull = (self.scale * steps) ** 2 / 2.0
        return DriftMoves(target, self.step, pull=pull, clip=np.floor(self.clip * steps))

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return the log of ``|Y|`` times the mass of the longest move on a box, rounded down."""
        if not isinstance(domain, Grid) or not domain.is_box:
            return None
        across = steps_across(domain, self.name)
        longest = [steps - 1 + math.floor(self.clip * steps) for steps in across]
        least = float(self.step.log_step(domain, np.array([longest], dtype=np.int64))[0])
        return domain.log_size + least - _ROUND * (1.0 + abs(least))

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"scale": self.scale, "law": self.law, "clip": self.clip}


@dataclass(frozen=True, eq=False)
class DriftMoves(Moves):
    """Steps about ``y - pull grad E(y)``, rounded, at most ``clip`` away, in lattice steps."""

    target: Target
    step: StepKernel
    pull: Floats
    clip: Floats

    def centers(self, indices: Indices) -> Indices:
        """Return the integer centre of the moves from each row: a function of the row alone."""
        drift = -self.pull * self.target.gradient(indices)
        drift = np.clip(np.nan_to_num(drift, nan=0.0), -self.clip, self.clip)
        return indices + np.rint(drift).astype(np.int64)

    def propose(self, coins: Coins, indices: Indices) -> Indices:
        steps = self.step.draw_steps(self.target.domain, coins, len(indices))
        return self.centers(indices) + steps

    def log_mass(self, start: Indices, end: Indices) -> Floats:
        return self.step.log_step(self.target.domain, end - self.centers(start))

    def log_ratio(self, start: Indices, end: Indices) -> Ratio:
        there, back = end - self.centers(start), start - self.centers(end)
        return self.step.log_mass_difference(self.target.domain, back, there)


class Independence(Kernel):
    """Moves to a point drawn from an envelope's law, wherever they start.

    Parameters
    ----------
    envelope : Envelope
        A law of points (``is_law``), such as ``Uniform()`` or ``ProductLaplace()``. An
        envelope whose energy is not a function of the point has no ratio that could be stated.

    Notes
    -----
    ``q(y, y') = exp(-R(y')) / Z_r``, so the log ratio is ``R(y') - R(y)``, in the unit of the
    target's energies: the normaliser is not needed. A chain with it does what rejection from the
    same envelope does, without its exactness.

    Examples
    --------
    >>> import expmech as em
    >>> Independence(em.ProductLaplace()).describe()
    {'kernel': 'independence', 'envelope': 'product Laplace'}
    """

    name = "independence"
    assumptions = ()

    def __init__(self, envelope: Envelope) -> None:
        if not isinstance(envelope, Envelope) or not envelope.is_law:
            raise ParameterTypeError(
                "`envelope` of Independence must be an envelope that is a law of points, such as"
                f" Uniform() or ProductLaplace(); got {envelope!r}."
            )
        self.envelope = envelope

    def bind(self, target: Target) -> Moves:
        # a base measure adds to energies, and is in the acceptance
        law = self.envelope.bind(target.loss_only)
        if not isinstance(law, ReentryLaw):
            raise ParameterTypeError(
                "`envelope` of Independence must bind to a law with rates, energy, mass and"
                f" log_mass; {type(law).__name__} lacks one of them."
            )
        return IndependentMoves(law, target.unit)

    def describe(self) -> dict[str, Any]:
        """Return the name of the envelope; where it lies may be confidential."""
        return super().describe() | {"envelope": self.envelope.name}

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        kind = ENVELOPES.find(str(description["envelope"]))
        if kind is None:
            raise ParameterError(
                f"`envelope` must be the name of a known one; got {description['envelope']!r}."
            )
        return cls(kind())


@dataclass(frozen=True)
class IndependentMoves(Moves):
    """Draws of a law of points with energies in the target's unit."""

    law: ReentryLaw
    unit: Fraction

    def propose(self, coins: Coins, indices: Indices) -> Indices:
        return self.law.propose(coins, len(indices))[0]

    def log_mass(self, start: Indices, end: Indices) -> Floats:
        try:
            log_total = float(self.law.mass(64).log())
        except UnsupportedError:  # of a large domain whose points were not counted
            log_total = self.law.log_mass()
        return np.asarray(-self.law.energy(end) * float(self.unit) - log_total)

    def log_ratio(self, start: Indices, end: Indices) -> Ratio:
        counts: Integers = self.law.energy(end) - self.law.energy(start)
        return counts, self.unit
