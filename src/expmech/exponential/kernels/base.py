"""The base classes of kernels: moves on a lattice, drawn exactly, with an exact ratio of masses.

What the check of a kernel can and cannot detect: docs/theory/kernels.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from expmech.core.arrays import Array, Floats
from expmech.core.coins import Coins
from expmech.core.errors import UnsupportedError
from expmech.domains import Domain, Grid, Indices, Region
from expmech.exponential.target import Target

SYMMETRIC = (
    "the kernel draws its moves exactly, by a symmetric law, as its author declares (checked on a"
    " small lattice)"
)
STATED_RATIO = (
    "the kernel draws its moves exactly, and the ratio of a move's mass to that of the move back is"
    " the one it states, as its author declares (checked on a small lattice)"
)

Ratio = tuple[Array, Fraction]
"""A log ratio as whole numbers (int64, or Python integers where those are too small) times a rate.

The denominator of the rate is a power of two.
"""


class Moves(ABC):
    """The moves of a kernel on one target: what a chain draws, and accepts by.

    A move may use only what is a function of the point it starts from, with the same numbers each
    time and in any batch; ``target.energy`` and ``target.gradient`` are such functions.
    """

    @abstractmethod
    def propose(self, coins: Coins, indices: Indices) -> Indices:
        """Draw one move per row, exactly, with randomness from ``coins`` only.

        A move may leave the domain; the chain then stays where it is, and counts it.

        Parameters
        ----------
        coins : Coins
            The source of randomness.
        indices : ndarray of int
            Where each move starts, one point per row.

        Returns
        -------
        ndarray of int
            Where each move ends, in the same shape.
        """

    @abstractmethod
    def log_mass(self, start: Indices, end: Indices) -> Floats:
        """Return ``log q(start, end)`` row by row, minus infinity where a move is impossible.

        Parameters
        ----------
        start, end : ndarray of int
            Ends of moves, one point per row.

        Returns
        -------
        ndarray of float
        """

    def log_ratio(self, start: Indices, end: Indices) -> Ratio | None:
        """Return ``log q(end, start) - log q(start, end)`` exactly; None: it is 0 everywhere.

        Parameters
        ----------
        start, end : ndarray of int
            Ends of moves, one point of the domain per row.

        Returns
        -------
        tuple of (ndarray of int, Fraction) or None
            Whole numbers, and the nats of one; its denominator is a power of two.
        """
        return None


class Kernel(ABC):
    """Base class of kernels: a law of moves q(y, y') with an exact ratio q(y', y) / q(y, y').

    A subclass defines ``name`` and :meth:`bind`. It must be able to move on a small lattice of the
    domain's kind, on which it is checked before it is used. Where a move and the move back have the
    same mass, :class:`SymmetricKernel` is simpler.

    Attributes
    ----------
    name : str
        The name that certificates use.
    symmetric : bool
        Whether a move and the move back have the same mass.
    assumptions : tuple of str
        What the law of its moves rests on; none where it is proved (docs/theory/kernels.md).
    parts : tuple of Kernel
        The kernels it is made of, which are checked first.

    Examples
    --------
    >>> from expmech.exponential.kernels import Laplace
    >>> Laplace(rate=2.0).describe()
    {'kernel': 'laplace', 'rate': 2.0}
    """

    name: str
    symmetric: bool = False
    assumptions: tuple[str, ...] = (STATED_RATIO,)
    parts: tuple[Kernel, ...] = ()

    @abstractmethod
    def bind(self, target: Target) -> Moves:
        """Return the moves on ``target``: the confidential half, once per release."""

    def validate(self, domain: Domain) -> None:  # noqa: B027
        """Raise UnsupportedError where the kernel cannot move on ``domain``; say why."""

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return a lower bound on the log of ``|Y| min q(y, y')`` over the domain, None if unknown.

        It holds for every data set, and gives Metropolis a proved minorisation.
        """
        return None

    def describe(self) -> dict[str, Any]:
        """Return the name and the public parameters that :meth:`rebuild` takes."""
        return {"kernel": self.name}

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        """Return the kernel that :meth:`describe` described."""
        return cls(**{name: value for name, value in description.items() if name != "kernel"})


class SymmetricKernel(Kernel):
    """Base class of kernels with q(y, y') = q(y', y) that look at the domain only.

    A subclass defines ``name``, :meth:`propose` and :meth:`log_mass`.

    Examples
    --------
    >>> from expmech.exponential.kernels import UniformMoves
    >>> UniformMoves().symmetric
    True
    """

    symmetric = True
    assumptions: tuple[str, ...] = (SYMMETRIC,)

    @abstractmethod
    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        """Draw one move per row, exactly, with randomness from ``coins`` only.

        Parameters
        ----------
        domain : Domain
            Where the chain lives; a move may leave it.
        coins, indices
            As for :meth:`Moves.propose`.

        Returns
        -------
        ndarray of int
            Where each move ends, in the same shape.
        """

    @abstractmethod
    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Floats:
        """Return ``log q(start, end)`` row by row, minus infinity where a move is impossible.

        Parameters
        ----------
        domain : Domain
            Where the chain lives.
        start, end
            As for :meth:`Moves.log_mass`.

        Returns
        -------
        ndarray of float
        """

    def bind(self, target: Target) -> Moves:
        return SymmetricMoves(self, target.domain)


@dataclass(frozen=True)
class SymmetricMoves(Moves):
    """The moves of a symmetric kernel: they look at nothing but the domain."""

    kernel: SymmetricKernel
    domain: Domain

    def propose(self, coins: Coins, indices: Indices) -> Indices:
        return self.kernel.propose(self.domain, coins, indices)

    def log_mass(self, start: Indices, end: Indices) -> Floats:
        return self.kernel.log_mass(self.domain, start, end)


def steps_across(domain: Domain, kernel: str) -> list[int]:
    """Return the number of lattice steps across the domain, axis by axis."""
    if isinstance(domain, Grid):
        return [domain.points_per_axis] * domain.dimension
    if not isinstance(domain, Region):
        raise UnsupportedError(
            f"The {kernel} kernel needs a domain of numbers; got {type(domain).__name__}. Use the"
            " uniform kernel."
        )
    ends = domain.points(np.array([[0], [1]]) * np.ones(domain.dimension, dtype=np.int64))
    return [max(1, round(x)) for x in (domain.widths / (ends[1] - ends[0])).tolist()]
