"""One shot of a clock against every sampler that promises: can it tell two neighbours apart?

    python -m benchmarks.clock_benchmark [--shots 2000]

Two data sets that differ in one row are released in random order, each release timed once, public
preparation apart. The attacker has seen the times of half of the releases of either and guesses,
for each of the other half, which data set it was: by a histogram of 24 bins of equal share, the
likelier one. A guess is right in half of the tries where the clock tells nothing. Writes
benchmarks/results/clock.md.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expmech as em
from benchmarks.support import duration, environment, prose, table, write
from expmech.release.prepared import Mechanism
from expmech.samplers.base import CONSTANT, DATA_INDEPENDENT

NEIGHBOURS = ([0.0, 0.0], [0.0, 1.0])
EPSILON = 8.0
BINS = 24
FAMILY = 2.81 / 1.96  # of an interval's half: one false alarm in 20 runs of 20 guesses
Times = NDArray[np.float64]
Make = Callable[[list[float]], Mechanism]


def integer_mean(rows: list[float]) -> Mechanism:
    """Return the mean by the L1 loss on a lattice whose slopes are whole numbers."""
    box = em.Box([0.0], [1.0], bits=10)
    return em.ExponentialMechanism(loss=em.losses.L1Mean(np.array(rows)), domain=box)


def plain_loss(rows: list[float]) -> Mechanism:
    """Return a loss of one's own in two dimensions."""
    mean = float(np.mean(rows))
    return em.ExponentialMechanism(
        loss=lambda y: np.abs(y - mean).sum(axis=1),
        sensitivity=1.0,
        domain=em.Box([0.0, 0.0], [1.0, 1.0]),
        lipschitz=[1.0, 1.0],
        gap=0.0,
    )


def median(rows: list[float]) -> Mechanism:
    """Return the median of the rows on the lattice that statistics take by default."""
    loss = em.losses.Quantile(rows, q=0.5, lower=0.0, upper=1.0)
    return em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0], bits=16))


def noisy_mean(rows: list[float]) -> Mechanism:
    return em.NoisyMean.from_rows(np.array(rows)[:, None], lower=[0.0], upper=[1.0])


def flipped(rows: list[float]) -> Mechanism:
    """Return permute-and-flip on 50 candidates, of which one row moves the best."""
    scores = np.zeros(50)
    scores[:2] = [rows.count(0.0), rows.count(1.0)]
    return em.PermuteAndFlip.from_scores(scores, sensitivity=1.0, candidates=list(range(50)))


PAD, FIXED = em.ConfAtomAndRuntimePerfect, em.Metropolis
CASES: list[tuple[str, Make, Any]] = [
    ("constant, Laplace proposals", integer_mean, PAD("constant")),
    ("constant, uniform proposals", integer_mean, PAD("constant", proposal="uniform")),
    ("constant, a loss of one's own", plain_loss, PAD("constant")),
    ("pad, Laplace proposals", integer_mean, PAD("pad")),
    ("pad, uniform proposals", integer_mean, PAD("pad", proposal="uniform")),
    ("Metropolis, uniform, 40 steps", integer_mean, FIXED(steps=40)),
    ("Metropolis, Laplace, 40 steps", integer_mean, FIXED(steps=40, proposal="laplace")),
    ("Metropolis, a loss of one's own", plain_loss, FIXED(steps=40)),
    ("ConstantTabulated, a mean", integer_mean, em.ConstantTabulated()),
    ("ConstantTabulated, a median on 2^16 points", median, em.ConstantTabulated()),
    ("NoisyMean", noisy_mean, "auto"),
    ("PermuteAndFlip", flipped, "auto"),
    ("Rejection, uniform (promises nothing)", integer_mean, em.Rejection(em.Uniform())),
    ("Rejection, Laplace (promises nothing)", integer_mean, em.Rejection()),
    ("BoxTree (promises nothing)", integer_mean, em.BoxTree()),
    ("BoxTree, a median on 2^16 points (promises nothing)", median, em.BoxTree()),
    ("Tabulated (promises nothing)", integer_mean, em.Tabulated()),
]


def shoot(make: Make, sampler: Any, shots: int) -> tuple[Times, NDArray[np.int64], str]:
    """Return wall and processor times, whose data it was, and the timing class promised."""
    mechanisms = [make(rows) for rows in NEIGHBOURS]
    which = np.random.default_rng(0).permutation(np.repeat([0, 1], shots))
    times = np.zeros((2, len(which)))
    promised = ""
    for warm in mechanisms * 20:
        promised = warm.prepare(epsilon=EPSILON, sampler=sampler).release().certificate.timing
    gc.disable()
    for k, data in enumerate(which):
        ready = mechanisms[data].prepare(epsilon=EPSILON, sampler=sampler)
        wall, processor = time.perf_counter(), time.process_time()
        ready.release()
        times[:, k] = time.perf_counter() - wall, time.process_time() - processor
    gc.enable()
    return times, which, promised


def guess(times: Times, which: NDArray[np.int64]) -> tuple[float, float]:
    """Return the share of right guesses on the second half, and half its 95% interval."""
    half = len(times) // 2
    edges = np.quantile(times[:half], np.arange(1, BINS) / BINS)
    bins = np.searchsorted(edges, times)
    seen = np.zeros((2, BINS))
    np.add.at(seen, (which[:half], bins[:half]), 1.0)
    likelier = (seen[1] > seen[0]).astype(np.int64)
    right = float((likelier[bins[half:]] == which[half:]).mean())
    return right, 1.96 * math.sqrt(right * (1.0 - right) / (len(times) - half))


def line(name: str, make: Make, sampler: Any, shots: int) -> tuple[list[str], bool]:
    """Return a line of the table, and whether a promise is kept as far as can be seen."""
    times, which, promised = shoot(make, sampler, shots)
    one, other = (float(np.median(times[0, which == data])) for data in (0, 1))
    guesses = [guess(clock, which) for clock in times]
    shown = [f"{100 * right:.1f}% +- {100 * error:.1f}" for right, error in guesses]
    open_ = promised not in (CONSTANT, DATA_INDEPENDENT)
    keeps = open_ or all(right - FAMILY * error <= 0.5 for right, error in guesses)
    return [name, promised, duration(one), duration(other), f"{other / one:.3f}", *shown], keeps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=int, default=2000, help="releases of either data set")
    parser.add_argument("--only", default="", help="lines whose name starts so; nothing is written")
    asked = parser.parse_args()
    shots = asked.shots
    lines, broken = [], []
    for name, make, sampler in (case for case in CASES if case[0].startswith(asked.only)):
        found, keeps = line(name, make, sampler, shots)
        print(" | ".join(found), flush=True)
        lines.append(found)
        broken += [] if keeps else [name]
    if asked.only:
        return
    head = ["sampler", "promise", "median", "of the neighbour", "ratio"]
    head += ["right by the wall clock", "by processor time"]
    verdict = "Every promise holds: no guess is above one half by more than 20 of them explain."
    if broken:
        verdict = f"Told apart although promised: {'; '.join(broken)}."
    write(
        "clock",
        [
            "# One shot of a clock at two neighbours",
            "",
            *environment("clock_benchmark"),
            "",
            *prose(
                f"""Two rows at 0, or one of them at 1; epsilon = {EPSILON:g}; {2 * shots} releases a
                line in random order, the first half to learn from. A guess between the two from one
                time is right in half of the tries where the clock tells nothing; the interval is
                that of 95%. Processor time leaves out what other programs do to the wall clock. What
                promises nothing is below for comparison."""
            ),
            "",
            *table(head, lines),
            "",
            verdict,
        ],
    )


if __name__ == "__main__":
    main()
