"""What a loss may know about itself beyond its values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The promise ``L(y) >= sum_j rates_j |y_j - center_j| - slack`` at every point of the domain.

    The center and the slack may be confidential: they steer the running time and never the law. The
    slack may be negative, for a loss whose least value is far above zero. The rates must be public.
    ``public_slack`` says that the slack is the same number for every data set, so that a plan may
    use it.
    """

    center: NDArray[np.float64]
    rates: NDArray[np.float64]
    slack: float = 0.0
    public_slack: bool = False


@dataclass(frozen=True, kw_only=True)
class IntegerForm:
    """The identity ``L(i) = sum_j scales_j |count i_j - sums_j|`` on a box lattice.

    With integer ``count`` and ``sums``.

    It makes the normaliser a product of geometric sums, computable to any precision.
    """

    count: int
    sums: tuple[int, ...]
    scales: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class AffineForm:
    """The identity ``L(y) = |matrix y - vector|``, up to ``loss_error``.

    In the norm "l1" or "linf"; confidential.

    The affine envelope is fitted to it: entries steer the running time and never the law.
    """

    matrix: NDArray[np.float64]
    vector: NDArray[np.float64]
    norm: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Curvature:
    """The promise of a smooth convex loss about one point a.

    At every point ``y = a + v`` of the domain; confidential.

    ``L(y) >= value + g.v + (exp(-k r) + k r - 1) / k^2`` with ``r^2 = v' hessian v``, k the
    ``skew``, and some vector g within ``gradient_error`` of ``gradient`` in every entry. With ``k =
    0`` the last term is ``r^2 / 2``: a quadratic, or any loss with ``hessian`` below its second
    derivatives everywhere. A sum of logistic terms has k the largest ``|x_i.v| / r``.

    The convex envelope is fitted to it: entries steer the running time and never the law. Proofs:
    docs/theory/convex.md.
    """

    center: NDArray[np.float64]
    value: float
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    skew: float
    gradient_error: float = 0.0
