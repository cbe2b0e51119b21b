"""Figure 3.

What running the exponential mechanism on l random points costs in utility on Example 2.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from expmech.bits import seeded_bits
from expmech.coins import Coins
from expmech.paper.cells import Parameters, Result
from expmech.paper.example2 import (
    SENSITIVITY,
    RidgeGradient,
    best_envelope,
    make_loss,
    make_mechanism,
)
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    new_figure,
    save_figure,
    write_table,
)
from expmech.paper.study import Results, Section, Study
from expmech.samplers import RandomAtomPerfect, Rejection

POINT_COUNTS, EPSILONS = (10, 100, 1000, 10000), (0.1, 1.0, 10.0, 100.0)
THRESHOLDS = np.logspace(math.log10(0.4), math.log10(150.0), 61)
NOMINAL_K = 0.5
_COLOURS = dict(zip(POINT_COUNTS, (ORANGE, PURPLE, GREEN, BLUE), strict=True))


def cells(quick: bool) -> list[tuple[Parameters, float]]:
    """List the continuous law for each epsilon, batches of random discretisations.

    And RandomAtomPerfect itself.
    """
    draws, batch, batches = (500, 10, 4) if quick else (10000, 50, 20)
    listed: list[tuple[Parameters, float]] = [
        (
            {"part": "continuous", "epsilon": epsilon, "draws": draws},
            10.0 if epsilon == 100.0 else 1.0,
        )
        for epsilon in EPSILONS
    ]
    listed += [
        ({"part": "points", "batch": number, "replications": batch}, batch / 20.0)
        for number in range(batches)
    ]
    for epsilon in EPSILONS:
        for count in POINT_COUNTS:
            parameters = {
                "part": "random atom",
                "epsilon": epsilon,
                "points": count,
                "draws": 100 if quick else 500,
                "most": 200.0 if quick else 6000.0,
            }
            listed.append((parameters, 2.0))
    return listed


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Compute one part of the study; the data set depends on the study's seed alone."""
    loss = make_loss(stream[0])
    part = {"continuous": _continuous, "points": _discretisations, "random atom": _random_atom}[
        parameters["part"]
    ]
    return part(parameters, stream, loss)


def _continuous(parameters: Parameters, stream: list[int], loss: RidgeGradient) -> Result:
    """Return the exact mechanism's survival function from exact draws.

    And log(Z_f / |Y|) from the acceptance rate.
    """
    mechanism, epsilon = make_mechanism(loss), parameters["epsilon"]
    envelope = best_envelope(epsilon)
    draws = mechanism.sample(
        epsilon=epsilon, size=parameters["draws"], sampler=Rejection(envelope), seed=stream
    )
    target = mechanism.target(epsilon=epsilon)
    bound = envelope.bind(target)
    log_accept = math.log(parameters["draws"] / float(draws.proposals.sum()))
    log_mass = bound.log_mass()  # type: ignore[attr-defined]
    log_share = log_accept + bound.offset / target.units_per_nat + log_mass - target.domain.log_size
    losses = loss(draws.values)
    return {
        "survival": _survival(losses, np.ones_like(losses)),
        "log_share": np.array(log_share),
        "mean_loss": losses.mean(),
    }


def _survival(losses: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``P(L >= t)`` at the thresholds under the law proportional to ``weights``."""
    order = np.argsort(losses)
    above = np.concatenate([np.cumsum(weights[order][::-1])[::-1], [0.0]])
    return np.asarray(above[np.searchsorted(losses[order], THRESHOLDS, side="left")] / above[0])


def draw_points(loss: RidgeGradient, seed: list[int], count: int) -> NDArray[np.float64]:
    """Return public points, uniform on the ball's lattice."""
    domain = make_mechanism(loss).domain
    return np.asarray(domain.values(domain.draw_uniform(Coins(seeded_bits(seed)), count)))


def discrete_law(losses: NDArray[np.float64], epsilon: float) -> tuple[NDArray[np.float64], float]:
    """Return the survival function of the mechanism on a list of points.

    And the log of the mean of exp(-eta L) over it.
    """
    energies = losses * (epsilon / (2.0 * float(SENSITIVITY)))
    weights = np.exp(energies.min() - energies)
    return _survival(losses, weights), float(np.log(weights.mean()) - energies.min())


def _discretisations(parameters: Parameters, stream: list[int], loss: RidgeGradient) -> Result:
    """Return the survival functions of the discrete mechanism on l points, nested in l.

    For a batch of random point sets.
    """
    survival = np.empty(
        (parameters["replications"], len(POINT_COUNTS), len(EPSILONS), len(THRESHOLDS))
    )
    log_mean = np.empty(survival.shape[:3])
    for replication in range(parameters["replications"]):
        losses = loss(draw_points(loss, [*stream, replication], max(POINT_COUNTS)))
        for i, count in enumerate(POINT_COUNTS):
            for j, epsilon in enumerate(EPSILONS):
                survival[replication, i, j], log_mean[replication, i, j] = discrete_law(
                    losses[:count], epsilon
                )
    return {"survival": survival, "log_mean": log_mean}


def _random_atom(parameters: Parameters, stream: list[int], loss: RidgeGradient) -> Result:
    """Return draws of RandomAtomPerfect on one set of points.

    Where its expected 2 e^B steps are affordable.
    """
    mechanism, epsilon = make_mechanism(loss), parameters["epsilon"]
    points = draw_points(loss, [stream[0], parameters["points"]], parameters["points"])
    survival, log_mean = discrete_law(loss(points), epsilon)
    proposal = "laplace" if best_envelope(epsilon).name != "uniform" else "uniform"
    sampler = RandomAtomPerfect(points, NOMINAL_K, proposal=proposal)
    tag = sampler.prepare(mechanism.target(epsilon=epsilon)).kernel.tag_nats
    result: Result = {
        "discrete": survival,
        "log_mean": np.array(log_mean),
        "log10_steps": np.array((math.log(2.0) + tag) / math.log(10.0)),
        "sampled": np.full(len(THRESHOLDS), np.nan),
    }
    if float(result["log10_steps"]) <= math.log10(parameters["most"]):
        losses = loss(
            mechanism.sample(
                epsilon=epsilon, size=parameters["draws"], sampler=sampler, seed=stream
            ).values
        )
        result["sampled"] = _survival(losses, np.ones_like(losses))
    return result


def realised_k(log_mean: NDArray[np.float64] | float, log_share: float) -> NDArray[np.float64]:
    """Return the share of the points in the mixture.

    Nominal odds times how f averages over the points against the ball.
    """
    odds = NOMINAL_K / (1.0 - NOMINAL_K) * np.exp(np.asarray(log_mean) - log_share)
    return np.asarray(odds / (1.0 + odds))


def render(results: Results, out: Path) -> Section:
    """Write the figures and the tables."""
    exact = {p["epsilon"]: r for p, r in results if p["part"] == "continuous"}
    batches = [r for p, r in results if p["part"] == "points"]
    survival = np.concatenate([batch["survival"] for batch in batches])
    log_mean = np.concatenate([batch["log_mean"] for batch in batches])
    printed, meant = np.quantile(survival, [0.05, 0.95], axis=0)
    shares = np.array([float(exact[epsilon]["log_share"]) for epsilon in EPSILONS])
    k = realised_k(log_mean, shares)  # type: ignore[arg-type]
    curves = np.array([exact[epsilon]["survival"] for epsilon in EPSILONS])
    mixture = np.quantile((1.0 - k)[..., None] * curves + k[..., None] * survival, 0.95, axis=0)
    write_table(
        out,
        "fig3",
        (
            "epsilon",
            "points",
            "loss",
            "continuous",
            "err_q05_printed",
            "err_q95_meant",
            "random_atom_q95",
        ),
        (
            (
                epsilon,
                count,
                float(t),
                *(
                    float(a)
                    for a in (curves[j, m], printed[i, j, m], meant[i, j, m], mixture[i, j, m])
                ),
            )
            for j, epsilon in enumerate(EPSILONS)
            for i, count in enumerate(POINT_COUNTS)
            for m, t in enumerate(THRESHOLDS)
        ),
    )
    atoms = {(p["epsilon"], p["points"]): r for p, r in results if p["part"] == "random atom"}
    laws = {key: _mixture_law(r, exact[key[0]]) for key, r in atoms.items()}
    write_table(
        out,
        "fig3_random_atom",
        (
            "epsilon",
            "points",
            "realised_k",
            "log10_expected_steps",
            "largest_gap_of_draws_from_law",
            "draws",
        ),
        (
            (
                *key,
                float(realised_k(r["log_mean"], float(exact[key[0]]["log_share"]))),
                float(r["log10_steps"]),
                _gap(r, laws[key]),
                n,
            )
            for (key, r), n in zip(
                atoms.items(),
                (p["draws"] for p, _ in results if p["part"] == "random atom"),
                strict=True,
            )
        ),
    )
    _plot_discrete(curves, printed, meant, len(survival), out)
    _plot_atoms(atoms, laws, exact, out)
    return _section(curves, printed, meant, atoms, laws, len(survival))


def _mixture_law(atom: Result, exact: Result) -> NDArray[np.float64]:
    share = float(realised_k(atom["log_mean"], float(exact["log_share"])))
    return np.asarray((1.0 - share) * exact["survival"] + share * atom["discrete"])


def _gap(atom: Result, law: NDArray[np.float64]) -> float:
    return float(np.abs(atom["sampled"] - law).max())


def _section(
    curves: NDArray[np.float64],
    printed: NDArray[np.float64],
    meant: NDArray[np.float64],
    atoms: dict[tuple[float, int], Result],
    laws: dict[tuple[float, int], NDArray[np.float64]],
    replications: int,
) -> Section:
    at = int(np.abs(curves[2] - 0.5).argmin())
    better = int((printed[:, :, :] < curves[None] - 0.02).any(axis=2).sum())
    refused = sorted(
        (key for key, r in atoms.items() if np.isnan(r["sampled"]).any()),
        key=lambda key: -float(atoms[key]["log10_steps"]),
    )
    gaps = [_gap(r, laws[key]) for key, r in atoms.items() if not np.isnan(r["sampled"]).any()]
    findings = [
        "Reproduced: with more points the discrete mechanism approaches the continuous law. At"
        f" epsilon = 10 and loss {THRESHOLDS[at]:.1f}, where the continuous law has P(L >= t) ="
        f" {curves[2, at]:.2f}, the Q_.95 of {replications} discretisations is "
        + ", ".join(f"{meant[i, 2, at]:.2f} (l = {count})" for i, count in enumerate(POINT_COUNTS))
        + ".",
        "As printed (Q_.05) the curve is a best case, not a worst case: "
        + ", ".join(
            f"{printed[i, 2, at]:.2f} (l = {count})" for i, count in enumerate(POINT_COUNTS)
        )
        + f" at the same point. In {better} of {len(EPSILONS) * len(POINT_COUNTS)} cells it even"
        " falls below the continuous law, which would mean that discretising improves utility.",
        (
            f"RandomAtomPerfect itself was drawn in {len(gaps)} of {len(atoms)} cells; its draws"
            f" are within {max(gaps):.3f} of its exact law."
        ),
    ]
    if refused:
        epsilon, count = refused[0]
        findings.append(
            f"It was not affordable in {len(refused)} of {len(atoms)} cells: the expected number of"
            " steps grows as the points miss the optimum, up to"
            f" 10^{float(atoms[refused[0]]['log10_steps']):.0f} at epsilon = {epsilon:g} with l ="
            f" {count}. The paper does not mention this."
        )
    return Section(
        title="Figure 3. Utility of the discretised mechanism on Example 2",
        findings=tuple(findings),
        figures=(
            (
                "fig3",
                (
                    "P(L >= t) of the mechanism on l random points: worst case over discretisations"
                    " (Q_.95) and as printed (Q_.05)."
                ),
            ),
            (
                "fig3_random_atom",
                (
                    "The law of RandomAtomPerfect on one set of points: exact mixture (lines) and"
                    " draws (dots)."
                ),
            ),
        ),
        tables=("fig3", "fig3_random_atom"),
    )


def _plot_discrete(
    curves: NDArray[np.float64],
    printed: NDArray[np.float64],
    meant: NDArray[np.float64],
    replications: int,
    out: Path,
) -> None:
    figure = new_figure(4.8)
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for j, (ax, epsilon) in enumerate(zip(axes, EPSILONS, strict=True)):
        for i, count in enumerate(POINT_COUNTS):
            ax.plot(THRESHOLDS, meant[i, j], color=_COLOURS[count])
            ax.plot(
                THRESHOLDS,
                printed[i, j],
                color=_COLOURS[count],
                linestyle=(0, (3, 1.5)),
                linewidth=1.1,
            )
        ax.plot(THRESHOLDS, curves[j], color=BLACK, linewidth=2.0)
        ax.set(
            xscale="log",
            xlim=(THRESHOLDS[0], THRESHOLDS[-1]),
            ylim=(-0.02, 1.02),
            title=f"ε = {epsilon:g}",
        )
    figure.supxlabel("loss t = gradient norm |X'(Xy - z) + λy|$_1$", fontsize=8)
    figure.supylabel("P(loss ≥ t): lower is better", fontsize=8)
    handles = [
        axes[0].plot([], [], color=_COLOURS[c], label=f"$\\ell$ = {c} points")[0]
        for c in POINT_COUNTS
    ]
    handles.append(axes[0].plot([], [], color=BLACK, linewidth=2.0, label="continuous law")[0])
    handles.append(
        axes[0].plot([], [], color=BLACK, linewidth=1.1, label="worst case: Q$_{.95}$ (meant)")[0]
    )
    handles.append(
        axes[0].plot(
            [], [], color=BLACK, linewidth=1.1, linestyle=(0, (3, 1.5)), label="Q$_{.05}$ (printed)"
        )[0]
    )
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    save_figure(figure, out, "fig3")


def _plot_atoms(
    atoms: dict[tuple[float, int], Result],
    laws: dict[tuple[float, int], NDArray[np.float64]],
    exact: dict[float, Result],
    out: Path,
) -> None:
    figure = new_figure(4.8)
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        missing = []
        ax.plot(THRESHOLDS, exact[epsilon]["survival"], color=BLACK, linewidth=2.0)
        for count in POINT_COUNTS:
            atom = atoms[epsilon, count]
            ax.plot(THRESHOLDS, laws[epsilon, count], color=_COLOURS[count])
            ax.plot(
                THRESHOLDS[::4],
                atom["sampled"][::4],
                color=_COLOURS[count],
                marker="o",
                markersize=3,
                linestyle="",
            )
            if np.isnan(atom["sampled"]).any():
                missing.append(
                    f"$\\ell$ = {count}: about 10$^{{{float(atom['log10_steps']):.0f}}}$ steps a"
                    " draw"
                )
        if missing:
            ax.text(
                0.97,
                0.95,
                "not drawn\n" + "\n".join(missing),
                transform=ax.transAxes,
                fontsize=6.5,
                ha="right",
                va="top",
            )
        ax.set(
            xscale="log",
            xlim=(THRESHOLDS[0], THRESHOLDS[-1]),
            ylim=(-0.02, 1.02),
            title=f"ε = {epsilon:g}",
        )
    figure.supxlabel("loss t = gradient norm |X'(Xy - z) + λy|$_1$", fontsize=8)
    figure.supylabel("P(loss ≥ t): lower is better", fontsize=8)
    handles = [
        axes[0].plot([], [], color=_COLOURS[c], label=f"RandomAtomPerfect, $\\ell$ = {c}")[0]
        for c in POINT_COUNTS
    ]
    handles.append(axes[0].plot([], [], color=BLACK, linewidth=2.0, label="continuous law")[0])
    handles.append(
        axes[0].plot([], [], color=BLACK, marker="o", markersize=3, linestyle="", label="draws")[0]
    )
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    save_figure(figure, out, "fig3_random_atom")


STUDY = Study(name="fig3", cells=cells, compute=compute, render=render)
