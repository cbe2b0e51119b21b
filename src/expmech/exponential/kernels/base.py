"""The base class of kernels, symmetric proposals on a lattice, and the check they pass.

What the check can and cannot detect: docs/theory/kernels.md.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import ExpmechError, ParameterError, UnsupportedError
from expmech.domains import Domain, Grid, Indices, Region
from expmech.domains.base import Floats, probe_indices

SYMMETRIC = (
    "the kernel draws its moves exactly, by a symmetric law, as its author declares (checked on a"
    " small lattice)"
)


class Kernel(ABC):
    """Base class of kernels: a law of moves with q(y, y') = q(y', y).

    A move may leave the domain; the chain then stays where it is. A subclass defines ``name``,
    :meth:`propose` and :meth:`log_mass`. It must be able to move on a small lattice of the domain's
    kind, on which it is checked before it is used.

    Attributes
    ----------
    name : str
        The name that certificates use.
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
    assumptions: tuple[str, ...] = (SYMMETRIC,)
    parts: tuple[Kernel, ...] = ()

    @abstractmethod
    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        """Draw one move per row, exactly, with randomness from ``coins`` only.

        Parameters
        ----------
        domain : Domain
            Where the chain lives; a move may leave it.
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
    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Floats:
        """Return ``log q(start, end)`` row by row, minus infinity where a move is impossible.

        Parameters
        ----------
        domain : Domain
            Where the chain lives.
        start, end : ndarray of int
            Ends of moves, one point per row.

        Returns
        -------
        ndarray of float
        """

    def validate(self, domain: Domain) -> None:  # noqa: B027
        """Raise UnsupportedError where the kernel cannot move on ``domain``; say why."""

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return a lower bound on the log of ``|Y| min q(y, y')`` over the domain, None if unknown.

        A proved minorisation of Metropolis follows from it.
        """
        return None

    def describe(self) -> dict[str, Any]:
        """Return the name and the public parameters that :meth:`rebuild` takes."""
        return {"kernel": self.name}

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        """Return the kernel that :meth:`describe` described."""
        return cls(**{name: value for name, value in description.items() if name != "kernel"})


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


_MOST_POINTS = 256
_STARTS = 4
_DRAWS = 1 << 14
_TOLERANCE = 1e-9
_DEVIATIONS = 7.0  # a correct kernel is refused with probability below 1e-8

_checked: set[tuple[type[Kernel], str]] = set()


def check_kernel(kernel: Kernel, domain: Domain) -> None:
    """Check that a kernel is symmetric and that its draws have the masses it states.

    The check runs on a small lattice of the domain's kind, with public seeds; it never looks at
    data. A kernel that passed is not checked again in this process.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    domain : Domain
        Where it is to move.

    Raises
    ------
    ParameterError
        Where the kernel fails.
    UnsupportedError
        From the kernel itself, where it cannot move on ``domain``.

    Examples
    --------
    >>> from expmech import Box
    >>> from expmech.exponential.kernels import Gaussian, check_kernel
    >>> check_kernel(Gaussian(scale=0.1), Box([0.0], [1.0]))
    """
    kernel.validate(domain)
    key = type(kernel), json.dumps([kernel.describe(), domain.describe()], sort_keys=True)
    if key in _checked:
        return
    for part in kernel.parts:
        check_kernel(part, domain)
    _check_pairs(kernel, domain, probe_indices(domain))
    small = small_lattice(domain)
    points = None if small is None else small.all_indices(_MOST_POINTS)
    if small is not None and points is not None:
        kernel.validate(small)
        _check_pairs(kernel, small, points)
        for start in points[:: max(1, len(points) // _STARTS)]:
            _check_draws(kernel, small, start[None, :], points)
    _checked.add(key)


def small_lattice(domain: Domain) -> Domain | None:
    """Return the domain, or one of its kind with fewer bits, that has at most 256 points."""
    if domain.is_listable(_MOST_POINTS):
        return domain
    description = domain.describe()
    for bits in (4, 3, 2, 1) if "bits" in description else ():
        try:
            small = type(domain).rebuild(description | {"bits": bits})
        except ExpmechError:  # too coarse for this kind of domain
            return None
        if small.is_listable(_MOST_POINTS):
            return small
    return None


def _check_pairs(kernel: Kernel, domain: Domain, points: Indices) -> None:
    """Compare the mass of every move with that of the move back, and add up the masses."""
    distinct = np.unique(points, axis=0)
    count = len(distinct)
    starts, ends = np.repeat(distinct, count, axis=0), np.tile(distinct, (count, 1))
    there = _masses(kernel, domain, starts, ends).reshape(count, count)
    if not np.allclose(there, there.T, rtol=_TOLERANCE, atol=1e-300):
        raise _refusal(kernel, "be symmetric; a move and the move back have different masses")
    if there.sum(axis=1).max() > 1.0 + _TOLERANCE:
        raise _refusal(kernel, "have masses that add up to at most 1; they add up to more")


def _masses(kernel: Kernel, domain: Domain, starts: Indices, ends: Indices) -> np.ndarray:
    logs = np.asarray(kernel.log_mass(domain, starts, ends), dtype=np.float64)
    if logs.shape != (len(starts),) or np.isnan(logs).any():
        raise _refusal(kernel, "return one log mass per row, no nan")
    return np.exp(logs)


def _check_draws(kernel: Kernel, domain: Domain, start: Indices, points: Indices) -> None:
    """Compare the frequencies of moves from one point with their masses."""
    starts = np.repeat(start, _DRAWS, axis=0)
    drawn = np.asarray(kernel.propose(domain, Coins(seeded_bits([17, 4])), starts))
    if drawn.shape != starts.shape or drawn.dtype != np.int64:
        raise _refusal(kernel, "propose one int64 row per row")
    masses = _masses(kernel, domain, np.repeat(start, len(points), axis=0), points)
    numbers = {tuple(point): j for j, point in enumerate(points.tolist())}
    counts = np.zeros(len(points) + 1)
    for row in map(tuple, drawn.tolist()):
        counts[numbers.get(row, len(points))] += 1
    chances = np.append(masses, max(0.0, 1.0 - masses.sum()))  # the last: outside, refused
    spread = np.sqrt(_DRAWS * chances * np.maximum(0.0, 1.0 - chances))
    if (np.abs(counts - _DRAWS * chances) > _DEVIATIONS * (spread + 1.0)).any():
        raise _refusal(kernel, "draw moves with the masses it states; the frequencies differ")


def _refusal(kernel: Kernel, rule: str) -> ParameterError:
    return ParameterError(
        f"`kernel` must {rule} (on a small lattice); got {kernel.name!r}. See"
        " docs/adding_a_kernel.md."
    )
