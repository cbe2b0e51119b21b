"""No record occurs in an error: not in its message, its arguments, nor in what it was raised from.

Every public constructor that takes confidential numbers is given one record that is none.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import expmech as em
from expmech import estimators, losses
from expmech.core.errors import ExpmechError
from expmech.mechanisms.optimum import risks


class Patient:
    """An object whose own words are a record."""

    def __repr__(self) -> str:
        return "secret-diagnosis"


RECORDS: dict[str, Any] = {
    "text": "secret-diagnosis",
    "bytes": b"secret-diagnosis",
    "a number beyond floats": 10**400 + 12345678987654321,
    "complex": complex(12345678987654321.0, 1.0),
    "a signaling nan": Decimal("sNaN12345678987654321"),
    "a lone surrogate": "secret\udc80",
    "an object": Patient(),
    "a list": [1.0, "secret-diagnosis"],
    "a mapping": {"secret-diagnosis": 1},
}
TRACES = ("secret", "12345678987654", "1.2345678")


def column(record: Any) -> list[Any]:
    return [0.5, 0.25, record, 0.75]


def table(record: Any) -> list[list[Any]]:
    return [[1.0, 0.5], [1.0, record], [1.0, 0.25], [0.5, 0.5]]


def as_objects(values: list[Any]) -> Any:
    """Return an array of objects, as a column of a frame is."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


FEATURES, LABELS = [[1.0, 0.5]] * 4, [0, 1, 1, 0]
Taker = Callable[[Any], Any]
TAKERS: dict[str, Taker] = {
    "PerturbedOptimum features": lambda r: em.PerturbedOptimum(risks.Logistic(), table(r), LABELS),
    "PerturbedOptimum targets": lambda r: em.PerturbedOptimum(
        risks.Logistic(), FEATURES, column(r)
    ),
    "PerturbedOptimum objects": lambda r: em.PerturbedOptimum(
        risks.Huber(0.5), FEATURES, as_objects(column(r))
    ),
    "PerturbedOptimum classes": lambda r: em.PerturbedOptimum(
        risks.Softmax(3), FEATURES, column(r)
    ),
    "PerturbedOptimum counts": lambda r: em.PerturbedOptimum(
        risks.Huber(0.5), FEATURES, LABELS, counts=column(r)
    ),
    "L1Mean": lambda r: losses.L1Mean([[one] for one in column(r)]),
    "Quantile": lambda r: losses.Quantile(column(r), q=0.5, lower=0.0, upper=1.0),
    "RidgeGradient features": lambda r: losses.RidgeGradient(
        table(r), LABELS, penalty=1.0, radius=1.0
    ),
    "RidgeGradient responses": lambda r: losses.RidgeGradient(
        FEATURES, column(r), penalty=1.0, radius=1.0
    ),
    "GeometricMedian": lambda r: losses.GeometricMedian(
        table(r), lower=[0.0, 0.0], upper=[1.0, 1.0]
    ),
    "Scores": lambda r: losses.Scores(column(r)),
    "QuantileRegression features": lambda r: losses.QuantileRegression(
        table(r), LABELS, radius=1.0
    ),
    "QuantileRegression targets": lambda r: losses.QuantileRegression(
        FEATURES, column(r), radius=1.0
    ),
    "HuberRegression": lambda r: losses.HuberRegression(
        FEATURES, column(r), threshold=0.5, radius=1.0
    ),
    "HingeRisk features": lambda r: losses.HingeRisk(table(r), LABELS, radius=1.0),
    "HingeRisk labels": lambda r: losses.HingeRisk(FEATURES, column(r), radius=1.0),
    "LogisticRisk features": lambda r: losses.LogisticRisk(
        table(r), LABELS, penalty=1.0, radius=1.0
    ),
    "LogisticRisk labels": lambda r: losses.LogisticRisk(
        FEATURES, column(r), penalty=1.0, radius=1.0
    ),
    "LogisticRisk counts": lambda r: losses.LogisticRisk(
        FEATURES, LABELS, counts=column(r), penalty=1.0, radius=1.0
    ),
    "NoisyMean": lambda r: em.NoisyMean.from_rows(
        [[one] for one in column(r)], lower=[0.0], upper=[1.0]
    ),
    "NoisyMean count": lambda r: em.NoisyMean(
        count=r, sums=[0], bits=8, lower=[0.0], upper=[1.0], adjacency="add-remove"
    ),
    "NoisyMean sums": lambda r: em.NoisyMean(count=4, sums=[r], bits=8, lower=[0.0], upper=[1.0]),
    "JointQuantiles values": lambda r: em.JointQuantiles.from_values(
        column(r), levels=[0.25, 0.75], lower=0.0, upper=1.0
    ),
    "JointQuantiles counts": lambda r: em.JointQuantiles.from_counts(
        column(r), levels=[0.25, 0.75], lower=0.0, upper=1.0
    ),
    "PermuteAndFlip": lambda r: em.PermuteAndFlip.from_scores(column(r), sensitivity=1.0),
    "TopK": lambda r: em.TopK.from_counts(column(r), k=2),
    "PrincipalDirection rows": lambda r: em.PrincipalDirection.from_rows(table(r)),
    "PrincipalDirection products": lambda r: em.PrincipalDirection(
        products=[[1, r], [r, 1]], count=5
    ),
    "PrivateMean": lambda r: estimators.PrivateMean(epsilon=1.0, bounds=(0, 1)).fit(table(r)),
    "PrivateLinearRegression X": lambda r: estimators.PrivateLinearRegression(
        epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1)
    ).fit(table(r), [0.0, 1.0, 0.5, 0.25]),
    "PrivateLinearRegression y": lambda r: estimators.PrivateLinearRegression(
        epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1)
    ).fit(FEATURES, column(r)),
    "PrivateLogisticRegression X": lambda r: estimators.PrivateLogisticRegression(
        epsilon=1.0, bounds_X=(0, 1), classes=[0, 1]
    ).fit(table(r), LABELS),
    "PrivateLogisticRegression y": lambda r: estimators.PrivateLogisticRegression(
        epsilon=1.0, bounds_X=(0, 1), classes=[0, 1]
    ).fit(FEATURES, column(r)),
    "PrivateRidge": lambda r: estimators.PrivateRidge(
        epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1)
    ).fit(FEATURES, column(r)),
    "PrivatePCA": lambda r: estimators.PrivatePCA(epsilon=1.0, bounds=(0, 1)).fit(table(r)),
    "PrivateQuantile": lambda r: estimators.PrivateQuantile(epsilon=1.0, bounds=(0, 1)).fit(
        table(r)
    ),
}
REFUSES_FRAMES = tuple(name for name in TAKERS if name.startswith("Private"))


def every_error(error: BaseException | None) -> Iterator[BaseException]:
    """Return an error and everything it was raised from or while handling."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]


def said(error: BaseException) -> str:
    """Return everything that an error, or what it was raised from, says in any of its ways."""
    words = ["".join(traceback.format_exception(error))]
    for one in every_error(error):
        words += [str(one), repr(one.args), *traceback.format_exception_only(one)]
        words += getattr(one, "__notes__", [])
    return " ".join(words)


@pytest.mark.parametrize("kind", list(RECORDS))
@pytest.mark.parametrize("name", list(TAKERS))
def test_an_error_about_a_record_does_not_say_it(name: str, kind: str) -> None:
    caught: Exception | None = None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            TAKERS[name](RECORDS[kind])
        except Exception as error:
            caught = error
    found = "" if caught is None else said(caught)
    assert caught is None or isinstance(caught, ExpmechError) or name in REFUSES_FRAMES, found
    found += " ".join(str(one.message) for one in warned)
    for trace in TRACES:
        assert trace not in found, found


@pytest.mark.parametrize("kind", [kind for kind in RECORDS if kind != "a number beyond floats"])
def test_an_optimum_refuses_in_one_sentence_whatever_the_record_is(kind: str) -> None:
    """The dtype of text would tell how long the longest record is."""
    for name in ("PerturbedOptimum features", "PerturbedOptimum targets"):
        with pytest.raises(TypeError) as caught:
            TAKERS[name](RECORDS[kind])
        part = name.split()[1]
        assert str(caught.value) == f"`{part}` of PerturbedOptimum must be an array of numbers."
        assert caught.value.__context__ is None and caught.value.__cause__ is None
