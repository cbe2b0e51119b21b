"""Figure 3: what l random points instead of the continuum cost in utility on Example 2."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from expmech.paper.fig3.law import THRESHOLDS, CellSummary, compute, largest_gap, realised_k
from expmech.paper.fig3.verdicts import judge
from expmech.paper.options import Options
from expmech.paper.plotting import BLACK, CYCLE, add_message, make_panels, save_figure, write_table
from expmech.paper.study import Parameters, Results, Section, Study

_DASHED, _DOTTED = (0, (3, 1.5)), (0, (1, 1.2))


def _make_panels(epsilons: tuple[float, ...]) -> tuple[Figure, Any]:
    """Return a figure with a panel an epsilon, labelled."""
    figure, axes = make_panels(len(epsilons), 2, 1.9)
    for ax, epsilon in zip(axes, epsilons, strict=False):
        ax.set(xscale="log", xlim=(THRESHOLDS[0], THRESHOLDS[-1]), ylim=(-0.02, 1.02))
        ax.set_title(f"ε = {epsilon:g}")
    figure.supxlabel("loss t = gradient norm |X'(Xy - z) + λy|$_1$", fontsize=8)
    figure.supylabel("P(loss ≥ t): lower is better", fontsize=8)
    return figure, axes


def _colours(counts: tuple[int, ...]) -> dict[int, str]:
    return {count: CYCLE[i % len(CYCLE)] for i, count in enumerate(counts)}


def plot_discrete(summary: CellSummary, out: Path) -> None:
    """Draw the mechanism on l points: worst case over discretisations, and as printed."""
    figure, axes = _make_panels(summary.epsilons)
    colours = _colours(summary.counts)
    for (i, count), j in (
        (c, j) for c in enumerate(summary.counts) for j in range(len(summary.curves))
    ):
        ax, colour = axes[j], colours[count]
        ax.plot(THRESHOLDS, summary.meant[i, j], color=colour)
        ax.plot(THRESHOLDS, summary.printed[i, j], color=colour, linestyle=_DASHED, linewidth=1.1)
        ax.plot(THRESHOLDS, summary.redrawn[i, j], color=colour, linestyle=_DOTTED, linewidth=1.1)
    for ax, curve in zip(axes, summary.curves, strict=False):
        ax.plot(THRESHOLDS, curve, color=BLACK, linewidth=2.0)
    ax = axes[0]
    for count, colour in colours.items():
        ax.plot([], [], color=colour, label=f"$\\ell$ = {count} points")
    thin = {"color": BLACK, "linewidth": 1.1}
    ax.plot([], [], color=BLACK, linewidth=2.0, label="continuous law")
    ax.plot([], [], **thin, label="worst case: Q$_{.95}$ (meant)")
    ax.plot([], [], **thin, linestyle=_DASHED, label="Q$_{.05}$ (printed)")
    ax.plot([], [], **thin, linestyle=_DOTTED, label="Q$_{.95}$, data redrawn too")
    message = "What is printed as the worst case (Q.05) is the best: the worst (Q.95) costs utility"
    add_message(figure, message, ax, columns=4)
    save_figure(figure, out, "fig3")


def plot_atoms(summary: CellSummary, out: Path) -> None:
    """Draw the law of RandomAtomPerfect on one set of points, and its draws."""
    figure, axes = _make_panels(summary.epsilons)
    colours = _colours(summary.counts)
    for ax, epsilon in zip(axes, summary.epsilons, strict=False):
        missing = []
        ax.plot(THRESHOLDS, summary.exact[epsilon]["survival"], color=BLACK, linewidth=2.0)
        for count, colour in colours.items():
            atom = summary.atoms[epsilon, count]
            drawn = {"color": colour, "marker": "o", "markersize": 3, "linestyle": ""}
            ax.plot(THRESHOLDS, summary.laws[epsilon, count], color=colour)
            ax.plot(THRESHOLDS[::4], atom["sampled"][::4], **drawn)
            if np.isnan(atom["sampled"]).any():
                power = f"10$^{{{float(atom['log10_steps']):.0f}}}$"
                missing.append(f"$\\ell$ = {count}: about {power} steps a draw")
        if missing:
            text = "not drawn\n" + "\n".join(missing)
            place = {"transform": ax.transAxes, "ha": "right", "va": "top"}
            ax.text(0.97, 0.95, text, fontsize=6.5, **place)
    ax = axes[0]
    for count, colour in colours.items():
        ax.plot([], [], color=colour, label=f"RandomAtomPerfect, $\\ell$ = {count}")
    ax.plot([], [], color=BLACK, linewidth=2.0, label="continuous law")
    ax.plot([], [], color=BLACK, marker="o", markersize=3, linestyle="", label="draws")
    gaps = [largest_gap(atom, summary.laws[key]) for key, atom in summary.atoms.items()]
    message = f"RandomAtomPerfect draws its computed law: no gap above {np.nanmax(gaps):.2f}"
    add_message(figure, message, ax)
    save_figure(figure, out, "fig3_random_atom")


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
