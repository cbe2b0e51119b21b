"""The family of the paper's first paragraph: posterior sampling, K-norm gradients, pMSE.

Sensitivities by search over small data, laws over all neighbours, and what is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.examples import run_example
from support.problems import exact_law

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import largest_log_ratio
from expmech.core.errors import LossError, ParameterTypeError

Floats = NDArray[np.float64]
RATES = em.Box([0.0], [1.0], bits=3)


def bernoulli(rows: Any) -> Callable[[Floats], Floats]:
    table = np.asarray(rows, dtype=np.float64)

    def log_likelihood(y: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.where(table == 1.0, np.log(y[:, :1]), np.log1p(-y[:, :1]))

    return log_likelihood


def slanted(y: Floats) -> Floats:
    return -y[:, 0]


def posterior(rows: Any, **options: Any) -> Any:
    settings: dict[str, Any] = {"domain": RATES, "bound": (-1.5, 0.0), "prior": slanted} | options
    return em.posterior(bernoulli(rows), **settings)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_posterior_is_private_over_all_neighbours_though_its_likelihood_is_unbounded(
    adjacency: str,
) -> None:
    tables = [
        rows
        for n in (1, 2, 3, 4)
        for rows in itertools.combinations_with_replacement((0.0, 1.0), n)
    ]
    laws = {
        rows: exact_law(posterior(rows, adjacency=adjacency).target(epsilon=1.0)) for rows in tables
    }
    ratios = [
        largest_log_ratio(laws[one], laws[other])
        for one, other in itertools.permutations(tables, 2)
        if (adjacency == "replace" and len(one) == len(other) and abs(sum(one) - sum(other)) == 1)
        or (
            adjacency == "add-remove"
            and any(sorted((*one, row)) == sorted(other) for row in (0.0, 1.0))
        )
    ]
    assert 0.45 < max(ratios) <= 1.0


def test_at_full_epsilon_the_draw_is_from_the_clipped_posterior_and_below_it_is_tempered() -> None:
    rows = [1.0, 1.0, 0.0, 1.0]
    for adjacency in ("replace", "add-remove"):
        mechanism = posterior(rows, adjacency=adjacency)
        y = np.array([(i + 0.5) / 8 for i in range(8)])
        terms = 3 * np.maximum(np.log(y), -1.5) + np.maximum(np.log1p(-y), -1.5)
        for epsilon, power in ((mechanism.full_epsilon, 1.0), (0.5, None)):
            eta = mechanism.power(epsilon=epsilon)
            assert eta == (pytest.approx(1.0, abs=1e-6) if power else pytest.approx(eta))
            assert power is None or eta >= 1.0
            weights = np.exp(eta * terms - y)
            law = exact_law(mechanism.target(epsilon=epsilon))
            for i, share in enumerate(weights / weights.sum()):
                assert law[(i,)] == pytest.approx(share, rel=1e-6)
        half = {"replace": 2.0, "add-remove": 1.0}[adjacency] * 1.5
        assert mechanism.full_epsilon == pytest.approx(half, rel=1e-4)


def test_a_posterior_draw_as_shipped_has_its_law() -> None:
    mechanism = posterior([1.0, 0.0, 1.0], lipschitz=[16.0])
    law = exact_law(mechanism.target(epsilon=2.0))
    for sampler in (em.Tabulated(), em.ConfAtomPerfect(0.5, proposal="uniform")):
        found = ChainLaw(
            mechanism.chain(epsilon=2.0, sampler=sampler), lattice_point, leftover=1e-7
        )
        for point, share in law.items():
            assert found.law[point] == pytest.approx(share, abs=1e-6)


def test_the_bound_over_boxes_of_a_posterior_is_below_the_loss() -> None:
    rows = [1.0, 0.0, 1.0, 1.0]
    loss = em.losses.BoundedLogLikelihood(bernoulli(rows), bound=(-2.0, 0.0), lipschitz=[8.0])
    bound = loss.facts(em.Box([0.2], [0.8])).lower_bound
    assert bound is not None
    y = np.linspace(0.2, 0.8, 61)[:, None]
    for width in (0.0, 0.01, 0.1):
        least = np.min(
            [loss(np.clip(y + shift, 0.2, 0.8)) for shift in np.linspace(0, width, 7)], axis=0
        )
        below = bound(y, np.clip(y + width, 0.2, 0.8))
        assert (below <= least).all()
        assert (below > least - 4 * 8.0 * width - 1e-5).all()


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_row_without_a_likelihood_counts_as_the_least(adjacency: str) -> None:
    def with_last(last: float) -> em.losses.BoundedLogLikelihood:
        return em.losses.BoundedLogLikelihood(
            lambda y: np.hstack([np.log(y), np.log1p(-y), np.full((len(y), 1), last)]),
            bound=(-2.0, 0.0),
            adjacency=adjacency,
        )

    y = np.linspace(0.2, 0.8, 5)[:, None]
    assert with_last(math.nan)(y).tolist() == with_last(-2.0)(y).tolist()
    assert np.abs(with_last(math.nan)(y) - with_last(0.0)(y)).max() <= 2.0
    assert with_last(math.nan).facts(RATES) == with_last(0.0).facts(RATES)


def test_a_log_likelihood_that_is_not_a_table_is_refused_in_fixed_words() -> None:
    for wrong in (
        lambda y: np.log(y[:, 0]),
        lambda y: np.zeros((len(y) + 1, 2)),
        lambda y: np.zeros((len(y), 2), dtype=np.float32),
    ):
        with pytest.raises(LossError, match="one column per row of data; it did not"):
            em.posterior(wrong, domain=RATES, bound=(-1.0, 0.0))
    with pytest.raises(em.ParameterError, match="a number and a larger one"):
        posterior([1.0], bound=(0.0, 0.0))
    with pytest.raises(ParameterTypeError, match="must be two numbers"):
        posterior([1.0], bound=3.0)
    with pytest.raises(em.ParameterError, match="at least one row under 'replace'"):
        posterior([])


SLOPES = {
    "median": lambda x, z, **options: em.losses.GradientNorm.quantile(x, z, q=0.5, **options),
    "upper": lambda x, z, **options: em.losses.GradientNorm.quantile(x, z, q=0.9, **options),
    "logistic": lambda x, z, **options: em.losses.GradientNorm.logistic(x, z, **options),
    "poisson": lambda x, z, **options: em.losses.GradientNorm(
        x,
        z,
        slope=lambda margins, targets: np.exp(margins) - targets,
        slope_bounds=(-3.0, 2.0),
        **options,
    ),
}


@pytest.mark.parametrize("norm", ["linf", "l1", "l2"])
@pytest.mark.parametrize("kind", SLOPES)
def test_the_norm_of_a_gradient_moves_by_at_most_its_sensitivity(kind: str, norm: str) -> None:
    """One row among many that make every entry large: the search comes near the constant."""
    generator = np.random.default_rng(5)
    y = np.array([[0.5, -0.25], [6.0, 6.0], [0.0, 0.0]])
    many = [(np.eye(2)[j], 1.0) for j in (0, 1) for _ in range(20)]
    corners = [
        (np.array(x), z)
        for x in itertools.product((-1.0, 1.0), repeat=2)
        for z in (-9.0, 0.0, 1.0, 9.0)
    ]
    rows = corners + [(generator.uniform(-1, 1, 2), generator.normal()) for _ in range(10)]

    def loss(extra: list[Any], adjacency: str) -> Any:
        table = [*many, *extra]
        return SLOPES[kind](
            np.array([x for x, _ in table]),
            np.array([z for _, z in table]),
            norm=norm,
            adjacency=adjacency,
            penalty=0.5,
        )

    without = loss([], "add-remove")
    values = np.array([loss([row], "add-remove")(y) for row in rows])
    added = np.abs(values - without(y)).max()
    replaced = (values.max(axis=0) - values.min(axis=0)).max()
    assert added <= float(without.sensitivity) * (1 + 1e-12)
    assert replaced <= float(loss([rows[0]], "replace").sensitivity) * (1 + 1e-12)
    assert added > 0.45 * float(without.sensitivity)
    ones = {"linf": 1.0, "l1": 2.0, "l2": math.sqrt(2.0)}[norm]
    slope = {"median": 0.5, "upper": 0.9, "logistic": 1.0, "poisson": 3.0}[kind]
    assert float(without.sensitivity) == pytest.approx(slope * ones)
    assert loss([rows[0]], "replace").sensitivity == 2 * without.sensitivity


@pytest.mark.parametrize("q", [0.5, 0.3, 0.9])
def test_the_gradient_of_a_location_is_the_rank_loss(q: float) -> None:
    numbers = np.random.default_rng(2).uniform(size=40)
    loss = em.losses.GradientNorm.quantile(None, numbers, q=q)
    y = np.linspace(0.0, 1.0, 57)[:, None]
    ranks = np.abs((numbers < y).sum(axis=1) - q * 40)
    np.testing.assert_allclose(loss(y), ranks, atol=1e-6)
    assert float(loss.sensitivity) == pytest.approx(1.0, abs=1e-8)
    levels = loss._levels(np.array([-q, 1.0 - q]), np.ones(2))
    moved = Fraction(int(levels[1] - levels[0]), 1 << 30) * Fraction(loss._largest_slope)
    assert loss.sensitivity >= moved  # the rounding of levels is in it


def test_the_gradient_is_that_of_the_risk() -> None:
    generator = np.random.default_rng(3)
    x, z = generator.uniform(-1, 1, (30, 2)), (generator.uniform(size=30) < 0.5) * 1.0
    y = np.array([0.3, -0.7])

    def risk(point: Floats) -> float:
        t = x @ point
        return float((np.log1p(np.exp(t)) - z * t).sum() + 0.25 * point @ point)

    steps = np.eye(2) * 1e-6
    entries = [abs(risk(y + step) - risk(y - step)) / 2e-6 for step in steps]
    for norm, expected in (
        ("linf", max(entries)),
        ("l1", sum(entries)),
        ("l2", math.hypot(*entries)),
    ):
        loss = em.losses.GradientNorm.logistic(x, z, penalty=0.5, norm=norm)
        assert float(loss(y[None, :])[0]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("norm", ["linf", "l1", "l2"])
@pytest.mark.parametrize("kind", SLOPES)
def test_the_bound_over_boxes_of_a_gradient_is_below_the_loss(kind: str, norm: str) -> None:
    generator = np.random.default_rng(11)
    x, z = generator.uniform(-1, 1, (25, 2)), (generator.uniform(size=25) < 0.5) * 1.0
    loss = SLOPES[kind](x, z, norm=norm, penalty=0.3)
    lower = generator.uniform(-2, 2, (60, 2))
    close = 0
    for width in (0.0, 1e-3, 0.5):
        below = loss.lower_bound(lower, lower + width)
        least = np.min(
            [loss(lower + width * generator.uniform(size=(60, 2))) for _ in range(40)], axis=0
        )
        assert (below <= least).all()
        close += int((below > least - 0.5).sum())
    assert close > 60  # it is worth something: where boxes are small it is near


@pytest.mark.parametrize("norm", ["linf", "l1", "l2"])
@pytest.mark.parametrize("kind", ["upper", "logistic"])
def test_a_gradient_norm_is_private_over_all_neighbours(kind: str, norm: str) -> None:
    rows = list(itertools.product((-1.0, 0.5), (-1.0, 1.0), (0.0, 1.0)))
    domain = em.Box([-1.0, -1.0], [1.0, 1.0], bits=2)

    def law(table: list[Any]) -> Any:
        columns = np.array(table)
        loss = SLOPES[kind](columns[:, :2], columns[:, 2], norm=norm)
        return exact_law(em.ExponentialMechanism(loss=loss, domain=domain).target(epsilon=1.0))

    laws = [law([(1.0, 0.25, 1.0), row]) for row in rows]
    worst = max(largest_log_ratio(a, b) for a, b in itertools.combinations(laws, 2))
    assert 0.15 < worst <= 1.0


def test_a_gradient_norm_as_shipped_has_its_law() -> None:
    loss = em.losses.GradientNorm.quantile([[1.0], [0.5], [-1.0]], [0.2, -0.1, 0.6], q=0.5)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([-1.0], [1.0], bits=3))
    law = exact_law(mechanism.target(epsilon=3.0))
    chain = mechanism.chain(epsilon=3.0, sampler=em.ConfAtomPerfect(0.5, proposal="uniform"))
    found = ChainLaw(chain, lattice_point, leftover=1e-7)
    for point, share in law.items():
        assert found.law[point] == pytest.approx(share, abs=1e-6)


def test_slopes_and_rows_that_break_the_contract_are_refused() -> None:
    with pytest.raises(em.ParameterError, match="one entry per row"):
        em.losses.GradientNorm.quantile([[1.0]], [1.0, 2.0], q=0.5)
    with pytest.raises(em.ParameterError, match="`slope_bounds` of GradientNorm"):
        em.losses.GradientNorm([[1.0]], [1.0], slope=lambda t, z: t, slope_bounds=(1.0, 1.0))
    loss = em.losses.GradientNorm.quantile([[1.0, 1.0]], [1.0], q=0.5)
    with pytest.raises(em.ParameterError, match="of dimension 2"):
        em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    bad = em.losses.GradientNorm(
        [[1.0]], [1.0], slope=lambda t, z: t * np.nan, slope_bounds=(-1.0, 1.0)
    )
    with pytest.raises(LossError, match="without nan for each margin; it did not"):
        bad(np.array([[0.5]]))


def test_pmse_is_the_mean_square_of_propensities_and_one_row_moves_it_by_at_most_one() -> None:
    """All histograms of three real rows in three cells against all of two synthetic ones."""
    edges, places = [[1.0, 2.0]], np.array([[0.5], [1.5], [2.5]])
    worst = {"replace": 0.0, "add-remove": 0.0}
    for made in itertools.combinations_with_replacement(range(3), 2):

        def value(cells: tuple[int, ...], adjacency: str, made: Any = made) -> float:
            loss = em.losses.PMSE(
                places[list(cells)].reshape(-1, 1),
                synthetic=lambda y: places[list(made)],
                edges=edges,
                adjacency=adjacency,
            )
            return float(loss(np.zeros((1, 1)))[0])

        for cells in itertools.combinations_with_replacement(range(3), 3):
            n, m = np.bincount(cells, minlength=3), np.bincount(made, minlength=3)
            share = n / np.maximum(n + m, 1)
            mean_square = ((n + m) * (share - 3 / 5) ** 2).sum() / 5
            assert value(cells, "replace") == pytest.approx(5 * mean_square)
            for other in range(3):
                for at in range(3):
                    moved = (*cells[:at], other, *cells[at + 1 :])
                    change = abs(value(cells, "replace") - value(moved, "replace"))
                    worst["replace"] = max(worst["replace"], change)
                change = abs(value(cells, "add-remove") - value((*cells, other), "add-remove"))
                worst["add-remove"] = max(worst["add-remove"], change)
    assert 0.6 < worst["replace"] <= 1.0 + 1e-12
    assert 0.45 < worst["add-remove"] <= 0.5 + 1e-12  # of float64 sums


def test_one_row_moves_pmse_by_nearly_one() -> None:
    many = np.repeat([[0.5], [1.5]], [1, 40], axis=0)  # real rows alone in one cell
    alone, joined = many.copy(), many.copy()
    joined[0] = 1.5
    losses = [
        em.losses.PMSE(rows, synthetic=lambda y: np.full((400, 1), 1.5), edges=[[1.0]])
        for rows in (alone, joined)
    ]
    moved = [float(loss(np.zeros((1, 1)))[0]) for loss in losses]
    assert 0.75 < abs(moved[0] - moved[1]) < 1.0 == float(losses[0].sensitivity)


def test_pmse_is_private_over_all_neighbours_and_drawn_as_shipped() -> None:
    draws = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]])
    tables = list(itertools.product((0.2, 0.6, 0.95), repeat=2))

    def mechanism(rows: Any) -> em.ExponentialMechanism:
        loss = em.losses.PMSE(
            np.array(rows)[:, None], synthetic=lambda y: draws ** y[0], edges=[[0.25, 0.5, 0.75]]
        )
        return em.ExponentialMechanism(loss=loss, domain=em.Box([0.25], [4.0], bits=3))

    laws = {rows: exact_law(mechanism(rows).target(epsilon=2.0)) for rows in tables}
    worst = max(
        largest_log_ratio(laws[a], laws[b])
        for a, b in itertools.combinations(tables, 2)
        if (a[0] == b[0]) != (a[1] == b[1])
    )
    assert 0.4 < worst <= 2.0
    chain = mechanism((0.2, 0.6)).chain(
        epsilon=2.0, sampler=em.ConfAtomPerfect(0.5, proposal="uniform")
    )
    found = ChainLaw(chain, lattice_point, leftover=1e-7)
    for point, share in laws[0.2, 0.6].items():
        assert found.law[point] == pytest.approx(share, abs=1e-6)


def test_synthetic_rows_that_are_no_table_are_refused() -> None:
    def loss(synthetic: Any) -> Any:
        return em.losses.PMSE([[0.1], [0.2]], synthetic=synthetic, edges=[[0.5]])

    for wrong in (lambda y: [1.0, 2.0], lambda y: [[1.0, 2.0]], lambda y: [[np.nan]]):
        with pytest.raises(LossError, match="as many rows each time"):
            loss(wrong)(np.zeros((1, 1)))
    sizes = iter((3, 4))
    with pytest.raises(LossError, match="as many rows each time"):
        loss(lambda y: np.zeros((next(sizes), 1)))(np.zeros((2, 1)))
    for edges in ([[1.0], [2.0]], [[1.0, 0.5]], [[np.inf]]):
        with pytest.raises(em.ParameterError, match="one list of increasing numbers per column"):
            em.losses.PMSE([[0.1]], synthetic=lambda y: [[0.0]], edges=edges)


def test_the_examples_of_the_family_run() -> None:
    assert "posterior itself" in run_example("posterior")
    printed = run_example("gradient_norm")
    assert printed.count("released") == 3
    assert "synthetic rows" in run_example("synthetic_data")
