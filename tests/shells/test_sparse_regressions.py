"""Regressions of sparse tables, norms of sums, and the intercept's own penalty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.core.errors import DataError, ParameterError
from expmech.estimators import PrivateLinearRegression, PrivateLogisticRegression
from expmech.ledger.verification import verify_certificate
from expmech.mechanisms.optimum import RegressionSettings, prepare_rows
from expmech.mechanisms.optimum.perturbed_optimum import PerturbedOptimum
from expmech.mechanisms.optimum.risks import Huber, Logistic

KINDS: list[Any] = [
    scipy.sparse.csr_matrix,
    scipy.sparse.csc_matrix,
    scipy.sparse.coo_array,
    scipy.sparse.csr_array,
]


def table() -> Any:
    """Return entries inside and outside the bounds, stored zeros, and what is missing."""
    matrix = scipy.sparse.random(300, 12, density=0.15, random_state=1, format="csr") * 3.0 - 0.0
    matrix.data[:40] -= 2.0
    matrix.data[40:44] = [np.nan, np.inf, -np.inf, 0.0]
    return matrix


X = table()
DENSE = X.toarray()
Y = np.nan_to_num(DENSE, posinf=0.0, neginf=0.0) @ np.linspace(-1.0, 1.0, 12)
BOUNDS = [(-1.0, 2.0)] * 12


def linear(**more: Any) -> PrivateLinearRegression:
    return PrivateLinearRegression(
        epsilon=4.0, bounds_X=BOUNDS, bounds_y=(-3.0, 3.0), random_state=1, **more
    )


def logistic(**more: Any) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(
        epsilon=4.0, bounds_X=BOUNDS, classes=[False, True], random_state=1, **more
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["middle", "lower", "drop"])
def test_a_sparse_table_gives_what_a_dense_one_without_a_centre_gives(
    kind: Any, missing: str
) -> None:
    more = {"missing": missing, "sum_norm": 2.5, "intercept_penalty": 3.0}
    if missing == "drop":
        more["adjacency"] = "add-remove"
    for make, target in ((linear, Y), (logistic, Y > 0.0)):
        sparse = make(**more).fit(kind(X), target)
        dense = make(center=False, **more).fit(DENSE, target)
        np.testing.assert_array_equal(sparse.coef_, dense.coef_)
        np.testing.assert_array_equal(sparse.intercept_, dense.intercept_)
        assert sparse.certificate_ == dense.certificate_
        assert all(check.holds for check in verify_certificate(sparse.certificate_))
        if missing != "drop":
            few = np.nan_to_num(DENSE[:50], posinf=2.0, neginf=-1.0)
            found = sparse.predict(kind(scipy.sparse.csr_matrix(few)))
            np.testing.assert_allclose(found, dense.predict(few))


def test_a_sparse_table_is_never_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = scipy.sparse.random(2000, 400, density=0.01, random_state=2, format="csr")
    sizes = []

    def watched(features: Any, *rest: Any, **more: Any) -> Any:
        sizes.append(features.nnz)  # an array has no such number
        return prepare_rows(features, *rest, **more)

    monkeypatch.setattr("expmech.mechanisms.optimum.draw.prepare_rows", watched)
    model = PrivateLinearRegression(
        epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1), sum_norm=4.0, random_state=1
    ).fit(wide, np.ones(2000))
    assert sizes == [wide.nnz + 2000]
    assert model.certificate_.sampler["noise"] == "sum"  # chosen by public numbers


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match="must contain 0 in every column"):
        linear().set_params(bounds_X=(1.0, 2.0)).fit(X, Y)
    with pytest.raises(ParameterError, match="`center` of PrivateLinearRegression must be None"):
        linear(center=True).fit(X, Y)
    with pytest.raises(ParameterError, match="`sum_norm` of a linear regression"):
        linear(sum_norm=0.0).fit(X, Y)
    with pytest.raises(TypeError, match="dense data is required"):
        logistic(law="log-likelihood").fit(X, Y > 0.0)
    with pytest.raises(ParameterError, match="`sum_norm` of a logistic regression belongs to"):
        logistic(law="log-likelihood", sum_norm=1.0).fit(DENSE, Y > 0.0)
    with pytest.raises(DataError, match="A column has missing values"):
        linear(missing="error").fit(X, Y)


def test_commands_take_norms_and_penalties(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    lines = [f"{k % 2},{(k + 1) % 2},{k / 100}" for k in range(100)]
    file.write_text("a,b,t\n" + "\n".join(lines) + "\n")
    words = "--column a --bounds 0,1 --column b --bounds 0,1 --target t --target-bounds 0,1"
    more = "--no-center --sum-norm 1 --intercept-penalty 7 --epsilon 2 --json"
    asked = ["release", "linear", str(file), *words.split(), *more.split()]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)["certificate"]
    assert told["sampler"]["sum_norm"] == 2.0 and told["sampler"]["intercept_penalty"] == 7.0
    assert told["postprocessing"]["centers"] == [0.0, 0.0]


def awkward(kind: str) -> Any:
    """Return sparse tables that say the same as a dense one in a way that is not the usual one."""
    if kind == "duplicates":  # 0.75 + 0.75 is beyond the bound, 0.75 - 0.5 is not
        data = np.array([0.75, 0.75, 0.75, -0.5, np.inf, -np.inf, 1.0, 1.0, -1.0])
        columns = np.array([0, 0, 1, 1, 2, 2, 0, 2, 2])
        return scipy.sparse.csr_matrix((data, columns, [0, 4, 6, 9, 9]), shape=(4, 3))
    if kind == "whole duplicates":  # whose sums do not fit in their own type
        data = np.array([100, 100, -100, -100], dtype=np.int8)
        return scipy.sparse.csr_matrix((data, [1, 1, 2, 2], [0, 2, 4, 4, 4]), shape=(4, 3))
    if kind == "unsorted":
        data = np.array([0.5, -2.0, 0.25, 1.0, -1.0])
        return scipy.sparse.csr_matrix((data, [2, 0, 1, 2, 0], [0, 3, 5, 5, 5]), shape=(4, 3))
    data = np.array([0.0, 0.0, 1.0, -1.0, np.nextafter(1.0, 2.0), 1e308, -1e308])
    return scipy.sparse.csr_matrix((data, [0, 1, 2, 0, 1, 2, 0], [0, 3, 5, 7, 7]), shape=(4, 3))


def summed(matrix: Any) -> Any:
    """Add up entries one by one, as floats."""
    dense = np.zeros(matrix.shape)
    for i in range(matrix.shape[0]):
        for place in range(matrix.indptr[i], matrix.indptr[i + 1]):
            with np.errstate(invalid="ignore"):
                dense[i, matrix.indices[place]] += float(matrix.data[place])
    return dense


@pytest.mark.parametrize("kind", ["duplicates", "whole duplicates", "unsorted", "edges"])
def test_a_sparse_table_is_read_as_the_dense_one_that_it_says(kind: str) -> None:
    """Stored twice, out of order, stored zeros, on and beyond the bounds: by every constructor."""
    matrix = awkward(kind)
    dense = summed(matrix)
    before = [matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()]
    for squared, total in ((3.0, None), (0.5, None), (3.0, 0.75)):
        found = [
            prepare_rows(
                one,
                [1.0, -1.0, 0.5, 0.0],
                risk=Huber(0.5),
                norms=RegressionSettings(squared_norm=squared, sum_norm=total).norms(3),
            )
            for one in (matrix, dense)
        ]
        rows = found[0].matrix.toarray()
        assert (rows == found[1].matrix).all()
        assert (found[0].targets == found[1].targets).all()
        assert (np.abs(rows) <= 1.0).all() and ((rows**2).sum(axis=1) <= squared).all()
        assert total is None or (np.abs(rows).sum(axis=1) <= total).all()
        drawn = [
            PerturbedOptimum(
                risk, one, [1.0, 0.0, 1.0, 0.0], squared_norm=squared, sum_norm=total
            ).sample(epsilon=5.0, size=2, seed=3)
            for one in (matrix, dense)
            for risk in (Huber(0.5), Logistic())
        ]
        assert (drawn[0] == drawn[2]).all() and (drawn[1] == drawn[3]).all()
    for model, target in (
        (PrivateLinearRegression(epsilon=4.0, bounds_y=(-1.0, 1.0), **SHARED), [0.5, 0, 1, 0.2]),
        (PrivateLogisticRegression(epsilon=4.0, classes=[0, 1], **SHARED), [0, 1, 1, 0]),
    ):
        assert (model.fit(matrix, target).coef_ == model.fit(dense, target).coef_).all()
    after = [matrix.data, matrix.indices, matrix.indptr]
    for one, other in zip(before, after, strict=True):  # nothing is done to the caller's own
        np.testing.assert_array_equal(one, other)


SHARED: dict[str, Any] = {"bounds_X": (-1.0, 1.0), "center": False, "random_state": 1}
