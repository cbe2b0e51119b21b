"""Rejection from an envelope."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.cost import BLOCK, Forecast, widened
from expmech.domains import Grid, Indices
from expmech.envelopes import BoundEnvelope, Envelope, ProductLaplace, Uniform
from expmech.errors import EnvelopeViolatedError, ParameterTypeError, validate_integer
from expmech.samplers.base import Check, Claimed, Sampler, Terms
from expmech.samplers.chain import MemorylessChain
from expmech.samplers.kernel_checks import verify_envelope
from expmech.target import Energies, Target

VIOLATION = (
    "the loss is nowhere below its declared minimum or growth; otherwise an error with a fixed text"
    " is raised"
)


def propose_evenly(
    target: Target, envelope: BoundEnvelope, coins: Coins, size: int
) -> tuple[Indices, NDArray[np.bool_]]:
    """Propose ``size`` points; return them and which are accepted, with the same work for each.

    A point outside the domain is refused after an evaluation at a fixed point and a coin of its
    own: how many there are does not show in the number of evaluations, nor in what else is done.
    """
    indices, drawn_with = envelope.propose(coins, size)
    inside = target.contains(indices)
    energies = target.energy(np.where(inside[:, None], indices, target.anchor))
    deficit = (energies + (envelope.offset - drawn_with)) * inside
    return indices, inside & _accept(deficit, target.unit, coins)


def propose(
    target: Target, envelope: BoundEnvelope, coins: Coins, size: int
) -> tuple[Indices, NDArray[np.bool_]]:
    """Propose ``size`` points; return them and which are accepted.

    Points outside the domain are refused.
    """
    indices, drawn_with = envelope.propose(coins, size)
    inside = target.contains(indices)
    if inside.all():
        deficit = target.energy(indices) + (envelope.offset - drawn_with)
        return indices, _accept(deficit, target.unit, coins)
    accepted = np.zeros(size, dtype=np.bool_)
    if inside.any():
        drawn_with = np.broadcast_to(drawn_with, (size,))
        deficit = target.energy(indices[inside]) + (envelope.offset - drawn_with[inside])
        accepted[inside] = _accept(deficit, target.unit, coins)
    return indices, accepted


def _accept(deficit: Energies, unit: Fraction, coins: Coins) -> NDArray[np.bool_]:
    """Accept with probability ``exp(-(E + m - R))``.

    A certified envelope keeps that exponent from being positive.
    """
    if deficit.min() < 0:
        raise EnvelopeViolatedError
    return coins.bernoulli_exp(deficit, rate=unit)


@dataclass(frozen=True)
class RejectionChain(MemorylessChain):
    """Propose until accepted.

    Where a draw takes ``likely`` proposals or so, lots begin with an eighth of them and grow by a
    quarter, not twofold: fewer are made in vain.
    """

    target: Target
    envelope: BoundEnvelope
    batch: int | None
    likely: int | None = None

    def first_lot(self, size: int) -> int:
        """Return an eighth of what the draws are likely to take, where that is known."""
        if self.batch or self.likely is None:
            return super().first_lot(size)
        return min(max(1, size * self.likely // 8), BLOCK)

    def next_lot(self, lot: int) -> int:
        """Return a quarter more, where lots began well."""
        if self.batch or self.likely is None:
            return super().next_lot(lot)
        return min(lot + -(-lot // 4), BLOCK)

    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Propose ``size`` points; each accepted one is a draw."""
        return propose(self.target, self.envelope, coins, size)


class Rejection(Sampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by rejection from an envelope.

    Parameters
    ----------
    envelope
        :class:`~expmech.Uniform`, :class:`~expmech.ProductLaplace`, :class:`~expmech.Affine`,
        :class:`~expmech.Convex`, :class:`~expmech.Cross` or :class:`~expmech.Tangent`; None takes
        the Laplace envelope where the loss declares its growth and the domain is a grid, else the
        uniform one.
    batch
        Proposals evaluated together; None starts with as many as draws are wanted and doubles, so
        that a single draw wastes at most half its evaluations. The law does not depend on it.

    Notes
    -----
    Precondition: ``R <= E + m`` on the domain, checked at every proposed point. Law: f, and the
    number of proposals is geometric and independent of the value. Expected proposals: ``exp(m) Z_r
    / Z_f``. Theory page: docs/theory/rejection.md.
    """

    assumptions = (VIOLATION,)
    serves_base = True

    bounded_range = True

    def __init__(self, envelope: Envelope | None = None, *, batch: int | None = None) -> None:
        if envelope is not None and not isinstance(envelope, Envelope):
            raise ParameterTypeError(
                "`envelope` of Rejection must be an envelope such as Uniform() or"
                f" ProductLaplace(); got {envelope!r}."
            )
        self.envelope = envelope
        self.batch = None
        if batch is not None:
            self.batch = validate_integer(batch, name="batch", owner="Rejection", low=1, high=BLOCK)

    @property
    def label(self) -> str:
        """The name, and that of the envelope."""
        return self.name() if self.envelope is None else f"{self.name()}, {self.envelope.name}"

    @property
    def automatic(self) -> bool:  # type: ignore[override]
        """Whether `auto` may take it with this envelope."""
        return self.envelope is not None and self.envelope.automatic

    def terms(self, target: Target) -> Terms:
        """Return what is public about a draw: the envelope's name."""
        envelope = self._envelope(target)
        envelope.validate(target)
        parameters = self.describe() | {"envelope": envelope.name}
        return Terms(timing=self.timing, parameters=parameters, assumptions=self.assumptions)

    def prepare(self, target: Target) -> RejectionChain:
        """Bind the envelope to the target."""
        # a base measure adds to energies: what lies below those of the loss lies below the sum
        envelope = self._envelope(target)
        likely = envelope.likely_proposals(target)
        return RejectionChain(target, envelope.bind(target.loss_only), self.batch, likely)

    def forecast(self, target: Target) -> Forecast:
        """Return the envelope's own forecast, and what a base measure may make of it."""
        return widened(self._envelope(target).forecast(target.loss_only), target.base_spread)

    def verify(self, claimed: Claimed) -> list[Check]:
        """Recompute timing and delta, and look for the envelope."""
        named = verify_envelope(str(claimed.parameters["envelope"]))
        return [*super().verify(claimed), named]

    def _envelope(self, target: Target) -> Envelope:
        return default_envelope(target) if self.envelope is None else self.envelope


def default_envelope(target: Target) -> Envelope:
    """Return the Laplace envelope where the kind of loss and domain allow it.

    Else the uniform one; a public choice.
    """
    grows = isinstance(target.domain, Grid) and target.problem.growth is not None
    return ProductLaplace() if grows else Uniform()
