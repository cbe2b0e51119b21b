"""How many true groups are shown where nobody listed them, beside opendp's threshold.

    pip install opendp==0.16.0 && python -m benchmarks.unknown_groups [--draws 20000]

Towns have sizes by Zipf's law, a person has one row, and tables differ by one row. Both sides add
discrete Laplace noise and show a count that reaches a threshold. The delta of a threshold t is the
chance that a town of one person is shown, P(1 + Z >= t); opendp states P(Z >= t), which is smaller
by exp(epsilon). The page therefore has opendp's threshold at the delta it states, and at the delta
it has. Numbers of towns shown are expectations, the sum of P(n + Z >= t) over all towns of n rows,
and not simulated. That opendp's noise has this law is drawn: the share of releases that show a town
of one person.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import expmech as em
from benchmarks.support import prose, table, write

_LARGEST, _TOWNS = 20_000, 5_000
_CHECKED = (1.0, 3)  # an epsilon and a threshold low enough to draw its delta
_CELLS = ((0.3, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (3.0, 1e-6))


def towns() -> dict[str, int]:
    """Return the sizes of towns by name."""
    return {f"town {k}": _LARGEST // k for k in range(1, _TOWNS + 1) if _LARGEST // k}


def opendp_measurement(epsilon: float, threshold: int) -> Any:
    """Return opendp's noisy counts that reach a threshold, for a person with one row."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    counts = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    metric = dp.l01inf_distance(dp.absolute_distance(T=int))
    return dp.m.make_laplace_threshold(counts, metric, scale=1 / epsilon, threshold=threshold)


def stated(epsilon: float, threshold: int) -> float:
    """Return the delta that opendp states."""
    return float(opendp_measurement(epsilon, threshold).map((1, 1, 1))[1])


def least(epsilon: float, delta: float) -> int:
    """Return the least threshold whose delta opendp states to be at most this."""
    threshold = 1
    while stated(epsilon, threshold) > delta:
        threshold += 1
    return threshold


def shown(sizes: dict[str, int], epsilon: float, threshold: int) -> float:
    """Return the expected number of towns whose noisy count reaches a threshold."""
    ratio = np.exp(-epsilon)
    above = np.array(list(sizes.values()), dtype=np.float64) - threshold
    tail = ratio ** (np.abs(above) + (above >= 0)) / (1 + ratio)
    return float(np.where(above >= 0, 1.0 - tail, tail).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20_000)
    options = parser.parse_args()
    sizes = towns()
    rows = []
    for epsilon, delta in _CELLS:
        ours = em.UnknownGroups.from_counts(sizes, universe="text:20", delta=delta)
        threshold = ours.certificate(epsilon=epsilon).sampler["threshold"]
        cells = [f"{epsilon:g}", f"{delta:g}", str(threshold)]
        cells.append(f"{shown(sizes, epsilon, threshold):.1f}")
        first = least(epsilon, delta)
        for theirs in (first + 1, first):
            cells += [str(theirs), f"{shown(sizes, epsilon, theirs):.1f}"]
        rows.append(cells)
    epsilon, threshold = _CHECKED
    measurement = opendp_measurement(epsilon, threshold)
    number = options.draws
    share = sum(bool(measurement({"one": 1})) for _ in range(number)) / number
    header = ["epsilon", "delta", "threshold", "shown"]
    header += ["opendp, at the delta it has", "shown", "opendp, at the delta it states", "shown"]
    lines = [
        "# Groups that nobody listed",
        "",
        *prose((__doc__ or "").split("\n\n")[2]),
        "",
        *table(header, rows),
        "",
        *prose(
            f"At epsilon = {epsilon:g} and threshold {threshold}, opendp 0.16.0 states delta ="
            f" {stated(epsilon, threshold):.4f}; a town of one person was shown in {share:.4f} of"
            f" {number:,} draws (P(1 + Z >= {threshold}) ="
            f" {np.exp(-epsilon * (threshold - 1)) / (1 + np.exp(-epsilon)):.4f}). Tumult's"
            " documented threshold for discrete noise is the least t with P(Z >= t - 1) at most"
            " delta, which is ours; it was not run."
        ),
    ]
    write("unknown_groups", lines)


if __name__ == "__main__":
    main()
