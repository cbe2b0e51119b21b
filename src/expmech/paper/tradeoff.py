"""The trade-off the paper argues for and never draws.

Privacy, utility and runtime of every sampler, on both examples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from expmech.core.errors import UnsupportedError
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.samplers import (
    ConfAtomAndRuntimePerfect,
    ConfAtomPerfect,
    Metropolis,
    RandomAtomPerfect,
    Rejection,
    Sampler,
)
from expmech.paper import example1, example2
from expmech.paper.example1 import expected_loss, slope
from expmech.paper.fig3.law import draw_points
from expmech.paper.options import Options
from expmech.paper.plotting import (
    BLUE,
    GREEN,
    VERMILION,
    add_message,
    new_figure,
    save_figure,
    write_table,
)
from expmech.paper.study import Parameters, Result, Results, Section, Study
from expmech.paper.verdict import Interval, Verdict, all_of, is_below, mean_interval
from expmech.theory import laplace_integral

EXAMPLES = {"Example 1": 1.0, "Example 2": 10.0}  # with the epsilon each is run at
N, MEAN, POINTS = 100, 0.3, 100
METHODS: dict[str, Callable[[], Sampler]] = {
    "Metropolis, 20 steps": lambda: Metropolis(steps=20),
    "Metropolis, uniform, δ = 1e-9": lambda: Metropolis(delta=1e-9),
    "Metropolis, Laplace, δ = 1e-9": lambda: Metropolis(delta=1e-9, proposal="laplace"),
    "Metropolis, pure": lambda: Metropolis(pure=True),
    "ConfAtomPerfect, corrected": lambda: ConfAtomPerfect(0.5, factory=True),
    "ConfAtomPerfect, direct": lambda: ConfAtomPerfect(0.5),
    "RandomAtomPerfect, l = 100": lambda: RandomAtomPerfect(np.array([[0.5]])),
    "ConfAtomAndRuntimePerfect, pad": lambda: ConfAtomAndRuntimePerfect("pad"),
    "ConfAtomAndRuntimePerfect, constant": lambda: ConfAtomAndRuntimePerfect("constant"),
    "Rejection": lambda: Rejection(),
}


def problem(
    example: str, stream: list[int]
) -> tuple[ExponentialMechanism, Any, np.ndarray[Any, Any]]:
    """Return the mechanism, its loss and the public points for RandomAtomPerfect."""
    if example == "Example 1":
        points = (np.arange(POINTS)[:, None] + 0.5) / POINTS
        return example1.make_mechanism(N, MEAN), lambda y: np.abs(y[:, 0] - MEAN), points
    loss = example2.make_loss(stream[0])
    return example2.make_mechanism(loss), loss, draw_points(loss, [stream[0], POINTS], POINTS)


def sampler(
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
        factory = method.endswith("corrected")
        chain = ConfAtomPerfect(0.5, proposal="uniform").prepare(mechanism.target(epsilon=epsilon))
        odds = 1 << round(chain.kernel.tag_nats / math.log(2.0))
        return ConfAtomPerfect(Fraction(odds, odds + 1), proposal="uniform", factory=factory)  # type: ignore[arg-type]
    return METHODS[method]()


def log10_steps(chain: Any) -> float:
    """Return the log of the expected number of steps of a prepared chain.

    It goes as far as public parameters and the tag rate tell.
    """
    fixed = getattr(chain, "steps", None) or getattr(chain, "rounds", None)
    if fixed is not None:
        return math.log10(fixed)
    kernel = getattr(chain, "kernel", None)
    return 0.0 if kernel is None else (math.log(2.0) + kernel.tag_nats) / math.log(10.0)


_COMMAND = "expmech paper tradeoff"
_TRADE = "we demonstrate that there is also a trade-off between privacy guarantees and runtime"
_CHEAPER = "a modification that ... has improved runtime at the cost of some utility"
_UNDER = f"Example 1, d = 1, n = {N}, epsilon = 1, mean {MEAN:g}"
_FEW, _SOME, _PURE = "Metropolis, 20 steps", "Metropolis, uniform, δ = 1e-9", "Metropolis, pure"
_CONF, _RANDOM = "ConfAtomPerfect, direct", "RandomAtomPerfect, l = 100"


def judge(results: Results) -> tuple[Verdict, ...]:
    """Return the verdicts on Example 1, where every sampler can be drawn."""
    by_method = {p["method"]: r for p, r in results if p["example"] == "Example 1"}
    steps = [
        Interval.exact(float(by_method[name]["mean_proposals"])) for name in (_FEW, _SOME, _PURE)
    ]
    rejection = float(by_method["Rejection"]["mean_proposals"])
    counts = ", ".join(f"{interval.estimate:.0f}" for interval in steps)
    return (
        Verdict(
            _TRADE,
            "Abstract",
            f"{_UNDER}; Metropolis, uniform proposals",
            all_of([is_below(steps[0], steps[1]), is_below(steps[1], steps[2])]),
            f"{counts} steps for no guarantee, delta = 1e-9 and delta = 0",
            _COMMAND,
        ),
        Verdict(
            _TRADE,
            "Abstract",
            f"{_UNDER}; exact samplers",
            is_below(steps[0], _mean(by_method["Rejection"])),
            f"Rejection is pure with {rejection:.2f} proposals, fewer than any chain",
            _COMMAND,
        ),
        *(
            cheaper(by_method[_CONF], by_method[_RANDOM], mean)
            for mean in (MEAN, MEAN + 0.5 / POINTS)
        ),
    )


def _mean(result: Result) -> Interval:
    return mean_interval(result["counts"], 4)


def cheaper(conf: Result, random: Result, mean: float) -> Verdict:
    """Judge both halves: fewer proposals as drawn, and a larger mean loss, computed."""
    exact = expected_loss(slope(N, 1.0), mean)
    mixture = mixture_loss(slope(N, 1.0), mean)
    faster = is_below(_mean(random), _mean(conf))
    dearer = is_below(Interval.exact(exact), Interval.exact(mixture))
    return Verdict(
        _CHEAPER,
        "Abstract",
        f"RandomAtomPerfect, {POINTS} points (j + 1/2)/{POINTS}, nominal k = 1/2, Example 1, d = 1,"
        f" n = {N}, epsilon = 1, mean {mean:g}; steps drawn at mean {MEAN:g}, losses computed",
        all_of([faster, dearer]),
        f"steps {_mean(random).estimate:.2f} against {_mean(conf).estimate:.2f} of ConfAtomPerfect"
        f" ({faster}); mean loss {mixture:.5f} against {exact:.5f} of f ({dearer})",
        _COMMAND,
    )


def mixture_loss(rate: float, mean: float) -> float:
    """Return the mean loss of the mixture over the interval and the points, nominal k = 1/2."""
    away = np.abs((np.arange(POINTS) + 0.5) / POINTS - mean)
    weights = np.exp(-rate * away) / POINTS
    whole = laplace_integral(rate, mean)
    total = expected_loss(rate, mean) * whole + float(weights @ away)
    return total / (whole + float(weights.sum()))


_TITLES = (
    "Example 1: mean, n = 100, d = 1, ε = 1",
    "Example 2: ridge regression, n = 100, p = 5, ε = 10",
)
_MESSAGE = "Exact draws are cheap; a δ, or a runtime that hides the data, is what costs"
_TIMING = {
    "constant": (GREEN, "runtime constant"),
    "data-independent": (BLUE, "runtime random, same law for all data"),
    "data-dependent": (VERMILION, "runtime leaks"),
}


def short_reason(reason: str) -> str:
    """Return the reason a sampler gives for refusing in a few words."""
    if reason.startswith("no usable bound"):
        return reason
    steps = re.match(r"Metropolis would take (\S+) steps", reason)
    if steps:
        return f"no usable bound on this domain: {float(steps[1]):.0e} steps"
    known = {
        "proposal='laplace'": "no proved bound for a Laplace walk off a box",
        "mode='pad'": "refused: needs a computable normaliser",
        "mode='constant'": "refused: no public bound on the least loss",
    }
    return next((text for sign, text in known.items() if sign in reason), reason)


def plot(results: Results, out: Path) -> None:
    """Draw delta, expected loss and proposals of each sampler, an example a row."""
    figure = new_figure(6.4)
    axes = figure.subplots(2, 3, sharey="row", width_ratios=(0.8, 1.0, 1.2))
    names = list(METHODS)
    for parameters, result in results:
        row = axes[list(EXAMPLES).index(parameters["example"])]
        place = len(names) - 1 - names.index(parameters["method"])
        if "reason" in result:
            _draw_reason(row[2], place, short_reason(str(result["reason"])))
        else:
            _draw_sampler(row, place, result)
    for row, title in zip(axes, _TITLES, strict=True):
        _label_row(row, title, names[::-1])
    ax = axes[0, 0]
    for colour, label in _TIMING.values():
        ax.plot([], [], marker="o", linestyle="", color=colour, label=label)
    add_message(figure, _MESSAGE, ax)
    save_figure(figure, out, "tradeoff")


def _draw_reason(ax: Any, place: int, text: str) -> None:
    note = ax.text(
        -0.88, place, text, fontsize=6.5, va="center", transform=ax.get_yaxis_transform()
    )
    note.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    note.set_in_layout(False)
    note.set_zorder(5)


def _draw_sampler(axes: Any, place: int, result: Result) -> None:
    colour = _TIMING[str(result["timing"])][0]
    dot = {"marker": "o", "color": colour}
    axes[0].plot([max(float(result["delta"]), 1e-12)], [place], markersize=5, **dot)
    mean, half_width = result["loss"]
    axes[1].errorbar([mean], [place], xerr=[half_width], markersize=4, **dot)
    low, middle, high = result["proposals"]
    thick = {"color": colour, "linewidth": 3.0, "alpha": 0.5, "solid_capstyle": "butt"}
    axes[2].plot([low, high], [place, place], **thick)
    axes[2].plot([middle], [place], markersize=5, **dot)


def _label_row(row: Any, title: str, names: list[str]) -> None:
    row[0].set_yticks(range(len(names)), [name.replace("l =", "$\\ell$ =") for name in names])
    row[0].set(xscale="log", xlim=(2e-13, 20.0), ylim=(-0.6, len(names) - 0.4))
    row[0].set_xticks([1e-12, 1e-9, 1e-6, 1e-3, 1.0], ["0", "$10^{-9}$", "", "", "1"])
    row[0].set_xlabel("privacy: δ beside ε")
    row[1].set_xlim(left=0.0)
    row[1].set_xlabel("utility: expected loss")
    row[2].set(xscale="log", xlim=(0.7, 2e5))
    row[2].set_xlabel("runtime: proposals a draw")
    row[1].set_title(" ")  # room for the row's title, which would else widen the first column
    heading = row[0].text(0.0, 1.03, title, transform=row[0].transAxes, fontweight="bold")
    heading.set_in_layout(False)


MOST_STEPS = 1e6


def cells(options: Options) -> list[tuple[Parameters, float]]:
    """List a cell for each example and sampler."""
    draws = options.runs or (200 if options.quick else 4000)
    return [
        ({"example": example, "method": method, "draws": draws}, 0.5 if options.quick else 4.0)
        for example in EXAMPLES
        for method in METHODS
    ]


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Return delta, mean loss, proposal quantiles and timing class of one sampler.

    Where there are none, return the reason.
    """
    example, epsilon = parameters["example"], EXAMPLES[parameters["example"]]
    mechanism, loss, points = problem(example, stream)
    method = sampler(example, parameters["method"], mechanism, epsilon, points)
    try:
        target = mechanism.target(epsilon=epsilon)
        terms, chain = method.terms(target), method.prepare(target)
    except UnsupportedError as error:
        return {"reason": np.array(str(error).split(". ")[0])}
    log10 = log10_steps(chain)
    if log10 > math.log10(MOST_STEPS):
        return {"reason": np.array(f"no usable bound on this domain: about 10^{log10:.0f} steps")}
    draws = mechanism.sample(epsilon=epsilon, size=parameters["draws"], sampler=method, seed=stream)
    losses = loss(draws.values)
    return {
        "delta": np.array(terms.delta),
        "timing": np.array(terms.timing),
        "loss": np.array([losses.mean(), 1.96 * losses.std() / math.sqrt(len(losses))]),
        "proposals": np.quantile(draws.proposals, [0.05, 0.5, 0.95]),
        "mean_proposals": np.array(draws.proposals.mean()),
        "counts": draws.proposals,
        "losses": losses,
    }


def render(results: Results, out: Path) -> Section:
    """Write the picture and its table."""
    caption = (
        "Delta, expected loss (with 95% interval) and proposals a draw (median, middle 90%) of each"
        " sampler; colour says whether the runtime leaks."
    )
    plot(results, out)
    _write_table(results, out)
    title, pictures = "The trade-off between privacy, utility and runtime", (("tradeoff", caption),)
    return Section(title, _findings(results), pictures, ("tradeoff",), judge(results))


def _write_table(results: Results, out: Path) -> None:
    rows: list[tuple[object, ...]] = []
    for parameters, result in results:
        head = (parameters["example"], EXAMPLES[parameters["example"]], parameters["method"])
        if "reason" in result:
            rows.append((*head, *[""] * 8, str(result["reason"])))
            continue
        numbers = (result["delta"], *result["loss"], result["mean_proposals"], *result["proposals"])
        rows.append((*head, *(float(x) for x in numbers), str(result["timing"]), ""))
    names = (
        "example epsilon method delta mean_loss mean_loss_ci95 mean_proposals q05 median q95 timing"
    )
    write_table(out, "tradeoff", (*names.split(), "reason_for_no_draws"), rows)


def _findings(results: Results) -> tuple[str, ...]:
    numbers = {(p["example"], p["method"]): r for p, r in results if "reason" not in r}
    exact = example1.expected_loss(example1.slope(N, 1.0), MEAN)

    def proposals(method: str) -> float:
        return float(numbers["Example 1", method]["mean_proposals"])

    few = numbers["Example 1", "Metropolis, 20 steps"]
    return (
        "Too few Metropolis steps lose both ways: 20 steps on Example 1 have delta"
        f" {float(few['delta']):.2g} and a mean loss of {float(few['loss'][0]):.4f}, where"
        f" the exact law has {exact:.4f}.",
        "Exactness is not what costs. On Example 1 a draw takes"
        f" {proposals('Rejection'):.3g} proposals by Rejection,"
        f" {proposals('ConfAtomPerfect, direct'):.3g} steps by"
        f" ConfAtomPerfect, {proposals('ConfAtomPerfect, corrected'):.3g} by"
        " Algorithm 1 on the corrected kernel, and"
        f" {proposals('Metropolis, uniform, δ = 1e-9'):.0f} by Metropolis at"
        " delta 1e-9; delta = 0 by Metropolis costs"
        f" {proposals('Metropolis, pure'):.0f}.",
        "What costs is hiding the runtime:"
        f" {proposals('ConfAtomAndRuntimePerfect, pad'):.3g} proposals on"
        " average by padding,"
        f" {proposals('ConfAtomAndRuntimePerfect, constant'):.0f} for a"
        " constant count.",
        "On Example 2 no method with a runtime that hides the data has a bound that can be"
        " used: the public bounds on an L1 ball are too weak, and the picture says so."
        " Rejection, ConfAtomPerfect (its weight tuned) and RandomAtomPerfect draw exactly,"
        " and their runtime depends on the data.",
    )


STUDY = Study(name="tradeoff", cells=cells, compute=compute, render=render, takes=("runs",))
