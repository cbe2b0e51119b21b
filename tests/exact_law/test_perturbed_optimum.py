"""The law of a perturbed optimum: maps, boxes and simulated laws of the shipped code.

Cells in one dimension come from the distribution function of the noise, in two from quadrature of
the density. Chi-square tests at a family-wise level of 1e-6, fixed seeds; mutants are rejected.
"""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from scipy import stats
from support.optimum import cell_law, log_density

from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.mechanisms.optimum import (
    Lattice,
    OptimumTerms,
    RegressionRows,
    RegressionSettings,
    calibrate,
    draw_cells,
    enclosure,
    prepare_rows,
)
from expmech.mechanisms.optimum.draw import root_cells
from expmech.mechanisms.optimum.dyadic import DyadicBox
from expmech.mechanisms.optimum.enclosure import enclose, residual_at, snap_point
from expmech.mechanisms.optimum.noise import ClassNorm, EuclideanNorm
from expmech.mechanisms.optimum.risks import (
    Huber,
    LogCosh,
    Logistic,
    Risk,
    SmoothedHinge,
    SmoothedPinball,
    Softmax,
)
from expmech.mechanisms.optimum.solver import Hessian, PerturbedProblem, Solution, solve

ALPHA = 1e-7  # a test; there are about ten
DRAWS = 1200


def make(
    risk: Risk,
    features: Any,
    targets: Any,
    *,
    noise: str = "max",
    epsilon: Fraction = Fraction(2),
    adjacency: Adjacency = Adjacency.REPLACE,
    share: Fraction = Fraction(1, 4),
    squared_norm: Fraction | None = None,
) -> tuple[RegressionRows, OptimumTerms]:
    """Return prepared rows and calibrated terms."""
    table = np.array(features, dtype=np.float64)
    s2 = Fraction(table.shape[1]) if squared_norm is None else squared_norm
    s1 = Fraction(table.shape[1])
    settings = RegressionSettings(squared_norm=s2, sum_norm=s1, noise=noise, share=share)
    norms = settings.norms(table.shape[1])
    rows = prepare_rows(table, targets, risk=risk, norms=norms)
    terms = calibrate(
        settings,
        risk=risk,
        dimension=table.shape[1],
        epsilon=epsilon,
        adjacency=adjacency,
    )
    return rows, terms


def counts(
    rows: RegressionRows, terms: OptimumTerms, lattice: Lattice, seed: int
) -> dict[tuple[int, ...], int]:
    coins = Coins(seeded_bits(seed))
    found: dict[tuple[int, ...], int] = {}
    for _ in range(DRAWS):
        cell = tuple(draw_cells(terms, rows, lattice, coins)[0].ravel().tolist())
        found[cell] = found.get(cell, 0) + 1
    return found


def p_value(found: dict[tuple[int, ...], int], law: dict[tuple[int, ...], float]) -> float:
    """Return the p-value of a chi-square test; cells expected fewer than 8 times are pooled."""
    total = sum(found.values())
    expected: list[float] = []
    observed: list[float] = []
    pooled = [0.0, 0.0]
    for cell, mass in law.items():
        if mass * total < 8:
            pooled = [pooled[0] + mass * total, pooled[1] + found.get(cell, 0)]
        else:
            expected.append(mass * total)
            observed.append(found.get(cell, 0))
    outside = sum(count for cell, count in found.items() if cell not in law)
    expected.append(max(pooled[0], 1e-9) + 1e-9)
    observed.append(pooled[1] + outside)
    if expected[-1] < 8:
        spare, seen = expected.pop(), observed.pop()
        expected[-1] += spare
        observed[-1] += seen
    scale = total / sum(expected)
    return float(stats.chisquare(observed, np.array(expected) * scale).pvalue)


ONE_DIMENSION = [
    (Logistic(), [[1.0], [0.5], [-0.75]], [1, 0, 1], "max"),
    (Huber(0.5), [[1.0], [0.25]], [0.75, -0.5], "sum"),
    (LogCosh(1.0), [[1.0], [0.25]], [0.75, -0.5], "euclidean"),
]


@pytest.mark.parametrize(("risk", "features", "targets", "noise"), ONE_DIMENSION)
def test_law_in_one_dimension_is_that_of_the_noise(
    risk: Risk, features: Any, targets: Any, noise: str
) -> None:
    rows, terms = make(risk, features, targets, noise=noise)
    lattice = Lattice(bits=1, reach_bits=2)
    found = counts(rows, terms, lattice, seed=11)

    def p_of(used: OptimumTerms) -> float:
        law: dict[tuple[int, ...], float] = {}
        for cell, mass in cell_law(rows, used, 1, 2).items():
            law[(cell,)] = mass
        return p_value(found, law)

    assert p_of(terms) > ALPHA, (DRAWS, p_of(terms))
    assert p_of(dataclasses.replace(terms, rate=terms.rate * Fraction(5, 4))) < ALPHA
    assert (
        p_of(
            dataclasses.replace(
                terms, penalty=terms.penalty * 2, intercept_penalty=terms.penalty * 2
            )
        )
        < ALPHA
    )


def quadrature(
    rows: RegressionRows, terms: OptimumTerms, lattice: Lattice, fine: int
) -> dict[tuple[int, ...], float]:
    """Integrate the density over the cells of a two-dimensional lattice by midpoints."""
    reach = (1 << lattice.reach_bits) * 4
    axis = (np.arange(2 * reach * fine) + 0.5) / fine - reach
    points = np.array(list(itertools.product(axis, axis))).reshape(
        -1, terms.risk.margins, terms.dimension
    )
    logs = log_density(rows, terms, points)
    masses = np.exp(logs - logs.max())
    most = 1 << (lattice.bits + lattice.reach_bits)
    cells = np.clip(np.floor(points.reshape(-1, 2) * 2.0**lattice.bits + 0.5), -most, most).astype(
        int
    )
    law: dict[tuple[int, ...], float] = {}
    for cell, mass in zip(
        map(tuple, cells.tolist()), (masses / masses.sum()).tolist(), strict=True
    ):
        law[cell] = law.get(cell, 0.0) + mass
    return law


TWO_DIMENSIONS = [
    (Logistic(), [[1.0, -0.5], [1.0, 1.0], [0.5, 0.75]], [1, 0, 1], "max"),
    (Huber(0.5), [[1.0, 0.5], [1.0, -1.0]], [0.75, -0.5], "sum"),
    (LogCosh(0.5), [[1.0, 0.5], [1.0, -1.0]], [0.75, -0.5], "max"),
    (LogCosh(0.25), [[1.0, 0.5], [1.0, -1.0]], [0.75, -0.5], "euclidean"),
    (Logistic(), [[1.0, -0.5], [1.0, 1.0], [0.5, 0.75]], [1, 0, 1], "euclidean"),
    (Softmax(2), [[1.0], [0.5], [1.0]], [0, 1, 1], "euclidean"),
    (Softmax(2), [[1.0], [0.5], [1.0]], [0, 1, 1], "class"),
]


@pytest.mark.parametrize(("risk", "features", "targets", "noise"), TWO_DIMENSIONS)
def test_law_in_two_dimensions_is_noise_times_determinant(
    risk: Risk, features: Any, targets: Any, noise: str
) -> None:
    rows, terms = make(
        risk, features, targets, noise=noise, epsilon=Fraction(8), squared_norm=Fraction(2)
    )
    lattice = Lattice(bits=0, reach_bits=1)
    found = counts(rows, terms, lattice, seed=12)
    p = p_value(found, quadrature(rows, terms, lattice, 12))
    assert p > ALPHA, (DRAWS, p)
    other = dataclasses.replace(terms, rate=terms.rate * Fraction(5, 4))
    assert p_value(found, quadrature(rows, other, lattice, 12)) < ALPHA


def true_root(rows: RegressionRows, terms: OptimumTerms, b: list[Fraction]) -> list[flint.arb]:
    """Solve ``G(y) + b = 0`` by Newton in ball arithmetic, from the float solution."""
    risk, d = terms.risk, terms.dimension
    problem = problem_of(rows, terms, b)
    with flint.ctx.workprec(400):
        y = [flint.arb(float(one)) for one in solve(problem).point.ravel()]
        x = [[flint.arb(float(e)) for e in row] for row in rows.matrix.tolist()]
        for _ in range(60):
            residual = [
                flint.arb(float(p)) * v + flint.arb(flint.fmpq(o.numerator, o.denominator))
                for p, v, o in zip(terms.penalties, y, b, strict=True)
            ]
            for row, target in zip(x, rows.targets.tolist(), strict=True):
                slope = risk.ball(
                    [sum((e * v for e, v in zip(row, y, strict=True)), flint.arb(0))], target
                )[0]
                residual = [r + e * slope for r, e in zip(residual, row, strict=True)]
            step = solve(problem).hessian.inverse @ np.array([float(r.mid()) for r in residual])
            y = [(v - flint.arb(float(s))).mid() for v, s in zip(y, step, strict=True)]
    assert d == len(y)
    return y


def problem_of(rows: RegressionRows, terms: OptimumTerms, b: list[Fraction]) -> PerturbedProblem:
    return PerturbedProblem(
        rows=rows,
        risk=terms.risk,
        penalties=np.array([float(one) for one in terms.penalties]),
        pull=np.array([float(one) for one in b]).reshape(terms.risk.margins, terms.dimension),
    )


def exact_cell(b: list[Fraction]) -> DyadicBox:
    values = [int(one * (1 << 60)) for one in b]
    return DyadicBox(lower=values, upper=values, exponent=60)


@pytest.mark.parametrize(
    "risk",
    [Logistic(), LogCosh(0.25), Huber(0.25), SmoothedHinge(0.5), SmoothedPinball(0.25)],
)
@pytest.mark.parametrize("away", [0.0, 2.0**-30, 2.0**-12, 0.25])
def test_boxes_hold_the_root_whatever_point_they_start_from(risk: Risk, away: float) -> None:
    generator = np.random.default_rng(3)
    for trial in range(4):
        table = np.column_stack([np.ones(30), generator.uniform(-1, 1, (30, 2))])
        rows, terms = make(risk, table, generator.integers(0, 2, 30), squared_norm=Fraction(3, 2))
        b = [Fraction(round(one * 2**20), 2**20) for one in generator.normal(0, 3, 3)]
        problem = problem_of(rows, terms, b)
        solution = solve(problem)
        point = snap_point(solution.point + away * generator.normal(size=3))
        box = enclose(
            problem, solution, residual_at(problem, point, exact_cell(b)), terms.norms.squared
        )
        root = true_root(rows, terms, b)
        with flint.ctx.workprec(400):
            scaled = [one * (flint.arb(2) ** box.exponent) for one in root]
            for low, one, high in zip(box.lower, scaled, box.upper, strict=True):
                assert low <= one <= high, (trial, away)


def without_rows(penalty: float, inverse: float) -> tuple[PerturbedProblem, Solution, OptimumTerms]:
    rows, terms = make(Logistic(), np.zeros((0, 1)), [])
    terms = dataclasses.replace(
        terms, penalty=Fraction(penalty), intercept_penalty=Fraction(penalty)
    )
    problem = problem_of(rows, terms, [Fraction(0)])
    hessian = Hessian(matrix=np.array([[penalty]]), weights=np.zeros(0))
    hessian.inverse = np.array([[inverse]])
    return problem, Solution(point=np.zeros((1, 1)), hessian=hessian), terms


@pytest.mark.parametrize("inverse", [-1.0, 0.4, 0.5])
def test_boxes_are_no_smaller_than_they_must_be(inverse: float) -> None:
    """With no rows the root is -b/lambda: a box divided by a constant would miss it."""
    problem, solution, terms = without_rows(2.0, inverse)
    box = enclose(
        problem,
        solution,
        residual_at(problem, np.zeros((1, 1)), exact_cell([Fraction(1)])),
        terms.norms.squared,
    )
    low, high = (end / (1 << box.exponent) for end in (box.lower[0], box.upper[0]))
    assert low <= -0.5 <= high
    true_distance = abs((low + high) / 2 + 0.5)
    if inverse != 0.5:
        assert (high - low) / 2 < 2.0 * true_distance + 1e-9  # so half of it is not enough


@pytest.mark.parametrize(
    ("risk", "noise"),
    [
        (Logistic(), "max"),
        (LogCosh(0.25), "euclidean"),
        (Huber(0.25), "max"),
        (Softmax(3), "class"),
        (SmoothedHinge(), "sum"),
        (SmoothedPinball(0.3), "max"),
    ],
)
def test_slow_path_finds_the_same_cells(
    risk: Risk, noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(1)
    table = np.column_stack([np.ones(40), generator.uniform(-1, 1, (40, 2))])
    rows, terms = make(risk, table, generator.integers(0, 3, 40), noise=noise)

    def draw(seed: int) -> tuple[list[int], int]:
        cells, boxes = draw_cells(terms, rows, Lattice(bits=30), Coins(seeded_bits(seed)))
        return cells.ravel().tolist(), boxes

    fast = [draw(seed) for seed in range(3)]
    calls = itertools.count()

    def late(*arguments: Any) -> DyadicBox:
        box = enclose(*arguments)
        if next(calls) % 3 < 2:  # two boxes of three are made too wide to decide
            one = 1 << box.exponent
            return DyadicBox(
                lower=[low - one for low in box.lower],
                upper=[up + one for up in box.upper],
                exponent=box.exponent,
            )
        return box

    monkeypatch.setattr(enclosure, "enclose", late)
    slow = [draw(seed) for seed in range(3)]
    assert [cells for cells, _ in fast] == [cells for cells, _ in slow]
    assert [boxes for _, boxes in fast] == [1, 1, 1]
    assert [boxes for _, boxes in slow] == [3, 3, 3]


def test_refreshed_hessian_is_that_of_the_margins() -> None:
    rows, terms = make(Logistic(), [[1.0, 0.5], [1.0, -0.25]], [0, 1], squared_norm=Fraction(2))
    problem = problem_of(rows, terms, [Fraction(1), Fraction(0)])
    found = Solution.at(problem, solve(problem).point, np.zeros((2, 1))).hessian.matrix
    assert np.allclose(found, rows.matrix.T @ rows.matrix / 4 + np.diag(problem.penalties))


class KnownNoise:
    """Noise that is what a test says, exactly."""

    def __init__(self, value: Fraction) -> None:
        self._box = exact_cell([value])

    def box(self) -> DyadicBox:
        return self._box

    def reveal(self, coins: Coins) -> None:
        """There are no further digits."""


def test_noise_without_revealed_digits_tells_neighbours_apart() -> None:
    """With noise on a coarse grid the released cells of neighbours are disjoint."""
    released = []
    for label in (0, 1):
        rows, terms = make(Logistic(), [[1.0], [0.5]], [label, 1])
        noises = [KnownNoise(Fraction(7 * k, 19)) for k in range(-60, 61)]
        coins, fine = Coins(seeded_bits(1)), Lattice(bits=20)
        released.append({root_cells(terms, rows, fine, one, coins)[0][0] for one in noises})
    assert released[0].isdisjoint(released[1])


def test_class_noise_has_gamma_norm_and_is_spread_evenly() -> None:
    coins, rate, size = Coins(seeded_bits(5)), Fraction(3), 800
    norms, shares = [], []
    for _ in range(size):
        noise = ClassNorm(coins, 3, 2, rate=rate)
        cell = noise.box()
        b = cell.middle().to_floats().reshape(3, 2)
        assert cell.radii().max() < 1e-9
        norms.append(np.abs(b).sum(axis=0).max() * float(rate))
        shares.append(b[0, 0] / np.abs(b).sum(axis=0)[0])
    # the norm of the law exp(-r N) in 6 dimensions is Gamma(6); a share of an L1 norm is Beta
    assert stats.kstest(norms, stats.gamma(6).cdf).pvalue > ALPHA
    assert stats.kstest(norms, stats.gamma(7).cdf).pvalue < ALPHA
    assert stats.kstest(np.abs(shares), stats.beta(1, 2).cdf).pvalue > ALPHA


def test_max_noise_is_class_noise_of_one_class() -> None:
    """The largest of d coordinates is Gamma(d), and a coordinate over T is uniform."""
    coins, rate = Coins(seeded_bits(6)), Fraction(3)
    drawn = [ClassNorm(coins, 1, 4, rate=rate).box().middle().to_floats() for _ in range(800)]
    largest = np.abs(drawn).max(axis=1) * float(rate)
    assert stats.kstest(largest, stats.gamma(4).cdf).pvalue > ALPHA
    assert stats.kstest(largest, stats.gamma(5).cdf).pvalue < ALPHA
    shares = np.abs(np.sort(np.abs(drawn), axis=1)[:, :3] / np.abs(drawn).max(axis=1)[:, None])
    assert stats.kstest(shares[:, 2] ** 3, stats.uniform.cdf).pvalue > ALPHA


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7])
def test_euclidean_noise_has_gamma_length_and_a_uniform_direction(size: int) -> None:
    """|b| is Gamma(D) over the rate; a coordinate of the direction has a known beta law."""
    coins, rate = Coins(seeded_bits(20 + size)), Fraction(3)
    boxes = [EuclideanNorm(coins, size, rate=rate).box() for _ in range(1500)]
    assert max(float(box.radii().max()) for box in boxes) < 1e-9
    drawn = np.array([box.middle().to_floats() for box in boxes])
    lengths = np.sqrt((drawn**2).sum(axis=1))
    assert stats.kstest(lengths * float(rate), stats.gamma(size).cdf).pvalue > ALPHA
    assert stats.kstest(lengths * float(rate), stats.gamma(size + 1).cdf).pvalue < ALPHA
    for j in range(size if size > 1 else 0):
        squares = (drawn[:, j] / lengths) ** 2
        assert stats.kstest(squares, stats.beta(0.5, (size - 1) / 2).cdf).pvalue > ALPHA
        assert abs((drawn[:, j] > 0).mean() - 0.5) < 0.08
    if size > 1:  # pairs are independent of each other given the length
        turned = drawn @ np.linalg.qr(np.random.default_rng(1).normal(size=(size, size)))[0]
        squares = (turned[:, 0] / lengths) ** 2
        assert stats.kstest(squares, stats.beta(0.5, (size - 1) / 2).cdf).pvalue > ALPHA


def test_between_two_sums_of_a_hessian_at_most_an_eighth_of_the_rows_is_corrected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What an enclosure allows a matrix to be off by covers one sum and so many corrections."""
    n = 64
    generator = np.random.default_rng(2)
    rows, terms = make(Huber(0.5), generator.uniform(-1, 1, (n, 2)), np.zeros(n))
    problem = problem_of(rows, terms, [Fraction(0), Fraction(0)])
    summed: list[int] = []
    inner = RegressionRows.gram

    def counted(self: RegressionRows, weights: Any) -> Any:
        summed.append(len(weights))
        return inner(self, weights)

    monkeypatch.setattr(RegressionRows, "gram", counted)
    margins = np.zeros((n, 1))
    hessian = Hessian.at(problem, margins)
    since = 0
    for start in range(0, 20 * n, 5):  # five rows at a time leave the ramp, or come back
        places = np.arange(start, start + 5) % n
        margins[places] = 2.0 - margins[places]
        summed.clear()
        hessian = hessian.refreshed(problem, margins)
        assert len(summed) == 1
        since = 0 if summed[0] == n else since + summed[0]
        assert since <= n // 8
        exact = Hessian.at(problem, margins)
        assert (hessian.weights == exact.weights).all()
        lengths = np.linalg.norm(rows.matrix, axis=0)
        allowed = (n + 64) * 2.0**-50 * np.outer(lengths, lengths) + 2.0**-48 * exact.matrix
        assert (np.abs(hessian.matrix - exact.matrix) <= allowed).all()
