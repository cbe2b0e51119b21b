"""What the algorithms cost on average, computed: also where a run cannot end in our lifetime.

Derivation: docs/theory/printed.md. In short: every outer step of Algorithm 1 takes the factory's
mean number of flips in the current state plus, on average, 1/(1-beta) inner tries; the states of a
run of geometric length have the invariant law on average; runs are repeated until one does not end
at the atom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from expmech.theory import acceptance_laplace_infimum, laplace_integral

_LARGEST_GAP = 0.644  # Huber's constant, as in coins/factory.py
_FIRST_HEIGHT = 4.6
_LEVELS, _FEW_LEVELS = 8, 5  # each changes the mean by about a quarter of what the last one did
_MANY_HEIGHTS = 2e3  # beyond it arrays are long, and fewer levels must do
_CELLS, _NATS = 400, 40.0  # of a quadrature, and how far it resolves an exponential
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


def atom_acceptance(k: float, slope: float, mean: float, rate: float | None) -> float:
    """Return the probability that a proposal from a is accepted by the printed kernel."""
    peak = 1.0 / laplace_integral(slope, mean)
    inside = 1.0 / peak if rate is None else rate / 2.0 * laplace_integral(rate + slope, mean)
    return (1.0 - k) * peak / ((1.0 - k) * peak + k) * inside


def outer_tail_rate(k: float, slope: float, mean: float, rate: float | None) -> float:
    """Return the rate at which P(outer steps of Algorithm 2 > m) falls, on the printed kernel.

    Every p(y) is 1/2, so that only being at the atom matters: a draw that has not ended moves by a
    matrix of two states, of which this is the larger eigenvalue (docs/theory/printed.md).
    """
    leave = atom_acceptance(k, slope, mean, rate) / 2.0
    half, product = (1.5 - leave) / 2.0, (1.0 - leave) / 2.0 - leave * (1.0 - k) / 2.0
    return half + math.sqrt(half * half - product)


def count_epsilon(k: float, n: int, epsilon: float) -> float:
    """Return the largest |log ratio| of P(padded N_prop = 2) over means j/n, Corollary 2.

    Two proposals are one flip and one inner try out of a, each with probability A/2, and no wait,
    which has the probability inf inf p_Accept / inf p_Accept.
    """
    return _largest_step([2.0 * leave - floor for leave, _, floor in _two_proposals(k, n, epsilon)])


def pair_epsilon(k: float, n: int, epsilon: float) -> float:
    """Return the largest |log ratio| of value and padded N_prop = 2 together, over means j/n.

    The value has density q(a, y) (1-k) f(y) / f~(a), whose exponential moves by 2 alpha / n between
    neighbours at the paper's alpha = n epsilon / 2.
    """
    factors = [leave + peak - floor for leave, peak, floor in _two_proposals(k, n, epsilon)]
    return epsilon + _largest_step(factors)


def first_move_epsilon(k: float, n: int, epsilon: float) -> float:
    """Return the largest |log ratio| of value and M = 2 together, over means j/n."""
    return epsilon + _largest_step([peak for _, peak, _ in _two_proposals(k, n, epsilon)])


def _two_proposals(k: float, n: int, epsilon: float) -> list[tuple[float, float, float]]:
    """Return the logs of A, of (1-k) f(a) / f~(a) and of inf p_Accept at each mean j/n."""
    slope = n * epsilon / 2.0
    logs = []
    for mean in (j / n for j in range(n + 1)):
        peak = (1.0 - k) / laplace_integral(slope, mean)
        leave = atom_acceptance(k, slope, mean, slope)
        floor = acceptance_laplace_infimum([mean], slope, slope)
        logs.append((math.log(leave), math.log(peak / (peak + k)), math.log(floor)))
    return logs


def _largest_step(logs: list[float]) -> float:
    return max(abs(one - other) for one, other in pairwise(logs))


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


@dataclass(frozen=True)
class CorrectedStates:
    """The states of Algorithm 1 on the corrected kernel, Example 1, d = 1, by quadrature.

    ``to_atom`` and ``weights`` are the probability of the atom at points of the interval and their
    shares of f; ``leave`` is the probability of leaving the atom in a step.
    """

    beta: float
    to_atom: NDArray[np.float64]
    weights: NDArray[np.float64]
    leave: float

    @classmethod
    def of(cls, k: float, slope: float, mean: float, rate: float | None) -> CorrectedStates:
        """Return the states for target and proposals of the given slopes."""
        log_weight, tag = _read_atom(k, slope, mean, rate)
        steep = 0.0 if rate is None else rate
        away, width = _arms(mean, max(slope, steep))
        excess = log_weight - steep * away + slope * away
        entered = np.exp(-steep * away) * np.minimum(1.0, np.exp(-excess))
        # what the atom sends to the lattice equals what comes from it
        leave = 0.5 * float((entered * width).sum()) * (1.0 if rate is None else rate / 2)
        law = np.exp(-slope * away) * width
        to_atom = 0.5 * np.minimum(1.0, np.exp(excess))
        return cls(math.exp(-tag) / 4.0, to_atom, law / law.sum(), leave)


def _arms(mean: float, slope: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return distances from the mean in [0, 1], with widths: cells that an exponential resolves."""
    distances, widths = [], []
    for arm in (mean, 1.0 - mean):
        near = min(arm, _NATS / slope)
        edges = np.concatenate(
            [np.linspace(0.0, near, _CELLS + 1), np.linspace(near, arm, _CELLS + 1)[1:]]
        )
        distances.append((edges[1:] + edges[:-1]) / 2.0)
        widths.append(np.diff(edges))
    return np.concatenate(distances), np.concatenate(widths)


def average_counts(
    k: float, slope: float, mean: float, rate: float | None, *, corrected: bool
) -> dict[str, float]:
    """Return the means of the four counts of Theorem 2's proof over the states that runs meet.

    An outer step enters the inner loop with probability (1-p)/(1-beta) and takes 1/(1-beta) tries
    on average, so an entry takes ``1 / E[1-p]``, p the atom's probability in the invariant law. On
    the printed kernel every p(y) is 1/2, and with A the acceptance from a the atom's share is
    1/(1+A).
    """
    if corrected:
        states = CorrectedStates.of(k, slope, mean, rate)
        beta, at_atom, leave = states.beta, k, states.leave
        to_atom, weights = states.to_atom, states.weights
        gap = beta / (1.0 - beta)  # 1 - (1 - 2 beta) / (1 - beta)
    else:
        beta, leave = k / 2.0, atom_acceptance(k, slope, mean, rate) / 2.0
        at_atom = 1.0 / (1.0 + 2.0 * leave)
        to_atom, weights = np.array([0.5]), np.array([1.0])
        gap = 1.0 - 0.5 / (1.0 - beta)
    few, multiplier = _support(to_atom), 1.0 / (1.0 - beta)
    cost = np.array([expected_flips(1.0 - p, multiplier, gap) for p in few])
    flips = float((weights * np.interp(to_atom, few, cost)).sum())
    stays = float((weights * (1.0 - to_atom)).sum())
    return {
        "outer": 1.0 / beta,
        "bern": (1.0 - at_atom) * flips + at_atom * expected_flips(leave, multiplier, gap),
        "inner": 1.0 / ((1.0 - at_atom) * stays + at_atom * leave),
        "nonatomic": 1.0 / (1.0 - at_atom),
    }


def _total(counts: dict[str, float]) -> float:
    """Return the mean of N_prop: runs, their outer steps, flips in all but the last of them."""
    outer = counts["outer"]
    return ((outer - 1.0) * counts["bern"] + outer) * counts["nonatomic"]


def expected_proposals_printed(k: float, slope: float, mean: float, rate: float | None) -> float:
    """Return the mean of N_prop for Algorithm 2 on the printed kernel, Example 1, d = 1.

    The atom's acceptance falls with k and the length 2/k of a run rises: the valley in k.
    """
    return _total(average_counts(k, slope, mean, rate, corrected=False))


def expected_proposals_corrected(k: float, slope: float, mean: float, rate: float | None) -> float:
    """Return the mean of N_prop for Algorithm 2 on the corrected kernel, d = 1, by quadrature."""
    return _total(average_counts(k, slope, mean, rate, corrected=True))


def _support(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a few numbers from the least to the largest value, between which to interpolate."""
    low, high = float(values.min()), float(values.max())
    return np.array([low]) if high - low < 1e-12 else np.linspace(low, high, 9)
