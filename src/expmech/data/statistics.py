"""One function a statistic: aggregate in the engine, and return a mechanism that is ready to be charged and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.data.aggregate import Bounds, Moments, histogram, moments, row_count, tally, validate_bounds
from expmech.data.source import DataError, Source
from expmech.domains import Box, Candidates, L1Ball
from expmech.errors import ParameterError
from expmech.mechanism.losses import L1Mean, Quantile, RidgeGradient, Scores
from expmech.release import Certificate, ExponentialMechanism, NoisyMean, Release
from expmech.release.noisy_sum import affordable_bits
from expmech.samplers import Sampler

_LEAST_ROWS = 2
_MOST_ROWS = 1 << 31
_PRODUCT_BITS = 20  # steps of 2^-20 of a width, far below the noise; products of two fit in 64 bits


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A mechanism with its budget: everything is settled but the draw."""

    mechanism: ExponentialMechanism | NoisyMean
    epsilon: Fraction
    sampler: Sampler | str = "auto"
    finish: Callable[[Any], Any] = lambda value: value  # from the lattice to the units of the table

    def certificate(self) -> Certificate:
        """Return the certificate the release will carry; nothing is drawn."""
        if isinstance(self.mechanism, NoisyMean):
            return self.mechanism.certificate(epsilon=self.epsilon)
        return self.mechanism.certificate(epsilon=self.epsilon, sampler=self.sampler)

    def release(self) -> Release:
        """Draw the value."""
        if isinstance(self.mechanism, NoisyMean):
            drawn = self.mechanism.release(epsilon=self.epsilon)
        else:
            drawn = self.mechanism.release(epsilon=self.epsilon, sampler=self.sampler)
        return Release(value=self.finish(drawn.value), certificate=drawn.certificate)


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
    """Prepare the mean of clipped columns: noise on the integer sums, or the exponential mechanism where a sampler is given."""
    _check_missing(missing, adjacency)
    bits = affordable_bits(epsilon, len(columns))
    found = moments(source, columns, bounds, bits=bits, missing=missing)
    _check_rows(found.count, adjacency)
    limits = [validate_bounds(pair, name=name) for pair, name in zip(bounds, columns, strict=True)]
    lower, upper = ([pair[side] for pair in limits] for side in (0, 1))
    if sampler is None:
        noisy = NoisyMean(count=found.count, sums=found.sums, bits=bits, lower=lower, upper=upper, adjacency=adjacency)
        return Prepared(mechanism=noisy, epsilon=epsilon)
    loss = L1Mean.from_sums(count=max(1, found.count), sums=found.sums, scale=1 << bits, lower=lower, upper=upper)
    mechanism = ExponentialMechanism(loss=loss, domain=Box(lower, upper), adjacency=adjacency)
    return Prepared(mechanism=mechanism, epsilon=epsilon, sampler=sampler)


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
    """Prepare the q-quantile of a clipped column: the rank loss ``|#{x < y} - q n|`` on a lattice of ``2^bits`` points.

    Values are first moved to the middle of their cell, so ranks are cumulative counts of the histogram. D = 1, and max(q, 1 - q)
    under add-remove.
    """
    _check_missing(missing, adjacency)
    if not 0 < q < 1:
        raise ParameterError(f"`q` of a quantile must be strictly between 0 and 1; got {float(q):g}.")
    lower, upper = validate_bounds(bounds, name=column)
    box = Box([lower], [upper], bits=bits)
    counts = histogram(source, column, (lower, upper), bits=bits, missing=missing)
    _check_rows(int(counts.sum()), adjacency)
    mechanism = ExponentialMechanism(loss=rank_loss(counts, q, box, adjacency), domain=box, adjacency=adjacency)
    return Prepared(mechanism=mechanism, epsilon=epsilon, sampler=sampler, finish=lambda value: float(value[0]))


def rank_loss(counts: NDArray[np.int64], q: Fraction, box: Box, adjacency: str) -> Quantile:
    """Return the rank loss of values moved to the middle of their cell, from the number of values in each cell."""
    total = int(counts.sum())
    if total > _MOST_ROWS:
        raise DataError("A quantile takes at most 2^31 rows.")
    middles = box.points(np.arange(len(counts))[:, None])[:, 0]
    lower, upper = float(box.lower[0]), float(box.upper[0])
    ranks = np.cumsum(counts) - counts
    return Quantile.from_ranks(edges=middles, ranks=ranks, count=total, q=q, lower=lower, upper=upper, adjacency=adjacency)


def ridge(
    source: Source,
    features: Sequence[str],
    target: str,
    bounds: Sequence[Bounds],
    target_bounds: Bounds,
    *,
    epsilon: Fraction,
    penalty: float = 1.0,
    radius: float = 1.0,
    adjacency: str = "replace",
    missing: str = "error",
    sampler: Sampler | str = "auto",
) -> Prepared:
    """Prepare a ridge regression with intercept: the K-norm gradient mechanism, in the L-infinity norm, on cross products.

    Columns are scaled to [-1, 1] by their bounds; ``radius`` bounds the L1 norm of the coefficients, intercept included, and
    ``penalty``
    is the ridge penalty, both on that scale. The release is in the units of the table.
    """
    _check_missing(missing, adjacency)
    limits = [validate_bounds(pair, name=name) for pair, name in zip([*bounds, target_bounds], [*features, target], strict=True)]
    found = moments(source, [*features, target], limits, bits=_PRODUCT_BITS, missing=missing, products=True)
    _check_rows(found.count, adjacency)
    gram = _centred(found)
    p = len(features) + 1  # the constant comes first
    loss = RidgeGradient.from_moments(
        count=found.count,
        gram=[line[:p] for line in gram[:p]],
        moment=[line[p] for line in gram[:p]],
        scale=1 << _PRODUCT_BITS,
        penalty=penalty,
        radius=radius,
        adjacency=adjacency,
    )
    mechanism = ExponentialMechanism(loss=loss, domain=L1Ball(p, radius), adjacency=adjacency)

    def finish(coefficients: Any) -> dict[str, float]:
        middles = [(lower + upper) / 2 for lower, upper in limits]
        halves = [(upper - lower) / 2 for lower, upper in limits]
        slopes = [halves[-1] * float(value) / half for value, half in zip(coefficients[1:], halves[:-1], strict=True)]
        constant = middles[-1] + halves[-1] * float(coefficients[0])
        intercept = constant - sum(slope * middle for slope, middle in zip(slopes, middles[:-1], strict=True))
        return {"intercept": intercept, **dict(zip(features, slopes, strict=True))}

    return Prepared(mechanism=mechanism, epsilon=epsilon, sampler=sampler, finish=finish)


def _centred(found: Moments) -> list[list[int]]:
    """Return the cross products of the constant and the columns, as whole numbers from ``-2^bits`` to ``2^bits``: 2 k - 2^bits."""
    scale, sums = 1 << found.bits, found.sums
    d = len(sums)
    ones = [scale * (2 * total - found.count * scale) for total in sums]
    rows = [
        [4 * found.products[i][j] - 2 * scale * (sums[i] + sums[j]) + found.count * scale**2 for j in range(d)] for i in range(d)
    ]
    return [[found.count * scale**2, *ones], *([ones[i], *rows[i]] for i in range(d))]


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
        raise ParameterError(f"`candidates` must be at least two different values; got {', '.join(candidates) or 'none'}.")
    if adjacency == "replace":
        _check_rows(row_count(source), adjacency)
    counts = np.array(tally(source, column, candidates), dtype=np.float64)
    # Under add-remove all counts move the same way, which halves the sensitivity: see Scores.
    sensitivity = Fraction(1) if adjacency == "replace" else Fraction(1, 2)
    mechanism = ExponentialMechanism(
        loss=Scores(counts.tolist()), domain=Candidates(candidates), adjacency=adjacency, sensitivity=sensitivity
    )
    return Prepared(mechanism=mechanism, epsilon=epsilon, sampler=sampler)


def _check_rows(count: int, adjacency: str) -> None:
    """Refuse an empty table and a single row where the number of rows is public; elsewhere a refusal would betray it."""
    if adjacency == "replace" and count < _LEAST_ROWS:
        raise DataError(
            "The table has no rows." if count == 0 else "The table has one row: at least two are needed for a statistic of many."
        )


def _check_missing(missing: str, adjacency: str) -> None:
    if missing == "drop" and adjacency == "replace":
        raise ParameterError(
            "`missing` must not be 'drop' under 'replace' adjacency: whether a row is dropped would change the number of rows, "
            "which 'replace' treats as public. Use 'clip', or 'add-remove' adjacency."
        )
