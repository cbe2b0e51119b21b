"""Kernels that are not symmetric: their exact law and ratio, and the chains that take them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import exact_law, float_mechanism, mean_mechanism, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point, law_after
from expmech.auditing.enumeration import EnumeratingCoins, law_of, total_variation
from expmech.core.coins import Coins
from expmech.core.coins.laws import draw_discrete_gaussian
from expmech.core.errors import LossError, ParameterError, ParameterTypeError, UnsupportedError
from expmech.domains import Indices
from expmech.exponential.kernels import (
    MALA,
    Gaussian,
    Independence,
    Kernel,
    Laplace,
    Mixture,
    Moves,
    UniformMoves,
    check_kernel,
)
from expmech.exponential.kernels import steps as step_kernels
from expmech.exponential.kernels.base import Ratio
from expmech.exponential.kernels.check import transition_matrix, trial_target
from expmech.exponential.kernels.mixture import rebuild_kernel
from expmech.exponential.samplers.chain import _accept, metropolis_move
from expmech.exponential.target import Target
from expmech.ledger.verification import verify_certificate

ROWS = [0.1, 0.3, 0.35, 0.9]
LEFTOVER = 1e-6


@pytest.fixture(autouse=True)
def _gaussians_in_one_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerate a discrete Gaussian draw by its law; test_convex enumerates the draw itself."""

    def draw(coins: Coins, slope: int, size: int, unit: int) -> NDArray[np.int64]:
        if not isinstance(coins, EnumeratingCoins):
            return draw_discrete_gaussian(coins, slope, size, unit)
        most = math.ceil(math.sqrt(30.0 * unit / slope))  # beyond, a mass below 1e-13
        values = range(-most, most + 1)
        weights = [math.exp(-slope * u * u / unit) for u in values]
        shares = [weight / math.fsum(weights) for weight in weights]
        return np.array([values[coins._branch(shares)] for _ in range(size)], dtype=np.int64)

    monkeypatch.setattr(step_kernels, "draw_discrete_gaussian", draw)


def plane(bits: int = 2) -> em.ExponentialMechanism:
    """A convex loss with a gradient in two dimensions."""
    return em.ExponentialMechanism(
        loss=lambda y: (y[:, 0] - 0.2) ** 2 + 0.5 * (y[:, 1] - 0.6) ** 2,
        gradient=lambda y: np.stack([2 * (y[:, 0] - 0.2), y[:, 1] - 0.6], axis=1),
        convex=True,
        sensitivity=0.2,
        bound=1.0,
        domain=em.Box([0.0] * 2, [1.0] * 2, bits=bits),
    )


KERNELS: dict[str, Kernel] = {
    "mala": MALA(0.3),
    "mala, clipped": MALA(0.8, clip=0.3),
    "mala, laplace": MALA(0.25, law="laplace"),
    "independence": Independence(em.ProductLaplace()),
    "independence, uniform": Independence(em.Uniform()),
    "mixture": Mixture(
        [MALA(0.2, law="laplace"), Independence(em.ProductLaplace()), UniformMoves()],
        weights=[2, 1, 1],
    ),
}
STEEP = 8.0  # epsilon: gradients that move the centres


def every_step(kernel: Kernel, target: Target) -> tuple[NDArray[np.float64], Indices]:
    """Return the matrix of the shipped step, by enumeration from every point."""
    points = target.domain.all_indices(256)
    assert points is not None
    numbers = {tuple(point): j for j, point in enumerate(points.tolist())}
    found, moves = np.zeros((len(points), len(points))), kernel.bind(target)
    for j, point in enumerate(points):
        for even in (False, True):

            def step(coins: Coins, at: Indices = point[None, :], even: bool = even) -> Hashable:
                after, energies = metropolis_move(
                    target, at, target.energy(at), coins, moves, even=even
                )
                assert energies.tolist() == target.energy(after).tolist()
                return tuple(after[0].tolist())

            law, leftover = law_of(step, cut=1e-13)
            assert leftover < 1e-6
            row = np.zeros(len(points))
            for reached, probability in law.items():
                row[numbers[reached]] += probability  # type: ignore[index]
            if even:
                assert row == pytest.approx(found[j], abs=1e-9)  # both ways make the same step
            found[j] = row
    return found, points


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("problem", ["floats", "plane"])
def test_the_shipped_step_is_in_detailed_balance(name: str, problem: str) -> None:
    mechanism, kernel = float_mechanism(ROWS, bits=3), KERNELS[name]
    if problem == "plane":  # no growth is declared there
        mechanism = plane(1)
        kernel = {
            "independence": Mixture([MALA(0.2), MALA(0.3, law="laplace")], weights=[1, 3]),
            "mixture": Mixture([MALA(0.3), UniformMoves()]),
        }.get(name, kernel)
    target = mechanism.target(epsilon=STEEP)
    moves, points = every_step(kernel, target)
    law = np.exp(-target.energy(points) / target.units_per_nat)
    flow = law[:, None] * moves
    assert flow == pytest.approx(flow.T, abs=1e-9)
    # and the step is the one that the masses and the ratio say
    stated = transition_matrix(kernel.bind(target), target, points)
    off = ~np.eye(len(points), dtype=bool)
    assert moves[off] == pytest.approx(stated[off], abs=1e-8)
    uphill = moves[off & (law[:, None] > law[None, :])]
    assert uphill.sum() > 0.01


@pytest.mark.parametrize("name", KERNELS)
def test_masses_add_up_and_the_ratio_is_theirs(name: str) -> None:
    kernel = KERNELS[name]
    target = float_mechanism(ROWS, bits=3).target(epsilon=STEEP)
    moves, points = kernel.bind(target), target.domain.all_indices(64)
    assert points is not None
    count = len(points)
    starts, ends = np.repeat(points, count, axis=0), np.tile(points, (count, 1))
    stated = moves.log_mass(starts, ends).reshape(count, count)
    for j, start in enumerate(points):

        def propose(coins: Coins, at: Indices = start[None, :]) -> Hashable:
            return int(moves.propose(coins, at)[0, 0])

        law, _ = law_of(propose, cut=1e-13)
        found = [law.get(int(point), 0.0) for point in points[:, 0]]
        assert np.exp(stated[j]) == pytest.approx(found, abs=1e-9)
    if name != "mixture":  # whose parts have ratios of their own
        counts, rate = moves.log_ratio(starts, ends)  # type: ignore[misc]
        exact = np.array([float(rate * int(one)) for one in counts]).reshape(count, count)
        assert exact == pytest.approx(stated.T - stated, abs=1e-9)
        assert name == "independence, uniform" or np.abs(exact).max() > 0.05


@pytest.mark.parametrize("name", KERNELS)
def test_the_atom_and_metropolis_take_them(name: str) -> None:
    kernel = KERNELS[name]
    for sampler in (
        em.ConfAtomPerfect(0.4, kernel=kernel),
        em.RandomAtomPerfect([0.03, 0.77], 0.4, kernel=kernel),
    ):
        chain, target = prepared(float_mechanism(ROWS, bits=2), sampler, epsilon=4.0)
        if isinstance(sampler, em.ConfAtomPerfect):
            enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
            assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER
        else:
            enumerated = ChainLaw(chain, _point_or_atom, leftover=LEFTOVER)
            lattice = {key: mass for key, mass in enumerated.law.items() if key not in ("p0", "p1")}
            inside = {key: mass / sum(lattice.values()) for key, mass in lattice.items()}
            assert total_variation(inside, exact_law(target)) <= 3 * LEFTOVER
    chain, target = prepared(
        float_mechanism(ROWS, bits=2), em.Metropolis(kernel, steps=1, beta=0.1), epsilon=4.0
    )
    far = law_after(chain, 600, lattice_point)
    assert total_variation(far, exact_law(target)) <= 1e-6


def _point_or_atom(state: Any) -> Hashable:
    chosen = int(state.chosen[0])
    return f"p{chosen}" if chosen >= 0 else lattice_point(state)


def invariant(moves: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = moves.copy()
    np.fill_diagonal(whole, 0.0)
    np.fill_diagonal(whole, 1.0 - whole.sum(axis=1))
    return np.asarray(np.linalg.matrix_power(whole, 1 << 16)[0])


def test_the_obvious_versions_are_wrong() -> None:
    """Acceptance without the ratio, and redrawing until the move is inside, keep another law."""
    target = mean_mechanism([0.05, 0.1], bits=4).target(epsilon=20.0)
    points = target.domain.all_indices(64)
    assert points is not None
    count, moves = len(points), MALA(0.15).bind(target)
    law = np.exp(-target.energy(points) / target.units_per_nat)
    law /= law.sum()
    right = invariant(transition_matrix(moves, target, points))
    assert np.abs(np.log(right / law)).max() < 1e-6
    starts, ends = np.repeat(points, count, axis=0), np.tile(points, (count, 1))
    masses = np.exp(moves.log_mass(starts, ends).reshape(count, count))
    gain = np.log(law)[None, :] - np.log(law)[:, None]
    symmetric = invariant(masses * np.exp(np.minimum(0.0, gain)))
    assert np.abs(np.log(symmetric / law)).max() > 0.8
    # the masses of what is redrawn, with the ratio of the untruncated law
    ratio = np.log(masses.T) - np.log(masses)
    inside = masses / masses.sum(axis=1)[:, None]
    redrawn = invariant(inside * np.exp(np.minimum(0.0, gain + ratio)))
    assert np.abs(np.log(redrawn / law)).max() > 0.4


@pytest.mark.parametrize("bits", [3, 20, 32, 44])
def test_squares_beyond_int64_are_accepted_exactly(bits: int) -> None:
    """The product of the coins that are flipped is the one coin that is meant."""
    mechanism = mean_mechanism([0.2, 0.9], bits=bits)
    target = mechanism.target(epsilon=2.0)
    side = 1 << bits
    starts = np.array([[side // 5], [side // 2], [0], [side - 1]])
    ends = np.array([[side // 4], [side // 2 + 1], [side - 1], [3]])
    for kernel in (MALA(0.2), MALA(0.3, law="laplace")):
        moves = kernel.bind(target)
        ratio = moves.log_ratio(starts, ends)
        assert ratio is not None
        rise = target.energy(ends) - target.energy(starts)
        for j in range(len(starts)):
            one = (ratio[0][j : j + 1], ratio[1])
            up = rise[j : j + 1]

            def accept(coins: Coins, one: Ratio = one, up: Indices = up) -> Hashable:
                return bool(_accept(target, coins, one, up)[0])

            law, _ = law_of(accept)
            log_ratio = Fraction(int(ratio[0][j])) * ratio[1]
            cost = Fraction(int(rise[j]), target.units_per_nat) - log_ratio
            meant = math.exp(-max(0.0, float(cost)))
            assert law.get(True, 0.0) == pytest.approx(meant, rel=1e-9, abs=1e-14)
            stated = moves.log_mass(ends[j : j + 1], starts[j : j + 1]) - moves.log_mass(
                starts[j : j + 1], ends[j : j + 1]
            )
            assert float(log_ratio) == pytest.approx(float(stated[0]), rel=1e-6, abs=1e-6)


def test_the_gradient_is_the_losss_own_or_differences() -> None:
    known, target = plane(6).target(epsilon=2.0), float_mechanism(ROWS, bits=6).target(epsilon=2.0)
    at = np.array([[3, 60], [40, 10]])
    points = known.domain.points(at)
    true = np.stack([2 * (points[:, 0] - 0.2), points[:, 1] - 0.6], axis=1) * known.eta / 64
    assert known.gradient(at) == pytest.approx(true)
    mean = np.mean(ROWS) * 64 - 0.5
    ends = np.array([[0], [10], [50], [63]])
    slope = np.sign(ends - mean) * target.eta / 64
    assert target.gradient(ends) == pytest.approx(slope, rel=1e-6)
    with pytest.raises(UnsupportedError, match="has no gradient"):
        em.ExponentialMechanism(
            loss=lambda y: y[:, 0], sensitivity=1, domain=em.Simplex(3), bound=1.0
        ).target(epsilon=1.0).gradient(np.array([[1, 2, 3]]))


def test_a_gradient_that_is_no_function_of_the_point_is_refused() -> None:
    calls = [0]

    def restless(y: NDArray[np.float64]) -> NDArray[np.float64]:
        calls[0] += 1
        return y * calls[0]

    mechanism = em.ExponentialMechanism(
        loss=lambda y: y[:, 0] ** 2,
        gradient=restless,
        convex=True,
        sensitivity=0.5,
        bound=1.0,
        domain=em.Box([0.0], [1.0], bits=4),
    )
    with pytest.raises(LossError, match="same float for the same point"):
        mechanism.sample(epsilon=1.0, sampler=em.Metropolis(MALA(0.1), steps=3, beta=0.1), seed=1)


def test_certificates_name_them_and_they_are_made_again() -> None:
    mechanism = float_mechanism(ROWS, bits=8)
    for name, kernel in KERNELS.items():
        assert rebuild_kernel(kernel.describe()).describe() == kernel.describe()
        check_kernel(kernel, em.Box([0.0] * 2, [1.0] * 2))
        sampler = em.Metropolis(Mixture([kernel, UniformMoves()]), delta=1e-6)
        certificate = mechanism.release(epsilon=1.0, sampler=sampler).certificate
        assert all(check.holds for check in verify_certificate(certificate)), name
        assert not any("author" in text for text in certificate.assumptions)
        assert "center" not in certificate.to_json()
    wide = em.Metropolis(MALA(1.0, clip=0.01), delta=1e-6)
    assert mechanism.certificate(epsilon=0.1, sampler=wide).delta <= 1e-6
    with pytest.raises(ParameterError, match="name of a known one"):
        rebuild_kernel({"kernel": "independence", "envelope": "nobody's"})


@pytest.mark.parametrize("kernel", [MALA(0.9, clip=0.5), MALA(1.2, law="laplace", clip=0.25)])
def test_what_is_proved_of_mala_is_below_every_mass(kernel: Kernel) -> None:
    for domain in (em.Box([0.0], [2.0], bits=3), em.Box([0.0] * 2, [1.0] * 2, bits=2)):
        target, points = trial_target(domain), domain.all_indices(64)
        least = kernel.log_minorisation(domain)
        assert points is not None and least is not None
        ends = np.tile(points, (len(points), 1))
        masses = kernel.bind(target).log_mass(np.repeat(points, len(points), axis=0), ends)
        assert least <= float(masses.min()) + math.log(len(points))
        # never more than uniform proposals have
        assert least < 0.0
    assert kernel.log_minorisation(em.L1Ball(2, 1.0)) is None


class Forgetful(Kernel):
    """MALA that states another ratio than its masses have."""

    name = "forgetful"

    def __init__(self, wrong: str) -> None:
        self.wrong = wrong

    def bind(self, target: Target) -> Moves:
        return ForgetfulMoves(MALA(0.3, law="laplace").bind(target), target, self.wrong)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"wrong": self.wrong}


@dataclass(frozen=True)
class ForgetfulMoves(Moves):
    inner: Moves
    target: Target
    wrong: str

    def propose(self, coins: Coins, indices: Indices) -> Indices:
        drawn = self.inner.propose(coins, indices)
        while self.wrong == "redrawn" and not self.target.contains(drawn).all():
            out = ~self.target.contains(drawn)
            drawn[out] = self.inner.propose(coins, indices[out])
        return drawn

    def log_mass(self, start: Indices, end: Indices) -> NDArray[np.float64]:
        return self.inner.log_mass(start, end)

    def log_ratio(self, start: Indices, end: Indices) -> Ratio | None:
        ratio = self.inner.log_ratio(start, end)
        assert ratio is not None
        if self.wrong == "forgotten":
            return None
        if self.wrong == "floats":
            return ratio[0].astype(np.float64), ratio[1]
        if self.wrong == "thirds":
            return ratio[0], Fraction(1, 3)
        return (-ratio[0], ratio[1]) if self.wrong == "reversed" else ratio


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("forgotten", "state the log ratio of its masses"),
        ("reversed", "state the log ratio of its masses"),
        ("redrawn", "draw moves with the masses it states"),
        ("floats", "one whole number per row and a rate over a power of two"),
        ("thirds", "one whole number per row and a rate over a power of two"),
    ],
)
def test_a_kernel_that_states_another_ratio_is_refused(wrong: str, rule: str) -> None:
    mechanism = float_mechanism(ROWS, bits=8)
    for kernel in (Forgetful(wrong), Mixture([UniformMoves(), Forgetful(wrong)])):
        with pytest.raises(ParameterError, match=rule):
            check_kernel(kernel, em.Box([0.0], [1.0], bits=32))
        with pytest.raises(ParameterError, match=rule):
            mechanism.certificate(epsilon=1.0, sampler=em.ConfAtomPerfect(kernel=kernel))
    check_kernel(Forgetful("nothing"), em.Box([0.0], [1.0], bits=32))
    outside = em.ConfAtomPerfect(kernel=Forgetful("nothing"))
    assumptions = mechanism.certificate(epsilon=1.0, sampler=outside).assumptions
    assert any("is the one it states, as its author declares" in text for text in assumptions)


class OneWay(Forgetful):
    """Moves that cannot be taken back."""

    name = "one way"

    def bind(self, target: Target) -> Moves:
        return OneWayMoves()


class OneWayMoves(Moves):
    def propose(self, coins: Coins, indices: Indices) -> Indices:
        return indices + 1

    def log_mass(self, start: Indices, end: Indices) -> NDArray[np.float64]:
        return np.where((end == start + 1).all(axis=1), 0.0, -np.inf)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: MALA(0.0), ParameterError, "`scale` of MALA"),
        (lambda: MALA(0.1, law="cauchy"), ParameterError, "`law` of MALA"),
        (lambda: MALA(0.1, clip=9.0), ParameterError, "`clip` of MALA must be at most 4"),
        (lambda: Independence(em.Affine()), ParameterTypeError, "that is a law of points"),
        (
            lambda: Independence("uniform"),  # type: ignore[arg-type]
            ParameterTypeError,
            "that is a law of points",
        ),
        (
            lambda: check_kernel(MALA(0.1), em.Simplex(3)),
            UnsupportedError,
            "mala kernel needs a Box",
        ),
        (
            lambda: check_kernel(OneWay("x"), em.Box([0.0], [1.0])),
            ParameterError,
            "able to take back every move",
        ),
    ],
)
def test_bad_parameters_are_named(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_a_step_by_a_gradient_evaluates_as_often_wherever_it_leads() -> None:
    """The number of points at which the loss is asked does not follow the data or the moves."""
    asked: dict[float, list[int]] = {}
    for mean in (0.02, 0.5, 0.97):
        counts: list[int] = []

        def loss(y: NDArray[np.float64], mean: float = mean, counts: Any = counts) -> Any:
            counts.append(len(y))
            return np.abs(y[:, 0] - mean)

        mechanism = em.ExponentialMechanism(
            loss=loss, sensitivity=0.1, domain=em.Box([0.0], [1.0], bits=6), lipschitz=[1.0]
        )
        sampler = em.Metropolis(Mixture([MALA(0.4), Gaussian(0.5)]), steps=30, beta=0.1)
        mechanism.sample(epsilon=1.0, size=50, sampler=sampler, seed=7)
        asked[mean] = counts
    assert asked[0.02] == asked[0.5] == asked[0.97]


def test_laplace_and_gaussian_steps_are_met_at_full_size() -> None:
    mechanism = em.ExponentialMechanism(
        loss=em.losses.L1Mean(np.full((40, 2), 0.3)), domain=em.Box([0.0] * 2, [1.0] * 2)
    )
    for kernel in (MALA(0.05), MALA(0.05, law="laplace"), Laplace(20.0)):
        sampler = em.Metropolis(kernel, steps=150, beta=0.05)
        values = mechanism.sample(epsilon=1.0, size=400, sampler=sampler, seed=4).values
        truth = mechanism.sample(epsilon=1.0, size=4000, seed=5).values
        assert np.abs(values.mean(axis=0) - truth.mean(axis=0)).max() < 0.03
