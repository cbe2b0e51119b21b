"""Statistics of a table.

Aggregate in the engine, and return a mechanism that is ready to be charged and drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from expmech import statistics
from expmech.data.aggregate import histogram, labelled_rows, moments, row_count, tally
from expmech.data.source import DataError, Source
from expmech.errors import ParameterError
from expmech.release.noisy_mean import affordable_bits
from expmech.samplers import Sampler
from expmech.statistics import Bounds, Prepared, validate_bounds
from expmech.statistics.aggregates import PRODUCT_BITS
from expmech.statistics.regression import LOGISTIC_PENALTY

_LEAST_ROWS = 2


def mean(
    source: Source,
    columns: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    adjacency: str = "replace",
    missing: str = "error",
    sampler: Sampler | str | None = None,
) -> Prepared:
    """Prepare the mean of clipped columns.

    Noise on the integer sums, or the exponential mechanism where a sampler is given.
    """
    _check_missing(missing, adjacency)
    limits = _limits(columns, bounds)
    found = moments(
        source, columns, limits, bits=affordable_bits(epsilon, len(columns)), missing=missing
    )
    _check_rows(found.count, adjacency)
    return statistics.mean(found, limits, epsilon=epsilon, adjacency=adjacency, sampler=sampler)


def quantile(
    source: Source,
    column: str,
    bounds: Bounds,
    q: Fraction,
    *,
    epsilon: Fraction,
    bits: int = 16,
    adjacency: str = "replace",
    missing: str = "error",
    sampler: Sampler | str = "auto",
) -> Prepared:
    """Prepare the q-quantile of a clipped column on a lattice of ``2^bits`` points.

    From the histogram of its cells.
    """
    _check_missing(missing, adjacency)
    limits = validate_bounds(bounds, name=column)
    counts = histogram(source, column, limits, bits=bits, missing=missing)
    _check_rows(int(counts.sum()), adjacency)
    return statistics.quantile(
        counts, limits, q, epsilon=epsilon, adjacency=adjacency, sampler=sampler
    )


def ridge(
    source: Source,
    features: Sequence[str],
    target: str,
    bounds: Sequence[Bounds],
    target_bounds: Bounds,
    *,
    epsilon: Fraction,
    penalty: float | None = None,
    radius: float | None = None,
    adjacency: str = "replace",
    missing: str = "error",
    sampler: Sampler | str = "auto",
    box: bool = False,
) -> Prepared:
    """Prepare a ridge regression with intercept from integer cross products.

    The release is by name, in the units of the table.
    """
    _check_missing(missing, adjacency)
    limits = _limits([*features, target], [*bounds, target_bounds])
    found = moments(
        source, [*features, target], limits, bits=PRODUCT_BITS, missing=missing, products=True
    )
    _check_rows(found.count, adjacency)
    ready = statistics.ridge(
        found,
        limits,
        epsilon=epsilon,
        penalty=penalty,
        radius=radius,
        adjacency=adjacency,
        sampler=sampler,
        box=box,
    )
    return _named(ready, features)


def logistic(
    source: Source,
    features: Sequence[str],
    target: str,
    positive: str,
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    penalty: float = LOGISTIC_PENALTY,
    radius: float | None = None,
    adjacency: str = "replace",
    missing: str = "error",
    sampler: Sampler | str = "auto",
) -> Prepared:
    """Prepare a logistic regression of ``target == positive``, from rows in memory.

    It is no function of a few sums.

    The release is by name, in the units of the table.
    """
    _check_missing(missing, adjacency)
    limits = _limits(features, bounds)
    rows, labels = labelled_rows(
        source, features, limits, target=target, positive=positive, missing=missing
    )
    _check_rows(len(rows), adjacency)
    ready = statistics.logistic(
        rows,
        labels,
        limits,
        epsilon=epsilon,
        penalty=penalty,
        radius=radius,
        adjacency=adjacency,
        sampler=sampler,
    )
    return _named(ready, features)


def select(
    source: Source,
    column: str,
    candidates: Sequence[str],
    *,
    epsilon: Fraction,
    adjacency: str = "replace",
    sampler: Sampler | str = "auto",
) -> Prepared:
    """Prepare the choice of the most frequent of a public list of candidates."""
    if len(candidates) < 2 or len(set(candidates)) != len(candidates):
        raise ParameterError(
            "`candidates` must be at least two different values; got"
            f" {', '.join(candidates) or 'none'}."
        )
    rows = row_count(source) if adjacency == "replace" else None
    if rows is not None:
        _check_rows(rows, adjacency)
    counts = [float(count) for count in tally(source, column, candidates)]
    # Under add-remove all counts move the same way, which halves the sensitivity: see Scores.
    sensitivity, bound = (Fraction(1, 2), None) if rows is None else (Fraction(1), float(rows))
    return statistics.select(
        counts,
        candidates,
        epsilon=epsilon,
        sensitivity=sensitivity,
        adjacency=adjacency,
        bound=bound,
        sampler=sampler,
    )


def _limits(columns: Sequence[str], bounds: Sequence[Bounds]) -> list[Bounds]:
    if len(bounds) != len(columns):
        raise ParameterError(
            f"`bounds` must be given once for every column; got {len(bounds)} for {len(columns)}"
            " columns."
        )
    return [validate_bounds(pair, name=name) for pair, name in zip(bounds, columns, strict=True)]


def _named(ready: Prepared, features: Sequence[str]) -> Prepared:
    """Return coefficients under the names of their columns."""
    names = ["intercept", *features]
    return replace(
        ready, finish=lambda value: dict(zip(names, ready.finish(value).tolist(), strict=True))
    )


def _check_rows(count: int, adjacency: str) -> None:
    """Refuse an empty table and a single row where the number of rows is public.

    Elsewhere a refusal would betray it.
    """
    if adjacency == "replace" and count < _LEAST_ROWS:
        raise DataError(
            "The table has no rows."
            if count == 0
            else "The table has one row: at least two are needed for a statistic of many."
        )


def _check_missing(missing: str, adjacency: str) -> None:
    if missing == "drop" and adjacency == "replace":
        raise ParameterError(
            "`missing` must not be 'drop' under 'replace' adjacency: whether a row is dropped would"
            " change the number of rows, which 'replace' treats as public. Use 'clip', or"
            " 'add-remove' adjacency."
        )
