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

from expmech.coins import UNITS_PER_NAT
from expmech.domains import Box, L1Ball, L2Ball
from expmech.losses.base import AffineForm
from expmech.target import Target

_PULLS = np.geomspace(
    2.0**-6, 2.0**4, 41
)  # in multiples of the pull that suits a loss that is flat on the domain

Grid = Box | L1Ball | L2Ball


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


def restrict(domain: Grid, columns: tuple[int, ...]) -> Grid:
    """Return the lattice of the same kind on some coordinates.

    Every point of ``domain`` has its coordinates in it.
    """
    if isinstance(domain, Box):
        return Box(domain.lower[list(columns)], domain.upper[list(columns)], bits=domain.bits)
    return type(domain)(len(columns), domain.radius, bits=domain.bits)


def choose_split(form: AffineForm, domain: Grid, target: Target) -> Split | None:
    """Return the split with the least ``offset + log Z_r``.

    Which is the log of the expected proposals up to a constant.

    None where that is uniform proposals on all coordinates.
    """
    gradient = form.matrix * domain.steps
    rows, columns, sizes = _pivots(gradient)
    costs = [domain.log_size - target.minimum_energy / UNITS_PER_NAT]
    for k in range(1, len(rows) + 1):
        others = _others(columns[:k], domain.dimension)
        mass = k * math.log(2.0 / target.eta) - float(np.log(sizes[:k]).sum())
        if form.norm == "linf":
            mass += math.lgamma(k + 1.0)
        rounding = np.abs(gradient[np.ix_(rows[:k], columns[:k])]).sum(axis=1) / 2.0
        offset = target.eta * float(rounding.sum() if form.norm == "l1" else rounding.max())
        costs.append(mass + offset + (restrict(domain, others).log_size if others else 0.0))
    best = int(np.argmin(costs))
    found = (costs[best], best, np.zeros(best))
    for k in {best, len(rows)} - {0}:
        gain, pull = _best_pull(form, domain, target.eta, rows[:k], columns[:k])
        if math.isfinite(gain) and costs[k] - gain < found[0]:
            found = (costs[k] - gain, k, pull)
    _, k, pull = found
    if k == 0:
        return None
    others = _others(columns[:k], domain.dimension)
    return Split(
        rows=tuple(rows[:k]), columns=tuple(columns[:k]), others=others, pull=tuple(pull.tolist())
    )


def _others(columns: list[int], dimension: int) -> tuple[int, ...]:
    return tuple(sorted(set(range(dimension)) - set(columns)))


def _pivots(gradient: NDArray[np.float64]) -> tuple[list[int], list[int], NDArray[np.float64]]:
    """Eliminate with complete pivoting.

    Return rows, columns and sizes of the pivots, as many as the rank.
    """
    left = gradient.copy()
    rows: list[int] = []
    columns: list[int] = []
    sizes: list[float] = []
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
    return rows, columns, np.array(sizes)


def _best_pull(
    form: AffineForm, domain: Grid, eta: float, rows: list[int], columns: list[int]
) -> tuple[float, NDArray[np.float64]]:
    """Return the largest gain, in nats, of adding ``pull`` to the pivots, and that pull.

    A pull of ``v`` over the half-widths of the domain multiplies the determinant by ``prod_j (e_j +
    v) / e_j`` and costs ``eta v`` times the norm that the domain's coordinates, over their
    half-widths, can reach.
    """
    k, half_widths = len(rows), domain.widths[columns] / 2.0
    block = form.matrix[np.ix_(rows, columns)] * half_widths
    try:
        signs = np.where(np.diag(np.linalg.inv(block)) < 0.0, -1.0, 1.0)
        eigenvalues = np.linalg.eigvals(block * signs)
    except np.linalg.LinAlgError:
        return 0.0, np.zeros(k)
    reach = k if form.norm == "l1" and not isinstance(domain, L1Ball) else 1
    pulls = _PULLS * (k / (eta * reach))
    with np.errstate(
        all="ignore"
    ):  # a warning would depend on the data; what is not finite is not chosen
        gains = (
            np.log(np.abs(1.0 + np.divide.outer(pulls, eigenvalues))).sum(axis=1)
            - eta * reach * pulls
        )
    best = int(np.argmax(gains))
    return float(gains[best]), pulls[best] * signs / half_widths
