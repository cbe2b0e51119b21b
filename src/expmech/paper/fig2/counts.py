"""What Figure 2 counts: the samplers, their closed-form means and the theorem's bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expmech.paper.example1 import make_mechanism, slope
from expmech.paper.work import Parameters, Result
from expmech.samplers import ConfAtomAndRuntimePerfect, ConfAtomPerfect, Rejection, Sampler
from expmech.theory import acceptance_laplace_infimum, laplace_integral, paper_bound_conf_atom

SIZES, EPSILONS, SHAPES = (10, 100, 1000), (0.01, 0.1, 1.0), (0.1, 1.0, 10.0)
PRINTED, DIRECT = "ConfAtomPerfect, as printed", "ConfAtomPerfect, direct"
METHODS: dict[str, Sampler] = {
    PRINTED: ConfAtomPerfect(0.5, factory=True),
    DIRECT: ConfAtomPerfect(0.5),
    "ConfAtomAndRuntimePerfect": ConfAtomAndRuntimePerfect("pad"),
    "Rejection": Rejection(),
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def draw_means(parameters: Parameters, seed: int) -> NDArray[np.float64]:
    """Return the means of a cell, the same for every sampler."""
    generator = np.random.default_rng(
        [seed, round(10 * parameters["shape"]), parameters["n"], round(100 * parameters["epsilon"])]
    )
    return np.asarray(
        generator.beta(parameters["shape"], parameters["shape"], size=parameters["means"])
    )


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Return the proposal counts, one row a mean."""
    means = draw_means(parameters, stream[0])
    counts = [
        make_mechanism(parameters["n"], float(mean))
        .sample(
            epsilon=parameters["epsilon"],
            size=parameters["runs"],
            sampler=METHODS[parameters["method"]],
            seed=[*stream, position],
        )
        .proposals
        for position, mean in enumerate(means)
    ]
    return {"means": means, "proposals": np.array(counts)}


def theorem_bound(parameters: Parameters, means: NDArray[np.float64]) -> float:
    """Return the theorem's bound 48 / (k^2 (1-k)^2 inf p_Accept), averaged over the means.

    K = 1/2, p_Accept corrected.
    """
    c = slope(parameters["n"], parameters["epsilon"])
    return float(
        np.mean(
            [
                paper_bound_conf_atom(0.5, acceptance_laplace_infimum([float(mean)], c, c))
                for mean in means
            ]
        )
    )


def expected_proposals(parameters: Parameters, means: NDArray[np.float64]) -> float | None:
    """Return the mean number of proposals in closed form on the continuum.

    Averaged over the means; None for Algorithm 1.
    """
    c = slope(parameters["n"], parameters["epsilon"])
    accepted = np.array([c / 2.0 * laplace_integral(c, float(mean)) for mean in means])
    method = parameters["method"]
    if method == "Rejection":
        return float((1.0 / accepted).mean())
    if method == DIRECT:
        return float((4.0 / accepted).mean())
    if method == "ConfAtomAndRuntimePerfect":
        return 1.0 / (c / 2.0 * laplace_integral(c, 0.0))
    return None
