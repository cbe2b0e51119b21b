"""What Figure 2 counts: the samplers, their means, computed, and the theorem's bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from expmech.certificates.mechanism import Draws
from expmech.exponential.samplers import (
    ConfAtomAndRuntimePerfect,
    ConfAtomPerfect,
    Rejection,
    Sampler,
)
from expmech.paper.example1 import make_mechanism, slope
from expmech.paper.printed.algorithms import PrintedConfAtomPerfect, ReadConfAtomPerfect
from expmech.paper.printed.bounds import (
    paper_bound_conf_atom,
    paper_bound_random_atom,
    paper_counts,
)
from expmech.paper.printed.cost import (
    atom_acceptance,
    expected_flips,
    expected_proposals_corrected,
    expected_proposals_printed,
    expected_steps_direct,
)
from expmech.paper.printed.kernel import reading_rate
from expmech.paper.study import Parameters, Result, Results
from expmech.paper.verdict import Interval, Verdict, all_of, is_below
from expmech.theory import acceptance_laplace_infimum, laplace_integral

PRINTED, CORRECTED = "ConfAtomPerfect, as printed", "ConfAtomPerfect, corrected"
DIRECT, PADDED = "ConfAtomPerfect, direct", "ConfAtomAndRuntimePerfect"
METHODS = (PRINTED, CORRECTED, DIRECT, PADDED, "Rejection")
_LIBRARY: dict[str, Callable[[float], Sampler]] = {
    DIRECT: ConfAtomPerfect,
    PADDED: lambda k: ConfAtomAndRuntimePerfect("pad"),
    "Rejection": lambda k: Rejection(),
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_DRAWS_BEHIND_A_QUANTILE = 200_000


def spread_means(beta: tuple[float, float], count: int) -> NDArray[np.float64]:
    """Return the quantiles (j + 1/2)/count of a Beta law, which stand for it with equal weights."""
    drawn = np.random.default_rng(2021).beta(*beta, size=_DRAWS_BEHIND_A_QUANTILE)
    return np.asarray(np.quantile(drawn, (np.arange(count) + 0.5) / count))


def proposal_rate(parameters: Parameters) -> float | None:
    """Return the rate of the Laplace proposals of a cell, or None for uniform ones."""
    alpha = parameters["alpha"] or slope(parameters["n"], parameters["epsilon"])
    return reading_rate(parameters["reading"], alpha)


def conditions(results: list[tuple[Parameters, Result]]) -> str:
    """Say under what cells of one kernel and one reading were judged."""
    if not results:
        return "no cell"

    def listed(values: Iterable[object]) -> str:
        return ", ".join(dict.fromkeys(str(value) for value in values))

    first = results[0][0]
    kernel = "printed" if first["method"] == PRINTED else "corrected"
    size = "n epsilon / 2" if first["alpha"] is None else f"{first['alpha']:g}"
    moves = "uniform proposals"
    if first["reading"] != "uniform":
        moves = f"Laplace proposals of {first['reading']} {size}"
    laws = listed("Beta({:g}, {:g})".format(*p["beta"]) for p, _ in results)
    return (
        f"{kernel} kernel, {moves}, Example 1, d = 1, n = {listed(p['n'] for p, _ in results)},"
        f" epsilon = {listed('{:g}'.format(p['epsilon']) for p, _ in results)}, k ="
        f" {listed('{:g}'.format(p['k']) for p, _ in results)}, means from {laws}"
    )


def expected_proposals(parameters: Parameters, mean: float) -> float:
    """Return the mean number of proposals at one mean, computed on the continuum."""
    c, k, method = (
        slope(parameters["n"], parameters["epsilon"]),
        parameters["k"],
        parameters["method"],
    )
    rate = proposal_rate(parameters)
    if method == PRINTED:
        return expected_proposals_printed(k, c, mean, rate)
    if method == CORRECTED:
        return expected_proposals_corrected(k, c, mean, rate)
    if method == DIRECT:
        return expected_steps_direct(k, c, mean, c)
    return 2.0 / (c * laplace_integral(c, 0.0 if method == PADDED else mean))


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Return the proposal counts, one row per mean, and their computed means.

    Algorithm 1 also tells its counts apart (:class:`~expmech.Draws`).

    A cell whose computed mean is above ``most`` is not drawn.
    """
    means = spread_means(tuple(parameters["beta"]), parameters["means"])
    expected = np.array([expected_proposals(parameters, float(mean)) for mean in means])
    result = {"means": means, "expected": expected, "bound": _bounds(parameters, means)}
    if expected.mean() > parameters["most"]:
        return {**result, "proposals": np.zeros((0, 0), dtype=np.int64)}
    drawn = [_draw(parameters, float(mean), [*stream, j]) for j, mean in enumerate(means)]
    apart = {name: np.array([draw.counts[name] for draw in drawn]) for name in drawn[0].counts}
    return {**result, **apart, "proposals": np.array([draw.proposals for draw in drawn])}


def _draw(parameters: Parameters, mean: float, seed: list[int]) -> Draws:
    mechanism, method = make_mechanism(parameters["n"], mean), parameters["method"]
    drawn = {"epsilon": parameters["epsilon"], "size": parameters["runs"], "seed": seed}
    if method in _LIBRARY:
        return mechanism.sample(sampler=_LIBRARY[method](parameters["k"]), **drawn)
    kind = PrintedConfAtomPerfect if method == PRINTED else ReadConfAtomPerfect
    read = {"reading": parameters["reading"], "alpha": parameters["alpha"]}
    return kind(parameters["k"], **read).sample(mechanism, **drawn)


def _bounds(parameters: Parameters, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the theorem's bound 48 / (k^2 (1-k)^2 inf p_Accept) at each mean."""
    infima = [acceptance_infimum(parameters, float(x)) for x in means]
    return np.array([paper_bound_conf_atom(parameters["k"], infimum) for infimum in infima])


def acceptance_infimum(parameters: Parameters, mean: float) -> float:
    """Return ``inf p_Accept`` of a cell's proposals, corrected (errata, rows 9 and 13)."""
    c, rate = slope(parameters["n"], parameters["epsilon"]), proposal_rate(parameters)
    if rate is None:
        return laplace_integral(c, mean)
    return acceptance_laplace_infimum([mean], c, rate)


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
