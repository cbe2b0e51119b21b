"""Rejection: propose from an envelope until an exact coin accepts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expmech.certificates.checks import Check
from expmech.certificates.forecast import BLOCK, Forecast, widened
from expmech.core.arrays import Flags
from expmech.core.coins import Coins
from expmech.core.errors import EnvelopeViolatedError, ParameterTypeError, validate_integer
from expmech.domains import Grid, Indices
from expmech.exponential.envelopes import BoundEnvelope, Envelope, ProductLaplace, Uniform
from expmech.exponential.samplers.base import Sampler, SamplerClaims, SamplerTerms, verify_envelope
from expmech.exponential.samplers.chain import MemorylessChain
from expmech.exponential.target import Energies, Target

VIOLATION = (
    "the loss is nowhere below its declared minimum or growth; otherwise an error with a fixed text"
    " is raised"
)


def propose_evenly(
    target: Target, envelope: BoundEnvelope, coins: Coins, size: int
) -> tuple[Indices, Flags]:
    """Propose ``size`` points; return them and which are accepted, with the same work for each.

    A point outside the domain is refused after an evaluation at a fixed point and a coin of its
    own, so the number of such points shows neither in the evaluations nor in the other work.
    """
    indices, drawn_with = envelope.propose(coins, size)
    inside = target.contains(indices)
    energies = target.energy(np.where(inside[:, None], indices, target.anchor))
    deficit = (energies + (envelope.offset - drawn_with)) * inside
    return indices, inside & _accept(deficit, target.unit, coins)


def propose(
    target: Target, envelope: BoundEnvelope, coins: Coins, size: int
) -> tuple[Indices, Flags]:
    """Propose ``size`` points; return them and which are accepted. Points outside are refused."""
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


def _accept(deficit: Energies, unit: Fraction, coins: Coins) -> Flags:
    """Accept with probability ``exp(-(E + m - R))``; a certified envelope keeps it below 1."""
    # An envelope that is above the energy somewhere would bend the law there without a sign: the
    # draw stops, with a text that is the same whatever the data are.
    if deficit.min() < 0:
        raise EnvelopeViolatedError
    return coins.bernoulli_exp(deficit, rate=unit)


@dataclass(frozen=True)
class RejectionChain(MemorylessChain):
    """Propose until accepted.

    If a draw takes about ``likely`` proposals, lots begin with an eighth of that and grow by a
    quarter instead of doubling: fewer proposals are wasted.
    """

    target: Target
    envelope: BoundEnvelope
    batch: int | None
    likely: int | None = None

    def first_lot(self, size: int) -> int:
        if self.batch or self.likely is None:
            return super().first_lot(size)
        return min(max(1, size * self.likely // 8), BLOCK)

    def next_lot(self, lot: int) -> int:
        if self.batch or self.likely is None:
            return super().next_lot(lot)
        return min(lot + -(-lot // 4), BLOCK)

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Flags]:
        return propose(self.target, self.envelope, coins, size)


class Rejection(Sampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by rejection from an envelope.

    Parameters
    ----------
    envelope : Envelope, optional
        :class:`~expmech.Uniform`, :class:`~expmech.ProductLaplace`, :class:`~expmech.Affine`,
        :class:`~expmech.Convex`, :class:`~expmech.Cross` or :class:`~expmech.Tangent`; None takes
        the Laplace envelope where the loss declares its growth and the domain is a grid, else the
        uniform one.
    batch : int, optional
        Proposals evaluated together; None starts with as many as draws are requested and doubles,
        so that a single draw wastes at most half its evaluations. The law does not depend on it.

    Notes
    -----
    Precondition: ``R <= E + m`` on the domain, checked at every proposed point. Law: f, and the
    number of proposals is geometric and independent of the value. Expected proposals: ``exp(m) Z_r
    / Z_f``. Theory page: docs/theory/rejection.md.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([[0.2], [0.3], [0.4]])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> draws = mech.sample(epsilon=1.0, sampler=em.Rejection(em.ProductLaplace()), seed=1)
    >>> draws.values.shape
    (1, 1)
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
        return self.name() if self.envelope is None else f"{self.name()}, {self.envelope.name}"

    @property
    def automatic(self) -> bool:  # type: ignore[override]
        """Whether `auto` may take it with this envelope."""
        return self.envelope is not None and self.envelope.automatic

    def terms(self, target: Target) -> SamplerTerms:
        envelope = self._envelope(target)
        envelope.validate(target)
        parameters = self.describe() | {"envelope": envelope.name}
        return SamplerTerms(timing=self.timing, parameters=parameters, assumptions=self.assumptions)

    def prepare(self, target: Target) -> RejectionChain:
        # a base measure adds to energies: what lies below those of the loss lies below the sum
        envelope = self._envelope(target)
        likely = envelope.likely_proposals(target)
        return RejectionChain(target, envelope.bind(target.loss_only), self.batch, likely)

    def forecast(self, target: Target) -> Forecast:
        """Return the envelope's forecast, widened by what a base measure may change."""
        return widened(self._envelope(target).forecast(target.loss_only), target.base_spread)

    def verify(self, claims: SamplerClaims) -> list[Check]:
        named = verify_envelope(str(claims.parameters["envelope"]))
        return [*super().verify(claims), named]

    def _envelope(self, target: Target) -> Envelope:
        if self.envelope is not None:
            return self.envelope
        # a public choice: by the kind of loss and domain
        grows = isinstance(target.domain, Grid) and target.problem.growth is not None
        return ProductLaplace() if grows else Uniform()
