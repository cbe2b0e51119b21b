"""Fifty histograms under one budget with a delta: the error of each count, beside OpenDP's.

``python -m benchmarks.many_numbers`` writes benchmarks/results/many_numbers.md.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import write
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.ledger import Ledger
from expmech.ledger.entries import Entry
from expmech.mechanisms.noisy_sums import Counts, DiscreteLaplace, NoisySums

HISTOGRAMS = 50
EPSILON, DELTA = 1, Fraction(1, 10**6)
SIZES = (2, 20, 1000)
DRAWS = 40_000


def prepared(ledger: Ledger, size: int, epsilon: Fraction) -> tuple[NoisySums, Entry]:
    """Return a histogram under a ledger, and what it is charged."""
    mechanism = NoisySums(
        totals=[0] * size,
        interpretation=Counts(size=size, disjoint=True),
        adjacency="add-remove",
        concentrated=ledger.rho_budget(),
    )
    certificate = mechanism.certificate(epsilon=epsilon)
    entry = Entry(
        epsilon=certificate.epsilon, delta=certificate.delta, certificate=certificate.to_json()
    )
    return mechanism, entry


def new_ledger(folder: str, name: str) -> Ledger:
    return Ledger.create(
        Path(folder) / name, data_set="d", epsilon=EPSILON, delta=DELTA, adjacency="add-remove"
    )


def largest_epsilon(ledger: Ledger) -> Fraction:
    """Return the most millionths of epsilon at which the ledger allows all histograms."""
    low, high = 1, 1_000_000
    while high - low > 1:
        middle = (low + high) // 2
        mechanism, _ = prepared(ledger, 2, Fraction(middle, 10**6))
        certificate = mechanism.certificate(epsilon=Fraction(middle, 10**6))
        rho = NoisySums.rho(certificate, Fraction(middle, 10**6))
        allowed = HISTOGRAMS * rho <= ledger.limits.rho
        low, high = (middle, high) if allowed else (low, middle)
    return Fraction(low, 10**6)


def opendp_noise() -> tuple[float, Any]:
    """Return the least scale of OpenDP's Gaussian at which all histograms cost the budget."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)

    def spent(scale: float) -> float:
        each = dp.m.make_gaussian(*space, scale=scale)
        together = dp.c.make_composition([each] * HISTOGRAMS)
        converted: Any = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(together), float(DELTA))
        return float(converted.map(1.0)[0])

    low, high = 1.0, 1000.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if spent(middle) <= EPSILON else (middle, high)
    return high, dp.m.make_gaussian(*space, scale=high)


def main() -> None:
    """Charge the histograms, draw, and write the page."""
    scale, theirs = opendp_noise()
    other = np.abs(np.array(theirs([0] * DRAWS)))
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        epsilon = largest_epsilon(new_ledger(folder, "search"))
        for size in SIZES:
            ledger = new_ledger(folder, str(size))
            for _ in range(HISTOGRAMS):
                mechanism, entry = prepared(ledger, size, epsilon)
                ledger.charge_all([entry])
            noise = mechanism.noise(epsilon)
            drawn = np.abs(noise.draw(Coins(seeded_bits(size)), DRAWS // size))
            pure = DiscreteLaplace(rate=Fraction(EPSILON, HISTOGRAMS))
            lines.append(
                f"| {size} | {noise.name} | {drawn.mean():.1f} | {noise.half_width} |"
                f" {other.mean():.1f} | {float(noise.scale) / (scale * (2 / np.pi) ** 0.5):.5f} |"
                f" {float(pure.scale):.1f} |"
            )
        spent = ledger.spent[0]
    text = (
        "# Many numbers under one budget\n\n"
        f"`python -m benchmarks.many_numbers`. {HISTOGRAMS} histograms under one ledger of epsilon"
        f" = {EPSILON}, delta = 1e-6, one row added or removed, each asked for at epsilon ="
        f" {float(epsilon):g}: all are charged, and {float(spent):.6f} is spent. OpenDP: its"
        " discrete Gaussian at the least scale for which the composition of as many, converted by"
        " OpenDP from zCDP to this delta, costs epsilon = 1. The mean absolute errors of a count"
        f" are over {DRAWS} draws; the ratio is that of the two laws. Goal: at most 1.\n\n"
        "| cells | noise | mean error | 95% half-width | OpenDP's mean error | ratio | Laplace"
        " noise, epsilon / 50 each |\n|---|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n\n"
        "The ratio differs from 1 by roundings: a budget is shared in millionths of epsilon here,"
        " and both convert rho by a bound over Renyi orders.\n"
    )
    write("many_numbers", text.splitlines())


if __name__ == "__main__":
    main()
