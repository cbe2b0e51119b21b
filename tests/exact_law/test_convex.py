"""The convex envelope.

Laws by enumeration of the code as shipped, and the bounds its offset rests on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from support.convex import (
    LEFTOVER,
    NAT,
    THREE,
    Quadratic,
    accepted_law,
    distance,
    logistic,
    stated_law,
)
from support.problems import exact_law, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import EnumeratingCoins, law_of, total_variation
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.laws import draw_discrete_gaussian, gaussian_mass
from expmech.core.errors import EnvelopeViolatedError
from expmech.domains import Domain
from expmech.exponential.envelopes import convex
from expmech.exponential.envelopes.convex import BoundConvex
from expmech.exponential.envelopes.convex_bound import Shells, fit_shells, promise
from expmech.exponential.envelopes.convex_fit import fit_convex, margins
from expmech.exponential.envelopes.uniform import BoundUniform
from expmech.exponential.samplers.rejection import propose
from expmech.exponential.target import Target
from expmech.losses import Curvature

PROBLEMS: dict[str, tuple[Any, Domain, float]] = {
    "logistic on a ball": (THREE, em.L2Ball(1, 2.0, bits=3), 8.0),
    "logistic at the edge": (
        logistic([1.0, 1.0, 1.0], [1, 1, 1], penalty=0.0, radius=1.0),
        em.L2Ball(1, 1.0, bits=2),
        4.0,
    ),
    "logistic at the edge of a box": (THREE, em.Box([0.5], [2.0], bits=2), 8.0),
    "quadratic": (Quadratic([[1.5]], [0.3]), em.Box([-1.0], [1.0], bits=3), 4.0),
    "quadratic, tilted": (Quadratic([[1.5]], [-1.0], 0.5), em.Box([-1.0], [1.0], bits=2), 4.0),
    "two coordinates": (
        Quadratic([[1.5, 0.5], [0.0, 2.0]], [0.2, -0.3]),
        em.Box([-1.0, -1.0], [1.0, 1.0], bits=1),
        3.0,
    ),
}


@pytest.fixture(autouse=True)
def _gaussians_in_one_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerate a discrete Gaussian draw, whose law has a test below, by law in one branch.

    Fewer paths.
    """

    def draw(coins: Coins, slope: int, size: int, units: int = NAT) -> NDArray[np.int64]:
        if not isinstance(coins, EnumeratingCoins) or size == 0:
            return draw_discrete_gaussian(coins, slope, size, units)
        law = gaussian_law(slope * (NAT // units))
        probabilities = [mass for mass in law.values() if mass > 1e-10]
        values = [u for u, mass in law.items() if mass > 1e-10]
        return np.array([values[coins._branch(probabilities)] for _ in range(size)], dtype=np.int64)

    monkeypatch.setattr(convex, "draw_discrete_gaussian", draw)


def gaussian_law(slope: int) -> dict[int, float]:
    most = 8 + math.isqrt(60 * NAT // slope)
    weights = np.exp(-slope / NAT * np.arange(-most, most + 1) ** 2)
    return dict(zip(range(-most, most + 1), (weights / weights.sum()).tolist(), strict=True))


def tiny(
    name: str,
    *,
    slack: float = 1.0,
    digits: int = 1,
    tilted: bool = False,
    bound: float = 100.0,
) -> tuple[Any, Target]:
    """Return an envelope with a coarse grid that reveals few digits at a time.

    Fitted even if uniform proposals are fewer.
    """
    loss, domain, epsilon = PROBLEMS[name]
    sensitivity = None if isinstance(loss, em.losses.LogisticRisk) else 1
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=sensitivity, domain=domain, bound=bound
    )
    target = mechanism.target(epsilon=epsilon)
    box = domain if isinstance(domain, em.Box) else domain.cube  # type: ignore[attr-defined]
    curvature = target.problem.curvature
    assert curvature is not None
    promised = promise(curvature, domain, target, tilted=tilted)  # type: ignore[arg-type]
    fitted = fit_convex(promised, box, Fraction(slack), target.units_per_nat)
    assert fitted is not None and (fitted.tilt is not None) == tilted
    return (
        BoundConvex(
            map=fitted.map,
            shells=fitted.shells,
            offset=fitted.offset,
            tilt=fitted.tilt,
            points_per_axis=box.points_per_axis,
            digits=digits,
        ),
        target,
    )


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "two coordinates"])
def test_accepted_points_have_the_law_of_the_mechanism(name: str) -> None:
    envelope, target = tiny(name)
    truth = stated_law(envelope, target)
    assert distance(accepted_law(envelope, target), truth) <= LEFTOVER / sum(truth.values())


@pytest.mark.parametrize("name", ["logistic on a ball", "quadratic"])
def test_law_does_not_depend_on_the_unit(name: str) -> None:
    envelope, target = tiny(name, bound=2.0**31)
    assert target.units_per_nat <= 1 << 30
    truth = stated_law(envelope, target)
    assert distance(accepted_law(envelope, target), truth) <= LEFTOVER / sum(truth.values())


def test_law_of_a_tilted_proposal_does_not_depend_on_the_unit() -> None:
    envelope, target = tiny("quadratic, tilted", tilted=True, slack=0.25, digits=2, bound=2.0**31)
    assert target.units_per_nat <= 1 << 30
    truth = stated_law(envelope, target)
    law = accepted_law(envelope, target, cut=1e-7, most=1e-5)
    assert distance(law, truth) <= 1e-5 / sum(truth.values()) <= 1e-3


@pytest.mark.parametrize(
    "name", ["logistic at the edge", "logistic at the edge of a box", "quadratic, tilted"]
)
def test_accepted_points_of_a_tilted_proposal_have_the_law_of_the_mechanism(name: str) -> None:
    envelope, target = tiny(name, tilted=True, slack=0.25, digits=2)
    truth = stated_law(envelope, target)
    assert (
        distance(accepted_law(envelope, target, cut=1e-7, most=1e-5), truth)
        <= 1e-5 / sum(truth.values())
        <= 1e-3
    )


def test_a_tilt_that_starts_too_late_misses_points() -> None:
    envelope, target = tiny("quadratic, tilted", tilted=True, slack=0.25, digits=2)
    late = tuple(
        one + 2 * row[0]
        for one, row in zip(envelope.map.shift, envelope.map.transform, strict=True)
    )
    wrong = dataclasses.replace(
        envelope,
        map=dataclasses.replace(envelope.map, shift=late),
        offset=2 * NAT + envelope.offset,
    )
    assert (
        distance(accepted_law(wrong, target, cut=1e-7, most=1e-5), stated_law(wrong, target)) > 0.01
    )


@pytest.mark.parametrize(("slack", "digits"), [(0.5, 2), (2.0, 3)])
def test_law_does_not_depend_on_digits_or_grid(slack: float, digits: int) -> None:
    envelope, target = tiny("logistic on a ball", slack=slack, digits=digits)
    truth = stated_law(envelope, target)
    assert distance(accepted_law(envelope, target), truth) <= LEFTOVER / sum(truth.values())


def split(envelope: BoundConvex, edges: list[int], lower: list[int]) -> BoundConvex:
    """Return the envelope with one more edge for every entry.

    Its energies lowered there and its slopes halved.
    """
    old = envelope.shells
    return dataclasses.replace(
        envelope,
        shells=Shells(
            edges=(*edges, old.edges[-1]),
            heights=tuple(old.heights[0] - one for one in lower),
            slopes=tuple(max(1, old.slopes[0] >> k) for k in range(len(edges))),
        ),
    )


def test_law_does_not_depend_on_the_shells() -> None:
    envelope, target = tiny("quadratic")
    assert len(envelope.shells.slopes) == 1
    for other in (split(envelope, [0, 2], [0, 0]), split(envelope, [0, 1, 5], [NAT // 3, 0, NAT])):
        assert distance(accepted_law(other, target), stated_law(other, target)) <= 1e-4


class KeptEverywhere(BoundConvex):
    """A mutant: what a shell's Gaussian draws is kept in every shell."""

    def _propose_steps(self, coins: Coins, size: int) -> Any:
        steps, energies, kept = super()._propose_steps(coins, size)
        return steps, energies, np.ones_like(kept)


def test_keeping_draws_outside_their_shell_is_rejected() -> None:
    envelope, target = tiny("quadratic")
    other = split(envelope, [0, 2], [0, 0])
    wrong = KeptEverywhere(
        **{field.name: getattr(other, field.name) for field in dataclasses.fields(other)}
    )
    law = accepted_law(wrong, target)
    total = sum(law.values())
    assert total_variation({k: v / total for k, v in law.items()}, exact_law(target)) > 0.01


def test_rejection_from_the_convex_envelope_releases_f() -> None:
    envelope, target = tiny("quadratic")
    chain = dataclasses.replace(
        em.Rejection(em.Convex(), batch=1).prepare(target), envelope=envelope
    )
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER, cut=1e-11, ignore=1e-10)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER


@pytest.mark.parametrize(
    ("name", "tilted"),
    [
        ("quadratic", False),
        ("quadratic, tilted", True),
        ("two coordinates", False),
        ("logistic on a ball", False),
    ],
)
def test_a_smaller_offset_is_violated(name: str, tilted: bool) -> None:
    envelope, target = tiny(name, tilted=tilted)
    propose(target, envelope, Coins(seeded_bits(1)), 20_000)
    base = -promise(target.problem.curvature, target.domain, target, tilted=tilted).base  # type: ignore[arg-type]
    wrong = dataclasses.replace(
        envelope, offset=int(base * NAT) - NAT // 8
    )  # what the grids cost is dropped, and a little more
    with pytest.raises(EnvelopeViolatedError):
        propose(target, wrong, Coins(seeded_bits(1)), 20_000)


class _RefusedError(Exception):
    """The first proposal was not accepted."""


@pytest.mark.parametrize("slope", [NAT // 99, NAT // 2, NAT, 3 * NAT, 7 * NAT])
def test_discrete_gaussian_has_its_law(slope: int) -> None:
    def first(coins: Coins) -> Hashable:
        once = iter([coins.discrete_laplace])

        def propose_once(rate: Fraction, size: int) -> NDArray[np.int64]:
            for method in once:
                return method(rate, size)
            raise _RefusedError

        coins.discrete_laplace = propose_once  # type: ignore[method-assign]
        try:
            return int(draw_discrete_gaussian(coins, slope, 1)[0])
        except _RefusedError:
            return None

    law, leftover = law_of(first, cut=1e-13)
    refused = law.pop(None)
    assert leftover <= LEFTOVER and refused < 0.5
    truth: dict[Hashable, float] = {
        u: mass * (1.0 - refused) for u, mass in gaussian_law(slope).items()
    }
    assert total_variation(law, truth) <= LEFTOVER


@pytest.mark.parametrize("slope", [1 << 20, NAT, 3 * NAT, 3 * NAT + 1, 40 * NAT])
@pytest.mark.parametrize("precision", [64, 400])
def test_gaussian_mass_is_the_sum(slope: int, precision: int) -> None:
    with flint.ctx.workprec(precision + 100):
        rate = flint.arb(flint.fmpq(slope, NAT))
        most = math.isqrt((precision + 60) * NAT // slope) + 2
        if most > 20_000:
            most = math.isqrt(120 * NAT // slope)
        total = 1 + 2 * sum(((-rate * u**2).exp() for u in range(1, most)), flint.arb(0))
        ball = gaussian_mass(slope, precision)
        assert abs(ball.mid() - total.mid()) <= ball.rad() + flint.arb(2) ** -(min(precision, 100))
        assert ball.rad() <= ball.mid() * flint.arb(2) ** -precision


def test_shells_lie_below_the_rise_and_the_top() -> None:
    scale, last, top = flint.fmpq(1, 400), 1 << 24, 1 << 47
    for squared_skew in (flint.fmpq(0), flint.fmpq(1, 1 << 40), flint.fmpq(1, 50), flint.fmpq(3)):
        shells = fit_shells(scale=scale, squared_skew=squared_skew, last=last, top=top, dimension=4)
        assert shells is not None and shells.edges[0] == 0 and shells.edges[-1] == last
        skew = math.sqrt(int(squared_skew.p) / int(squared_skew.q))
        touched = 0
        for k, (height, slope) in enumerate(zip(shells.heights, shells.slopes, strict=True)):
            for square in np.unique(
                np.linspace(shells.edges[k], shells.edges[k + 1] - 1, 50).astype(np.int64)
            ).tolist():
                x = flint.arb(skew * math.sqrt(square / 400.0))
                with flint.ctx.workprec(200):
                    rise = float(((-x).exp() + x - 1) / skew**2) if skew else square / 800.0
                energy = (height + slope * square) / NAT
                assert energy <= min(rise * (1 + 1e-9), top / NAT)
                touched += energy > 0.99 * rise - 1e-6
        assert touched > 5


def saturating(scale: float) -> tuple[Any, Target]:
    loss = Quadratic([[scale]], [0.2])
    mechanism = em.ExponentialMechanism(
        loss=loss, sensitivity=1, domain=em.Box([-1.0], [1.0], bits=24)
    )
    chain, target = prepared(mechanism, em.Rejection(em.Convex()), epsilon=4.0)
    return chain.envelope, target


def test_saturated_energies_stay_above_the_envelope() -> None:
    envelope, target = saturating(3.0e3)
    assert isinstance(envelope, BoundConvex)
    indices = np.linspace(0, (1 << 24) - 1, 3001).astype(np.int64)[:, None]
    assert target.energy(indices).max() == 1 << 60
    entry, shift, scale = (
        envelope.map.transform[0][0],
        envelope.map.shift[0],
        1 << envelope.map.exponent,
    )
    tops = []
    for (index,), energy in zip(indices.tolist(), target.energy(indices).tolist(), strict=True):
        for edge in (index, index + 1):  # the ends of the cell of u that reaches the point
            square = math.floor(abs(Fraction(edge * scale - shift, entry))) ** 2
            shell = int(np.searchsorted(envelope.shells.edges, square, side="right")) - 1
            tops.append(envelope.shells.heights[shell] + envelope.shells.slopes[shell] * square)
            assert tops[-1] <= energy + envelope.offset
    assert max(tops) > 1 << 59  # the shells do bend: the quadratic alone would pass the cap


def test_without_curvature_proposals_are_uniform() -> None:
    flat = logistic(np.zeros((3, 2)), [0, 1, 1], penalty=0.0)
    degenerate = Quadratic([[0.0]], [0.1])
    for loss, domain, sensitivity in (
        (flat, em.Box([-1.0, -1.0], [1.0, 1.0], bits=1), None),
        (degenerate, em.Box([-1.0], [1.0], bits=2), 1),
    ):
        mechanism = em.ExponentialMechanism(
            loss=loss, sensitivity=sensitivity, domain=domain, bound=100.0
        )
        chain, target = prepared(mechanism, em.Rejection(em.Convex(), batch=1))
        assert isinstance(chain.envelope, BoundUniform)
        law = accepted_law(chain.envelope, target)
        total = sum(law.values())
        assert (
            total_variation({k: v / total for k, v in law.items()}, exact_law(target)) <= LEFTOVER
        )


def test_convex_refuses_what_it_cannot_serve() -> None:
    plain = em.ExponentialMechanism(
        loss=lambda y: y[:, 0] ** 2, sensitivity=1, domain=em.Box([0.0], [1.0]), bound=1.0
    )
    for envelope in (em.Convex(), em.Tangent()):
        with pytest.raises(em.UnsupportedError, match="needs a loss"):
            plain.sample(epsilon=1.0, sampler=em.Rejection(envelope), seed=1)
    ball = em.ExponentialMechanism(loss=THREE, domain=em.L2Ball(1, 2.0))
    with pytest.raises(em.UnsupportedError, match="needs a Box"):
        ball.sample(epsilon=1.0, sampler=em.Rejection(em.Tangent()), seed=1)
    for wrong in (dataclasses.replace(Quadratic([[1.0]], [0.0]).curvature, skew=-1.0), object()):
        loss = Quadratic([[1.0]], [0.0])
        loss.curvature = wrong  # type: ignore[assignment]
        mechanism = em.ExponentialMechanism(
            loss=loss, sensitivity=1, domain=em.Box([0.0], [1.0]), bound=1.0
        )
        with pytest.raises(em.ExpmechError, match="curvature"):
            mechanism.sample(epsilon=1.0, sampler=em.Rejection(em.Convex()), seed=1)


class Tight:
    """A loss that equals what its curvature promises.

    With a gradient that pushes against the sphere.
    """

    minimum = -100.0

    def __init__(self) -> None:
        center = np.array([1.0, 0.0])
        self.curvature = Curvature(
            center=center, value=0.0, gradient=-3.0 * center, hessian=2.0 * np.eye(2), skew=2.5
        )

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        away = y - self.curvature.center
        x = 2.5 * np.sqrt(2.0 * (away**2).sum(axis=1))
        return np.asarray(away @ self.curvature.gradient + (np.expm1(-x) + x) / 2.5**2)


@pytest.mark.parametrize("tilted", [False, True])
def test_energies_keep_the_promise_that_a_binding_ball_makes(tilted: bool) -> None:
    mechanism = em.ExponentialMechanism(
        loss=Tight(), sensitivity=1, domain=em.L2Ball(2, 1.0), bound=100.0
    )
    target = mechanism.target(epsilon=2.0)
    curvature = target.problem.curvature
    assert curvature is not None
    angles, radii = np.linspace(-math.pi, math.pi, 400), np.array([0.3, 0.9, 1.0 - 1e-9])
    points = np.concatenate(
        [radius * np.column_stack([np.cos(angles), np.sin(angles)]) for radius in radii]
    )
    bound = promise(curvature, target.domain, target, tilted=tilted)  # type: ignore[arg-type]
    away = points - curvature.center
    matrix = np.array([[int(one.p) / int(one.q) for one in row] for row in bound.matrix.tolist()])
    skew = math.sqrt(int(bound.squared_skew.p) / int(bound.squared_skew.q))
    x = skew * np.sqrt(np.einsum("ij,jk,ik->i", away, matrix, away))
    slope = away @ np.array([int(one.p) / int(one.q) for one in bound.tilt])
    excess = (
        target.energy_of_points(points) / target.units_per_nat
        - int(bound.base.p) / int(bound.base.q)
        - slope
        - (np.expm1(-x) + x) / skew**2
    )
    assert slope.min() >= int(bound.least.p) / int(bound.least.q) - 1e-12
    assert -1e-6 <= excess.min() <= 0.1
    if not tilted:  # on the sphere the bound is so close that less skew would break it
        less = 0.5 * x
        lower = excess + (np.expm1(-x) + x) / skew**2 - (np.expm1(-less) + less) / (0.5 * skew) ** 2
        assert lower.min() < -0.01


def test_margins_lie_below_the_eigenvalues() -> None:
    assert margins(flint.fmpq_mat(2, 2, [3, 1, 1, 2])) == [2, 1]
    assert min(margins(flint.fmpq_mat(2, 2, [1, 2, 2, 1]))) < 0


@pytest.mark.parametrize("envelope", [em.Convex(), em.Tangent()], ids=["convex", "tangent"])
def test_certificates_name_the_envelope_and_nothing_of_the_data(
    envelope: em.Convex | em.Tangent,
) -> None:
    mechanism = em.ExponentialMechanism(loss=THREE, domain=em.Box([-1.0], [1.0], bits=8))
    sampler = mechanism.release(epsilon=1.0, sampler=em.Rejection(envelope)).certificate.sampler
    assert sampler == {"sampler": "Rejection", "envelope": envelope.name}
