"""What Figure 3 says about the paper's sentences."""

from __future__ import annotations

import math

import numpy as np

from expmech.paper.fig3.law import THRESHOLDS, CellSummary, largest_gap
from expmech.paper.verdict import (
    CONFIDENCE,
    Interval,
    Verdict,
    all_of,
    is_below,
    is_falling,
    quantile_interval,
)

_COMMAND = "expmech paper fig3"
_CLOSE = 0.1  # of probability: what "close to the original" is taken to mean
_APPROACH = "we see as expected that the utility increases to the continuous upper bound as l -> oo"
_WORST = "Q_.05 ... captures with approximately 95% confidence a kind of worst case utility bounds"
_ENOUGH = (
    "we could choose l large enough that the utility of the discrete mechanism is close to that of"
    " the original exponential mechanism with high probability"
)


_EXAMPLE = "Example 2, n = 100, p = 5, B = 1, lambda = 1, points uniform in the ball"


def _listed(summary: CellSummary) -> str:
    return ", ".join(f"{epsilon:g}" for epsilon in summary.epsilons)


def judge(summary: CellSummary) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """Return the verdicts, and what was and was not drawn."""
    verdicts = [_approach(summary), _worst(summary)]
    verdicts += [_enough(summary, j) for j in range(len(summary.epsilons))]
    return tuple(verdicts), _atom_findings(summary)


def _middle(summary: CellSummary, j: int) -> int:
    """Return the threshold nearest to the median of the continuous law."""
    return int(np.abs(summary.curves[j] - 0.5).argmin())


def _quantiles(summary: CellSummary, j: int) -> list[Interval]:
    """Return Q_.95 over discretisations of P(L >= t) for each l, at that threshold."""
    at, comparisons = _middle(summary, j), summary.survival.shape[1] * summary.survival.shape[2]
    return [
        quantile_interval(summary.survival[:, i, j, at], 0.95, comparisons)
        for i in range(len(summary.counts))
    ]


def _approach(summary: CellSummary) -> Verdict:
    """Judge whether the worst case falls with l, for every epsilon."""
    answers, texts = [], []
    for j, epsilon in enumerate(summary.epsilons):
        series = _quantiles(summary, j)
        answers.append(is_falling(series))
        listed = ", ".join(f"{interval.estimate:.2f}" for interval in series)
        texts.append(f"{listed} (epsilon = {epsilon:g}, continuous 0.5)")
    counts = ", ".join(map(str, summary.counts))
    return Verdict(
        sentence=_APPROACH,
        where="Section 3.2",
        under=f"{_EXAMPLE}, epsilon = {_listed(summary)}, one simulated data set, clipped",
        verdict=all_of(answers),
        number=(
            f"Q_.95 of P(L >= t) over {len(summary.survival)} discretisations at the median of the"
            f" continuous law, l = {counts}: {'; '.join(texts)}"
        ),
        command=_COMMAND,
    )


def _worst(summary: CellSummary) -> Verdict:
    """Judge what is printed: that most discretisations are no worse than Q_.05."""
    answers, shares = [], []
    half = math.sqrt(math.log(2.0 * len(summary.epsilons) / (1.0 - CONFIDENCE)) / 2.0)
    half /= math.sqrt(len(summary.survival))  # Hoeffding
    for j in range(len(summary.epsilons)):
        losses = summary.survival[:, 0, j, _middle(summary, j)]
        better = float((losses <= np.quantile(losses, 0.05)).mean())
        shares.append(better)
        answers.append(
            is_below(Interval.exact(0.5), Interval(better, better - half, better + half))
        )
    return Verdict(
        sentence=_WORST,
        where="Section 3.2",
        under=f"{_EXAMPLE}, epsilon = {_listed(summary)}, l = {summary.counts[0]}",
        verdict=all_of(answers),
        number=(
            f"{100 * min(shares):.0f}% of discretisations are no worse than the printed Err: it is"
            " a best case; the worst case is Q_.95"
        ),
        command=_COMMAND,
    )


def _enough(summary: CellSummary, j: int) -> Verdict:
    """Judge whether the largest l brings the worst case near the continuous law."""
    epsilon, at = summary.epsilons[j], _middle(summary, j)
    largest = _quantiles(summary, j)[-1]
    error = math.sqrt(math.log(2.0 / (1.0 - CONFIDENCE)) / 2.0 / summary.drawn[epsilon])
    limit = float(summary.curves[j, at]) + _CLOSE
    return Verdict(
        sentence=_ENOUGH,
        where="Section 3.2",
        under=f"{_EXAMPLE}, epsilon = {epsilon:g}, l = {summary.counts[-1]}; within {_CLOSE:g} of"
        " the probability",
        verdict=is_below(largest, Interval(limit, limit - error, limit + error)),
        number=(
            f"Q_.95 of P(L >= {THRESHOLDS[at]:.1f}) is {largest.estimate:.2f} with"
            f" {summary.counts[-1]} points, {float(summary.curves[j, at]):.2f} in the continuum;"
            f" data redrawn too: {float(summary.redrawn[-1, j, at]):.2f}"
        ),
        command=_COMMAND,
    )


def _atom_findings(summary: CellSummary) -> tuple[str, ...]:
    """Say where RandomAtomPerfect was drawn, and where it could not be."""
    refused = [key for key, atom in summary.atoms.items() if np.isnan(atom["sampled"]).any()]
    drawn = {key: atom for key, atom in summary.atoms.items() if key not in refused}
    gaps = [largest_gap(atom, summary.laws[key]) for key, atom in drawn.items()]
    sentence = (
        f"RandomAtomPerfect itself was drawn in {len(gaps)} of {len(summary.atoms)} cells; its"
        f" draws are within {max(gaps, default=math.nan):.3f} of its exact law."
    )
    if not refused:
        return (sentence,)
    worst = max(refused, key=lambda key: float(summary.atoms[key]["log10_steps"]))
    return (
        sentence,
        f"It was not affordable in {len(refused)} of {len(summary.atoms)} cells: the expected"
        " number of steps grows as the points miss the optimum, up to"
        f" 10^{float(summary.atoms[worst]['log10_steps']):.0f} at epsilon = {worst[0]:g} with l ="
        f" {worst[1]}. The paper does not mention this.",
    )
