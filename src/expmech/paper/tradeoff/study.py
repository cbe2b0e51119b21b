"""The trade-off the paper argues for and never draws.

Privacy, utility and runtime of every sampler, on both examples.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from expmech.core.errors import UnsupportedError
from expmech.paper import example1
from expmech.paper.options import Options
from expmech.paper.plotting import write_table
from expmech.paper.study import Results, Section, Study
from expmech.paper.tradeoff.methods import (
    EXAMPLES,
    MEAN,
    METHODS,
    N,
    log10_steps,
    problem,
    sampler,
)
from expmech.paper.tradeoff.plot import plot
from expmech.paper.tradeoff.verdicts import judge
from expmech.paper.work import Parameters, Result

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
