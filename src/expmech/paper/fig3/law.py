"""The laws of Figure 3: the mechanism on random points, and the mixture RandomAtomPerfect draws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.exponential.samplers import RandomAtomPerfect, Rejection
from expmech.losses import RidgeGradient
from expmech.paper.example2 import SENSITIVITY, best_envelope, make_loss, make_mechanism
from expmech.paper.study import Parameters, Result, Results

THRESHOLDS = np.logspace(math.log10(0.4), math.log10(150.0), 61)
NOMINAL_K = 0.5


def survival_function(
    losses: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``P(L >= t)`` at the thresholds under the law proportional to ``weights``."""
    order = np.argsort(losses)
    above = np.concatenate([np.cumsum(weights[order][::-1])[::-1], [0.0]])
    return np.asarray(above[np.searchsorted(losses[order], THRESHOLDS, side="left")] / above[0])


def draw_points(loss: RidgeGradient, seed: list[int], count: int) -> NDArray[np.float64]:
    """Return public points, uniform on the ball's lattice."""
    domain = make_mechanism(loss).domain
    return np.asarray(domain.values(domain.draw_uniform(Coins(seeded_bits(seed)), count)))


def discrete_law(losses: NDArray[np.float64], epsilon: float) -> tuple[NDArray[np.float64], float]:
    """Return the survival function of the mechanism on a list of points.

    The log of the mean of exp(-eta L) over them comes with it.
    """
    energies = losses * (epsilon / (2.0 * SENSITIVITY))
    weights = np.exp(energies.min() - energies)
    log_mean = float(np.log(weights.mean()) - energies.min())
    return survival_function(losses, weights), log_mean


def realised_k(log_mean: NDArray[np.float64] | float, log_share: float) -> NDArray[np.float64]:
    """Return the share of the points in the mixture.

    Nominal odds times how f averages over the points against the ball.
    """
    odds = NOMINAL_K / (1.0 - NOMINAL_K) * np.exp(np.asarray(log_mean) - log_share)
    return np.asarray(odds / (1.0 + odds))


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


class CellSummary:
    """The results of all cells, put together; grids are those of the run."""

    def __init__(self, results: Results) -> None:
        first = next(p for p, _ in results if p["part"] == "points")
        self.epsilons, self.counts = tuple(first["epsilon"]), tuple(first["points"])
        self.exact = {p["epsilon"]: r for p, r in results if p["part"] == "continuous"}
        batches = [r for p, r in results if p["part"] == "points"]
        self.survival = np.concatenate([batch["survival"] for batch in batches])
        self.printed, self.meant = np.quantile(self.survival, [0.05, 0.95], axis=0)
        self.curves = np.array([self.exact[epsilon]["survival"] for epsilon in self.epsilons])
        shares = np.array([float(self.exact[epsilon]["log_share"]) for epsilon in self.epsilons])
        log_mean = np.concatenate([batch["log_mean"] for batch in batches])
        k = realised_k(log_mean, shares)[..., None]  # type: ignore[arg-type]
        self.mixture = np.quantile((1.0 - k) * self.curves + k * self.survival, 0.95, axis=0)
        redrawn = [r["survival"] for p, r in results if p["part"] == "data"]
        self.redrawn = np.quantile(np.concatenate(redrawn), 0.95, axis=0)
        self.drawn = {p["epsilon"]: p["draws"] for p, _ in results if p["part"] == "continuous"}
        atoms = [(p, r) for p, r in results if p["part"] == "random atom"]
        self.atoms = {(p["epsilon"], p["points"]): r for p, r in atoms}
        self.draws = {(p["epsilon"], p["points"]): p["draws"] for p, _ in atoms}
        self.laws = {key: mixture_law(r, self.exact[key[0]]) for key, r in self.atoms.items()}


def mixture_law(atom: Result, exact: Result) -> NDArray[np.float64]:
    """Return the survival function RandomAtomPerfect has on one set of points."""
    share = float(realised_k(atom["log_mean"], float(exact["log_share"])))
    return np.asarray((1.0 - share) * exact["survival"] + share * atom["discrete"])


def largest_gap(atom: Result, law: NDArray[np.float64]) -> float:
    """Return the largest distance of the draws from the law; nan where there are none."""
    return float(np.abs(atom["sampled"] - law).max())
