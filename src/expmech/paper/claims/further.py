"""More sentences: on atoms, moves and what the algorithms spend, checked by the library's own."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from expmech import theory
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.domains import Box
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.samplers import ConfAtomPerfect
from expmech.losses import Growth, L1Mean
from expmech.paper.claims.checks import Outcome, PaperClaim, claim, within
from expmech.paper.kernels import (
    corrected_kernel,
    decay_rate,
    gibbs_law,
    grid_points,
    hastings,
    laplace_law,
    laplace_proposals,
    metropolis,
    printed_kernel,
    released_law,
    steps_and_loss,
)
from expmech.paper.printed.cost import atom_acceptance, expected_steps_direct
from expmech.paper.verdict import FALSE, HOLDS, Interval, all_of, is_below, normal_quantile

_DRAWS = 2000
_SEED = 2021
_ALPHAS = (0.5, 2.0, 10.0)


@claim(
    "any mechanism can be equivalently expressed as an instance of the exponential mechanism",
    "Section 1.1",
    "randomised response at epsilon = 1, as one example",
)
def every_mechanism_is_one() -> Outcome:
    """Randomised response as exp(-epsilon L / 2D) with L = -log p, and the epsilon that claims."""
    p = math.e / (1.0 + math.e)
    laws = [np.array([p, 1.0 - p]), np.array([1.0 - p, p])]
    losses = [-np.log(law) for law in laws]
    sensitivity = float(np.abs(losses[0] - losses[1]).max())
    claimed = 2.0 * sensitivity  # at which exp(-claimed L / 2D) is exp(-L)
    error = float(np.abs(gibbs_law(losses[0], claimed / (2.0 * sensitivity)) - laws[0]).max())
    number = (
        f"randomised response at epsilon = 1 is reproduced within {error:.0e}; as an exponential"
        f" mechanism it claims epsilon = {claimed:g}"
    )
    return within(error, 1e-12), number


@claim(
    "choose delta <= 1/n, so that the violation affects, in the worst case scenario, all"
    " information about one individual",
    "Section 2.1",
    "the mechanism that releases one of 100 rows at random; epsilon = 0, 1, 10",
)
def one_row_is_lost_at_one_over_n() -> Outcome:
    """Find the true delta of publishing one row of n at random."""
    n = 100
    here, there = np.full(n + 1, 1.0 / n), np.full(n + 1, 1.0 / n)
    here[n], there[0] = 0.0, 0.0  # row 0 is replaced by a value nobody else has
    deltas = [theory.hockey_stick(here, there, epsilon) for epsilon in (0.0, 1.0, 10.0)]
    number = f"releasing one of {n} rows at random: true delta {deltas[0]:.3g} at every epsilon"
    return within(max(abs(x - 1.0 / n) for x in deltas), 1e-12), number


@claim(
    "the mixing time can vary based on the confidential data",
    "Section 2.1",
    "Example 1, d = 1, n epsilon / 2 = 5, alpha = 5 as a rate, means 0 and .5, grid of 200 cells",
)
def mixing_depends_on_data() -> Outcome:
    """Compare the true decay rate of both chains between means, n epsilon / 2 = 5."""
    texts, answers = [], []
    for name, proposals in (
        ("uniform", np.full((200, 200), 1.0 / 200)),
        ("Laplace", laplace_proposals(200, 5.0)),
    ):
        laws = [laplace_law(200, 5.0, mean) for mean in (0.0, 0.5)]
        slow, fast = sorted(decay_rate(metropolis(proposals, law), law) for law in laws)
        answers.append(is_below(Interval.exact(1.01 * slow), Interval.exact(fast)))
        texts.append(f"{slow:.3f} to {fast:.3f} ({name})")
    return all_of(answers), f"decay a step between means 0 and .5: {', '.join(texts)}"


@claim(
    "we cannot apply these methods to exponential mechanisms with unbounded output spaces",
    "Section 2.1",
    "the corrected atom, Laplace re-entry, n epsilon / 2 = 5 a unit of length, k = 1/2",
)
def unbounded_spaces() -> Outcome:
    """Mean steps of the corrected atom with Laplace re-entry as the interval grows."""
    widths = (1.0, 10.0, 1000.0)
    steps = [expected_steps_direct(0.5, 5.0 * w, 0.5, 5.0 * w) for w in widths]
    listed = ", ".join(f"{mean:.3f}" for mean in steps)
    number = (
        f"re-entry about the answer: mean steps {listed} on intervals 1, 10, 1000 wide at the same"
        " slope, so no bounded space is needed; uniform proposals do need one"
    )
    grows = is_below(Interval.exact(2.0 * steps[0]), Interval.exact(steps[-1]))
    return (HOLDS if grows == HOLDS else FALSE), number


@claim(
    "There exists beta > 0 such that inf_y Pi~(y, {a}) > beta",
    "Theorem 2, first part",
    "printed kernel, Example 1, d = 1, n epsilon / 2 = 5, means 0, .3, .5, k = .1, .5, .9",
)
def the_atom_is_reached() -> Outcome:
    """Find the least probability of the atom under the printed kernel, n = 10, epsilon = 1."""
    least = min(
        float(printed_kernel(120, 5.0, mean, 5.0, k)[:, -1].min())
        for mean in (0.0, 0.3, 0.5)
        for k in (0.1, 0.5, 0.9)
    )
    number = f"least probability of the atom {least:.2f}"
    return is_below(Interval.exact(0.0), Interval.exact(least)), number


@claim(
    "if there are multiple a for which L_X(a) = 0, we can sample a uniformly among them",
    "Appendix, proof of Theorem 2",
    "corrected kernel, a basin with 6 of 16 lattice points at the minimum, epsilon = 1, k = 1/2",
)
def atoms_at_random_minimisers() -> Outcome:
    """Draw by ConfAtomPerfect(location="minimiser") on a basin with several minimisers."""
    mechanism = ExponentialMechanism(
        loss=lambda y: np.maximum(0.0, np.abs(y[:, 0] - 0.5) - 0.2),
        sensitivity=0.1,
        domain=Box([0.0], [1.0], bits=4),
        lipschitz=[1.0],
        growth=Growth(center=np.array([0.5]), rates=np.array([1.0]), slack=0.2),
    )
    sampler = ConfAtomPerfect(0.5, location="minimiser")
    drawn = mechanism.sample(epsilon=1.0, size=_DRAWS, sampler=sampler, seed=_SEED)
    points, law = mechanism.law(epsilon=1.0)
    worst = _worst_share(drawn.values[:, 0], points[:, 0], law)
    number = (
        f"{_DRAWS} draws with {(law == law.max()).sum()} minimisers: frequencies within"
        f" {worst:.1f} standard deviations of f at every point"
    )
    return within(worst, normal_quantile(len(law))), number


def _worst_share(
    values: NDArray[np.float64], points: NDArray[np.float64], law: NDArray[np.float64]
) -> float:
    """Return the largest distance of a frequency from its probability, in deviations."""
    shares = np.array([(values == point).mean() for point in points])
    return float((np.abs(shares - law) / np.sqrt(law * (1.0 - law) / len(values))).max())


@claim(
    "an exact finite-runtime algorithm (ConfAtomPerfect)",
    "Section 1.2",
    "corrected kernel as shipped, Example 1, d = 1, n = 10, epsilon = 1, mean .3, 8 lattice points,"
    " every path of its coins enumerated",
)
def the_corrected_atom_is_exact() -> Outcome:
    """Compare the enumerated law of ConfAtomPerfect with f, and its steps with the formula."""
    mechanism = ExponentialMechanism(
        loss=L1Mean(np.full((10, 1), 0.3)), domain=Box([0.0], [1.0], bits=3)
    )
    chain = ConfAtomPerfect(0.5).prepare(mechanism.target(epsilon=1.0))
    chain_law = ChainLaw(chain, lattice_point, leftover=1e-9)
    law = mechanism.law(epsilon=1.0)[1]
    shares = np.array([chain_law.law.get((i,), 0.0) for i in range(len(law))])
    worst = float(np.abs(np.log(shares / law)).max())
    number = (
        f"largest |log ratio| of its law and f {worst:.0e}, {chain_law.leftover:.0e} of the mass"
        f" still moving; mean steps {chain_law.mean_steps():.3f}"
    )
    return within(worst, 1e-6), number


@claim(
    "this result can easily be extended to arbitrary proposals",
    "after Theorem 2",
    "corrected kernel, proposals that are not symmetric, accepted with the Hastings ratio; n"
    " epsilon / 2 = 5, mean .3, k = 1/2, grid of 120 cells",
)
def proposals_that_are_not_symmetric() -> Outcome:
    """Compare f with the release by drifting and by independent proposals, by matrices."""
    law, mean = laplace_law(120, 5.0, 0.3), 0.3
    reentry = laplace_proposals(120, 5.0, np.array([mean]))[0]
    drift = laplace_proposals(120, 20.0, 0.5 * (grid_points(120) + mean))
    fitted = np.tile(laplace_law(120, 3.0, 0.4), (120, 1))
    answers, texts = [], []
    for name, proposals in (("drift", drift), ("independent, of a wrong law", fitted)):
        errors = []
        for moves in (hastings(proposals, law), metropolis(proposals, law)):
            kernel = corrected_kernel(moves, law, reentry, 0.5)
            errors.append(float(np.abs(released_law(kernel) - law).sum() / 2.0))
        least = float(kernel[:-1, -1].min())
        answers += [within(errors[0], 1e-9), is_below(Interval.exact(0.0), Interval.exact(least))]
        texts.append(f"{errors[0]:.0e} ({name}; {errors[1]:.2f} without the ratio)")
    number = (
        f"total variation of the release from f {', '.join(texts)}; the atom is reached with"
        f" probability at least {least:.3f} whatever the moves"
    )
    return all_of(answers), number


@claim(
    "a less computationally expensive method, avoiding the additional 1/(1-k) factor",
    "before Corollary 1",
    "printed kernel, Example 1, d = 1, mean .5, alpha = n epsilon / 2 as a rate, k = 1/2",
)
def one_run_is_enough() -> Outcome:
    """Compute what Algorithm 3 saves: the mean number of runs of Algorithm 2."""
    runs = []
    for c in (0.5, 5.0, 50.0):
        accept = atom_acceptance(0.5, c, 0.5, c)
        runs.append((1.0 + accept) / accept)
    listed = ", ".join(f"{ratio:.2f}" for ratio in runs)
    number = (
        f"Algorithm 3 makes one run, Algorithm 2 {listed} at n epsilon / 2 = .5, 5, 50 and k = 1/2:"
        " a factor is saved, but not 1/(1-k) = 2"
    )
    return is_below(Interval.exact(1.0 + 1e-9), Interval.exact(min(runs))), number


@claim(
    "the worst-case runtime does not depend on the integration constant ... not shared by the MCMC"
    " estimator",
    "Section 3.2",
    "Example 1, d = 1, n = 10, epsilon = 1, uniform proposals, means 0, .3, .5",
)
def minorisation_without_a_normaliser() -> Outcome:
    """Beta of uniform proposals by the Lipschitz constant alone, against the true one."""
    pairs = [
        (theory.beta_uniform(10, 1.0, 1), theory.laplace_integral(5.0, mean))
        for mean in (0.0, 0.3, 0.5)
    ]
    listed = ", ".join(f"{true:.3f}" for _, true in pairs)
    number = (
        f"beta of uniform proposals is {pairs[0][0]:.3f} by the slope alone, true {listed} at means"
        " 0, .3, .5: the chain's bound needs no integration constant either"
    )
    below = [is_below(Interval.exact(low), Interval.exact(true + 1e-9)) for low, true in pairs]
    return (FALSE if all_of(below) == HOLDS else HOLDS), number


@claim(
    "longer runtimes tend to correspond to rarer events",
    "Section 4.1",
    "printed kernel, Example 1, d = 1, n = 10, epsilon = 1, alpha = 5 as a rate, k = 1/2, means 0,"
    " .3, .5; outer steps of Algorithm 2 against the loss of the value, computed",
)
def long_runs_and_rare_values() -> Outcome:
    """Correlate the number of outer steps with the loss of the value, by matrices."""
    results = {mean: steps_and_loss(200, 5.0, mean, 5.0, 0.5) for mean in (0.0, 0.3, 0.5)}
    listed = ", ".join(f"{result[0]:.4f} (mean {mean:g})" for mean, result in results.items())
    early, late = results[0.3][1:]
    number = (
        f"correlation {listed}; at mean .3 the mean loss is {early:.3f} after two outer steps and"
        f" {late:.3f} after forty: true, and small"
    )
    least = min(result[0] for result in results.values())
    return is_below(Interval.exact(0.0), Interval.exact(least)), number


@claim(
    "P(Z in [0, 1]^d) >= ((1 - e^-alpha) / alpha)^d",
    "Appendix, Example 1",
    "d = 1, a step from a corner, alpha = .5, 2, 10 as a rate",
)
def mass_inside_the_box() -> Outcome:
    """Compare with the mass a Laplace step from a corner keeps in the unit interval."""
    texts, answers = [], []
    for alpha in _ALPHAS:
        true, printed = -math.expm1(-alpha) / 2.0, -math.expm1(-alpha) / alpha
        answers.append(is_below(Interval.exact(printed), Interval.exact(true + 1e-9)))
        texts.append(f"{true:.3f} against {printed:.3f} (alpha = {alpha:g})")
    return all_of(answers), f"true mass at a corner against the bound: {', '.join(texts)}"


@claim(
    "Q_X(y, y') >= Q_X(mean, y')",
    "Appendix, Example 1",
    "Laplace proposals, d = 1, n epsilon / 2 = 5, mean .5, grid of 101 cells",
)
def transitions_from_the_mean() -> Outcome:
    """Compare transition densities off the diagonal on a grid, mean 1/2."""
    worst = []
    for alpha in (1.0, 5.0, 20.0):
        law = laplace_law(101, 5.0, 0.5)
        moves = metropolis(laplace_proposals(101, alpha), law)
        np.fill_diagonal(moves, np.inf)  # only moves are compared
        others = np.delete(moves, 50, axis=1)
        worst.append(float((others / others[50]).min()))
    listed = ", ".join(f"{ratio:.2g}" for ratio in worst)
    number = f"least ratio of the two {listed} at alpha = 1, 5, 20"
    return is_below(Interval.exact(1.0 - 1e-9), Interval.exact(min(worst))), number


FURTHER: tuple[PaperClaim, ...] = (
    every_mechanism_is_one,
    one_row_is_lost_at_one_over_n,
    mixing_depends_on_data,
    unbounded_spaces,
    the_atom_is_reached,
    atoms_at_random_minimisers,
    the_corrected_atom_is_exact,
    proposals_that_are_not_symmetric,
    one_run_is_enough,
    minorisation_without_a_normaliser,
    long_runs_and_rare_values,
    mass_inside_the_box,
    transitions_from_the_mean,
)
