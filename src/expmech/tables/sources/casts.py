"""Casts that no value can make fail: the same number, text, time and key on every engine.

The engines' side of :mod:`expmech.tables.reading` and :mod:`expmech.tables.keys`. PostgreSQL, which
raises where others return NULL, is given guarded expressions. The guards are CASE expressions,
whose branches run only for the rows that take them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from expmech.core.dates import FIRST_SECOND, LAST_SECOND, SECONDS_PER_DAY
from expmech.tables.keys import TIME_PATTERN, Key, time_spellings
from expmech.tables.reading import BLANKS, MOST_DIGITS, NUMBER_PATTERN, WORDS

_OVERFLOWS = str((1 << 1024) - (1 << 970))  # from here on, nearest float64 is infinite
_UNDERFLOWS = f"{5**1075}e-1075"  # 2^-1075: up to here, it is zero
_MANTISSA = NUMBER_PATTERN.rpartition("(")[0]
_TOO_LARGE = f"{_MANTISSA}[eE][+]?0*[1-9][0-9]{{4,}}"
_TOO_SMALL = f"{_MANTISSA}[eE]-0*[1-9][0-9]{{4,}}"
_ZERO = "^[+-]?[0.]+[eE]"
_INFINITE = "[iI][nN][fF]([iI][nN][iI][tT][yY])?"

MOST_MICROSECONDS = 9_223_372_022_400_000_000
"""About 292,000 years: DuckDB shows no time so far before 1970, and has none so far after."""

_MOST_NANOSECONDS = (1 << 63) - 1  # 292 years; a cast of a farther time fails where there are rows


def constant(number: float) -> Any:
    """Return a float64 constant.

    Engines read a bare decimal as a decimal type, but text as the nearest float64.
    """
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


def null(kind: Any = "float64") -> Any:
    """Return a missing value of a type."""
    import ibis

    return ibis.null(kind)


def cases(*branches: tuple[Any, Any], otherwise: Any = None) -> Any:
    """Return the result of the first branch that holds; ``otherwise`` is by default no number."""
    import ibis

    return ibis.cases(*branches, else_=null() if otherwise is None else otherwise)


def is_readable(kind: Any) -> bool:
    """Return whether a column of this type is read as numbers: a public question."""
    return bool(kind.is_numeric() or kind.is_boolean() or kind.is_string())


def number(column: Any, *, engine: str, decimal: str = ".") -> Any:
    """Return a column as float64; NULL or NaN where a value is no number."""
    kind = column.type()
    if kind.is_string():
        if decimal == ",":  # a dot then stands in no number
            column = column.translate(",.", ".,")
        return _number_in_duckdb(column) if engine == "duckdb" else _number_of_text(column, engine)
    if kind.is_boolean():  # PostgreSQL casts no boolean to a number
        return cases((column, constant(1.0)), (~column, constant(0.0)))
    if kind.is_decimal() and engine == "postgres":
        return _number_of_decimal(column)
    return column.cast("float64")


def as_text(column: Any, *, engine: str) -> Any:
    """Return a column as text; no value can fail."""
    if column.type().is_string():
        return column
    return moment(column, engine=engine).cast("string")


def text(column: Any, *, engine: str) -> Any:
    """Return a column of text without blanks around the values."""
    if engine != "duckdb":
        return column.strip()
    # Only a text with a blank at an end is trimmed, which takes long. DuckDB's quicker trim without
    # characters takes off every space of Unicode too, which other engines and memory keep.
    edged = column < "!"  # starts with a blank, or is empty
    for blank in BLANKS:
        edged = edged | column.endswith(blank)
    return edged.ifelse(column.strip(), column)


@dataclass(frozen=True, kw_only=True)
class EngineKey:
    """The canonical key of a column's values: a number, a text, a time, each NULL where it is not.

    Expressions are None where the type of the column has no such values.
    """

    engine: str
    number: Any = None
    text: Any = None
    time: Any = None

    def equals(self, key: Key) -> Any:
        """Return whether values have this key; never NULL, and false for what is missing."""
        import ibis

        listed = self.listed([key])
        matches = [
            expression.isin(values).fill_null(False)
            for expression, values in zip((self.number, self.text, self.time), listed, strict=True)
            if values
        ]
        return matches[0] if matches else ibis.literal(False)

    def listed(self, keys: Sequence[Key]) -> tuple[list[Any], list[str], list[Any]]:
        """Return the numbers, texts and times that values of this column with the keys have."""
        numbers = [constant(float(key.value)) for key in keys if key.kind == "number"]  # type: ignore[arg-type]
        texts = [spelt for key in keys for spelt in spellings(key)]
        times = [] if self.time is None else [time_literal(self.time, key) for key in keys]
        return (
            numbers if self.number is not None else [],
            texts if self.text is not None else [],
            [time for time in times if time is not None],
        )

    def missing(self) -> Any:
        """Return whether a value is missing."""
        if self.text is not None:
            return self.text.isnull() | _spells(self.text, "([+-]?[nN][aA][nN])?", self.engine)
        if self.number is not None:
            return self.number.isnull() | self.number.isnan()
        return self.time.isnull()


def spellings(key: Key) -> list[str]:
    """Return the texts that are no numbers and have this key."""
    if key.kind == "text":
        return [str(key.value)]
    if key.kind == "time" and isinstance(key.value, int):
        return time_spellings(key.value)
    return []


def has_key(kind: Any) -> bool:
    """Return whether values of this type can be compared: a public question."""
    return bool(is_readable(kind) or kind.is_date() or kind.is_timestamp())


def engine_key(column: Any, *, engine: str, decimal: str) -> EngineKey:
    """Return the canonical key of a column's values."""
    kind = column.type()
    if kind.is_date() or kind.is_timestamp():
        return EngineKey(engine=engine, time=moment(column, engine=engine))
    value = number(column, engine=engine, decimal=decimal) + constant(0.0)  # -0 is 0
    trimmed = text(column, engine=engine) if kind.is_string() else None
    return EngineKey(engine=engine, number=value, text=trimmed)


def moment(column: Any, *, engine: str) -> Any:
    """Return a column of times; those that the engine holds but cannot show are missing.

    DuckDB fails on them in every cast, and its database with it.
    """
    import ibis

    kind = column.type()
    if engine != "duckdb" or not kind.is_timestamp() or (kind.scale or 0) > 6:
        return column

    def epoch_us(time):  # type: ignore[no-untyped-def]
        raise NotImplementedError  # the engine's own function of this name

    ticks = ibis.udf.scalar.builtin(epoch_us, signature=((kind,), "int64"))(column)
    return ibis.ifelse(ticks >= -MOST_MICROSECONDS, column, ibis.null(kind))


def holds_dates(kind: Any) -> bool:
    """Return whether a column of this type may hold dates: a public question."""
    return bool(kind.is_date() or kind.is_timestamp() or kind.is_string())


def days(column: Any, *, engine: str) -> Any:
    """Return a column of times as days since 1970, to the second; NULL where a value is no date.

    As :func:`expmech.tables.dates.day_number`: whole seconds, which float64 holds, over 86,400.
    """
    if engine == "pyspark":
        return days_of(_seconds_in_spark(column))
    return days_of(_seconds_of_time(moment(column, engine=engine), engine))


def days_of(seconds: Any) -> Any:
    """Return whole seconds as days; NULL for NULL and beyond the years 1 to 9999."""
    first, last = constant(float(FIRST_SECOND)), constant(float(LAST_SECOND))
    known = (seconds >= first) & (seconds <= last)
    return cases((known, seconds / constant(float(SECONDS_PER_DAY))))


def _seconds_of_time(column: Any, engine: str) -> Any:
    """Return whole seconds since 1970 of a date or a time in DuckDB and PostgreSQL."""
    import ibis

    kind = column.type()
    if engine == "duckdb":

        def epoch_us(time):  # type: ignore[no-untyped-def]
            raise NotImplementedError  # the engine's own function of this name

        ticks = ibis.udf.scalar.builtin(epoch_us, signature=((kind,), "int64"))(column)
        second = 10**6
        whole = ticks - ((ticks % second) + second) % second
        return whole.cast("float64") / constant(float(second))

    def date_part(part, time):  # type: ignore[no-untyped-def]
        raise NotImplementedError  # the engine's own function of this name

    whole = column if kind.is_date() else column.truncate("s")
    return ibis.udf.scalar.builtin(date_part, signature=(("string", kind), "float64"))(
        "epoch", whole
    )


def _seconds_in_spark(column: Any) -> Any:
    """Return whole seconds since 1970; Ibis sets the zone of the session to UTC."""
    import ibis

    def unix_date(day):  # type: ignore[no-untyped-def]
        raise NotImplementedError  # the engine's own function of this name

    day = ibis.udf.scalar.builtin(unix_date, signature=(("date",), "int32"))(column.cast("date"))
    seconds = day.cast("float64") * constant(float(SECONDS_PER_DAY))
    if column.type().is_date():
        return seconds
    parts = ((column.hour(), 3600.0), (column.minute(), 60.0), (column.second(), 1.0))
    for part, size in parts:
        seconds = seconds + part.cast("int64").cast("float64") * constant(size)
    return seconds


_DAYS_BEFORE = (306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275)
"""Days from the first of March to the first of each month."""


def date_text(trimmed: Any, engine: str) -> Any:
    """Return the text of a date or a time, for any other one a day that no calendar has."""
    fits = _spells(trimmed, TIME_PATTERN, engine).fill_null(False)
    return fits.ifelse(trimmed, "0000-00-00")


def parts_of_date(spelt: Any) -> list[Any]:
    """Return year, month, day, hour, minute and second of :func:`date_text`, as float64."""

    def part(start: int, size: int) -> Any:
        there = spelt.length() >= start + size  # of HH:MMZ the seconds are not
        return there.ifelse(spelt.substr(start, size), "0").cast("float64")

    return [part(0, 4), *(part(start, 2) for start in (5, 8, 11, 14, 17))]


def seconds_of_parts(year: Any, month: Any, day: Any, hour: Any, minute: Any, second: Any) -> Any:
    """Return whole seconds since 1970 by the calendar alone; NULL where there is no such time.

    No engine parses a date: each has its own idea of what spells one.
    """
    import ibis

    four, hundred = ((year / constant(n)).floor() * constant(n) == year for n in (4.0, 100.0))
    centuries = (year / constant(400.0)).floor() * constant(400.0) == year
    leap = (four & ~hundred) | centuries
    long = cases(
        (month == constant(2.0), leap.ifelse(constant(29.0), constant(28.0))),
        (month.isin([constant(float(m)) for m in (4, 6, 9, 11)]), constant(30.0)),
        otherwise=constant(31.0),
    )
    early = month <= constant(2.0)
    since = year - early.ifelse(constant(1.0), constant(0.0))  # years that begin in March
    leaps = [(since / constant(n)).floor() for n in (4.0, 100.0, 400.0)]
    before = cases(
        *((month == constant(m + 1.0), constant(float(n))) for m, n in enumerate(_DAYS_BEFORE))
    )
    days = (
        since * constant(365.0) + leaps[0] - leaps[1] + leaps[2]
        + before + day - constant(719_469.0)
    )  # fmt: skip
    zero = constant(0.0)
    valid = (
        (year > zero) & (month > zero) & (month <= constant(12.0))
        & (day > zero) & (day <= long)
        & (hour < constant(24.0)) & (minute < constant(60.0)) & (second < constant(60.0))
    )  # fmt: skip
    seconds = days * constant(86_400.0) + hour * constant(3600.0) + minute * constant(60.0) + second
    return ibis.cases((valid, seconds), else_=null())


def spelt_in_full(trimmed: Any, *, engine: str) -> Any:
    """Return text in which each time has one spelling, with nine digits; other text as it is."""
    import ibis

    marked, whole = trimmed.replace("T", " ").replace("Z", ""), "0000-00-00 00:00:00.000000000"
    # Not by `substr`, whose result is no text for DataFusion; a time has 10 signs or more.
    rests = [(marked.length() == n, whole[n:]) for n in range(10, len(whole))]
    rest = ibis.cases(*rests, else_="")
    is_time = seconds_of_parts(*parts_of_date(date_text(trimmed, engine))).notnull()
    return is_time.ifelse(ibis.literal("").join([marked, rest]), trimmed)


def time_literal(column: Any, key: Key) -> Any:
    """Return a constant of the column's own type, or None where it cannot hold the time."""
    import ibis

    text = time_text(column.type(), key)
    return None if text is None else ibis.literal(text).cast(column.type())


def time_text(kind: Any, key: Key) -> str | None:
    """Return what an engine casts to a type of time, or None where that cannot hold the time."""
    if key.kind != "time" or not isinstance(key.value, int):
        return None
    if kind.is_date():
        days = [spelt for spelt in time_spellings(key.value) if len(spelt) == 10]
        return days[0] if days else None
    digits = 6 if kind.scale is None else kind.scale
    step = 10 ** (9 - digits)
    if digits == 9 and abs(key.value) >= _MOST_NANOSECONDS:
        return None
    spelt = [text for text in time_spellings(key.value) if "T" in text and text[-1] != "Z"]
    longest = max(spelt, key=len, default="")
    if not longest or key.value % step:
        return None
    moment = longest[: len(longest) - 9 + digits].rstrip(".")
    return moment + ("" if kind.timezone is None else "+00:00")


def _number_of_text(column: Any, engine: str) -> Any:
    """Return the number that text spells, in engines whose own cast may fail on a value."""
    trimmed = column.strip()
    spelt = _spells(trimmed, NUMBER_PATTERN, engine)
    words = [
        (_spells(trimmed, f"[+]?{_INFINITE}", engine), constant(float("inf"))),
        (_spells(trimmed, f"-{_INFINITE}", engine), constant(float("-inf"))),
        *_truth(trimmed, engine),
    ]
    long = (trimmed.length() > MOST_DIGITS, null())
    if engine != "postgres":
        return cases(long, (spelt, trimmed.try_cast("float64")), *words)
    huge = cases(
        (trimmed.re_search(_ZERO), constant(0.0)),
        (trimmed.startswith("-"), constant(float("-inf"))),
        otherwise=constant(float("inf")),
    )
    return cases(
        long,
        (_spells(trimmed, _TOO_LARGE, engine), huge),
        (_spells(trimmed, _TOO_SMALL, engine), constant(0.0)),
        (spelt, _number_of_decimal(trimmed.cast("decimal"))),
        *words,
    )


def _spells(text: Any, pattern: str, engine: str) -> Any:
    """Return whether a pattern fits the whole text. Spark's ``$`` fits before a last U+2028 too."""
    return text.re_search(f"^({pattern})" + ("\\z" if engine == "pyspark" else "$"))


def _number_in_duckdb(column: Any) -> Any:
    """DuckDB's cast follows the rule but for underscores, two signs and words; it trims itself."""
    trimmed = text(column, engine="duckdb")
    short = trimmed.length() <= MOST_DIGITS
    return cases(
        (column.contains("_") | column.contains("+-"), null()),
        (column.length() > MOST_DIGITS, cases((short, trimmed.try_cast("float64")))),
        otherwise=column.try_cast("float64").fill_null(cases(*_truth(trimmed, "duckdb"))),
    )


def _truth(trimmed: Any, engine: str) -> list[tuple[Any, Any]]:
    return [
        (_spells(trimmed, "[tT][rR][uU][eE]", engine), constant(WORDS["true"])),
        (_spells(trimmed, "[fF][aA][lL][sS][eE]", engine), constant(WORDS["false"])),
    ]


def _number_of_decimal(column: Any) -> Any:
    """Return a numeric of PostgreSQL as the nearest float64.

    Its own cast raises where the nearest is infinite, or zero for what is not zero.
    """
    import ibis

    largest, least = (ibis.literal(digits).cast("decimal") for digits in (_OVERFLOWS, _UNDERFLOWS))
    return cases(
        (column == ibis.literal("NaN").cast("decimal"), null()),
        (column >= largest, constant(float("inf"))),
        (column <= -largest, constant(float("-inf"))),
        (column.abs() <= least, constant(0.0)),
        otherwise=column.cast("float64"),
    )
