"""Which coordinates an affine envelope solves for, and which it draws uniformly.

The choice with the least expected cost.

In float64, from confidential data: it steers the running time and never the law. Theory page:
docs/theory/affine.md, section 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Ball, Grid
from expmech.losses.base import AffineForm
from expmech.target import Target

# in multiples of the pull that suits a loss that is flat on the domain
_PULLS = np.geomspace(2.0**-6, 2.0**4, 41)

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Split:
    """Solve ``rows`` of the residual for ``columns``.

    The other coordinates, ``others``, are drawn uniformly.

    ``pull[i]`` is added to the entry of the matrix at ``rows[i]``, ``columns[i]``: it draws
    proposals toward the middle of the domain.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    others: tuple[int, ...]
    pull: tuple[float, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pivots:
    """Rows, columns and sizes of the pivots of ``A diag(h)``, the loss in lattice steps."""

    gradient: Floats
    rows: list[int]
    columns: list[int]
    sizes: Floats

    @property
    def rank(self) -> int:
        """How many pivots there are."""
        return len(self.rows)

    def first(self, k: int) -> _Pivots:
        """Return the k largest, in the order of elimination."""
        return _Pivots(
            gradient=self.gradient,
            rows=self.rows[:k],
            columns=self.columns[:k],
            sizes=self.sizes[:k],
        )


def choose_split(form: AffineForm, domain: Grid, target: Target) -> Split | None:
    """Return the split with the least ``offset + log Z_r``.

    That is the log of the expected proposals up to a constant.

    None where that is uniform proposals on all coordinates.
    """
    pivots = _eliminate(form.matrix * domain.steps)
    # k = 0: uniform proposals under the least energy that is promised
    costs = [domain.log_size - target.minimum_energy / target.units_per_nat]
    for k in range(1, pivots.rank + 1):
        costs.append(_cost(form.norm, domain, target.eta, pivots.first(k)))
    best = int(np.argmin(costs))
    least, k, pull = costs[best], best, np.zeros(best)
    for tried in {best, pivots.rank} - {0}:
        gain, towards = _best_pull(form, domain, target.eta, pivots.first(tried))
        if math.isfinite(gain) and costs[tried] - gain < least:
            least, k, pull = costs[tried] - gain, tried, towards
    if k == 0:
        return None
    chosen = pivots.first(k)
    return Split(
        rows=tuple(chosen.rows),
        columns=tuple(chosen.columns),
        others=_others(chosen.columns, domain.dimension),
        pull=tuple(pull.tolist()),
    )


def _cost(norm: str, domain: Grid, eta: float, pivots: _Pivots) -> float:
    """Return the cost, in nats, of solving for the columns of the pivots, up to a constant.

    The formula of docs/theory/affine.md, section 6, "the choice", without a pull.
    """
    k = pivots.rank
    # log Z + log |det T|, with det T ~ s^k / det C
    mass = k * math.log(2.0 / eta) - float(np.log(pivots.sizes).sum())
    if norm == "linf":
        mass += math.lgamma(k + 1.0)
    block = pivots.gradient[np.ix_(pivots.rows, pivots.columns)]
    # reach(C, 1/2): what rounding to the lattice may add to the norm
    rounding = np.abs(block).sum(axis=1) / 2.0
    offset = eta * float(rounding.sum() if norm == "l1" else rounding.max())
    others = _others(pivots.columns, domain.dimension)
    if not others:
        return mass + offset
    return mass + offset + domain.restrict(others).log_size


def _others(columns: list[int], dimension: int) -> tuple[int, ...]:
    return tuple(sorted(set(range(dimension)) - set(columns)))


def _eliminate(gradient: Floats) -> _Pivots:
    """Eliminate with complete pivoting; there are as many pivots as the rank."""
    left = gradient.copy()
    rows: list[int] = []
    columns: list[int] = []
    sizes: list[float] = []
    # what rounding leaves of entries that would be zero
    least = np.abs(gradient).max() * len(gradient) * 2.0**-50
    while len(rows) < len(gradient):
        i, j = divmod(int(np.argmax(np.abs(left))), len(gradient))
        pivot = left[i, j]
        if not abs(pivot) > least:
            break
        rows.append(i)
        columns.append(j)
        sizes.append(abs(float(pivot)))
        left -= np.outer(left[:, j], left[i] / pivot)
        left[i], left[:, j] = 0.0, 0.0
    return _Pivots(gradient=gradient, rows=rows, columns=columns, sizes=np.array(sizes))


def _best_pull(form: AffineForm, domain: Grid, eta: float, pivots: _Pivots) -> tuple[float, Floats]:
    """Return the largest gain, in nats, of adding ``pull`` to the pivots, and that pull.

    A pull of ``v`` over the half-widths of the domain multiplies the determinant by ``prod_j (e_j +
    v) / e_j`` and costs ``eta v`` times the norm that the domain's coordinates, over their
    half-widths, can reach.
    """
    k, half_widths = pivots.rank, domain.widths[pivots.columns] / 2.0
    block = form.matrix[np.ix_(pivots.rows, pivots.columns)] * half_widths
    try:
        # with these signs a pull makes the determinant larger, to first order
        signs = np.where(np.diag(np.linalg.inv(block)) < 0.0, -1.0, 1.0)
        eigenvalues = np.linalg.eigvals(block * signs)
    except np.linalg.LinAlgError:
        return 0.0, np.zeros(k)
    # only in L1, and off the L1 ball, do the coordinates add up
    in_l1_ball = isinstance(domain, Ball) and domain.norm == "l1"
    reach = k if form.norm == "l1" and not in_l1_ball else 1
    pulls = _PULLS * (k / (eta * reach))
    # a warning would depend on the data; what is not finite is not chosen
    with np.errstate(all="ignore"):
        stretch = np.abs(1.0 + np.divide.outer(pulls, eigenvalues))
        gains = np.log(stretch).sum(axis=1) - eta * reach * pulls
    best = int(np.argmax(gains))
    return float(gains[best]), pulls[best] * signs / half_widths
