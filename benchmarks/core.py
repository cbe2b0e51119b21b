"""Speed of the exact core, as ratios taken in one run: `make benchmark`.

1. Exact rejection against the same algorithm in plain float64 NumPy (d = 1, slope 50, 10^6 draws).
2. The discrete mechanism over 10^6 candidates against opendp's and diffprivlib's selections.
3. Proposals of one release of Example 1 (d = 5, n = 1000, epsilon = 1).
4. `import expmech`.

Writes benchmarks/results/core.md.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec as installed
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expmech as em
from benchmarks.support import best_of, environment, prose, table, write
from expmech.mechanisms.selection.permute_and_flip import PermuteAndFlip

DRAWS, SLOPE, MEAN = 1_000_000, 50.0, 0.37
BLOCK = 1 << 15
CANDIDATES = 1_000_000
REPEATS = 5


def float_rejection(
    propose: Callable[[Any, int], tuple[Any, Any]], draws: int
) -> NDArray[np.float64]:
    """The same algorithm with float64 arithmetic and NumPy's generator.

    In blocks of the same size.
    """
    generator = np.random.default_rng(0)
    found, missing = [], draws
    while missing > 0:
        y, drawn_with = propose(generator, BLOCK)
        inside = (y >= 0.0) & (y <= 1.0)
        y, drawn_with = y[inside], drawn_with[inside]
        energy = SLOPE * np.abs(y - MEAN)
        accepted = y[generator.random(y.size) < np.exp(drawn_with - energy)]
        found.append(accepted[:missing])
        missing -= found[-1].size
    return np.concatenate(found)


def float_uniform(generator: Any, size: int) -> tuple[Any, Any]:
    return generator.random(size), np.zeros(size)


def float_laplace(generator: Any, size: int) -> tuple[Any, Any]:
    step = generator.laplace(scale=1.0 / SLOPE, size=size)
    return MEAN + step, SLOPE * np.abs(step)


def exact(envelope: Any) -> NDArray[Any]:
    mech = em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - MEAN),
        sensitivity=0.01,
        domain=em.Box([0.0], [1.0]),
        lipschitz=[1.0],
        growth=em.Growth(center=np.array([MEAN]), rates=np.array([1.0])),
    )
    return mech.sample(
        epsilon=2 * SLOPE * 0.01, size=DRAWS, sampler=em.Rejection(envelope), seed=0
    ).values


def rejection_rows() -> list[str]:
    times = best_of(
        {
            "uniform float": lambda: float_rejection(float_uniform, DRAWS),
            "uniform exact": lambda: exact(em.Uniform()),
            "Laplace float": lambda: float_rejection(float_laplace, DRAWS),
            "Laplace exact": lambda: exact(em.ProductLaplace()),
        },
        REPEATS,
    )
    rows = ["| envelope | float64 NumPy, s | exact, s | ratio | goal |", "|---|---|---|---|---|"]
    for name in ("uniform", "Laplace"):
        plain, ours = times[f"{name} float"], times[f"{name} exact"]
        rows.append(f"| {name} | {plain:.3f} | {ours:.3f} | {ours / plain:.2f} | 2 |")
    return rows


def selection_rows() -> list[str]:
    """Time the best of 10^6 candidates; what a library makes of the scores is in the clock."""
    shares = np.arange(1.0, CANDIDATES + 1) ** -1.0
    generator = np.random.default_rng(1)
    kinds = {
        "whole numbers below 1000": generator.integers(0, 1000, CANDIDATES),
        "counts by Zipf's law": generator.permutation(np.floor(1e7 * shares / shares.sum())),
        "all equal": np.zeros(CANDIDATES),
    }
    heads = ["permute-and-flip", "exponential", "opendp, array", "ratio", "opendp, list"]
    rows = []
    for name, scores in kinds.items():
        spent = best_of(selections(scores.astype(np.float64)), 3)
        cells = {head: f"{seconds * 1e3:.0f}" for head, seconds in spent.items()}
        if "opendp, array" in spent:
            cells["ratio"] = f"{spent['permute-and-flip'] / spent['opendp, array']:.2f}"
        rows.append([name, *(cells.get(head, "-") for head in [*heads, "diffprivlib, list"])])
    return [
        *prose(
            """The best of 10^6 candidates at epsilon = 1, in milliseconds: of scores in an array, or
            of a list of them that was made outside the clock. The first two are ours; the
            exponential mechanism makes its list of candidates anew. The ratio is permute-and-flip
            over opendp from the same array."""
        ),
        "",
        *table(["scores", *heads, "diffprivlib, list"], rows),
    ]


def selections(scores: NDArray[np.float64]) -> dict[str, Callable[[], Any]]:
    """Return a selection by each library that is installed; one row moves a score by one at most."""

    def exponential() -> Any:
        mech = em.ExponentialMechanism(
            loss=lambda i: scores.max() - scores[i],
            sensitivity=1.0,
            domain=em.Candidates(range(CANDIDATES)),
            bound=float(np.ptp(scores)),
        )
        return mech.release(epsilon=1.0).value

    def flip() -> Any:
        best = PermuteAndFlip.from_scores(
            scores, sensitivity=1, monotone=True, adjacency="add-remove"
        )
        return best.release(epsilon=1.0).value

    methods: dict[str, Callable[[], Any]] = {
        "permute-and-flip": flip,
        "exponential": exponential,
    }
    listed = scores.tolist()
    try:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        distance = dp.linf_distance(T=float, monotonic=True)
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), distance
        select = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=1.0)
        methods["opendp, array"] = lambda: select(scores)
        methods["opendp, list"] = lambda: select(listed)
    except ImportError:
        print("opendp is not installed: left out", file=sys.stderr)
    try:
        from diffprivlib.mechanisms import Exponential

        methods["diffprivlib, list"] = lambda: Exponential(
            epsilon=1.0, sensitivity=1.0, utility=listed, monotonic=True
        ).randomise()
    except ImportError:
        print("diffprivlib is not installed: left out", file=sys.stderr)
    return methods


def example_1_rows() -> list[str]:
    rows = [
        "| Example 1, d = 5, n = 1000, epsilon = 1, Laplace envelope | mean proposals a release |",
        "|---|---|",
    ]
    data = np.random.default_rng(0).beta(5, 5, (1000, 5))
    for name, rows_of in (
        ("rows ~ Beta(5, 5)", data),
        ("every row at a corner, the worst case", 0.0 * data),
    ):
        mech = em.ExponentialMechanism(
            loss=em.losses.L1Mean(rows_of), domain=em.Box([0.0] * 5, [1.0] * 5)
        )
        proposals = mech.sample(
            epsilon=1.0, size=20_000, sampler=em.Rejection(em.ProductLaplace()), seed=0
        ).proposals
        rows.append(f"| {name} | {proposals.mean():.2f} |")
    return rows


def import_rows() -> list[str]:
    code = (
        "import time; start = time.process_time(); import expmech; print(time.process_time() -"
        " start)"
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(5)
    ]
    return ["| `import expmech` | ms |", "|---|---|", f"| least of 5 | {min(times) * 1e3:.0f} |"]


def main() -> None:
    parts = [
        "# Speed of the exact core",
        "",
        "Processor times, the least of several; a ratio is taken within one run.",
    ]
    for title, rows in (
        ("Exact rejection against float64 NumPy, 10^6 draws, d = 1, slope 50", rejection_rows),
        ("The discrete mechanism", selection_rows),
        ("Proposals of one release", example_1_rows),
        ("Import", import_rows),
    ):
        print(title, flush=True)
        parts += ["", f"## {title}", "", *rows()]
    versions = [f"{name} {version(name)}" for name in ("opendp", "diffprivlib") if installed(name)]
    write("core", [*parts, "", *environment("core", *versions)])


if __name__ == "__main__":
    main()
