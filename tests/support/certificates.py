"""One certificate of every kind there is: mechanisms, samplers, domains, kernels and meanings."""

from __future__ import annotations

from typing import Any

import numpy as np

import expmech as em
from expmech.certificates.mechanism import CertificateContext
from expmech.certificates.postprocessing import Coefficients
from expmech.exponential.samplers import Sampler
from expmech.mechanisms.noisy_sums import (
    CentredTotals,
    Counts,
    MomentVariances,
    ThreeSums,
    Totals,
    Variances,
)
from expmech.mechanisms.optimum.risks import Huber, Logistic, SmoothedPinball, Softmax
from support.optimum import custom_risk

ROWS = np.array([[0.2], [0.4], [0.9], [0.1]])
BOX = em.Box([0.0], [1.0], bits=8)
SAMPLERS: list[Sampler] = [
    em.Rejection(),
    em.Rejection(em.Uniform()),
    em.Tabulated(),
    em.ConstantTabulated(),
    em.Separable(),
    em.BoxTree(),
    em.ConfAtomPerfect(),
    em.ConfAtomPerfect(0.25, center=[0.5], rate=2.0),
    em.RandomAtomPerfect([[0.25], [0.75]]),
    em.ConstantMixture([[0.25], [0.75]], 0.5),
    em.ConstantMixture([[0.25]], 0.5, sampler=em.Metropolis(delta=1e-6)),
    em.ConfAtomAndRuntimePerfect(mode="pad"),
    em.ConfAtomAndRuntimePerfect(mode="constant"),
    em.ConfAtomAndRuntimePerfect(mode="constant", proposal="uniform"),
    em.Metropolis(pure=True),
    em.Metropolis(delta=1e-6),
    em.Metropolis(steps=50, proposal="laplace"),
    em.Metropolis(delta=1e-6, beta=0.125),
    em.Metropolis(delta=1e-6, ergodicity=em.Ergodicity(constant=2.0, potential=1.0, ratio=0.5)),
]


def every_certificate() -> dict[str, em.Certificate]:
    """Return certificates by a name for each; nothing is drawn."""
    made = [*_exponential(), *_noisy(), *_lists(), *_optima()]
    named = {f"{k:02d} {one.mechanism} {one.sampler['sampler']}": one for k, one in enumerate(made)}
    assert len(named) == len(made)
    return named


def _exponential() -> list[em.Certificate]:
    mechanism = em.ExponentialMechanism(loss=em.losses.L1Mean(ROWS), domain=BOX)
    declared: dict[str, Any] = {"sensitivity": 0.1, "domain": BOX}
    custom = [
        em.ExponentialMechanism(loss=_near, **declared, bound=1.0),
        em.ExponentialMechanism(loss=_near, **declared, lipschitz=[1.0], minimum=0.0, gap=0.5),
        em.ExponentialMechanism(loss=_near, **declared, bound=1.0, loss_error=1e-9),
        em.ExponentialMechanism(
            loss=_near,
            **declared,
            bound=1.0,
            base=em.BaseMeasure(lambda y: -y[:, 0], name="falling", most=0.0, least=-1.0),
        ),
    ]
    away = [
        em.ExponentialMechanism(loss=_near, sensitivity=0.1, domain=domain, bound=2.0)
        for domain in (
            em.L1Ball(2, 1.0, bits=6),
            em.L2Ball(2, 1.0, bits=6),
            em.Simplex(3, bits=6),
            em.Product(BOX, em.Candidates(["a", "b"])),
        )
    ]
    scores = em.ExponentialMechanism(
        loss=em.losses.Scores([1, 5, 2]), sensitivity=1, domain=em.Candidates(["a", "b", "c"])
    )
    return [
        *(mechanism.certificate(epsilon=0.1, sampler=sampler) for sampler in SAMPLERS),
        *(one.certificate(epsilon=2.0) for one in (*custom, *away)),
        scores.certificate(epsilon=1.0),
    ]


def _near(y: Any) -> Any:
    return np.abs(y[:, 0] - 0.3)


def _noisy() -> list[em.Certificate]:
    bounds: dict[str, Any] = {"lower": (0.0, -5.0), "upper": (1.0, 7.0), "bits": 8}
    meanings = [
        Counts(size=3, disjoint=True, count=5),
        Counts(size=3, disjoint=False),
        Totals(**bounds, count=9),
        Totals(**bounds),
        Variances(**bounds, count=9, coarse=2),
        ThreeSums(**bounds),
        CentredTotals(**bounds),
        MomentVariances(**bounds, count=9),
    ]
    sums = [
        em.NoisySums(
            totals=[1] * many,
            interpretation=interpretation,
            adjacency="add-remove" if interpretation.count is None else "replace",
        )
        for interpretation, many in zip(meanings, (3, 3, 2, 2, 2, 6, 3, 4), strict=True)
    ]
    means = [
        em.NoisyMean.from_rows(ROWS, lower=[0.0], upper=[1.0], adjacency=kind)
        for kind in em.Adjacency
    ]
    means += [
        em.NoisyMean.from_rows(np.tile(ROWS, 2), lower=[0.0] * 2, upper=[1.0] * 2, adjacency=kind)
        for kind in em.Adjacency
    ]
    hull = em.bodies.ProductBody((em.bodies.MomentHull(4), em.bodies.BoxBody([1])))
    bodies = [
        em.bodies.CrossPolytope(["1/3", 2, 2]),
        em.bodies.EuclideanBall(3, 2),
        em.bodies.Polytope([1, 1, 2], [["1/2", "1/2", "1/3"]]),
        hull,
    ]
    k_norms = [em.KNorm(totals=[1, 2, 3], body=body) for body in bodies]
    return [one.certificate(epsilon=0.7) for one in (*sums, *means, *k_norms)]


def _lists() -> list[em.Certificate]:
    directions = [
        em.PrincipalDirection.from_rows(
            np.eye(3), n_components=2, variances=kind == "replace", adjacency=kind
        )
        for kind in ("replace", "add-remove")
    ]
    quantiles = [
        em.JointQuantiles.from_values(
            ROWS[:, 0], levels=["0.1", "1/2"], lower=0.0, upper=1.0, bits=8, adjacency=kind
        )
        for kind in em.Adjacency
    ]
    recursive = [
        em.RecursiveQuantiles.from_values(
            ROWS[:, 0], levels=["0.1", "1/2"], lower=0.0, upper=1.0, step="0.125", adjacency=kind
        )
        for kind in em.Adjacency
    ]
    flips = [
        em.PermuteAndFlip.from_scores([1.0, 2.0, 4.0], sensitivity=0.7, monotone=one)
        for one in (False, True)
    ]
    tops = [
        em.TopK.from_counts([3, 2, 1], k=2, objective=objective, adjacency=kind, one_item_each=each)
        for objective in ("worst", "mean")
        for kind in em.Adjacency
        for each in (False, True)
    ]
    groups = [
        em.UnknownGroups.from_counts({"a": 9}, universe="[a-z]{3}", delta=delta, adjacency=kind)
        for delta in (0, 1e-6)
        for kind in em.Adjacency
    ]
    groups.append(em.UnknownGroups.from_counts({"a": 9}, universe="text:8", delta=1e-6, keys=3))
    bounds = [
        em.PrivateBounds.from_values(np.ones(size), adjacency=kind, rows=rows)
        for kind in em.Adjacency
        for size, rows in ((1 << 9, None), (1 << 14, None if kind.count_is_public else 1 << 14))
    ]
    return [
        mechanism.certificate(epsilon=0.3)
        for mechanism in (*directions, *quantiles, *recursive, *flips, *tops, *groups, *bounds)
    ]


def _optima() -> list[em.Certificate]:
    rows = np.column_stack([np.ones(50), np.random.default_rng(3).uniform(-1, 1, (50, 2))])
    made = []
    for risk in (Logistic(), Huber(0.25), Softmax(4), SmoothedPinball(0.75)):
        for kind in em.Adjacency:
            optimum = em.PerturbedOptimum(risk, rows, rows[:, 1] > 0, adjacency=kind)
            made.append(optimum.certificate(epsilon=0.7, timing="unprotected"))
    made.append(em.PerturbedOptimum(custom_risk(), rows, rows[:, 1] > 0).certificate(epsilon=0.7))
    fixed = em.PerturbedOptimum(Logistic(), rows, rows[:, 1] > 0)
    postprocessing = Coefficients(
        scales=(1.0, 2.0, 3.0), centers=(0.5, -0.25), shift=1.0, names=("a", "b")
    )
    context = CertificateContext(
        statistic="a regression", postprocessing=postprocessing, notes=("a note of the source",)
    )
    made.append(fixed.prepare(epsilon=0.7, timing="constant", context=context).certificate)
    return made
