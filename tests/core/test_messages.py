"""Errors that confidential data can cause have one fixed text, compared here as a whole."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.statistics import prepare_release

import expmech as em
from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import DataError, EnvelopeViolatedError, LossError
from expmech.exponential.envelopes.cells import Cells
from expmech.exponential.samplers.box_tree import weigh
from expmech.exponential.samplers.chain import run
from expmech.tables.arrays import ArrayRows
from expmech.tables.reading import fill_missing
from expmech.tables.statistics import Mean, Ridge

VIOLATED = (
    "The loss fell below the envelope that its declared growth, minimum or loss_error certifies;"
    " the declaration is wrong and no value was released."
)
RANGE = (
    "`loss` of ExponentialMechanism must stay within its declared range, `minimum` to `bound`"
    " (where only `lipschitz` is given, `bound` is `minimum` plus what the Lipschitz constants"
    " allow across the domain); it did not. Declare the true range."
)
FINITE = (
    "`loss` of ExponentialMechanism must return finite numbers; it returned nan or infinity. A"
    " data-dependent infinity has no finite sensitivity; points that are impossible for every data"
    " set are excluded in public, by `base`."
)
CHANGED = (
    "The rows do not fit the certificate that was charged: their number changed after it was"
    " counted. Nothing was released."
)
MISSING = (
    "A column has missing values: NULL, NaN, or text that is no number. Use missing='middle' (they"
    " count as the middle of the bounds), 'lower' (as the lower bound) or, under add-remove"
    " adjacency, 'skip' (they are left out of their column) or 'drop' (such rows are left out)."
)
SCORING = "`scoring` failed on the data, or gave a score that is no finite number."


class Hidden:
    """A loss whose growth is declared wrongly: it is far below it at some points."""

    def __init__(self, depth: float) -> None:
        self.depth = depth
        self.growth = em.Growth(center=np.array([0.5]), rates=np.array([1.0]))
        self.minimum, self.bound = -100.0, 100.0

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        away = np.abs(y[:, 0] - 0.5)
        return np.asarray(np.where(away > 0.2, -self.depth, away))

    def terms(self, coordinates: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self(values[:, None])


@pytest.mark.parametrize("depth", [1.0, 7.5, 60.0])
@pytest.mark.parametrize(
    "sampler",
    [
        em.Rejection(),
        em.Separable(),
        em.ConfAtomPerfect(0.5),
        em.RandomAtomPerfect([0.5], proposal="laplace"),
    ],
    ids=lambda one: one.name(),
)
def test_a_violated_envelope_tells_nothing_else(sampler: Any, depth: float) -> None:
    box = em.Box([0.0], [1.0], bits=4)
    mechanism = em.ExponentialMechanism(loss=Hidden(depth), sensitivity=1, domain=box)
    chain = sampler.prepare(mechanism.target(epsilon=2.0))
    with pytest.raises(EnvelopeViolatedError) as error:
        run(chain, Coins(seeded_bits(1)), 2000)
    assert str(error.value) == VIOLATED
    assert error.value.__context__ is None
    assert error.value.__cause__ is None


def test_a_violated_cell_tells_nothing_else() -> None:
    cells = Cells(
        low=np.zeros((1, 1), dtype=np.int64),
        bits=np.full((1, 1), 2),
        bound=np.array([1 << 40]),
        reference=np.zeros((1, 1), dtype=np.int64),
        energy=np.array([1 << 40]),
        gradient=np.zeros((1, 1)),
        seen=np.ones(1, dtype=np.bool_),
    )
    with pytest.raises(EnvelopeViolatedError) as error:
        weigh(cells).accept(Coins(seeded_bits(0)), np.array([0]), np.array([(1 << 40) - 5]))
    assert str(error.value) == VIOLATED


@pytest.mark.parametrize(
    ("value", "text"),
    [(-3.0, RANGE), (-0.5, RANGE), (9.0, RANGE), (np.nan, FINITE), (np.inf, FINITE)],
)
@pytest.mark.parametrize("points", [2, 5])
def test_a_loss_out_of_its_range_tells_nothing_else(value: float, text: str, points: int) -> None:
    mechanism = em.ExponentialMechanism(
        loss=lambda y: np.where(y[:, 0] == 0.3, value, 0.5),
        sensitivity=1,
        domain=em.Box([0.0], [1.0]),
        bound=1.0,
    )
    with pytest.raises(LossError) as error:
        mechanism._problem.evaluate_points(np.full((points, 1), 0.3))
    assert str(error.value) == text
    # what rounding may do is no violation
    exact = em.ExponentialMechanism(
        loss=lambda y: np.where(y[:, 0] == 0.3, -1e-3, 1.0 + 1e-3),
        sensitivity=1,
        domain=em.Box([0.0], [1.0]),
        bound=1.0,
        loss_error=1e-3,
    )
    exact._problem.evaluate_points(np.array([[0.3], [0.6]]))


@pytest.mark.parametrize("counted", [3, 5, 400])
def test_rows_that_changed_after_the_charge_tell_nothing_else(counted: int) -> None:
    mean = Mean(columns=(0,), bounds=((0.0, 1.0),), adjacency=Adjacency.REPLACE)
    settled = prepare_release(mean, epsilon=Fraction(1), count=4)
    rows = ArrayRows(numbers=np.zeros((counted, 1)))
    with pytest.raises(DataError) as error:
        settled.release(rows.aggregate(settled.aggregation))
    assert str(error.value) == CHANGED


def test_missing_values_and_failing_scores_tell_nothing_else() -> None:
    for table in ([[1.0], [np.nan]], [[np.nan]] * 7):
        with pytest.raises(DataError) as error:
            fill_missing(np.array(table), [(0.0, 1.0)], "error")
        assert str(error.value) == MISSING

    def scoring(rows: Any, target: Any, candidate: Any) -> float:
        if candidate == 2:
            raise ValueError(f"record {rows[0]}")
        return float("nan")

    from expmech.tables.aggregates import ScoresOf

    for candidates in ((1,), (2,)):
        with pytest.raises(DataError) as error:
            ArrayRows(raw=["secret"]).aggregate(ScoresOf(scoring=scoring, candidates=candidates))
        assert str(error.value) == SCORING
        assert error.value.__context__ is None
    ridge = Ridge(
        columns=(0,),
        bounds=((0.0, 1.0),),
        target=1,
        target_bounds=(0.0, 1.0),
        adjacency=Adjacency.ADD_REMOVE,
        missing="error",
    )
    request = ridge.aggregation(Fraction(1))
    with pytest.raises(DataError) as error:
        ArrayRows(numbers=np.array([[0.5, np.nan]])).aggregate(request)
    assert str(error.value) == MISSING
