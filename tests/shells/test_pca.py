"""PrivatePCA: budget, centers, missing values, empty tables."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray
from support.examples import run_example

from expmech.core.errors import ExpmechError, ParameterError, UnsupportedError
from expmech.estimators import PrivatePCA
from expmech.estimators.pca import MEAN_SHARE
from expmech.ledger import Ledger, LedgerError
from expmech.ledger.verification import verify_certificate
from expmech.tables.scaling import make_standard

PUBLIC: dict[str, Any] = {"bounds": (-15, 15), "center": [1.0, 0.0, 0.0, 2.0]}


def table(n: int = 3000, seed: int = 0) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    return np.asarray(generator.normal(size=(n, 4)) * [3.0, 1.0, 0.3, 0.3] + [1.0, 0.0, 0.0, 2.0])


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("center", ["private", PUBLIC["center"]])
def test_components_and_variances_are_found_with_many_rows(adjacency: str, center: Any) -> None:
    model = PrivatePCA(
        2,
        epsilon=20.0,
        bounds=(-15, 15),
        center=center,
        row_norm=0.6,
        adjacency=adjacency,
        random_state=1,
    ).fit(table())
    assert abs(model.components_[0, 0]) > 0.95
    assert abs(model.components_[1, 1]) > 0.8
    np.testing.assert_allclose(model.mean_, [1.0, 0.0, 0.0, 2.0], atol=0.3)
    first = 9.0 / 15.0**2
    assert model.explained_variance_[0] == pytest.approx(first, rel=0.25)
    assert 0.7 < model.explained_variance_ratio_[0] <= 1.0
    rows = model.inverse_transform(model.transform(table()))
    assert np.abs(rows[:, 0] - table()[:, 0]).mean() < 1.0
    for certificate in model.certificates_:
        changed = dataclasses.replace(certificate, epsilon=2.0 * certificate.epsilon)
        assert all(check.holds for check in verify_certificate(certificate))
        assert not all(check.holds for check in verify_certificate(changed))


def test_both_draws_are_charged_before_the_first(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon="1", data_set="a table")
    options: dict[str, Any] = {"epsilon": "0.8", "bounds": (-15, 15), "ledger": ledger}
    model = PrivatePCA(center="private", **options).fit(table(50))
    assert [certificate.epsilon for certificate in model.certificates_] == [0.16, 0.64]
    written = [charge.certificate for charge in ledger.history()]
    assert written == [certificate.to_json() for certificate in model.certificates_]
    assert ledger.left[0] == Fraction(1, 5)
    with pytest.raises(LedgerError):
        PrivatePCA(center="private", **options).fit(table(50))
    assert ledger.left[0] == Fraction(1, 5)


def test_nothing_is_read_before_the_charge(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon="1", data_set="a table")
    model = PrivatePCA(epsilon="0.5", missing="error", ledger=str(path), **PUBLIC)
    with pytest.raises(ExpmechError, match="missing values"):
        model.fit([[1.0, None, 2.0, 3.0]] * 3)
    assert ledger.left[0] == Fraction(1, 2)
    sound = model.get_params() | {"missing": "middle"}
    for change in ({"timing": "constant"}, {"n_components": 9}, {"center": None}):
        with pytest.raises(ExpmechError):
            PrivatePCA(**sound | change).fit(table(5))
    assert ledger.left[0] == Fraction(1, 2)


@pytest.mark.parametrize("center", ["private", "bounds"])
def test_nothing_public_depends_on_the_number_of_rows_under_add_remove(center: str) -> None:
    models = [
        PrivatePCA(epsilon=1.0, bounds=(-15, 15), center=center, adjacency="add-remove").fit(rows)
        for rows in (table(0), table(1), table(40))
    ]
    assert models[0].certificates_ == models[1].certificates_ == models[2].certificates_
    assert "count" not in models[0].certificate_.domain
    assert {model.components_.shape for model in models} == {(1, 4)}
    counted = PrivatePCA(epsilon=1.0, bounds=(-15, 15), center=center).fit(table(40))
    assert counted.certificate_.domain["count"] == 40


def test_certificate_says_how_rows_were_standardised() -> None:
    public = PrivatePCA(epsilon=1.0, **PUBLIC).fit(table(40)).certificate_
    assert "centred at (1.0, 0.0, 0.0, 2.0), divided by (15.0, 15.0" in public.assumptions[-1]
    private = PrivatePCA(epsilon=1.0, bounds=(-15, 15), center="private").fit(table(40))
    assert "a mean that was released before" in private.certificate_.assumptions[-1]
    assert public.statistic == "principal component of column 0, column 1, column 2, column 3"


def test_a_missing_value_counts_by_the_rule() -> None:
    holes = table(500)
    holes[::7, 1] = np.nan
    frame = pandas.DataFrame(holes, columns=list("abcd")).astype(object)
    frame.iloc[::7, 1] = "no number"
    filled = np.where(np.isnan(holes), 0.0, holes)  # the middle of the bounds
    fits = [PrivatePCA(random_state=3, **PUBLIC).fit(rows) for rows in (holes, frame, filled)]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.components_, fits[0].components_)
    np.testing.assert_array_equal(fits[0].transform(holes), fits[0].transform(filled))
    kept = holes[~np.isnan(holes).any(axis=1)]
    dropped = [
        PrivatePCA(missing=rule, adjacency="add-remove", random_state=3, **PUBLIC).fit(rows)
        for rule, rows in (("drop", holes), ("middle", kept))
    ]
    np.testing.assert_array_equal(dropped[0].components_, dropped[1].components_)
    coordinates = dropped[0].transform(holes)
    np.testing.assert_array_equal(np.isnan(coordinates[:, 0]), np.isnan(holes).any(axis=1))
    infinite = np.where(np.isnan(holes), np.inf, holes)
    assert PrivatePCA(random_state=3, **PUBLIC).fit(infinite).components_.shape == (1, 4)


def test_coordinates_of_a_row_do_not_depend_on_the_others() -> None:
    """Not by a bit: the model behind would see several rows change for one."""
    for d, k in ((3, 2), (16, 1), (33, 5)):
        rows = np.random.default_rng(d).normal(size=(300, d))
        model = PrivatePCA(k, bounds=(-3, 3), center="bounds", random_state=1).fit(rows)
        whole = model.transform(rows)
        for many in (1, 2, 3, 7, 17, 18, 19, 31, 299):
            np.testing.assert_array_equal(model.transform(rows[:many]), whole[:many])
            np.testing.assert_array_equal(model.transform(rows[-many:]), whole[-many:])


def test_bad_parameters_are_refused() -> None:
    for change in (
        {"n_components": 5},
        {"n_components": 0},
        {"center": [0.0]},
        {"center": "mean"},
        {"scale": [0.0] * 4},
        {"row_norm": -1.0},
        {"bounds": None},
        {"missing": "drop"},
    ):
        options: dict[str, Any] = {**PUBLIC, "random_state": 0} | change
        with pytest.raises(ParameterError):
            PrivatePCA(**options).fit(table(10))
    with pytest.raises(ParameterError, match="ruins the components at small epsilon"):
        PrivatePCA(bounds=(-15, 15)).fit(table(10))
    with pytest.raises(UnsupportedError, match="let nobody see how long it takes"):
        PrivatePCA(timing="constant", **PUBLIC).fit(table(10))
    with pytest.raises(TypeError):
        PrivatePCA(**PUBLIC | {"variances": 1}).fit(table(10))


def test_shares_of_epsilon_add_up() -> None:
    model = PrivatePCA(2, epsilon="0.7", bounds=(-15, 15), center="private").fit(table(10))
    mean, components = (Fraction(repr(one.epsilon)) for one in model.certificates_)
    assert mean == MEAN_SHARE * Fraction(7, 10)
    assert mean + components == Fraction(7, 10)
    sampler = model.certificate_.sampler
    assert 2 * Fraction(sampler["component_epsilon"]) == Fraction(9, 10) * components


def test_the_example_releases_and_certifies() -> None:
    printed = run_example("principal_direction")
    assert "share of the variance" in printed
    assert "epsilon = 1 (pure), replace adjacency" in printed


def test_rows_by_public_numbers() -> None:
    low, high = np.array([0.0, 0.0]), np.array([10.0, 4.0])
    standard = make_standard(
        lower=low, upper=high, center=[5.0, 2.0], scale=None, row_norm=None, owner="test"
    )
    np.testing.assert_allclose(standard.rows(np.array([[99.0, 2.0]])), [[1.0, 0.0]])
    assert (standard.rows(np.array([[5.0, 2.0]])) == 0.0).all()
    longer = make_standard(
        lower=low, upper=high, center=[5.0, 2.0], scale=[1.0, 1.0], row_norm=10.0, owner="test"
    )
    np.testing.assert_allclose(longer.rows(np.array([[8.0, 3.0]])), [[0.3, 0.1]])
