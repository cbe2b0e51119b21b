"""What the trade-off says about the paper's sentences."""

from __future__ import annotations

import numpy as np

from expmech.paper.example1 import expected_loss, slope
from expmech.paper.study import Results
from expmech.paper.tradeoff.methods import MEAN, POINTS, N
from expmech.paper.verdict import Interval, Verdict, all_of, is_below, mean_interval
from expmech.paper.work import Result
from expmech.theory import laplace_integral

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
