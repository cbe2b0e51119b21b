"""The parts of Figure 3: the continuous law, random discretisations, RandomAtomPerfect."""

from __future__ import annotations

import math

import numpy as np

from expmech.exponential.samplers import RandomAtomPerfect, Rejection
from expmech.losses import RidgeGradient
from expmech.paper.example2 import best_envelope, make_loss, make_mechanism
from expmech.paper.fig3.law import (
    NOMINAL_K,
    THRESHOLDS,
    discrete_law,
    draw_points,
    survival_function,
)
from expmech.paper.work import Parameters, Result


def compute(parameters: Parameters, stream: list[int]) -> Result:
    """Compute one part; but for part "data" the data set depends on the study's seed alone."""
    loss = make_loss(stream[0])
    part = {
        "continuous": _continuous,
        "points": _discretisations,
        "data": _discretisations,
        "random atom": _random_atom,
    }[parameters["part"]]
    return part(parameters, stream, loss)


def _continuous(parameters: Parameters, stream: list[int], loss: RidgeGradient) -> Result:
    """Return the exact mechanism's survival function from exact draws.

    log(Z_f / |Y|), from the acceptance rate, comes with it.
    """
    mechanism, epsilon = make_mechanism(loss), parameters["epsilon"]
    envelope = best_envelope(epsilon)
    draws = mechanism.sample(
        epsilon=epsilon, size=parameters["draws"], sampler=Rejection(envelope), seed=stream
    )
    target = mechanism.target(epsilon=epsilon)
    bound = envelope.bind(target)
    log_accept = math.log(parameters["draws"] / float(draws.proposals.sum()))
    log_mass = bound.log_mass()  # type: ignore[attr-defined]
    log_share = log_accept + bound.offset / target.units_per_nat + log_mass - target.domain.log_size
    losses = loss(draws.values)
    return {
        "survival": survival_function(losses, np.ones_like(losses)),
        "log_share": np.array(log_share),
        "mean_loss": losses.mean(),
    }


def _discretisations(parameters: Parameters, stream: list[int], loss: RidgeGradient) -> Result:
    """Return the survival functions of the discrete mechanism on l points, nested in l.

    A batch of random point sets is on one data set, or (part "data") each on one of its own.
    """
    counts, epsilons = parameters["points"], parameters["epsilon"]
    shape = (parameters["replications"], len(counts), len(epsilons))
    survival, log_mean = np.empty((*shape, len(THRESHOLDS))), np.empty(shape)
    for replication, i, j in np.ndindex(shape):
        if (i, j) == (0, 0):
            seed = [*stream, replication]
            own = make_loss(seed) if parameters["part"] == "data" else loss
            losses = own(draw_points(own, seed, max(counts)))
        law = discrete_law(losses[: counts[i]], epsilons[j])
        survival[replication, i, j], log_mean[replication, i, j] = law
    return {"survival": survival, "log_mean": log_mean}


def _random_atom(parameters: Parameters, stream: list[int], loss: RidgeGradient) -> Result:
    """Return draws of RandomAtomPerfect on one set of points.

    There are none where its expected 2 e^B steps are not affordable.
    """
    mechanism, epsilon = make_mechanism(loss), parameters["epsilon"]
    points = draw_points(loss, [stream[0], parameters["points"]], parameters["points"])
    survival, log_mean = discrete_law(loss(points), epsilon)
    proposal = "laplace" if best_envelope(epsilon).name != "uniform" else "uniform"
    sampler = RandomAtomPerfect(points, NOMINAL_K, proposal=proposal)
    tag = sampler.prepare(mechanism.target(epsilon=epsilon)).kernel.tag_nats
    result: Result = {
        "discrete": survival,
        "log_mean": np.array(log_mean),
        "log10_steps": np.array((math.log(2.0) + tag) / math.log(10.0)),
        "sampled": np.full(len(THRESHOLDS), np.nan),
    }
    if float(result["log10_steps"]) <= math.log10(parameters["most"]):
        losses = loss(
            mechanism.sample(
                epsilon=epsilon, size=parameters["draws"], sampler=sampler, seed=stream
            ).values
        )
        result["sampled"] = survival_function(losses, np.ones_like(losses))
    return result
