"""Each count of Theorem 2's proof, drawn and told apart, against its own number.

A run of Algorithm 1 has N_outer outer steps, a call of the factory N_bern flips, an entry of the
inner loop N_inner tries, and a draw takes N_nonatomic runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from expmech.paper.fig2.counts import CORRECTED, PRINTED, acceptance_infimum
from expmech.paper.plotting import write_table
from expmech.paper.study import Results
from expmech.paper.verdict import (
    FALSE,
    UNDECIDED,
    Interval,
    Verdict,
    all_of,
    is_below,
    is_near,
    ratio_interval,
)
from expmech.paper.work import Parameters, Result
from expmech.theory import paper_counts

_COMMAND = "expmech paper fig2"
_NEAR = 0.05  # an equation between means holds if an interval shows it up to this share
_SENTENCES = {
    "outer": "E[N_outer] = 2/k",
    "bern": "E[N_bern] <= 24/k",
    "inner": "E[N_inner] <= 1 / ((1-k) inf p_Accept)",
    "nonatomic": "E[N_nonatomic] = 1 / (1-k)",
}
_BRANCHES = "in practice not every branch of Algorithm 1 is traversed each time"
_EQUATIONS = ("outer", "nonatomic")


@dataclass(frozen=True)
class Counted:
    """One count in one cell, as a multiple of what the proof says of it: a mean, or a bound.

    ``above`` are the counts of the draws, ``below`` the printed number times how often it applies.
    """

    parameters: Parameters
    name: str
    above: NDArray[np.float64]
    below: NDArray[np.float64]
    comparisons: int

    @property
    def share(self) -> Interval:
        """The drawn count over the printed number."""
        return ratio_interval(self.above, self.below, self.comparisons)

    @property
    def verdict(self) -> str:
        """Whether the drawn count has the printed mean, or stays below the printed bound."""
        if self.name in _EQUATIONS:
            return is_near(self.share, 1.0, _NEAR)
        return is_below(self.share, Interval.exact(1.0))


def count_apart(results: Results) -> list[Counted]:
    """Return every count of every cell that was drawn, with intervals for all of them together."""
    drawn = [(p, r) for p, r in results if "outer" in r]
    return [
        Counted(p, name, r[name].ravel() * 1.0, _printed(p, r, name), len(_SENTENCES) * len(drawn))
        for p, r in drawn
        for name in _SENTENCES
    ]


def _printed(parameters: Parameters, result: Result, name: str) -> NDArray[np.float64]:
    """Return the printed number of each draw, times its runs, factory calls, entries, or one."""
    times = {
        "outer": result["nonatomic"],
        "bern": result["outer"] - result["nonatomic"],  # the last outer step flips nothing
        "inner": result["entered"],
        "nonatomic": np.ones_like(result["outer"]),
    }[name]
    k = parameters["k"]
    numbers = [
        paper_counts(k, acceptance_infimum(parameters, mean))[name]
        for mean in result["means"].tolist()
    ]
    return np.asarray((times * np.array(numbers)[:, None]).ravel())


def judge_drawn(counted: list[Counted]) -> list[Verdict]:
    """Judge each sentence over all cells, kernel by kernel."""
    verdicts = []
    for method, kernel in ((PRINTED, "printed"), (CORRECTED, "corrected")):
        for name, sentence in _SENTENCES.items():
            chosen = [x for x in counted if x.name == name and x.parameters["method"] == method]
            where = f"Theorem 2, proof, {kernel} kernel, counted apart"
            verdicts.append(Verdict(sentence, where, *_judge(chosen), _COMMAND))
    return verdicts


def judge_branches(results: Results) -> list[Verdict]:
    """Judge how often the inner loop is entered after a call of the factory."""
    verdicts = []
    for method, kernel in ((PRINTED, "printed"), (CORRECTED, "corrected")):
        drawn = [r for p, r in results if "outer" in r and p["method"] == method]
        answer, number = UNDECIDED, "no cell was drawn"
        if drawn:
            entered = np.concatenate([r["entered"].ravel() for r in drawn])
            calls = np.concatenate([(r["outer"] - r["nonatomic"]).ravel() for r in drawn])
            share = ratio_interval(entered, calls)
            answer = is_below(share, Interval.exact(1.0))
            number = f"the inner loop is entered after {share.estimate:.3f} of the factory's calls"
        where = f"after Theorem 2, {kernel} kernel"
        verdicts.append(Verdict(_BRANCHES, where, answer, number, _COMMAND))
    return verdicts


def _judge(chosen: list[Counted]) -> tuple[str, str]:
    """Return a verdict and its numbers: an equation is shown by all cells together."""
    if not chosen:
        return UNDECIDED, "no cell was drawn"
    answers = [count.verdict for count in chosen]
    if chosen[0].name in _EQUATIONS and FALSE not in answers:
        above = np.concatenate([count.above for count in chosen])
        below = np.concatenate([count.below for count in chosen])
        answers = [is_near(ratio_interval(above, below), 1.0, _NEAR)]
    shares = [count.share.estimate for count in chosen]
    many = f"{sum(len(count.above) for count in chosen)} draws of {len(chosen)} cells"
    return all_of(answers), f"drawn over printed: {min(shares):.3g} to {max(shares):.3g} in {many}"


def write_counts(counted: list[Counted], out: Path) -> None:
    """Write the table: each count over its printed number, with its interval."""
    names = ("part", "n", "epsilon", "k", "method", "reading")
    rows = [
        (
            *(count.parameters[name] for name in names),
            "{:g}:{:g}".format(*count.parameters["beta"]),
            f"N_{count.name}",
            len(count.above),
            count.share.estimate,
            count.share.low,
            count.share.high,
            count.verdict,
        )
        for count in counted
    ]
    heads = "beta count draws drawn_over_printed low high verdict"
    write_table(out, "fig2_counts", (*names, *heads.split()), rows)
