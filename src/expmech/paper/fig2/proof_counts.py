"""The four numbers of Theorem 2's proof, against what the printed kernel has.

Closed forms of the printed kernel (docs/theory/printed.md): nothing is drawn.
"""

from __future__ import annotations

from expmech.paper.example1 import slope
from expmech.paper.fig2.counts import PRINTED, acceptance_infimum, conditions, proposal_rate
from expmech.paper.printed.cost import atom_acceptance, expected_flips
from expmech.paper.study import Results
from expmech.paper.verdict import Interval, Verdict, all_of, is_below
from expmech.theory import paper_bound_random_atom, paper_counts

_COMMAND = "expmech paper fig2"
_WHERE = "Theorem 2, proof"
_NEAR = 1e-6


def _true_counts(k: float, accept: float) -> dict[str, float]:
    """Return what the printed kernel has: the worst state for flips and inner tries."""
    beta = k / 2.0
    multiplier, gap = 1.0 / (1.0 - beta), 1.0 - 0.5 / (1.0 - beta)
    flips = [expected_flips(heads, multiplier, gap) for heads in (0.5, accept / 2.0)]
    return {
        "outer": 1.0 / beta,
        "inner": 2.0 / min(1.0, accept),
        "bern": max(flips),
        "nonatomic": (1.0 + accept) / accept,
        "run": ((1.0 - beta) * max(flips) + 1.0) / beta,
    }


def judge_counts(results: Results) -> list[Verdict]:
    """Judge each count over every cell and mean of the grid."""
    pairs = []
    chosen = [(p, r) for p, r in results if p["method"] == PRINTED]
    under = f"{conditions(chosen)}; the worst state"
    for parameters, result in chosen:
        c, k = slope(parameters["n"], parameters["epsilon"]), parameters["k"]
        rate = proposal_rate(parameters)
        for mean in result["means"].tolist():
            infimum = acceptance_infimum(parameters, mean)
            printed = {**paper_counts(k, infimum), "run": paper_bound_random_atom(k, infimum)}
            pairs.append((printed, _true_counts(k, atom_acceptance(k, c, mean, rate))))
    return [
        _judge("E[N_outer] = 2/k", pairs, under, "outer", equal=True),
        _judge("E[N_inner] <= 1 / ((1-k) inf p_Accept)", pairs, under, "inner", equal=False),
        _judge("E[N_bern] <= 24/k", pairs, under, "bern", equal=False),
        _judge("E[N_nonatomic] = 1 / (1-k)", pairs, under, "nonatomic", equal=True),
        _judge(
            "Algorithm 3: E[N_prop] <= 48 / (k^2 (1-k) inf p_Accept)",
            pairs,
            under,
            "run",
            equal=False,
            where="Corollary 1",
        ),
    ]


def _judge(
    sentence: str,
    pairs: list[tuple[dict[str, float], dict[str, float]]],
    under: str,
    name: str,
    *,
    equal: bool,
    where: str = _WHERE,
) -> Verdict:
    """Compare the ratio true/printed with 1 in every cell."""
    ratios = [true[name] / printed[name] for printed, true in pairs]
    one, largest = Interval.exact(1.0 + _NEAR), Interval.exact(max(ratios))
    answers = [is_below(largest, one)]
    if equal:
        answers.append(is_below(Interval.exact(1.0 - _NEAR), Interval.exact(min(ratios))))
    numbers = f"true over printed: {min(ratios):.3g} to {max(ratios):.3g} over the grid"
    return Verdict(sentence, where, under, all_of(answers), numbers, _COMMAND)
