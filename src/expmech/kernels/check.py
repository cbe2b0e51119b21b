"""The check that a kernel passes before it serves: symmetric, and drawn as its mass says.

On a small lattice of the domain's kind, with public seeds: nothing here looks at data. What it can
and cannot find: docs/theory/kernels.md.
"""

from __future__ import annotations

import json

import numpy as np

from expmech.bits import seeded_bits
from expmech.coins import Coins
from expmech.domains import Domain, Indices
from expmech.domains.base import probe_indices
from expmech.errors import ExpmechError, ParameterError
from expmech.kernels.base import Kernel

_MOST_POINTS = 256
_STARTS = 4
_DRAWS = 1 << 14
_TOLERANCE = 1e-9
_DEVIATIONS = 7.0  # a correct kernel is refused with probability below 1e-8

_checked: set[tuple[type[Kernel], str]] = set()


def check_kernel(kernel: Kernel, domain: Domain) -> None:
    """Raise ParameterError unless ``kernel`` is symmetric and its draws have the mass it states.

    Also UnsupportedError, from the kernel itself, where it cannot move on ``domain``.
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
    """Compare the mass of every move with that of the move back, and add up what leaves a point."""
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
        raise _refusal(kernel, "return one log mass a row, no nan")
    return np.exp(logs)


def _check_draws(kernel: Kernel, domain: Domain, start: Indices, points: Indices) -> None:
    """Compare the frequencies of moves from one point with their masses."""
    starts = np.repeat(start, _DRAWS, axis=0)
    drawn = np.asarray(kernel.propose(domain, Coins(seeded_bits([17, 4])), starts))
    if drawn.shape != starts.shape or drawn.dtype != np.int64:
        raise _refusal(kernel, "propose one int64 row a row")
    masses = _masses(kernel, domain, np.repeat(start, len(points), axis=0), points)
    numbers = {tuple(point): j for j, point in enumerate(points.tolist())}
    found = np.zeros(len(points) + 1)
    for row in map(tuple, drawn.tolist()):
        found[numbers.get(row, len(points))] += 1
    chances = np.append(masses, max(0.0, 1.0 - masses.sum()))  # the last: outside, refused
    spread = np.sqrt(_DRAWS * chances * np.maximum(0.0, 1.0 - chances))
    if (np.abs(found - _DRAWS * chances) > _DEVIATIONS * (spread + 1.0)).any():
        raise _refusal(kernel, "draw moves with the masses it states; the frequencies differ")


def _refusal(kernel: Kernel, rule: str) -> ParameterError:
    return ParameterError(
        f"`kernel` must {rule} (on a small lattice); got {kernel.name!r}. See"
        " docs/adding_a_kernel.md."
    )
