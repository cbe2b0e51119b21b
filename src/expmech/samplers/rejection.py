"""Rejection from an envelope."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.domains import Indices
from expmech.envelopes import BoundEnvelope, Envelope, ProductLaplace, Uniform
from expmech.errors import EnvelopeViolatedError, ParameterTypeError, validate_integer
from expmech.samplers.base import BLOCK, DATA_DEPENDENT
from expmech.target import Energies, Target

VIOLATION = (
    "the loss is nowhere below its declared minimum or growth; otherwise an error with a fixed text"
    " is raised"
)


def propose(
    target: Target, envelope: BoundEnvelope, coins: Coins, size: int, *, even: bool = False
) -> tuple[Indices, NDArray[np.bool_]]:
    """Propose ``size`` points; return them and which are accepted.

    Points outside the domain are refused.

    ``even`` evaluates the loss for each of them, at a fixed point in place of one outside a box, so
    that how many fall outside does not show in the number of evaluations.
    """
    indices, drawn_with = envelope.propose(coins, size)
    inside = target.domain.contains(indices)
    if inside.all():
        return indices, _accept(target.energy(indices), drawn_with, envelope.offset, coins)
    accepted = np.zeros(size, dtype=np.bool_)
    if even:
        energies = target.energy(np.where(inside[:, None], indices, 0))[inside]
    else:
        energies = target.energy(indices[inside]) if inside.any() else np.zeros(0, dtype=np.int64)
    if energies.size:
        accepted[inside] = _accept(energies, drawn_with[inside], envelope.offset, coins)
    return indices, accepted


def _accept(
    energies: Energies, drawn_with: Energies, offset: int, coins: Coins
) -> NDArray[np.bool_]:
    """Accept with probability ``exp(-(E + m - R))``.

    Whose exponent a certified envelope keeps from being positive.
    """
    deficit = energies + (offset - drawn_with)
    if deficit.min() < 0:
        raise EnvelopeViolatedError
    return coins.bernoulli_exp(deficit)


@dataclass(frozen=True)
class RejectionState:
    """The accepted point of each copy, once it has one."""

    indices: Indices
    proposals: NDArray[np.int64]
    done: NDArray[np.bool_]


@dataclass(frozen=True)
class RejectionChain:
    """Propose until accepted."""

    target: Target
    envelope: BoundEnvelope
    envelope_name: str
    batch: int | None
    timing: str = DATA_DEPENDENT
    delta: float = 0.0
    assumptions: tuple[str, ...] = (VIOLATION,)

    @property
    def parameters(self) -> dict[str, Any]:
        """The envelope's name."""
        return {"sampler": "Rejection", "envelope": self.envelope_name}

    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Propose ``size`` points; each accepted one is a draw."""
        return propose(self.target, self.envelope, coins, size)

    def start(self, coins: Coins, size: int) -> RejectionState:
        """Return copies that have proposed nothing."""
        return RejectionState(
            indices=np.zeros((size, self.target.domain.dimension), dtype=np.int64),
            proposals=np.zeros(size, dtype=np.int64),
            done=np.zeros(size, dtype=np.bool_),
        )

    def step(self, state: RejectionState, coins: Coins) -> RejectionState:
        """Make one proposal a copy."""
        proposed, accepted = self.propose(coins, len(state.proposals))
        return RejectionState(proposed, state.proposals + 1, accepted)

    def values(self, state: RejectionState) -> NDArray[Any]:
        """Return the accepted points."""
        return self.target.domain.values(state.indices)


class Rejection:
    """Draw exactly from f(y) ~ exp(-E(y)) by rejection from an envelope.

    Parameters
    ----------
    envelope
        :class:`~expmech.Uniform`, :class:`~expmech.ProductLaplace`, :class:`~expmech.Affine`,
        :class:`~expmech.Convex` or :class:`~expmech.Tangent`; None takes the Laplace envelope where
        the loss declares its growth and the domain is a grid, else the uniform one.
    batch
        Proposals evaluated together; None starts with as many as draws are wanted and doubles, so
        that a single draw wastes at most half its evaluations. The law does not depend on it.

    Notes
    -----
    Precondition: ``R <= E + m`` on the domain, checked at every proposed point. Law: f, and the
    number of proposals is geometric and independent of the value. Expected proposals: ``exp(m) Z_r
    / Z_f``. Theory page: docs/theory/rejection.md.
    """

    reserve = Fraction(0)

    def __init__(self, envelope: Envelope | None = None, *, batch: int | None = None) -> None:
        if envelope is not None and not hasattr(envelope, "bind"):
            raise ParameterTypeError(
                "`envelope` of Rejection must be an envelope such as Uniform() or"
                f" ProductLaplace(); got {envelope!r}."
            )
        self.envelope = envelope
        self.batch = (
            None
            if batch is None
            else validate_integer(batch, name="batch", owner="Rejection", low=1, high=BLOCK)
        )

    def prepare(self, target: Target) -> RejectionChain:
        """Bind the envelope to the target."""
        envelope = self.envelope if self.envelope is not None else default_envelope(target)
        return RejectionChain(target, envelope.bind(target), envelope.name, self.batch)


def default_envelope(target: Target) -> Envelope:
    """Return the Laplace envelope where the kind of loss and domain allow it.

    Else the uniform one; a public choice.
    """
    grid = hasattr(target.domain, "locate")
    return ProductLaplace() if grid and target.problem.growth is not None else Uniform()
