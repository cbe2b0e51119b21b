"""What an envelope offers to a sampler."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Protocol, TypeVar, runtime_checkable

import flint

from expmech.certificates.forecast import Forecast, forecast_proposals
from expmech.core.coins import Coins
from expmech.core.errors import UnsupportedError
from expmech.domains import Grid, Indices
from expmech.exponential.target import Energies, Target


class BoundEnvelope(Protocol):
    """A law fitted to one target that a sampler can reject from.

    A draw is a point and an energy R with ``R <= E(y) + offset`` whenever y is in the domain, such
    that accepting it with probability ``exp(-(E(y) + offset - R))`` leaves exactly f.
    """

    @property
    def offset(self) -> int:
        """``m``, in energy units; it may be confidential."""

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw points, which may lie outside the domain, each with the energy R it was drawn with.

        Parameters
        ----------
        coins, size
            As for :meth:`Domain.draw_uniform`.

        Returns
        -------
        indices : ndarray of int
            One point per row.
        energies : ndarray of int
            R of each, or one number for all.
        """


class MeasuredEnvelope(BoundEnvelope, Protocol):
    """An envelope whose mass is known, so that its proposals can be compared with another's."""

    def log_mass(self) -> float:
        """Return the log of the sum of exp(-R) over where it lives."""


@runtime_checkable
class ReentryLaw(MeasuredEnvelope, Protocol):
    """An envelope whose energy is a function of the point, ``r(y) ~ exp(-R(y))`` with a known sum.

    A chain with an artificial atom leaves the atom by it.
    """

    @property
    def rates(self) -> tuple[Fraction, ...] | None:
        """Slopes of R per lattice step in nats, where R is a product Laplace energy; public."""

    def energy(self, indices: Indices) -> Energies:
        """Return R of each row."""

    def mass(self, precision: int) -> flint.arb:
        """Enclose ``Z_r``, the sum of exp(-R) over where r lives."""


class Envelope(ABC):
    """A recipe for an envelope: it says everything about itself.

    Attributes
    ----------
    name : str
        What certificates and plans call it.
    automatic : bool
        Whether `auto` may take it.
    is_law : bool
        Whether what it binds to is a :class:`ReentryLaw`: an atom can be left by it.
    """

    name: str
    automatic: bool = False
    is_law: bool = False

    @abstractmethod
    def bind(self, target: Target) -> BoundEnvelope:
        """Fit the envelope to ``target``; raise UnsupportedError, with the reason, where it fails.

        Whether it applies is decided by :meth:`validate`; what is fitted may be confidential.
        """

    def likely_proposals(self, target: Target) -> int | None:
        """Return about how many proposals a draw takes, by public quantities; None: unknown.

        It decides only the sizes of lots, and so how many proposals are not used.
        """
        return None

    def validate(self, target: Target) -> None:  # noqa: B027
        """Raise UnsupportedError, on public grounds, where it does not apply; say why."""

    def forecast(self, target: Target) -> Forecast:
        """Return what a draw will cost, from public quantities; here only that it is unknown."""
        self.validate(target)
        return forecast_proposals(1.0, None, math.inf)


Fact = TypeVar("Fact")


def need_grid(target: Target, envelope: str) -> Grid:
    """Return the grid that a target lives on; raise where an envelope has none to be drawn on."""
    if isinstance(target.domain, Grid):
        return target.domain
    raise UnsupportedError(
        f"{envelope} needs a Box, L1Ball or L2Ball; got {type(target.domain).__name__}. Use the"
        " Uniform envelope."
    )


def need_fact(fact: Fact | None, refusal: str) -> Fact:
    """Return a declared fact; raise with the envelope's own refusal where there is none."""
    if fact is None:
        raise UnsupportedError(refusal)
    return fact
