"""What choosing and charging add to a release: `auto` against a named sampler, in one run.

A small mean (100 rows, two columns), a small median and a logistic regression of 200 rows; each
release from a mechanism made anew, and again from one that has released before.

    python -m benchmarks.prepared
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import expmech as em
from benchmarks.support import best_of, duration, environment, prose, table, write
from expmech.exponential.samplers import Sampler

REPEATS = 40
GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.beta(5, 5, (100, 2))
VALUES = GENERATOR.beta(5, 5, 100)
FEATURES = GENERATOR.uniform(-0.5, 0.5, (200, 3))
LABELS = GENERATOR.integers(0, 2, 200)


def mean() -> em.ExponentialMechanism:
    return em.ExponentialMechanism(loss=em.losses.L1Mean(ROWS), domain=em.Box([0.0] * 2, [1.0] * 2))


def median() -> em.ExponentialMechanism:
    loss = em.losses.Quantile(VALUES, q=0.5, lower=0.0, upper=1.0)
    return em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))


def logistic() -> em.ExponentialMechanism:
    loss = em.losses.LogisticRisk(FEATURES, LABELS, penalty=0.01, radius=8.0)
    return em.ExponentialMechanism(loss=loss, domain=em.L2Ball(3, 8.0))


PROBLEMS: dict[str, tuple[Callable[[], em.ExponentialMechanism], Sampler]] = {
    "mean, d = 2": (mean, em.Separable()),
    "median": (median, em.BoxTree()),
    "logistic, p = 3": (logistic, em.Rejection(em.Convex())),
}


def row(name: str) -> list[str]:
    make, sampler = PROBLEMS[name]
    used = make()
    found = best_of(
        {
            "auto": lambda: make().release(epsilon=1.0),
            "named": lambda: make().release(epsilon=1.0, sampler=sampler),
            "again": lambda: used.release(epsilon=1.0),
            "named again": lambda: used.release(epsilon=1.0, sampler=sampler),
        },
        REPEATS,
    )
    ratio, again = found["auto"] / found["named"], found["again"] / found["named again"]
    times = [duration(found[key]) for key in ("auto", "named", "again", "named again")]
    return [name, *times[:2], f"{ratio:.2f}", *times[2:], f"{again:.2f}"]


def main() -> None:
    header = ["problem", "auto", "named", "ratio", "auto, again", "named, again", "ratio"]
    write(
        "prepared",
        [
            "# What choosing adds to a release",
            "",
            *prose(__doc__ or ""),
            "",
            *table(header, [row(name) for name in PROBLEMS]),
            "",
            *environment("prepared"),
        ],
    )


if __name__ == "__main__":
    main()
