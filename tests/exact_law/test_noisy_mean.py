"""The noisy sum.

Its law by enumeration, its privacy over all neighbours, and the range of snapping.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import draw_values

from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.mechanisms.noisy_sums.noisy_sums import NoisyMean, affordable_bits, snap

BITS, EPSILON = 2, Fraction(6)


def law(
    rows: tuple[int, ...], adjacency: str, epsilon: Fraction = EPSILON
) -> dict[Hashable, float]:
    """Return the law of the released mean for rows already snapped to 0 .. 4."""
    mean = NoisyMean(
        count=len(rows), sums=[sum(rows)], bits=BITS, lower=[0.0], upper=[1.0], adjacency=adjacency
    )
    cut = 1e-11 if adjacency == "replace" else 1e-8  # two noises make many paths
    enumerated, leftover = law_of(
        lambda coins: float(draw_values(mean, coins, epsilon=epsilon, size=1)[0, 0]), cut=cut
    )
    assert leftover < 3e-5
    return enumerated


def discrete_laplace(center: int, rate: float, low: int, high: int) -> dict[int, float]:
    """Return the law of a discrete Laplace variable about ``center``, clamped to ``low ..

    High``.
    """
    scale = math.tanh(rate / 2)
    masses: dict[int, float] = {}
    for value in range(center - 400, center + 401):
        clamped = min(max(value, low), high)
        masses[clamped] = masses.get(clamped, 0.0) + scale * math.exp(-rate * abs(value - center))
    return masses


@pytest.mark.parametrize("rows", [(0, 4, 1), (4, 4, 4), (2, 3, 0)])
def test_replace_law_is_clamped_discrete_laplace(rows: tuple[int, ...]) -> None:
    whole = len(rows) << BITS
    expected = discrete_laplace(sum(rows), float(EPSILON) / (1 << BITS), 0, whole)
    closed: dict[Hashable, float] = {value / whole: mass for value, mass in expected.items()}
    assert total_variation(law(rows, "replace"), closed) < 1e-9
    wider: dict[Hashable, float] = {
        value / whole: mass
        for value, mass in discrete_laplace(sum(rows), float(EPSILON) / 8, 0, whole).items()
    }
    assert total_variation(law(rows, "replace"), wider) > 1e-2


def two_sums(rows: tuple[int, ...]) -> dict[Hashable, float]:
    """Return the closed form of the add-remove law."""
    rate, top = float(EPSILON) / (1 << BITS), 1000
    below = discrete_laplace(sum(rows), rate, 0, top)
    above = discrete_laplace((len(rows) << BITS) - sum(rows), rate, 0, top)
    closed: dict[Hashable, float] = {}
    for (u, p), (v, q) in itertools.product(below.items(), above.items()):
        value = u / (u + v) if u + v else 0.5
        closed[value] = closed.get(value, 0.0) + p * q
    return closed


@pytest.mark.parametrize("rows", [(), (1,), (4, 0, 3)])
def test_add_remove_law_is_a_ratio_of_two_noisy_sums(rows: tuple[int, ...]) -> None:
    found = law(rows, "add-remove")
    assert total_variation(found, two_sums(rows)) < 3e-5
    assert total_variation(found, two_sums((*rows, 2))) > 1e-2


def test_replace_is_private_for_every_pair_of_neighbours_and_doubled_rates_are_not() -> None:
    every = range((1 << BITS) + 1)
    laws = {row: law((row, 2), "replace") for row in every}
    worst = max(largest_log_ratio(laws[a], laws[b]) for a, b in itertools.combinations(every, 2))
    assert EPSILON * Fraction(99, 100) < worst <= EPSILON * (1 + Fraction(1, 10**6))
    doubled = [law((row, 2), "replace", 2 * EPSILON) for row in (0, 1 << BITS)]
    assert largest_log_ratio(*doubled) > EPSILON * Fraction(3, 2)


def test_add_remove_is_private_for_every_row_added() -> None:
    without = two_sums((3, 1))
    for row in range((1 << BITS) + 1):
        assert largest_log_ratio(without, two_sums((3, 1, row)), ignore=1e-60) <= float(EPSILON) * (
            1 + 1e-6
        )


bounds = st.floats(-1e12, 1e12, allow_nan=False)


@given(bounds, bounds, st.floats(allow_nan=False), st.integers(1, 32))
def test_snapped_values_never_leave_their_range(
    one: float, two: float, value: float, bits: int
) -> None:
    lower, upper = np.array([min(one, two)]), np.array([max(one, two)])
    if not upper - lower > 1e-290:
        return
    for x in (value, lower[0], upper[0], np.nextafter(upper[0], lower[0])):
        assert 0 <= int(snap(np.array([x]), lower, upper, bits)[0]) <= 1 << bits
    assert int(snap(upper, lower, upper, bits)[0]) == 1 << bits


def test_means_of_several_columns_are_close_at_large_epsilon() -> None:
    rows = np.array([[0.0, -5.0], [1.0, 5.0], [0.5, np.inf]])
    for adjacency in ("replace", "add-remove"):
        mean = NoisyMean.from_rows(rows, lower=[0.0, -10.0], upper=[1.0, 10.0], adjacency=adjacency)
        np.testing.assert_allclose(mean.sample(epsilon=1e5, seed=1)[0], [0.5, 10 / 3], atol=1e-2)


def test_certificate_says_what_was_done_and_hides_the_count_under_add_remove() -> None:
    rows = np.array([[0.25], [0.5]])
    public = NoisyMean.from_rows(rows, lower=[0.0], upper=[1.0]).release(epsilon=0.5).certificate
    assert public.domain["count"] == 2
    assert public.eta * public.sensitivity <= 0.5 < public.eta * public.sensitivity * (1 + 1e-12)
    assert (
        "count"
        not in NoisyMean.from_rows(rows, lower=[0.0], upper=[1.0], adjacency="add-remove")
        .certificate(epsilon=1)
        .domain
    )


def test_bits_that_epsilon_cannot_pay_for_are_refused_with_the_number_that_would_do() -> None:
    epsilon = Fraction(1, 1 << 20)
    rows = np.zeros((3, 16))
    bits = affordable_bits(epsilon, 16)
    assert bits == 31
    assert affordable_bits(Fraction(1), 1) == 32
    with pytest.raises(ParameterError, match=f"at most {bits}"):
        NoisyMean.from_rows(rows, lower=[0.0] * 16, upper=[1.0] * 16).release(epsilon=epsilon)
    assert NoisyMean.from_rows(rows, lower=[0.0] * 16, upper=[1.0] * 16, bits=bits).release(
        epsilon=epsilon
    ).value.shape == (16,)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ParameterError, match="must be below"):
        NoisyMean.from_rows(np.zeros((2, 1)), lower=[1.0], upper=[0.0])
    with pytest.raises(ParameterError, match="usual size"):
        NoisyMean.from_rows(np.zeros((2, 1)), lower=[0.0], upper=[5e-324])
    with pytest.raises(ParameterTypeError, match="without nan"):
        NoisyMean.from_rows([[np.nan]], lower=[0.0], upper=[1.0])
    with pytest.raises(ParameterError, match="sums of snapped rows do"):
        NoisyMean(count=1, sums=[5], bits=2, lower=[0.0], upper=[1.0])
    with pytest.raises(ParameterError, match="whole number in 1"):
        NoisyMean.from_rows(np.zeros((0, 1)), lower=[0.0], upper=[1.0])
