"""How near an approximate inverse is to a Hessian's, and what a residual may be off by.

Proofs: docs/theory/perturbed_optimum.md, 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from expmech.optimum.dyadic import Dyadics
from expmech.optimum.rows import Floats
from expmech.optimum.solver import Frame

UP = 1.0 + 2.0**-30  # pays for the rounding of sums of up to 2^20 nonnegative floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Residual:
    """``G(yh) + b`` at a grid point: exact middle values, bounds on their error, the margins.

    The true residual is the middle, plus ``sum_i x_i e_i`` with derivatives ``e_i`` off by eta in
    the margin and by beta besides, plus a vector within ``error``. Stored margins are within
    ``rounding`` of the true ones, which is at least eta.
    """

    point: Dyadics
    middle: Dyadics
    error: Floats
    margins: Floats
    rounding: float = 0.0
    eta: float = 0.0
    beta: float = 0.0

    def total_error(self, frame: Frame) -> Floats:
        """Bound the error of every coordinate."""
        return self._error(frame, float(frame.risk.lipschitz) * 2.0 * self.eta + self.beta)

    def plain_error(self, frame: Frame) -> Floats:
        """Bound the error of every coordinate but for what eta does."""
        return self._error(frame, self.beta)

    def _error(self, frame: Frame, slopes: float) -> Floats:
        sums = np.tile(frame.absolute_sums, frame.risk.margins)
        return np.asarray((self.error + sums * slopes) * UP)

    def moved(self, frame: Frame) -> float:
        """Bound what eta does to the residual in the norm of H^-1, where weights at most double."""
        return self.eta * math.sqrt(2.0 * float(frame.risk.lipschitz) * frame.count) * 2.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Nearness:
    """How near P is to the inverse of the Gram matrix H of the stored weights.

    ``defect`` bounds the row sums of ``|P H - I|``, each below 1/2; ``lengths`` bounds both
    ``sqrt((H^-1)_jj)`` and ``|P e_j|`` in the norm of H. ``heavy`` is the sum of 1/w over rows
    whose weight is not small, and how many they are.
    """

    inverse: Floats
    defect: Floats
    lengths: Floats
    heavy: tuple[float, int]

    @classmethod
    def of(
        cls,
        frame: Frame,
        matrix: Floats,
        inverse: Floats,
        heavy: tuple[float, int],
        curvature_error: float = 2.0**-44,
    ) -> Nearness | None:
        """Return it, or None where floats give no good inverse.

        Weights behind ``matrix`` are within ``curvature_error`` times a.
        """
        sizes, size = np.abs(inverse), len(matrix)
        defect = np.abs(inverse @ matrix - np.eye(size)).sum(axis=1)
        defect += sizes @ np.abs(matrix).sum(axis=1) * (2.0**-52 * (size + 256))
        columns = np.tile(np.sqrt(frame.squared_sums), frame.risk.margins) * UP
        terms = float(frame.risk.lipschitz) * ((frame.count + 64) * 2.0**-50 + curvature_error)
        defect = (defect + sizes @ columns * (columns.sum() * terms)) * UP
        diagonal = np.diag(inverse)
        if not (float(defect.max()) < 0.5 and (diagonal > 0.0).all()):
            return None
        lengths = np.sqrt(diagonal / (1.0 - float(defect.max()))) * UP
        return cls(inverse=inverse, defect=defect, lengths=np.asarray(lengths), heavy=heavy)

    def norm(self, frame: Frame, residual: Residual, v: Floats) -> float:
        """Bound ``sqrt(v' H^-1 v)`` of the true residual, v its middle in floats."""
        sizes, error = np.abs(self.inverse), residual.plain_error(frame) + np.abs(v) * 2.0**-52
        middle = float(v @ self.inverse @ v)
        middle += float(np.abs(v) @ sizes @ np.abs(v)) * 2.0**-50 * v.size
        both = math.sqrt(max(middle, 0.0)) + math.sqrt(float(error @ sizes @ error)) * UP
        return (both / math.sqrt(1.0 - float(self.defect.max())) + residual.moved(frame)) * UP

    def slack(self, frame: Frame, residual: Residual, v: Floats) -> Floats:
        """Bound what the error of the residual, times P, does to each coordinate."""
        sizes, count = np.abs(self.inverse), frame.count
        direct = residual.error + np.abs(v) * (2.0**-51 * (v.size + 2))
        inside, heavy = self.heavy
        moved = self.lengths * residual.moved(frame)
        moved += self.lengths * (residual.beta * math.sqrt(inside) * UP)
        rest = np.tile(np.minimum(frame.absolute_sums, float(count - heavy)), frame.risk.margins)
        return np.asarray((sizes @ (direct + rest * residual.beta) + moved) * UP)

    def change(self, frame: Frame, found: tuple[float, Floats | None]) -> float:
        """Bound ``|J - H|`` relative to H: a factor, and rows that do ``a sum x' H^-1 x``."""
        factor, loose = found
        if loose is None:
            return factor
        size = float(np.abs(loose * self.inverse).sum())
        return factor + float(frame.risk.lipschitz) * size / (1.0 - float(self.defect.max())) * UP
