"""Lines cut into fields: what a line contributes is a function of that line alone.

A field holds no quote, or it starts and ends with one (blanks outside do not count), holds any
delimiters, and quotes only in pairs that stand for one. A line that is not made of the right number
of such fields is a row of missing values. That no line reaches another: docs/theory/reading.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expmech.statistics.reading import BLANKS

_LF, _CR, _SPACE = 10, 13, 32
Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Fields one after another in ``buffer``: field k lies between ``offsets`` k and k + 1."""

    buffer: Bytes
    offsets: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Splitter:
    """The public rule by which lines are cut.

    ``width`` is the number of fields of a line; the marks are bytes, -1 for none.
    """

    width: int
    delimiter: int
    quote: int = -1
    comment: int = -1

    def fields(self, block: bytes) -> Fields:
        """Return ``width`` fields for every line of a block that ends with LF, untrimmed.

        Fields end with a space in the place of their delimiter. Lines that do not parse have blank
        fields.
        """
        buffer = np.frombuffer(bytearray(block), dtype=np.uint8)
        if b"\r" in block:
            ends = np.flatnonzero(buffer[:-1] == _CR)
            buffer[ends[buffer[ends + 1] == _LF]] = _SPACE
        if self.quote >= 0 and self.quote in block:
            return self._quoted(buffer)
        ends = np.flatnonzero((buffer == self.delimiter) | (buffer == _LF))
        lines = ends[buffer[ends] == _LF]
        # Every width-th mark is an LF and there are no others: all lines have `width` fields.
        regular = len(ends) == self.width * len(lines) and np.array_equal(
            ends[self.width - 1 :: self.width], lines
        )
        if regular and self.comment < 0:
            buffer[ends] = _SPACE
            return _fields(buffer, ends)
        line_of = np.searchsorted(lines, ends)
        bad = np.bincount(line_of, minlength=len(lines)) != self.width
        return self._assembled(buffer, lines, ends, line_of, bad)

    def _quoted(self, buffer: Bytes) -> Fields:
        marks = np.flatnonzero(
            (buffer == self.delimiter) | (buffer == _LF) | (buffer == self.quote)
        )
        kinds = buffer[marks]
        line_ends, quotes = kinds == _LF, kinds == self.quote
        line_of = np.cumsum(line_ends) - line_ends
        lines = marks[line_ends]
        seen = np.cumsum(quotes)  # quotes up to and with a mark
        before = np.concatenate([[0], seen[line_ends][:-1]])  # ... up to the start of a line
        inside = ((seen - before[line_of]) & 1) == 1
        opening, closing = marks[quotes & inside], marks[quotes & ~inside]
        stray_opening, doubled = self._stray(buffer, opening, -1)
        stray_closing, _ = self._stray(buffer, closing, 1)
        bad = inside[line_ends]  # a quote is never closed
        bad[np.searchsorted(lines, opening[stray_opening])] = True
        bad[np.searchsorted(lines, closing[stray_closing])] = True
        structural = (~quotes & ~inside) | line_ends
        bad |= np.bincount(line_of[structural], minlength=len(lines)) != self.width
        pairs = opening[doubled]
        buffer[marks[quotes]] = _SPACE
        buffer[pairs] = self.quote  # the second of a pair stands for both, the first is cut out
        cut = self._assembled(buffer, lines, marks[structural], line_of[structural], bad)
        return _without(cut, pairs - 1) if len(pairs) else cut

    def _stray(
        self, buffer: Bytes, quotes: Positions, side: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which quotes do not stand at the end of a field, and which touch another quote.

        ``side`` is -1 for opening quotes, which look back, and 1 for closing ones.
        """
        beside = np.where(quotes + side >= 0, buffer[quotes + side], _LF)
        doubled = beside == self.quote
        at_end = (beside == self.delimiter) | (beside == _LF)
        blank = self._is_blank(beside)
        if blank.any():
            solid = np.flatnonzero(~self._is_blank(buffer))
            place = np.searchsorted(solid, quotes[blank]) + side
            found = np.where(place >= 0, buffer[solid[place]], _LF)
            at_end[blank] = (found == self.delimiter) | (found == _LF)
        return ~(at_end | doubled), doubled

    def _is_blank(self, values: Bytes) -> NDArray[np.bool_]:
        blank = values == _SPACE
        for character in BLANKS.encode():
            if character not in (_LF, _SPACE):
                blank |= values == character
        return np.asarray(blank & (values != self.delimiter))

    def _assembled(
        self,
        buffer: Bytes,
        lines: Positions,
        ends: Positions,
        line_of: NDArray[np.int64],
        bad: NDArray[np.bool_],
    ) -> Fields:
        """Return the fields of good lines, and ``width`` blank ones for each bad line."""
        starts = np.concatenate([[0], lines[:-1] + 1])
        if self.comment >= 0:
            bad = bad | (buffer[starts] == self.comment)
        placed = np.repeat(lines, self.width).reshape(-1, self.width)
        placed[~bad] = ends[~bad[line_of]].reshape(-1, self.width)
        buffer[ends] = _SPACE
        for line in np.flatnonzero(bad):
            buffer[starts[line] : lines[line]] = _SPACE
        return _fields(buffer, placed.ravel())


def _fields(buffer: Bytes, ends: Positions) -> Fields:
    offsets = np.zeros(len(ends) + 1, dtype=np.int32)
    offsets[1:] = ends + 1
    return Fields(buffer=buffer, offsets=offsets)


def _without(cut: Fields, dropped: Positions) -> Fields:
    """Return the fields with some bytes cut out."""
    kept = np.ones(len(cut.buffer), dtype=np.bool_)
    kept[dropped] = False
    moved = cut.offsets - np.searchsorted(dropped, cut.offsets).astype(np.int32)
    return Fields(buffer=cut.buffer[kept], offsets=moved.astype(np.int32))


def split_line(line: str, *, delimiter: str, quote: str | None) -> list[str] | None:
    """Return the fields of one line, or None where it does not parse: the rule, one line at a time.

    >>> split_line('1, "a ""b"", c" ,', delimiter=",", quote='"')
    ['1', 'a "b", c', '']
    >>> split_line('1,5" pipe', delimiter=",", quote='"') is None
    True
    """
    if quote is None:
        return [field.strip(BLANKS) for field in line.split(delimiter)]
    fields, start, inside = [], 0, False
    for place, character in enumerate(line):
        inside = inside != (character == quote)
        if character == delimiter and not inside:
            fields.append(line[start:place])
            start = place + 1
    if inside:
        return None
    found = [_unquoted(field, delimiter, quote) for field in [*fields, line[start:]]]
    return [field for field in found if field is not None] if None not in found else None


def _unquoted(field: str, delimiter: str, quote: str) -> str | None:
    trimmed = field.strip(BLANKS.replace(delimiter, ""))
    if quote not in trimmed:
        return trimmed.strip(BLANKS)
    held = trimmed[1:-1].replace(quote * 2, "")
    if len(trimmed) < 2 or trimmed[0] != quote or trimmed[-1] != quote or quote in held:
        return None
    return trimmed[1:-1].replace(quote * 2, quote).strip(BLANKS)
