"""The true delta of m Metropolis steps, against what the paper's theorems promise.

Example 1 in one dimension on a small lattice: all neighbouring data sets, the law after m steps
point by point, and its hockey-stick divergence. Nothing here is drawn.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech import theory
from expmech.paper.example1 import log_delta, slope
from expmech.paper.kernels import Matrix, laplace_law, laplace_proposals, metropolis, worst_distance
from expmech.paper.options import Options
from expmech.paper.plotting import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    add_message,
    new_figure,
    save_figure,
    write_table,
)
from expmech.paper.study import Parameters, Result, Results, Section, Study
from expmech.paper.verdict import Interval, Verdict, all_of, is_below
from expmech.theory import divergence, steps_from_ergodicity

_COMMAND = "expmech paper delta"
_RATIO = 0.5  # r of the ergodic chain in the examples
SEEN = 1e-10  # deltas below it are rounding of float64 probabilities
_THEOREM = "M_m is (epsilon, delta_alpha)-DP where delta_alpha = alpha (1 + e^epsilon)"
_LOOSE = "the upper bound provided in Theorem 1 may be loose in practice"
_SIGN = "||mu_m - mu||_TV <= C V(y_0) r^-m"
_LOGN = "if we choose m = Omega(log(n)) ... delta_alpha = O(1/n)"
_MCMC = (
    "methods like these only approximate the target distribution asymptotically, meaning that the"
    " resulting sample need not satisfy the originally prescribed privacy guarantees"
)


def judge(results: Results, promised: Any) -> tuple[Verdict, ...]:
    """Return a verdict for each sentence, over all cells."""
    holds, loose, bounds = [], [], []
    worst_epsilon = 0.0
    for parameters, result in results:
        seen = result["delta"] > SEEN
        if not seen.any():
            continue  # no neighbour can be told from another beyond epsilon: nothing to compare
        by_theorem = (1.0 + math.exp(float(result["exact_epsilon"]))) * result["tv"][seen]
        ratio = by_theorem / result["delta"][seen]
        holds.append(float(ratio.min()))
        loose.append(float(np.median(ratio)))
        promise = promised(parameters, result)[seen]
        bounds.append(float((promise / result["delta"][seen]).max()))
        worst_epsilon = max(worst_epsilon, float(result["epsilon"][0] / parameters["epsilon"]))
    one = Interval.exact(1.0)
    n, budgets, sizes = (
        ", ".join(dict.fromkeys(f"{p[name]:g}" for p, _ in results))
        for name in ("n", "epsilon", "cells")
    )
    under = (
        f"Example 1, d = 1, n = {n}, epsilon = {budgets}, lattice of {sizes} points, uniform and"
        " Laplace proposals, means j/n, worst start"
    )
    own = f"{under}; at the epsilon that f itself has"
    return (
        Verdict(
            _THEOREM,
            "Theorem 1",
            own,
            all_of([is_below(Interval.exact(1.0 - 1e-9), Interval.exact(x)) for x in holds]),
            f"bound over true delta at least {min(holds):.2f}",
            _COMMAND,
        ),
        Verdict(
            _LOOSE,
            "Section 4.2",
            own,
            all_of([is_below(Interval.exact(2.0), Interval.exact(x)) for x in loose]),
            f"median bound over true delta {min(loose):.1f} to {max(loose):.1f} from the true"
            f" distance; by minorisation up to {max(bounds):.0e}",
            _COMMAND,
        ),
        Verdict(
            _MCMC,
            "Section 1.1",
            f"{under}; m = 1",
            is_below(one, Interval.exact(worst_epsilon)),
            f"after one step the pure epsilon is {worst_epsilon:.2f} times the claimed one",
            _COMMAND,
        ),
        *_ergodicity(),
    )


def _ergodicity() -> tuple[Verdict, Verdict]:
    """Judge the sign, and m ~ log n, in closed form."""
    chain = {"constant": 2.0, "potential": 1.0, "ratio": _RATIO}
    sizes = [10**j for j in range(2, 7)]
    steps = [steps_from_ergodicity(1.0, delta=1.0 / n, **chain) for n in sizes]
    slopes = np.diff(steps) / math.log(10.0) * math.log(2.0)
    even = is_below(Interval.exact(float(np.abs(slopes - 1.0).max())), Interval.exact(0.35))
    bounds = [_RATIO**-m for m in (9, 10)]
    falls = is_below(Interval.exact(bounds[1]), Interval.exact(bounds[0]))
    listed = ", ".join(f"{m} (n = 10^{j})" for j, m in enumerate(steps, start=2))
    return (
        Verdict(
            _SIGN,
            "Equation (1)",
            "r = 1/2, m = 9 and 10: a bound that falls",
            falls,
            f"r^-10 = {bounds[1]:g} at r = 1/2; r^m is meant",
            _COMMAND,
        ),
        Verdict(
            _LOGN,
            "Section 2.1",
            "with r^m, C = 2, V = 1, r = 1/2, epsilon = 1, delta = 1/n",
            even,
            f"{listed} steps",
            _COMMAND,
        ),
    )


PROPOSALS = ("uniform", "laplace")
MEASURES = ("tv", "delta", "claimed", "epsilon", "range", "renyi")
_RENYI_ORDER = 2.0
_MOST_STEPS = 4000
_SMALLEST = 1e-13  # differences of float64 probabilities below it are rounding


def cells(options: Options) -> list[tuple[Parameters, float]]:
    """List a cell for each n, epsilon and kind of proposal."""
    size = 32 if options.quick else 128
    return [
        (
            {
                "n": n,
                "epsilon": epsilon,
                "proposals": kind,
                "cells": size,
                "alpha": options.alpha,
            },
            0.5,
        )
        for n in options.n or (10,)
        for epsilon in options.epsilon or (1.0,)
        for kind in PROPOSALS
    ]


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Return, for growing m, the worst total variation, the true delta, epsilon and divergences."""
    n, epsilon, size = parameters["n"], parameters["epsilon"], parameters["cells"]
    c = slope(n, epsilon)
    uniform = parameters["proposals"] == "uniform"
    proposals = (
        np.full((size, size), 1.0 / size)
        if uniform
        else laplace_proposals(size, parameters["alpha"] or c)
    )
    targets = [laplace_law(size, c, j / n) for j in range(n + 1)]
    kernels = [metropolis(proposals, law) for law in targets]
    powers = [np.eye(size) for _ in targets]
    steps = np.unique(np.logspace(0.0, math.log10(_MOST_STEPS), 40).astype(np.int64)).tolist()
    measured: dict[str, list[float]] = {name: [] for name in MEASURES}
    reached = 0
    for m in steps:
        both = zip(powers, kernels, strict=True)
        powers = [power @ np.linalg.matrix_power(kernel, m - reached) for power, kernel in both]
        reached = m
        for name, value in _measure(powers, targets, epsilon).items():
            measured[name].append(value)
    exact = {"exact_epsilon": np.array(theory.true_epsilon(pairwise(targets)))}
    return {"steps": np.array(steps), **exact, **{k: np.array(v) for k, v in measured.items()}}


def _measure(powers: list[Matrix], targets: list[Matrix], epsilon: float) -> dict[str, float]:
    """Return the worst of each measure over all public starts and all neighbours."""
    starts = range(len(targets[0]))
    pairs = [(first[y], second[y]) for first, second in pairwise(powers) for y in starts]
    own = theory.true_epsilon(pairwise(targets))
    return {
        "tv": max(worst_distance(power, law) for power, law in zip(powers, targets, strict=True)),
        "delta": theory.true_delta(pairs, own),
        "claimed": theory.true_delta(pairs, epsilon),
        "epsilon": theory.true_epsilon(pairs),
        "range": divergence.bounded_range(pairs),
        "renyi": theory.true_renyi(pairs, _RENYI_ORDER),
    }


def promised(parameters: Parameters, result: Result) -> NDArray[np.float64]:
    """Return the delta that the minorisation constant promises after each number of steps."""
    c, own = slope(parameters["n"], parameters["epsilon"]), float(result["exact_epsilon"])
    log_beta = theory.log_acceptance_floor_box([c], [math.inf])
    if parameters["proposals"] != "uniform":
        log_beta = theory.log_beta_laplace([parameters["alpha"] or c], [math.inf], log_beta)
    return np.exp([log_delta(own, log_beta, int(m)) for m in result["steps"]])


def render(results: Results, out: Path) -> Section:
    """Write the picture, the table and the verdicts."""
    rows = []
    for parameters, result in results:
        named = (parameters["n"], parameters["epsilon"], parameters["proposals"])
        factor = 1.0 + math.exp(float(result["exact_epsilon"]))
        columns = [result[name] for name in MEASURES]
        by_theorem = np.minimum(1.0, factor * result["tv"])
        promise = promised(parameters, result)
        for numbers in zip(result["steps"], *columns, by_theorem, promise, strict=True):
            rows.append((*named, int(numbers[0]), *map(float, numbers[1:])))
    names = (
        "n epsilon proposals steps true_tv true_delta true_delta_at_claimed true_epsilon"
        " bounded_range renyi_2"
    )
    write_table(
        out, "delta", (*names.split(), "delta_from_true_tv", "delta_from_minorisation"), rows
    )
    _plot(results, out)
    caption = (
        "Left: delta of m Metropolis steps at the epsilon that f itself has, true (hockey-stick"
        " divergence, worst start, all neighbours), by the theorem from the true total variation,"
        " and by the minorisation; dotted: true delta at the claimed epsilon. Right: epsilon, range"
        " and Renyi divergence of the same laws. Lines end where a delta is at most 1e-13, which"
        " float64 cannot tell from 0; the range ends on the claimed epsilon."
    )
    return Section(
        title="Minami's theorem: the delta of a chain, and how loose the bound is",
        findings=(),
        figures=(("delta", caption),),
        tables=("delta",),
        verdicts=judge(results, promised),
    )


def _plot(results: Results, out: Path) -> None:
    figure = new_figure(0.9 + 2.0 * len(results))
    axes = figure.subplots(len(results), 2, squeeze=False, sharex=True)
    for (left, right), (parameters, result) in zip(axes, results, strict=True):
        _draw_deltas(left, parameters, result)
        steps, epsilon = result["steps"], parameters["epsilon"]
        right.plot(steps, result["epsilon"], color=ORANGE, label="largest |log ratio| (pure ε)")
        right.plot(steps, result["range"], color=GREEN, label="range of the privacy loss")
        right.plot(steps, result["renyi"], color=PURPLE, label="Rényi divergence, order 2")
        right.axhline(epsilon, color=GREY, linestyle="--", linewidth=0.9, label="claimed ε")
        right.set(xscale="log", yscale="log", ylabel="nats", title="the same laws")
    for ax in axes[-1]:
        ax.set_xlabel("steps m")
    handles = [h for ax in axes[0] for h in ax.get_legend_handles_labels()[0]]
    add_message(figure, _message(results), columns=3, handles=handles)
    save_figure(figure, out, "delta")


def _message(results: Results) -> str:
    """Return how far the minorisation's delta is from the true one at the worst."""
    times = 0.0
    for parameters, result in results:
        seen = result["delta"] > SEEN
        promise = promised(parameters, result)[seen] / result["delta"][seen]
        times = max(times, float(promise.max(initial=1.0)))
    return f"The δ that is promised is up to 10$^{{{math.log10(times):.0f}}}$ times the true one"


def _draw_deltas(ax: Any, parameters: Parameters, result: Result) -> None:
    steps, own = result["steps"], float(result["exact_epsilon"])
    true, away, claimed = (
        np.where(result[name] > _SMALLEST, result[name], np.nan)
        for name in ("delta", "tv", "claimed")
    )
    by_theorem = np.minimum(1.0, (1.0 + math.exp(own)) * away)
    promise = promised(parameters, result)
    ax.plot(steps, promise, color=VERMILION, linestyle=(0, (4, 1.5)), label="theorem, minorisation")
    ax.plot(steps, by_theorem, color=BLUE, label="theorem, true distance")
    ax.plot(steps, true, color=BLACK, linewidth=2.0, label="true δ")
    ax.plot(steps, claimed, color=BLACK, linestyle=":", label="true δ at the claimed ε")
    ax.set(xscale="log", yscale="log", ylim=(1e-13, 2.0), ylabel="δ")
    kind = parameters["proposals"].replace("laplace", "Laplace")
    ax.set_title(f"{kind} proposals, n = {parameters['n']}, ε = {parameters['epsilon']:g}")


STUDY = Study(
    name="delta", cells=cells, compute=compute, render=render, takes=("n", "epsilon", "alpha")
)
