"""What the algorithms cost on average, computed: also where a run cannot end in our lifetime.

Derivation: docs/theory/printed.md. In short: every outer step of Algorithm 1 takes the factory's
mean number of flips in the current state plus, on average, 1/(1-beta) inner tries; the states of a
run of geometric length have the invariant law on average; runs are repeated until one does not end
at the atom.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from expmech.paper.kernels import grid_points
from expmech.theory import laplace_integral

_LARGEST_GAP = 0.644  # Huber's constant, as in coins/factory.py
_FIRST_HEIGHT = 4.6
_LEVELS, _FEW_LEVELS = 8, 5  # each changes the mean by about a quarter of what the last one did
_MANY_HEIGHTS = 2e3  # beyond it arrays are long, and fewer levels must do
_LARGEST_HEIGHT = 5e4  # beyond it Huber's bound stands in for the recursion


def expected_flips(heads: float, multiplier: float, gap: float) -> float:
    """Return the mean number of flips of Huber's linear Bernoulli factory.

    Parameters
    ----------
    heads
        Probability q of the coin that is flipped, ``C q <= 1 - gap``.
    multiplier, gap
        C, and the gap the factory is told.

    Notes
    -----
    At a level with multiplier C and success probability ``s = 1 - 1/C`` the mean number V(i) of
    flips from height i solves a linear recursion with V(0) = 0, so V(i) = d i + b ((C q)^i - 1),
    ``d = s / (q - 1/C)``; b follows from what the next level costs.

    Examples
    --------
    >>> round(expected_flips(0.5, 4 / 3, 1 / 3), 2)
    5.98
    """
    if _FIRST_HEIGHT / gap > _LARGEST_HEIGHT:
        return 9.5 * multiplier / gap  # Huber (2016), Theorem 1: an upper bound
    levels = _LEVELS if _FIRST_HEIGHT / gap < _MANY_HEIGHTS else _FEW_LEVELS
    multipliers, gaps, heights = [multiplier], [min(gap, _LARGEST_GAP)], [_FIRST_HEIGHT / gap]
    for _ in range(levels):
        multipliers.append(multipliers[-1] * (1.0 + gaps[-1] / 2.0))
        gaps.append(gaps[-1] / 2.0)
        heights.append(2.0 * heights[-1])
    beyond = np.zeros(1)  # cost from each height at the level above the one in hand
    for level in reversed(range(levels)):
        beyond = _level_cost(heads, multipliers[level], gaps[level], heights[level], beyond)
    return float(beyond[1])


def _level_cost(
    heads: float, multiplier: float, gap: float, height: float, above: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return V(i) at one level for i = 0, 1, ... far beyond its height."""
    stays = 1.0 / multiplier
    top = math.ceil(height)  # the first height at which the level ends
    many = top + math.ceil(40.0 / min(math.log(multiplier), 1.0)) + 60
    i = np.arange(many)
    after = np.interp(i, np.arange(len(above)), above, right=float(above[-1]))
    ended = after * np.exp(-i * math.log1p(gap / 2.0))  # survive the level's end, or stop
    weights = (1.0 - stays) * stays ** np.arange(many - top)
    jump = float((weights * ended[top:]).sum())  # mean cost after a geometric jump from top - 1
    slope, ratio = (1.0 - stays) / (heads - stays), multiplier * heads
    last = top - 1
    # V(last) = 1 + q V(last - 1) + (1 - q) (s V(last) + (1 - s) jump), solved for b
    powers = [ratio**last - 1.0, ratio ** (last - 1) - 1.0]
    kept = 1.0 - (1.0 - heads) * (1.0 - stays)
    right = 1.0 + (1.0 - heads) * stays * jump + heads * slope * (last - 1) - kept * slope * last
    b = right / (kept * powers[0] - heads * powers[1])
    below = slope * i[:top] + b * (ratio ** i[:top] - 1.0)
    return np.concatenate([below, ended[top:]])


def _algorithm_1(flips: float, beta: float, at_atom: float) -> float:
    """Return the mean count of Algorithm 2 from the invariant mean of the factory's flips."""
    outer = (1.0 - beta) / beta
    return (outer * flips + 1.0 / beta) / (1.0 - at_atom)


def atom_acceptance(k: float, slope: float, mean: float, rate: float | None) -> float:
    """Return the probability that a proposal from a is accepted by the printed kernel."""
    peak = 1.0 / laplace_integral(slope, mean)
    inside = 1.0 / peak if rate is None else rate / 2.0 * laplace_integral(rate + slope, mean)
    return (1.0 - k) * peak / ((1.0 - k) * peak + k) * inside


def expected_proposals_printed(k: float, slope: float, mean: float, rate: float | None) -> float:
    """Return the mean of N_prop for Algorithm 2 on the printed kernel, Example 1, d = 1.

    Every p(y) is 1/2, and with A the acceptance from a the atom's share is 1/(1+A): the mean is the
    factory's cost at 1/2 and at 1 - A/2, times 2/k, times (1+A)/A. A falls with k, 2/k rises: the
    valley in k.
    """
    beta, accept = k / 2.0, atom_acceptance(k, slope, mean, rate)
    multiplier, gap = 1.0 / (1.0 - beta), 1.0 - 0.5 / (1.0 - beta)
    at_atom = 1.0 / (1.0 + accept)
    flips = at_atom * expected_flips(accept / 2.0, multiplier, gap)
    flips += (1.0 - at_atom) * expected_flips(0.5, multiplier, gap)
    return _algorithm_1(flips, beta, at_atom)


def _read_atom(k: float, slope: float, mean: float, rate: float | None) -> tuple[float, float]:
    """Return ``log w/Z_f + log`` of the reading's density constant, and the tag energy B."""
    integral = laplace_integral(slope, mean)
    constant = 1.0 if rate is None else rate / 2.0  # of the density of q(a, .)
    steep = 0.0 if rate is None else rate
    log_weight = math.log(k / (1.0 - k)) + math.log(integral * constant)
    furthest = max(mean, 1.0 - mean)
    offset = max(0.0, (steep - slope) * furthest)  # R - E, largest at an end or at the mean
    return log_weight, max(0.0, offset - log_weight)


def expected_steps_direct(k: float, slope: float, mean: float, rate: float | None) -> float:
    """Return ``2 e^B (1 + w / Z_f)`` with ``w / Z_f = k / (1-k)``: the direct form, corrected."""
    return 2.0 * math.exp(_read_atom(k, slope, mean, rate)[1]) / (1.0 - k)


def expected_proposals_corrected(
    k: float, slope: float, mean: float, rate: float | None, *, cells: int = 200
) -> float:
    """Return the mean of N_prop for Algorithm 2 on the corrected kernel, d = 1, by quadrature."""
    log_weight, tag = _read_atom(k, slope, mean, rate)
    steep = 0.0 if rate is None else rate
    away = np.abs(grid_points(cells) - mean)
    law = np.exp(-slope * away)
    excess = log_weight - steep * away + slope * away
    to_atom = 0.5 * np.minimum(1.0, np.exp(excess))
    entered = np.exp(log_weight - steep * away) * np.minimum(1.0, np.exp(-excess))
    # what the atom sends to the lattice equals what comes from it
    leave = 0.5 * float(entered.mean()) / math.exp(log_weight) * (1.0 if rate is None else rate / 2)
    beta = math.exp(-tag) / 4.0
    gap = beta / (1.0 - beta)  # 1 - (1 - 2 beta) / (1 - beta)
    cost = np.array([expected_flips(1.0 - p, 1.0 / (1.0 - beta), gap) for p in _support(to_atom)])
    flips = np.interp(to_atom, _support(to_atom), cost)
    lattice = float((law * flips).sum() / law.sum())
    atom = expected_flips(leave, 1.0 / (1.0 - beta), gap)
    return _algorithm_1((1.0 - k) * lattice + k * atom, beta, k)


def _support(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a few numbers from the least to the largest value, between which to interpolate."""
    low, high = float(values.min()), float(values.max())
    return np.array([low]) if high - low < 1e-12 else np.linspace(low, high, 9)
