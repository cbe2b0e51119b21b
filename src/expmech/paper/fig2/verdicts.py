"""What Figure 2 says about the paper's sentences, reading by reading."""

from __future__ import annotations

import numpy as np

from expmech.paper.example1 import slope
from expmech.paper.fig2.counts import CORRECTED, DIRECT, PRINTED
from expmech.paper.fig2.drawn_counts import count_apart, judge_branches, judge_drawn
from expmech.paper.fig2.proof_counts import judge_counts
from expmech.paper.printed import READINGS
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
from expmech.paper.work import Parameters, Result

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
    verdicts = [
        _growth(parts["readings"], reading, method)
        for method in (PRINTED, CORRECTED)
        for reading in READINGS
    ]
    verdicts += [_center(parts["grid"], method) for method in (PRINTED, CORRECTED)]
    verdicts += _bound(parts["grid"]) + judge_counts(parts["grid"])
    verdicts += judge_drawn(count_apart(parts["grid"])) + judge_branches(parts["grid"])
    return tuple(verdicts), (_agreement(parts), _valley(parts["sweep"]))


def _growth(results: Results, reading: str, method: str) -> Verdict:
    """Judge whether counts rise along n epsilon / 2, by medians or by computed means."""
    chosen = _along_slopes(results, reading, method)
    drawn = all(r["proposals"].size for _, r in chosen)
    series = [
        median_interval(r["proposals"], len(chosen))
        if drawn
        else Interval.exact(float(r["expected"].mean()))
        for _, r in chosen
    ]
    what = "medians" if drawn else "computed means, as not every run could end"
    listed = ", ".join(f"{interval.estimate:.4g}" for interval in series)
    at = ", ".join(f"{c:g}" for c, _ in chosen)
    kernel = "printed" if method == PRINTED else "corrected"
    alpha = "uniform proposals" if reading == "uniform" else f"alpha as a {reading}"
    return Verdict(
        sentence=_GROWS,
        where=f"Figure 2, {alpha}, {kernel} kernel",
        verdict=is_increasing(series),
        number=f"{what}: {listed} at n epsilon / 2 = {at}",
        command=_COMMAND,
    )


def _along_slopes(results: Results, reading: str, method: str) -> list[tuple[float, Result]]:
    pairs = [
        (slope(p["n"], p["epsilon"]), r)
        for p, r in results
        if p["reading"] == reading and p["method"] == method
    ]
    return sorted(pairs, key=lambda pair: pair[0])


def _center(results: Results, method: str) -> Verdict:
    """Judge, at every n and epsilon, the least against the most concentrated law of the mean."""
    groups: dict[tuple[int, float], list[tuple[Parameters, Result]]] = {}
    for p, r in results:
        if p["method"] == method:
            groups.setdefault((p["n"], p["epsilon"]), []).append((p, r))
    answers, texts = [], []
    for (n, epsilon), group in groups.items():
        order = sorted(group, key=lambda pair: sum(pair[0]["beta"]))
        edge, center = (_typical(order[j][1], 2 * len(groups)) for j in (0, -1))
        answers.append(is_below(center, edge))
        texts.append(f"{edge.estimate:.4g}, {center.estimate:.4g} (n = {n}, epsilon = {epsilon:g})")
    kernel = "printed" if method == PRINTED else "corrected"
    held, false = answers.count(HOLDS), answers.count(FALSE)
    return Verdict(
        sentence=_CENTER,
        where=f"Section 3.1, {kernel} kernel, alpha as a rate",
        verdict=all_of(answers),
        number=(
            f"shown in {held} of {len(answers)} cells, the opposite in {false}; most against least"
            f" spread law: {'; '.join(texts[-3:])}"
        ),
        command=_COMMAND,
    )


def _typical(result: Result, comparisons: int) -> Interval:
    if result["proposals"].size:
        return median_interval(result["proposals"], comparisons)
    return Interval.exact(float(result["expected"].mean()))


def _bound(results: Results) -> list[Verdict]:
    """Judge the theorem's bound against the computed mean of every cell, at every mean."""
    verdicts = []
    for method in (PRINTED, CORRECTED):
        chosen = [r for p, r in results if p["method"] == method]
        ratios = np.concatenate([r["bound"] / r["expected"] for r in chosen])
        kernel = "printed" if method == PRINTED else "corrected"
        numbers = f"bound over computed mean: {ratios.min():.1f} to {ratios.max():.1f}"
        least, unit = Interval.exact(float(ratios.min())), Interval.exact(1.0)
        verdicts.append(
            Verdict(_BOUND, f"Theorem 2, {kernel} kernel", is_below(unit, least), numbers, _COMMAND)
        )
        ten = Interval.exact(10.0)
        verdicts.append(
            Verdict(
                _LOOSE, f"after Theorem 2, {kernel} kernel", is_below(ten, least), numbers, _COMMAND
            )
        )
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
