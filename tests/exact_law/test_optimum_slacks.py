"""What a perturbed optimum declares to be off by, one slack at a time, against exact arithmetic.

Margins, derivatives and residuals are compared with fractions or wide balls, roots with roots of
piecewise linear fields, bounds on matrices with matrices. Formulas here are not those of the code.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.mechanisms.optimum import Lattice, RegressionRows, RowNorms, prepare_rows
from expmech.mechanisms.optimum.dyadic import DyadicBox, Dyadics
from expmech.mechanisms.optimum.enclosure import (
    NearInverse,
    Residual,
    enclose,
    enclose_in,
    precise_residual,
    residual_at,
    snap_point,
    weight_change,
)
from expmech.mechanisms.optimum.noise import ClassNorm, DiscPoints, EuclideanNorm, SumNorm
from expmech.mechanisms.optimum.risks import (
    Custom,
    Huber,
    Logistic,
    Risk,
    SmoothedHinge,
    SmoothedPinball,
    Softmax,
)
from expmech.mechanisms.optimum.solver import (
    Hessian,
    PerturbedProblem,
    ProblemSummary,
    Solution,
    invert,
)

ONE = Fraction(1)


def exactly(number: float | Fraction) -> flint.arb:
    top, bottom = number.as_integer_ratio()
    return flint.arb(flint.fmpq(top, bottom))


def nothing(size: int) -> DyadicBox:
    return DyadicBox(lower=[0] * size, upper=[0] * size, exponent=0)


def problem_of(rows: RegressionRows, risk: Risk, penalty: float = 1.0) -> PerturbedProblem:
    d = rows.dimension
    return PerturbedProblem(
        rows=rows, risk=risk, penalties=np.full(d, penalty), pull=np.zeros((risk.margins, d))
    )


def snapped(generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return numbers in [-1, 1] that are whole multiples of 2^-20."""
    return np.rint(generator.uniform(-1, 1, shape) * 2.0**20) * 2.0**-20


def exact_margins(rows: RegressionRows, point: Any) -> list[list[Fraction]]:
    return [
        [
            sum((Fraction(x) * Fraction(y) for x, y in zip(row, line, strict=True)), Fraction(0))
            for line in point.tolist()
        ]
        for row in rows.matrix.tolist()
    ]


TINY = 2.0**-40
ALMOST_FLAT = Custom(
    name="almost flat",
    derivative=lambda t, z: 0.3 + TINY * t,
    curvature=lambda t, z: np.full(len(t), TINY),
    ball=lambda t, z: exactly(0.3) + t * exactly(TINY),
    bound=1.0,
    lipschitz=TINY,
    error=2.0**-54,
)
RISKS = [
    Logistic(),
    Softmax(2),
    Softmax(5),
    Huber(0.3),
    Huber(900.0),
    SmoothedHinge(0.5),
    SmoothedHinge(2.0**-10),
    SmoothedPinball(0.3),
    SmoothedPinball(0.9, 2.0**-8),
    SmoothedPinball(0.1, 64.0),
    ALMOST_FLAT,
]


@pytest.mark.parametrize("risk", RISKS, ids=lambda risk: f"{risk.name} {float(risk.lipschitz):g}")
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_derivatives_are_off_by_no_more_than_they_say(risk: Any, scale: float) -> None:
    """At points of the grid, against balls at exact margins; and the bound is no idle one."""
    generator = np.random.default_rng(5)
    n, d = 300, 6
    rows = RegressionRows(
        matrix=snapped(generator, (n, d)),
        targets=risk.prepare_targets(generator.uniform(-1.5, 2.5, n)),
    )
    point = snap_point(generator.normal(size=(risk.margins, d)) * scale * 0.2)
    on_ramp = (risk.name == "huber" and risk.bound > 1) if scale > 1.0 else risk.bound <= 1
    if scale == 1.0 and hasattr(risk, "slope"):  # the last column brings margins to the ramp
        point[:, -1] = 1.0
        aim = (generator.uniform(risk.low, risk.high, n) - risk.offset) / risk.slope
        aim = (1.0 + aim) * rows.targets if risk.labels else aim + rows.targets
        rest = np.clip(aim - rows.matrix[:, :-1] @ point[0, :-1], -1.0, 1.0)
        rows.matrix[:, -1] = np.rint(rest * 2.0**20) * 2.0**-20
    residual = residual_at(problem_of(rows, risk), point, nothing(point.size))
    computed = risk.derivative(residual.margins, rows.targets)
    a = float(risk.lipschitz)
    largest = 0.0
    with flint.ctx.workprec(300):
        for margins, target, found in zip(
            exact_margins(rows, point), rows.targets.tolist(), computed.tolist(), strict=True
        ):
            true = risk.ball([exactly(one) for one in margins], target)
            off = max(
                float(abs(exactly(one) - other).upper())
                for one, other in zip(found, true, strict=True)
            )
            largest = max(largest, off)
            assert off <= 2.0 * a * residual.eta + residual.beta
            if risk.margins > 1:
                continue
            shift = exactly(residual.eta)
            middle = exactly(margins[0])
            ends = [risk.ball([middle + one], target)[0] for one in (-shift, shift)]
            assert ends[0] - residual.beta <= found[0] <= ends[1] + residual.beta
    assert not on_ramp or largest > (2.0 * a * residual.eta + residual.beta) / 256.0


def test_rounded_derivatives_are_charged_where_they_were_rounded() -> None:
    """One row, x = 1, and a derivative of 0.3 everywhere: the sum is that, in units of 2^-52."""
    flat = Custom(
        name="flat",
        derivative=lambda t, z: np.full(len(t), 0.3),
        curvature=lambda t, z: np.zeros(len(t)),
        ball=lambda t, z: exactly(0.3),
        bound=1.0,
        lipschitz=2.0**-100,
        error=0.0,
    )
    rows = RegressionRows(matrix=np.ones((1, 1)), targets=np.zeros(1))
    problem = problem_of(rows, flat)
    residual = residual_at(problem, np.zeros((1, 1)), nothing(1))
    found = Fraction(residual.middle.values[0]) / Fraction(2) ** residual.middle.exponent
    assert 0 < abs(found - Fraction(0.3)) <= Fraction(residual.total_error(problem.summary)[0])


STEEP = Custom(
    name="steep",
    derivative=lambda t, z: np.clip(t, -1.0, 1.0),
    curvature=lambda t, z: np.where(np.abs(t) < 1.0, 1.0, 0.0),
    ball=lambda t, z: t.max(flint.arb(-1)).min(flint.arb(1)),
    bound=1.0,
    lipschitz=1.0,
    error=0.0,
)


@pytest.mark.parametrize("risk", [*RISKS, STEEP], ids=lambda risk: risk.name)
def test_what_margins_are_off_by_moves_derivatives(risk: Risk) -> None:
    a = float(risk.lipschitz)
    for largest, extra in ((0.0, 2.0**-20), (1.5, 2.0**-40), (1.5, 0.0)):
        eta, beta = risk.derivative_error(largest, extra)
        assert a * eta + beta >= a * (2.0**-53 * largest + extra)


@pytest.mark.parametrize("scale", [1.0, 2.0**12, 2.0**30])
@pytest.mark.parametrize("d", [4, 40, 700])
def test_margins_are_off_by_no_more_than_they_say(scale: float, d: int) -> None:
    """Also where sums cancel: columns in pairs, of which little is left."""
    generator = np.random.default_rng(7)
    half = generator.normal(size=d // 2 - 1) * scale
    point = snap_point(np.concatenate([half, [2.0**-30], -half, [2.0**-9]])[None, :])
    matrix = np.empty((40, d))
    matrix[:, : d // 2] = snapped(generator, (40, d // 2))
    matrix[:, d // 2 :] = matrix[:, : d // 2]
    matrix[20:, 1] += 2.0**-20  # half of the rows do not cancel
    rows = RegressionRows(matrix=matrix, targets=np.zeros(40))
    residual = residual_at(problem_of(rows, Huber(0.5)), point, nothing(d))
    exact = [line[0] for line in exact_margins(rows, point)]
    offs = [
        abs(Fraction(m) - t) for m, t in zip(residual.margins[:, 0].tolist(), exact, strict=True)
    ]
    assert max(offs) <= Fraction(residual.rounding)
    reach = Fraction(3, 2)  # of the ramp: |t - z| <= 1/2
    on = [off for off, t in zip(offs, exact, strict=True) if abs(t) <= reach]
    assert max(on, default=Fraction(0)) <= Fraction(residual.eta)


def linear_root(level: Fraction, weight: int, c: Fraction, penalty: Fraction, d: int) -> Fraction:
    """Solve ``weight clip(d y, -c, c) + penalty y + level = 0``: three pieces."""
    y = -level / (weight * d + penalty)
    if abs(d * y) <= c:
        return y
    return -(level + (weight * c if y > 0 else -weight * c)) / penalty


@pytest.mark.parametrize("d", [1, 2, 5])
def test_boxes_hold_roots_beyond_kinks(d: int) -> None:
    """Equal rows of ones: all leave the ramp together, and Newton's step is far too short."""
    generator = np.random.default_rng(d)
    c, inside = Fraction(1, 4), 0
    for trial in range(400):
        n = int(generator.integers(1, 60))
        penalty = float(2.0 ** generator.integers(-12, 4))
        rows = RegressionRows(matrix=np.ones((n, d)), targets=np.zeros(n))
        risk = Huber(c)
        # a level at which the root lies just on the ramp, or just off it, or anywhere
        edge = (n + penalty / d / 1.0) * 0.25
        away = float(generator.choice([2.0**-50, 2.0**-40, 2.0**-30, 2.0**-20, 2.0**-8, 0.5]))
        level = Fraction(-edge * (1.0 + away * generator.normal()))
        root = linear_root(level, n, c, Fraction(penalty), d)
        near = float(generator.choice([0.0, 2.0**-48, 2.0**-40, 2.0**-24, 2.0**-10]))
        point = snap_point(np.full((1, d), float(root) + near * generator.normal()))
        problem = problem_of(rows, risk, penalty)
        cell = Dyadics.of([level] * d)
        noise = DyadicBox(lower=cell.values, upper=cell.values, exponent=cell.exponent)
        stale = point[0, 0] + near * generator.normal()  # where the Hessian was taken
        hessian = Hessian.at(problem, np.full((n, 1), d * stale))
        solution = Solution(point=point, hessian=hessian)
        box = enclose(problem, solution, residual_at(problem, point, noise), Fraction(d))
        scaled = root * (1 << box.exponent)
        for low, high in zip(box.lower, box.upper, strict=True):
            assert low <= scaled <= high, (trial, n, penalty, away, near)
            inside += high - low < 2.0**-24 * (1 << box.exponent)
    assert inside > 200 * d  # and many of them are narrow


def near_of(
    n: int, weight: float, penalty: float, factor: float, heavy: bool, off: float = 0.0
) -> tuple[PerturbedProblem, NearInverse, Fraction]:
    """Return n rows of one, an inverse that is ``factor`` of the true one, and the Hessian."""
    rows = RegressionRows(matrix=np.ones((n, 1)), targets=np.zeros(n))
    problem = problem_of(rows, Huber(0.5), penalty)
    hessian = Fraction(n) * Fraction(weight) + Fraction(penalty)
    told = float(hessian) * (1.0 + off)
    inverse = np.array([[factor / told]])
    weights = (n / weight, n) if heavy else (0.0, 0)
    near = NearInverse.of(problem.summary, np.array([[told]]), inverse, weights)
    assert near is not None
    return problem, near, hessian


@pytest.mark.parametrize("factor", [0.6, 0.9, 1.0, 1.3])
def test_a_bad_inverse_is_charged_for(factor: float) -> None:
    problem, near, hessian = near_of(50, 1.0, 3.0, factor, heavy=True)
    inverse = Fraction(near.inverse[0, 0])
    assert abs(inverse * hessian - 1) <= Fraction(near.defect[0])
    assert 1 / hessian <= Fraction(near.lengths[0]) ** 2
    assert inverse**2 * hessian <= Fraction(near.lengths[0]) ** 2
    v = np.array([0.7])
    size = near.norm(problem.summary, plain(problem), v)
    assert Fraction(0.7) ** 2 / hessian <= Fraction(size) ** 2


def test_a_gram_matrix_of_floats_is_charged_for() -> None:
    """A matrix that is off by as much as many roundings, all one way, can bring about."""
    n = 1 << 14
    off = n * 2.0**-51
    _, near, hessian = near_of(n, 1.0, 2.0**-3, 1.0, heavy=True, off=off)
    assert abs(Fraction(near.inverse[0, 0]) * hessian - 1) > Fraction(off) / 2
    assert abs(Fraction(near.inverse[0, 0]) * hessian - 1) <= Fraction(near.defect[0])


def plain(problem: PerturbedProblem, **more: Any) -> Residual:
    zero, margins = Dyadics(values=[0], exponent=0), np.zeros((problem.rows.count, 1))
    told: dict[str, Any] = {"point": zero, "middle": zero, "margins": margins, "error": np.zeros(1)}
    return Residual(**told | more)


@pytest.mark.parametrize("heavy", [True, False])
@pytest.mark.parametrize("slack", ["eta", "beta", "error"])
def test_each_error_of_a_residual_widens_what_it_must(slack: str, heavy: bool) -> None:
    """The worst errors all point one way: what they do to coordinate and norm is known."""
    n, size = 80, 2.0**-30
    problem, near, hessian = near_of(n, 1.0, 0.5, 1.0, heavy=heavy)
    value: Any = np.array([size]) if slack == "error" else size
    residual = plain(problem, **{slack: value})
    worst = {"eta": n * size, "beta": n * size, "error": size}[slack]  # a = 1
    assert near.slack(problem.summary, residual, np.zeros(1))[0] >= worst / float(hessian)
    assert near.norm(problem.summary, residual, np.zeros(1)) >= worst / math.sqrt(hessian)
    assert residual.total_error(problem.summary)[0] >= worst


def test_rows_of_any_weight_change_a_hessian_by_what_they_may() -> None:
    problem, near, hessian = near_of(90, 1.0, 0.5, 1.0, heavy=True)
    loose = np.array([[7.0]])
    assert near.change(problem.summary, (0.25, loose)) >= 0.25 + float(7 / hessian)
    assert near.change(problem.summary, (0.25, None)) == 0.25
    assert Hessian(matrix=np.eye(1), weights=np.array([1.0, 0.25, 2.0**-9, 0.0])).heavy(
        Huber(0.5)
    ) == (5.0, 2)


@pytest.mark.parametrize("slack", ["eta", "beta", "error"])
def test_a_box_that_rests_on_the_penalty_holds_every_error(slack: str) -> None:
    """Rows that are all off their ramp: errors that point one way move the root by error/lambda."""
    n, size, penalty = 80, 2.0**-30, 0.5
    problem, _, _ = near_of(n, 1.0, penalty, 1.0, heavy=True)
    value: Any = np.array([size]) if slack == "error" else size
    box = enclose_in(
        problem.summary, None, plain(problem, **{slack: value}), ONE, lambda shift: (0.0, None)
    )
    worst = {"eta": n * size, "beta": n * size, "error": size}[slack] / penalty
    assert box.upper[0] >= worst * 2.0**box.exponent
    assert box.lower[0] <= -worst * 2.0**box.exponent


@pytest.mark.parametrize("change", [0.5, 0.7, 1.0, 1.2, 1.49, 40.0, math.inf, math.nan])
def test_a_box_rests_on_the_penalty_where_weights_may_halve(change: float) -> None:
    problem, near, _ = near_of(80, 1.0, 0.5, 1.0, heavy=True)
    residual = plain(problem, middle=Dyadics.of([0.25]))
    boxes = [
        enclose_in(problem.summary, one, residual, ONE, lambda shift: (change, None))
        for one in (near, None)
    ]
    assert boxes[0] == boxes[1]


def test_margins_of_rows_without_weight_move_by_all_they_can() -> None:
    """Heavy rows along (1, 1), a light one along (1, -1), where only the penalty holds the root."""
    penalty, n = 0.25, 1000
    matrix = np.full((2, 2), float(n)) + penalty * np.eye(2)
    frame = ProblemSummary(
        count=n,
        dimension=2,
        absolute_sums=np.full(2, float(n)),
        squared_sums=np.full(2, float(n)),
        risk=Huber(0.5),
        penalties=np.full(2, penalty),
    )
    near = NearInverse.of(frame, matrix, invert(matrix), (float(n), n))
    v = Dyadics.of([2.0**-20, -(2.0**-20)])
    zero = Dyadics(values=[0, 0], exponent=0)
    residual = Residual(point=zero, middle=v, error=np.zeros(2), margins=np.zeros((0, 1)))
    shifts: list[float] = []

    def change_of(shift: float) -> tuple[float, None]:
        shifts.append(shift)
        return 0.0, None

    box = enclose_in(frame, near, residual, Fraction(2), change_of)
    moved = 2.0 * 2.0**-20 / penalty  # of the light row: x.(y - yh) with y = -v/lambda
    assert len(shifts) == 3 and min(shifts) >= moved * (1.0 - 1e-12)
    root = Fraction(2) ** -20 / Fraction(penalty) * (1 << box.exponent)
    assert box.lower[0] <= -root <= box.upper[0] and box.lower[1] <= root <= box.upper[1]


@pytest.mark.parametrize("risk", [Logistic(), Huber(0.5)], ids=lambda risk: risk.name)
def test_weights_of_an_earlier_step_count_by_how_far_they_are_off(risk: Risk) -> None:
    """Rows of one column each: a loose one shows in the diagonal, the others keep to the factor."""
    n = 60
    generator = np.random.default_rng(6)
    rows = RegressionRows(matrix=np.eye(n), targets=np.ones(n))
    problem = problem_of(rows, risk)
    for away in (2.0**-30, 0.01, 0.3, 2.0):
        before = generator.normal(size=(n, 1))
        now = before + away * generator.normal(size=(n, 1))
        hessian = Hessian.at(problem, before)
        changes = hessian.weight_changes(problem, now)
        factor, loose = weight_change(problem, now, changes, 0.01)
        settled = np.ones(n, dtype=bool) if loose is None else np.diag(loose) == 0.0
        stored = hessian.weights
        for move in (-0.01, 0.0, 0.01):
            true = next(risk.curvature(now + move, rows.targets))[2]
            assert (np.abs(true - stored) <= factor * stored * (1.0 + 1e-9))[settled].all()
        assert factor < 0.55  # rows off by more than half are not in it


def second_derivatives(risk: Risk, margins: Any) -> Any:
    """Return ``d2 phi / dt_k^2`` for each k: a share times the other shares, none subtracted."""
    every = np.append(margins, 0.0) if risk.margins == 1 else margins
    shares = np.exp(every - every.max())
    shares /= shares.sum()
    others = [np.delete(shares, k).sum() for k in range(risk.margins)]
    return shares[: risk.margins] * others


@pytest.mark.parametrize("risk", [Logistic(), Softmax(2), Softmax(3), Softmax(7)])
def test_second_derivatives_change_by_no_more_than_they_say(risk: Risk) -> None:
    """Also where one share is nearly all: there the bound is attained."""
    generator = np.random.default_rng(3)
    worst = 0.0
    for shift in (2.0**-10, 0.1, 0.6):
        most = risk.relative_change(shift)
        for trial in range(60):
            size = (0.0, 3.0, 12.0)[trial % 3]
            margins = generator.normal(size=risk.margins) * size
            margins[0] += 12.0 * (trial % 2)
            for signs in itertools.islice(itertools.product((-1.0, 1.0), repeat=risk.margins), 16):
                there = second_derivatives(risk, margins + shift * np.array(signs))
                ratios = there / second_derivatives(risk, margins)
                assert ratios.max() - 1.0 <= most * (1.0 + 1e-9)
                assert 1.0 - ratios.min() <= most
                worst = max(worst, float(ratios.max() - 1.0) / most)
    assert worst > 0.9


@pytest.mark.parametrize(
    "risk",
    [Huber(0.5), Huber(3.0), SmoothedHinge(2.0**-6), SmoothedHinge(4.0), SmoothedPinball(0.2, 8.0)],
    ids=lambda risk: f"{risk.name} {float(risk.lipschitz):g}",
)
@pytest.mark.parametrize("shift", [2.0**-20, 2.0**-6, 0.3])
def test_rows_that_could_cross_a_kink_may_jump_and_no_others(risk: Any, shift: float) -> None:
    for target in (-1.0, 1.0):
        ends = [(end - risk.offset) / risk.slope for end in (risk.low, risk.high)]
        kinks = [(1.0 + end) * target if risk.labels else end + target for end in ends]
        steps = np.linspace(-3.0 * shift, 3.0 * shift, 97)
        margins = np.concatenate([kink + steps for kink in kinks])
        away = np.min([np.abs(margins - kink) for kink in kinks], axis=0)
        flagged = risk.may_jump(margins[:, None], np.full(len(margins), target), shift)
        assert flagged[away <= shift * (1.0 - 1e-9)].all()
        assert not flagged[away > shift * (1.0 + 1e-6)].any()


@pytest.mark.parametrize("risk", [Huber(0.3), SmoothedPinball(0.3, 0.25)], ids=lambda r: r.name)
@pytest.mark.parametrize("more", [4, 40, 120])
def test_precise_residuals_are_within_their_error_of_fractions(risk: Any, more: int) -> None:
    """The slow path against clips of fractions, at points of many digits, with noise in a cell."""
    generator = np.random.default_rng(more)
    n, d = 23, 3
    rows = prepare_rows(
        generator.uniform(-1, 1, (n, d)),
        generator.uniform(-1, 1, n),
        risk=risk,
        norms=RowNorms(squared=Fraction(2)),
    )
    values = [int(one) << more | 5 for one in generator.integers(-(2**47), 2**47, d)]
    point = Dyadics(values=values, exponent=46 + more)
    noise = DyadicBox(lower=[-7, 0, 3], upper=[-5, 1, 3], exponent=20)
    problem = problem_of(rows, risk, 0.75)
    found = precise_residual(problem, point, noise)
    y = [Fraction(value, 1 << point.exponent) for value in values]
    slope, offset = Fraction(risk.slope), Fraction(risk.offset)
    low, high = Fraction(risk.low), Fraction(risk.high)
    sums = [Fraction(3, 4) * one for one in y]
    largest = Fraction(0)
    for row, target in zip(rows.matrix.tolist(), rows.targets.tolist(), strict=True):
        margin = sum((Fraction(x) * one for x, one in zip(row, y, strict=True)), Fraction(0))
        slopes = min(high, max(low, slope * (margin - Fraction(target)) + offset))
        sums = [one + Fraction(x) * slopes for one, x in zip(sums, row, strict=True)]
    for j in range(d):
        ends = [Fraction(end, 1 << 20) for end in (noise.lower[j], noise.upper[j])]
        middle = Fraction(found.middle.values[j]) / Fraction(2) ** found.middle.exponent
        for b in ends:
            assert abs(sums[j] + b - middle) <= Fraction(found.error[j])
        largest = max(largest, abs(sums[j] + (ends[0] + ends[1]) / 2 - middle))
    assert largest > 0


def test_cells_of_a_lattice_end_half_a_step_from_its_points() -> None:
    """Every interval on a fine grid, by fractions: one cell, several, or one without an end."""
    lattice = Lattice(bits=1, reach_bits=1)  # multiples of 1/2 from -2 to 2
    for low, high in itertools.combinations_with_replacement(range(-44, 45), 2):  # sixteenths
        cells = {
            max(-4, min(4, math.floor(Fraction(end, 8) + Fraction(1, 2)))) for end in (low, high)
        }
        expected = [cells.pop()] if len(cells) == 1 else None
        assert lattice.cells_of(DyadicBox(lower=[low], upper=[high], exponent=4)) == expected


def test_dyadic_numbers_are_fractions() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        values = [int(one) for one in generator.integers(-999, 999, 3)]
        one = Dyadics(values=values, exponent=int(generator.integers(-4, 9)))
        two = Dyadics.of([0.75, -3.0, Fraction(5, 64)])
        left = [Fraction(value) / Fraction(2) ** one.exponent for value in one.values]
        right = [Fraction(3, 4), Fraction(-3), Fraction(5, 64)]
        added, multiplied = one.plus(two), one.times(two)
        for j in range(3):
            assert added.values[j] == (left[j] + right[j]) * 2**added.exponent
            assert multiplied.values[j] == left[j] * right[j] * Fraction(2) ** multiplied.exponent
            assert one.to_floats()[j] == left[j]
        for bits in (-2, 0, 3, 12):
            if bits >= one.exponent or bits >= 0:
                for value, exact in zip(one.rounded(bits).values, left, strict=True):
                    assert abs(value - exact * Fraction(2) ** bits) <= Fraction(1, 2)
                    assert value == math.floor(exact * Fraction(2) ** bits + Fraction(1, 2))
        cell = DyadicBox(lower=values, upper=[value + 7 for value in values], exponent=60)
        assert all(Fraction(one) >= Fraction(7, 1 << 61) for one in cell.radii().tolist())
        assert cell.middle().values == [2 * value + 7 for value in values]


def test_boxes_of_class_noise_hold_every_end_of_what_is_known() -> None:
    coins, generator = Coins(seeded_bits(4)), np.random.default_rng(4)
    for _ in range(30):
        noise = ClassNorm(coins, 3, 2, rate=Fraction(2))
        noise._shares.digits = noise._radii.digits = 4  # as if so few digits had been drawn
        noise._shares.lower[:] = generator.integers(0, 40, 8).tolist()
        noise._radii.lower[:] = generator.integers(0, 40, 7).tolist()
        cell = noise.box()
        for ends in itertools.product((0, 1), repeat=2):
            total = Fraction(sum(noise._radii.lower) + ends[0] * len(noise._radii.lower), 16)
            for place in range(6):
                column = noise._shares.lower[place % 2 :: 2]
                own = noise._shares.lower[2 + place] + ends[1]
                others = sum(column) - noise._shares.lower[2 + place] + (1 - ends[1]) * 3
                size = total * Fraction(own, max(own + others, 1))
                b = size if noise._positive[place] else -size
                scaled = b * (1 << cell.exponent)
                assert cell.lower[place] <= scaled <= cell.upper[place]


@pytest.mark.parametrize("kind", ["max", "sum", "class", "euclidean", "euclidean, even"])
def test_boxes_of_noise_shrink_and_stay_inside_each_other(kind: str) -> None:
    coins = Coins(seeded_bits(3))
    for _ in range(20):
        noise: Any
        if kind == "max":
            noise = ClassNorm(coins, 1, 3, rate=Fraction(1, 2))
        elif kind.startswith("euclidean"):
            noise = EuclideanNorm(coins, 4 if kind.endswith("even") else 3, rate=Fraction(1, 2))
        elif kind == "sum":
            noise = SumNorm(coins, 3, rate=Fraction(1, 2))
        else:
            noise = ClassNorm(coins, 3, 1, rate=Fraction(1, 2))
        before = noise.box()
        noise.reveal(coins)
        after = noise.box()
        for j in range(3):
            ends = (
                [Fraction(one.lower[j], 1 << one.exponent) for one in (before, after)],
                [Fraction(one.upper[j], 1 << one.exponent) for one in (before, after)],
            )
            assert ends[0][0] <= ends[0][1] < ends[1][1] <= ends[1][0]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_boxes_of_euclidean_noise_hold_every_end_of_what_is_known(size: int) -> None:
    coins, generator = Coins(seeded_bits(4)), np.random.default_rng(5)
    for _ in range(30):
        noise = EuclideanNorm(coins, size, rate=Fraction(2))
        points: Any = noise._points
        points._reals.digits = noise._scales.digits = 4  # as if so few digits had been drawn
        noise._lengths.digits = int(generator.integers(3, 5))
        points._reals.lower[:] = generator.integers(0, 12, len(points._reals.lower)).tolist()
        noise._scales.lower[:] = generator.integers(0, 40, len(noise._scales.lower)).tolist()
        noise._lengths.lower[:] = generator.integers(0, 40, len(noise._lengths.lower)).tolist()
        cell = noise.box()
        for _ in range(20):  # corners of what is left open, and points inside

            def more(numbers: list[int], digits: int) -> Any:
                inside = generator.choice([0.0, 0.5, 1.0], len(numbers))
                return (np.array(numbers) + inside) * 2.0**-digits

            disc = more(points._reals.lower, 4).reshape(-1, 2)
            unit = disc / np.maximum(np.sqrt((disc**2).sum(axis=1, keepdims=True)), 1e-300)
            scales, lengths = (
                more(noise._scales.lower, 4),
                more(noise._lengths.lower, noise._lengths.digits),
            )
            if size % 2 == 0:
                scales[-1] *= unit[-1, 1] ** 2
            b = (np.sqrt(scales.sum() * lengths)[:, None] * unit[: len(lengths)]).ravel()[:size]
            b = np.where(noise._positive, b, -b) * 2.0**cell.exponent
            slack = 1e-9 * 2.0**cell.exponent
            assert (np.array(cell.lower, dtype=float) <= b + slack).all()
            assert (b - slack <= np.array(cell.upper, dtype=float)).all()


def test_points_of_a_disc_are_decided_by_digits_and_uniform() -> None:
    """One digit a coordinate: three cells of four lie inside or on the edge, where more decide."""

    class Few(Coins):
        drawn = 0

        def integers_below(self, n: int, size: int) -> Any:
            Few.drawn += 1
            if Few.drawn == 1:  # u = v = sqrt(1/2), to so many digits: on the edge
                return np.full(size, math.isqrt((1 << 120) // 2))
            return super().integers_below(n, size)

    points = DiscPoints(Few(seeded_bits(1)), 3)
    assert points.digits > 60
    for j in range(3):
        u, v = points._reals.lower[2 * j : 2 * j + 2]
        assert (u + 1) ** 2 + (v + 1) ** 2 <= 1 << 2 * points.digits
