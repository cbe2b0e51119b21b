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

_TAB, _LF, _CR, _SPACE = 9, 10, 13, 32
Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]
_NONE: Positions = np.empty(0, dtype=np.int64)


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
            blank = _SPACE if self.delimiter != _SPACE else _TAB  # trimmed, and no delimiter
            buffer[ends[buffer[ends + 1] == _LF]] = blank
        if self.quote >= 0 and self.quote in block:
            return self._quoted(buffer)
        ends = np.flatnonzero((buffer == self.delimiter) | (buffer == _LF))
        return self._assembled(buffer, ends, _NONE)

    def _quoted(self, buffer: Bytes) -> Fields:
        """Return fields where some have quotes: a delimiter inside quotes is content."""
        line_ends = buffer == _LF
        quotes, inside = self._toggled(buffer)
        unclosed = _NONE
        if (inside & line_ends).any():
            lines = np.flatnonzero(line_ends)
            odd = np.diff(inside[lines].view(np.int8), prepend=np.int8(0)) != 0
            unclosed = lines[odd]
            _blank_lines(buffer, lines, np.flatnonzero(odd))
            quotes, inside = self._toggled(buffer)  # every line closes its quotes now
        delimiters = (buffer == self.delimiter) & ~inside
        separators = delimiters | line_ends
        opening, closing = quotes & inside, quotes & ~inside
        pairs = np.flatnonzero(closing[:-1] & opening[1:])  # the first of a doubled quote
        opening[1:] &= ~separators[:-1]
        opening[0] = False
        closing[:-1] &= ~separators[1:]
        stray = np.concatenate(
            [self._stray(buffer, opening, pairs + 1, -1), self._stray(buffer, closing, pairs, 1)]
        )
        ends = np.flatnonzero(separators)
        _blank(buffer, quotes)
        buffer[pairs + 1] = self.quote  # the second of a pair stands for both, the first is cut out
        cut = self._assembled(buffer, ends, np.concatenate([unclosed, stray]))
        return _without(cut, pairs) if len(pairs) else cut

    def _toggled(self, buffer: Bytes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where the quotes are, and where the number of quotes so far is odd."""
        padded = np.zeros(-(-len(buffer) // 8) * 8, dtype=np.uint8)
        quotes = padded[: len(buffer)].view(np.bool_)
        np.equal(buffer, self.quote, out=quotes)
        words = padded.view(np.uint64).copy()  # parities of eight bytes at once
        for shift in (8, 16, 32):
            words ^= words << np.uint64(shift)
        carried = np.bitwise_xor.accumulate((words >> np.uint64(56)).astype(np.uint8))
        words[1:] ^= carried[:-1].astype(np.uint64) * np.uint64(0x0101010101010101)
        return quotes, words.view(np.bool_)[: len(buffer)]

    def _stray(
        self, buffer: Bytes, suspects: NDArray[np.bool_], doubled: Positions, side: int
    ) -> Positions:
        """Return the quotes that stand at no end of a field, blanks aside.

        ``suspects`` touch no separator; ``side`` is -1 for opening quotes, which look back, and 1
        for closing ones.
        """
        if not suspects.any():
            return _NONE
        suspects[doubled] = False
        found = np.flatnonzero(suspects)
        solid = np.flatnonzero(~self._is_blank(buffer))
        place = np.searchsorted(solid, found) + side
        beside = np.where(place >= 0, buffer[solid[place]], _LF)
        return np.asarray(found[(beside != self.delimiter) & (beside != _LF)])

    def _is_blank(self, values: Bytes) -> NDArray[np.bool_]:
        blank = values == _SPACE
        for character in BLANKS.encode():
            if character not in (_LF, _SPACE):
                blank |= values == character
        return np.asarray(blank & (values != self.delimiter))

    def _assembled(self, buffer: Bytes, ends: Positions, refused: Positions) -> Fields:
        """Return the fields between separators, blank ones for lines that do not parse.

        ``refused`` are places in lines that are refused, whatever their number of fields.
        """
        last = buffer[ends] == _LF
        count = int(np.count_nonzero(last))
        # Every width-th separator is an LF and no other: all lines have `width` fields.
        regular = len(ends) == self.width * count and bool(last[self.width - 1 :: self.width].all())
        if regular and not len(refused) and self.comment < 0:
            buffer[ends] = _SPACE
            return _fields(buffer, ends)
        lines = ends[last]
        lengths = np.diff(np.flatnonzero(last), prepend=-1)
        bad = lengths != self.width
        bad[np.searchsorted(lines, refused)] = True
        if self.comment >= 0:
            bad |= buffer[np.concatenate([[0], lines[:-1] + 1])] == self.comment
        placed = np.repeat(lines, self.width).reshape(-1, self.width)
        placed[~bad] = ends[np.repeat(~bad, lengths)].reshape(-1, self.width)
        buffer[ends] = _SPACE
        _blank_lines(buffer, lines, np.flatnonzero(bad))
        return _fields(buffer, placed.ravel())


def _blank(buffer: Bytes, mask: NDArray[np.bool_]) -> None:
    """Put spaces where ``mask`` is true: three passes that take less than an indexed one."""
    ones = mask.view(np.uint8)
    buffer &= ones - np.uint8(1)
    buffer |= ones * np.uint8(_SPACE)


def _blank_lines(buffer: Bytes, lines: Positions, which: Positions) -> None:
    for line in which.tolist():
        buffer[lines[line - 1] + 1 if line else 0 : lines[line]] = _SPACE


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
