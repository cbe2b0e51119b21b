"""The check that every kernel passes before a sampler with it certifies anything.

What it can and cannot detect: docs/theory/kernels.md.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np

from expmech.core.arrays import Array, Floats
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import ExpmechError, ParameterError
from expmech.domains import Domain, Indices, Region
from expmech.domains.base import probe_indices
from expmech.exponential.kernels.base import Kernel, Moves
from expmech.exponential.kernels.mixture import MixtureMoves
from expmech.exponential.target import Target, make_problem, make_target
from expmech.losses.base import Growth

_MOST_POINTS = 256
_STARTS = 4
_DRAWS = 1 << 14
_TRIAL_EPSILON = Fraction(4)
_TOLERANCE = 1e-9
_DEVIATIONS = 7.0  # a correct kernel is refused with probability below 1e-8

_checked: set[tuple[type[Kernel], str]] = set()


def check_kernel(kernel: Kernel, domain: Domain) -> None:
    """Check that a kernel draws by the masses it states, and states their ratios.

    The check runs on a small lattice of the domain's kind with made-up energies and public seeds;
    it never looks at data. A kernel that passed is not checked again in this process.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    domain : Domain
        The domain that the kernel is to move on.

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
    _check_pairs(kernel, trial_target(domain), probe_indices(domain))
    small = small_lattice(domain)
    points = None if small is None else small.all_indices(_MOST_POINTS)
    if small is not None and points is not None:
        kernel.validate(small)
        target = trial_target(small)
        _check_pairs(kernel, target, points)
        _check_balance(kernel, target, points)
        for start in points[:: max(1, len(points) // _STARTS)]:
            _check_draws(kernel, target, start[None, :], points)
    _checked.add(key)


def trial_target(domain: Domain) -> Target:
    """Return a made-up target on ``domain``, which every data-dependent kernel can be tried on.

    Its energies rise by a few nats away from a point that is not the middle; they are public.
    """
    if not isinstance(domain, Region):

        def scores(points: Array) -> Floats:
            totals = points.reshape(len(points), -1).sum(axis=1)
            return np.asarray(totals % 5 / 4.0, dtype=np.float64)

        problem = make_problem(loss=scores, domain=domain, sensitivity=1, bound=1.0)
        return make_target(problem, _TRIAL_EPSILON)
    widths = np.maximum(domain.widths, 1e-300)
    center = domain.lower + 0.3 * domain.widths

    def loss(points: Floats) -> Floats:
        away = (points - center) / widths
        return np.asarray((away**2 + 0.5 * np.abs(away)).sum(axis=1))

    problem = make_problem(
        loss=loss,
        domain=domain,
        sensitivity=1,
        growth=Growth(center=center, rates=0.5 / widths),
        bound=2.0 * len(widths),
        lipschitz=(2.5 / widths).tolist(),
    )
    return make_target(problem, _TRIAL_EPSILON)


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


def _check_pairs(kernel: Kernel, target: Target, points: Indices) -> None:
    """Compare the masses of moves and of the moves back with the stated ratio; add up masses."""
    distinct = np.unique(points, axis=0)
    count = len(distinct)
    starts, ends = np.repeat(distinct, count, axis=0), np.tile(distinct, (count, 1))
    moves = kernel.bind(target)
    there = _logs(kernel, moves, starts, ends).reshape(count, count)
    if kernel.symmetric:
        if not np.allclose(np.exp(there), np.exp(there.T), rtol=_TOLERANCE, atol=1e-300):
            raise _refusal(kernel, "be symmetric; a move and the move back have different masses")
    elif not isinstance(moves, MixtureMoves):  # the parts of a mixture state ratios of their own
        _check_ratios(kernel, moves, starts, ends, there)
    if np.exp(there).sum(axis=1).max() > 1.0 + _TOLERANCE:
        raise _refusal(kernel, "have masses that add up to at most 1; they add up to more")


def _check_ratios(
    kernel: Kernel, moves: Moves, starts: Indices, ends: Indices, there: Floats
) -> None:
    stated = _ratios(kernel, moves, starts, ends).reshape(there.shape)
    possible = there > -np.inf
    if (possible != possible.T).any():
        raise _refusal(kernel, "be able to take back every move; some have no way back")
    true = np.where(possible, there.T, 0.0) - np.where(possible, there, 0.0)
    allowed = _TOLERANCE * (1.0 + np.where(possible, np.abs(there) + np.abs(there.T), 0.0))
    if (np.abs(np.where(possible, stated, 0.0) - true) > allowed).any():
        raise _refusal(kernel, "state the log ratio of its masses; another one was stated")


def _logs(kernel: Kernel, moves: Moves, starts: Indices, ends: Indices) -> Floats:
    logs = np.asarray(moves.log_mass(starts, ends), dtype=np.float64)
    if logs.shape != (len(starts),) or np.isnan(logs).any():
        raise _refusal(kernel, "return one log mass per row, no nan")
    return logs


def _ratios(kernel: Kernel, moves: Moves, starts: Indices, ends: Indices) -> Floats:
    """Return the stated log ratios in nats."""
    ratio = moves.log_ratio(starts, ends)
    if ratio is None:
        return np.zeros(len(starts))
    counts, rate = ratio
    whole = np.asarray(counts).dtype.kind in "iO" and np.shape(counts) == (len(starts),)
    denominator = Fraction(rate).denominator
    if not whole or denominator & (denominator - 1):
        raise _refusal(
            kernel, "state one whole number per row and a rate over a power of two as its log ratio"
        )
    return np.array([float(Fraction(rate) * int(count)) for count in counts], dtype=np.float64)


def transition_matrix(moves: Moves, target: Target, points: Indices) -> Floats:
    """Return the chances of going from point to point, without staying, by the stated masses."""
    if isinstance(moves, MixtureMoves):
        parts = [transition_matrix(part, target, points) for part in moves.parts]
        return np.asarray(sum(w * part for w, part in zip(moves.shares, parts, strict=True)))
    count = len(points)
    starts, ends = np.repeat(points, count, axis=0), np.tile(points, (count, 1))
    energies = target.energy(points) / target.units_per_nat
    with np.errstate(over="ignore"):
        logs = np.asarray(moves.log_mass(starts, ends)).reshape(count, count)
        ratio = moves.log_ratio(starts, ends)
    gain = energies[:, None] - energies[None, :]
    if ratio is not None:
        nats = [float(Fraction(ratio[1]) * int(one)) for one in ratio[0]]
        gain = gain + np.array(nats).reshape(count, count)
    masses = np.exp(logs + np.minimum(0.0, gain))
    np.fill_diagonal(masses, 0.0)
    return np.asarray(masses)


def _check_balance(kernel: Kernel, target: Target, points: Indices) -> None:
    """Check that the accepted moves leave the law of the made-up target as it is."""
    law = np.exp(-target.energy(points) / target.units_per_nat)
    flow = law[:, None] * transition_matrix(kernel.bind(target), target, points)
    if not np.allclose(flow, flow.T, rtol=1e-7, atol=1e-300):
        raise _refusal(kernel, "be in detailed balance after acceptance; it is not")


def _check_draws(kernel: Kernel, target: Target, start: Indices, points: Indices) -> None:
    """Compare the frequencies of moves from one point with their masses."""
    starts = np.repeat(start, _DRAWS, axis=0)
    moves = kernel.bind(target)
    drawn = np.asarray(moves.propose(Coins(seeded_bits([17, 4])), starts))
    if drawn.shape != starts.shape or drawn.dtype != np.int64:
        raise _refusal(kernel, "propose one int64 row per row")
    masses = np.exp(_logs(kernel, moves, np.repeat(start, len(points), axis=0), points))
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
