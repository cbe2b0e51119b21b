"""Kernels of moves: their exact law, the chains that take them, and the check they pass."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import exact_law, float_mechanism, mean_mechanism, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point, law_after
from expmech.auditing.enumeration import (
    EnumeratingCoins,
    largest_log_ratio,
    law_of,
    total_variation,
)
from expmech.core.coins import Coins, ExponentialTable
from expmech.core.coins.laws import draw_discrete_gaussian
from expmech.core.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.domains import Domain, Indices
from expmech.exponential.envelopes import Envelope
from expmech.exponential.kernels import (
    Ball,
    Exchange,
    Gaussian,
    Kernel,
    Laplace,
    Mixture,
    SymmetricKernel,
    UniformMoves,
    check_kernel,
)
from expmech.exponential.kernels import steps as step_kernels
from expmech.exponential.kernels.check import small_lattice, trial_target
from expmech.exponential.kernels.mixture import rebuild_kernel
from expmech.exponential.samplers import Sampler
from expmech.ledger.verification import verify_certificate

ROWS = [0.1, 0.3, 0.35, 0.9]
LEFTOVER = 1e-6
KERNELS: dict[str, Kernel] = {
    "uniform": UniformMoves(),
    "laplace": Laplace(rate=6.0),
    "gaussian": Gaussian(scale=0.25),
    "cube": Ball(0.3),
    "l1 ball": Ball(0.55, norm="l1"),
    "mixture": Mixture([Ball(0.3), Laplace(rate=8.0), UniformMoves()], weights=[2, 3, 1]),
}


@pytest.fixture(autouse=True)
def _gaussians_in_one_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerate a discrete Gaussian draw by its law; test_convex enumerates the draw itself."""

    def draw(coins: Coins, slope: int, size: int, unit: int) -> NDArray[np.int64]:
        if not isinstance(coins, EnumeratingCoins):
            return draw_discrete_gaussian(coins, slope, size, unit)
        values = range(-12, 13)
        weights = [math.exp(-slope * u * u / unit) for u in values]
        shares = [weight / math.fsum(weights) for weight in weights]
        return np.array([values[coins._branch(shares)] for _ in range(size)], dtype=np.int64)

    monkeypatch.setattr(step_kernels, "draw_discrete_gaussian", draw)


def moves_from(kernel: Kernel, domain: Domain, start: Indices) -> dict[Hashable, float]:
    moves = kernel.bind(trial_target(domain))
    law, leftover = law_of(lambda coins: tuple(moves.propose(coins, start)[0].tolist()), cut=1e-10)
    assert leftover <= LEFTOVER
    return law


DOMAINS: list[Domain] = [
    em.Box([0.0], [1.0], bits=2),
    em.Box([0.0, -1.0], [1.0, 3.0], bits=1),
    em.Simplex(3, bits=1),
]
CASES = [
    (name, kernel, domain)
    for name, kernel in KERNELS.items()
    for domain in DOMAINS[:2]
    if (name, domain.dimension) != ("l1 ball", 2)  # two loops of retries: one try each, below
]
CASES += [("exchange", Exchange(4.0), domain) for domain in DOMAINS[1:]]


@pytest.mark.parametrize(
    ("name", "kernel", "domain"), CASES, ids=lambda one: one if isinstance(one, str) else ""
)
def test_moves_have_the_stated_mass_and_are_symmetric(
    name: str, kernel: Kernel, domain: Domain
) -> None:
    points = domain.all_indices(64)
    assert points is not None
    laws = {tuple(p): moves_from(kernel, domain, np.array([p])) for p in points.tolist()}
    for start, law in laws.items():
        ends = np.array(list(law), dtype=np.int64)
        moves = kernel.bind(trial_target(domain))
        stated = np.exp(moves.log_mass(np.repeat([start], len(ends), axis=0), ends))
        assert stated == pytest.approx(list(law.values()), abs=1e-9)
        assert stated.sum() == pytest.approx(1.0, abs=1e-6)
        for other in laws:
            assert law.get(other, 0.0) == pytest.approx(laws[other].get(start, 0.0), abs=1e-9)


class _RefusedError(Exception):
    """The first try was refused."""


def test_a_try_in_an_l1_ball_is_uniform_where_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subsets, whose draw test_domains enumerates, are drawn by their law, once."""
    radius, dimension = 2, 2

    def first(coins: Coins) -> Hashable:
        tries = iter([None])

        def subset(coins: Any, n: int, k: int, size: int) -> Indices:
            if next(tries, False) is False:
                raise _RefusedError
            subsets = list(itertools.combinations(range(n), k))
            return np.array([subsets[coins.one_below(len(subsets))]], dtype=np.int64)

        monkeypatch.setattr(step_kernels, "draw_distinct_sorted", subset)
        try:
            return tuple(step_kernels._draw_l1(coins, radius, dimension, 1)[0].tolist())
        except _RefusedError:
            return None

    law, leftover = law_of(first)
    law.pop(None)
    steps = [x for x in itertools.product(range(-2, 3), repeat=2) if sum(map(abs, x)) <= radius]
    assert leftover == 0.0
    assert set(law) == set(steps)
    assert max(law.values()) == pytest.approx(min(law.values()))
    box = em.Box([0.0] * 2, [1.0] * 2, bits=2)
    stated = Ball(0.5, norm="l1").log_step(box, np.array([[0, 2], [1, 1], [2, 1]]))
    assert np.exp(stated) == pytest.approx([1 / len(steps), 1 / len(steps), 0.0])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("proposal", ["laplace", "uniform"])
def test_the_confidential_atom_releases_f_by_every_kernel(name: str, proposal: str) -> None:
    sampler = em.ConfAtomPerfect(0.4, proposal=proposal, kernel=KERNELS[name])
    chain, target = prepared(float_mechanism(ROWS, bits=2), sampler)
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("proposal", ["laplace", "uniform"])
def test_the_transition_of_algorithm_1_leaves_f_and_the_atom_as_they_are(
    name: str, proposal: str
) -> None:
    """What the factory simulates: one plain transition from every state, enumerated.

    The factory and its loops, which take any such transition, are enumerated in test_samplers.
    """
    sampler = em.ConfAtomPerfect(0.4, proposal=proposal, kernel=KERNELS[name], factory=True)
    chain, target = prepared(float_mechanism(ROWS, bits=2), sampler)
    kernel, points = chain.kernel, target.domain.all_indices(64)
    assert points is not None
    energies = target.energy(points)
    weights = np.exp(-energies / target.units_per_nat)
    atom = math.exp(kernel.weight / target.units_per_nat + kernel.envelope.log_mass())
    names: list[Hashable] = [*map(tuple, points.tolist()), "atom"]
    invariant = dict(zip(names, [*weights, atom], strict=True))
    after = dict.fromkeys(invariant, 0.0)
    for state, mass in invariant.items():
        at_atom = state == "atom"
        row = points[:1] if at_atom else np.array([state])

        def step(coins: Coins, row: Indices = row, at_atom: bool = at_atom) -> Hashable:
            indices, _, atom, _ = kernel.advance(
                row, target.energy(row), np.array([at_atom]), coins, tag=False
            )
            return "atom" if atom[0] else tuple(indices[0].tolist())

        for outcome, probability in law_of(step, cut=1e-11)[0].items():
            after[outcome] += mass * probability
    assert list(after.values()) == pytest.approx(list(invariant.values()), rel=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_random_points_are_one_mechanism_by_every_kernel(name: str) -> None:
    points = np.array([0.03, 0.77])
    sampler = em.RandomAtomPerfect(points, 0.4, kernel=KERNELS[name])
    chain, target = prepared(mean_mechanism(ROWS, bits=2), sampler)
    enumerated = ChainLaw(chain, _point_or_atom, leftover=LEFTOVER)
    indices = target.domain.all_indices(64)
    assert indices is not None
    weights = np.exp(-target.energy(indices) / target.units_per_nat)
    tau = 0.4 / 0.6 * len(indices) / len(points)
    atoms = tau * np.exp(-target.energy_of_points(points[:, None]) / target.units_per_nat)
    total = weights.sum() + atoms.sum()
    truth: dict[Hashable, float] = {
        tuple(p): w / total for p, w in zip(indices.tolist(), weights, strict=True)
    }
    truth |= {("point", j): w / total for j, w in enumerate(atoms)}
    assert total_variation(enumerated.law, truth) <= LEFTOVER


def _point_or_atom(state: Any) -> Hashable:
    chosen = int(state.chosen[0])
    return ("point", chosen) if chosen >= 0 else lattice_point(state)


@pytest.mark.parametrize("name", KERNELS)
def test_metropolis_keeps_f_and_comes_within_its_delta_by_every_kernel(name: str) -> None:
    kernel, declared = KERNELS[name], None
    if kernel.log_minorisation(em.Box([0.0], [1.0], bits=2)) is None:
        declared = 1e-3  # a ball does not cross the box: the caller has to know better
    for steps in (2, 12):
        sampler = em.Metropolis(kernel, steps=steps, beta=declared)
        chain, target = prepared(mean_mechanism(ROWS, bits=2), sampler)
        law = law_after(chain, steps, lattice_point)
        distance = total_variation(law, exact_law(target))
        assert distance * (1.0 + math.e) <= chain.delta
    chain, target = prepared(mean_mechanism(ROWS, bits=2), em.Metropolis(kernel, steps=1, beta=0.1))
    far = total_variation(law_after(chain, 400, lattice_point), exact_law(target))
    assert far <= 1e-6  # f is what the chain leaves as it is


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("name", ["laplace", "gaussian", "mixture", "wide", "wide l1"])
def test_the_minorisation_is_below_every_mass_and_near_the_least(name: str, bits: int) -> None:
    kernel = {**KERNELS, "wide": Ball(1.5), "wide l1": Ball(2.0, norm="l1")}[name]
    for domain in (em.Box([0.0], [2.0], bits=bits), em.Box([0.0] * 2, [1.0] * 2, bits=bits)):
        points, least = domain.all_indices(1 << 10), kernel.log_minorisation(domain)
        assert points is not None and least is not None
        ends = np.tile(points, (len(points), 1))
        moves = kernel.bind(trial_target(domain))
        masses = moves.log_mass(np.repeat(points, len(points), axis=0), ends)
        true = float(masses.min()) + math.log(len(points))
        assert least <= true
        if name != "mixture":  # whose parts are least at different moves
            assert least == pytest.approx(true, abs=1e-6)


def test_a_ball_that_does_not_cross_the_box_has_no_minorisation() -> None:
    box = em.Box([0.0], [1.0], bits=4)
    assert Ball(0.9).log_minorisation(box) is None
    assert Laplace().log_minorisation(em.L1Ball(2, 1.0)) is None
    mechanism = mean_mechanism(ROWS)
    with pytest.raises(UnsupportedError, match="with UniformMoves\\(\\), or declare"):
        mechanism.certificate(epsilon=1.0, sampler=em.Metropolis(Ball(0.2), delta=1e-6))
    mixed = Mixture([Ball(0.2), UniformMoves()], weights=[3, 1])
    certificate = mechanism.certificate(epsilon=1.0, sampler=em.Metropolis(mixed, delta=1e-6))
    assert certificate.delta <= 1e-6


def test_descriptions_are_rebuilt_whole() -> None:
    for kernel in (*KERNELS.values(), Exchange(2.5)):
        assert rebuild_kernel(kernel.describe()).describe() == kernel.describe()
    with pytest.raises(ParameterError, match="known kernel; got 'nobody'"):
        rebuild_kernel({"kernel": "nobody"})


# What the check refuses.


class Bare(SymmetricKernel):
    """A step of -1, 0 or 1 with the given chances, stated as given."""

    name = "bare"

    def __init__(self, chances: tuple[int, int, int], stated: tuple[float, ...] | None = None):
        self.chances = chances
        self.stated = stated or tuple(c / sum(chances) for c in chances)

    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        drawn = coins.categorical(np.cumsum(self.chances), len(indices))
        return indices + (drawn - 1)[:, None]

    def log_mass(
        self, domain: Domain, start: Indices, end: Indices
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        step = (end - start)[:, 0]
        mass = np.where(np.abs(step) <= 1, np.array(self.stated)[np.clip(step + 1, 0, 2)], 0.0)
        with np.errstate(divide="ignore"):
            return np.log(mass)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"chances": [*self.chances], "stated": [*self.stated]}


class Broken(Bare):
    """It moves in the wrong shape."""

    name = "broken"

    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        return super().propose(domain, coins, indices)[:, 0]


class Undefined(Bare):
    """Its mass is no number."""

    name = "undefined"

    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Any:
        return np.full(len(start), np.nan)


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [
        (Bare((1, 1, 2)), "be symmetric"),
        (Bare((1, 1, 2), (1 / 3, 1 / 3, 1 / 3)), "draw moves with the masses it states"),
        (Bare((1, 1, 1), (0.4, 0.4, 0.4)), "add up to at most 1"),
        (Bare((1, 1, 1), (0.3, 0.3, 0.3)), "draw moves with the masses it states"),
        (Bare((9, 2, 9), (0.4, 0.2, 0.4)), "draw moves with the masses it states"),
        (Broken((1, 1, 1)), "propose one int64 row per row"),
        (Undefined((1, 1, 1)), "return one log mass per row, no nan"),
    ],
)
def test_a_kernel_that_is_not_what_it_says_is_refused(kernel: Kernel, rule: str) -> None:
    for bits in (3, 32):
        with pytest.raises(ParameterError, match=rule):
            check_kernel(kernel, em.Box([0.0], [1.0], bits=bits))
    mechanism = mean_mechanism(ROWS, bits=8)
    samplers: tuple[Sampler, ...] = (
        em.ConfAtomPerfect(kernel=kernel),
        em.RandomAtomPerfect([0.5], kernel=kernel),
        em.Metropolis(kernel, steps=5, beta=0.1),
        em.Metropolis(Mixture([UniformMoves(), kernel]), steps=5),
    )
    for sampler in samplers:  # nothing is certified, so nothing is charged
        with pytest.raises(ParameterError):
            mechanism.certificate(epsilon=1.0, sampler=sampler)


def test_a_kernel_that_is_what_it_says_passes_and_is_an_assumption() -> None:
    kernel = Bare((1, 1, 1))
    check_kernel(kernel, em.Box([0.0], [1.0], bits=32))
    mechanism = mean_mechanism(ROWS, bits=8)
    outside = mechanism.certificate(epsilon=1.0, sampler=em.ConfAtomPerfect(kernel=kernel))
    assert any("as its author declares" in text for text in outside.assumptions)
    own = mechanism.certificate(epsilon=1.0, sampler=em.ConfAtomPerfect(kernel=Laplace(3.0)))
    assert not any("author" in text for text in own.assumptions)
    mixed = em.Metropolis(Mixture([kernel, UniformMoves()]), delta=1e-6)
    assert any("author" in text for text in mechanism.certificate(epsilon=1.0, sampler=mixed)
               .assumptions)  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_built_in_kernels_pass_their_check_on_every_kind_of_domain(name: str) -> None:
    for domain in (em.Box([0.0] * 3, [1.0] * 3), em.L1Ball(2, 1.0), em.L2Ball(2, 3.0)):
        check_kernel(KERNELS[name], domain)
    check_kernel(Exchange(3.0), em.Simplex(4))
    small = small_lattice(em.Box([0.0] * 3, [1.0] * 3))
    assert small is not None and small.is_listable(256)
    assert small_lattice(em.Box([0.0] * 12, [1.0] * 12)) is None


def test_kernels_refuse_what_they_cannot_move_on() -> None:
    candidates = em.Candidates(["a", "b"])
    for kernel in (Laplace(), Gaussian(0.1), Ball(0.1), Exchange()):
        with pytest.raises(UnsupportedError, match="needs a domain of numbers; got Candidates"):
            check_kernel(kernel, candidates)
    with pytest.raises(UnsupportedError, match="two coordinates"):
        check_kernel(Exchange(), em.Box([0.0], [1.0]))
    with pytest.raises(UnsupportedError, match="between a tenth of a lattice step"):
        check_kernel(Gaussian(1e-6), em.Box([0.0], [1.0], bits=4))


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: Laplace(0.0), ParameterError, "`rate` of Laplace"),
        (lambda: Gaussian(-1.0), ParameterError, "`scale` of Gaussian"),
        (lambda: Ball(1.0, norm="l3"), ParameterError, "`norm` of Ball must be one of"),
        (lambda: Mixture([]), ParameterTypeError, "`kernels` of Mixture"),
        (
            lambda: Mixture([UniformMoves()], weights=[1, 2]),
            ParameterError,
            "one per kernel, 1; got 2",
        ),
        (lambda: em.ConfAtomPerfect(kernel=3), ParameterTypeError, "`kernel` of"),  # type: ignore[arg-type]
        (
            lambda: em.ConfAtomPerfect(kernel=UniformMoves(), rate=1.0),
            ParameterError,
            "give it or `kernel`, not both",
        ),
        (lambda: em.ConfAtomPerfect(reentry=em.Affine()), ParameterTypeError, "a law of points"),
        (
            lambda: em.Metropolis(UniformMoves(), steps=3, rate=2.0),
            ParameterError,
            "in the place|takes the place",
        ),
        (lambda: em.ConfAtomPerfect(location="public"), ParameterError, "`center`"),
        (
            lambda: em.ConfAtomPerfect(location="minimiser", proposal="uniform"),
            ParameterError,
            "`location` of ConfAtomPerfect is that of a Laplace re-entry law",
        ),
    ],
)
def test_bad_parameters_are_named(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


# Where the atom lies, and by which law it is left.


class Basin:
    """A flat bottom of several minimisers, moved by the data."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(0.0, np.maximum(self.low - y[:, 0], y[:, 0] - self.high))


def basin(shift: float = 0.0) -> em.ExponentialMechanism:
    middle = 0.5 + shift
    return em.ExponentialMechanism(
        loss=Basin(middle - 0.2, middle + 0.2),
        sensitivity=0.25,
        domain=em.Box([0.0], [1.0], bits=2),
        lipschitz=[1.0],
        growth=em.Growth(center=np.array([middle]), rates=np.array([1.0]), slack=0.2),
    )


def test_an_atom_at_a_random_minimiser_releases_f() -> None:
    sampler = em.ConfAtomPerfect(0.5, location="minimiser")
    chain, target = prepared(basin(), sampler)
    assert chain.count == 2
    places = law_of(lambda coins: int(chain.start(coins, 1).minimiser[0]))[0]
    assert places == pytest.approx({0: 0.5, 1: 0.5})
    centers = {tuple(chain.kernel_at(place).envelope.center.tolist()) for place in range(2)}
    assert centers == {(1,), (2,)}
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER


def test_copies_with_atoms_of_their_own_stay_apart() -> None:
    draws = basin().sample(
        epsilon=1.0, size=500, sampler=em.ConfAtomPerfect(location="minimiser"), seed=3
    )
    assert draws.values.shape == (500, 1)
    assert 0.4 < float(draws.values.mean()) < 0.6


def test_a_public_atom_stands_in_the_certificate_and_a_confidential_one_does_not() -> None:
    mechanism = mean_mechanism(ROWS, bits=2)
    public = em.ConfAtomPerfect(center=[0.25], location="public")
    chain, target = prepared(mechanism, public)
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER
    described = mechanism.certificate(epsilon=1.0, sampler=public).sampler
    assert (described["location"], described["center"]) == ("public", [0.25])
    hidden = mechanism.certificate(epsilon=1.0, sampler=em.ConfAtomPerfect(center=[0.25])).sampler
    assert hidden["location"] == "answer" and "center" not in hidden
    with pytest.raises(UnsupportedError, match="lists every minimiser"):
        mean_mechanism(ROWS, bits=20).certificate(
            epsilon=1.0, sampler=em.ConfAtomPerfect(location="minimiser")
        )


class Ramp(Envelope):
    """R(y) = slope * i on the points i of a small box: a re-entry law of one's own."""

    name = "ramp"
    is_law = True

    def bind(self, target: Any) -> BoundRamp:
        points = target.domain.all_indices(64)
        slope = target.units_per_nat // 8
        energies = slope * points[:, 0]
        offset = int((energies - target.energy(points)).max())
        return BoundRamp(ExponentialTable(energies, target.units_per_nat), energies, offset)


@dataclass(frozen=True)
class BoundRamp:
    table: ExponentialTable
    energies: NDArray[np.int64]
    offset: int
    rates: None = None

    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.int64]]:
        drawn = self.table.draw(coins, size)
        return drawn[:, None], self.energies[drawn]

    def energy(self, indices: Indices) -> NDArray[np.int64]:
        return np.asarray(self.energies[indices[:, 0]])

    def mass(self, precision: int) -> Any:
        raise NotImplementedError

    def log_mass(self) -> float:
        return self.table.log_sum()


@pytest.mark.parametrize("name", ["uniform", "laplace", "cube"])
def test_a_re_entry_law_of_ones_own_releases_f(name: str) -> None:
    sampler = em.ConfAtomPerfect(0.5, reentry=Ramp(), kernel=KERNELS[name])
    chain, target = prepared(mean_mechanism(ROWS, bits=2), sampler)
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER
    certificate = mean_mechanism(ROWS, bits=2).certificate(epsilon=1.0, sampler=sampler)
    assert certificate.sampler["reentry"] == "ramp"
    assert any("re-entry law draws exactly" in text for text in certificate.assumptions)


def verified(certificate: em.Certificate) -> dict[str, bool]:
    return {check.claim: check.holds for check in verify_certificate(certificate)}


def test_certificates_name_the_kernel_and_it_is_made_again() -> None:
    mechanism = mean_mechanism(ROWS, bits=8)
    kernel = Mixture([Gaussian(0.1), UniformMoves()], weights=[3, 1])
    samplers: tuple[Sampler, ...] = (
        em.ConfAtomPerfect(kernel=kernel),
        em.RandomAtomPerfect([0.2], kernel=kernel),
        em.Metropolis(kernel, delta=1e-6),
        em.Metropolis(kernel, pure=True),
        em.Metropolis(Ball(0.1), steps=9, beta=0.25),
        em.ConfAtomPerfect(rate=3.0, reentry=em.Uniform()),
        em.ConfAtomPerfect(location="minimiser"),
        em.ConfAtomPerfect(location="public", center=[0.2]),
    )
    for sampler in samplers:
        certificate = mechanism.release(epsilon=1.0, sampler=sampler).certificate
        assert all(verified(certificate).values()), sampler.label
        again = em.Certificate.from_json(certificate.to_json())
        assert all(verified(again).values())
        if "kernel" not in certificate.sampler:
            continue
        for wrong in ({"kernel": "nobody"}, {"kernel": "laplace", "rate": -1.0}, {}):
            altered = dataclasses.replace(
                certificate, sampler=certificate.sampler | {"kernel": wrong}
            )
            assert not verified(altered)["kernel"]
    unknown = mechanism.certificate(epsilon=1.0, sampler=em.ConfAtomPerfect(reentry=Ramp()))
    assert not verified(unknown)["reentry"]


def test_moves_by_one_s_own_kernel_are_private_for_all_neighbours() -> None:
    values, epsilon = (0.0, 0.5, 1.0), 1.0
    for sampler in (
        em.ConfAtomPerfect(0.4, kernel=KERNELS["mixture"]),
        em.ConfAtomPerfect(0.4, location="minimiser"),
    ):
        laws: dict[tuple[float, ...], dict[Hashable, float]] = {}
        for rows in itertools.combinations_with_replacement(values, 2):
            chain, _ = prepared(mean_mechanism(list(rows), bits=2), sampler, epsilon=epsilon)
            laws[rows] = ChainLaw(chain, lattice_point, leftover=1e-7).law
        losses = [largest_log_ratio(laws[a], laws[b]) for a, b in neighbours(values, 2)]
        assert epsilon / 4 < max(losses) <= epsilon


# A caller's own convergence.


def test_a_declared_minorisation_is_an_assumption_and_gives_the_delta() -> None:
    mechanism = mean_mechanism(ROWS)
    sampler = em.Metropolis(Ball(0.2), steps=40, beta=0.25)
    certificate = mechanism.certificate(epsilon=1.0, sampler=sampler)
    assert certificate.delta == pytest.approx((1 + math.e) * 0.75**40, rel=1e-6)
    assert certificate.delta >= (1 + math.e) * 0.75**40
    assert any("as the caller declares" in text for text in certificate.assumptions)
    assert not any("Lipschitz constants" in text for text in certificate.assumptions)
    altered = dataclasses.replace(certificate, delta=certificate.delta / 2)
    assert not verified(altered)["delta"]
    fewest = mechanism.certificate(
        epsilon=1.0, sampler=em.Metropolis(Ball(0.2), delta=1e-6, beta=0.25)
    )
    assert fewest.delta <= 1e-6 < fewest.delta / 0.75


def test_a_problem_without_lipschitz_or_bound_takes_a_declared_minorisation() -> None:
    mechanism = em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - 0.3), sensitivity=0.1, domain=em.Box([0.0], [1.0], bits=4)
    )
    with pytest.raises(UnsupportedError, match="or `beta`"):
        mechanism.certificate(epsilon=1.0, sampler=em.Metropolis(delta=1e-6))
    certificate = mechanism.certificate(epsilon=1.0, sampler=em.Metropolis(delta=1e-6, beta=0.05))
    assert all(verified(certificate).values())
    with pytest.raises(UnsupportedError, match="public bound on the range"):
        mechanism.certificate(epsilon=1.0, sampler=em.Metropolis(pure=True, beta=0.05))


def test_geometric_ergodicity_gives_log_n_steps() -> None:
    mechanism, steps = mean_mechanism(ROWS), []
    chain = em.Ergodicity(constant=2.0, potential=1.5, ratio=0.5)
    for n in (10**2, 10**4, 10**6):
        sampler = em.Metropolis(Laplace(3.0), delta=1 / n, ergodicity=chain)
        certificate = mechanism.certificate(epsilon=1.0, sampler=sampler)
        assert certificate.delta <= 1 / n
        assert all(verified(certificate).values())
        assert not verified(dataclasses.replace(certificate, delta=0.5 / n))["delta"]
        steps.append(certificate.sampler["steps"])
    growth = [one - other for other, one in itertools.pairwise(steps)]
    assert max(abs(more - math.log(100) / math.log(2)) for more in growth) <= 1.0
    with pytest.raises(ParameterError, match="`pure` of Metropolis needs a minorisation"):
        em.Metropolis(pure=True, ergodicity=chain)
    with pytest.raises(ParameterError, match="at most one of `beta` and `ergodicity`"):
        em.Metropolis(steps=3, beta=0.5, ergodicity=chain)
    with pytest.raises(ParameterError, match="`ratio` of Ergodicity"):
        em.Ergodicity(constant=1.0, potential=1.0, ratio=2.0)


def test_exchanges_on_a_simplex_serve_every_sampler() -> None:
    mechanism = em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - 0.3) + y[:, 1] / 2,
        sensitivity=0.25,
        domain=em.Simplex(3, bits=1),
        lipschitz=[1.0, 0.5, 0.5],
    )
    kernel = Exchange(4.0)
    chain, target = prepared(mechanism, em.ConfAtomPerfect(0.4, proposal="uniform", kernel=kernel))
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER
    chain, target = prepared(mechanism, em.Metropolis(kernel, steps=1, beta=0.1))
    far = total_variation(law_after(chain, 300, lattice_point), exact_law(target))
    assert far <= 1e-6
    points = np.array([[0.5, 0.25, 0.25]])
    chain, target = prepared(mechanism, em.RandomAtomPerfect(points, 0.4, kernel=kernel))
    law = ChainLaw(chain, _point_or_atom, leftover=LEFTOVER).law
    lattice = {point: mass for point, mass in law.items() if point != ("point", 0)}
    inside = {point: mass / sum(lattice.values()) for point, mass in lattice.items()}
    assert total_variation(inside, exact_law(target)) <= 2 * LEFTOVER
