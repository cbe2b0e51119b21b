"""Text files as a table of text in DuckDB, streamed: read anew for every query, never held.

DuckDB's own reader guesses, refuses and drops rows by what records hold; here it only sees columns
of text that were cut line by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from expmech.data.engines import quoted
from expmech.data.text_fields import Splitter, split_line
from expmech.data.text_format import TextFormat
from expmech.data.text_lines import text_blocks
from expmech.errors import DataError

_LINES, _VIEW = "expmech_lines", "expmech_table"


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
    delimiter = text_format.completed(path).delimiter or ","
    names = split_line(line, delimiter=delimiter, quote=text_format.quote)
    if names is None or not any(names):
        raise DataError(
            f"The first line of {path!r} must hold the names of its columns; where the file has"
            " none, give them (--names; in Python header=False and names)."
        )
    return tuple(name or f"column{j + 1}" for j, name in enumerate(names))


def register_text(connection: Any, lines: TextLines, names: Sequence[str]) -> Any:
    """Return the Ibis table of the files' columns, as text."""
    connection.con.register(_LINES, lines)
    columns = ", ".join(f"fields[{j + 1}] AS {quoted(name)}" for j, name in enumerate(names))
    connection.raw_sql(f"CREATE TEMP VIEW {_VIEW} AS SELECT {columns} FROM {_LINES}")
    return connection.table(_VIEW)
