"""The law of a released axis against quadrature and closed forms, and mutants that must fail."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats
from support.sphere import bingham, cell_counts, cell_masses, p_value

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.reals import RevealedNormals
from expmech.mechanisms.directions import bingham as bingham_module
from expmech.mechanisms.directions.bingham import Proposal, draw_axes, fit_proposal
from expmech.mechanisms.directions.components import BASIS_BITS, complement
from expmech.mechanisms.directions.principal_direction import PrincipalDirection
from expmech.mechanisms.directions.rows import make_moments, row_products
from expmech.mechanisms.directions.whole import WholeMatrix

ALPHA = 1e-6 / 64  # family-wise over the tests of this file
SLOW = 2.0  # a guard that sends every decision to balls and further digits
CELLS = {2: 24, 3: 6}


def rows_in(d: int, n: int, seed: int) -> NDArray[np.float64]:
    """Return rows with one long axis, in no special position."""
    generator = np.random.default_rng(seed)
    turn = np.linalg.qr(generator.normal(size=(d, d)))[0]
    rows = generator.normal(size=(n, d)) * np.linspace(1.0, 0.2, d) @ turn
    return np.asarray(rows / np.linalg.norm(rows, axis=1).max())


def exact_matrix(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return row_products(rows).astype(np.float64) * 2.0**-40


def make_proposal(rows: NDArray[np.float64], eta: Fraction) -> Proposal:
    return fit_proposal(make_moments(row_products(rows)), eta)


def law_p_value(
    d: int, size: int, *, seed: int, eta: Fraction = Fraction(3, 8), guard: float = 2.0**-46
) -> float:
    """Draw from the code as shipped and compare with quadrature."""
    rows = rows_in(d, 60, 5)
    axes, _ = draw_axes(make_proposal(rows, eta), Coins(seeded_bits(seed), guard=guard), size)
    masses = cell_masses(bingham(0.375 * exact_matrix(rows)), d, CELLS[d])
    return p_value(cell_counts(axes, CELLS[d]), masses)


@pytest.mark.parametrize("d", [2, 3])
def test_law_of_an_axis_is_bingham(d: int) -> None:
    assert law_p_value(d, 60_000, seed=11) > ALPHA


@pytest.mark.parametrize("d", [2, 3])
def test_slow_paths_draw_the_same_law(d: int) -> None:
    assert law_p_value(d, 1_500, seed=12, guard=SLOW) > ALPHA


def test_wrong_eta_is_rejected() -> None:
    assert law_p_value(3, 60_000, seed=13, eta=Fraction(15, 32)) < ALPHA


Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


def mutant_bounds(kind: str, proposal: Proposal, values: NDArray[np.float64]) -> Bounds:
    """Return the probability to accept with a mistake in it."""
    d = values.shape[1]
    image = values @ proposal.transform.T
    q = (values**2).sum(axis=1) / (image**2).sum(axis=1)
    x = 2.0 * proposal.floor * q / d
    log_chance = -0.5 * d * (x - 1.0 - np.log(x))
    if kind == "divides where it should multiply":
        log_chance = log_chance - d * np.log(q) + d * np.log(q.min())
    if kind == "no power of q":
        log_chance = log_chance - 0.5 * d * np.log(q)
        log_chance -= log_chance.max()
    if kind == "M too small":
        log_chance = log_chance + 1.5
    chance = np.minimum(np.exp(log_chance), 1.0)
    return chance, chance


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(
    "kind", ["divides where it should multiply", "no power of q", "M too small"]
)
def test_a_wrong_coin_is_rejected(kind: str, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def mutant(proposal: Proposal, values: NDArray[np.float64]) -> Bounds:
        return mutant_bounds(kind, proposal, values)

    monkeypatch.setattr(bingham_module, "chance_bounds", mutant)
    assert law_p_value(d, 60_000, seed=14) < ALPHA


def test_the_harness_of_mutants_itself_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def honest(proposal: Proposal, values: NDArray[np.float64]) -> Bounds:
        return mutant_bounds("none", proposal, values)

    monkeypatch.setattr(bingham_module, "chance_bounds", honest)
    assert law_p_value(3, 60_000, seed=15) > ALPHA


def test_floats_on_a_coarse_grid_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    class CoarseNormals(RevealedNormals):
        """Normals rounded to quarters instead of digits revealed as needed."""

        def __init__(self, coins: Coins, shape: tuple[int, ...]) -> None:
            super().__init__(coins, shape)
            self.values = np.sign(self.values) * (np.floor(np.abs(self.values) * 4.0) + 0.5) / 4.0

    monkeypatch.setattr(bingham_module, "RevealedNormals", CoarseNormals)
    assert law_p_value(2, 60_000, seed=16) < ALPHA


def projection_cdf(d: int, m: int, strength: float) -> Any:
    """Return the law of |Pv|^2 under exp(strength |Pv|^2), P a projection of rank m."""

    def density(t: NDArray[np.float64]) -> NDArray[np.float64]:  # t = sin^2(angle)
        sine, cosine = np.sin(t), np.cos(t)
        log = (m - 1) * np.log(sine) + (d - m - 1) * np.log(cosine) + strength * (sine**2 - 1.0)
        return np.asarray(np.exp(log - 1.0))

    angles = np.linspace(1e-9, np.pi / 2 - 1e-9, 200_001)
    masses = integrate.cumulative_simpson(density(angles), x=angles, initial=0.0)
    return lambda t: np.interp(np.arcsin(np.sqrt(t)), angles, masses / masses[-1])


@pytest.mark.parametrize(("d", "m", "strength"), [(5, 1, 8), (10, 3, 20), (64, 1, 90), (64, 2, 0)])
def test_share_in_a_plane_has_its_closed_form(d: int, m: int, strength: int) -> None:
    turn = np.linalg.qr(np.random.default_rng(d + m).normal(size=(d, d)))[0][:m]
    rows = np.repeat(turn, max(strength, 1), axis=0)
    eta = Fraction(1) if strength else Fraction(1, 1 << 40)
    axes, _ = draw_axes(make_proposal(rows, eta), Coins(seeded_bits(21)), 4_000)
    real = axes / np.linalg.norm(axes, axis=1)[:, None]
    found = ((real @ turn.T) ** 2).sum(axis=1)
    test = stats.kstest(found, projection_cdf(d, m, float(strength)))
    assert test.pvalue > ALPHA, (d, m, strength, test.statistic)
    wrong = stats.kstest(found, projection_cdf(d, m, 1.5 * strength + 5.0))
    assert wrong.pvalue < ALPHA


def test_second_component_has_the_law_of_the_complement() -> None:
    rows = rows_in(3, 60, 6)
    first = np.array([[0.6, -0.64, 0.48]])
    basis = complement(first)
    moments = make_moments(row_products(rows))
    inside = moments.within(WholeMatrix.from_integers(basis), BASIS_BITS)
    axes, _ = draw_axes(fit_proposal(inside, Fraction(1, 2)), Coins(seeded_bits(31)), 20_000)
    real = basis * 2.0**-BASIS_BITS
    masses = cell_masses(bingham(0.5 * real.T @ exact_matrix(rows) @ real), 2, CELLS[2])
    assert p_value(cell_counts(axes, CELLS[2]), masses) > ALPHA


def test_sample_and_study_of_several_components_are_orthonormal() -> None:
    mechanism = PrincipalDirection.from_rows(rows_in(6, 400, 7), n_components=6, variances=True)
    found = mechanism.study(epsilon=30.0, seed=1).value
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(6), atol=1e-6)
    assert found.total_variance == pytest.approx(found.variances.sum(), abs=0.05)
    assert mechanism.sample(epsilon=30.0, size=3, seed=2).shape == (3, 6, 6)
