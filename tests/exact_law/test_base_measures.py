"""A public base measure: the law as shipped, what each sampler says of itself, and neighbours."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Hashable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import domains_of_every_kind, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point, law_after
from expmech.auditing.enumeration import largest_log_ratio, total_variation
from expmech.exponential.samplers import Sampler
from expmech.exponential.samplers.box_tree import BoxTreeChain
from expmech.exponential.samplers.separable import SeparableTreeChain
from expmech.exponential.target import Target
from expmech.ledger.verification import verify_certificate

ROWS = [0.1, 0.3, 0.35, 0.9]
LEFTOVER = 1e-6
EPSILON = 1.5
Law = dict[Hashable, float]


@pytest.fixture(autouse=True)
def _refine_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember refinements, so that equal states of a chain are the same objects and merge."""
    monkeypatch.setattr(BoxTreeChain, "refine", functools.cache(BoxTreeChain.refine))


def prior(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """A log-density with its most likely point far from the data."""
    return np.asarray(-2.0 * np.abs(y[:, 0] - 0.8))


def prior_terms(_: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-2.0 * np.abs(values - 0.8))


def kept(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same without the points above 3/4."""
    return np.where(y[:, 0] > 0.75, -np.inf, prior(y))


BASES = {
    "a function": prior,
    "Lipschitz": em.BaseMeasure(prior, lipschitz=[2.0], terms=prior_terms),
    "sum over coordinates": em.BaseMeasure(prior, terms=prior_terms, least=-2.0),
}
EXCLUDING = em.BaseMeasure(kept, excludes=True)


class Distance:
    """``L(y) = |y - mean|`` as a plain loss that knows it is a sum and grows, or that it is not."""

    def __init__(self, rows: list[float], *, growing: bool = True) -> None:
        self.mean = float(np.mean(rows))
        if growing:
            self.growth = em.Growth(center=np.array([self.mean]), rates=np.ones(1))

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        if (y[:, 0] > 0.75).any() and self.refuses:
            return np.full(len(y), np.inf)
        return np.abs(y[:, 0] - self.mean)

    refuses = False

    def terms(self, _: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(values - self.mean)


class Undefined(Distance):
    """The same, infinite where the base excludes: it must never be evaluated there."""

    refuses = True


def mechanism(
    rows: list[float], base: Any, *, bits: int = 2, loss: type[Distance] = Distance, **more: Any
) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(
        loss=loss(rows, **more),
        sensitivity=Fraction(1, len(rows)),
        domain=em.Box([0.0], [1.0], bits=bits),
        lipschitz=[1.0],
        gap=1 / (1 << bits),
        base=base,
    )


def expected(target: Target, rows: list[float], density: Any = prior) -> Law:
    """The law of the definition, density times exp(-eta L), from nothing that the code rounds."""
    indices = target.domain.all_indices(64)
    assert indices is not None
    points = target.domain.points(indices)
    logs = density(points) - target.eta * np.abs(points[:, 0] - np.mean(rows))
    weights = np.exp(logs - logs.max())
    law = zip(map(tuple, indices.tolist()), (weights / weights.sum()).tolist(), strict=True)
    return {point: probability for point, probability in law if probability > 0.0}


SAMPLERS: dict[str, Sampler] = {
    "rejection, Laplace": em.Rejection(em.ProductLaplace(), batch=1),
    "rejection, uniform": em.Rejection(em.Uniform(), batch=1),
    "tabulated": em.Tabulated(),
    "tabulated, constant": em.ConstantTabulated(),
    "box tree": em.BoxTree(batch=1),
    "atom, Laplace": em.ConfAtomPerfect(0.5),
    "atom, uniform": em.ConfAtomPerfect(0.6, proposal="uniform"),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_law_is_density_times_exponential_mechanism(name: str, base: str) -> None:
    chain, target = prepared(mechanism(ROWS, BASES[base]), SAMPLERS[name])
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, expected(target, ROWS)) <= LEFTOVER


@pytest.mark.parametrize("growing", [True, False])
def test_a_sum_is_drawn_by_coordinates_under_a_sum(growing: bool) -> None:
    many = mechanism(ROWS, BASES["Lipschitz"], growing=growing)
    chain, target = prepared(many, em.Separable())
    if isinstance(chain, SeparableTreeChain):  # one cell and one point at a time: fewer paths
        one = dataclasses.replace(chain.chains[0], batch=1)
        chain = dataclasses.replace(chain, chains=(one,))
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert total_variation(enumerated.law, expected(target, ROWS)) <= LEFTOVER


def test_intervals_are_bounded_with_the_slopes_of_the_base() -> None:
    steep = em.BaseMeasure(
        lambda y: -30.0 * np.abs(y[:, 0] - 0.1),
        lipschitz=[30.0],
        terms=lambda _, values: -30.0 * np.abs(values - 0.1),
    )
    for sampler in (em.Separable(), em.BoxTree()):
        many = mechanism(ROWS, steep, bits=20, growing=False)
        drawn = many.sample(epsilon=1.0, size=500, sampler=sampler, seed=1)
        assert abs(float(np.median(drawn.values)) - 0.1) < 0.02


@pytest.mark.parametrize(
    "name", ["rejection, Laplace", "rejection, uniform", "tabulated", "atom, uniform"]
)
def test_excluded_points_are_never_drawn_nor_evaluated(name: str) -> None:
    chain, target = prepared(mechanism(ROWS, EXCLUDING, loss=Undefined), SAMPLERS[name])
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    truth = expected(target, ROWS, kept)
    assert set(enumerated.law) == set(truth) == {(0,), (1,), (2,)}
    assert total_variation(enumerated.law, truth) <= LEFTOVER


@pytest.mark.parametrize(("base", "density"), [(prior, prior), (EXCLUDING, kept)])
def test_a_constant_number_of_rounds_or_steps_stays_within_its_reserve(
    base: Any, density: Any
) -> None:
    loss = Undefined if density is kept else Distance
    for sampler in (em.ConfAtomAndRuntimePerfect("constant"), em.Metropolis(pure=True)):
        chain, target = prepared(mechanism(ROWS, base, loss=loss), sampler)
        if isinstance(sampler, em.ConfAtomAndRuntimePerfect):
            chain, steps = dataclasses.replace(chain, lot=1), chain.rounds
        else:
            steps = chain.steps
        enumerated = law_after(chain, steps, lattice_point)
        truth = expected(target, ROWS, density)
        assert set(enumerated) == set(truth)
        ratios = [math.log(enumerated[point] / truth[point]) for point in truth]
        assert max(ratios) - min(ratios) <= float(sampler.reserve(Fraction(1))) + 1e-9


def test_public_points_carry_the_density_too() -> None:
    sampler = em.RandomAtomPerfect([[0.3], [0.7]], 0.4)
    chain, target = prepared(mechanism(ROWS, prior), sampler)

    def outcome(state: Any) -> Hashable:
        return ("point", int(state.chosen[0])) if state.chosen[0] >= 0 else lattice_point(state)

    enumerated = ChainLaw(chain, outcome, leftover=LEFTOVER).law
    points = np.array([[0.3], [0.7]])
    tau = 0.4 / 0.6 * 4 / 2
    logs = prior(points) - target.eta * np.abs(points[:, 0] - np.mean(ROWS))
    cells = target.domain.points(target.domain.all_indices(8))  # type: ignore[arg-type]
    lattice = np.exp(prior(cells) - target.eta * np.abs(cells[:, 0] - np.mean(ROWS)))
    total = lattice.sum() + tau * np.exp(logs).sum()
    for j in range(2):
        assert enumerated["point", j] == pytest.approx(tau * math.exp(logs[j]) / total, abs=1e-5)


def law_by(sampler: Sampler, base: Any) -> Any:
    @functools.cache
    def law(rows: tuple[float, ...]) -> Law:
        chain, _ = prepared(mechanism(list(rows), base), sampler, epsilon=EPSILON)
        return ChainLaw(chain, lattice_point, leftover=1e-7).law

    return law


@pytest.mark.parametrize("base", [prior, BASES["Lipschitz"], EXCLUDING])
@pytest.mark.parametrize("name", ["rejection, Laplace", "tabulated", "box tree", "atom, uniform"])
def test_a_base_costs_no_epsilon_over_all_neighbours(name: str, base: Any) -> None:
    if name == "box tree" and base is EXCLUDING:
        with pytest.raises(em.UnsupportedError):
            mechanism([0.0, 0.5], base).certificate(epsilon=EPSILON, sampler=SAMPLERS[name])
        return
    law = law_by(SAMPLERS[name], base)
    worst = max(
        largest_log_ratio(law(one), law(other)) for one, other in neighbours((0.0, 0.5, 1.0), 2)
    )
    assert EPSILON / 4 < worst <= EPSILON


def counts_of(rows: tuple[float, ...]) -> em.ExponentialMechanism:
    """Minus a count, with which rows may also be added and removed."""
    values = np.array(rows)
    return em.ExponentialMechanism(
        loss=lambda y: -np.array([float((values <= at).sum()) for at in y[:, 0]]),
        sensitivity=1,
        domain=em.Box([0.0], [1.0], bits=2),
        minimum=-4.0,
        bound=0.0,
        adjacency="add-remove",
        base=prior,
    )


def longer() -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    whole = (0.1, 0.4, 0.4, 0.9)
    yield from pairwise([whole[:k] for k in range(len(whole) + 1)])


def test_a_base_costs_no_epsilon_where_rows_are_added_and_removed() -> None:
    for fewer, more in longer():
        laws = [dict(enumerate(counts_of(rows).law(epsilon=1.0)[1])) for rows in (fewer, more)]
        assert largest_log_ratio(*laws) <= 1.0  # type: ignore[arg-type]


def test_auto_takes_what_is_valid_and_the_rest_refuses_with_a_reason() -> None:
    plan = mechanism(ROWS, EXCLUDING, bits=12).plan(1.0)
    reasons = {option.name: option.reason for option in plan.options}
    assert plan.chosen is not None
    assert "may exclude" in str(reasons["BoxTree"])
    assert "terms(coordinates, values)" in str(reasons["Separable"])
    with pytest.raises(em.UnsupportedError, match="may exclude"):
        mechanism(ROWS, EXCLUDING).release(epsilon=1.0, sampler="BoxTree")

    class Patient(Sampler):
        def prepare(self, target: Target) -> Any:
            raise NotImplementedError

    with pytest.raises(em.UnsupportedError, match="Patient does not say"):
        mechanism(ROWS, prior).certificate(epsilon=1.0, sampler=Patient())


def test_a_large_lattice_follows_a_lipschitz_prior_in_few_proposals() -> None:
    drawn = mechanism(ROWS, BASES["Lipschitz"], bits=32).sample(epsilon=1.0, size=400, seed=1)
    assert drawn.proposals.mean() < 4.0


def test_certificates_name_the_base_and_are_verified_with_it() -> None:
    base = em.BaseMeasure(prior, name="toward 0.8", lipschitz=[2.0])
    certificate = mechanism(ROWS, base).certificate(epsilon=1.0)
    assert certificate.domain["base"]["name"] == "toward 0.8"
    assert all(check.holds for check in verify_certificate(certificate, base=base))
    other = em.BaseMeasure(kept, name="toward 0.8", lipschitz=[2.0], excludes=True)
    assert not all(check.holds for check in verify_certificate(certificate, base=other))
    told = certificate.domain["base"]
    without = {name: value for name, value in told.items() if name != "lipschitz"}
    for new in (told | {"most": -9.0, "least": 0.0}, without | {"was": told["lipschitz"]}):
        altered = dataclasses.replace(certificate, domain=certificate.domain | {"base": new})
        assert not all(check.holds for check in verify_certificate(altered)), new


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: mechanism(ROWS, lambda y: y[:, 0] + 1.0), "from `least` to `most`"),
        (lambda: mechanism(ROWS, kept), "excludes=True"),
        (lambda: mechanism(ROWS, lambda y: np.full(len(y), np.nan)), "must return one float64"),
        (lambda: mechanism(ROWS, lambda y: y[:, 0] - y[:, 0].max()), "in any batch"),
        (lambda: mechanism(ROWS, "flat"), "must be a function"),
        (lambda: em.BaseMeasure(prior, most=0.0, least=1.0), "at most `most`"),
        (lambda: em.BaseMeasure(prior, terms=prior_terms, excludes=True), "none excludes"),
        (lambda: mechanism(ROWS, em.BaseMeasure(prior, lipschitz=[-1.0])), "not be negative"),
        (lambda: mechanism(ROWS, em.BaseMeasure(prior, lipschitz=[1.0, 1.0])), "lipschitz"),
        (lambda: mechanism(ROWS, None, loss=Undefined), "no finite sensitivity"),
        (
            lambda: mechanism(
                ROWS, em.BaseMeasure(lambda y: np.full(len(y), -np.inf), excludes=True)
            ).plan(1.0),
            "excludes all",
        ),
    ],
)
def test_wrong_bases_are_refused_with_what_would_help(make: Any, match: str) -> None:
    with pytest.raises(em.ExpmechError, match=match):
        make()


@pytest.mark.parametrize("domain", domains_of_every_kind(), ids=lambda one: type(one).__name__)
def test_every_domain_draws_public_points(domain: em.Domain) -> None:
    values = domain.sample(20, seed=3)
    assert len(values) == 20
    assert np.array_equal(values, domain.sample(20, seed=3))
    assert not np.array_equal(values, domain.sample(20, seed=4))
    listed = domain.values(domain.all_indices(100)).tolist()  # type: ignore[arg-type]
    assert all(value in listed for value in values.tolist())
