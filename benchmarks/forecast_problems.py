"""Problems of all kinds for the forecasts: every loss, domain and sampler, and several sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expmech as em
from expmech import losses
from expmech.certificates.mechanism import Mechanism
from expmech.domains import Region

RNG = np.random.default_rng(5)
Points = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A mechanism and the sampler by its name in the plan; None for what `auto` takes."""

    name: str
    mechanism: em.ExponentialMechanism
    sampler: str | None = None
    epsilon: float = 1.0


@dataclass(frozen=True)
class Direct:
    """A mechanism that draws by itself."""

    name: str
    make: Callable[[], Mechanism]


def mean(n: int, d: int, where: float, bits: int = 32) -> em.ExponentialMechanism:
    rows = np.full((n, d), where)
    box = em.Box([0.0] * d, [1.0] * d, bits=bits)
    return em.ExponentialMechanism(loss=losses.L1Mean(rows), domain=box)


def median(
    values: Points, bits: int = 32, q: float = 0.5, adjacency: str = "replace"
) -> em.ExponentialMechanism:
    loss = losses.Quantile(values, q=q, lower=-10.0, upper=10.0, adjacency=adjacency)
    box = em.Box([-10.0], [10.0], bits=bits)
    return em.ExponentialMechanism(loss=loss, domain=box, adjacency=adjacency)


def ridge(n: int, p: int, spread: float, norm: str = "linf") -> em.ExponentialMechanism:
    features = np.clip(spread * RNG.normal(size=(n, p)), -1, 1)
    responses = np.clip(features @ np.full(p, 0.5 / p) + 0.1 * RNG.normal(size=n), -1, 1)
    loss = losses.RidgeGradient(features, responses, penalty=1.0, radius=1.0, norm=norm)
    return em.ExponentialMechanism(loss=loss, domain=em.L1Ball(p, 1.0))


def logistic(n: int, p: int, radius: float) -> em.ExponentialMechanism:
    features = RNG.normal(size=(n, p))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1))[:, None]
    labels = features[:, 0] + 0.1 * RNG.normal(size=n) > 0.0
    loss = losses.LogisticRisk(features, labels, penalty=0.1, radius=radius)
    return em.ExponentialMechanism(loss=loss, domain=em.L2Ball(p, radius))


def own(domain: Region, slope: float, loss: Any, **facts: Any) -> em.ExponentialMechanism:
    """Return a loss with slopes of one, whose energy rises by ``slope`` nats along an axis."""
    width = float(domain.widths.max())
    d = domain.dimension
    known = {"lipschitz": [1.0] * d} | facts
    return em.ExponentialMechanism(
        loss=loss, sensitivity=0.5 * width / slope, domain=domain, **known
    )


def cone(where: float) -> Callable[[Points], Points]:
    return lambda y: np.asarray(np.abs(y - where).sum(axis=1))


def distance(where: float) -> Callable[[Points], Points]:
    return lambda y: np.asarray(np.linalg.norm(y - where, axis=1))


def waves(y: Points) -> Points:
    return np.asarray(y.shape[1] / 2 + np.sin(20.0 * y).sum(axis=1) / 20.0)


def square(where: float) -> Callable[[Points], Points]:
    return lambda y: np.asarray(((y - where) ** 2).sum(axis=1) / 2.0)


def mean_distance(n: int, d: int) -> Callable[[Points], Points]:
    rows = RNG.beta(4, 4, (n, d))
    return lambda y: np.asarray(np.linalg.norm(y[:, None, :] - rows, axis=2).mean(axis=1))


def unit(d: int, bits: int = 32) -> em.Box:
    return em.Box([0.0] * d, [1.0] * d, bits=bits)


def choices(n: int, most: float = 50.0) -> em.ExponentialMechanism:
    scores = RNG.integers(0, int(most), n).astype(float)
    return em.ExponentialMechanism(
        loss=losses.Scores(scores), sensitivity=1.0, domain=em.Candidates(range(n)), bound=most
    )


class Sum:
    """A sum over coordinates that declares no growth."""

    def __call__(self, y: Points) -> Points:
        return np.asarray(self.terms(np.arange(y.shape[1]), y).sum(axis=1))

    def terms(self, coordinates: NDArray[np.int64], values: Points) -> Points:
        return np.asarray(0.1 + np.sin(10.0 * values) / 10.0)


def grown(d: int, slope: float, where: float) -> em.ExponentialMechanism:
    growth = em.Growth(center=np.full(d, where), rates=np.ones(d))
    return own(unit(d), slope, cone(where), growth=growth, gap=0.001)


def geometric_median(d: int) -> em.ExponentialMechanism:
    """Return a convex loss of one's own with a gradient."""
    rows = RNG.beta(4, 4, (1000, d))

    def loss(y: Points) -> Points:
        return np.asarray(np.linalg.norm(y[:, None, :] - rows, axis=2).sum(axis=1))

    def gradient(y: Points) -> Points:
        away = y[:, None, :] - rows
        norms = np.maximum(np.linalg.norm(away, axis=2), 1e-300)
        return np.asarray((away / norms[:, :, None]).sum(axis=1))

    return em.ExponentialMechanism(
        loss=loss,
        sensitivity=math.sqrt(d),
        domain=unit(d),
        convex=True,
        gradient=gradient,
        gradient_error=1e-9,
        lipschitz=[1000.0] * d,
    )


def number_and_choice() -> em.ExponentialMechanism:
    """Return a loss on a box times a list."""
    return em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - 0.2 - 0.1 * y[:, 1]),
        sensitivity=0.05,
        domain=em.Product(unit(1), em.Candidates(["a", "b", "c"])),
        lipschitz=[1.0],
        bound=1.0,
    )


GROWN, MEAN = grown(2, 40.0, 0.6), mean(100, 1, 0.5)
INTEGER, TINY = mean(50, 1, 0.25, bits=10), mean(20, 2, 0.6, bits=4)
FEW, SHALLOW = mean(5, 2, 0.3), own(unit(4), 3.0, cone(0.5), gap=0.001)
UNIFORM, LAPLACE, TREE = "Rejection, uniform", "Rejection, product Laplace", "BoxTree"
ATOM, ATOM_UNIFORM = "ConfAtomPerfect, laplace", "ConfAtomPerfect, uniform"
FIXED, PAD = "ConfAtomAndRuntimePerfect, constant", "ConfAtomAndRuntimePerfect, pad"
PURE, CHAIN = "Metropolis, pure", "Metropolis, delta 1e-09"
NORMAL = RNG.normal(size=1000)

PROBLEMS: list[Problem] = [
    Problem("mean, 100 rows", MEAN),
    Problem("mean, 100 rows", MEAN, LAPLACE),
    Problem("mean, 100 rows", MEAN, UNIFORM),
    Problem("mean, 100 rows", MEAN, TREE),
    Problem("mean, 100 rows", MEAN, ATOM),
    Problem("mean, 100 rows", MEAN, ATOM_UNIFORM),
    Problem("mean, 100 rows", MEAN, FIXED),
    Problem("mean, 100 rows", MEAN, CHAIN),
    Problem("mean, 10^6 rows", mean(10**6, 1, 0.3)),
    Problem("mean in a corner, 3 columns", mean(100, 3, 0.0)),
    Problem("mean in a corner, 3 columns", mean(100, 3, 0.0), UNIFORM),
    Problem("mean in a corner, 3 columns", mean(100, 3, 0.0), TREE),
    Problem("mean of 30 columns", mean(1000, 30, 0.4)),
    Problem("mean of 5 rows", FEW),
    Problem("mean of 5 rows", FEW, FIXED),
    Problem("mean of 5 rows", FEW, PURE),
    Problem("mean, whole slopes", INTEGER),
    Problem("mean, whole slopes", INTEGER, "Tabulated"),
    Problem("mean, whole slopes", INTEGER, PAD),
    Problem("mean, whole slopes", INTEGER, FIXED),
    Problem("mean, whole slopes", INTEGER, ATOM_UNIFORM),
    Problem("mean, whole slopes, corner", mean(50, 2, 1.0, bits=10), ATOM_UNIFORM),
    Problem("mean, 16 points an axis", TINY, PAD),
    Problem("mean, 16 points an axis", TINY, ATOM),
    Problem("mean at epsilon 10", MEAN, UNIFORM, 10.0),
    Problem("mean at epsilon 0.1", MEAN, UNIFORM, 0.1),
    Problem("median of 1000 normals", median(NORMAL)),
    Problem("median of 1000 normals, 2^16 points", median(NORMAL, 16), "Tabulated"),
    Problem("median of a cluster", median(1e-6 * RNG.normal(size=100))),
    Problem("median of 10^5 rows", median(RNG.normal(size=10**5))),
    Problem("median of 5 rows", median(RNG.normal(size=5))),
    Problem("0.9-quantile, add-remove", median(NORMAL, 32, 0.9, "add-remove")),
    Problem("median on 2^8 points", median(RNG.uniform(-10, 10, 300), 8), CHAIN, 0.2),
    Problem("cone, slope 500", own(unit(1), 500.0, cone(0.37))),
    Problem("cone, 2 dimensions", own(unit(2), 50.0, cone(0.21))),
    Problem("cone, 3 dimensions", own(unit(3), 10.0, cone(0.83))),
    Problem("cone, 3 dimensions, steep", own(unit(3), 100.0, cone(0.4))),
    Problem("cone, 4 dimensions, shallow", SHALLOW),
    Problem("cone, 4 dimensions, shallow", SHALLOW, FIXED),
    Problem("cone, 4 dimensions, shallow", SHALLOW, ATOM_UNIFORM),
    Problem("cone, 4 dimensions, shallow", SHALLOW, TREE),
    Problem("cone, 5 dimensions", own(unit(5), 10.0, cone(0.3))),
    Problem("flat", own(unit(1), 50.0, lambda y: np.full(len(y), 0.5))),
    Problem("flat, steep bounds", own(unit(1), 5000.0, lambda y: np.full(len(y), 0.5))),
    Problem("flat, 2 dimensions", own(unit(2), 100.0, lambda y: np.full(len(y), 1.0))),
    Problem("waves, 2 dimensions", own(unit(2), 30.0, waves)),
    Problem("waves, 3 dimensions", own(unit(3), 60.0, waves)),
    Problem("growth, 2 dimensions", GROWN),
    Problem("growth, 2 dimensions", GROWN, UNIFORM),
    Problem("growth, 6 dimensions", grown(6, 100.0, 0.5)),
    Problem("sum of terms", own(unit(3), 25.0, Sum())),
    Problem("L2 ball", own(em.L2Ball(2, 1.0), 4.0, cone(0.1))),
    Problem("L2 ball", own(em.L2Ball(2, 1.0), 4.0, cone(0.1)), UNIFORM),
    Problem("L2 ball, steep", own(em.L2Ball(3, 1.0), 40.0, cone(-0.2))),
    Problem("L1 ball", own(em.L1Ball(3, 1.0), 20.0, cone(0.1))),
    Problem("L1 ball, 5 dimensions", own(em.L1Ball(5, 1.0), 4.0, cone(0.0)), UNIFORM),
    Problem("simplex", own(em.Simplex(3), 5.0, lambda y: np.abs(y[:, 0] - 0.5), bound=1.0)),
    Problem("simplex, 4 parts", own(em.Simplex(4), 3.0, cone(0.25), bound=2.0)),
    Problem("4 candidates", choices(4)),
    Problem("4 candidates", choices(4), PURE, 0.02),
    Problem("1000 candidates", choices(1000)),
    Problem("ridge, 2 slopes", ridge(1000, 2, 0.5)),
    Problem("ridge, 5 slopes", ridge(5000, 5, 0.5)),
    Problem("ridge that binds", ridge(200, 4, 0.1)),
    Problem("ridge, L1 norm", ridge(5000, 3, 0.5, "l1")),
    Problem("ridge, box tree", ridge(1000, 2, 0.5), TREE),
    Problem("logistic, 2 features", logistic(300, 2, 8.0)),
    Problem("logistic, 6 features", logistic(2000, 6, 8.0)),
    Problem("logistic, box tree", logistic(300, 2, 8.0), TREE),
    # added after most constants of the forecasts were chosen
    Problem("mean of 2 columns at epsilon 3", mean(300, 2, 0.2), None, 3.0),
    Problem("mean of 2 columns at epsilon 3", mean(300, 2, 0.2), TREE, 3.0),
    Problem("mean of 8 rows, 4 columns", mean(8, 4, 0.7), UNIFORM),
    Problem("0.1-quantile of 50 rows", median(RNG.uniform(-9, 9, 50), 32, 0.1)),
    Problem("0.1-quantile of 50 rows", median(RNG.uniform(-9, 9, 50), 12, 0.1), "Tabulated"),
    Problem("cone with a gap, 2 dimensions", own(unit(2), 6.0, cone(0.7), gap=0.1), UNIFORM),
    Problem("cone with a gap, 2 dimensions", own(unit(2), 6.0, cone(0.7), gap=0.1), FIXED),
    Problem("waves, 1 dimension", own(unit(1), 200.0, waves)),
    Problem("cone, 6 dimensions", own(unit(6), 3.0, cone(0.6)), TREE),
    Problem("L1 ball, 4 dimensions", own(em.L1Ball(4, 2.0), 8.0, cone(0.2))),
    Problem("L2 ball, chain", own(em.L2Ball(2, 1.0), 1.5, cone(0.1)), CHAIN),
    Problem("simplex, 6 parts", own(em.Simplex(6), 4.0, cone(1 / 6), bound=2.0)),
    Problem("20 candidates, constant", choices(20), FIXED, 0.2),
    Problem("ridge, 3 slopes, 20000 rows", ridge(20_000, 3, 0.3)),
    Problem("ridge of 50 rows", ridge(50, 2, 0.4)),
    Problem("logistic, 3 features", logistic(1000, 3, 4.0)),
    Problem("geometric median, 2 dimensions", geometric_median(2)),
    Problem("geometric median, 3 dimensions", geometric_median(3)),
    Problem("a number and a choice", number_and_choice()),
    # steep slopes and nothing else declared, and long lists
    Problem("cone, epsilon n = 10^9", own(unit(1), 1e9, cone(0.37))),
    Problem("cone, epsilon n = 10^6", own(unit(1), 1e6, cone(0.61))),
    Problem("cone, 2 dimensions, epsilon n = 10^5", own(unit(2), 1e5, cone(0.21))),
    Problem("cone, 2 dimensions, epsilon n = 10^6", own(unit(2), 1e6, cone(0.83))),
    Problem("cone, 3 dimensions, epsilon n = 10^5", own(unit(3), 1e5, cone(0.4))),
    Problem("cone, 4 dimensions, epsilon n = 1000", own(unit(4), 1e3, cone(0.7))),
    Problem("cone, 5 dimensions, epsilon n = 1000", own(unit(5), 1e3, cone(0.3))),
    Problem("cone, 6 dimensions, epsilon n = 100", own(unit(6), 1e2, cone(0.6))),
    Problem("distance, 2 dimensions, epsilon n = 10^5", own(unit(2), 1e5, distance(0.4))),
    Problem("distance, 3 dimensions, epsilon n = 10^4", own(unit(3), 1e4, distance(0.3))),
    Problem("distance, 5 dimensions, 1000 rows", own(unit(5), 1e3, distance(0.4))),
    Problem("distance, 1 dimension, epsilon n = 10^4", own(unit(1), 1e4, distance(0.9))),
    Problem("square, 2 dimensions, epsilon n = 10^4", own(unit(2), 1e4, square(0.4))),
    Problem("square, 1 dimension, epsilon n = 10^5", own(unit(1), 1e5, square(0.6))),
    Problem("mean distance, 300 rows", own(unit(2), 150.0, mean_distance(300, 2))),
    Problem("mean distance, 1000 rows", own(unit(1), 500.0, mean_distance(1000, 1))),
    Problem("L2 ball, 2 dimensions, steep", own(em.L2Ball(2, 1.0), 1e4, distance(0.2))),
    Problem("L1 ball, 3 dimensions, steep", own(em.L1Ball(3, 1.0), 1e3, cone(0.1))),
    Problem("sum of terms, steep", own(unit(2), 1e4, Sum())),
    Problem("10^5 candidates", choices(10**5)),
    Problem("10^7 candidates", choices(10**7, 1e6)),
    Problem("convex, an atom", own(unit(3), 16.0, distance(0.5), gap=0.01), ATOM_UNIFORM),
]


def table_of(n: int, d: int) -> tuple[Points, Points]:
    features = RNG.uniform(-1.0, 1.0, (n, d))
    return features, features @ RNG.normal(size=d) / d


def flip(n: int) -> Mechanism:
    scores = RNG.integers(0, 100, n).astype(float)
    return em.PermuteAndFlip.from_scores(scores, sensitivity=1.0, candidates=list(range(n)))


def noisy(d: int) -> Mechanism:
    return em.NoisyMean.from_rows(table_of(1000, d)[0], lower=[-1.0] * d, upper=[1.0] * d)


def directions(n: int, d: int, k: int) -> Mechanism:
    rows = table_of(n, d)[0] / math.sqrt(d)
    return em.PrincipalDirection.from_rows(rows, n_components=k)


def quantiles(n: int, levels: list[float], bits: int) -> Mechanism:
    values = RNG.normal(size=n)
    return em.JointQuantiles.from_values(values, levels=levels, lower=-5, upper=5, bits=bits)


def optimum(n: int, d: int) -> Mechanism:
    features, targets = table_of(n, d)
    return em.PerturbedOptimum(em.risks.Logistic(), features / math.sqrt(d), np.sign(targets))


def best(n: int, k: int) -> Mechanism:
    return em.TopK.from_counts(RNG.integers(0, 1000, n), k=k)


DIRECT: list[Direct] = [
    Direct("3 quantiles of 1000 rows", lambda: quantiles(1000, [0.25, 0.5, 0.75], 16)),
    Direct(
        "9 quantiles of 10^5 rows", lambda: quantiles(10**5, [k / 10 for k in range(1, 10)], 16)
    ),
    Direct("logistic of 1000 rows by noise", lambda: optimum(1000, 4)),
    Direct("logistic of 10^5 rows by noise", lambda: optimum(10**5, 8)),
    Direct("the 10 best of 10^4", lambda: best(10**4, 10)),
    Direct("mean of a column by noise", lambda: noisy(1)),
    Direct("mean of 20 columns by noise", lambda: noisy(20)),
    Direct("the best of 20", lambda: flip(20)),
    Direct("the best of 10^5", lambda: flip(10**5)),
    Direct("the best of 10^7", lambda: flip(10**7)),
    Direct("a direction in 8 dimensions", lambda: directions(1000, 8, 1)),
    Direct("3 directions in 32 dimensions", lambda: directions(1000, 32, 3)),
]
