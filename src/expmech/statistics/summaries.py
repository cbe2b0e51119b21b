"""Means, quantiles and the best of a list, from exact aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Box, Candidates
from expmech.errors import ParameterError
from expmech.losses import L1Mean, Quantile, Scores
from expmech.release import ExponentialMechanism, NoisyMean
from expmech.samplers import Sampler
from expmech.statistics.aggregates import Bounds, Moments
from expmech.statistics.prepared import Prepared

_MOST_ROWS = 1 << 31


def mean(
    found: Moments,
    bounds: Sequence[Bounds],
    *,
    epsilon: Fraction,
    adjacency: str = "replace",
    sampler: Sampler | str | None = None,
) -> Prepared:
    """Prepare a mean.

    Noise on the integer sums, or the exponential mechanism, which pays a factor 2, where a sampler
    is given.
    """
    lower, upper = ([pair[side] for pair in bounds] for side in (0, 1))
    if sampler is None:
        noisy = NoisyMean(
            count=found.count,
            sums=found.sums,
            bits=found.bits,
            lower=lower,
            upper=upper,
            adjacency=adjacency,
        )
        return Prepared(mechanism=noisy, epsilon=epsilon)
    loss = L1Mean.from_sums(
        count=max(1, found.count), sums=found.sums, scale=1 << found.bits, lower=lower, upper=upper
    )
    mechanism = ExponentialMechanism(loss=loss, domain=Box(lower, upper), adjacency=adjacency)
    return Prepared(mechanism=mechanism, epsilon=epsilon, sampler=sampler)


def quantile(
    counts: NDArray[np.int64],
    bounds: Bounds,
    q: Fraction,
    *,
    epsilon: Fraction,
    adjacency: str = "replace",
    sampler: Sampler | str = "auto",
) -> Prepared:
    """Prepare the q-quantile.

    The rank loss ``|#{x < y} - q n|`` on the middles of the cells that ``counts`` counts values in.

    Values are first moved to the middle of their cell, so ranks are cumulative counts. D = 1, and
    max(q, 1 - q) under add-remove.
    """
    if not 0 < q < 1:
        raise ParameterError(
            f"`q` of a quantile must be strictly between 0 and 1; got {float(q):g}."
        )
    box = Box([bounds[0]], [bounds[1]], bits=(len(counts) - 1).bit_length())
    mechanism = ExponentialMechanism(
        loss=rank_loss(counts, q, box, adjacency), domain=box, adjacency=adjacency
    )
    return Prepared(
        mechanism=mechanism, epsilon=epsilon, sampler=sampler, finish=lambda value: float(value[0])
    )


def rank_loss(counts: NDArray[np.int64], q: Fraction, box: Box, adjacency: str) -> Quantile:
    """Return the rank loss of values moved to the middle of their cell.

    From the number of values in each cell.
    """
    total = int(counts.sum())
    if total > _MOST_ROWS:
        raise ParameterError("A quantile takes at most 2^31 rows.")
    middles = box.points(np.arange(len(counts))[:, None])[:, 0]
    lower, upper = float(box.lower[0]), float(box.upper[0])
    ranks = np.cumsum(counts) - counts
    return Quantile.from_ranks(
        edges=middles, ranks=ranks, count=total, q=q, lower=lower, upper=upper, adjacency=adjacency
    )


def select(
    scores: Sequence[float],
    candidates: Sequence[Any],
    *,
    epsilon: Fraction,
    sensitivity: Fraction,
    adjacency: str = "replace",
    bound: float | None = None,
    sampler: Sampler | str = "auto",
) -> Prepared:
    """Prepare the choice of the best of a public list of candidates by score.

    ``sensitivity`` is that of the scores (half of it where all of them move the same way: see
    :class:`expmech.losses.Scores`), and ``bound`` a public bound on how far apart two scores can
    be, which only a constant running time needs.
    """
    loss, domain = Scores(scores), Candidates(candidates)
    mechanism = ExponentialMechanism(
        loss=loss, domain=domain, adjacency=adjacency, sensitivity=sensitivity, bound=bound
    )
    return Prepared(mechanism=mechanism, epsilon=epsilon, sampler=sampler)
