"""Exact integers, certified bounds, rows and terms of a principal direction."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from expmech.certificates.certificate import Certificate
from expmech.certificates.mechanism import CertificateContext
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.reals import RevealedNormals
from expmech.core.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.ledger.verification import verify_certificate, verify_value
from expmech.mechanisms.directions import bingham as bingham_module
from expmech.mechanisms.directions.bingham import Proposal, SecondMoments, eta_below, fit_proposal
from expmech.mechanisms.directions.components import (
    BASIS_BITS,
    complement,
    contraction,
    variance_rate,
    variance_sums,
)
from expmech.mechanisms.directions.principal_direction import PrincipalDirection
from expmech.mechanisms.directions.rows import (
    make_moments,
    row_products,
    shorten,
    snap_rows,
    unit_rows,
)
from expmech.mechanisms.directions.whole import WholeMatrix


def whole_of(matrix: WholeMatrix) -> Any:
    with flint.ctx.workprec(2000):
        balls = matrix.to_balls()
        return [
            [int(balls[i, j].fmpz()) for j in range(balls.ncols())] for i in range(balls.nrows())
        ]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200), st.integers(1, 150), st.integers(0, 2**32), st.integers(1, 9))
def test_products_of_whole_matrices_are_exact(left: int, right: int, seed: int, d: int) -> None:
    generator = np.random.default_rng(seed)

    def table(bits: int) -> NDArray[np.object_]:
        signs = generator.integers(-1, 2, size=(d, d)).astype(object)
        sizes = [[int.from_bytes(generator.bytes(25)) % (1 << bits) for _ in range(d)]] * d
        return np.asarray(signs * np.array(sizes, dtype=object))

    a, b = table(left), table(right)
    product = WholeMatrix.from_integers(a) @ WholeMatrix.from_integers(b)
    assert whole_of(product) == a.dot(b).tolist()
    assert (np.abs(product.digits) <= 1 << 21).all()
    shifted = WholeMatrix.from_integers(a).times(-12345).plus_diagonal(-(1 << 90) + 7)
    expected = a * -12345 + np.diag([-(1 << 90) + 7] * d).astype(object)
    assert whole_of(shifted) == expected.tolist()
    near = product.approximate(100)
    for (i, j), entry in np.ndenumerate(a.dot(b)):
        exact = Fraction(entry, 1 << 100)
        assert abs(Fraction(float(near[i, j])) - exact) <= abs(exact) * Fraction(1, 1 << 44)


def failures(certificate: Certificate) -> set[str]:
    return {check.claim for check in verify_certificate(certificate) if not check.holds}


def random_rows(d: int, n: int, seed: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    return unit_rows(generator.normal(size=(n, d)) * np.geomspace(1.0, 0.05, d))


def fitted(d: int, n: int, eta: Fraction, seed: int = 3) -> Proposal:
    return fit_proposal(make_moments(row_products(random_rows(d, n, seed))), eta)


@pytest.mark.parametrize(("d", "n"), [(2, 0), (2, 5), (7, 300), (40, 3000)])
@pytest.mark.parametrize("eta", [Fraction(1, 1 << 21), Fraction(1, 2), Fraction(256)])
def test_certificate_bounds_the_spectrum(d: int, n: int, eta: Fraction) -> None:
    proposal = fitted(d, n, eta)
    matrix = proposal.moments.whole.approximate(proposal.moments.bits)
    energy = float(proposal.shift) * np.eye(d) - float(eta) * matrix
    spectrum = np.linalg.eigvalsh(proposal.transform.T @ energy @ proposal.transform)
    slack = 1e-12 * (1.0 + float(eta) * n)
    assert 0.0 < proposal.floor <= spectrum[0] + slack
    assert spectrum[-1] <= proposal.floor + proposal.spread + slack
    assert proposal.spread < 1e-6


@pytest.mark.parametrize(("d", "n"), [(2, 5), (7, 300), (40, 3000)])
def test_float_bounds_of_the_coin_hold_its_ball(d: int, n: int) -> None:
    proposal = fitted(d, n, Fraction(1, 2))
    normals = RevealedNormals(Coins(seeded_bits(1)), (60, d))
    low, high = bingham_module.chance_bounds(proposal, normals.values)
    for row in range(60):
        ball = bingham_module._enclose_chance(proposal, normals, row, 200)
        assert ball <= 1  # the theorem: M is large enough
        assert flint.arb(float(low[row])) <= ball <= flint.arb(float(high[row]))
        assert high[row] - low[row] < 1e-8


def test_poor_eigenpairs_are_replaced_by_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(matrix: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        values, vectors = np.linalg.eigvalsh(matrix), np.eye(len(matrix))
        vectors[0, 1:] = 1.0
        return values, vectors

    moments = make_moments(row_products(random_rows(4, 30, 5)))
    monkeypatch.setattr(np.linalg, "eigh", wrong)
    proposal = fit_proposal(moments, Fraction(1, 2))
    assert (proposal.transform == np.eye(4)).all()
    assert proposal.floor > 0.0


def test_largest_moments_are_certified() -> None:
    d, generator = 24, np.random.default_rng(8)
    turn = np.linalg.qr(generator.normal(size=(d, d)))[0]
    spectrum = np.geomspace(2.0**31, 1.0, d)
    whole = [[int(x) for x in row] for row in (turn * spectrum) @ turn.T * 2.0**40]
    table = np.array(whole, dtype=object)
    proposal = fit_proposal(
        SecondMoments(whole=WholeMatrix.from_integers((table + table.T) // 2), bits=40),
        Fraction(256),
    )
    assert proposal.floor > 0.4
    assert proposal.spread < 1e-2


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(-300, 160))
def test_snapped_rows_are_no_longer_than_one(seed: int, d: int, exponent: float) -> None:
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(50, d)) * 10.0**exponent
    rows = np.vstack([rows, np.eye(d), 3.0 * np.eye(d), unit_rows(rows), np.full((1, d), np.inf)])
    whole = snap_rows(rows)
    assert ((whole**2).sum(axis=1) <= 1 << 40).all()
    assert (np.sign(whole) * np.sign(rows) >= 0).all()
    assert (whole[50 : 50 + d] == (1 << 20) * np.eye(d)).all()


def test_rows_are_cut_toward_zero_and_shortened_in_integers() -> None:
    unit = 2.0**-20
    found = snap_rows(np.array([[0.75 * unit, -0.75 * unit], [1.5 * unit, -1.5 * unit]]))
    assert found.tolist() == [[0, 0], [1, -1]]
    long = np.array([[-(1 << 20), 3], [1 << 20, 0], [1 << 19, -(1 << 20)]])
    short = shorten(long.copy())
    assert ((short**2).sum(axis=1) <= 1 << 40).all()
    assert short[:2].tolist() == [[-(1 << 20) + 1, 3], [1 << 20, 0]]


def test_what_is_too_long_is_shrunk_to_a_contraction() -> None:
    axes = np.linalg.qr(np.random.default_rng(2).normal(size=(6, 3)))[0]
    for factor in (1.0, 1.25, 3.0):
        whole = contraction(factor * axes).astype(object)
        assert (np.abs(whole.T.dot(whole)).sum(axis=1) <= 1 << (2 * BASIS_BITS)).all()


def test_a_basis_is_a_contraction_and_a_complement() -> None:
    axes = np.linalg.qr(np.random.default_rng(2).normal(size=(30, 3)))[0].T
    basis = complement(axes)
    assert np.abs(axes @ basis).max() * 2.0**-BASIS_BITS < 1e-11
    whole = basis.astype(object)
    square = np.abs(whole.T.dot(whole)).sum(axis=1)
    assert (square <= 1 << (2 * BASIS_BITS)).all()


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_variance_sums_move_by_at_most_their_sensitivity(adjacency: str) -> None:
    generator = np.random.default_rng(4)
    replace = adjacency == "replace"
    axes = np.linalg.qr(generator.normal(size=(4, 2)))[0].T
    units = 1 / variance_rate(Fraction(1), 2, replace=replace)
    largest = 0
    for _ in range(200):
        rows = unit_rows(generator.normal(size=(6, 4)))
        others = rows.copy()
        others[0] = generator.choice([-1.0, 1.0]) * axes[generator.integers(2)]
        rows[0] = np.linalg.qr(np.vstack([axes, rows[:1]]).T)[0][:, 2]
        kept = others if replace else rows[1:]
        here = variance_sums(row_products(rows), len(rows), 40, axes)
        there = variance_sums(row_products(kept), len(kept), 40, axes)
        used = slice(None, -1) if replace else slice(None)
        distance = sum(abs(a - b) for a, b in zip(here[used], there[used], strict=True))
        largest = max(largest, distance)
    assert 0.99 * units < largest <= units


@given(st.fractions(Fraction(1, 1 << 30), 256))
def test_eta_is_rounded_down_to_22_bits(limit: Fraction) -> None:
    eta = eta_below(limit)
    assert limit * (1 - Fraction(1, 1 << 20)) <= eta <= limit
    assert eta.numerator < 1 << 22
    assert eta.denominator & (eta.denominator - 1) == 0


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, Fraction(1, 3), 2.0**20])
def test_terms_of_a_certificate_are_recomputed(adjacency: str, epsilon: Any) -> None:
    mechanism = PrincipalDirection.from_rows(
        random_rows(5, 20, 1), n_components=2, variances=True, adjacency=adjacency
    )
    certificate = mechanism.certificate(epsilon=epsilon)
    assert failures(certificate) == set()
    other = "add-remove" if adjacency == "replace" else "replace"
    changes: list[tuple[str, dict[str, Any]]] = [
        ("eta", {"eta": 2.0 * certificate.eta}),
        ("sensitivity", {"sensitivity": 0.5}),
        ("shares", {"epsilon": 0.5 * certificate.epsilon}),
        ("shares", {"sampler": certificate.sampler | {"variance_epsilon": "0"}}),
        ("timing", {"timing": "constant"}),
        ("domain", {"sampler": certificate.sampler | {"components": 9}}),
        ("domain", {"domain": certificate.domain | {"dimension": True}}),
        ("timing", {"sampler": {}}),
        ("fields", {"sampler": {"sampler": "Bingham"}}),
        ("rounding", {"domain": certificate.domain | {"rounding_bits": 23}}),
        ("rows", {"domain": certificate.domain | {"row_bits": 30}}),
        ("loss error", {"loss_error": 0.1}),
        ("sensitivity", {"adjacency": other}),
        ("public count", {"adjacency": other}),
    ]
    for claim, change in changes:
        assert claim in failures(dataclasses.replace(certificate, **change)), (claim, change)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("variances", [False, True])
def test_only_what_can_be_drawn_passes_for_a_value(k: int, variances: bool) -> None:
    mechanism = PrincipalDirection.from_rows(
        random_rows(4, 50, 2), n_components=k, variances=variances
    )
    release = mechanism.study(epsilon=1.0, seed=k)
    certificate, value = release.certificate, release.value
    assert verify_value(certificate, value).holds

    def altered(**change: Any) -> bool:
        return verify_value(certificate, dataclasses.replace(value, **change)).holds

    turned = value.directions.copy()
    turned[0, :2] = turned[0, :2] @ [[0.6, 0.8], [-0.8, 0.6]]  # no whole numbers
    assert not altered(directions=turned)
    assert not altered(directions=1.001 * value.directions)
    assert not altered(directions=-value.directions)
    assert not altered(directions=value.directions[:, ::-1][:, :3])
    if k > 1:
        assert not altered(directions=value.directions[[0, 0, 1]])
    if variances:
        assert not altered(total_variance=1.5)
        assert not altered(variances=-1.0 - value.variances)
        assert not altered(variances=value.variances[1:])
    else:
        other = PrincipalDirection.from_rows(random_rows(4, 50, 2), n_components=k, variances=True)
        assert not verify_value(other.certificate(epsilon=1.0), value).holds


def test_a_draw_by_name_and_back() -> None:
    rows = random_rows(3, 50, 2)
    mechanism = PrincipalDirection.from_rows(rows, n_components=2, variances=True)
    context = CertificateContext(postprocessing=mechanism.as_components(("a", "b", "c")))
    release = mechanism.prepare(epsilon=1.0, context=context).study(1)
    assert list(release.value) == ["component 1", "component 2", "variance"]
    assert list(release.value["component 2"]) == ["a", "b", "c"]
    read = json.loads(json.dumps(release.value))
    certificate = Certificate.from_json(release.certificate.to_json())
    assert verify_value(certificate, read).holds
    read["component 1"]["a"] += 1e-6
    assert not verify_value(certificate, read).holds
    plain = mechanism.study(epsilon=1.0, seed=1).value
    assert [*release.value["component 1"].values()] == plain.directions[0].tolist()


def test_a_plan_evaluates_no_loss_and_a_constant_time_is_refused() -> None:
    mechanism = PrincipalDirection.from_rows(random_rows(8, 50, 2))
    plan = mechanism.plan(1.0)
    assert plan.recommended is not None
    assert plan.recommended.typical == 0.0
    assert "sqrt(2/(e d)) = 0.3 " in " ".join(str(plan).split())
    refused = mechanism.plan(1.0, timing="constant")
    assert refused.recommended is None
    assert "let nobody see how long it takes" in str(refused.refusal)
    with pytest.raises(UnsupportedError, match="does not serve timing='constant'"):
        mechanism.prepare(epsilon=1.0, timing="constant")
    with pytest.raises(ParameterError, match="must be 'auto'"):
        mechanism.release(epsilon=1.0, sampler="Rejection")


def test_proposals_are_counted_and_about_as_many_as_the_plan_says() -> None:
    mechanism = PrincipalDirection.from_rows(random_rows(40, 3000, 2))
    prepared = mechanism.prepare(epsilon=100.0)
    proposals = prepared.sample(600, 1).proposals
    assert (proposals >= 1).all()
    share = math.sqrt(2.0 / (math.e * 40.0))
    # a geometric count of mean 1/share has about that standard deviation: five of them
    assert abs(proposals.mean() * share - 1.0) < 5.0 / np.sqrt(600.0) + 0.1
    one = [prepared.sample(1, seed).proposals[0] for seed in range(40)]
    assert len(set(one)) > 5


def test_certificates_do_not_tell_the_number_of_rows_under_add_remove() -> None:
    few, many = (
        PrincipalDirection.from_rows(random_rows(4, n, 1), adjacency="add-remove", variances=True)
        for n in (0, 70)
    )
    assert few.certificate(epsilon=1.0) == many.certificate(epsilon=1.0)
    found = few.release(epsilon=1.0).value
    assert found.directions.shape == (1, 4) and 0.0 <= found.total_variance <= 1.0


def test_bad_input_is_refused_without_quoting_it() -> None:
    rows = np.array([[0.123456, np.nan]])
    with pytest.raises(ParameterError) as caught:
        PrincipalDirection.from_rows(rows)
    assert "123" not in str(caught.value)
    with pytest.raises(ParameterTypeError):
        PrincipalDirection.from_rows([["a", "b"]])
    with pytest.raises(ParameterError):
        PrincipalDirection.from_rows(np.zeros((0, 3)))
    for products, count in (([[1 << 41]], 1), ([[1, 2], [2, 1]], 1), ([[1, 0], [1, 1]], 1)):
        with pytest.raises(ParameterError):
            PrincipalDirection(products=products, count=count)
    with pytest.raises(ParameterTypeError):
        PrincipalDirection(products=[[0.5]], count=1)
    with pytest.raises(ParameterError):
        PrincipalDirection.from_rows(np.eye(2), n_components=3)


def test_one_column_has_one_axis() -> None:
    found = PrincipalDirection.from_rows([[0.5], [-1.0]]).study(epsilon=1.0, seed=1)
    assert found.value.directions.tolist() == [[1.0]]
    assert dataclasses.asdict(found.certificate)["domain"]["count"] == 2
