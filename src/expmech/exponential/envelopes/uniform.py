"""The uniform envelope."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from expmech.certificates.forecast import (
    MOST_EVALUATIONS,
    SPARE,
    Forecast,
    evaluations_in_lots,
    forecast_proposals,
    power,
)
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import UnsupportedError
from expmech.domains import Grid, Indices, Region
from expmech.exponential.envelopes.base import Envelope, MeasuredEnvelope
from expmech.exponential.target import SMALL_TABLE, Energies, Target

_NO_ENERGY = np.zeros(1, dtype=np.int64)  # broadcasts against any number of draws


@dataclass(frozen=True)
class BoundUniform:
    """``R = 0`` on the domain; the offset is minus a lower bound on the energy."""

    target: Target
    offset: int
    rates: tuple[Fraction, ...] | None = None

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Energies]:
        """Draw uniform points of the domain."""
        return self.target.domain.draw_uniform(coins, size), _NO_ENERGY

    def energy(self, indices: Indices) -> Energies:
        """Return zeros."""
        return np.zeros(len(indices), dtype=np.int64)

    def mass(self, precision: int) -> flint.arb:
        """Enclose the number of points of a box or of a lattice that is listed."""
        box, listed = self.target.box, self.target.domain.all_indices(SMALL_TABLE)
        if box is None and listed is None:
            raise UnsupportedError("The exact size of this domain is not known; use a Box.")
        with flint.ctx.workprec(precision):
            if box is None:
                return flint.arb(0 if listed is None else len(listed))
            return flint.arb(box.points_per_axis) ** box.dimension

    def log_mass(self) -> float:
        """Return the log of the number of points."""
        return self.target.domain.log_size


class Uniform(Envelope):
    """Uniform proposals on the domain, under the declared minimum of the loss.

    Notes
    -----
    Mean proposals are ``|Y| exp(-m) / Z_f``; for a loss of slope c an axis about ``prod (c_j /
    2)``. Theory page: docs/theory/rejection.md.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([[0.2], [0.3], [0.4]])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> mech.sample(epsilon=1.0, sampler=em.Rejection(em.Uniform()), seed=1).values.shape
    (1, 1)
    """

    name = "uniform"
    automatic = True
    is_law = True

    def bind(self, target: Target) -> BoundUniform:
        """Fit to ``target``; always possible."""
        return BoundUniform(target=target, offset=-target.minimum_energy)

    def forecast(self, target: Target) -> Forecast:
        """From one proposal, where the loss is flat, to what p_0 allows."""
        worst = log_worst_uniform(target)
        if worst is None:
            return forecast_proposals(1.0, None, math.inf)
        likely = worst / 2
        if target.slopes is not None and isinstance(target.domain, Grid):
            # a loss that uses its slopes falls to both sides of its minimum: half as many
            # proposals per axis as in a corner
            likely = max(likely, worst - len(target.slopes) * math.log(2.0))
        best = _log_best_uniform(target)
        fewest = max(1.0, power(best) / SPARE)
        usual = max(best, min(likely, log_usual_uniform(target)))
        ranked = power(max(best, likely))
        return forecast_proposals(fewest, power(worst) * SPARE, power(usual), ranked=ranked)


def log_worst_uniform(target: Target) -> float | None:
    """Return the log of the mean number of proposals on the worst data set; public.

    Acceptance is the mean of ``exp(-(E - a))``, a the certified minimum. It is at least ``exp(-gap)
    p_0``, and at least its value at the largest energy. None where neither is known.
    """
    floor, bound, gap = target.log_floor(), target.problem.bound, target.gap
    most, spread = [], target.base_spread
    if spread is None:
        return None
    if bound is not None:
        most.append(target.eta * (bound - target.problem.minimum) + target.energy_error + spread)
    if floor is not None and (gap is not None or most):
        most.append((most[0] if gap is None else gap) - floor)
    return min(most, default=None)


def log_usual_uniform(target: Target) -> float:
    """Guess the log of the proposals for a loss that falls to its minimum in the middle.

    The guess rests on its slopes and on half of a declared gap. On a domain that is no box,
    coordinates vary less than across its bounds; uniform points of a public seed show by how much.
    """
    if target.slopes is None:
        return math.inf
    shares = _spread(target, len(target.slopes))
    sides = [slope * share / 2.0 for slope, share in zip(target.slopes, shares, strict=True)]
    rises = (side / -math.expm1(-side) for side in sides if side > 0.0)
    return sum(map(math.log, rises)) + (target.gap or 0.0) / 2.0


def _spread(target: Target, count: int) -> list[float]:
    """Return the mean distance of coordinates from their middle, over that of a box; public."""
    domain = target.domain
    if target.box is not None or not isinstance(domain, Region):
        return [1.0] * count
    points = domain.points(domain.draw_uniform(Coins(seeded_bits(0)), _POINTS))
    distances = np.abs(points - points.mean(axis=0)).mean(axis=0)
    spreads: list[float] = (4.0 * distances / np.maximum(domain.widths, 1e-300)).tolist()
    return spreads


_POINTS = 128


def _log_best_uniform(target: Target) -> float:
    """Return the log of the fewest proposals that uniform rejection can need on average.

    Growth with a public slack limits Z_f: ``Z_f <= exp(eta slack) prod_j sum_i exp(-s_j |i -
    c_j|)``, and the sum over N points is largest about their middle.
    """
    growth, box = target.problem.growth, target.box
    if growth is None or not growth.public_slack or box is None:
        return 0.0
    half = box.points_per_axis // 2 + 1
    slopes = (target.eta * growth.rates * box.steps).tolist()
    most = 0.0
    for slope in slopes:
        most += math.log(2.0 * math.expm1(-slope * half) / math.expm1(-slope))
    return max(0.0, box.log_size - most - target.eta * growth.slack - target.energy_error)


def cheapest(
    uniform: BoundUniform, fitted: Iterable[MeasuredEnvelope], units: int, *, idle: float
) -> MeasuredEnvelope:
    """Return the envelope with the fewest proposals per draw, ``exp(m) Z_r / Z_f`` of them.

    A uniform proposal counts ``idle`` times: the others may be refused before the loss is looked
    at. The first of equal ones is taken.
    """
    best: MeasuredEnvelope = uniform
    fewest = uniform.offset / units + uniform.log_mass() + math.log(idle)
    for envelope in fitted:
        proposals = envelope.offset / units + envelope.log_mass()
        if proposals < fewest:
            best, fewest = envelope, proposals
    return best


def forecast_fitted(
    target: Target,
    log_typical: float,
    loose: float = 1.0,
    *,
    calls: float,
    log_ranked: float | None = None,
    wasted: float | None = None,
) -> Forecast:
    """Return the forecast of an envelope that falls back to uniform proposals, ``loose`` times.

    ``log_typical`` guesses the log of the proposals that remain after fitting; no refusal rests on
    it. ``wasted`` is the share of proposals that are not used, where lots do not double.
    """
    worst = log_worst_uniform(target)
    guess = _guess(log_typical)
    if wasted is not None:
        guess = min(MOST_EVALUATIONS, (1.0 + wasted) * power(log_typical))
    ranked = None if log_ranked is None else _guess(log_ranked)
    limit = None if worst is None else loose * SPARE * power(worst)
    fitted = forecast_proposals(1.0, limit, 1.0)
    uniform = Uniform().forecast(target)
    return Forecast(
        expected=fitted.expected,
        nearly_all=fitted.nearly_all,
        typical=min(guess, uniform.typical),
        ranked=min(guess if ranked is None else ranked, uniform.rank),
        calls=calls,
    )


def _guess(nats: float) -> float:
    return min(MOST_EVALUATIONS, evaluations_in_lots(1.5 * power(max(0.0, nats))))


def tightest_uniform(target: Target) -> BoundUniform:
    """Return the uniform envelope whose distance from the minimum :func:`uniform_gap` bounds."""
    if target.is_small and target.table is not None:
        return BoundUniform(target=target, offset=-target.table[1].minimum)
    return Uniform().bind(target)


def uniform_gap(target: Target) -> float | None:
    """Return a public bound on how far :func:`tightest_uniform` may lie below the minimum.

    It is in nats. On a small lattice every energy is evaluated, which is constant work, and the
    bound is zero.
    """
    if target.is_small:
        return 0.0
    return None if target.gap is None else max(0.0, math.nextafter(target.gap, math.inf))
