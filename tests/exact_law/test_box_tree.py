"""The box tree: the law as shipped, the cells, their bounds and their weights."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import exact_law, float_mechanism, mean_mechanism, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import law_of, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import EnvelopeViolatedError
from expmech.domains import Domain
from expmech.exponential.envelopes.cells import Cells, certify, look, split, whole
from expmech.exponential.samplers import box_tree
from expmech.exponential.samplers.box_tree import BoxTreeChain, learn, sharpen, weigh
from expmech.exponential.samplers.chain import run
from expmech.exponential.target import Target

ROWS = [0.1, 0.3, 0.35, 0.9]
LEFTOVER = 1e-6


class Bowl:
    """A convex loss with a gradient, or the same with bounds of its own."""

    sensitivity = Fraction(1, 4)
    loss_error = Fraction(1, 1 << 44)

    def __init__(self, center: list[float], *, own: bool = False) -> None:
        self.center = np.array(center)
        self.convex = not own
        if own:
            self.lower_bound = self._lower_bound

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(((y - self.center) ** 2).sum(axis=1))

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(2.0 * (y - self.center))

    def _lower_bound(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return self(np.clip(self.center, lower, upper))


def bowl(domain: Domain, *, own: bool = False, **declared: Any) -> em.ExponentialMechanism:
    center = [0.3, -0.2, 0.4][: domain.dimension]
    return em.ExponentialMechanism(loss=Bowl(center, own=own), domain=domain, **declared)


PROBLEMS = {
    "Lipschitz": float_mechanism(ROWS, bits=3, steep=2.0),
    "integer slopes": mean_mechanism(ROWS, bits=3),
    "integer slopes in two dimensions": mean_mechanism(ROWS, bits=1, d=2),
    "gradient": bowl(em.Box([-1.0], [1.0], bits=3)),
    "gradient in two dimensions": bowl(em.Box([-1.0, -1.0], [1.0, 1.0], bits=1)),
    "own bounds": bowl(em.Box([-1.0], [1.0], bits=3), own=True),
    "L1 ball, Lipschitz and gradient": bowl(em.L1Ball(2, 1.0, bits=2), lipschitz=[4.0, 4.0]),
    "L2 ball, own bounds": bowl(em.L2Ball(2, 1.0, bits=2), own=True),
}


@pytest.fixture(autouse=True)
def _refine_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember refinements, which are functions of the tree.

    Equal states of a chain are then the same objects and merge.
    """
    monkeypatch.setattr(BoxTreeChain, "refine", functools.cache(BoxTreeChain.refine))


@pytest.mark.parametrize("memory", [1 << 30, 1])
@pytest.mark.parametrize("name", PROBLEMS)
def test_law_is_the_exponential_mechanism(name: str, memory: int) -> None:
    chain, target = prepared(PROBLEMS[name], em.BoxTree(batch=1, memory=memory), epsilon=0.5)
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 5, 8])
def test_every_stage_of_the_tree_has_the_law(rounds: int) -> None:
    chain, target = prepared(
        bowl(em.Box([-1.0, -1.0], [1.0, 1.0], bits=2)), em.BoxTree(batch=1), epsilon=4.0
    )
    tree = chain.root
    for _ in range(rounds):
        tree = chain.refine(tree, 1)

    def accepted(coins: Coins) -> Hashable:
        chosen, points = tree.propose(coins, 1, 2)
        return (
            tuple(points[0].tolist())
            if tree.accept(coins, chosen, target.energy(points))[0]
            else None
        )

    law, _ = law_of(accepted)
    share = 1.0 - law.pop(None)
    assert (
        total_variation({point: mass / share for point, mass in law.items()}, exact_law(target))
        <= 1e-12
    )


def test_draws_that_share_a_tree_are_independent() -> None:
    mechanism = float_mechanism(ROWS, bits=2, steep=2.0)
    chain, target = prepared(mechanism, em.BoxTree(batch=1), epsilon=6.0)
    pairs, leftover = law_of(
        lambda coins: tuple(run(chain, coins, 2).values[:, 0].tolist()), cut=1e-8
    )
    one = {
        float(target.domain.values(np.array([point]))[0, 0]): p
        for point, p in exact_law(target).items()
    }
    product: dict[Hashable, float] = {(a, b): p * q for a, p in one.items() for b, q in one.items()}
    assert leftover <= 1e-3
    assert total_variation(pairs, product) <= leftover


def test_draws_of_one_stream_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream whose lots are single proposals: the tree is refined after each that is refused."""
    for name in ("MANY", "LOT", "_STREAM", "_CELL_COST"):
        monkeypatch.setattr(box_tree, name, 1)
    chain, target = prepared(float_mechanism(ROWS, bits=2, steep=2.0), em.BoxTree(), epsilon=6.0)
    assert isinstance(chain.for_many(2), box_tree.TreeStream)
    pairs, leftover = law_of(
        lambda coins: tuple(map(tuple, run(chain, coins, 2).values.tolist())), cut=1e-7
    )
    one = {
        tuple(target.domain.values(np.array([point]))[0].tolist()): p
        for point, p in exact_law(target).items()
    }
    product: dict[Hashable, float] = {(a, b): p * q for a, p in one.items() for b, q in one.items()}
    assert leftover <= 1e-3
    assert total_variation(pairs, product) <= leftover


def refined(target: Target, rounds: int) -> Cells:
    bounds = certify(target)
    cells = whole(bounds)
    rng = np.random.default_rng(rounds)
    for _ in range(rounds):
        chosen = np.zeros(len(cells), dtype=np.bool_)
        chosen[rng.integers(len(cells), size=2)] = True
        parts = [cells.take(~chosen)]
        for done, refine in ((True, split), (False, look)):
            some = cells.take(chosen & (cells.seen == done) & ((cells.log2_size > 0) | ~cells.seen))
            parts.append(refine(some, bounds) if len(some) else some)
        parts.append(cells.take(chosen & cells.seen & (cells.log2_size == 0)))
        fields = dataclasses.fields(Cells)
        cells = Cells(
            **{
                field.name: np.concatenate([getattr(part, field.name) for part in parts])
                for field in fields
            }
        )
    return cells


@pytest.mark.parametrize("name", PROBLEMS)
def test_cells_partition_the_domain_and_their_bounds_hold(name: str) -> None:
    target = PROBLEMS[name].target(epsilon=30.0)
    indices = target.domain.all_indices(1 << 12)
    assert indices is not None
    energies = target.energy(indices)
    for rounds in (0, 1, 3, 10, 30):
        cells = refined(target, rounds)
        member = ((indices[:, None] >= cells.low) & (indices[:, None] <= cells.last)).all(axis=2)
        assert (member.sum(axis=1) == 1).all()
        assert (cells.bound[member.argmax(axis=1)] <= energies).all()
        assert member.any(axis=0).all(), "a cell outside the domain was kept"


@pytest.mark.parametrize("bits", [8, 32, 50])
@pytest.mark.parametrize("own", [False, True])
def test_bounds_hold_at_random_points_of_fine_lattices_and_are_tight_for_small_cells(
    bits: int, own: bool
) -> None:
    target = bowl(em.Box([-1.0, -3.0], [1.0, 5.0], bits=bits), own=own, bound=50.0).target(
        epsilon=10.0
    )
    cells = refined(target, 300)
    rng = np.random.default_rng(bits)
    for _ in range(20):
        points = cells.low + rng.integers(0, 1 << cells.bits)
        slack = target.energy(points) - cells.bound
        assert (slack >= 0).all()
    bounds = certify(target)
    single = look(dataclasses.replace(cells, bits=np.zeros_like(cells.bits)), bounds)
    tight = np.maximum(single.bound, bounds.over(single.low, single.last))
    assert (single.energy - tight <= UNITS_PER_NAT >> 10).all()


def test_bounds_allow_for_the_error_of_the_computed_loss() -> None:
    rng = np.random.default_rng(0)
    mechanism = em.ExponentialMechanism(
        loss=lambda y: 0.5 + 1e-6 * rng.choice([-1.0, 1.0], size=len(y)),
        sensitivity=0.001,
        domain=em.Box([0.0], [1.0], bits=8),
        lipschitz=[0.0],
        bound=1.0,
        loss_error=1.0000001e-6,
    )
    target = mechanism.target(epsilon=1.0)
    cells = refined(target, 50)
    for _ in range(20):
        assert (target.energy(cells.low) >= cells.bound).all()


def test_bounds_allow_for_the_rounding_of_coordinates() -> None:
    mechanism = em.ExponentialMechanism(
        loss=lambda y: y[:, 0] - 1e6,
        sensitivity=0.001,
        domain=em.Box([1e6], [1e6 + 0.7], bits=30),
        lipschitz=[1.0],
        loss_error=1e-12,
    )
    target = mechanism.target(epsilon=1.0)
    cells = refined(target, 400)
    assert (target.energy(cells.low) >= cells.bound).all()


def extreme_cells() -> Cells:
    """Cells whose sizes span 2^150 and whose bounds make up for it, or do not."""
    bits = np.array([[0, 0, 0], [50, 50, 50], [50, 50, 50], [20, 30, 40], [0, 0, 0], [10, 0, 0]])
    nats = np.array([0.0, 104.0, 70.0, 61.3, 900.0, 1.0e6])
    empty, none = np.zeros((6, 3), dtype=np.int64), np.zeros(6, dtype=np.int64)
    bound = (nats * UNITS_PER_NAT).astype(np.int64) - 12345
    return Cells(
        low=empty,
        bits=bits,
        bound=bound,
        reference=empty,
        energy=none,
        gradient=np.empty((6, 0)),
        seen=none.astype(np.bool_),
    )


def test_weights_are_integers_above_the_exact_masses_and_floats_are_accurate() -> None:
    cells = extreme_cells()
    tree = weigh(cells)
    assert 0 < tree.cumulative[-1] < 1 << 62
    assert (tree.weights >= 1).all()
    with flint.ctx.workprec(300):
        for j in range(len(cells)):
            exponent = flint.fmpq(tree.base - int(cells.bound[j]), UNITS_PER_NAT)
            exact = flint.arb(exponent).exp() * flint.arb(2) ** (
                tree.shift + int(cells.log2_size[j])
            )
            assert exact <= int(tree.weights[j])
            assert abs(exact - float(tree.mass[j])) <= abs(exact) * 2.0**-49 + 2.0**-1000


class RecordingCoins(Coins):
    """Coins that keep the probabilities they were asked for."""

    def bernoulli(self, probability: NDArray[np.float64], enclosure: Any) -> NDArray[np.bool_]:
        self.asked = [(p, enclosure(j, 300)) for j, p in enumerate(probability.tolist())]
        return super().bernoulli(probability, enclosure)


def test_acceptance_in_float64_is_within_the_coins_margin_of_the_exact_one() -> None:
    tree = weigh(extreme_cells())
    coins = RecordingCoins(seeded_bits(0))
    above = np.array([0, 1, 1 << 30, 1 << 40, 40 << 40])
    chosen = np.repeat(np.arange(6), len(above))
    tree.accept(coins, chosen, tree.cells.bound[chosen] + np.tile(above, 6))
    assert len(coins.asked) == len(chosen)
    for number, exact in coins.asked:
        assert exact <= 1
        assert abs(exact - number) <= 2.0**-47
    assert float(coins.asked[2 * len(above)][1]) == pytest.approx(1.0, abs=2.0**-20)


def test_a_loss_below_its_declared_bounds_raises_one_fixed_sentence() -> None:
    mechanism = em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - 0.3),
        sensitivity=0.01,
        domain=em.Box([0.0], [1.0]),
        lipschitz=[0.1],
        bound=1.0,
    )
    with pytest.raises(EnvelopeViolatedError) as raised:
        mechanism.sample(epsilon=1.0, size=1000, sampler=em.BoxTree(), seed=0)
    assert not any(character.isdigit() for character in str(raised.value))


def test_losses_and_domains_it_cannot_serve_are_refused_with_the_reason() -> None:
    def plain(y: NDArray[np.float64]) -> NDArray[np.float64]:
        return y[:, 0]

    box = em.ExponentialMechanism(
        loss=plain, sensitivity=1.0, domain=em.Box([0.0], [1.0]), bound=1.0
    )
    with pytest.raises(em.UnsupportedError, match="lower_bound"):
        box.certificate(epsilon=1.0, sampler=em.BoxTree())
    simplex = em.ExponentialMechanism(
        loss=plain, sensitivity=1.0, domain=em.Simplex(2), lipschitz=[1.0, 1.0]
    )
    with pytest.raises(em.UnsupportedError, match="Simplex"):
        simplex.certificate(epsilon=1.0, sampler=em.BoxTree())
    for wrong in ({"batch": 0}, {"memory": 0}):
        with pytest.raises(em.ParameterError, match="BoxTree"):
            em.BoxTree(**wrong)


def test_evaluations_of_a_first_draw_stay_below_the_stated_bars() -> None:
    for d, slope, bar in ((1, 500, 28), (2, 200, 105), (3, 50, 270)):
        spent = [first_draw_evaluations(d, slope, seed) for seed in range(12)]
        assert np.mean(spent) <= bar, (d, slope, np.mean(spent))


def first_draw_evaluations(d: int, slope: float, seed: int) -> int:
    center = np.random.default_rng(seed).random(d)
    spent = [0]

    def loss(y: NDArray[np.float64]) -> NDArray[np.float64]:
        spent[0] += len(y)
        return np.asarray(np.abs(y - center).sum(axis=1))

    mechanism = em.ExponentialMechanism(
        loss=loss,
        sensitivity=0.5 / slope,
        domain=em.Box([0.0] * d, [1.0] * d),
        lipschitz=[1.0] * d,
        minimum=-d,
        bound=d,
    )
    spent[0] = 0
    mechanism.sample(epsilon=1.0, size=1, sampler=em.BoxTree(batch=1), seed=seed)
    return spent[0]


def test_certificate_says_what_is_public_and_nothing_else() -> None:
    certificate = mean_mechanism(ROWS).certificate(epsilon=1.0, sampler=em.BoxTree(memory=1))
    assert certificate.timing == "data-dependent"
    assert certificate.delta == 0.0
    assert certificate.sampler == {"sampler": "BoxTree"}
    assert math.isclose(certificate.epsilon, 1.0)


def slow_loss(domain: em.Domain, **declared: Any) -> em.ExponentialMechanism:
    """A loss with waves that says how long an evaluation takes."""
    steep = [2.5] + [1.5] * (domain.dimension - 1)
    facts: dict[str, Any] = {"evaluation_seconds": 0.05, "lipschitz": steep} | declared
    return em.ExponentialMechanism(
        loss=lambda y: 0.3 * np.sin(5.0 * y).sum(axis=1) + np.abs(y[:, 0] - 0.4),
        sensitivity=0.1,
        domain=domain,
        minimum=-0.6,
        bound=2.0,
        **facts,
    )


@pytest.mark.parametrize(
    ("domain", "declared"),
    [
        (em.Box([0.0], [1.0], bits=3), {}),
        (em.L2Ball(2, 1.0, bits=2), {}),
        # how the loss changes from one candidate to another is not known
        (em.Product(em.Box([0.0], [1.0], bits=2), em.Candidates(["a", "b"])), {"lipschitz": [2.5]}),
    ],
    ids=["box", "ball", "box times list"],
)
def test_whatever_was_evaluated_a_patient_proposal_is_accepted_by_the_law(
    domain: em.Domain, declared: dict[str, Any]
) -> None:
    """Theorem 2 asks no more: each tree, given the past, accepts points in proportion to f."""
    chain, target = prepared(slow_loss(domain, **declared), em.BoxTree(), epsilon=3.0)
    assert chain.cuts_finely
    truth = exact_law(target)
    points = [np.array(point) for point in truth]
    for past in ([], points[:1], points[::3], points):
        cells = chain.root.cells
        for point in past:
            energies, slopes = chain.bounds.evaluate(point[None, :])
            cells = learn(cells, chain.bounds, point, int(energies[0]), slopes[0])
        cells = sharpen(cells, chain.bounds, memory=1e8)  # a step then finds little left to cut
        tree = np.full(1, weigh(cells, target.units_per_nat), dtype=np.object_)
        state = dataclasses.replace(chain.start(Coins(seeded_bits(0)), 1), tree=tree)

        def one(coins: Coins, state: Any = state) -> Hashable:
            after = chain.step(state, coins)
            return tuple(after.indices[0].tolist()) if after.done[0] else None

        law, leftover = law_of(one, cut=0.0)
        ended = 1.0 - law.pop(None, 0.0)
        assert leftover == 0.0 and set(law) == set(truth)
        for index, probability in truth.items():
            assert law[index] / ended == pytest.approx(probability, rel=1e-9)


def test_bounds_from_every_evaluated_point_hold_and_cutting_evaluates_nothing() -> None:
    domain = em.Box([0.0, 0.0], [1.0, 1.0], bits=4)
    chain, target = prepared(slow_loss(domain), em.BoxTree(), epsilon=5.0)
    indices = target.domain.all_indices(1 << 8)
    assert indices is not None
    energies = target.energy(indices)
    cells = sharpen(chain.root.cells, chain.bounds, memory=1e8)
    for row in (3, 77, 200):
        found, slopes = chain.bounds.evaluate(indices[row : row + 1])
        cells = learn(cells, chain.bounds, indices[row], int(found[0]), slopes[0])
        cells = sharpen(cells, chain.bounds, memory=1e8)
        inside = (indices[None] >= cells.low[:, None]) & (indices[None] <= cells.last[:, None])
        owned = inside.all(axis=2)
        assert (owned.sum(axis=0) == 1).all()
        assert (np.where(owned, energies, 1 << 62).min(axis=1) >= cells.bound).all()
        known = {tuple(one) for one in cells.reference.tolist()}
        assert tuple(indices[row].tolist()) in known and len(known) <= 4


def test_a_slow_loss_is_evaluated_few_times_and_only_where_it_says_so() -> None:
    counts = []
    for seconds in (0.05, None):
        evaluated = [0]

        def loss(y: NDArray[np.float64], evaluated: list[int] = evaluated) -> Any:
            evaluated[0] += len(y)
            return np.abs(y - 0.3).sum(axis=1)

        mechanism = em.ExponentialMechanism(
            loss=loss,
            sensitivity=0.01,
            domain=em.Box([0.0, 0.0], [1.0, 1.0]),
            lipschitz=[1.0, 1.0],
            bound=2.0,
            evaluation_seconds=seconds,
        )
        evaluated[0] = 0
        for seed in range(5):
            mechanism.sample(epsilon=1.0, seed=seed, sampler=em.BoxTree())
        counts.append(evaluated[0] / 5)
    assert counts[0] < 20 < 60 < counts[1]
    assert not prepared(slow_loss(em.Box([0.0], [1.0]), evaluation_seconds=1e-4), em.BoxTree())[
        0
    ].cuts_finely
