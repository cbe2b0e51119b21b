"""What the trade-off says about the paper's sentences."""

from __future__ import annotations

from expmech.paper.study import Results
from expmech.paper.verdict import Interval, Verdict, all_of, is_below, mean_interval
from expmech.paper.work import Result

_COMMAND = "expmech paper tradeoff"
_TRADE = "we demonstrate that there is also a trade-off between privacy guarantees and runtime"
_CHEAPER = "a modification that ... has improved runtime at the cost of some utility"
_EXACT = "an exact finite-runtime algorithm (ConfAtomPerfect)"
_FEW, _SOME, _PURE = "Metropolis, 20 steps", "Metropolis, uniform, δ = 1e-9", "Metropolis, pure"
_CONF, _RANDOM = "ConfAtomPerfect, direct", "RandomAtomPerfect, l = 100"


def judge(results: Results) -> tuple[Verdict, ...]:
    """Return the verdicts on Example 1, where every sampler can be drawn."""
    draws = {p["method"]: r for p, r in results if p["example"] == "Example 1"}
    steps = [Interval.exact(float(draws[name]["mean_proposals"])) for name in (_FEW, _SOME, _PURE)]
    rejection = float(draws["Rejection"]["mean_proposals"])
    counts = ", ".join(f"{first.estimate:.0f}" for first in steps)
    return (
        Verdict(
            _TRADE,
            "Abstract, for Metropolis",
            all_of([is_below(steps[0], steps[1]), is_below(steps[1], steps[2])]),
            f"{counts} steps for no guarantee, delta = 1e-9 and delta = 0",
            _COMMAND,
        ),
        Verdict(
            _TRADE,
            "Abstract, for exact samplers",
            is_below(steps[0], _mean(draws["Rejection"])),
            f"Rejection is pure with {rejection:.2f} proposals, fewer than any chain",
            _COMMAND,
        ),
        _cheaper(draws[_CONF], draws[_RANDOM]),
        Verdict(
            _EXACT,
            "Section 1.2",
            _same_loss(draws[_CONF], draws["Rejection"]),
            f"mean loss {float(draws[_CONF]['loss'][0]):.4f} by the corrected ConfAtomPerfect,"
            f" {float(draws['Rejection']['loss'][0]):.4f} by rejection from f",
            _COMMAND,
        ),
    )


def _mean(result: Result) -> Interval:
    return mean_interval(result["counts"], 4)


def _cheaper(conf: Result, random: Result) -> Verdict:
    """Judge both halves: fewer proposals, and a larger loss."""
    loss = [mean_interval(result["losses"], 4) for result in (conf, random)]
    faster = is_below(_mean(random), _mean(conf))
    return Verdict(
        _CHEAPER,
        "Abstract, RandomAtomPerfect",
        all_of([faster, is_below(loss[0], loss[1])]),
        f"steps {_mean(random).estimate:.2f} against {_mean(conf).estimate:.2f} of ConfAtomPerfect"
        f" ({faster}); mean loss {loss[1].estimate:.4f} against {loss[0].estimate:.4f}",
        _COMMAND,
    )


def _same_loss(draws: Result, others: Result) -> str:
    """Say whether two mean losses are within a tenth of each other."""
    first, second = (mean_interval(result["losses"], 2) for result in (draws, others))
    low = Interval(0.9 * second.estimate, 0.9 * second.low, 0.9 * second.high)
    high = Interval(1.1 * second.estimate, 1.1 * second.low, 1.1 * second.high)
    return all_of([is_below(low, first), is_below(first, high)])
