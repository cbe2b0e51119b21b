"""Positive numbers of any size, as a float64 mantissa and an int64 exponent.

Every operation adds or multiplies non-negative numbers, so its relative error is at most 2^-52: no
cancellation, no underflow, no floor. Error analysis: docs/theory/joint_quantiles.md, section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import flint
import numpy as np

from expmech.core.arrays import Array, Flags, Floats, Integers
from expmech.core.balls import real

ABSENT = -(1 << 60)
"""The exponent of zero: below that of every number met, with room for sums of several."""

_DIGIT = 8  # exponentials of whole numbers come from one table per byte
_PRECISION = 160  # bits of the balls that tables are read from: exponents take up to 60
_ROW = 64  # numbers summed in one go
_SPREAD = 900  # binary orders within which float64 numbers lose no digit beside each other
_PART = 1 << 13  # entries worked on at a time: they stay in the processor's cache
_FIELD = 0x7FF << 52  # the exponent field of a float64
_HALF = 1022 << 52  # what it holds for numbers in [1/2, 1)


class Scaled(NamedTuple):
    """The numbers ``mantissa * 2^exponent``, mantissas 0 or between 2^-100 and 2^100."""

    mantissa: Floats
    exponent: Integers

    def at(self, index: int | slice | Integers) -> Scaled:
        """Return some of the numbers."""
        return Scaled(self.mantissa[index], self.exponent[index])

    def where(self, condition: Flags) -> Scaled:
        """Return the numbers where a condition holds, zero elsewhere."""
        return Scaled(
            np.where(condition, self.mantissa, 0.0), np.where(condition, self.exponent, ABSENT)
        )


def concatenate(*lists: Scaled) -> Scaled:
    """Return lists one after the other."""
    mantissas, exponents = zip(*lists, strict=True)
    return Scaled(np.concatenate(mantissas), np.concatenate(exponents))


def normalise(numbers: Scaled) -> Scaled:
    """Return the same numbers with mantissas in [1/2, 1)."""
    digits = numbers.mantissa.view(np.int64)
    shift = digits >> 52
    shift -= 1022
    shift += numbers.exponent
    fraction = ((digits & ~_FIELD) | _HALF).view(np.float64)
    if not numbers.mantissa.all():
        none = numbers.mantissa == 0.0
        fraction[none], shift[none] = 0.0, ABSENT
    return Scaled(fraction, shift)


def power_of_two(exponent: Integers) -> Floats:
    """Return ``2^exponent`` for exponents of at most 0, as 0 below -1022."""
    field = np.maximum(exponent, -1023)
    field += 1023
    field <<= 52
    return np.asarray(field.view(np.float64))


def times(first: Scaled, *others: Scaled) -> Scaled:
    """Return products, entry by entry."""
    mantissa, exponent = first
    for other in others:
        mantissa, exponent = mantissa * other.mantissa, exponent + other.exponent
    return Scaled(mantissa, exponent)


def plus(first: Scaled, other: Scaled) -> Scaled:
    """Return sums, entry by entry."""
    top = np.maximum(first.exponent, other.exponent)
    mantissa = first.mantissa * power_of_two(first.exponent - top)
    mantissa += other.mantissa * power_of_two(other.exponent - top)
    return Scaled(mantissa, top)


def inverse(number: Scaled) -> Scaled:
    """Return one over each number; none may be zero."""
    return normalise(Scaled(1.0 / number.mantissa, -number.exponent))


def in_parts(size: int, compute: Callable[[slice], Scaled]) -> Scaled:
    """Return ``size`` normalised numbers, computed a part at a time."""
    numbers = Scaled(np.empty(size), np.empty(size, dtype=np.int64))
    for first in range(0, size, _PART):
        part = slice(first, min(first + _PART, size))
        numbers.mantissa[part], numbers.exponent[part] = normalise(compute(part))
    return numbers


def total(numbers: Scaled) -> Scaled:
    """Return the sum of a list, as a list of one."""
    top = numbers.exponent.max(keepdims=True)
    mantissa = numbers.mantissa * power_of_two(numbers.exponent - top)
    return normalise(Scaled(mantissa.sum(keepdims=True), top))


def from_integer(number: int) -> Scaled:
    """Return a positive integer of any size, to 2^-53 of itself, as a list of one."""
    bits = number.bit_length()
    return Scaled(np.array([number / (1 << bits)]), np.array([bits]))


def from_integers(numbers: Array) -> Scaled:
    """Return positive numbers of usual size."""
    return Scaled(numbers.astype(np.float64), np.zeros(numbers.size, dtype=np.int64))


def exponential(nats: Fraction) -> Scaled:
    """Return ``exp(nats)``, to 2^-52 of itself, as a list of one."""
    with flint.ctx.workprec(_PRECISION):
        ball = real(nats).exp()
        man, exp = ball.mid().man_exp()
    bits = int(man).bit_length()
    return normalise(Scaled(np.array([int(man) / (1 << bits)]), np.array([int(exp) + bits])))


@lru_cache(maxsize=64)
def _powers(rate: Fraction, many: int) -> Scaled:
    """Return ``exp(rate * digit)`` for the digits below ``many``."""
    return concatenate(*(exponential(rate * digit) for digit in range(many)))


def exponentials(rate: Fraction, numbers: Integers) -> Scaled:
    """Return ``exp(rate * number)`` for whole numbers that are at least 0.

    A product over the bytes of a number, each factor within 2^-52 of itself.
    """
    largest = int(numbers.max(initial=0))
    places = range(0, max(1, largest.bit_length()), _DIGIT)
    tables = [
        _powers(rate * (1 << place), min(1 << _DIGIT, (largest >> place) + 1)) for place in places
    ]

    def compute(part: slice) -> Scaled:
        digits = [(numbers[part] >> place) & ((1 << _DIGIT) - 1) for place in places]
        return times(*(table.at(digit) for table, digit in zip(tables, digits, strict=True)))

    return in_parts(numbers.size, compute)


def cumulate(numbers: Scaled, starts: Flags | None = None) -> Scaled:
    """Return running sums, which begin anew wherever ``starts`` is true.

    The list is cut into rows of 64, summed side by side; then what enters each row is added. A
    number passes at most 65 additions per layer, and there are at most six layers.
    """
    size = numbers.mantissa.size
    missing = -size % _ROW
    mantissa, exponent = np.zeros(size + missing), np.full(size + missing, ABSENT)
    mantissa[:size], exponent[:size] = numbers
    exponent[size:] = exponent[size - 1 : size]
    grid = Scaled(mantissa.reshape(-1, _ROW), exponent.reshape(-1, _ROW))
    begins = np.zeros((grid.mantissa.shape[0], _ROW), dtype=np.bool_)
    if starts is not None:
        begins.reshape(-1)[:size] = starts
    rows = len(begins)
    parts = [slice(first, first + _PART // _ROW) for first in range(0, rows, _PART // _ROW)]
    fresh = np.asarray(begins.any(axis=1))
    mixed = fresh.copy()
    for part in parts:
        low, high = grid.exponent[part].min(axis=1), grid.exponent[part].max(axis=1)
        mixed[part] |= high - low > _SPREAD
        _sum_rows(grid.at(part), high, mixed[part])
    apart = np.flatnonzero(mixed)
    for first in range(0, apart.size, _PART // _ROW):
        _scan_rows(grid, begins, apart[first : first + _PART // _ROW])
    if rows > 1:
        last = Scaled(grid.mantissa[:, -1], grid.exponent[:, -1])
        enter = cumulate(last, None if starts is None else fresh)
        carry = Scaled(np.append(0.0, enter.mantissa[:-1]), np.append(ABSENT, enter.exponent[:-1]))
        for part in parts:
            _carry(grid.at(part), carry.at(part), begins[part], mixed[part])
    return Scaled(mantissa[:size], exponent[:size])


def _sum_rows(grid: Scaled, top: Integers, mixed: Flags) -> None:
    """Replace rows by their running sums with one exponent, but for those that are mixed.

    Their numbers lie within 900 binary orders of each other, and no sum begins anew in them.
    """
    kept = np.flatnonzero(mixed)
    relative = power_of_two(grid.exponent - top[:, None])
    relative *= grid.mantissa
    if kept.size:
        before = grid.at(kept)
        np.cumsum(relative, axis=1, out=grid.mantissa)
        grid.exponent[:] = top[:, None]
        grid.mantissa[kept], grid.exponent[kept] = before
    else:
        np.cumsum(relative, axis=1, out=grid.mantissa)
        grid.exponent[:] = top[:, None]


def _scan_rows(grid: Scaled, begins: Flags, rows: Integers) -> None:
    """Replace some rows by their running sums, one exponent per number: by sums of 2, 4, .. 64.

    Six additions per number, whether sums begin anew in a row or its numbers are far apart.
    """
    sums, closed, distance = grid.at(rows), begins[rows], 1
    while distance < _ROW:
        before = Scaled(sums.mantissa[:, :-distance], sums.exponent[:, :-distance])
        after = Scaled(sums.mantissa[:, distance:], sums.exponent[:, distance:])
        added = plus(after, before.where(~closed[:, distance:]))
        sums.mantissa[:, distance:], sums.exponent[:, distance:] = added
        closed[:, distance:] |= closed[:, :-distance].copy()
        distance *= 2
    grid.mantissa[rows], grid.exponent[rows] = sums


def _carry(sums: Scaled, carry: Scaled, begins: Flags, mixed: Flags) -> None:
    """Add to each row what enters it, up to where its sum begins anew."""
    rows = np.flatnonzero(mixed)
    if rows.size:
        opened = np.logical_or.accumulate(begins[rows], axis=1)
        entering = carry.at(rows)
        carried = plus(
            sums.at(rows),
            Scaled(
                np.where(opened, 0.0, entering.mantissa[:, None]),
                np.where(opened, ABSENT, entering.exponent[:, None]),
            ),
        )
    shared = sums.exponent[:, 0]
    top = np.maximum(shared, carry.exponent)
    np.multiply(sums.mantissa, power_of_two(shared - top)[:, None], out=sums.mantissa)
    added = carry.mantissa * power_of_two(carry.exponent - top)
    np.add(sums.mantissa, added[:, None], out=sums.mantissa)
    sums.exponent[:] = top[:, None]
    if rows.size:
        sums.mantissa[rows], sums.exponent[rows] = carried
