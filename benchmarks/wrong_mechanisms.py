"""Wrong mechanisms that were written after the audit was finished, to see what it finds.

Each claims epsilon = 1. ``python -m benchmarks.wrong_mechanisms`` prints the table of
benchmarks/results/audit.md. Nothing in the audit was changed after they were first run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import expmech as em
from expmech.auditing import neighbours

_RANDOM = np.random.default_rng(77)
Mechanism = Callable[[Any, int], Any]


def largest_noisy_count(counts: Any, n: int) -> Any:
    """Return the largest noisy count itself, with the noise that its index alone would need."""
    noisy = np.asarray(counts) + _RANDOM.laplace(scale=2.0, size=(n, len(counts)))
    return noisy.max(axis=1)


def sparse_without_threshold_noise(counts: Any, n: int) -> Any:
    """Say of each count whether it is above 3, up to the first that is; the threshold is exact."""
    above = np.asarray(counts) + _RANDOM.laplace(scale=2.0, size=(n, len(counts))) > 3.0
    return ["".join("-+"[int(one)] for one in row[: row.argmax() + 1]) for row in above]


def sparse_without_an_end(counts: Any, n: int) -> Any:
    """Say of every count whether it is above a noisy 3; it pays for the first one only."""
    threshold = 3.0 + _RANDOM.laplace(scale=2.0, size=(n, 1))
    return np.asarray(counts) + _RANDOM.laplace(scale=4.0, size=(n, len(counts))) > threshold


def sparse_without_an_end_as_text(counts: Any, n: int) -> Any:
    """Say the same as one word."""
    return ["".join("-+"[int(one)] for one in row) for row in sparse_without_an_end(counts, n)]


def sometimes_the_truth(rows: Any, n: int) -> Any:
    """Add noise to a sum, and forget to in two releases of a hundred."""
    noise = _RANDOM.laplace(size=n)
    return np.sum(rows) + np.where(_RANDOM.random(n) < 0.02, 0.0, noise)


def clipped_to_the_data(rows: Any, n: int) -> Any:
    """Add noise to a mean and clip it to the least and the largest row."""
    rows = np.asarray(rows)
    noisy = rows.mean() + _RANDOM.laplace(scale=1.0 / len(rows), size=n)
    return np.clip(noisy, rows.min(), rows.max())


def even_noise(rows: Any, n: int) -> Any:
    """Add geometric noise to a count in steps of two: its parity is that of the count."""
    p = 1.0 - np.exp(-0.1)
    noise = _RANDOM.geometric(p, size=n) - _RANDOM.geometric(p, size=n)
    return np.sum(np.asarray(rows) > 0.5) + 2 * noise


def median_among_the_rows(rows: Any, n: int) -> Any:
    """Choose a median by the exponential mechanism, with the rows themselves as candidates."""
    rows = np.sort(np.asarray(rows))
    weights = np.exp(-0.5 * np.abs(np.arange(len(rows)) - (len(rows) - 1) / 2))
    return _RANDOM.choice(rows, p=weights / weights.sum(), size=n)


def loop_until_accepted(rows: Any, n: int) -> Any:
    """Release noise and the number of rounds it took, which depends on the sum."""
    total = float(np.sum(rows))
    rounds = _RANDOM.geometric(1.0 / (2.0 + total), size=n)
    return np.column_stack([total + _RANDOM.laplace(size=n), rounds])


def histogram_of_what_there_is(values: Any, n: int) -> Any:
    """Add noise to the counts of values that occur, and leave out those that do not."""
    counts = {value: list(values).count(value) for value in sorted(set(values))}
    noise = np.rint(_RANDOM.laplace(scale=2.0, size=(n, len(counts)))).astype(int)
    found = [dict(zip(counts, np.array(list(counts.values())) + row, strict=True)) for row in noise]
    return [str({value: int(count) for value, count in one.items()}) for one in found]


def mean_of_some_rows(rows: Any, n: int) -> Any:
    """Return the mean of half of the rows, drawn at random, without noise."""
    rows = np.asarray(rows)
    chosen = _RANDOM.random((n, len(rows))).argsort(axis=1)[:, : (len(rows) + 1) // 2]
    return rows[chosen].mean(axis=1)


def rounded_exponentials(rows: Any, n: int) -> Any:
    """Add noise of the right scale that is rounded to hundredths before it is added."""
    return np.round(np.sum(rows) + np.round(_RANDOM.laplace(size=n), 2), 6)


COUNTS = [([3, 3, 3, 3], [4, 4, 4, 4]), ([3, 3, 3, 3], [4, 2, 2, 2]), ([3, 3, 4, 4], [4, 4, 3, 3])]
# With four counts the sparse vector that does not end keeps its claim; with twenty it does not.
MANY = [([3] * 10 + [4] * 10, [4] * 10 + [3] * 10)]
NUMBERS = neighbours.numbers(0.0, 1.0, rows=5)
VALUES = neighbours.values(["a", "b", "c"], rows=5)
THIRDS = [([0.0], [1.0 / 3.0])]

CASES: tuple[tuple[Mechanism, Sequence[Any], bool], ...] = (
    (largest_noisy_count, COUNTS, False),
    (sparse_without_threshold_noise, COUNTS, False),
    (sparse_without_an_end, MANY, False),
    (sparse_without_an_end_as_text, MANY, False),
    (sometimes_the_truth, NUMBERS, False),
    (clipped_to_the_data, NUMBERS, False),
    (even_noise, NUMBERS, False),
    (even_noise, NUMBERS, True),
    (median_among_the_rows, NUMBERS, False),
    (loop_until_accepted, NUMBERS, False),
    (histogram_of_what_there_is, VALUES, False),
    (mean_of_some_rows, NUMBERS, False),
    (rounded_exponentials, THIRDS, False),
    (rounded_exponentials, THIRDS, True),
)


def table() -> list[str]:
    """Audit each with 20,000 draws and return the lines of a table."""
    lines = ["| mechanism | epsilon is at least | draws | refuted |", "|---|---|---|---|"]
    for mechanism, near, floats in CASES:
        found = em.audit(mechanism, claim=em.Claim(epsilon=1.0), neighbours=near, floats=floats)
        name = mechanism.__name__.replace("_", " ") + (" (digits looked at)" if floats else "")
        told = "yes" if found.refuted else "**no**"
        lines.append(f"| {name} | {found.epsilon_at_least:.2f} | {found.draws} | {told} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
