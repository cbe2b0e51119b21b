"""What Figure 2 says about the paper's sentences, reading by reading."""

from __future__ import annotations

from typing import Any

import numpy as np

from expmech.paper.example1 import slope
from expmech.paper.fig2.counts import CORRECTED, DIRECT, PRINTED, conditions, judge_counts
from expmech.paper.fig2.drawn_counts import count_apart, judge_branches, judge_drawn
from expmech.paper.printed.kernel import READINGS
from expmech.paper.study import Results
from expmech.paper.verdict import (
    FALSE,
    HOLDS,
    Interval,
    Verdict,
    all_of,
    is_below,
    is_increasing,
    mean_interval,
    median_interval,
)

_COMMAND = "expmech paper fig2"
_GROWS = "As expected, run-time increases as both n and epsilon increases"
_CENTER = (
    "the runtime for the perfect sampler decreases when the data is more likely to be concentrated"
    " at the center of the output space"
)
_BOUND = "E[N_prop] <= 48 / (k^2 (1-k)^2 inf p_Accept)"
_LOOSE = "we anticipate the expected runtime bound above is very loose"


def judge(parts: dict[str, Results]) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """Return the verdicts, and what else the numbers say."""
    grid = parts["grid"]
    verdicts = [
        _growth(parts["readings"], reading, method)
        for method in (PRINTED, CORRECTED)
        for reading in READINGS
    ]
    verdicts += [_center(grid, method) for method in (PRINTED, CORRECTED)]
    verdicts += _bound(grid) + _bound(parts["narrow"]) + judge_counts(grid)
    verdicts += judge_drawn(count_apart(grid)) + judge_branches(grid)
    return tuple(verdicts), (_agreement(parts), _valley(parts["sweep"]))


def _growth(results: Results, reading: str, method: str) -> Verdict:
    """Judge whether the computed mean counts rise along n epsilon / 2."""
    chosen = [(p, r) for p, r in results if p["reading"] == reading and p["method"] == method]
    chosen.sort(key=lambda pair: slope(pair[0]["n"], pair[0]["epsilon"]))
    series = [float(r["expected"].mean()) for _, r in chosen]
    listed = ", ".join(f"{number:.4g}" for number in series)
    at = ", ".join(f"{slope(p['n'], p['epsilon']):g}" for p, _ in chosen)
    return Verdict(
        sentence=_GROWS,
        where="Figure 2",
        under=conditions(chosen),
        verdict=is_increasing([Interval.exact(number) for number in series]),
        number=f"computed means: {listed} at n epsilon / 2 = {at}",
        command=_COMMAND,
    )


def _center(results: Results, method: str) -> Verdict:
    """Judge the least against the most concentrated law of the mean, by computed mean counts."""
    chosen = [(p, r) for p, r in results if p["method"] == method]
    groups: dict[tuple[Any, ...], Results] = {}
    for p, r in chosen:
        groups.setdefault((p["n"], p["epsilon"], p["k"]), []).append((p, r))
    answers, texts, drawn = [], [], []
    for (n, epsilon, _), group in groups.items():
        order = sorted(group, key=lambda pair: sum(pair[0]["beta"]))
        ends = [order[j][1] for j in (0, -1)]
        edge, center = (float(result["expected"].mean()) for result in ends)
        answers.append(is_below(Interval.exact(center), Interval.exact(edge)))
        texts.append(f"{edge:.4g}, {center:.4g} (n = {n}, epsilon = {epsilon:g})")
        if all(result["proposals"].size for result in ends):
            many = 2 * len(groups)
            medians = [median_interval(result["proposals"], many) for result in ends]
            drawn.append(is_below(medians[1], medians[0]))
    return Verdict(
        sentence=_CENTER,
        where="Section 3.1",
        under=conditions(chosen),
        verdict=all_of(answers),
        number=(
            f"computed means fall in {answers.count(HOLDS)} of {len(answers)} cells, most against"
            f" least spread law: {'; '.join(texts[-3:])}; drawn medians show it in"
            f" {drawn.count(HOLDS)} of {len(drawn)} cells, the opposite in {drawn.count(FALSE)}"
        ),
        command=_COMMAND,
    )


def _bound(results: Results) -> list[Verdict]:
    """Judge the theorem's bound against the computed mean of every cell, at every mean."""
    verdicts = []
    for method in (PRINTED, CORRECTED):
        chosen = [(p, r) for p, r in results if p["method"] == method]
        if not chosen:
            continue
        ratios = np.concatenate([r["bound"] / r["expected"] for _, r in chosen])
        means = np.concatenate([r["expected"] for _, r in chosen])
        numbers = (
            f"bound over computed mean: {ratios.min():.3g} to {ratios.max():.3g}; computed means"
            f" {means.min():.3g} to {means.max():.3g}"
        )
        least, under = Interval.exact(float(ratios.min())), conditions(chosen)
        for sentence, where, times in (
            (_BOUND, "Theorem 2", 1.0),
            (_LOOSE, "after Theorem 2", 10.0),
        ):
            answer = is_below(Interval.exact(times), least)
            verdicts.append(Verdict(sentence, where, under, answer, numbers, _COMMAND))
    return verdicts


def _agreement(parts: dict[str, Results]) -> str:
    """Say how many drawn means cover their computed means."""
    drawn = [(p, r) for part in parts.values() for p, r in part if r["proposals"].size >= 30]
    inside = 0
    for _, result in drawn:
        interval = mean_interval(result["proposals"], len(drawn))
        inside += interval.low <= float(result["expected"].mean()) <= interval.high
    runs = {int(r["proposals"].size) for part in parts.values() for _, r in part}
    return (
        f"The computed mean lies in the interval of the drawn mean in {inside} of {len(drawn)}"
        f" cells with 30 runs or more (runs a cell: {', '.join(map(str, sorted(runs)))}; 0 where"
        " a run would be too long)."
    )


def _valley(results: Results) -> str:
    listed = {
        method: ", ".join(
            f"{float(r['expected'].mean()):.3g} (k = {p['k']:g})"
            for p, r in results
            if p["method"] == method
        )
        for method in (DIRECT, PRINTED)
    }
    return (
        f"Mean steps against k: {listed[DIRECT]} for the direct form; {listed[PRINTED]} for"
        " Algorithm 1 on the printed kernel. A small k makes the atom rare, so that a run between"
        " two visits is long (1/k); a large k makes a run end at the atom, which releases nothing"
        " (1/(1-k)); the valley is where the atom's mass meets the envelope, B = 0."
    )
