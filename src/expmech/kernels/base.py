"""What a kernel of moves offers to the chains: a symmetric proposal on a lattice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from expmech.coins import Coins
from expmech.domains import Domain, Grid, Indices, Region
from expmech.domains.base import Floats
from expmech.errors import UnsupportedError

SYMMETRIC = (
    "the kernel draws its moves exactly, by a symmetric law, as its author declares (checked on a"
    " small lattice)"
)


class Kernel(ABC):
    """A law of moves with q(y, y') = q(y', y): it says everything about itself.

    A move may leave the domain; the chain then stays where it is. A kernel of one's own is a
    subclass that gives ``name``, :meth:`propose` and :meth:`log_mass`; it must be able to move on a
    small lattice of the domain's kind, on which it is checked before it serves.

    Attributes
    ----------
    name : str
        What certificates call it.
    assumptions : tuple of str
        What the law of its moves rests on; none where it is proved (docs/theory/kernels.md).
    parts : tuple of Kernel
        The kernels it is made of, which are checked first.
    """

    name: str
    assumptions: tuple[str, ...] = (SYMMETRIC,)
    parts: tuple[Kernel, ...] = ()

    @abstractmethod
    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        """Draw one move a row, exactly, from randomness that comes by ``coins`` alone."""

    @abstractmethod
    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Floats:
        """Return ``log q(start, end)`` row by row, minus infinity where a move is impossible."""

    def validate(self, domain: Domain) -> None:  # noqa: B027
        """Raise UnsupportedError where it cannot move on ``domain``; say why."""

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return a lower bound on the log of ``|Y| min q(y, y')`` over the domain, None if unknown.

        What a proved minorisation of Metropolis follows from.
        """
        return None

    def describe(self) -> dict[str, Any]:
        """Return the public parameters that :meth:`rebuild` takes, and the name."""
        return {"kernel": self.name}

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        """Return the kernel that :meth:`describe` described."""
        return cls(**{name: value for name, value in description.items() if name != "kernel"})


def steps_across(domain: Domain, kernel: str) -> list[int]:
    """Return the lattice steps across the domain, axis by axis: what widths are measured in."""
    if isinstance(domain, Grid):
        return [domain.points_per_axis] * domain.dimension
    if not isinstance(domain, Region):
        raise UnsupportedError(
            f"The {kernel} kernel needs a domain of numbers; got {type(domain).__name__}. Use the"
            " uniform kernel."
        )
    ends = domain.points(np.array([[0], [1]]) * np.ones(domain.dimension, dtype=np.int64))
    return [max(1, round(x)) for x in (domain.widths / (ends[1] - ends[0])).tolist()]
