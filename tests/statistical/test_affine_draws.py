"""The affine envelope by frequencies.

Small lattices against f, real sizes against the law of the residual.

Every p-value is compared with 1e-6 over the number of p-values in this file, and every test rejects
draws at 1.1 times epsilon.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.affine import bound, split_by
from support.problems import exact_law, prepared

import expmech as em
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.coins.laws import propose_cube_laplace
from expmech.domains import Domain
from expmech.exponential.envelopes.affine_fit import Split
from expmech.exponential.samplers.chain import run
from expmech.exponential.samplers.rejection import propose

ALPHA = 1e-6 / 100  # fewer than a hundred p-values below
MUTANT = 1.1

SMALL: dict[
    str, tuple[Domain, int, float, int]
] = {  # domain, digits a reveal, slack of the grid, draws
    "box": (em.Box([-1.0, -0.5], [1.0, 0.5], bits=3), 30, 2.0**-10, 100_000),
    "box, coarse grid, two digits at a time": (
        em.Box([-1.0, -0.5], [1.0, 0.5], bits=3),
        2,
        1.0,
        2_000,
    ),
    "L1 ball": (em.L1Ball(3, 1.0, bits=3), 30, 2.0**-10, 20_000),
    "L2 ball": (em.L2Ball(2, 1.0, bits=3), 30, 2.0**-10, 100_000),
}


def small_mechanism(domain: Domain, norm: str) -> em.ExponentialMechanism:
    p = domain.dimension
    generator = np.random.default_rng(11)
    features = np.clip(
        generator.normal(size=(12, 1)) * 0.6 + 0.3 * generator.normal(size=(12, p)), -1.0, 1.0
    )
    responses = features @ np.full(p, 0.3)
    radius = float(getattr(domain, "radius", 1.5)) * (2.0 if isinstance(domain, em.L2Ball) else 1.0)
    loss = em.losses.RidgeGradient(features, responses, penalty=1.0, radius=radius, norm=norm)
    return em.ExponentialMechanism(loss=loss, domain=domain)


def with_split(
    mechanism: em.ExponentialMechanism, epsilon: float, split: Split, *, slack: float = 2.0**-10
) -> Any:
    """Return the rejection chain of the affine envelope with a given split."""
    chain, target = prepared(mechanism, em.Rejection(em.Affine()), epsilon=epsilon)
    return dataclasses.replace(chain, envelope=bound(target, split, slack=slack))


def counts_of(
    mechanism: em.ExponentialMechanism,
    epsilon: float,
    split: Split,
    *,
    size: int,
    digits: int = 30,
    slack: float = 2.0**-10,
) -> NDArray[np.int64]:
    chain = with_split(mechanism, epsilon, split, slack=slack)
    chain, target = (
        dataclasses.replace(chain, envelope=dataclasses.replace(chain.envelope, digits=digits)),
        chain.target,
    )
    points = [
        tuple(row) for row in target.domain.values(target.domain.all_indices(1 << 12)).tolist()
    ]
    found, numbers = np.unique(
        run(chain, Coins(seeded_bits(5)), size).values, axis=0, return_counts=True
    )
    tally = dict(zip(map(tuple, found.tolist()), numbers.tolist(), strict=True))
    return np.array([tally.get(point, 0) for point in points])


def goodness_of_fit(counts: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """Return the chi-square p-value, points expected fewer than twenty times counted as one."""
    rare = expected < 20.0
    pooled = [np.append(table[~rare], table[rare].sum()) for table in (counts, expected)]
    return float(
        stats.chisquare(*(table[: len(table) if rare.any() else -1] for table in pooled)).pvalue
    )


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("name", SMALL)
def test_small_lattices_have_the_frequencies_of_f(name: str, norm: str) -> None:
    domain, digits, slack, size = SMALL[name]
    mechanism, epsilon = small_mechanism(domain, norm), 6.0
    expected = np.array(list(exact_law(mechanism.target(epsilon=epsilon)).values())) * size
    whole = split_by(tuple(range(domain.dimension)), domain.dimension)
    p_value = goodness_of_fit(
        counts_of(mechanism, epsilon, whole, size=size, digits=digits, slack=slack), expected
    )
    assert p_value > ALPHA, (name, norm, size, p_value)
    if digits == 30:
        wrong = goodness_of_fit(counts_of(mechanism, MUTANT * epsilon, whole, size=size), expected)
        assert wrong < ALPHA, (name, norm, size, wrong)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize(("columns", "pull"), [((2,), 0.0), ((0, 2), 0.0), ((1, 0), 1.5)])
def test_splits_have_the_frequencies_of_f(columns: tuple[int, ...], pull: float, norm: str) -> None:
    mechanism, epsilon, size = small_mechanism(em.L1Ball(3, 1.0, bits=3), norm), 6.0, 20_000
    expected = np.array(list(exact_law(mechanism.target(epsilon=epsilon)).values())) * size
    split = split_by(columns, 3, pull=pull)
    p_value = goodness_of_fit(counts_of(mechanism, epsilon, split, size=size), expected)
    assert p_value > ALPHA, (columns, pull, norm, size, p_value)
    wrong = goodness_of_fit(counts_of(mechanism, MUTANT * epsilon, split, size=size), expected)
    assert wrong < ALPHA, (columns, pull, norm, size, wrong)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("kind", ["L1 ball", "L2 ball", "box"])
def test_splits_agree_with_uniform_rejection_at_full_resolution(kind: str, norm: str) -> None:
    p, size, epsilon = 5, 3_000, 10.0 if norm == "l1" else 4.0
    domain: Any = {
        "L1 ball": em.L1Ball(p, 1.0),
        "L2 ball": em.L2Ball(p, 0.7),
        "box": em.Box([-0.5] * p, [0.3] * p),
    }[kind]
    generator = np.random.default_rng(2)
    features = np.column_stack(
        [np.ones(40), np.clip(0.4 * generator.normal(size=(40, p - 1)), -1.0, 1.0)]
    )
    loss = em.losses.RidgeGradient(
        features, features @ np.full(p, 0.2), penalty=1.0, radius=2.5, norm=norm
    )
    mechanism = em.ExponentialMechanism(loss=loss, domain=domain)
    chain, _ = prepared(mechanism, em.Rejection(em.Uniform()), epsilon=epsilon)
    plain = run(chain, Coins(seeded_bits(7)), size).values
    direction = np.arange(1.0, p + 1.0)
    for split in (split_by((0,), p), split_by((4, 0), p), split_by((0, 1, 2, 3, 4), p, pull=5.0)):
        for factor in (1.0, 1.5):
            drawn = run(
                with_split(mechanism, factor * epsilon, split), Coins(seeded_bits(8)), size
            ).values
            pairs = ((loss(drawn), loss(plain)), (drawn @ direction, plain @ direction))
            p_values = [stats.ks_2samp(*pair).pvalue for pair in pairs]
            assert (min(p_values) > ALPHA) == (factor == 1.0), (kind, norm, split, factor, p_values)


def residuals(
    p: int, norm: str, epsilon: float, size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], Any]:
    """Return ``eta (A y - b)`` of draws at 1 and at 1.1 epsilon, eta that of epsilon.

    For strongly correlated columns.
    """
    generator = np.random.default_rng(p)
    rows, copies = 20_000, 1_000
    whole = np.rint(
        np.clip(
            0.6 * generator.normal(size=(rows, 1)) + 0.2 * generator.normal(size=(rows, p + 1)),
            -1,
            1,
        )
        * 2.0**10
    )
    products = (whole.T @ whole).astype(np.int64).astype(object) * copies
    loss = em.losses.RidgeGradient.from_moments(
        count=rows * copies,
        gram=products[:p, :p].tolist(),
        moment=products[:p, p].tolist(),
        scale=1 << 10,
        penalty=1.0,
        radius=4.0,
        norm=norm,
    )
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.L1Ball(p, 4.0, bits=40))
    eta = mechanism.target(epsilon=epsilon).eta
    sampler = em.Rejection(em.Affine())
    drawn = [
        mechanism.sample(epsilon=e, size=size, sampler=sampler, seed=9)
        for e in (epsilon, MUTANT * epsilon)
    ]
    one, other = (eta * (draws.values @ loss.affine.matrix - loss.affine.vector) for draws in drawn)
    return one, other, drawn[0].proposals


@pytest.mark.parametrize("p", [5, 20])
def test_l1_residuals_are_independent_laplace(p: int) -> None:
    size = 6_000
    right, wrong, proposals = residuals(p, "l1", 0.1, size)
    values = [stats.kstest(right[:, j], stats.laplace.cdf).pvalue for j in range(p)]
    assert min(values) > ALPHA, (p, size, min(values))
    # independent coordinates: the norm is a sum of p exponentials
    assert stats.kstest(np.abs(right).sum(axis=1), stats.gamma(p).cdf).pvalue > ALPHA
    assert stats.kstest(np.abs(wrong).sum(axis=1), stats.gamma(p).cdf).pvalue < ALPHA
    assert size / proposals.sum() > 0.9


@pytest.mark.parametrize("p", [5, 20])
def test_linf_residuals_are_uniform_on_cubes_of_gamma_half_width(p: int) -> None:
    size = 6_000
    right, wrong, proposals = residuals(p, "linf", 0.1, size)
    largest = np.abs(right).max(axis=1)
    assert stats.kstest(largest, stats.gamma(p).cdf).pvalue > ALPHA
    assert stats.kstest(np.abs(wrong).max(axis=1), stats.gamma(p).cdf).pvalue < ALPHA
    shares = right / largest[:, None]
    at_face = np.abs(shares) == 1.0
    assert stats.chisquare(at_face.sum(axis=0)).pvalue > ALPHA  # every face alike
    assert stats.kstest(shares[~at_face], stats.uniform(-1.0, 2.0).cdf).pvalue > ALPHA
    assert size / proposals.sum() > 0.9


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_proposals_lie_within_the_slack_that_the_offset_promises(norm: str) -> None:
    mechanism = small_mechanism(em.L1Ball(3, 1.0, bits=20), norm)
    chain, target = prepared(mechanism, em.Rejection(em.Affine()), epsilon=100.0)
    indices, drawn_with = chain.envelope.propose(Coins(seeded_bits(2)), 20_000)
    inside = target.domain.contains(indices)
    deficit = target.energy(indices[inside]) + chain.envelope.offset - drawn_with[inside]
    assert inside.sum() > 1_000
    assert deficit.min() >= 0 and deficit.max() <= 2.01 * chain.envelope.offset
    assert (
        propose(target, chain.envelope, Coins(seeded_bits(2)), 20_000)[1].sum()
        > 0.95 * inside.sum()
    )


def test_kept_cube_draws_have_gamma_half_widths_at_a_small_rate() -> None:
    rate = Fraction(1, 1 << 12)
    steps, kept = propose_cube_laplace(Coins(seeded_bits(4)), 20, rate, 20_000)
    largest = np.abs(steps[kept]).max(axis=1) * float(rate)
    assert stats.kstest(largest, stats.gamma(20).cdf).pvalue > ALPHA
    assert stats.kstest(MUTANT * largest, stats.gamma(20).cdf).pvalue < ALPHA
    assert kept.mean() > 0.99
