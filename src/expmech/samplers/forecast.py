"""What a draw will cost, from public quantities only.

Loss evaluations on the best and the worst data set.

Derivations, and which bounds are proved and which are measured: docs/theory/plan.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from expmech.coins import UNITS_PER_NAT
from expmech.domains import Box, L1Ball, L2Ball
from expmech.envelopes import Affine, Convex, ProductLaplace, Tangent
from expmech.envelopes.cell_bounds import certify
from expmech.envelopes.convex.envelope import IDLE
from expmech.errors import UnsupportedError
from expmech.samplers.base import BLOCK
from expmech.samplers.box_tree import LOT
from expmech.samplers.separable import FLAT, Separable
from expmech.target import Target

NEARLY_ALL = 0.99
MOST_EVALUATIONS = 1e8
"""What `auto` regards as affordable, minutes at most, for evaluations in large lots."""

_LARGEST = 700.0  # nats: numbers beyond exp(700) are not told apart
_SPARE = 1.01  # for rounding the center to the lattice and for loss errors
# evaluations a cell of the flat tree: look, split, and the proposals that follow; measured, see the
# theory page
_CELLS = 4.0
_MEMORY = (1 << 30) / 48  # words of 8 bytes of which a tree may hold six copies
_CELL_WORDS = 4
_LEVELS = 8.0  # evaluations a level of the lattice where bounds over intervals are exact; measured


_NO_WEIGHT = (
    "ConfAtomPerfect turns k into the atom's weight through the normaliser or a public bound on it,"
    " and this problem has neither. Declare `lipschitz` or `bound`, or use Rejection."
)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Loss evaluations of one draw, everything included.

    On the best and on the worst data set that public quantities allow.

    ``expected`` are means, ``nearly_all`` numbers that 99% of draws stay below; None where nothing
    public bounds them. ``typical`` is what options are ranked by.
    """

    expected: tuple[float, float | None]
    nearly_all: tuple[float, float | None]
    typical: float


def forecast_constant(evaluations: float) -> Forecast:
    """Return the forecast of a number of evaluations that is fixed beforehand."""
    return Forecast(expected=(evaluations,) * 2, nearly_all=(evaluations,) * 2, typical=evaluations)


def forecast_geometric(mean: float) -> Forecast:
    """Return the forecast of a geometric number of evaluations whose law is public."""
    most = quantile_of_sum([mean])
    return Forecast(expected=(mean,) * 2, nearly_all=(most,) * 2, typical=mean)


def forecast_proposals(best: float, worst: float | None, typical: float) -> Forecast:
    """Return the forecast of rejection whose mean number of proposals lies between the two.

    In lots that double.
    """
    return Forecast(
        expected=(evaluations_in_lots(best), None if worst is None else evaluations_in_lots(worst)),
        nearly_all=(most_in_lots(best), None if worst is None else most_in_lots(worst)),
        typical=evaluations_in_lots(typical),
    )


def evaluations_in_lots(proposals: float) -> float:
    """Return the mean evaluations of lots of 1, 2, 4, ... until one in ``proposals`` is kept."""
    if proposals >= math.exp(_LARGEST):
        return math.inf
    refused = math.log1p(-1.0 / proposals) if proposals > 1.0 else -math.inf
    total, made, lot = 0.0, 0, 1
    while True:
        reached = 1.0 if made == 0 else math.exp(refused * made)
        if lot == BLOCK:  # from here on lots are equal
            return total + reached * (lot / -math.expm1(refused * lot))
        if reached < 1e-12:
            return total
        total += lot * reached
        made += lot
        lot = min(2 * lot, BLOCK)


def most_in_lots(proposals: float) -> float:
    """Return a number of evaluations that 99% of such draws stay below."""
    most = quantile_of_sum([proposals])
    if most >= BLOCK:
        return most + BLOCK
    return float((1 << max(1, math.ceil(math.log2(most + 1)))) - 1)


def quantile_of_sum(means: Sequence[float]) -> float:
    """Return what a sum of geometric variables with these means stays below in 99% of cases.

    One variable: exact. Several: Chernoff's bound with the largest mean, ``P(sum > x) <= exp(-x
    KL(d/x, p))``.
    """
    largest, count = max(means), len(means)
    if largest <= 1.0:
        return float(count)
    if largest >= math.exp(_LARGEST):
        return math.inf
    success, missed = 1.0 / largest, math.log(1.0 - NEARLY_ALL)
    if count == 1:
        return float(math.ceil(missed / math.log1p(-success)))
    low, high = count * largest, 64.0 * count * largest
    while high - low > 0.5 + 1e-9 * high:
        middle = (low + high) / 2
        share = count / middle
        divergence = share * math.log(share / success) + (1.0 - share) * (
            math.log1p(-share) - math.log1p(-success)
        )
        low, high = (low, middle) if -middle * divergence <= missed else (middle, high)
    return float(math.ceil(high))


def power(log_number: float) -> float:
    """Return ``exp(log_number)``, infinite where that is beyond floats."""
    return math.exp(log_number) if log_number < _LARGEST else math.inf


def log_worst_uniform(target: Target) -> float | None:
    """Return the log of the most proposals that uniform rejection can need on average.

    Over every data set.

    Acceptance is the mean of ``exp(-(E - a))``, a the certified minimum: at least ``exp(-gap)
    p_0``, and at least the value at the largest energy.
    """
    floor, bound = target.log_floor(), target.problem.bound
    most = (
        []
        if bound is None
        else [target.eta * (bound - target.problem.minimum) + target.energy_error]
    )
    if floor is not None and (target.gap is not None or most):
        most.append((target.gap if target.gap is not None else most[0]) - floor)
    return min(most, default=None)


def forecast_uniform(target: Target) -> Forecast:
    """Uniform proposals: from one, where the loss is flat, to what p_0 allows."""
    worst = log_worst_uniform(target)
    if worst is None:
        return forecast_proposals(1.0, None, math.inf)
    # a loss that uses its slopes falls to both sides of its minimum: half as many proposals an axis
    # as in a corner
    likely = (
        max(worst / 2, worst - len(target.slopes) * math.log(2.0))
        if target.slopes is not None
        else worst / 2
    )
    best = log_best_uniform(target)
    return forecast_proposals(
        max(1.0, power(best) / _SPARE), power(worst) * _SPARE, power(max(best, likely))
    )


def log_best_uniform(target: Target) -> float:
    """Return the log of the fewest proposals that uniform rejection can need on average.

    Growth with a public slack limits Z_f.

    ``Z_f <= exp(eta slack) prod_j sum_i exp(-s_j |i - c_j|)``, and the sum over N points is largest
    about their middle.
    """
    growth = target.problem.growth
    if growth is None or not growth.public_slack or not isinstance(target.domain, Box):
        return 0.0
    half = target.domain.points_per_axis // 2 + 1
    most = sum(
        math.log(2.0 * math.expm1(-slope * half) / math.expm1(-slope))
        for slope in _laplace_slopes(target)
    )
    return max(0.0, target.domain.log_size - most - target.eta * growth.slack - target.energy_error)


def forecast_laplace(target: Target) -> Forecast:
    """Laplace proposals.

    From one to ``exp(m) Z_r / Z_f`` for the least Z_f, where the slack of the growth is public.
    """
    worst = log_worst_laplace(target)
    if worst is not None:
        return forecast_proposals(1.0, power(worst) * _SPARE, power(worst / 2))
    wasted = max(0.0, sum(map(_log_laplace_mass, _laplace_slopes(target))) - target.domain.log_size)
    return forecast_proposals(
        1.0, None, power(wasted + target.domain.dimension * math.log(2.0) / 2)
    )


def log_worst_laplace(target: Target) -> float | None:
    """Return the log of the most proposals that Laplace rejection can need on average.

    Where that is public.
    """
    ProductLaplace().bind(target)  # raises, on public grounds, where it does not apply
    growth, floor, slopes = target.problem.growth, target.log_floor(), _laplace_slopes(target)
    if growth is None or not growth.public_slack or floor is None or target.gap is None:
        return None
    log_least = target.domain.log_size + floor - target.minimum_energy / UNITS_PER_NAT - target.gap
    offset = target.eta * growth.slack + sum(slopes) / 2  # the center is rounded to the lattice
    return max(0.0, offset + sum(map(_log_laplace_mass, slopes)) - log_least)


def _laplace_slopes(target: Target) -> list[float]:
    """Return the nats a lattice step that the declared growth guarantees; its rates are public."""
    domain = target.domain
    assert target.problem.growth is not None and isinstance(domain, (Box, L1Ball, L2Ball))
    box = domain if isinstance(domain, Box) else domain.cube
    slopes: list[float] = (target.eta * target.problem.growth.rates * box.steps).tolist()
    return slopes


def _log_laplace_mass(slope: float) -> float:
    return -math.log(math.tanh(slope / 2))


def forecast_separable(target: Target) -> Forecast:
    """One to about 2.4 proposals a coordinate where growth is declared.

    Else a tree a coordinate.
    """
    domain, growth = Separable.validate(target), target.problem.growth
    if growth is None:
        if (
            target.slopes is None
        ):  # bounds of the caller's own over intervals: nothing public says how good they are
            least = (1.0 + LOT) * domain.dimension
            return Forecast(expected=(least, None), nearly_all=(least, None), typical=2.0 * least)
        trees = [_forecast_tree([slope], domain.bits, least=1.0 + LOT) for slope in target.slopes]
        most = sum(tree.expected[1] or math.inf for tree in trees)
        return Forecast(
            expected=(sum(tree.expected[0] for tree in trees), most),
            nearly_all=(sum(tree.nearly_all[0] for tree in trees), 2.0 * most),
            typical=sum(tree.typical for tree in trees),
        )
    d, points = domain.dimension, domain.points_per_axis
    if not growth.public_slack or target.slopes is None or target.gap is None:
        return Forecast(expected=(float(d), None), nearly_all=(float(d), None), typical=2.0 * d)
    means = []
    for slope, steepest in zip(_laplace_slopes(target), target.slopes, strict=True):
        least = (
            -math.expm1(-steepest) / -math.expm1(-steepest / points)
            if steepest > 0
            else float(points)
        )
        flat = slope * points < FLAT / UNITS_PER_NAT
        log_mass = math.log(points) if flat else _log_laplace_mass(slope)
        error = slope / 2 + target.gap / d + target.energy_error
        means.append(max(1.0, _SPARE * power(log_mass - math.log(least) + error)))
    return Forecast(
        expected=(float(d), sum(means)),
        nearly_all=(float(d), quantile_of_sum(means)),
        typical=(d + sum(means)) / 2,
    )


def forecast_box_tree(target: Target) -> Forecast:
    """Count evaluations of cells and proposals for a first draw.

    The worst loss for Lipschitz bounds is a flat one.
    """
    box = certify(target).box  # raises, on public grounds, where it does not apply
    least = (
        1.0 + LOT if isinstance(target.domain, Box) else 1.0
    )  # the proposals of a lot that miss a ball are not evaluated
    if target.slopes is not None:
        return _forecast_tree(target.slopes, box.bits, least=least)
    exact = getattr(target.problem.loss, "exact_lower_bound", False)
    return _tree_between(
        least, 2 * LOT + _LEVELS * box.bits * box.dimension if exact else None, box.dimension
    )


def _forecast_tree(slopes: Sequence[float], bits: int, *, least: float) -> Forecast:
    d = len(slopes)
    drop = _flat_drop(
        slopes, min(bits * d * math.log(2.0), math.log(_MEMORY / (_CELL_WORDS + 3 * d)))
    )
    cells, proposals = power(_log_cells(slopes, drop)), power(drop)
    return _tree_between(least, 2 * LOT + _CELLS * max(cells, proposals), d)


def _tree_between(best: float, worst: float | None, dimension: int) -> Forecast:
    typical = 4.0 * LOT * dimension if worst is None else math.sqrt(LOT * worst)
    return Forecast(
        expected=(best, worst),
        nearly_all=(best, None if worst is None else 2.0 * worst),
        typical=typical,
    )


def _flat_drop(slopes: Sequence[float], log_most: float) -> float:
    """Return how many nats below a flat loss the bounds of a tree's equal cells end.

    Log N, where it has N of them.

    Then the mass the bounds add, a factor exp of that, is worth one evaluation a cell. Where memory
    allows fewer cells the bounds stay lower. An axis whose slope is smaller than the others' is cut
    less often.
    """
    low, high = 0.0, sum(slopes) / 2
    while high - low > 1e-9 * (1.0 + high):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _log_cells(slopes, middle) > min(middle, log_most) else (low, middle)
        )
    return high


def _log_cells(slopes: Sequence[float], drop: float) -> float:
    """Return the log of the number of cells whose bounds lie ``drop`` nats below their center.

    Each axis takes an equal part.
    """
    steep = sorted((slope for slope in slopes if slope > 0), reverse=True)
    parts, rest = len(steep), drop
    for slope in reversed(steep):  # a flat axis that uses up less than its part is never cut
        if slope / 2 > rest / parts:
            break
        rest -= slope / 2
        parts -= 1
        if parts == 0:
            return 0.0
    return (
        sum(math.log(slope / 2 * parts / rest) for slope in steep[:parts]) if rest > 0 else math.inf
    )


def forecast_affine(target: Target) -> Forecast:
    """Affine proposals: near one where the domain does not bind.

    Never more than uniform ones, which it falls back to.
    """
    Affine.validate(target)
    return _forecast_fitted(target, _affine_typical(target))


def _affine_typical(target: Target) -> float:
    """Guess, in nats, for features spread evenly over their bounds.

    Whose matrix is a multiple of the identity.

    With s nats from the middle to the edge, solving for all coordinates leaves the domain rarely
    once s is above ``p^2 / 2`` (an L1 ball) or p; before that, uniform proposals and a law that
    reaches beyond the domain are both tried.
    """
    if target.slopes is None:
        return 0.0
    p, rise = len(target.slopes), max(min(target.slopes) / 4.0, 1e-300)
    ball = isinstance(target.domain, L1Ball)
    uniform = (
        rise * (math.log(p) + 0.6) / p if ball else rise
    )  # a point of the ball has all but one coordinate near 0
    solved = uniform + (2.0 if ball else 1.0) * math.lgamma(p + 1.0) - p * math.log(rise)
    return 0.0 if rise > (p * p / 2 if ball else p) else max(0.0, min(uniform, solved))


def forecast_convex(target: Target) -> Forecast:
    """Proposals from the envelope of a smooth convex loss, which falls back to uniform ones."""
    Convex.validate(target)
    return _forecast_fitted(target, _convex_typical(target), IDLE)


def _convex_typical(target: Target) -> float:
    """Guess, in nats, for features in all directions alike.

    What the third derivative costs, ``0.6 p^1.5 / sqrt(slope)``.
    """
    if target.slopes is None:
        return 0.0
    widths = getattr(target.domain, "widths", None)
    assert widths is not None
    steepness = min(
        slope / width for slope, width in zip(target.slopes, widths.tolist(), strict=True)
    )
    return float(0.6 * len(target.slopes) ** 1.5 / math.sqrt(max(steepness, 1e-300)))


def forecast_tangent(target: Target) -> Forecast:
    """Proposals by a tangent plane.

    One where the loss is linear, and nothing public says how far it is from that.
    """
    Tangent.validate(target)
    return forecast_proposals(1.0, None, math.inf)


def _forecast_fitted(target: Target, log_typical: float, loose: float = 1.0) -> Forecast:
    uniform = forecast_uniform(target)
    worst = log_worst_uniform(target)
    guess = min(
        MOST_EVALUATIONS, evaluations_in_lots(1.5 * power(max(0.0, log_typical)))
    )  # a guess is no ground for a refusal
    limit = None if worst is None else loose * _SPARE * power(worst)
    fitted = forecast_proposals(1.0, limit, 1.0)
    return Forecast(
        expected=fitted.expected, nearly_all=fitted.nearly_all, typical=min(guess, uniform.typical)
    )


def forecast_atom(target: Target, *, proposal: str, k: float = 0.5) -> Forecast:
    """Return the evaluations of ConfAtomPerfect, ``e^B (1 + w / Z_f)``.

    From the mean proposals M / Z_f of its re-entry law.
    """
    rejection = log_worst_uniform(target) if proposal == "uniform" else log_worst_laplace(target)
    floor, tabulated = target.log_floor(), 0.0
    best, worst = 1.0, None
    if target.knows_normaliser:
        # the weight is exact: w / Z_f = k / (1 - k), and e^B = (M / Z_f) (1 - k) / k
        tabulated = 0.0 if target.integer is not None else math.exp(target.domain.log_size)
        if rejection is not None:
            worst = max(1.0, power(rejection) * (1.0 - k) / k) / (1.0 - k)
    elif floor is None:
        raise UnsupportedError(_NO_WEIGHT)
    elif proposal == "uniform":
        best = max(1.0, power(-floor) * (1.0 - k) / k)
        worst = (
            None
            if rejection is None
            else best * (1.0 + k / (1.0 - k) * power(max(0.0, floor + rejection)))
        )
    elif rejection is not None:
        worst = max(1.0, power(rejection) * (1.0 - k) / k) / (1.0 - k)
    expected = (tabulated + best, None if worst is None else tabulated + _SPARE * worst)
    # steps are geometric, and every second one evaluates the loss
    steps = None if worst is None else quantile_of_sum([2.0 * worst])
    most = None if steps is None else tabulated + steps / 2.0 + 2.0 * math.sqrt(steps)
    typical = math.inf if worst is None else tabulated + math.sqrt(best * worst)
    return Forecast(expected=expected, nearly_all=(tabulated + best, most), typical=typical)
