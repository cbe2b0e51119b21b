"""What a loss knows: one record, whose names and types are checked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.domains import Region
from expmech.losses.base import facts_of

BOX = em.Box([0.0], [1.0], bits=8)


class Distance:
    sensitivity: Any = 0.1

    def __call__(self, y: Any) -> Any:
        return np.abs(y[:, 0] - 0.3)


class Misspelt(Distance):
    lipshitz = (1.0,)


class OfTheDomain(Distance):
    def sensitivity(self, domain: em.Domain) -> Fraction:
        return Fraction(1, 10 * domain.dimension)

    def bound(self, domain: em.Domain) -> float:
        assert isinstance(domain, Region)
        return float(domain.upper[0])


class Knowing(Distance):
    def __init__(self, **facts: Any) -> None:
        self.known = facts

    def facts(self, domain: em.Domain) -> em.Facts:
        return em.Facts(**self.known)


class Confused(Distance):
    def facts(self, domain: em.Domain) -> Any:
        return {"sensitivity": 0.1}


def mechanism(loss: Any, **declared: Any) -> em.ExponentialMechanism:
    return em.ExponentialMechanism(loss=loss, domain=BOX, **declared)


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: mechanism(Misspelt()), ParameterError, "`lipshitz` of Misspelt .* `lipschitz`"),
    (lambda: mechanism(Distance(), lipshitz=[1.0]), ParameterError, "Did you mean `lipschitz`"),
    (lambda: mechanism(Distance(), grwoth=None), ParameterError, "Did you mean `growth`"),
    (lambda: mechanism(Knowing(sensitivty=1)), ParameterError, "Did you mean `sensitivity`"),
    (lambda: mechanism(Knowing(colour=1)), ParameterError, "The facts are sensitivity, adjacency"),
    (lambda: mechanism(Knowing(sensitivity="1")), ParameterTypeError, "must be a number; got str"),
    (lambda: mechanism(Knowing(growth=[1.0])), ParameterTypeError, "an expmech.Growth; got list"),
    (lambda: mechanism(Knowing(gradient=1.0)), ParameterTypeError, "must be a function; got float"),
    (lambda: mechanism(Knowing(convex=1)), ParameterTypeError, "must be True or False; got int"),
    (lambda: mechanism(Confused()), ParameterTypeError, "must return an expmech.Facts; got dict"),
    (lambda: mechanism(Distance(), gradient=3), ParameterTypeError, "must be a function; got int"),
]


@pytest.mark.parametrize(("make", "error", "words"), MISTAKES, ids=[m[2] for m in MISTAKES])
def test_a_misspelt_or_mistyped_fact_is_an_error_that_names_the_right_one(
    make: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()


def test_facts_are_attributes_or_methods_of_the_domain() -> None:
    certificate = mechanism(OfTheDomain()).certificate(epsilon=1.0)
    assert certificate.sensitivity == 0.1
    assert facts_of(OfTheDomain(), BOX).bound == 1.0
    assert facts_of(lambda y: y, BOX) == em.Facts()


def test_functions_are_declared_by_keyword_too() -> None:
    smooth = mechanism(
        lambda y: (y[:, 0] - 0.3) ** 2,
        sensitivity=0.1,
        bound=1.0,
        convex=True,
        gradient=lambda y: 2.0 * (y - 0.3),
    )
    certificate = smooth.certificate(epsilon=1.0, sampler=em.BoxTree())
    assert any("convex" in text for text in certificate.assumptions)
    assert abs(smooth.sample(epsilon=500.0, seed=1, sampler=em.BoxTree()).values[0, 0] - 0.3) < 0.2


def test_a_declared_fact_is_known_in_the_target() -> None:
    problem = mechanism(Distance(), lipschitz=[2.0]).target(epsilon=1.0).problem
    assert problem.lipschitz is not None and problem.lipschitz.tolist() == [2.0]
    assert problem.terms is None and problem.gradient is None
