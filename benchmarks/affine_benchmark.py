"""The affine envelope on K-norm gradient ridge regression.

Acceptance, time of a draw, and what is done where the domain binds.

    python -m benchmarks.affine_benchmark

Columns share one factor (correlation about 0.9). The float64 side solves the same linear system for
Laplace noise (L1), or for a uniform point of a cube of Gamma half-width (L-infinity), without
rounding, domain or proof: the least a draw can cost in NumPy.
"""

from __future__ import annotations

import argparse
import itertools
import math
import platform
import time
from fractions import Fraction
from typing import Any

import numpy as np

import expmech as em
from benchmarks.support import write
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.exponential.envelopes.affine import BoundAffine, bind_split
from expmech.exponential.envelopes.affine_fit import Split
from expmech.exponential.envelopes.affine_vertex import BoundVertex
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import Target, make_target

RADIUS = 4.0
DRAWS = 10_000
ROWS = 100_000
MOST_PROPOSALS, ENOUGH = 1 << 20, 400


def make_loss(p: int, n: int, norm: str) -> em.losses.RidgeGradient:
    """Return the loss of n rows: 10^5 simulated ones, their cross products taken n / 10^5 times."""
    generator = np.random.default_rng(p)
    rows = min(n, ROWS)
    shared = 0.45 * generator.normal(size=(rows, 1))
    features = np.clip(shared + 0.15 * generator.normal(size=(rows, p)), -1.0, 1.0)
    responses = np.clip(
        features[:, 0] * 0.5 - features[:, 1] * 0.3 + 0.1 * generator.normal(size=rows), -1.0, 1.0
    )
    whole = np.rint(np.column_stack([features, responses]) * 2.0**10)
    products = (whole.T @ whole).astype(np.int64).astype(object) * (n // rows)
    return em.losses.RidgeGradient.from_moments(
        count=n,
        gram=products[:p, :p].tolist(),
        moment=products[:p, p].tolist(),
        scale=1 << 10,
        penalty=1.0,
        radius=RADIUS,
        norm=norm,
    )


def float_draws(loss: em.losses.RidgeGradient, eta: float, size: int) -> float:
    """Return the seconds NumPy takes for as many draws in float64."""
    generator = np.random.default_rng(0)
    start = time.perf_counter()
    p = loss.dimension
    if loss.norm == "l1":
        noise = generator.laplace(scale=1.0 / eta, size=(size, p))
    else:
        noise = generator.uniform(-1.0, 1.0, size=(size, p)) * generator.gamma(
            p + 1.0, 1.0 / eta, size=(size, 1)
        )
    np.linalg.solve(loss.affine.matrix, (noise + loss.affine.vector).T)
    return time.perf_counter() - start


def make_regression(n: int, p: int, norm: str) -> em.losses.RidgeGradient:
    """Return a regression of the size of the diabetes data.

    A constant and p - 1 correlated features of standard deviation 1/4.

    The solution has an L1 norm of about 2.
    """
    generator = np.random.default_rng(1)
    features = generator.normal(size=(n, 3)) @ generator.normal(size=(3, p - 1)) + generator.normal(
        size=(n, p - 1)
    )
    features = np.clip(features / features.std(axis=0) / 4.0, -1.0, 1.0)
    responses = (
        features @ (0.25 * generator.normal(size=p - 1)) - 0.2 + 0.3 * generator.normal(size=n)
    )
    return em.losses.RidgeGradient(
        np.column_stack([np.ones(n), features]), responses, penalty=1.0, radius=1.0, norm=norm
    )


def describe(envelope: Any) -> str:
    """Say which of its forms the envelope took."""
    if isinstance(envelope, BoundVertex):
        return "vertex"
    if isinstance(envelope, BoundAffine):
        solved = f"{len(envelope.split.columns)} solved"
        return f"{solved}, pulled" if any(envelope.split.pull) else solved
    return "uniform"


def proposals(target: Target, envelope: Any) -> tuple[float, float]:
    """Return the share of accepted proposals, of at most 2^20, and the seconds a proposal takes."""
    accepted = made = 0
    coins, start = Coins(seeded_bits(1)), time.perf_counter()
    while made < MOST_PROPOSALS and accepted < ENOUGH:
        accepted += int(propose(target, envelope, coins, 1 << 15)[1].sum())
        made += 1 << 15
    return accepted / made, (time.perf_counter() - start) / made


def log_proposals(target: Target, envelope: Any, log_normaliser: float) -> float:
    """Return log10 of the mean proposals of an envelope.

    Z_f is known from the acceptance of another.
    """
    return float(envelope.offset / 2.0**40 + envelope.log_mass() - log_normaliser) / math.log(10.0)


def measure(p: int, n: int, norm: str, epsilon: float) -> dict[str, float]:
    loss = make_loss(p, n, norm)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.L1Ball(p, RADIUS))
    target = make_target(mechanism._problem, Fraction(epsilon))
    start = time.perf_counter()
    envelope = em.Affine().bind(target)
    fit = time.perf_counter() - start
    assert isinstance(envelope, BoundAffine)
    start = time.perf_counter()
    accepted = propose(target, envelope, Coins(seeded_bits(1)), DRAWS)[1]
    spent = time.perf_counter() - start
    share = float(accepted.mean())
    start = time.perf_counter()
    mechanism.release(epsilon=epsilon, sampler=em.Rejection(em.Affine()))
    release = time.perf_counter() - start
    log_normaliser = math.log(share) + envelope.offset / 2.0**40 + envelope.log_mass()
    return {
        "condition": float(np.linalg.cond(loss.affine.matrix)),
        "acceptance": share,
        "fit": fit,
        "release": release,
        "draw": spent / max(1, int(accepted.sum())),
        "float": float_draws(loss, target.eta, DRAWS) / DRAWS,
        "uniform": log_proposals(target, em.Uniform().bind(target), log_normaliser),
    }


def row(loss: em.losses.RidgeGradient, radius: float, epsilon: float, first: list[str]) -> str:
    """Return a row of a table.

    What was chosen, what it costs, and what solving for all or uniform proposals would.
    """
    p = loss.dimension
    target = em.ExponentialMechanism(loss=loss, domain=em.L1Ball(p, radius)).target(epsilon=epsilon)
    envelope: Any = em.Affine().bind(target)
    share, seconds = proposals(target, envelope)
    cells = [
        *first,
        describe(envelope),
        f"{share:.4f}" if share > 0.001 else f"{share:.1e}",
        f"{1e6 * seconds:.1f}",
    ]
    if share == 0.0:
        return f"| {' | '.join(cells)} | | |"
    log_normaliser = math.log(share) + envelope.offset / 2.0**40 + envelope.log_mass()
    whole = Split(rows=tuple(range(p)), columns=tuple(range(p)), others=(), pull=(0.0,) * p)
    full = bind_split(target, loss.affine, em.L1Ball(p, radius), Fraction(1, 1 << 10), whole)
    others = [
        log_proposals(target, one, log_normaliser) for one in (full, em.Uniform().bind(target))
    ]
    return f"| {' | '.join(cells + [f'10^{one:.1f}' for one in others])} |"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    lines = [
        "# Affine envelope",
        "",
        (
            f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()};"
            " `benchmarks/affine_benchmark.py`."
        ),
        (
            "K-norm gradient ridge, columns with correlation about 0.9, penalty 1, epsilon = 1, one"
            " row replaced;"
        ),
        f"L1 ball of radius {RADIUS:g} with 32 bits an axis; {DRAWS} proposals a line.",
        (
            "A release includes the fit and the certificate. The last column is what uniform"
            " rejection would need."
        ),
        "Timings are noisy: compare within a line.",
        "",
        "## The domain does not bind (n = 10^6)",
        "",
        (
            "| p | norm | condition | acceptance | fit, ms | release, ms | draw, us | ratio to"
            " float64 NumPy | uniform: proposals |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for norm in ("l1", "linf"):
        for p in (5, 20, 50):
            found = measure(p, 10**6, norm, 1.0)
            cells = [
                f"{p}",
                norm,
                f"{found['condition']:.0f}",
                f"{found['acceptance']:.4f}",
                f"{1e3 * found['fit']:.1f}",
            ]
            cells += [
                f"{1e3 * found['release']:.0f}",
                f"{1e6 * found['draw']:.1f}",
                f"{found['draw'] / found['float']:.1f}",
            ]
            lines.append(f"| {' | '.join(cells)} | 10^{found['uniform']:.0f} |")
    columns = "| chosen | acceptance | us a proposal | all solved: proposals | uniform: proposals |"
    lines += [
        "",
        "## Where the domain begins to bind, and large n",
        "",
        (
            f"At most {MOST_PROPOSALS} proposals a line. The last two columns are what the envelope"
            " that solves for all coordinates,"
        ),
        "and uniform rejection, would need; no acceptance leaves them open.",
        "",
        f"| p | norm | n {columns}",
        "|---|---|---|---|---|---|---|---|",
    ]
    for p, norm in itertools.product((6, 20, 50), ("l1", "linf")):
        for n in (10**3, 10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 10**8):
            if n >= 150 * p:
                lines.append(row(make_loss(p, n, norm), RADIUS, 1.0, [f"{p}", norm, f"{n}"]))
    lines += [
        "",
        "## A regression of the size of the diabetes data",
        "",
        (
            "353 rows, a constant and p - 1 correlated features of standard deviation 1/4, radius"
            " 1, penalty 1;"
        ),
        "for p = 11 and 16 the ball does not hold the solution, whose L1 norm is about 2.",
        "",
        f"| p | norm | epsilon {columns}",
        "|---|---|---|---|---|---|---|---|",
    ]
    for p, norm in ((6, "linf"), (11, "linf"), (11, "l1"), (16, "linf")):
        for epsilon in (0.1, 1.0, 3.0, 10.0, 20.0, 40.0, 100.0, 1000.0):
            lines.append(
                row(make_regression(353, p, norm), 1.0, epsilon, [f"{p}", norm, f"{epsilon:g}"])
            )
    write("affine", lines, module="affine_benchmark")


if __name__ == "__main__":
    main()
