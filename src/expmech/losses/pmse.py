"""How well a classifier can tell real rows from synthetic ones: the loss of the pMSE mechanism."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.errors import LossError, ParameterError
from expmech.core.rounding import float_up
from expmech.domains import Domain
from expmech.losses.base import NO_NAN, Facts, validate_count, validate_function, validate_rows

_OWNER = "PMSE"
_MOST_CELLS = 1 << 16
_BROKEN = (
    "`synthetic` of PMSE must return a table of numbers without nan for each parameter, with as"
    " many rows each time and as many columns as the data; it did not."
)
FIXED_DRAWS = (
    "`synthetic` is public and gives the same rows for the same parameter every time it is called"
)


class PMSE:
    """``L(y) = sum_B n_B^2 / (n_B + m_B(y))``, up to a constant: N times the pMSE of parameter y.

    The n_B real and m_B synthetic rows in cell B of a public partition give the propensity
    ``n_B / (n_B + m_B)``; the mean square of its distance from ``n / N`` over all N = n + m rows is
    the pMSE of Snoke and Slavkovic. It is 0 where the two histograms are proportional.

    Parameters
    ----------
    rows : array-like of shape (n, k)
        Confidential data.
    synthetic : callable
        ``synthetic(y)`` returns the (m, k) rows that parameter y stands for, made from public draws
        that were fixed beforehand: a function, the same rows every time.
    edges : sequence of k sequences of float
        Public: increasing edges of the cells in each column; the outer cells have no end.
    adjacency : {"replace", "add-remove"}, default "replace"
        "replace": D = 1; "add-remove": 1/2.

    Notes
    -----
    Proof of the sensitivity, also for partitions that are chosen among many to tell the two apart
    best: docs/theory/pmse.md.

    Examples
    --------
    >>> draws = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> loss = PMSE([[0.2], [0.3]], synthetic=lambda y: draws * y[0], edges=[[0.5]])
    >>> loss(np.array([[1.0], [0.5]])).round(6).tolist()
    [0.333333, 0.0]
    """

    def __init__(
        self,
        rows: ArrayLike,
        *,
        synthetic: Callable[[Floats], Any],
        edges: Sequence[Sequence[float]],
        adjacency: str = "replace",
    ) -> None:
        table = validate_rows(rows, name="rows", owner=_OWNER)
        self._synthetic = validate_function(synthetic, name="synthetic", owner=_OWNER)
        self._edges = [np.asarray(each, dtype=np.float64) for each in edges]
        if len(self._edges) != table.shape[1] or any(
            each.ndim != 1 or not (np.diff(each) > 0.0).all() or not np.isfinite(each).all()
            for each in self._edges
        ):
            raise ParameterError(
                f"`edges` of {_OWNER} must be one list of increasing numbers per column of `rows`."
            )
        self._shape = tuple(len(each) + 1 for each in self._edges)
        if np.prod(self._shape, dtype=np.float64) > _MOST_CELLS:
            raise ParameterError(f"`edges` of {_OWNER} must make at most 2^16 cells.")
        self.adjacency = validate_adjacency(adjacency, owner=_OWNER)
        self._count = len(table)
        self._public_count = validate_count(self._count, self.adjacency, name="rows", owner=_OWNER)
        self._real = self._counts(table)
        self._synthetic_rows: int | None = None
        self.sensitivity = Fraction(1, 1 if self.adjacency == "replace" else 2)

    def _counts(self, table: Floats) -> Integers:
        """Return the number of rows in each cell."""
        places = [
            np.searchsorted(each, table[:, j], side="right") for j, each in enumerate(self._edges)
        ]
        flat = np.ravel_multi_index(tuple(places), self._shape)
        return np.bincount(flat, minlength=int(np.prod(self._shape))).astype(np.int64)

    def __call__(self, points: Floats) -> Floats:
        """Return the loss of each parameter."""
        return np.array([self._loss_at(point) for point in points], dtype=np.float64)

    def _loss_at(self, point: Floats) -> float:
        table = np.asarray(self._synthetic(point), dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != len(self._edges) or np.isnan(table).any():
            raise LossError(_BROKEN)
        if self._synthetic_rows is None:
            self._synthetic_rows = len(table)
        # The sensitivity is proved for one number of synthetic rows (docs/theory/pmse.md).
        if len(table) != self._synthetic_rows:
            raise LossError(_BROKEN)
        # sum_B n_B^2 / (n_B + m_B): the part of N pMSE that depends on y; the rest is subtracted
        # below
        real, both = self._real, self._real + self._counts(table)
        total = float((real * (real / np.maximum(both, 1))).sum())
        if self.adjacency == "replace":
            return total - self._count * (self._count / (self._count + self._synthetic_rows))
        return total - self._count / 2.0

    def facts(self, domain: Domain) -> Facts:
        """Return what is proved; the number of rows counts as public under replace."""
        rows = self._public_count
        least = 0.0 if self.adjacency == "replace" else -rows / 2.0
        cells = int(np.prod(self._shape))
        error = (cells + 8) * Fraction(rows, 1 << 52)
        return Facts(
            sensitivity=self.sensitivity,
            adjacency=self.adjacency,
            minimum=least - float_up(error),
            bound=float_up(rows + error),
            loss_error=error,
            assumptions=(NO_NAN, FIXED_DRAWS),
        )
