"""Figure 2.

How many proposals each exact sampler takes on Example 1, d = 1, under every reading of the paper's
alpha = n epsilon / 2, on the printed and on the corrected kernel.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

from expmech.paper.example1 import slope
from expmech.paper.fig2 import counts
from expmech.paper.fig2.drawn_counts import count_apart, write_counts
from expmech.paper.fig2.plot import plot_grid, plot_readings, plot_sweep
from expmech.paper.fig2.verdicts import judge
from expmech.paper.options import Options
from expmech.paper.plotting import write_table
from expmech.paper.printed.kernel import READINGS
from expmech.paper.study import Parameters, Results, Section, Study

SIZES, EPSILONS = (10, 100, 1000), (0.01, 0.1, 1.0)
BETAS = ((0.1, 0.1), (1.0, 1.0), (10.0, 10.0))
_NARROW = (0.1, 1.0)  # budgets at which the bound is also tried with alpha = 20
_SWEEP = (0.1, 0.25, 0.5, 0.75, 0.9)
_CAPTIONS = {
    "grid": (
        "Proposals a draw at alpha = n epsilon / 2 as a rate: median (tick), middle half (thick)"
        " and middle 90% (thin), for several laws of the mean; a cross is a computed mean of runs"
        " that were not drawn, the grey triangle the theorem's bound on the mean."
    ),
    "readings": (
        "Proposals a draw against n epsilon / 2 under three readings of alpha, for the middle"
        " Beta law: medians of draws with their intervals (dots), computed means (lines), also"
        " where no run could end (crosses; beyond a factory height of 50000 Huber's upper bound on"
        " its flips stands in)."
    ),
    "sweep": (
        "Mean number of proposals against k at the first n and the largest epsilon, mean 1/2:"
        " computed (lines) and drawn (dots). Left of the valley the atom is visited too rarely,"
        " right of it too many runs end there."
    ),
}


def cells(options: Options) -> list[tuple[Parameters, float]]:
    """List the grid of the figure, the other readings at each distinct slope, and the k sweep."""
    sizes = options.n or (SIZES[::2] if options.quick else SIZES)
    budgets = options.epsilon or (EPSILONS[::2] if options.quick else EPSILONS)
    betas, shares = options.beta or BETAS, options.k or (0.5,)
    listed = [
        _cell(options, "grid", n, epsilon, beta, k, method, "rate")
        for n, epsilon, beta, k, method in product(sizes, budgets, betas, shares, counts.METHODS)
    ]
    slopes = {round(slope(n, epsilon), 12): (n, epsilon) for n, epsilon in product(sizes, budgets)}
    chains = (counts.PRINTED, counts.CORRECTED)
    for reading, method, (n, epsilon) in product(READINGS, chains, slopes.values()):
        middle = betas[len(betas) // 2]
        listed.append(_cell(options, "readings", n, epsilon, middle, shares[0], method, reading))
    if options.alpha is None:
        listed += [_narrow(epsilon, method) for epsilon, method in product(_NARROW, chains)]
    n, epsilon = sizes[0], max(budgets)
    for k, method in product(
        options.k or _SWEEP[options.quick : 5 - options.quick], (*chains, counts.DIRECT)
    ):
        listed.append(_cell(options, "sweep", n, epsilon, (1e6, 1e6), k, method, "rate"))
    return listed


def _cell(
    options: Options,
    part: str,
    n: int,
    epsilon: float,
    beta: tuple[float, float],
    k: float,
    method: str,
    reading: str,
) -> tuple[Parameters, float]:
    means = 1 if part == "sweep" else 2 if options.quick else 8
    runs = options.runs or (20 if options.quick else 1000)
    parameters: Parameters = {
        "part": part,
        "n": n,
        "epsilon": epsilon,
        "beta": list(beta),
        "k": k,
        "method": method,
        "reading": reading,
        "alpha": options.alpha,
        "means": means,
        "runs": max(1, round(runs / means)),
        "most": options.most or (150.0 if options.quick else 5000.0),
    }
    chain = method in (counts.PRINTED, counts.CORRECTED)
    return parameters, (2.0 if chain else 0.2) * (0.1 if options.quick else 4.0)


def _narrow(epsilon: float, method: str) -> tuple[Parameters, float]:
    """Return a cell with proposals much narrower than the target: only means are computed."""
    parameters: Parameters = {
        "part": "narrow",
        "n": 10,
        "epsilon": epsilon,
        "beta": [10.0, 10.0],
        "k": 0.5,
        "method": method,
        "reading": "rate",
        "alpha": 20.0,
        "means": 2,
        "runs": 1,
        "most": 0.0,
    }
    return parameters, 0.1


def render(results: Results, out: Path) -> Section:
    """Write the figures, the table of quantiles and the verdicts."""
    _write_table(results, out)
    parts = {
        part: [(p, r) for p, r in results if p["part"] == part] for part in (*_CAPTIONS, "narrow")
    }
    figures = []
    for position, k in enumerate(dict.fromkeys(p["k"] for p, _ in parts["grid"])):
        name = "fig2" if position == 0 else f"fig2_k{k:g}"
        plot_grid([(p, r) for p, r in parts["grid"] if p["k"] == k], out, name)
        figures.append((name, f"k = {k:g}. {_CAPTIONS['grid']}"))
    write_counts(count_apart(parts["grid"]), out)
    plot_readings(parts["readings"], out)
    plot_sweep(parts["sweep"], out)
    verdicts, findings = judge(parts)
    return Section(
        title="Figure 2. Proposals of the exact samplers on Example 1",
        findings=findings,
        figures=(
            *figures,
            ("fig2_readings", _CAPTIONS["readings"]),
            ("fig2_k_sweep", _CAPTIONS["sweep"]),
        ),
        tables=("fig2", "fig2_counts"),
        verdicts=verdicts,
    )


def _write_table(results: Results, out: Path) -> None:
    rows = []
    for parameters, result in results:
        drawn = result["proposals"].ravel()
        named = [parameters[name] for name in ("part", "n", "epsilon", "k", "method", "reading")]
        beta = "{:g}:{:g}".format(*parameters["beta"])
        spread: list[float | str] = [""] * 6
        if drawn.size:
            spread = [float(drawn.mean()), *np.quantile(drawn, counts.QUANTILES).tolist()]
        computed = (float(result["expected"].mean()), float(result["bound"].mean()))
        rows.append((*named, beta, drawn.size, *spread, *computed))
    names = "part n epsilon k method reading beta runs mean q05 q25 median q75 q95"
    write_table(out, "fig2", (*names.split(), "computed_mean", "theorem_bound"), rows)


STUDY = Study(
    name="fig2",
    cells=cells,
    compute=counts.compute,
    render=render,
    takes=("n", "epsilon", "k", "alpha", "beta", "runs", "most"),
)
