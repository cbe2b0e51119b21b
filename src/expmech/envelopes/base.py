"""What an envelope offers to a sampler."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import flint

from expmech.coins import Coins
from expmech.domains import Indices
from expmech.target import Energies, Target


class BoundEnvelope(Protocol):
    """A law fitted to one target that a sampler can reject from.

    A draw is a point and an energy R with ``R <= E(y) + offset`` whenever y is in the domain, such
    that accepting it with probability ``exp(-(E(y) + offset - R))`` leaves exactly f.
    """

    @property
    def offset(self) -> int:
        """``m``, in energy units; it may be confidential."""

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw points, which may lie outside the domain.

        Each with the energy R it was drawn with.
        """


class ReentryLaw(BoundEnvelope, Protocol):
    """An envelope whose energy is a function of the point, ``r(y) ~ exp(-R(y))`` with a known sum.

    What an atom re-enters by.
    """

    @property
    def rates(self) -> tuple[Fraction, ...] | None:
        """Slopes of R per lattice step in nats, where R is a product Laplace energy; public."""

    def energy(self, indices: Indices) -> Energies:
        """Return R of each row."""

    def mass(self, precision: int) -> flint.arb:
        """Enclose ``Z_r``, the sum of exp(-R) over where r lives."""

    def log_mass(self) -> float:
        """Return ``log Z_r``."""


class Envelope(Protocol):
    """A recipe for an envelope; ``name`` is what certificates call it."""

    name: str

    def bind(self, target: Target) -> BoundEnvelope:
        """Fit the envelope to ``target``.

        Raise UnsupportedError, with the reason, where it cannot be.
        """
