"""The affine envelope on K-norm gradient ridge regression: acceptance, time of a draw, and where the domain begins to bind.

    python benchmarks/affine_benchmark.py [--output benchmarks/results/affine.md]

Columns share one factor (correlation about 0.9). The float64 side solves the same linear system for Laplace noise (L1), or for a
uniform point of a cube of Gamma half-width (L-infinity), without rounding, domain or proof: the least a draw can cost in NumPy.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import expmech as em
from expmech.bits import seeded_bits
from expmech.coins import Coins
from expmech.envelopes.affine import BoundAffine
from expmech.samplers.rejection import propose
from expmech.target import Target, make_target

RADIUS = 4.0
DRAWS = 10_000
ROWS = 100_000


def make_loss(p: int, n: int, norm: str) -> em.losses.RidgeGradient:
    """Return the loss of n rows: 10^5 simulated ones, their cross products taken n / 10^5 times."""
    generator = np.random.default_rng(p)
    rows = min(n, ROWS)
    shared = 0.45 * generator.normal(size=(rows, 1))
    features = np.clip(shared + 0.15 * generator.normal(size=(rows, p)), -1.0, 1.0)
    responses = np.clip(features[:, 0] * 0.5 - features[:, 1] * 0.3 + 0.1 * generator.normal(size=rows), -1.0, 1.0)
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
        noise = generator.uniform(-1.0, 1.0, size=(size, p)) * generator.gamma(p + 1.0, 1.0 / eta, size=(size, 1))
    np.linalg.solve(loss.affine.matrix, (noise + loss.affine.vector).T)
    return time.perf_counter() - start


def uniform_exponent(target: Target, envelope: BoundAffine, acceptance: float) -> float:
    """Return log10 of the mean proposals of uniform rejection; Z_f is known from the acceptance of the affine envelope."""
    log_normaliser = math.log(acceptance) + envelope.offset / 2.0**40 + envelope.log_mass()
    return (target.domain.log_size - target.minimum_energy / 2.0**40 - log_normaliser) / math.log(10.0)


def measure(p: int, n: int, norm: str, epsilon: float) -> dict[str, float]:
    loss = make_loss(p, n, norm)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.L1Ball(p, RADIUS))
    target = make_target(mechanism._problem, Fraction(epsilon))
    start = time.perf_counter()
    envelope = em.Affine().bind(target)
    fit = time.perf_counter() - start
    assert isinstance(envelope, BoundAffine)
    start = time.perf_counter()
    indices, accepted = propose(target, envelope, Coins(seeded_bits(1)), DRAWS)
    spent = time.perf_counter() - start
    share = float(accepted.mean())
    start = time.perf_counter()
    if share > 0.05:
        mechanism.release(epsilon=epsilon, sampler=em.Rejection(em.Affine()))
    release = time.perf_counter() - start
    return {
        "condition": float(np.linalg.cond(loss.affine.matrix)),
        "inside": float(target.domain.contains(indices).mean()),
        "acceptance": share,
        "fit": fit,
        "release": release,
        "draw": spent / max(1, int(accepted.sum())),
        "float": float_draws(loss, target.eta, DRAWS) / DRAWS,
        "uniform": uniform_exponent(target, envelope, share) if share > 0.0 else math.nan,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/affine.md"))
    output = parser.parse_args().output
    lines = [
        "# Affine envelope",
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}; `benchmarks/affine_benchmark.py`.",
        "K-norm gradient ridge, columns with correlation about 0.9, penalty 1, epsilon = 1, one row replaced;",
        f"L1 ball of radius {RADIUS:g} with 32 bits an axis; {DRAWS} proposals a line.",
        "A release includes the fit and the certificate. The last column is what uniform rejection would need.",
        "",
        "## The domain does not bind (n = 10^6)",
        "",
        "| p | norm | condition | acceptance | fit, ms | release, ms | draw, us | ratio to float64 NumPy | uniform: proposals |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for norm in ("l1", "linf"):
        for p in (5, 20, 50):
            found = measure(p, 10**6, norm, 1.0)
            cells = [f"{p}", norm, f"{found['condition']:.0f}", f"{found['acceptance']:.4f}", f"{1e3 * found['fit']:.1f}"]
            cells += [f"{1e3 * found['release']:.0f}", f"{1e6 * found['draw']:.1f}", f"{found['draw'] / found['float']:.1f}"]
            lines.append(f"| {' | '.join(cells)} | 10^{found['uniform']:.0f} |")
    lines += [
        "",
        "## Where it begins to bind, and large n",
        "",
        "| p | norm | n | proposals inside the ball | acceptance |",
        "|---|---|---|---|---|",
    ]
    for p, norm in ((5, "l1"), (5, "linf"), (20, "l1"), (20, "linf"), (50, "l1"), (50, "linf")):
        for n in (10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 10**8):
            found = measure(p, n, norm, 1.0)
            lines.append(f"| {p} | {norm} | {n} | {found['inside']:.4f} | {found['acceptance']:.4f} |")
    output.parent.mkdir(exist_ok=True)
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
