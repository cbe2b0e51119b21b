"""Tables whose rows can be exchanged while sources of them stay open; one kind per source type."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow
from pyarrow.parquet import write_table

from expmech.tables.sources.opening import open_frame, open_source
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import TextFormat
from support.additivity import Answer, Question, answered, refuse_assumed
from support.row_expressions import COLUMNS, Row

Asking = Callable[[], Answer]

TYPES = {
    "f": pyarrow.float64(),
    "g": pyarrow.float32(),
    "i": pyarrow.int64(),
    "k": pyarrow.int8(),
    "d": pyarrow.decimal128(18, 3),
    "s": pyarrow.string(),
    "w": pyarrow.string(),
    "b": pyarrow.bool_(),
    "day": pyarrow.date32(),
    "at": pyarrow.timestamp("us"),
}
SCHEMA = pyarrow.schema(list(TYPES.items()))


def arrow_table(rows: Sequence[Row]) -> Any:
    """Return rows as an Arrow table of the public schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    arrays = [pyarrow.array(c, kind) for c, kind in zip(columns, TYPES.values(), strict=True)]
    return pyarrow.table(arrays, schema=SCHEMA)


def write_parquet(rows: Sequence[Row], path: Path, seed: int) -> None:
    """Write rows, in any number of row groups, with dictionaries and statistics or without."""
    generator = random.Random(seed)
    fresh = path.with_suffix(".fresh")
    write_table(
        arrow_table(rows),
        fresh,
        row_group_size=generator.choice([1, 2, 3, 7, 1000]),
        use_dictionary=generator.random() < 0.5,
        write_statistics=generator.random() < 0.9,
        data_page_size=generator.choice([1, 64, 1 << 20]),
        write_page_index=generator.random() < 0.5,
    )
    os.replace(fresh, path)


@dataclass(kw_only=True)
class ParquetPlace:
    """One file, or a folder of three parts."""

    folder: Path
    parts: int = 1
    engine: str = "duckdb"

    @property
    def name(self) -> str:
        """Return what failures call it."""
        kind = "parquet" if self.engine == "duckdb" else self.engine
        return kind if self.parts == 1 else f"{kind} in parts"

    def put(self, rows: Sequence[Row], seed: int) -> None:
        """Write the rows, a share of them to each part."""
        for k in range(self.parts):
            share = rows[k * len(rows) // self.parts : (k + 1) * len(rows) // self.parts]
            write_parquet(share, self.folder / f"part-{k}.parquet", seed + k)

    def asking(self, question: Question, stack: ExitStack) -> Asking:
        """Open the file or the folder."""
        path = self.folder / "part-0.parquet" if self.parts == 1 else self.folder
        source = open_source(
            str(path),
            query=_query(question, "source"),
            lookup=question.lookup,
            on=question.on,
            engine=self.engine,
        )
        return _kept_open(question, source, stack)


@dataclass(kw_only=True)
class TextPlace:
    """A text file, of lines of any bytes and of rows."""

    folder: Path
    format: TextFormat

    name: ClassVar[str] = "text"

    def put(self, rows: Sequence[bytes | Row], seed: int) -> None:
        """Write the lines."""
        mark = self.format.delimiter or ","
        header = [mark.join(COLUMNS).encode()] if self.format.header else []
        lines = [row if isinstance(row, bytes) else as_line(row, self.format) for row in rows]
        self._path.write_bytes(b"".join(line + b"\n" for line in [*header, *lines]))

    def asking(self, question: Question, stack: ExitStack) -> Asking:
        """Open the file."""
        query = _query(question, "source")
        source = open_source(
            str(self._path),
            query=query,
            text_format=self.format,
            lookup=question.lookup,
            on=question.on,
        )
        return _kept_open(question, source, stack)

    @property
    def _path(self) -> Path:
        return self.folder / "rows.csv"


def as_line(row: Row, text_format: TextFormat) -> bytes:
    """Return a row as a line: quoted where there are quotes, and without what no line can hold."""
    mark, quote = text_format.delimiter or ",", text_format.quote

    def written(value: Any) -> str:
        text = "" if value is None else str(value)
        if isinstance(value, float):
            text = repr(value).replace(".", text_format.decimal)
        text = text.replace("\n", " ")
        if quote is None:
            return text.replace(mark, " ")
        return quote + text.replace(quote, 2 * quote) + quote

    return mark.join(map(written, row)).encode(text_format.encoding, errors="replace")


@dataclass(kw_only=True)
class FramePlace:
    """A table in memory: an Arrow table, a pandas or a Polars frame."""

    kind: str
    table: Any = field(default=None)

    @property
    def name(self) -> str:
        """Return what failures call it."""
        return f"{self.kind} frame"

    def put(self, rows: Sequence[Row], seed: int) -> None:
        """Make a frame of the rows."""
        self.table = arrow_table(rows)

    def asking(self, question: Question, stack: ExitStack) -> Asking:
        """Open whatever frame is there at the time: it is registered, not read by name."""

        def ask() -> Answer:
            with closing(open_frame(self._frame(), name="rows")) as source:
                if question.on is not None:
                    source = source.with_lookup(question.lookup, on=question.on)
                return answered(question, source)

        return ask

    def _frame(self) -> Any:
        """Return the rows as a frame; of pandas with columns of objects, typed by no row."""
        if self.kind == "polars":
            import polars

            return polars.from_arrow(self.table)
        if self.kind == "pandas":
            import pandas

            held = {name: self.table[name].to_pylist() for name in COLUMNS}
            return pandas.DataFrame({n: pandas.Series(v, dtype=object) for n, v in held.items()})
        return self.table


@dataclass(kw_only=True)
class PostgresPlace:
    """A table of a server, as its user and as its owner see it."""

    address: str
    writer: Any
    collation: str = ""

    name: ClassVar[str] = "postgres"

    def __post_init__(self) -> None:
        kinds = ", ".join(f"{name} {kind}" for name, kind in POSTGRES.items())
        kinds = kinds.replace("text", f"text {self.collation}")
        self.writer.execute("DROP TABLE IF EXISTS held")
        self.writer.execute(f"CREATE TABLE held ({kinds})")

    def put(self, rows: Sequence[Row], seed: int) -> None:
        """Exchange the rows."""
        with self.writer.transaction(), self.writer.cursor() as cursor:
            cursor.execute("DELETE FROM held")
            with cursor.copy("COPY held FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)

    def asking(self, question: Question, stack: ExitStack) -> Asking:
        """Open the table or a query of it."""
        query = _query(question, "held")
        source = open_source(
            self.address,
            table=None if query else "held",
            query=query,
            lookup=question.lookup,
            on=question.on,
        )
        return _kept_open(question, source, stack)


POSTGRES = {
    "f": "float8",
    "g": "float4",
    "i": "int8",
    "k": "int2",
    "d": "numeric(18, 3)",
    "s": "text",
    "w": "text",
    "b": "boolean",
    "day": "date",
    "at": "timestamp",
}


@dataclass(kw_only=True)
class SparkPlace:
    """A table of a Spark session, of Parquet files."""

    session: Any
    folder: Path
    collation: str | None = None
    schema: Any = field(default=None)
    made: int = 0

    name: ClassVar[str] = "spark"

    def put(self, rows: Sequence[Row], seed: int) -> None:
        """Write the rows to a new file, and call it by the old name."""
        self.made += 1
        path = self.folder / f"{self.made}.parquet"
        write_parquet(rows, path, seed)
        if self.schema is None:
            self.schema = self._typed(path)
        frame = self.session.read.schema(self.schema).parquet(str(path))
        frame.createOrReplaceTempView("held")

    def asking(self, question: Question, stack: ExitStack) -> Asking:
        """Open the table or a query of it."""
        query = _query(question, "held")
        source = open_source(
            "spark",
            table=None if query else "held",
            query=query,
            lookup=question.lookup,
            on=question.on,
        )
        return _kept_open(question, source, stack)

    def _typed(self, path: Path) -> Any:
        from pyspark.sql.types import StringType, StructField, StructType

        fields = self.session.read.parquet(str(path)).schema.fields
        if self.collation is None:
            return StructType(fields)
        text = StringType(self.collation)
        return StructType([StructField(f.name, text) if f.name in "sw" else f for f in fields])


def _query(question: Question, table: str) -> str | None:
    return question.query and question.query.format(table=table)


def _kept_open(question: Question, source: Source, stack: ExitStack) -> Asking:
    stack.enter_context(closing(source))
    refuse_assumed(question, source)
    return lambda: answered(question, source)
