"""Each count of Theorem 2's proof, drawn and told apart, against its own number.

A run of Algorithm 1 has N_outer outer steps, a call of the factory N_bern flips, an entry of the
inner loop N_inner tries, and a draw takes N_nonatomic runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from expmech.paper.example1 import slope
from expmech.paper.fig2.counts import (
    CORRECTED,
    PRINTED,
    acceptance_infimum,
    conditions,
    proposal_rate,
)
from expmech.paper.plotting import write_table
from expmech.paper.printed.bounds import paper_counts
from expmech.paper.printed.cost import average_counts
from expmech.paper.study import Parameters, Result, Results
from expmech.paper.verdict import UNDECIDED, Interval, Verdict, all_of, is_below, ratio_interval

_COMMAND = "expmech paper fig2"
_ROUNDING = 1e-6  # of computed ratios
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

    ``above`` are the counts of the draws, ``below`` the printed number times how often it applies;
    ``computed`` is the true mean over the printed number, one for each mean of the data.
    """

    parameters: Parameters
    name: str
    above: NDArray[np.float64]
    below: NDArray[np.float64]
    comparisons: int
    computed: NDArray[np.float64]

    @property
    def share(self) -> Interval:
        """The drawn count over the printed number."""
        return ratio_interval(self.above, self.below, self.comparisons)

    @property
    def verdict(self) -> str:
        """Whether the computed mean is the printed one, or stays below the printed bound."""
        far = np.abs(self.computed - 1.0) if self.name in _EQUATIONS else self.computed - 1.0
        return is_below(Interval.exact(float(far.max())), Interval.exact(_ROUNDING))

    @property
    def agrees(self) -> bool:
        """Whether the interval of the drawn count holds the computed one."""
        times = self.below.reshape(len(self.computed), -1).sum(axis=1)
        expected = float((self.computed * times).sum() / times.sum())
        return self.share.low <= expected <= self.share.high


def count_apart(results: Results) -> list[Counted]:
    """Return every count of every cell that was drawn, with intervals for all of them together."""
    drawn = [(p, r) for p, r in results if "outer" in r]
    return [
        Counted(
            p,
            name,
            r[name].ravel() * 1.0,
            _printed(p, r, name),
            len(_SENTENCES) * len(drawn),
            _computed(p, r, name),
        )
        for p, r in drawn
        for name in _SENTENCES
    ]


def _computed(parameters: Parameters, result: Result, name: str) -> NDArray[np.float64]:
    """Return the true mean over the printed number at each mean of the data."""
    k, c = parameters["k"], slope(parameters["n"], parameters["epsilon"])
    rate, corrected = proposal_rate(parameters), parameters["method"] == CORRECTED
    return np.array(
        [
            average_counts(k, c, mean, rate, corrected=corrected)[name]
            / paper_counts(k, acceptance_infimum(parameters, mean))[name]
            for mean in result["means"].tolist()
        ]
    )


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


def judge_drawn(counts: list[Counted]) -> list[Verdict]:
    """Judge each sentence over all cells, kernel by kernel."""
    verdicts = []
    for method in (PRINTED, CORRECTED):
        for name, sentence in _SENTENCES.items():
            chosen = [x for x in counts if x.name == name and x.parameters["method"] == method]
            under = f"{conditions([(x.parameters, {}) for x in chosen])}; average over states met"
            verdicts.append(
                Verdict(
                    sentence, "Theorem 2, proof, counted apart", under, *_judge(chosen), _COMMAND
                )
            )
    return verdicts


def judge_branches(results: Results) -> list[Verdict]:
    """Judge how often the inner loop is entered after a call of the factory."""
    verdicts = []
    for method in (PRINTED, CORRECTED):
        drawn = [(p, r) for p, r in results if "outer" in r and p["method"] == method]
        answer, number = UNDECIDED, "no cell was drawn"
        if drawn:
            entered = np.concatenate([r["entered"].ravel() for _, r in drawn])
            calls = np.concatenate([(r["outer"] - r["nonatomic"]).ravel() for _, r in drawn])
            share = ratio_interval(entered, calls)
            answer = is_below(share, Interval.exact(1.0))
            number = f"the inner loop is entered after {share.estimate:.3f} of the factory's calls"
        under = conditions(drawn)
        verdicts.append(Verdict(_BRANCHES, "after Theorem 2", under, answer, number, _COMMAND))
    return verdicts


def _judge(chosen: list[Counted]) -> tuple[str, str]:
    """Return a verdict and its numbers: by what is computed, with what was drawn beside it."""
    if not chosen:
        return UNDECIDED, "no cell was drawn"
    answer = all_of([count.verdict for count in chosen])
    shares = [count.share.estimate for count in chosen]
    many = f"{sum(len(count.above) for count in chosen)} draws of {len(chosen)} cells"
    every = np.concatenate([count.computed for count in chosen])
    return answer, (
        f"computed over printed: {every.min():.4g} to {every.max():.4g}; drawn {min(shares):.3g} to"
        f" {max(shares):.3g} in {many}, whose intervals hold the computed number in"
        f" {sum(count.agrees for count in chosen)}"
    )


def write_counts(counts: list[Counted], out: Path) -> None:
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
        for count in counts
    ]
    heads = "beta count draws drawn_over_printed low high verdict"
    write_table(out, "fig2_counts", (*names, *heads.split()), rows)
