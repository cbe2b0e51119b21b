"""The samplers that the trade-off compares, and the problems they are run on."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.samplers import (
    ConfAtomAndRuntimePerfect,
    ConfAtomPerfect,
    Metropolis,
    RandomAtomPerfect,
    Rejection,
    Sampler,
)
from expmech.paper import example1, example2
from expmech.paper.fig3.law import draw_points

EXAMPLES = {"Example 1": 1.0, "Example 2": 10.0}  # with the epsilon each is run at
N, MEAN, POINTS = 100, 0.3, 100
METHODS: dict[str, Callable[[], Sampler]] = {
    "Metropolis, 20 steps": lambda: Metropolis(steps=20),
    "Metropolis, uniform, δ = 1e-9": lambda: Metropolis(delta=1e-9),
    "Metropolis, Laplace, δ = 1e-9": lambda: Metropolis(delta=1e-9, proposal="laplace"),
    "Metropolis, pure": lambda: Metropolis(pure=True),
    "ConfAtomPerfect, corrected": lambda: ConfAtomPerfect(0.5, factory=True),
    "ConfAtomPerfect, direct": lambda: ConfAtomPerfect(0.5),
    "RandomAtomPerfect, l = 100": lambda: RandomAtomPerfect(np.array([[0.5]])),
    "ConfAtomAndRuntimePerfect, pad": lambda: ConfAtomAndRuntimePerfect("pad"),
    "ConfAtomAndRuntimePerfect, constant": lambda: ConfAtomAndRuntimePerfect("constant"),
    "Rejection": lambda: Rejection(),
}


def problem(
    example: str, stream: list[int]
) -> tuple[ExponentialMechanism, Any, np.ndarray[Any, Any]]:
    """Return the mechanism, its loss and the public points for RandomAtomPerfect."""
    if example == "Example 1":
        points = (np.arange(POINTS)[:, None] + 0.5) / POINTS
        return example1.make_mechanism(N, MEAN), lambda y: np.abs(y[:, 0] - MEAN), points
    loss = example2.make_loss(stream[0])
    return example2.make_mechanism(loss), loss, draw_points(loss, [stream[0], POINTS], POINTS)


def sampler(
    example: str,
    method: str,
    mechanism: ExponentialMechanism,
    epsilon: float,
    points: np.ndarray[Any, Any],
) -> Sampler:
    """Return the sampler.

    On Example 2 the atom's weight is tuned to its best, since the nominal k rests on a public
    bound.
    """
    if method.startswith("RandomAtom"):
        return RandomAtomPerfect(
            points, 0.5, proposal="laplace" if example == "Example 1" else "uniform"
        )
    if method == "Rejection" and example == "Example 2":
        return Rejection(example2.best_envelope(epsilon))
    if method.startswith("ConfAtomPerfect") and example == "Example 2":
        factory = method.endswith("corrected")
        chain = ConfAtomPerfect(0.5, proposal="uniform").prepare(mechanism.target(epsilon=epsilon))
        odds = 1 << round(chain.kernel.tag_nats / math.log(2.0))
        return ConfAtomPerfect(Fraction(odds, odds + 1), proposal="uniform", factory=factory)  # type: ignore[arg-type]
    return METHODS[method]()


def log10_steps(chain: Any) -> float:
    """Return the log of the expected number of steps of a prepared chain.

    It goes as far as public parameters and the tag rate tell.
    """
    fixed = getattr(chain, "steps", None) or getattr(chain, "rounds", None)
    if fixed is not None:
        return math.log10(fixed)
    kernel = getattr(chain, "kernel", None)
    return 0.0 if kernel is None else (math.log(2.0) + kernel.tag_nats) / math.log(10.0)
