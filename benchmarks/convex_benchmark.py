"""Exact logistic regression by the convex envelope.

Loss evaluations a draw, where it stops being practical, and what else applies.

    python -m benchmarks.convex_benchmark

Rows are normal vectors scaled to norm one, then one axis shrunk so that the smallest eigenvalue of
their second moments is the given part of the others. The normaliser follows from the measured
acceptance, and with it what other methods would need. The Huber column is the envelope of
one-dimensional Huber factors in whitened coordinates, in float64 and without rounding or proof.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import expmech as em
from benchmarks.support import write
from expmech.core.bits import seeded_bits
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.domains import Domain
from expmech.exponential.envelopes.convex import BoundConvex
from expmech.exponential.target import Target

PROPOSALS = 20_000
LOOKED_AT = 300


def simulate(
    n: int, p: int, *, smallest: float = 1.0, strength: float = 3.0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(p)
    rows = generator.normal(size=(n, p))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    rows[:, 0] *= math.sqrt(smallest)
    direction = generator.normal(size=p)
    direction *= strength / np.linalg.norm(direction)
    return rows, (generator.uniform(size=n) < 1.0 / (1.0 + np.exp(-rows @ direction))).astype(
        np.int64
    )


def ball_or_box(p: int, radius: float) -> Domain:
    """Return the ball, or beyond the dimension that L2Ball serves the cube in it."""
    half = radius / math.sqrt(p) * (1.0 - 1e-9)
    return em.L2Ball(p, radius) if p <= 16 else em.Box([-half] * p, [half] * p)


@dataclass(frozen=True)
class Cost:
    """Evaluations and proposals a draw, seconds a release, and log Z_f."""

    envelope: str
    evaluations: float
    proposals: float
    seconds: float
    log_normaliser: float


def measure(mechanism: em.ExponentialMechanism, target: Target) -> Cost:
    """Propose, look at some of the proposals inside the domain.

    And average what would be accepted.
    """
    start = time.process_time()
    envelope = em.Convex().bind(target)
    fit = time.process_time() - start
    indices, drawn_with = envelope.propose(Coins(seeded_bits(1)), PROPOSALS)
    inside = np.flatnonzero(target.domain.contains(indices))
    share = len(inside) / PROPOSALS
    lot = inside[: 20 * LOOKED_AT if target.problem.loss.gradient_error < 1e-7 else LOOKED_AT]  # type: ignore[attr-defined]
    if lot.size == 0:
        return Cost("convex", math.inf, math.inf, math.inf, -math.inf)
    start = time.process_time()
    deficit = (
        target.energy(indices[lot]) + envelope.offset - np.broadcast_to(drawn_with, PROPOSALS)[lot]
    )
    evaluation = (time.process_time() - start) / lot.size
    accepted = float(np.exp(-deficit / UNITS_PER_NAT).mean())
    log_mass = envelope.log_mass()  # type: ignore[attr-defined]
    return Cost(
        "convex" if isinstance(envelope, BoundConvex) else "uniform",
        1.0 / accepted,
        1.0 / accepted / share,
        fit + evaluation / accepted,
        math.log(accepted * share) + envelope.offset / UNITS_PER_NAT + log_mass,
    )


def huber_proposals(loss: em.losses.LogisticRisk, target: Target, log_normaliser: float) -> float:
    """Return log10 of the proposals of the product of Huber factors, with the best threshold."""
    curvature = target.problem.curvature
    assert curvature is not None
    box = target.domain if isinstance(target.domain, em.Box) else target.domain.cube  # type: ignore[attr-defined]
    matrix, p = target.eta * curvature.hessian, loss.dimension
    whiten = np.linalg.inv(np.linalg.cholesky(matrix))
    skew = float(np.sqrt(((whiten @ loss._columns) ** 2).sum(axis=0)).max())
    energy = target.eta * curvature.value
    integral = (
        log_normaliser
        + energy
        + float(np.log(box.steps).sum())
        + np.linalg.slogdet(matrix)[1] / 2.0
    )
    best = math.inf
    for reach in np.geomspace(0.5, 200.0, 200).tolist():
        x = skew * reach
        curve, bend = 2.0 * (math.expm1(-x) + x) / x**2, reach / (2.0 * math.sqrt(p))
        center = math.sqrt(2.0 * math.pi / curve) * math.erf(bend * math.sqrt(curve / 2.0))
        tails = 2.0 * math.exp(-curve * bend**2 / 2.0) / (curve * bend)
        best = min(best, p * math.log(center + tails))
    return float(best - integral) / math.log(10.0)


def metropolis_steps(target: Target) -> str:
    """Return log10 of the steps of pure Metropolis with uniform proposals.

    From public quantities.
    """
    floor, span = target.log_floor(), target.energy_range
    if floor is None or span is None:
        return "none"
    return f"10^{(math.log(span + target.domain.log_size + 28.0) - floor) / math.log(10.0):.0f}"


def uniform_proposals(target: Target, log_normaliser: float) -> float:
    curvature = target.problem.curvature
    assert curvature is not None
    return (target.domain.log_size - target.eta * curvature.value - log_normaliser) / math.log(10.0)


def show(number: float) -> str:
    return (
        "above 10^4" if not number < 1e4 else f"{number:.2f}" if number < 10.0 else f"{number:.0f}"
    )


def line(
    n: int, p: int, epsilon: float, radius: float, *, smallest: float = 1.0, strength: float = 3.0
) -> str:
    rows, labels = simulate(n, p, smallest=smallest, strength=strength)
    loss = em.losses.LogisticRisk(rows, labels, penalty=1.0, radius=radius)
    mechanism = em.ExponentialMechanism(loss=loss, domain=ball_or_box(p, radius))
    target = mechanism.target(epsilon=epsilon)
    cost = measure(mechanism, target)
    curvature = target.problem.curvature
    assert curvature is not None
    known = math.isfinite(cost.log_normaliser)
    cells = [
        str(n),
        str(p),
        f"{epsilon:g}",
        f"{radius:g}",
        f"{smallest:g}",
        f"{np.linalg.norm(curvature.center) / radius:.2f}",
    ]
    cells += [
        f"{curvature.skew / math.sqrt(target.eta):.3f}",
        cost.envelope,
        show(cost.evaluations),
        show(cost.proposals),
    ]
    cells += [f"{cost.seconds:.2f}" if cost.seconds < 100.0 else "-"]
    cells += [
        show(10.0 ** min(9.0, huber_proposals(loss, target, cost.log_normaliser))) if known else "-"
    ]
    cells += [
        f"10^{uniform_proposals(target, cost.log_normaliser):.0f}" if known else "-",
        metropolis_steps(target),
    ]
    return f"| {' | '.join(cells)} |"


class Counted(em.losses.LogisticRisk):
    """The loss, counting the points where it.

    Its gradient or its second derivatives are evaluated.
    """

    points = 0

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        self.points += len(y)
        return super().__call__(y)

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        self.points += len(y)
        return super().gradient(y)

    def row_weights(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        self.points += 1
        return super().row_weights(y)


def beside(n: int, p: int, half: float, strength: float) -> str:
    """Compare on a box: the convex and the tangent envelope, and the first draw of the box tree."""
    rows, labels = simulate(n, p, strength=strength)
    loss = Counted(rows, labels, penalty=1.0, radius=half * math.sqrt(p) * (1.0 + 1e-9))
    counts = []
    for sampler in (em.Rejection(em.Convex()), em.Rejection(em.Tangent()), em.BoxTree()):
        before, draws = loss.points, 10
        for seed in range(draws):
            mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([-half] * p, [half] * p))
            mechanism.sample(epsilon=1.0, size=1, sampler=sampler, seed=seed)
        counts.append((loss.points - before) / draws)
    cells = [str(n), str(p), f"{half:g}", f"{strength:g}", *(f"{count:.0f}" for count in counts)]
    return f"| {' | '.join(cells)} |"


HEAD = [
    (
        "| n | p | epsilon | B | smallest eigenvalue | optimum / B | kappa | envelope | evaluations"
        " a draw | proposals a draw | seconds a release | Huber: proposals | uniform | pure"
        " Metropolis: steps |"
    ),
    "|" + "---|" * 14,
]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    lines = [
        "# Convex envelope",
        "",
        (
            f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()};"
            " `benchmarks/convex_benchmark.py`."
        ),
        (
            "Logistic regression, penalty 1, one row replaced, rows of norm at most one; ball of"
            " radius B with 32 bits an axis"
        ),
        (
            "(p of 20 and 50: the cube in it). kappa is the skew in whitened coordinates. Seconds"
            " of processor time: optimum, fit"
        ),
        (
            "and evaluations of one release; timings are noisy. Huber and uniform (under the"
            " certified minimum) are computed from"
        ),
        (
            "the normaliser that the acceptance implies, pure Metropolis (uniform proposals) from"
            " public quantities."
        ),
        "",
        (
            "Reading: evaluations a draw are about exp(kappa p^1.5 / 6). Conditioning does not"
            " matter, and a ball that binds costs"
        ),
        (
            "a factor of two. It stops being practical between the regimes: n large enough for the"
            " law to be narrow (10^3 rows at p"
        ),
        (
            "= 10, 10^4 at p = 20, 10^5 at p = 50, for epsilon = 1 and B = 10; n epsilon / B is"
            " what counts), or so small that"
        ),
        "uniform proposals serve.",
        "",
        "## Conditioning",
        "",
        *HEAD,
        *(line(100_000, 10, 1.0, 10.0, smallest=smallest) for smallest in (1.0, 0.1, 0.01, 0.001)),
        "",
        "## Rows and dimension",
        "",
        *HEAD,
        *(line(n, p, 1.0, 10.0) for p in (2, 5, 10, 20, 50) for n in (100, 1000, 10_000, 100_000)),
        "",
        "## Epsilon",
        "",
        *HEAD,
        *(line(n, 10, epsilon, 10.0) for n in (10_000, 100_000) for epsilon in (0.1, 1.0, 10.0)),
        "",
        "## A ball that binds",
        "",
        *HEAD,
        *(
            line(n, 10, 1.0, radius, strength=5.0)
            for radius in (3.0, 1.0, 0.3)
            for n in (1000, 10_000, 100_000)
        ),
        "",
        "## On a box: passes over the data a release, probe points, optimum and fit included",
        "",
        "Half-width and strength of the signal decide whether the box binds.",
        "",
        "| n | p | half-width | strength | Convex | Tangent | BoxTree |",
        "|---|---|---|---|---|---|---|",
        *(
            beside(n, p, half, strength)
            for p in (2, 3)
            for n in (300, 3000)
            for half, strength in ((4.0, 2.0), (0.5, 5.0))
        ),
    ]
    write("convex", lines, module="convex_benchmark")


if __name__ == "__main__":
    main()
