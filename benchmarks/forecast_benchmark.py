"""What plans forecast against what draws cost: evaluations and seconds, on problems of all kinds.

    python -m benchmarks.forecast_benchmark [--draws 12]

The forecast is the typical number of evaluations of the plan, and its time by the public table; the
measurement is the mean over draws, fitting included. Mechanisms that draw by themselves evaluate no
loss and have their time only. Writes benchmarks/results/forecasts.md, with a computed verdict.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.forecast_problems import DIRECT, PROBLEMS, Direct, Problem
from benchmarks.support import count, duration, environment, prose, table, write
from expmech.exponential.samplers.base import Sampler
from expmech.exponential.samplers.separable import SeparableChain, TermTarget
from expmech.exponential.target import Target

NEAR, FAR, SHARE = 3.0, 10.0, 0.9


@dataclass
class Counter:
    """Loss evaluations so far."""

    evaluations: int = 0


@contextmanager
def counting() -> Iterator[Counter]:
    """Count every energy that is computed inside."""
    found, real = Counter(), {}
    for owner in (Target, TermTarget, SeparableChain):
        real[owner] = owner.energy
        owner.energy = counted(owner.energy, found)  # type: ignore[method-assign]
    try:
        yield found
    finally:
        for owner, energy in real.items():
            owner.energy = energy  # type: ignore[method-assign]


def counted(compute: Callable[..., Any], found: Counter) -> Callable[..., Any]:
    def count_rows(self: Any, *arguments: Any) -> Any:
        found.evaluations += len(arguments[-1])
        return compute(self, *arguments)

    return count_rows


def planned(problem: Problem) -> tuple[Sampler, float, float]:
    """Return the sampler, and its forecast in evaluations and seconds."""
    plan = problem.mechanism.plan(problem.epsilon, timing="unprotected")
    option = plan.recommended
    if problem.sampler is not None:
        option = next(one for one in plan.options if one.name == problem.sampler)
    if option is None or option.sampler is None or option.forecast is None:
        raise ValueError(f"{problem.name}: {plan.refusal or (option and option.reason)}")
    return option.sampler, option.forecast.typical, option.seconds


def measure(problem: Problem, draws: int) -> list[str | float]:
    """Return name, sampler, forecasts, means and their ratios."""
    sampler, evaluations, seconds = planned(problem)
    costs, times = [], []
    least = 3 if seconds > 0.2 else draws
    with counting() as counter:
        for seed in range(least):
            counter.evaluations = 0
            start = time.process_time()
            ready = problem.mechanism.prepare(epsilon=problem.epsilon, sampler=sampler)
            drawn = ready.sample(1, seed)
            times.append(time.process_time() - start)
            proposals = 0 if sampler.name() == "ConfAtomPerfect" else int(drawn.proposals[0])
            costs.append(max(counter.evaluations, proposals))
    name = sampler.label
    return [problem.name, name, evaluations, float(np.mean(costs)), seconds, float(np.mean(times))]


def measure_direct(one: Direct, draws: int) -> list[str | float]:
    """Return the same of a mechanism that draws by itself."""
    mechanism = one.make()
    ready = [mechanism.prepare(epsilon=Fraction(1)) for _ in range(min(draws, 5))]
    start = time.process_time()
    for seed, prepared in enumerate(ready):
        prepared.study(seed)
    taken = (time.process_time() - start) / len(ready)
    name = type(mechanism).__name__
    return [one.name, name, math.nan, math.nan, ready[0].seconds, taken]


def ratio(forecast: float, measured: float) -> float:
    """Return measured over forecast."""
    return measured / forecast


def verdict(what: str, ratios: NDArray[np.float64]) -> tuple[str, bool]:
    """Say how many forecasts are near, and how far the farthest is."""
    away = np.maximum(ratios, 1.0 / ratios)
    near, worst = float((away <= NEAR).mean()), float(away.max())
    holds = near >= SHARE and worst <= FAR
    return (
        f"{what}: {100 * near:.0f}% of {len(ratios)} within a factor {NEAR:g} (wanted"
        f" {100 * SHARE:.0f}%), the farthest a factor {worst:.1f} away (wanted {FAR:g}):"
        f" {'holds' if holds else 'does not hold'}."
    ), holds


def lines_of(found: list[list[Any]]) -> list[list[str]]:
    lines = []
    for name, sampler, typical, mean, seconds, taken in found:
        evaluations = ["", "", ""]
        if not math.isnan(typical):
            evaluations = [count(typical), count(mean), f"{ratio(typical, mean):.2f}"]
        times = [duration(seconds), duration(taken), f"{taken / seconds:.2f}"]
        lines.append([name, sampler, *evaluations, *times])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=12, help="draws a problem, where short")
    draws = parser.parse_args().draws
    found: list[list[Any]] = []
    for problem in PROBLEMS:
        found.append(measure(problem, draws))
        print(" | ".join(lines_of(found[-1:])[0]), flush=True)
    for one in DIRECT:
        found.append(measure_direct(one, draws))
        print(" | ".join(lines_of(found[-1:])[0]), flush=True)
    loss = np.array([ratio(row[2], row[3]) for row in found if not math.isnan(row[2])])
    clock = np.array([row[5] / row[4] for row in found])
    head = ["problem", "sampler", "evaluations: forecast", "mean", "ratio"]
    head += ["time: forecast", "mean", "ratio"]
    write(
        "forecasts",
        [
            "# What plans forecast against what draws cost",
            "",
            *environment("forecast_benchmark"),
            "",
            verdict("Evaluations", loss)[0],
            "",
            verdict("Processor time, by the table", clock)[0],
            "",
            *prose(
                """The forecast is the plan's typical number of evaluations of one draw, everything
                included, from public quantities; the mean is that of draws from different seeds on
                one data set. Ratios are measured over forecast."""
            ),
            "",
            *table(head, lines_of(found)),
        ],
    )


if __name__ == "__main__":
    main()
