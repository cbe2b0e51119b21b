"""Minus the log-likelihood of the rows, each row's part clipped to public bounds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import Array, Floats, Integers
from expmech.core.errors import (
    LossError,
    ParameterError,
    ParameterTypeError,
    validate_number,
    validate_vector,
)
from expmech.core.rounding import float_up
from expmech.domains import Domain
from expmech.domains.base import probe_indices
from expmech.losses.base import MOST_ROWS, Facts, validate_function

_OWNER = "BoundedLogLikelihood"
_STEPS = 1 << 30  # in half the range of a row: sums of 2^32 rows fit into 64 bits
_BROKEN = (
    "`log_likelihood` must return a table of float64 numbers, one line per point and one column per"
    " row of data; it did not."
)
SLOPES = "declared by the caller: a row's log-likelihood changes no faster than `lipschitz`"
ROWS_ALONE = "each column of the log-likelihood depends on one row of the data and on no other"


class BoundedLogLikelihood:
    """``L(y) = -sum_i clip(l_i(y), low, high)``, up to a constant, for log-likelihoods l_i of rows.

    Parameters
    ----------
    log_likelihood : callable
        Takes points, one per line, and returns one column per row of the confidential data.
    bound : tuple of two floats
        Public ``(low, high)``: what a row's log-likelihood is clipped to, wherever it is outside;
        nan counts as low.
    adjacency : {"replace", "add-remove"}, default "replace"
        "replace": D = high - low; "add-remove": half of it.
    lipschitz : array-like, optional
        Public: how fast a row's log-likelihood may change, one constant per coordinate.

    Notes
    -----
    Each clipped term is rounded to one of 2^31 levels between the bounds, and levels are summed as
    integers. So D holds for what is computed, whatever the function returns, and the order of the
    rows does not matter. Proof: docs/theory/posterior.md.

    Examples
    --------
    >>> loss = BoundedLogLikelihood(lambda y: np.log(y[:, :1] * [1.0, 1.0]), bound=(-4.0, 0.0))
    >>> loss(np.array([[1.0], [np.exp(-1.0)]])).round(6).tolist()
    [-4.0, -2.0]
    """

    def __init__(
        self,
        log_likelihood: Callable[[Array], Any],
        *,
        bound: tuple[float, float],
        adjacency: str = "replace",
        lipschitz: Any = None,
    ) -> None:
        try:
            low, high = bound
        except (TypeError, ValueError):
            raise ParameterTypeError(
                f"`bound` of {_OWNER} must be two numbers, the least and the largest"
                f" log-likelihood of a row; got {bound!r}."
            ) from None
        self.log_likelihood = validate_function(log_likelihood, name="log_likelihood", owner=_OWNER)
        self.low = float(validate_number(low, name="bound", owner=_OWNER))
        self.high = float(validate_number(high, name="bound", owner=_OWNER))
        if not self.low < self.high:
            raise ParameterError(
                f"`bound` of {_OWNER} must be a number and a larger one; got {bound!r}."
            )
        self.adjacency = validate_adjacency(adjacency, owner=_OWNER)
        self._slopes = None
        if lipschitz is not None:
            self._slopes = validate_vector(lipschitz, name="lipschitz", owner=_OWNER)
        self._half = (Fraction(self.high) - Fraction(self.low)) / 2
        self.sensitivity = self._half * (2 if self.adjacency == "replace" else 1)

    def __call__(self, points: Array) -> Floats:
        """Return the loss of each point, exact sums of levels."""
        levels = self._levels(points)
        return np.asarray(-levels.sum(axis=1, dtype=np.int64) * self._step)

    @property
    def _step(self) -> float:
        return float(self._half / _STEPS)

    def _levels(self, points: Array) -> Integers:
        """Return the level of each point and row, from -2^30 to 2^30."""
        with np.errstate(all="ignore"):
            table = np.asarray(self.log_likelihood(points))
        if table.ndim != 2 or len(table) != len(points) or table.dtype != np.float64:
            raise LossError(_BROKEN)
        if table.shape[1] > MOST_ROWS:
            raise LossError(_BROKEN)
        table = np.where(np.isnan(table), self.low, table)  # no record may cause an error
        middle, half = (self.high + self.low) / 2.0, (self.high - self.low) / 2.0
        shares = np.clip((np.clip(table, self.low, self.high) - middle) / half, -1.0, 1.0)
        return np.asarray(np.rint(shares * _STEPS), dtype=np.int64)

    def facts(self, domain: Domain) -> Facts:
        """Return what the bounds prove; the number of rows counts as public under replace."""
        rows = MOST_ROWS
        if self.adjacency == "replace":
            points = domain.points(probe_indices(domain)[:1])
            rows = self._levels(np.ascontiguousarray(points)).shape[1]
            if not rows:
                raise ParameterError(
                    f"`log_likelihood` of {_OWNER} must have a column for at least one row under"
                    " 'replace'."
                )
        largest = rows * self._half
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=self.adjacency,
            minimum=-float_up(largest),
            bound=float_up(largest),
            loss_error=largest * Fraction(1, 1 << 51),  # of a step, a sum and their product
            lower_bound=None if self._slopes is None else partial(self._lower_bound, self._slopes),
            assumptions=(ROWS_ALONE,) if self._slopes is None else (ROWS_ALONE, SLOPES),
        )

    def _lower_bound(self, slopes: Floats, lower: Floats, upper: Floats) -> Floats:
        """Return the loss at the middle of each box, less what rows can change to its corners.

        Rounding to levels moves a term by at most two of them at either point: four are taken off.
        """
        middle = np.ascontiguousarray((lower + upper) / 2.0)
        levels = self._levels(middle)
        moved = ((upper - lower) / 2.0 * slopes).sum(axis=1) * (1.0 + 2.0**-40)
        sums = -levels.sum(axis=1, dtype=np.int64) * self._step
        return np.asarray(sums - levels.shape[1] * (moved + 4.0 * self._step))
