"""Rounding an affine image to the lattice.

With binary digits that are revealed as far as the rounding needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.domains import Indices
from expmech.envelopes.affine.map import AffineMap

_DIGITS = 30  # revealed at a time: with |u| < 2^22 the sum u + xi is then a float64
_SIGNIFICAND = 52
_FAR = 2.0**61


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundedImage:
    """Points ``floor(T (u + xi) + t)`` of integer vectors u, xi uniform in the unit cube.

    t may depend on the lattice indices of other coordinates, as the coupling of the map says. Every
    lattice point owns the same volume of u + xi. Theory page: docs/theory/affine.md, sections 2 and
    5.
    """

    map: AffineMap
    points_per_axis: int
    digits: int = _DIGITS

    def draw_images(
        self,
        steps: NDArray[np.int64],
        kept: NDArray[np.bool_],
        coins: Coins,
        others: Indices | None = None,
    ) -> Indices:
        """Draw xi and round; in float64 where that is certain, else by further digits and exactly.

        Rows not kept become -1.
        """
        digits = coins.integers_below(1 << self.digits, steps.size).reshape(steps.shape)
        indices, sure = self._round(steps, digits, others)
        for row in np.flatnonzero(kept & ~sure):
            cell = [
                (u << self.digits) + digit
                for u, digit in zip(steps[row].tolist(), digits[row].tolist(), strict=True)
            ]
            indices[row] = self._settle(cell, coins, () if others is None else others[row].tolist())
        indices[~kept] = -1  # outside every lattice: a proposal like any other, and refused
        return indices

    def _round(
        self, steps: NDArray[np.int64], digits: NDArray[np.int64], others: Indices | None = None
    ) -> tuple[Indices, NDArray[np.bool_]]:
        """Return ``floor(T (u + xi) + t)``, clipped to just outside the lattice.

        And which rows are certain.

        A row is certain if every coordinate is, or if one is surely outside. The margin:
        docs/theory/affine.md.
        """
        near = steps + digits * 2.0**-self.digits
        size = np.abs(near).max(axis=1)
        real = near @ self._transform.T
        if others is not None:
            real += others @ self._coupling.T
        real += self._fraction
        floor = np.floor(real)
        real -= floor
        margin = np.multiply.outer(
            size * ((len(self.map.shift) + 8) * 2.0**-53) + 2.0**-self.digits, self._row_sums
        )
        margin += self._shift_margin
        certain = ((real > margin) & (real < 1.0 - margin)).all(axis=1)
        index = np.clip(floor, -_FAR, _FAR).astype(np.int64) + self._whole
        outside = (index < -1.0 - margin) | (index > self.points_per_axis + 1.0 + margin)
        certain |= outside.any(axis=1)
        certain &= size < 2.0 ** (_SIGNIFICAND - self.digits)
        return np.clip(index, -1, self.points_per_axis), certain

    def _settle(self, cell: list[int], coins: Coins, others: Sequence[int] = ()) -> list[int]:
        """Round the point whose coordinates in the u-space start with the digits of ``cell``.

        Revealing more as needed.
        """
        revealed = self.digits
        shifts = list(self.map.shift)
        for i, row in enumerate(self.map.coupling):
            shifts[i] += sum(a * j for a, j in zip(row, others, strict=True))
        while True:
            index = [
                self._floor(row, shift, cell, revealed)
                for row, shift in zip(self.map.transform, shifts, strict=True)
            ]
            settled = [one for one in index if one is not None]
            if len(settled) == len(index):
                return [max(-1, min(self.points_per_axis, one)) for one in settled]
            more = coins.integers_below(1 << self.digits, len(cell)).tolist()
            cell = [(one << self.digits) + digit for one, digit in zip(cell, more, strict=True)]
            revealed += self.digits

    def _floor(
        self, row: tuple[int, ...], shift: int, cell: list[int], revealed: int
    ) -> int | None:
        """Return the floor that the affine function has on the whole open cell.

        Or None if it has more than one.
        """
        corner = sum(a * w for a, w in zip(row, cell, strict=True)) + (shift << revealed)
        low, high = corner + sum(a for a in row if a < 0), corner + sum(a for a in row if a > 0)
        least, most = (
            low >> (self.map.exponent + revealed),
            -(-high >> (self.map.exponent + revealed)) - 1,
        )
        return least if least == most else None

    @cached_property
    def _transform(self) -> NDArray[np.float64]:
        scale = 1 << self.map.exponent
        return np.array([[entry / scale for entry in row] for row in self.map.transform])

    @cached_property
    def _coupling(self) -> NDArray[np.float64]:
        scale = 1 << self.map.exponent
        return np.array([[entry / scale for entry in row] for row in self.map.coupling])

    @cached_property
    def _shift_margin(self) -> NDArray[np.float64]:
        """What float64 may do to t and to its sum with the rest."""
        margin = np.full(len(self.map.shift), 2.0**-50)
        if self.map.coupling:
            size = np.abs(self._coupling).sum(axis=1) * self.points_per_axis
            margin += size * ((self._coupling.shape[1] + 8) * 2.0**-53)
        return margin

    @cached_property
    def _row_sums(self) -> NDArray[np.float64]:
        return np.asarray(np.abs(self._transform).sum(axis=1) * (1.0 + 2.0**-40))

    @cached_property
    def _whole(self) -> NDArray[np.int64]:
        return np.array(
            [max(-(1 << 61), min(1 << 61, one >> self.map.exponent)) for one in self.map.shift],
            dtype=np.int64,
        )

    @cached_property
    def _fraction(self) -> NDArray[np.float64]:
        scale = 1 << self.map.exponent
        return np.array([(one % scale) / scale for one in self.map.shift])
