"""The public floor p_0 of the acceptance probability, minorisation constants, and Example 1.

Proofs, and the correction of the paper's formulas: docs/theory/bounds.md. Everything here depends
on public quantities only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from expmech.core.rounding import float_up

_ROUND = 1e-12  # relative safety for the handful of float64 operations behind a bound
_CONSTANT_EXTRA = 23.0  # 4.1 exp(-23) < 2^-30: the range of log ratios grows twice
_LARGEST = 600.0  # nats: numbers of steps above exp(600) are cut there, since nobody can run them


def _inverse(log_value: float) -> float:
    """Return ``exp(-log_value)``, or exp(600) where that is more."""
    return math.exp(min(_LARGEST, -log_value))


def _down(log_value: float) -> float:
    return log_value - _ROUND * (1.0 + abs(log_value))


def _log_geometric_mean(c: float, n: float) -> float:
    """Return ``log((1/n) sum_{i<n} exp(-c i / n))``; the integral over [0, 1] if n is infinite."""
    if c <= 0.0:
        return 0.0
    if math.isinf(n):
        return math.log(-math.expm1(-c)) - math.log(c)
    return math.log(-math.expm1(-c)) - math.log(n) - math.log(-math.expm1(-c / n))


def log_acceptance_floor_box(
    slopes: Sequence[float], points: Sequence[float], *, energy_error: float = 0.0, gap: float = 0.0
) -> float:
    """Return ``log p_0`` for uniform proposals on a box, for all data at once, rounded down.

    Parameters
    ----------
    slopes : sequence of float
        ``c_j = eta G_j b_j``: energy per axis in nats, from the Lipschitz constants and the widths.
    points : sequence of float
        Lattice points per axis (``math.inf`` for the continuum).
    energy_error : float, default 0.0
        ``2 eta u + 2^-31``, what computing the loss may change.
    gap : float, default 0.0
        Public bound, in nats, on how far the envelope's offset lies below the true minimum.

    Returns
    -------
    float
        The logarithm of a lower bound on the acceptance probability.

    Examples
    --------
    >>> round(log_acceptance_floor_box([1.0], [math.inf]), 4)
    -0.4587
    """
    total = sum(_log_geometric_mean(c, n) for c, n in zip(slopes, points, strict=True))
    return _down(total - energy_error - gap)


def log_acceptance_floor_finite(log_size: float, energy_range: float, *, gap: float = 0.0) -> float:
    """Return ``log p_0`` for uniform proposals on any finite set: ``(1 + (l - 1) exp(-rho)) / l``.

    >>> round(log_acceptance_floor_finite(math.log(2.0), 1.0), 4)
    -0.3799
    """
    rest = -energy_range + (math.log1p(-math.exp(-log_size)) if log_size > 0.0 else -math.inf)
    largest = max(-log_size, rest)
    return _down(largest + math.log(math.exp(-log_size - largest) + math.exp(rest - largest)) - gap)


def log_acceptance_floor_convex(
    dimension: int,
    half_width: float,
    energy_range: float,
    *,
    energy_error: float = 0.0,
    gap: float = 0.0,
) -> float:
    """Return ``log p_0`` of a convex loss on the lattice of a box or a ball, rounded down.

    It is ``s^d exp(-s rho)`` at s about ``d / rho``, less a correction for the lattice. Proof:
    shrunk by s toward its minimum the domain keeps a share s^d of its points, and energies there
    are at most ``s rho`` above the least. Without convexity only exp(-rho) holds.

    >>> round(log_acceptance_floor_convex(5, 2.0**31, 25.0), 2)
    -13.05
    """
    d, around = dimension, dimension / 2.0
    shrink = 1.0 if energy_range <= d else d / energy_range
    inner = shrink * (half_width - d) - around
    if inner <= 0.0:
        return _down(-energy_range - energy_error - gap)
    share = d * (math.log(inner) - math.log(half_width + around))
    return _down(share - shrink * energy_range - 2.0 * energy_error - gap)


def log_beta_laplace(rates: Sequence[float], points: Sequence[float], log_floor: float) -> float:
    """Return ``log beta`` of the Laplace walk on a box whose moves out of it are refused.

    On the continuum (``points`` infinite) this is ``prod (alpha_j/2) exp(-alpha_j)`` times p_0.

    Parameters
    ----------
    rates : sequence of float
        alpha_j in nats per width of axis j.
    points : sequence of float
        Lattice points per axis.
    log_floor : float
        ``log p_0`` with gap 0.

    Returns
    -------
    float

    Examples
    --------
    >>> round(log_beta_laplace([1.0], [math.inf], 0.0), 4)
    -1.6931
    """
    total = log_floor
    for rate, n in zip(rates, points, strict=True):
        if math.isinf(n):
            total += math.log(rate / 2.0) - rate
        else:
            total += math.log(n * math.tanh(rate / (2.0 * n))) - rate * (n - 1.0) / n
    return _down(total)


def beta_uniform(n: int, epsilon: float, d: int) -> float:
    """Return the paper's beta of Example 1 with uniform proposals, ``((1 - exp(-c))/c)^d``.

    Parameters
    ----------
    n, epsilon, d
        Rows, budget and dimension; ``c = epsilon n / 2d``.

    Returns
    -------
    float

    Examples
    --------
    >>> round(beta_uniform(100, 0.01, 1), 4)
    0.7869
    """
    c = epsilon * n / (2 * d)
    return math.exp(log_acceptance_floor_box([c] * d, [math.inf] * d))


def beta_laplace(n: int, epsilon: float, d: int, alpha: float) -> float:
    """Return the corrected beta of Example 1 with Laplace proposals on the unit box.

    The printed formula has ``(2 alpha)^d`` and another factor; it is unsafe (errata, row 8).

    Parameters
    ----------
    n, epsilon, d
        Rows, budget and dimension.
    alpha : float
        Rate of the proposals in nats per width.

    Returns
    -------
    float

    Examples
    --------
    >>> round((1 - beta_laplace(100, 0.01, 1, 0.5)) ** 10, 3)
    0.281
    """
    c = epsilon * n / (2 * d)
    floor = log_acceptance_floor_box([c] * d, [math.inf] * d)
    return math.exp(log_beta_laplace([alpha] * d, [math.inf] * d, floor))


def delta_from_steps(epsilon: float, log_beta: float, steps: int) -> float:
    """Return ``(1 + e^epsilon) (1 - beta)^steps``, rounded up, at most 1.

    Parameters
    ----------
    epsilon : float
        The epsilon of the chain's target law.
    log_beta : float
        Logarithm of the minorisation beta.
    steps : int
        Steps of the chain.

    Returns
    -------
    float

    Examples
    --------
    >>> round(delta_from_steps(0.0, math.log(0.5), 4), 6)
    0.125
    """
    log_tv = steps * math.log1p(-math.exp(log_beta)) if log_beta < 0.0 else -math.inf
    log_delta = math.log1p(math.exp(-epsilon)) + epsilon + log_tv
    if log_delta >= 0.0:
        return 1.0
    delta = math.exp(log_delta) * (1.0 + _ROUND * (1.0 + abs(log_delta)))
    return min(1.0, math.nextafter(delta, 1.0))


def steps_from_delta(epsilon: float, log_beta: float, delta: float) -> int:
    """Return the fewest steps whose :func:`delta_from_steps` is at most ``delta``.

    Parameters
    ----------
    epsilon, log_beta : float
        As in :func:`delta_from_steps`.
    delta : float
        The largest delta that is acceptable.

    Returns
    -------
    int

    Examples
    --------
    >>> steps_from_delta(0.0, math.log(0.5), 0.126)
    4
    """
    if log_beta >= 0.0:
        return 1
    needed = math.log1p(math.exp(-epsilon)) + epsilon - math.log(delta)
    if log_beta < -_LARGEST:
        return math.ceil(needed * _inverse(log_beta))
    steps = max(1, math.ceil(needed / -math.log1p(-math.exp(log_beta))))
    while delta_from_steps(epsilon, log_beta, steps) > delta:
        steps += max(1, steps // 10**9)
    return steps


def _log_survival(log_beta: float) -> float:
    """Return ``log(1 - beta)`` to full relative precision; minus infinity where beta is 1."""
    if log_beta >= 0.0:
        return -math.inf
    if log_beta > -0.5:
        return math.log(-math.expm1(log_beta))
    return math.log1p(-math.exp(log_beta))


def _log_expm1(x: float) -> float:
    """Return ``log(e^x - 1)`` for x > 0."""
    return x + math.log(-math.expm1(-x))


def density_distance(
    log_beta: float, energy_range: float, steps: int, *, log_floor: float = 0.0
) -> float:
    """Return a bound on ``max_y |mu_m(y) / f(y) - 1|`` after m steps from a uniform start.

    It is ``(1 - beta)^m p_0 (e^rho - 1)``, rounded up, for a chain that is reversible with respect
    to f and has ``P(y, .) >= beta nu``. The size of the lattice does not enter. Proof:
    docs/theory/metropolis.md, section 3.

    Parameters
    ----------
    log_beta : float
        Logarithm of the minorisation beta.
    energy_range : float
        rho, a public bound on every difference of energies, in nats.
    steps : int
        m. Below 1/beta the floor is not used.
    log_floor : float, default 0.0
        ``log p_0``, where beta is p_0 times a number that does not depend on the data; 0 elsewhere.

    Examples
    --------
    >>> round(density_distance(math.log(0.5), 1.0, 10, log_floor=math.log(0.5)), 6)
    0.000839
    """
    floor = log_floor if steps * math.exp(log_beta) >= 1.0 else 0.0
    left = steps * _log_survival(log_beta)
    if energy_range <= 0.0 or left == -math.inf:
        return 0.0
    spread = _log_expm1(energy_range)
    log_distance = left + floor + spread + _ROUND * (1.0 + abs(left) + abs(floor) + abs(spread))
    return math.inf if log_distance > _LARGEST else math.nextafter(math.exp(log_distance), math.inf)


def pure_steps(
    log_beta: float, energy_range: float, *, tolerance: float, log_floor: float = 0.0
) -> int:
    """Return the steps after which ``|mu_m(y) / f(y) - 1| <= tolerance`` at every point.

    They are ``ceil((log(e^rho - 1) + log p_0 + log(1/tolerance)) / -log(1 - beta))``, and at least
    1/beta.

    >>> pure_steps(math.log(0.142), 10.8, tolerance=1 / 4000, log_floor=math.log(0.142))
    112
    """
    least = _inverse(log_beta) * (1.0 + _ROUND)
    spread = _log_expm1(energy_range) if energy_range > 0.0 else -math.inf
    needed = max(0.0, spread + log_floor - math.log(tolerance))
    needed += _ROUND * (1.0 + energy_range + abs(log_floor))
    # 1/beta is at least -1/log(1 - beta), and stands in for it where beta is tiny or 1
    pace = least if log_beta < -_LARGEST or log_beta >= 0.0 else -1.0 / _log_survival(log_beta)
    return max(1, math.ceil(least), math.ceil(needed * pace * (1.0 + _ROUND)))


def constant_rounds(log_floor: float, energy_range: float) -> int:
    """Return the rounds T after which missing every acceptance costs less than 2^-30 of epsilon.

    >>> constant_rounds(math.log(0.5), 1.0)
    49
    """
    return math.ceil((energy_range + _CONSTANT_EXTRA) * _inverse(log_floor) * (1.0 + _ROUND))


def posterior_epsilon(sensitivity: float, *, loss_error: float = 0.0) -> float:
    """Return the least epsilon at which a mechanism with a prior as its base draws the posterior.

    The loss is minus the log-likelihood and the energy scale eta is 1: ``epsilon = 2 (D + 2u) +
    1026 2^-40``, rounded up. Below it the likelihood is tempered by eta.

    Parameters
    ----------
    sensitivity : float
        D, what a row may move the log-likelihood by.
    loss_error : float, default 0.0
        u, as the certificate states it.

    Returns
    -------
    float

    Examples
    --------
    >>> round(posterior_epsilon(3.0), 6)
    6.0
    """
    most = Fraction(math.nextafter(sensitivity, math.inf)) + 2 * Fraction(loss_error)
    epsilon = float_up(2 * most + Fraction(1026, 1 << 40))
    return math.nextafter(epsilon, math.inf)  # the decimal text of a float is read downwards


def laplace_integral(rate: float, center: float) -> float:
    """Return the integral over [0, 1] of ``exp(-rate |y - center|)`` for a center in [0, 1].

    It is ``(2/rate) (F(1 - x; 1/rate) - F(-x; 1/rate))`` with F the Laplace distribution function
    of that scale; the paper inverts prefactor and scale (errata, row 9).

    Parameters
    ----------
    rate, center : float
        Nats per width, and x.

    Returns
    -------
    float

    Examples
    --------
    >>> round(laplace_integral(2.0, 0.0), 6)
    0.432332
    """
    if rate == 0.0:
        return 1.0
    return -(math.expm1(-rate * center) + math.expm1(-rate * (1.0 - center))) / rate


def acceptance_uniform(mean: Sequence[float], slope: float) -> float:
    """Return the infimum over y of p_Accept(y) for uniform proposals in Example 1.

    It is attained at ``y = mean``, and it is also the acceptance probability of uniform rejection.

    Parameters
    ----------
    mean : sequence of float
        The mean of the data in the unit box.
    slope : float
        Energy per width of an axis, in nats.

    Returns
    -------
    float

    Examples
    --------
    >>> round(acceptance_uniform([0.5], 2.0), 6)
    0.632121
    """
    return math.prod(laplace_integral(slope, x) for x in mean)


def acceptance_laplace(y: float, mean: float, slope: float, alpha: float) -> float:
    """Return p_Accept(y) of Laplace(alpha) proposals for ``exp(-slope |y - mean|)`` on [0, 1].

    Parameters
    ----------
    y, mean : float
        The state and the mode, in [0, 1].
    slope, alpha : float
        Rates of the target and of the proposals, in nats per width.

    Returns
    -------
    float

    Examples
    --------
    >>> round(acceptance_laplace(0.5, 0.5, 2.0, 2.0), 6)
    0.432332
    """
    if y > mean:
        y, mean = 1.0 - y, 1.0 - mean
    both = alpha + slope
    away = alpha / (2.0 * both) * -math.expm1(-both * y)
    level = min(2.0 * (mean - y), 1.0 - y)  # up to here a move to the right is not downhill
    toward = -math.expm1(-alpha * level) / 2.0
    beyond = (
        alpha
        / (2.0 * both)
        * (math.exp(-alpha * level) - math.exp(slope * level - both * (1.0 - y)))
    )
    return away + toward + beyond


def acceptance_laplace_infimum(mean: Sequence[float], slope: float, alpha: float) -> float:
    """Return a lower bound on p_Accept over the unit box for Laplace(alpha) proposals.

    It is exact in one dimension: there p_Accept is concave on each side of the mean, so its infimum
    is at 0, at 1 or at the mean. The paper takes the mean always, which is too large when ``alpha >
    slope``.

    Parameters
    ----------
    mean : sequence of float
        The mean of the data in the unit box.
    slope, alpha
        As in :func:`acceptance_laplace`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(acceptance_laplace_infimum([0.5], 2.0, 2.0), 6)
    0.432332
    """
    return math.prod(
        min(
            acceptance_laplace(0.0, x, slope, alpha),
            acceptance_laplace(x, x, slope, alpha),
            acceptance_laplace(1.0, x, slope, alpha),
        )
        for x in mean
    )


def log_acceptance_floor_walk(
    rates: Sequence[float], slopes: Sequence[float], points: Sequence[float]
) -> float:
    """Return a certified lower bound on ``log inf_y p_Accept(y)`` of the Laplace walk on a box.

    It holds for every data set and every loss with these Lipschitz constants. The paper leaves this
    bound to the user.

    Parameters
    ----------
    rates : sequence of float
        alpha_j in nats per width of axis j.
    slopes : sequence of float
        ``c_j = eta G_j b_j``, from the Lipschitz constants and the widths.
    points : sequence of float
        Lattice points per axis, ``math.inf`` for the continuum.

    Returns
    -------
    float

    Notes
    -----
    A move of length t on axis j is accepted with at least exp(-c_j t), so p_Accept is at least the
    product of ``sum_t q_j(t) exp(-c_j |t|)`` over the moves that stay in the box, least at an end.
    For uniform proposals :func:`log_acceptance_floor_box` does the same.

    Examples
    --------
    >>> round(log_acceptance_floor_walk([1.0], [1.0], [math.inf]), 4)
    -1.5317
    """
    total = 0.0
    for rate, slope, n in zip(rates, slopes, points, strict=True):
        both = rate + slope
        inside = math.log(-math.expm1(-both))
        if math.isinf(n):
            total += math.log(rate / 2.0) - math.log(both) + inside
        else:
            first = math.log(math.tanh(rate / (2.0 * n)))
            total += first + inside - math.log(-math.expm1(-both / n))
    return total - 1e-12 * (1.0 + abs(total))


def expected_steps_conf_atom(
    offset: float, log_weight: float, log_atom_mass: float, log_normaliser: float
) -> float:
    """Return ``2 e^B (1 + w / Z_f)``, ``B = max(0, m - W)``: mean steps of ConfAtomPerfect.

    Parameters
    ----------
    offset, log_weight : float
        m, the certified offset of the re-entry law, and W, the atom's log weight, in nats.
    log_atom_mass, log_normaliser : float
        Logarithms of the atom's mass w and of the normaliser Z_f.

    Returns
    -------
    float

    Examples
    --------
    At W = m the atom is rejection with a detour: 2 (1 + M/Z) steps.

    >>> expected_steps_conf_atom(0.0, 0.0, math.log(3.0), 0.0)
    8.0
    """
    tag = max(0.0, offset - log_weight)
    return 2.0 * math.exp(tag) * (1.0 + math.exp(log_atom_mass - log_normaliser))


def expected_cost_constant_mixture(k: float, continuous: float, points: int) -> float:
    """Return the mean loss evaluations of ``(1-k) f + k g`` with constant k, drawn by one coin.

    Parameters
    ----------
    k : float
        Probability that all points are evaluated and one of them is drawn.
    continuous : float
        Mean evaluations of a draw from f.
    points : int
        Number of public points, the support of g.

    Returns
    -------
    float

    Examples
    --------
    >>> expected_cost_constant_mixture(0.5, 10.0, 4)
    7.0
    """
    return (1.0 - k) * continuous + k * points
