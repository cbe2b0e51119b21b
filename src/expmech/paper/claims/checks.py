"""A check for each sentence: numbers in, a verdict out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from expmech import theory
from expmech.paper.example1 import released_epsilon, slope
from expmech.paper.example2 import COEFFICIENTS, SENSITIVITY, simulate
from expmech.paper.kernels import (
    Matrix,
    laplace_law,
    largest_ratio,
    printed_kernel,
    released_law,
    stationary_law,
)
from expmech.paper.printed.cost import count_epsilon, expected_proposals_printed, outer_tail_rate
from expmech.paper.verdict import Interval, Verdict, is_below, is_increasing

COMMAND = "expmech paper claims"
_SIZE, _N, _EPSILON = 120, 10, 1.0
_EXAMPLE = "Example 1, d = 1, n = 10, epsilon = 1"
_KERNEL = f"{_EXAMPLE}, mean .3, alpha = n epsilon / 2 as a rate, k = 1/2, grid of {_SIZE} cells"


Outcome = tuple[str, str]
"""A verdict and the numbers behind it."""


@dataclass(frozen=True)
class PaperClaim:
    """A sentence of the paper, its place, and the computation that judges it under conditions."""

    sentence: str
    where: str
    under: str
    check: Callable[[], Outcome]

    def judge(self) -> Verdict:
        """Make the computation."""
        verdict, number = self.check()
        return Verdict(self.sentence, self.where, self.under, verdict, number, COMMAND)


def claim(sentence: str, where: str, under: str) -> Callable[[Callable[[], Outcome]], PaperClaim]:
    """Make a claim of the function that checks it, under the conditions that it names."""
    return partial(PaperClaim, sentence, where, under)


def within(error: float, allowed: float) -> str:
    """Say whether an error is below what is allowed."""
    return is_below(Interval.exact(error), Interval.exact(allowed))


@claim(
    "The exponential mechanism is the (epsilon, 0)-DP mechanism with density f_X",
    "Definition 2",
    f"{_EXAMPLE}, means j/n, in closed form",
)
def mechanism_is_private() -> Outcome:
    """Definition 2, over means j/n."""
    ratio = released_epsilon(_N, _EPSILON)
    return within(ratio, _EPSILON + 1e-9), f"largest |log ratio| {ratio:.3f} at epsilon = 1"


def _visits(steps: Matrix) -> Matrix:
    """Return how often each state is visited in 400 steps from the atom, on average."""
    now, visits = np.zeros(_SIZE + 1), np.zeros(_SIZE + 1)
    now[-1] = 1.0
    for _ in range(400):
        visits += now
        now = now @ steps
    return visits


@claim(
    "the stationary distribution admits an infinite mixture form over the return time tau",
    "Section 2.2, after Hobert et al.",
    f"printed kernel, {_KERNEL}",
)
def regeneration_mixture() -> Outcome:
    """Hobert's mixture over the time since the last visit to the atom, by matrices."""
    kernel = printed_kernel(_SIZE, 5.0, 0.3, 5.0, 0.5)
    away = kernel.copy()
    away[:, -1] = 0.0
    law = _visits(away)
    error = float(np.abs(law / law.sum() - stationary_law(kernel)).sum() / 2.0)
    number = f"total variation {error:.0e} between the mixture and the invariant law"
    return within(error, 1e-9), number


@claim(
    "if inf p(y) > beta > 0 then Algorithm 1 produces an exact sample from the target",
    "Section 2.2, after Lee et al.",
    f"printed kernel, {_KERNEL}, beta = k/2",
)
def algorithm_1_is_exact() -> Outcome:
    """Compare the law of Y_M of Algorithm 1 with the invariant law of its kernel."""
    beta, kernel = 0.25, printed_kernel(_SIZE, 5.0, 0.3, 5.0, 0.5)
    residual = kernel.copy()
    residual[:, -1] -= beta  # what is left of a step after an atom visit of probability beta
    error = float(np.abs(beta * _visits(residual) - stationary_law(kernel)).sum() / 2.0)
    number = f"total variation {error:.0e} from the kernel's own invariant law (which is not f)"
    return within(error, 1e-9), number


@claim(
    "There exists an algorithm (implemented by Algorithm 1) to sample from density f_X",
    "Theorem 2",
    f"printed kernel, {_KERNEL}",
)
def release_has_law_f() -> Outcome:
    """Theorem 2: the printed kernel's release against f."""
    law, f = released_law(printed_kernel(_SIZE, 5.0, 0.3, 5.0, 0.5)), laplace_law(_SIZE, 5.0, 0.3)
    error = float(np.abs(law - f).sum() / 2.0)
    number = f"the release is {error:.2f} in total variation from f"
    return within(error, 0.01), number


@claim(
    "||grad l_X(y) - grad l_X'(y)||_1 <= 2 (1 + B) p",
    "Section 3.2",
    "p = 5, B = 1, one row replaced; the least constant is proved in docs/theory/affine.md",
)
def sensitivity_of_example_2() -> Outcome:
    """Look for the gradient's L1 sensitivity by random and extreme rows."""
    generator = np.random.default_rng(7)
    worst = 0.0
    for trial in range(2000):
        rows = generator.choice([-1.0, 1.0], size=(2, len(COEFFICIENTS) + 1))
        if trial % 2:
            rows = generator.uniform(-1.0, 1.0, size=rows.shape)
        y = np.zeros(len(COEFFICIENTS))
        y[generator.integers(len(y))] = generator.choice([-1.0, 1.0])  # a corner of the ball
        change = [row[:-1] * (row[:-1] @ y - row[-1]) for row in rows]
        worst = max(worst, float(np.abs(change[0] - change[1]).sum()))
    number = f"largest change found {worst:.1f}, bound {float(SENSITIVITY):g}"
    return within(worst, SENSITIVITY + 1e-9), number


@claim(
    "the minorization constant suffers from curse of dimensionality effects",
    "Section 4.1",
    "Example 1, uniform proposals, n = 1000, epsilon = 1, d = 1, 2, 5, 10",
)
def dimension_is_a_curse() -> Outcome:
    """Beta of uniform proposals at n = 1000, epsilon = 1 as d grows."""
    betas = {d: theory.beta_uniform(1000, 1.0, d) for d in (1, 2, 5, 10)}
    steps = [Interval.exact(1.0 / beta) for beta in betas.values()]
    listed = ", ".join(f"{beta:.0e} (d = {d})" for d, beta in betas.items())
    return is_increasing(steps), f"beta {listed}"


@claim(
    "RandomAtomPerfect: epsilon-DP sample from (1-k) f_X + k g_X",
    "Corollary 1",
    f"{_EXAMPLE}, means j/n, a coin of constant k decides between f and g, 10 points (j + 1/2)/10",
)
def mixture_is_private() -> Outcome:
    """Corollary 1's constant-k mixture: f and g have no value in common, so the worse counts."""
    c = slope(_N, _EPSILON)
    on_points = largest_ratio([laplace_law(10, c, j / _N) for j in range(_N + 1)])
    ratio = max(released_epsilon(_N, _EPSILON), on_points)
    number = f"largest |log ratio| {ratio:.3f}: of f itself; {on_points:.3f} of g on the points"
    return within(ratio, 1.0 + 1e-9), number


@claim(
    "when the loss function is convex ... many nice properties in terms of concentration",
    "Section 4.2",
    "Example 1, d = 1, mean .3, n epsilon / 2 = .5, 5, 50",
)
def log_concave_utility() -> Outcome:
    """Section 4.2's hope: the mean excess loss of a convex loss against d / eta."""
    ratios = []
    for c in (0.5, 5.0, 50.0):
        law, points = laplace_law(2000, c, 0.3), (np.arange(2000) + 0.5) / 2000
        mean_loss = float(law @ np.abs(points - 0.3))
        ratios.append(mean_loss / theory.excess_loss_log_concave(1, c, cell_error=1 / 4000))
    number = f"mean excess loss is {min(ratios):.2f} to {max(ratios):.2f} of the bound d / eta"
    return within(max(ratios), 1.0), number


@claim(
    "Z in [-1, 1]^n",
    "Section 3.2 and Appendix",
    "the simulation as the appendix specifies it, before any clip",
)
def responses_leave_their_range() -> Outcome:
    """Say how far a simulated response can reach before the clip."""
    largest = max(float(np.abs(simulate(seed)[1]).max()) for seed in range(50))
    farthest = 1.0 + math.fsum(abs(x) for x in COEFFICIENTS.tolist() if x < 0)
    number = f"Z_i can reach +-{farthest:.1f}; the largest of 5000 simulated is {largest:.2f}"
    return within(farthest, 1.0 + 1e-9), number


@claim(
    "The runtime for Algorithm 2 depends on the confidential data",
    "Section 3.1",
    f"printed kernel, {_EXAMPLE}, alpha = n epsilon / 2 as a rate, k = 1/2, computed means",
)
def runtime_depends_on_data() -> Outcome:
    """Section 4.1: the mean count of the printed sampler at the centre and at an end."""
    counts = [expected_proposals_printed(0.5, 5.0, mean, 5.0) for mean in (0.5, 0.1, 0.0)]
    listed = ", ".join(f"{count:.0f}" for count in counts)
    number = f"mean proposals {listed} at means .5, .1 and 0"
    return is_increasing([Interval.exact(count) for count in counts]), number


@claim(
    "The total number of proposed samples N_prop is independent of the data (0-DP)",
    "Corollary 2",
    f"printed kernel, {_EXAMPLE}, means j/n, alpha = n epsilon / 2 as a rate, k = 1/2",
)
def neighbours_of_counts() -> Outcome:
    """Compare the padded count of two proposals, and the tails of the outer steps."""
    moved = count_epsilon(0.5, _N, _EPSILON)
    rates = [outer_tail_rate(0.5, 5.0, mean, 5.0) for mean in (0.0, 0.1)]
    number = (
        f"P(padded N_prop = 2) moves by e^{moved:.3f} between neighbours; P(outer steps > m) falls"
        f" as {rates[0]:.4f}^m at mean 0 and {rates[1]:.4f}^m at mean .1, so that the log ratio"
        " grows without bound: their number is epsilon-DP for no epsilon"
    )
    return within(max(moved, abs(rates[0] - rates[1])), 1e-9), number


CLAIMS: tuple[PaperClaim, ...] = (
    mechanism_is_private,
    regeneration_mixture,
    algorithm_1_is_exact,
    release_has_law_f,
    mixture_is_private,
    neighbours_of_counts,
    runtime_depends_on_data,
    sensitivity_of_example_2,
    responses_leave_their_range,
    dimension_is_a_curse,
    log_concave_utility,
)
