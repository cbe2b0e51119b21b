"""A constant path does the same work whatever the data are: seen without a clock.

Lines that run, shapes and types of arrays, words taken from the stream and arguments of np.exp are
recorded and compared between data sets; the coins are the same for all of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import draw_values
from support.work import Work, first_difference

import expmech as em
from expmech.core import coins
from expmech.core.bits import ChaChaBits, seeded_bits
from expmech.core.coins import Coins
from expmech.domains import L2Ball
from expmech.exponential.samplers.chain import run
from expmech.exponential.samplers.runtime import PadState
from expmech.losses.quantile import positions_evenly
from expmech.mechanisms.optimum.risks import Logistic

Floats = NDArray[np.float64]

GAPS = [
    0.0,
    5e-324,
    1e-300,
    1.0,
    499.0,
    511.0,
    513.0,
    690.0,
    708.0,
    709.0,
    745.0,
    747.0,
    1e4,
    1e300,
]
"""Nats that the best is ahead of the rest: ties, subnormal exponentials, exponentials of zero."""


class Taken(ChaChaBits):
    """A seeded stream that counts what is taken."""

    def __init__(self, seed: int) -> None:
        vars(self).update(vars(seeded_bits(seed)))
        self.taken: list[tuple[str, int]] = []

    def take(self, dtype: Any, count: int) -> NDArray[Any]:
        self.taken.append((np.dtype(dtype).str, count))
        return super().take(dtype, count)


def same_work(draw: Any, data: Any, patch: pytest.MonkeyPatch) -> Work:
    """Run ``draw(rows, coins)`` on every data set and compare what was done."""
    work, done, streams = Work(patch), [], []
    draw(data[0], Coins(seeded_bits(1)))  # what is cached for all data is not looked at
    work.exponents.clear()
    for rows in data:
        stream = Taken(1)
        done.append(work.of(partial(draw, rows, Coins(stream))))
        streams.append(stream.taken)
    assert len(done[0]) > 10
    for k, (lines, taken) in enumerate(zip(done, streams, strict=True)):
        assert first_difference(done[0], lines) is None, (data[k], first_difference(done[0], lines))
        assert taken == streams[0], data[k]
    assert not work.slow_exponents(), work.slow_exponents()
    assert work.integers <= 128, work.integers
    return work


def scores_ahead(gap: float, *, size: int = 64, place: int = 0) -> Floats:
    """Return scores of which one is ahead by ``gap`` nats at epsilon = 2 and sensitivity 1."""
    scores = np.full(size, -gap)
    scores[place] = 0.0
    return scores


def test_permute_and_flip_does_the_same_work_for_all_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = [scores_ahead(gap, place=place) for gap in GAPS for place in (0, 63)]
    data += [-np.arange(64.0), np.arange(64.0), np.linspace(0.0, 800.0, 64), np.full(64, 1e308)]

    def draw(scores: Floats, coins: Coins) -> None:
        best = em.PermuteAndFlip.from_scores(scores, sensitivity=1.0)
        draw_values(best, coins, epsilon=2.0, size=1)

    same_work(draw, data, monkeypatch)


def test_permute_and_flip_does_the_same_work_for_all_scores_of_a_long_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beyond 2^15 candidates coins are flipped, and winners counted, part by part."""
    size = 1 << 15
    data = [scores_ahead(gap, size=size, place=place) for gap in (0.0, 700.0) for place in (0, 9)]
    data += [scores_ahead(1.0, size=size, place=size - 1), np.linspace(0.0, 800.0, size)]

    def draw(scores: Floats, coins: Coins) -> None:
        best = em.PermuteAndFlip.from_scores(scores, sensitivity=1.0)
        draw_values(best, coins, epsilon=2.0, size=1)

    same_work(draw, data, monkeypatch)


def mechanism_of(losses: Floats, **more: Any) -> em.ExponentialMechanism:
    """Return losses of a list of candidates, of sensitivity 1."""
    facts = {"sensitivity": 1.0, "bound": 800.0} | more
    return em.ExponentialMechanism(
        loss=lambda y: losses[y], domain=em.Candidates(range(len(losses))), **facts
    )


def losses_ahead() -> list[Floats]:
    apart = [
        -scores_ahead(min(gap, 800.0), size=16, place=place) for gap in GAPS for place in (0, 9)
    ]
    return [*apart, np.linspace(0.0, 800.0, 16), np.linspace(800.0, 0.0, 16), np.full(16, 800.0)]


@pytest.mark.parametrize(
    "sampler",
    [
        em.ConfAtomAndRuntimePerfect("constant"),
        em.ConstantTabulated(),
        em.Metropolis(steps=20),
    ],
    ids=lambda sampler: sampler.label,
)
def test_constant_samplers_do_the_same_work_for_all_losses(
    sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(losses: Floats, coins: Coins) -> None:
        run(sampler.prepare(mechanism_of(losses).target(epsilon=2.0)), coins, 1)

    assert same_work(draw, losses_ahead(), monkeypatch).exponents


@pytest.mark.parametrize(
    "sampler",
    [
        em.ConfAtomAndRuntimePerfect("constant"),
        em.ConfAtomAndRuntimePerfect("constant", proposal="uniform"),
        em.ConstantTabulated(),
        em.Metropolis(steps=20, proposal="laplace"),
    ],
    ids=lambda sampler: f"{sampler.label} {vars(sampler).get('proposal')}",
)
def test_constant_samplers_of_a_mean_do_the_same_work_for_all_rows(
    sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(rows: list[float], coins: Coins) -> None:
        mechanism = em.ExponentialMechanism(
            loss=em.losses.L1Mean(np.array(rows)), domain=em.Box([0.0], [1.0], bits=12)
        )
        run(sampler.prepare(mechanism.target(epsilon=400.0)), coins, 1)

    data = [[0.0] * 4, [0.0] * 3 + [1.0], [1.0] * 4, [0.5] * 4, [0.0, 0.3, 0.3, 1e-310], [0.1] * 4]
    assert same_work(draw, data, monkeypatch).exponents


def test_a_walk_does_the_same_work_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a ball, and under a base measure that excludes points: moves outside cost as much."""
    left = em.BaseMeasure(lambda y: np.where(y[:, 0] > 0.5, -np.inf, 0.0), excludes=True)
    sampler = em.Metropolis(
        em.kernels.Mixture([em.kernels.Laplace(8.0), em.kernels.UniformMoves()]), steps=30
    )
    for domain, base in (
        (L2Ball(2, 1.0, bits=4), None),
        (em.Box([0.0] * 2, [1.0] * 2, bits=4), left),
    ):

        def draw(mean: float, coins: Coins, domain: Any = domain, base: Any = base) -> None:
            mechanism = em.ExponentialMechanism(
                loss=lambda y: 300.0 * np.abs(y - mean).sum(axis=1),
                sensitivity=1.0,
                domain=domain,
                lipschitz=[300.0] * 2,
                base=base,
            )
            run(sampler.prepare(mechanism.target(epsilon=4.0)), coins, 1)

        same_work(draw, [0.0, 0.1, 0.4, 0.7], monkeypatch)


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize("kind", ["table", "slopes", "axes"])
def test_a_step_of_pad_does_the_same_work_for_all_data(
    kind: str, waiting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of steps is random by a public law; the work of one is the same."""

    def prepared(rows: list[float]) -> Any:
        box = em.Box([0.0], [1.0], bits=6)
        if kind == "slopes":
            mechanism = em.ExponentialMechanism(loss=em.losses.L1Mean(np.array(rows)), domain=box)
        elif kind == "table":
            mechanism = mechanism_of(np.linspace(0.0, 800.0 * np.mean(rows), 16))
        else:
            mechanism = em.ExponentialMechanism(
                loss=Summed(float(np.mean(rows))), sensitivity=1.0, domain=box, lipschitz=[800.0]
            )
        epsilon = 100.0 if kind == "slopes" else 2.0
        return em.ConfAtomAndRuntimePerfect("pad").prepare(mechanism.target(epsilon=epsilon))

    def draw(rows: list[float], coins: Coins) -> None:
        chain = prepared(rows)
        state: PadState = chain.start(coins, 1)
        state.waiting[:] = waiting
        chain.step(state, coins)

    same_work(draw, [[0.0] * 4, [0.0] * 3 + [1.0], [1.0] * 4, [0.5, 0.1, 0.2, 0.3]], monkeypatch)


class Summed:
    """A sum over coordinates: 800 |y - mean|."""

    def __init__(self, mean: float) -> None:
        self.mean = mean

    def terms(self, columns: NDArray[np.int64], values: Floats) -> Floats:
        return np.asarray(800.0 * np.abs(values - self.mean))

    def __call__(self, y: Floats) -> Floats:
        return self.terms(np.zeros(len(y), dtype=np.int64), y[:, 0])


def test_the_share_of_pad_is_not_added_up_in_balls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ball arithmetic takes half as long for a tied point; float64 decides but once in 2^44."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a table was added up in balls")

    monkeypatch.setattr(coins.ExponentialTable, "sum", refuse)
    tied, apart = np.zeros(16), np.linspace(0.0, 800.0, 16)
    pad, box = em.ConfAtomAndRuntimePerfect("pad"), em.Box([0.0], [1.0], bits=4)
    for losses in (tied, apart):
        mechanism_of(losses).sample(epsilon=2.0, sampler=pad, seed=1)
    for mean in (0.0, 0.5):
        summed = em.ExponentialMechanism(
            loss=Summed(mean), sensitivity=1.0, domain=box, lipschitz=[800.0]
        )
        summed.sample(epsilon=0.1, sampler=pad, seed=1)


def test_public_points_beside_the_lattice_take_the_same_words_for_all_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = np.linspace(0.0, 1.0, 11)[:, None]

    def draw(rows: list[float], coins: Coins) -> None:
        mechanism = em.ExponentialMechanism(
            loss=em.losses.L1Mean(np.array(rows)), domain=em.Box([0.0], [1.0], bits=4)
        )
        sampler = em.ConstantMixture(points, 0.999999, sampler=em.ConstantTabulated())
        run(sampler.prepare(mechanism.target(epsilon=40.0)), coins, 8)

    same_work(draw, [[0.0] * 4, [0.0] * 3 + [1.0], [0.5] * 4, [0.3] * 4], monkeypatch)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_ranks_take_the_same_steps_for_all_values(
    adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under add-remove also for another number of values, on either side of a power of two."""
    y = (np.arange(1 << 12)[:, None] + 0.5) / (1 << 12)
    sizes = [64] * 4 if adjacency == "replace" else [0, 1, 63, 64]
    zeros, ones, spread, half = sizes
    data = [np.zeros(zeros), np.ones(ones), np.linspace(0.0, 1.0, spread), np.full(half, 0.5)]

    def loss(values: Floats) -> Any:
        return em.losses.Quantile(values, q=0.5, lower=0.0, upper=1.0, adjacency=adjacency)

    work, steps = Work(monkeypatch), []
    for values in data:
        made = loss(values)
        events = work.of(partial(made, y))
        steps.append([event[:2] for event in events])
        wanted = np.searchsorted(np.sort(values), y[:, 0], side="left")
        assert np.array_equal(made._rank(y), wanted)
    assert all(one == steps[0] for one in steps)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 100])
def test_ranks_by_even_steps_are_those_of_a_search(count: int) -> None:
    edges = np.sort(np.round(np.random.default_rng(count).random(count), 1))
    keys = np.linspace(-0.1, 1.1, 61)
    for digits in (count.bit_length(), 20):
        found = positions_evenly(np.append(edges, np.inf), keys, digits)
        assert np.array_equal(found, np.searchsorted(edges, keys, side="left"))


def test_derivatives_of_the_logistic_risk_meet_no_subnormal_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    margins = np.array(GAPS[:-1])
    work = Work(monkeypatch)
    found = Logistic().derivative(np.append(margins, -margins)[:, None], np.ones(2 * margins.size))
    assert not work.slow_exponents()
    truth = -1.0 / (1.0 + np.exp(np.minimum(np.append(margins, -margins), 700.0)))
    assert np.abs(found[:, 0] - truth).max() < 2.0**-50
