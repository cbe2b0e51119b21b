"""Figure 3: what l random points instead of the continuum cost in utility on Example 2."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from expmech.paper.fig3.law import THRESHOLDS, realised_k
from expmech.paper.fig3.parts import compute
from expmech.paper.fig3.plot import plot_atoms, plot_discrete
from expmech.paper.fig3.summary import CellSummary, largest_gap
from expmech.paper.fig3.verdicts import judge
from expmech.paper.options import Options
from expmech.paper.plotting import write_table
from expmech.paper.study import Results, Section, Study
from expmech.paper.work import Parameters

POINT_COUNTS, EPSILONS = (10, 100, 1000, 10000), (0.1, 1.0, 10.0, 100.0)
_BATCH = 20
_CAPTIONS = {
    "fig3": (
        "P(L >= t) of the mechanism on l random points: worst case over discretisations (Q_.95),"
        " as printed (Q_.05), and Q_.95 over discretisations and data sets (dotted). Many points"
        " come so near to the continuous law that its thick line hides them."
    ),
    "fig3_random_atom": (
        "The law of RandomAtomPerfect on one set of points: exact mixture (lines) and draws (dots)."
        " Where lines agree the last one hides the others."
    ),
}


def cells(options: Options) -> list[tuple[Parameters, float]]:
    """List the continuous law for each epsilon, batches of random discretisations.

    RandomAtomPerfect itself comes last.
    """
    counts, epsilons = sorted(options.points or POINT_COUNTS), options.epsilon or EPSILONS
    draws = options.runs or (500 if options.quick else 10000)
    replications = options.replications or (40 if options.quick else 1000)
    listed: list[tuple[Parameters, float]] = []
    for epsilon in epsilons:
        exact = {"part": "continuous", "epsilon": epsilon, "draws": draws}
        listed.append((exact, 10.0 if epsilon > 30.0 else 1.0))
    for part, first in product(("points", "data"), range(0, replications, _BATCH)):
        batch = {
            "part": part,
            "batch": first // _BATCH,
            "replications": min(_BATCH, replications - first),
            "points": counts,
            "epsilon": list(epsilons),
        }
        listed.append((batch, 1.0))
    for epsilon, count in product(epsilons, counts):
        atom = {
            "part": "random atom",
            "epsilon": epsilon,
            "points": count,
            "draws": 100 if options.quick else 500,
            "most": 100.0 if options.quick else 6000.0,
        }
        listed.append((atom, 2.0))
    return listed


def render(results: Results, out: Path) -> Section:
    """Write the figures, the tables and the verdicts."""
    summary = CellSummary(results)
    _write_curves(summary, out)
    _write_atoms(summary, out)
    plot_discrete(summary, out)
    plot_atoms(summary, out)
    verdicts, findings = judge(summary)
    return Section(
        title="Figure 3. Utility of the discretised mechanism on Example 2",
        findings=findings,
        figures=tuple(_CAPTIONS.items()),
        tables=tuple(_CAPTIONS),
        verdicts=verdicts,
    )


def _write_curves(summary: CellSummary, out: Path) -> None:
    rows = []
    for (j, epsilon), (i, count) in product(enumerate(summary.epsilons), enumerate(summary.counts)):
        at = (i, j)
        quantiles = (
            summary.printed[at],
            summary.meant[at],
            summary.mixture[at],
            summary.redrawn[at],
        )
        for numbers in zip(THRESHOLDS, summary.curves[j], *quantiles, strict=True):
            rows.append((epsilon, count, *map(float, numbers)))
    names = (
        "epsilon points loss continuous err_q05_printed err_q95_meant random_atom_q95"
        " err_q95_data_redrawn"
    )
    write_table(out, "fig3", names.split(), rows)


def _write_atoms(summary: CellSummary, out: Path) -> None:
    rows = []
    for key, atom in summary.atoms.items():
        share = realised_k(atom["log_mean"], float(summary.exact[key[0]]["log_share"]))
        gap = largest_gap(atom, summary.laws[key])
        rows.append((*key, float(share), float(atom["log10_steps"]), gap, summary.draws[key]))
    names = "epsilon points realised_k log10_expected_steps largest_gap_of_draws_from_law draws"
    write_table(out, "fig3_random_atom", names.split(), rows)


STUDY = Study(
    name="fig3",
    cells=cells,
    compute=compute,
    render=render,
    takes=("epsilon", "points", "runs", "replications"),
)
