"""Text files as a table of text in DuckDB, cut line by line: no line reaches another.

How a file is written is said by public arguments with public defaults (:class:`TextFormat`), never
guessed from records.

A record is one physical line: it ends at LF. A line whose bytes do not decode, or that is longer
than :data:`LONGEST`, is replaced by an empty line, which is a row of missing values. A field holds
no quote, or it starts and ends with one (blanks outside do not count), holds any delimiters, and
quotes only in pairs that stand for one. A line that is not made of the right number of such fields
is a row of missing values: docs/theory/reading.md.

DuckDB's own reader guesses, refuses and drops rows by what records hold; here it only sees columns
of text that were cut line by line. Files are streamed: read anew for every query, never held.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expmech.core.errors import DataError, ParameterError, ParameterTypeError, validate_integer
from expmech.tables.reading import BLANKS
from expmech.tables.sources.columnar import SECOND, duckdb_connection, refuse_equal_names
from expmech.tables.sources.execution import quoted

LONGEST = 1 << 22
"""Bytes of the longest line that is read: longer ones are rows of missing values."""

_BLOCK = 112_000  # what is computed from a block is then too small to be mapped afresh each time
_MARK = b"\xef\xbb\xbf"
_TAB, _LF, _CR, _SPACE = 9, 10, 13, 32
_LINES, _VIEW = "expmech_lines", "expmech_table"
Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]
_NONE: Positions = np.empty(0, dtype=np.int64)


_PACKED = ("", ".gz", ".bz2", ".xz")
RECORD_IS_A_LINE = (
    "a record of the text file is one line of it, and belongs to whom that line names: a line break"
    " inside quotes makes two rows of a record, so that whoever has one may move two rows"
)
"""What a certificate lists of every release from a text file."""

ENDINGS = {
    f".{kind}{packed}": mark for kind, mark in (("csv", ","), ("tsv", "\t")) for packed in _PACKED
}
"""Endings of text files, and the delimiter each stands for."""

_ENCODINGS = """
    utf-8 ascii iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8
    iso8859-9 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp1250 cp1251 cp1252
    cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp437 cp720 cp737 cp775 cp850 cp852 cp855 cp856 cp857
    cp858 cp860 cp861 cp862 cp863 cp865 cp866 cp869 cp874 cp1125 cp1006 koi8-r koi8-t koi8-u kz1048
    mac-roman mac-latin2 mac-cyrillic mac-greek mac-iceland mac-turkish mac-croatian mac-romanian
    tis-620 hp-roman8 palmos ptcp154
"""
"""Encodings of text files: UTF-8, and those of one byte a character in which ASCII is ASCII."""

_MOST_COLUMNS = 10_000
_OWNER = "TextFormat"


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """How the lines of a text file are cut into fields.

    Parameters
    ----------
    delimiter : str, optional
        One ASCII character between fields. None: a tab for ``.tsv``, a comma for ``.csv``.
    quote : str or None, default '"'
        One ASCII character around fields that hold a delimiter; doubled it stands for itself. None:
        no character is special.
    comment : str, optional
        A line that starts with it is a row of missing values. It still counts as a row: under
        'replace' the number of rows is public, and a record may start with any character.
    header : bool, default True
        Whether the first line holds the names of the columns.
    names : tuple of str or int, optional
        The names of the columns, or how many there are (``column1``, ``column2``, ...). Needed
        without header: their number must not be read off a record.
    encoding : str, default "utf-8"
        UTF-8, or an encoding of one byte a character that contains ASCII, such as Latin-1 (an error
        lists them). In UTF-8 a byte order mark at the start of a line is passed over.
    decimal : str, default "."
        The decimal mark, ``.`` or ``,``.
    skip : int, default 0
        How many lines to pass over at the start of each file.

    Examples
    --------
    >>> TextFormat(delimiter=";", decimal=",").completed("prices.csv").delimiter
    ';'
    """

    delimiter: str | None = None
    quote: str | None = '"'
    comment: str | None = None
    header: bool = True
    names: Sequence[str] | int | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    skip: int = 0

    def __post_init__(self) -> None:
        marks = [("delimiter", self.delimiter), ("quote", self.quote), ("comment", self.comment)]
        given = [(name, mark) for name, mark in marks if mark is not None]
        for name, mark in given:
            plain = isinstance(mark, str) and len(mark) == 1 and mark.isascii()
            if not plain or mark.isalnum() or mark in "\n\r\0+-.":
                raise ParameterError(
                    f"`{name}` of TextFormat must be one ASCII character that is no letter, digit,"
                    f" sign, dot, NUL or line end; got {mark!r}."
                )
        if len({mark for _, mark in given}) < len(given):
            raise ParameterError(
                "`delimiter`, `quote` and `comment` of TextFormat must differ from each other; got"
                f" {', '.join(repr(mark) for _, mark in given)}."
            )
        if self.decimal not in (".", ","):
            raise ParameterError(f"`decimal` of TextFormat must be . or ,; got {self.decimal!r}.")
        if not isinstance(self.header, bool):
            raise ParameterTypeError(
                f"`header` of TextFormat must be true or false; got {self.header!r}."
            )
        validate_integer(self.skip, name="skip", owner=_OWNER, low=0, high=10**6)
        object.__setattr__(self, "encoding", _known_encoding(self.encoding))
        if self.names is not None:
            object.__setattr__(self, "names", _listed_names(self.names))
        if not self.header and self.names is None:
            raise ParameterError(
                "`names` of TextFormat must be given where there is no header: the names of the"
                " columns, or how many there are."
            )

    def completed(self, path: str) -> TextFormat:
        """Return the format with the delimiter that the ending of ``path`` stands for."""
        if self.delimiter is not None:
            return self
        return replace(self, delimiter=ENDINGS[text_ending(path)])


def text_ending(path: str) -> str:
    """Return the ending of a text file, or nothing where ``path`` names another kind of file."""
    return next((ending for ending in ENDINGS if path.lower().endswith(ending)), "")


def _known_encoding(encoding: Any) -> str:
    """Return the codec's own name; refuse encodings in which one byte changes what others mean."""
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError):
        name = ""
    if name == "utf-8-sig":  # a byte order mark is passed over anyway
        return "utf-8"
    if name in _ENCODINGS.split():
        return name
    raise ParameterError(
        "`encoding` of TextFormat must be one in which every line is read alone:"
        f" {', '.join(_ENCODINGS.split())}; got {encoding!r}. Convert the file to utf-8."
    )


def _listed_names(names: Any) -> tuple[str, ...]:
    if isinstance(names, int) and not isinstance(names, bool):
        validate_integer(names, name="names", owner=_OWNER, low=1, high=_MOST_COLUMNS)
        return tuple(f"column{j + 1}" for j in range(names))
    listed = () if isinstance(names, str) else tuple(names)
    if not listed or not all(isinstance(name, str) and name.strip() for name in listed):
        raise ParameterError(
            "`names` of TextFormat must be the names of the columns, or how many there are; got"
            f" {names!r}."
        )
    return listed


def text_blocks(path: str, *, encoding: str, skip: int) -> Iterator[bytes]:
    """Yield the lines of a file after the first ``skip``, in blocks of UTF-8 that end with LF."""
    packed: dict[str, Callable[[str, Any], Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
    }
    unpack = packed.get(os.path.splitext(path.lower())[1], open)
    with unpack(path, "rb") as file:
        for block in _whole_lines(file):
            while skip and block:
                block = block[block.find(b"\n") + 1 :]
                skip -= 1
            if block:
                yield decode_lines(block, encoding)


def decode_lines(block: bytes, encoding: str) -> bytes:
    """Return whole lines as UTF-8; lines that do not decode, or are too long, become empty.

    In the encodings of :class:`TextFormat` LF is LF and no part of another character, so a block
    decodes if and only if each of its lines does.
    """
    if encoding == "utf-8" and _MARK in block:
        # a byte order mark goes from the start of every line, not of the first alone: without a
        # header the first line is a record, and with it gone the second would be the first
        block = block.removeprefix(_MARK).replace(b"\n" + _MARK, b"\n")
    if len(block) <= LONGEST:
        text = _decoded(block, encoding)
        if text is not None:
            return text
    lines = block.removesuffix(b"\n").split(b"\n")
    kept = (None if len(line) > LONGEST else _decoded(line, encoding) for line in lines)
    return b"".join((line or b"") + b"\n" for line in kept)


def _decoded(text: bytes, encoding: str) -> bytes | None:
    try:
        decoded = text.decode(encoding)
    except UnicodeDecodeError:
        return None
    return text if encoding == "utf-8" else decoded.encode()


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield blocks that end with LF, in memory that no line can exhaust."""
    carry, lost = b"", False  # lost: inside a line that is already too long
    while piece := file.read(_BLOCK):
        end = piece.rfind(b"\n") + 1
        if not end:
            carry = b"" if lost else carry + piece
            lost = lost or len(carry) > LONGEST + len(_MARK)  # too long without its mark, too
            carry = b"" if lost else carry
            continue
        start = piece.find(b"\n") if lost else 0  # what is left of a long line: its end
        yield carry + piece[start:end]
        carry, lost = piece[end:], False
    if carry or lost:
        yield carry + b"\n"


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
        quotes = np.flatnonzero(suspects)
        solid = np.flatnonzero(~self._is_blank(buffer))
        place = np.searchsorted(solid, quotes) + side
        beside = np.where(place >= 0, buffer[solid[place]], _LF)
        return np.asarray(quotes[(beside != self.delimiter) & (beside != _LF)])

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
    texts = [_unquoted(field, delimiter, quote) for field in [*fields, line[start:]]]
    return [text for text in texts if text is not None] if None not in texts else None


def _unquoted(field: str, delimiter: str, quote: str) -> str | None:
    trimmed = field.strip(BLANKS.replace(delimiter, ""))
    if quote not in trimmed:
        return trimmed.strip(BLANKS)
    content = trimmed[1:-1].replace(quote * 2, "")
    if len(trimmed) < 2 or trimmed[0] != quote or trimmed[-1] != quote or quote in content:
        return None
    return trimmed[1:-1].replace(quote * 2, quote).strip(BLANKS)


class TextLines:
    """Files of lines as an Arrow stream of lists of ``width`` texts; every scan starts anew."""

    def __init__(self, paths: Sequence[str], text_format: TextFormat, width: int) -> None:
        import pyarrow

        self.paths = tuple(paths)
        self.format = text_format
        marks = (text_format.delimiter, text_format.quote, text_format.comment)
        delimiter, quote, comment = (-1 if mark is None else ord(mark) for mark in marks)
        self.splitter = Splitter(width=width, delimiter=delimiter, quote=quote, comment=comment)
        self.schema = pyarrow.schema([("fields", pyarrow.list_(pyarrow.string(), width))])

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return a new stream over all files: how DuckDB asks for the rows."""
        import pyarrow

        reader = pyarrow.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def batches(self) -> Iterator[Any]:
        """Yield the rows as Arrow batches that share the memory of their block."""
        import pyarrow

        skip = self.format.skip + self.format.header
        for path in self.paths:
            for block in text_blocks(path, encoding=self.format.encoding, skip=skip):
                cut = self.splitter.fields(block)
                text = pyarrow.StringArray.from_buffers(
                    len(cut.offsets) - 1,
                    pyarrow.py_buffer(cut.offsets),
                    pyarrow.py_buffer(cut.buffer),
                )
                rows = pyarrow.FixedSizeListArray.from_arrays(text, self.splitter.width)
                yield pyarrow.record_batch([rows], schema=self.schema)


def header_names(path: str, text_format: TextFormat) -> tuple[str, ...]:
    """Return the names of the columns: by argument, or from the first line, which is public.

    A blank name becomes ``column1``, ``column2``, ... by its place.
    """
    if text_format.names is not None and not isinstance(text_format.names, int):
        return tuple(text_format.names)
    blocks = text_blocks(path, encoding=text_format.encoding, skip=text_format.skip)
    line = next(blocks, b"").partition(b"\n")[0].decode()
    if "\r" in line.rstrip("\r"):
        raise DataError(
            f"The lines of {path!r} must end in a line feed, alone or after a carriage return; its"
            " first line holds a carriage return alone. Save it with the line ends of Unix."
        )
    names = split_line(line, delimiter=text_format.delimiter or ",", quote=text_format.quote)
    if names is None or not any(names):
        raise DataError(
            f"The first line of {path!r} must hold the names of its columns; where the file has"
            " none, give them (--names; in Python header=False and names). `expmech check` tells"
            " you whether the file is empty, or written in another encoding."
        )
    return tuple(name or f"column{j + 1}" for j, name in enumerate(names))


def open_text(paths: Sequence[str], text_format: TextFormat, connection: Any = None) -> Any:
    """Return the Ibis table of the columns of text files, as text; no row is read yet.

    With ``connection`` it is a second table of that one.
    """
    headers = {path: header_names(path, text_format) for path in paths}
    for path, header in headers.items():
        refuse_equal_names(header, path)
    names = headers[paths[0]]
    if any(other != names for other in headers.values()):
        raise DataError("The files must have the same names of columns, in the same order.")
    lines, view = _LINES, _VIEW
    if connection is None:
        connection = duckdb_connection()
    else:
        lines, view = lines + SECOND, view + SECOND
    connection.con.register(lines, TextLines(paths, text_format, len(names)))
    columns = ", ".join(f"fields[{j + 1}] AS {quoted(name)}" for j, name in enumerate(names))
    connection.raw_sql(f"CREATE TEMP VIEW {view} AS SELECT {columns} FROM {lines}")
    return connection.table(view)
