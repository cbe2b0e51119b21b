"""The trade-off the paper argues for and never draws.

Privacy, utility and runtime of every sampler, on both examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from expmech.errors import UnsupportedError
from expmech.paper import example1, example2
from expmech.paper.cells import Parameters, Result
from expmech.paper.fig3 import draw_points
from expmech.paper.plotting import BLUE, GREEN, VERMILION, new_figure, save_figure, write_table
from expmech.paper.study import Results, Section, Study
from expmech.release import ExponentialMechanism
from expmech.samplers import (
    ConfAtomAndRuntimePerfect,
    ConfAtomPerfect,
    Metropolis,
    RandomAtomPerfect,
    Rejection,
    Sampler,
)

EXAMPLES = {"Example 1": 1.0, "Example 2": 10.0}  # with the epsilon each is run at
_TITLES = (
    "Example 1: mean, n = 100, d = 1, ε = 1",
    "Example 2: ridge regression, n = 100, p = 5, ε = 10",
)
N, MEAN, POINTS = 100, 0.3, 100
MOST_STEPS = 1e6
METHODS: dict[str, Callable[[], Sampler]] = {
    "Metropolis, 20 steps": lambda: Metropolis(steps=20),
    "Metropolis, uniform, δ = 1e-9": lambda: Metropolis(delta=1e-9),
    "Metropolis, Laplace, δ = 1e-9": lambda: Metropolis(delta=1e-9, proposal="laplace"),
    "Metropolis, pure": lambda: Metropolis(pure=True),
    "ConfAtomPerfect, as printed": lambda: ConfAtomPerfect(0.5, factory=True),
    "ConfAtomPerfect, direct": lambda: ConfAtomPerfect(0.5),
    "RandomAtomPerfect, l = 100": lambda: RandomAtomPerfect(np.array([[0.5]])),
    "ConfAtomAndRuntimePerfect, pad": lambda: ConfAtomAndRuntimePerfect("pad"),
    "ConfAtomAndRuntimePerfect, constant": lambda: ConfAtomAndRuntimePerfect("constant"),
    "Rejection": lambda: Rejection(),
}
_MESSAGE = "Exact draws are cheap; a δ, or a runtime that hides the data, is what costs"
_TIMING = {"constant": GREEN, "data-independent": BLUE, "data-dependent": VERMILION}


def cells(quick: bool) -> list[tuple[Parameters, float]]:
    """List a cell for each example and sampler."""
    draws = 200 if quick else 4000
    return [
        ({"example": example, "method": method, "draws": draws}, 0.5 if quick else 4.0)
        for example in EXAMPLES
        for method in METHODS
    ]


def _problem(
    example: str, stream: list[int]
) -> tuple[ExponentialMechanism, Any, np.ndarray[Any, Any]]:
    """Return the mechanism, its loss and the public points for RandomAtomPerfect."""
    if example == "Example 1":
        points = (np.arange(POINTS)[:, None] + 0.5) / POINTS
        return example1.make_mechanism(N, MEAN), lambda y: np.abs(y[:, 0] - MEAN), points
    loss = example2.make_loss(stream[0])
    return example2.make_mechanism(loss), loss, draw_points(loss, [stream[0], POINTS], POINTS)


def _sampler(
    example: str,
    method: str,
    mechanism: ExponentialMechanism,
    epsilon: float,
    points: np.ndarray[Any, Any],
) -> Sampler:
    """Return the sampler.

    On Example 2 the atom's weight is tuned to its best, since the nominal k rests on a public
    bound.
    """
    if method.startswith("RandomAtom"):
        return RandomAtomPerfect(
            points, 0.5, proposal="laplace" if example == "Example 1" else "uniform"
        )
    if method == "Rejection" and example == "Example 2":
        return Rejection(example2.best_envelope(epsilon))
    if method.startswith("ConfAtomPerfect") and example == "Example 2":
        factory = method.endswith("printed")
        chain = ConfAtomPerfect(0.5, proposal="uniform").prepare(mechanism.target(epsilon=epsilon))
        odds = 1 << round(chain.kernel.tag_nats / math.log(2.0))
        return ConfAtomPerfect(Fraction(odds, odds + 1), proposal="uniform", factory=factory)  # type: ignore[arg-type]
    return METHODS[method]()


def _log10_steps(chain: Any) -> float:
    """Return the log of the expected number of steps of a prepared chain.

    As far as public parameters and the tag rate tell.
    """
    fixed = getattr(chain, "steps", None) or getattr(chain, "rounds", None)
    if fixed is not None:
        return math.log10(fixed)
    kernel = getattr(chain, "kernel", None)
    return 0.0 if kernel is None else (math.log(2.0) + kernel.tag_nats) / math.log(10.0)


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Return delta, mean loss, proposal quantiles and timing class of one sampler.

    Or the reason why there are none.
    """
    example, epsilon = parameters["example"], EXAMPLES[parameters["example"]]
    mechanism, loss, points = _problem(example, stream)
    sampler = _sampler(example, parameters["method"], mechanism, epsilon, points)
    try:
        target = mechanism.target(epsilon=epsilon)
        told, chain = sampler.terms(target), sampler.prepare(target)
    except UnsupportedError as error:
        return {"reason": np.array(str(error).split(". ")[0])}
    log10_steps = _log10_steps(chain)
    if log10_steps > math.log10(MOST_STEPS):
        return {
            "reason": np.array(f"no usable bound on this domain: about 10^{log10_steps:.0f} steps")
        }
    draws = mechanism.sample(
        epsilon=epsilon, size=parameters["draws"], sampler=sampler, seed=stream
    )
    losses = loss(draws.values)
    return {
        "delta": np.array(told.delta),
        "timing": np.array(told.timing),
        "loss": np.array([losses.mean(), 1.96 * losses.std() / math.sqrt(len(losses))]),
        "proposals": np.quantile(draws.proposals, [0.05, 0.5, 0.95]),
        "mean_proposals": np.array(draws.proposals.mean()),
    }


def short_reason(reason: str) -> str:
    """Return the reason a sampler gives for refusing in a few words."""
    if reason.startswith("no usable bound"):
        return reason
    known = {
        "proposal='laplace'": "no proved bound for a Laplace walk off a box",
        "mode='pad'": "refused: needs a computable normaliser",
        "mode='constant'": "refused: no public bound on the least loss",
    }
    return next((text for sign, text in known.items() if sign in reason), reason)


def render(results: Results, out: Path) -> Section:
    """Write the picture and its table."""
    rows: list[tuple[object, ...]] = []
    for parameters, result in results:
        head = (parameters["example"], EXAMPLES[parameters["example"]], parameters["method"])
        if "reason" in result:
            rows.append((*head, "", "", "", "", "", "", "", "", str(result["reason"])))
            continue
        numbers = [
            float(x)
            for x in (
                result["delta"],
                *result["loss"],
                result["mean_proposals"],
                *result["proposals"],
            )
        ]
        rows.append((*head, *numbers, str(result["timing"]), ""))
    header = (
        "example",
        "epsilon",
        "method",
        "delta",
        "mean_loss",
        "mean_loss_ci95",
        "mean_proposals",
        "q05",
        "median",
        "q95",
        "timing",
    )
    write_table(out, "tradeoff", (*header, "reason_for_no_draws"), rows)
    _plot(results, out)
    found = {(p["example"], p["method"]): r for p, r in results if "reason" not in r}
    exact = example1.expected_loss(example1.slope(N, 1.0), MEAN)

    def proposals(example: str, method: str) -> float:
        return float(found[example, method]["mean_proposals"])

    few = found["Example 1", "Metropolis, 20 steps"]
    return Section(
        title="The trade-off between privacy, utility and runtime",
        findings=(
            (
                "Too few Metropolis steps lose both ways: 20 steps on Example 1 have delta"
                f" {float(few['delta']):.2g} and a mean loss of {float(few['loss'][0]):.4f}, where"
                f" the exact law has {exact:.4f}."
            ),
            (
                "Exactness is not what costs. On Example 1 a draw takes"
                f" {proposals('Example 1', 'Rejection'):.3g} proposals by Rejection,"
                f" {proposals('Example 1', 'ConfAtomPerfect, direct'):.3g} steps by"
                f" ConfAtomPerfect, {proposals('Example 1', 'ConfAtomPerfect, as printed'):.3g} by"
                " Algorithm 1 as printed, and"
                f" {proposals('Example 1', 'Metropolis, uniform, δ = 1e-9'):.0f} by Metropolis at"
                " delta 1e-9; delta = 0 by Metropolis costs"
                f" {proposals('Example 1', 'Metropolis, pure'):.0f}."
            ),
            (
                "What costs is hiding the runtime:"
                f" {proposals('Example 1', 'ConfAtomAndRuntimePerfect, pad'):.3g} proposals on"
                " average by padding,"
                f" {proposals('Example 1', 'ConfAtomAndRuntimePerfect, constant'):.0f} for a"
                " constant count."
            ),
            (
                "On Example 2 no method with a runtime that hides the data has a bound that can be"
                " used: the public bounds on an L1 ball are too weak, and the picture says so."
                " Rejection, ConfAtomPerfect (its weight tuned) and RandomAtomPerfect draw exactly,"
                " and their runtime depends on the data."
            ),
        ),
        figures=(
            (
                "tradeoff",
                (
                    "Delta, expected loss (with 95% interval) and proposals a draw (median, middle"
                    " 90%) of each sampler; colour says whether the runtime leaks."
                ),
            ),
        ),
        tables=("tradeoff",),
    )


def _plot(results: Results, out: Path) -> None:
    figure = new_figure(6.4)
    axes = figure.subplots(2, 3, sharey="row", width_ratios=(0.8, 1.0, 1.2))
    names = list(METHODS)
    for parameters, result in results:
        delta_ax, loss_ax, time_ax = axes[list(EXAMPLES).index(parameters["example"])]
        place = len(names) - 1 - names.index(parameters["method"])
        if "reason" in result:
            text = short_reason(str(result["reason"]))
            note = time_ax.text(
                -0.88,
                place,
                text,
                fontsize=6.5,
                va="center",
                transform=time_ax.get_yaxis_transform(),
            )
            note.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
            note.set_in_layout(False)
            note.set_zorder(5)
            continue
        colour = _TIMING[str(result["timing"])]
        delta_ax.plot(
            [max(float(result["delta"]), 1e-12)], [place], marker="o", color=colour, markersize=5
        )
        loss_ax.errorbar(
            [result["loss"][0]],
            [place],
            xerr=[result["loss"][1]],
            marker="o",
            color=colour,
            markersize=4,
        )
        low, middle, high = result["proposals"]
        time_ax.plot(
            [low, high],
            [place, place],
            color=colour,
            linewidth=3.0,
            alpha=0.5,
            solid_capstyle="butt",
        )
        time_ax.plot([middle], [place], marker="o", color=colour, markersize=5)
    for row, title in zip(axes, _TITLES, strict=True):
        row[0].set_yticks(
            range(len(names)), [name.replace("l =", "$\\ell$ =") for name in names[::-1]]
        )
        row[0].set(xscale="log", xlim=(2e-13, 20.0), ylim=(-0.6, len(names) - 0.4))
        row[0].set_xticks([1e-12, 1e-9, 1e-6, 1e-3, 1.0], ["0", "$10^{-9}$", "", "", "1"])
        row[0].set_xlabel("privacy: δ beside ε")
        row[1].set_xlim(left=0.0)
        row[1].set_xlabel("utility: expected loss")
        row[2].set(xscale="log", xlim=(0.7, 2e5))
        row[2].set_xlabel("runtime: proposals a draw")
        row[1].set_title(
            " "
            # room for the row's title, which would else widen the first column
        )
        row[0].text(0.0, 1.03, title, transform=row[0].transAxes, fontweight="bold").set_in_layout(
            False
        )
    labels = {
        "constant": "runtime constant",
        "data-independent": "runtime random, same law for all data",
        "data-dependent": "runtime leaks",
    }
    handles = [
        axes[0, 0].plot([], [], marker="o", linestyle="", color=_TIMING[k], label=v)[0]
        for k, v in labels.items()
    ]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=3, title=_MESSAGE, title_fontsize=8.5
    )
    save_figure(figure, out, "tradeoff")


STUDY = Study(name="tradeoff", cells=cells, compute=compute, render=render)
