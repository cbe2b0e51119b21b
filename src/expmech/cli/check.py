"""`expmech check`: look at a table before anything is released, for the steward's eyes only.

It prints what rows hold, without any noise, and writes and charges nothing. The commands that it
suggests hold nothing computed from rows but the encoding and the delimiter: bounds, groups and
limits that were read off the data would be published as if they were public.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Annotated, Any

import typer

from expmech.cli.common import user_errors
from expmech.cli.console import output
from expmech.cli.options import TableOptions, add_command
from expmech.cli.settings import open_table, text_format
from expmech.core.errors import ParameterError
from expmech.tables.engines.sums import fresh_names, present
from expmech.tables.sources.casts import has_key, is_readable
from expmech.tables.sources.execution import run_query, sum_or_zero
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import split_line, text_blocks, text_ending

app = typer.Typer(add_completion=False)

WARNING = "FOR THE STEWARD'S EYES ONLY: computed from the rows without noise, so it is not private."
_ENCODINGS = ("utf-8", "iso8859-1", "cp1252", "iso8859-15", "cp1250", "mac-roman", "cp850")
_BYTES = "iso8859-1"  # every byte is a character of it, so that it gives lines as they are
_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE = 2000  # lines by which the delimiter is recognised
_WORDS = 3  # examples of how an encoding reads what is not ASCII
_CONTROLS = re.compile("[\x80-\x9f]")
_WORD = re.compile(r"[^\W\d_]*[^\x00-\x7f\W][^\W\d_]*")
_DATES = "are dates: give --bounds or --edges as dates"
_SPELLINGS = {
    r"^[+-]?[0-9]+,[0-9]+$": "look like 3,5: if that is a decimal comma, give --decimal ,",
    r"^[+-]?[0-9]{1,3}([,.' ][0-9]{3})+([.,][0-9]+)?$": "look like 1,200: numbers have no"
    " separators of thousands",
    r"^[+-]?[0-9]+([.,][0-9]+)?[ ]*%$": "look like 12%: numbers have no percent sign",
    r"^([$€£]|CHF|EUR|USD)[ ]*[0-9]|[0-9][ ]*([$€£]|CHF|EUR|USD)$": "look like an amount with its"
    " currency: numbers have none",
    r"^([yY]|[nN]|[yY]es|[nN]o|YES|NO|[jJ]a|[nN]ein|[oO]ui|[nN]on)$": "look like yes or no: count"
    " with --where, or make 1 and 0 by --query",
    r"^[0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{4}|[0-9]{2})$": "look like 31.01.2020: dates are"
    " written 2020-01-31, year first",
}
"""Texts that people take for numbers or dates, and what to do about them."""
_PEOPLE = re.compile(
    "(^|_|-| )(id|person|people|patient|customer|client|user|member|employee|student|household)s?"
    "($|_|-| )",
    re.IGNORECASE,
)
_UTF_16 = "UTF-16 does, which is not read line by line: convert the file to utf-8"
_NO_TEXT = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"\x1f\x8b": "a file packed by gzip does: give it the ending .csv.gz",
    b"PK\x03\x04": "a spreadsheet or a zip file does: save it as CSV first",
    b"PAR1": "Parquet does: give it the ending .parquet",
}
"""How files begin that are no lines of text, with what to do about them."""


@dataclass(frozen=True, kw_only=True)
class DecodedLines:
    """How many lines of text files an encoding reads, and some words that are not ASCII."""

    lines: int
    undecoded: int
    words: tuple[str, ...]
    has_controls: bool


def check(
    table: TableOptions,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="Look at this column only; repeat for several."),
    ] = None,
) -> None:
    """Show how a file is read and what is missing, for the steward's eyes only; nothing is charged.

    Shows encodings, delimiter, numbers and missing values by column, and rows per person with
    --unit. Never publish what it prints.
    """
    with user_errors():
        _print(WARNING, style="bold")
        _print("Do not publish it, and choose no bounds, groups or limits by it.")
        _print("Nothing is written and nothing is charged.")
        chosen = table
        if table.source is not None and table.table is None and text_ending(table.source):
            chosen = _check_text(table)
        with closing(open_table(chosen)) as source:
            _check_columns(source, column)
            if table.unit is not None:
                _check_people(source, table.unit)
            else:
                _name_people(column or source.table.columns)
        _suggest(chosen)


add_command(app, "check", {}, check, lambda own: check(**own))


def _check_text(place: TableOptions) -> TableOptions:
    """Print which encodings and delimiters fit; return the options with those that fit best."""
    source = str(place.source)
    paths = [source] if os.path.isfile(source) else sorted(glob.glob(source))
    if not paths:
        return place  # opening it says so
    for path, (beginning, remedy) in itertools.product(paths, _NO_TEXT.items()):
        if any(block.startswith(beginning) for block in _first_bytes(path)):
            raise ParameterError(f"{path} begins as {remedy}.")
    decoded = {name: _decode(paths, name) for name in _ENCODINGS}
    if not decoded[_BYTES].lines:
        raise ParameterError(f"{place.source} is empty: it has not even a line of names.")
    encoding = place.encoding or _best_encoding(decoded)
    _print()
    _print("Encoding")
    shown = decoded if decoded["utf-8"].undecoded or encoding != "utf-8" else {}
    for name, result in (shown or {"utf-8": decoded["utf-8"]}).items():
        lost = _share(result.undecoded, result.lines)
        state = f"{lost} of the lines do not decode" if result.undecoded else "every line decodes"
        words = f", with words such as {', '.join(result.words)}" if result.words else ""
        mark = "*" if name == encoding else " "
        _print(f"  {mark} {name:<11}{state}{words}")
    if decoded["utf-8"].undecoded and place.encoding is None:
        lost = _share(decoded["utf-8"].undecoded, decoded["utf-8"].lines)
        _print(
            f"  Read as utf-8, the default, {lost} of the rows would count as missing. Choose the"
            " encoding whose words are spelt right."
        )
    format_ = text_format(replace(place, encoding=encoding))
    usual = format_.completed(paths[0]).delimiter or ","
    delimiter = place.delimiter
    if delimiter is None:
        lines = list(itertools.islice(_lines(paths[0], format_.encoding), _SAMPLE))
        delimiter = _best_delimiter(lines, format_.quote, usual)
    _print(f"Delimiter   {delimiter!r}{'' if delimiter == usual else ', not the default'}")
    return replace(
        place,
        encoding=encoding if place.encoding or encoding != "utf-8" else None,
        delimiter=delimiter if place.delimiter or delimiter != usual else None,
    )


def _first_bytes(path: str) -> Iterator[bytes]:
    for block in itertools.islice(text_blocks(path, encoding=_BYTES, skip=0), 1):
        yield block.decode().encode(_BYTES)


def _lines(path: str, encoding: str) -> Iterator[str]:
    for block in text_blocks(path, encoding=encoding, skip=0):
        yield from block.decode().removesuffix("\n").split("\n")


def _decode(paths: Sequence[str], encoding: str) -> DecodedLines:
    """Return how an encoding reads the lines of files."""
    lines = undecoded = 0
    words: dict[str, None] = {}
    has_controls = False
    for path in paths:
        read = text_blocks(path, encoding=encoding, skip=0)
        for block, raw in zip(read, text_blocks(path, encoding=_BYTES, skip=0), strict=True):
            lines += raw.count(b"\n")
            if not block.isascii():
                text = block.decode()
                has_controls = has_controls or _CONTROLS.search(text) is not None
                if len(words) < _WORDS:
                    words |= dict.fromkeys(_WORD.findall(text))
            if block != raw or encoding != _BYTES:
                pairs = zip(block.split(b"\n"), raw.split(b"\n"), strict=True)
                undecoded += sum(not own.strip() and bool(given.strip()) for own, given in pairs)
    return DecodedLines(
        lines=lines,
        undecoded=undecoded,
        words=tuple(words)[:_WORDS],
        has_controls=has_controls,
    )


def _best_encoding(decoded: Mapping[str, DecodedLines]) -> str:
    """Return the first encoding that reads every line, and no character that nobody writes."""
    whole = [name for name, result in decoded.items() if not result.undecoded]
    plain = [name for name in whole if not decoded[name].has_controls]
    return (plain or whole or [_BYTES])[0]


def _best_delimiter(lines: Sequence[str], quote: str | None, usual: str) -> str:
    """Return the delimiter by which most lines have as many fields as the first, two or more."""
    fits = {}
    for delimiter in dict.fromkeys((usual, *_DELIMITERS)):
        fields = [split_line(line, delimiter=delimiter, quote=quote) for line in lines]
        width = len(fields[0] or []) if fields else 0
        equal = sum(field is not None and len(field) == width for field in fields)
        fits[delimiter] = equal if width > 1 else 0
    return max(fits, key=lambda delimiter: fits[delimiter])  # the usual one where equal


def _check_columns(source: Source, columns: Sequence[str] | None) -> None:
    """Print how many values of each column are numbers, and how many are missing."""
    known = list(source.table.columns)
    lowered = {name.lower(): name for name in known}
    names = list(columns or known)
    for name in [name for name in names if name.lower() not in lowered]:
        near = [lowered[each] for each in get_close_matches(name.lower(), lowered, n=3)]
        listed = f"; near it {'is' if len(near) == 1 else 'are'} {', '.join(near)}" if near else ""
        _print(f"There is no column {name}{listed}.")
        names.remove(name)
    kinds = {name: source.column(name).type() for name in names}
    (prefix,) = fresh_names(known, 1)
    texts = {f"{prefix}e{k}": n for k, (n, kind) in enumerate(kinds.items()) if kind.is_string()}
    table = source.staged_days(texts, {name: source.column(name) for name in names})
    source = replace(source, table=table)
    flags: dict[str, Any] = {}
    hints: dict[str, tuple[str, str]] = {}
    for k, (name, kind) in enumerate(kinds.items()):
        if is_readable(kind):
            flags[f"{prefix}n{k}"] = present(source.number(name))
        if has_key(kind):
            flags[f"{prefix}m{k}"] = source.key(name).missing()
        if kind.is_string():
            for number, (pattern, advice) in enumerate(_SPELLINGS.items()):
                matches = source.text(name).re_search(pattern).fill_null(False)
                flags[f"{prefix}s{k}_{number}"] = matches & ~flags[f"{prefix}n{k}"]
                hints[f"{prefix}s{k}_{number}"] = name, advice
            flags[f"{prefix}d{k}"] = source.table[f"{prefix}e{k}"].notnull()
            hints[f"{prefix}d{k}"] = name, _DATES
    counted = source.staged(flags) if flags else source.table
    counts = {flag: counted.count(where=counted[flag]) for flag in flags}
    gone = [counted[flag] for flag in flags if flag.startswith(f"{prefix}m")]
    if gone:
        counts[f"{prefix}w"] = counted.count(where=reduce(and_, gone))
    (row,) = run_query(counted.aggregate(**{f"{prefix}t": counted.count()}, **counts))
    rows = int(row[f"{prefix}t"])

    def share(flag: str) -> str:
        return _share(int(sum_or_zero(row[flag], rows)), rows) if flag in counts else "-"

    _print(f"Rows        {rows}")
    if gone and columns is None:
        whole = int(sum_or_zero(row[f"{prefix}w"], rows))
        reason = "empty, of another number of fields, or not decoded"
        _print(f"            {_share(whole, rows)} of them are missing as a whole: {reason}")
    _print()
    width = max(map(len, ("Column", *names)))
    _print(f"{'Column':<{width}}   numbers   missing   type")
    for k, (name, kind) in enumerate(kinds.items()):
        numbers, missing = share(f"{prefix}n{k}"), share(f"{prefix}m{k}")
        _print(f"{name:<{width}}   {numbers:>7}   {missing:>7}   {kind}")
    _print("What is neither a number nor missing counts as missing where a number is needed.")
    shown = [(*hint, share(flag)) for flag, hint in hints.items() if row[flag]]
    for name, advice, part in shown:
        _print(f"  {name:<{width}} {part:>7} {advice}")


def _name_people(columns: Sequence[str]) -> None:
    """Point out columns whose names say that they name people, who may have several rows."""
    named = [name for name in columns if _PEOPLE.search(name)]
    if named:
        _print()
        _print(f"{' and '.join(named)} may name people. If a person may have several rows, protect")
        _print(f"people and not rows. To see rows per person: expmech check ... --unit {named[0]}")


def _check_people(source: Source, unit: str) -> None:
    """Print how many rows people have."""
    (prefix,) = fresh_names(source.table.columns, 1)
    who, rows, people = f"{prefix}u", f"{prefix}r", f"{prefix}p"
    named = source.table.filter(~source.key(unit).missing())
    texts = replace(source, table=named).staged({who: replace(source, table=named).text(unit)})
    each = texts.group_by(who).aggregate(**{rows: texts.count()})
    counts = run_query(each.group_by(rows).aggregate(**{people: each.count()}))
    by_rows = sorted((int(row[rows]), int(row[people])) for row in counts)
    total = sum(number for _, number in by_rows)
    _print()
    if not total:
        _print(f"People      {unit} names nobody")
        return
    _print(f"People      {total} by {unit}")

    def quantile(level: float) -> int:
        below = 0
        for size, number in by_rows:
            below += number
            if below >= level * total:
                return size
        return by_rows[-1][0]

    _print(
        f"            rows of each: half have at most {quantile(0.5)}, 95% have at most"
        f" {quantile(0.95)}, the most is {by_rows[-1][0]}"
    )
    _print("            Choose --max-rows by what is known of the study, not by these numbers.")


def _suggest(place: TableOptions) -> None:
    """Print commands to begin with."""
    source = str(place.source)
    stem = "survey" if "://" in source or source == "spark" else Path(source).name.partition(".")[0]
    ledger = f"{stem.strip('-*') or 'survey'}.ledger"
    options = [
        part
        for name, value in vars(place).items()
        if value is not None and name not in ("source", "max_rows")
        for part in (f"--{name.replace('_', '-')}", "tab" if value == "\t" else value)
    ]
    if place.unit is not None:
        options += ["--max-rows", "ROWS"]
    of_ledger = ["--ledger", ledger]
    number = ["--column", "COLUMN", "--bounds", "LOWER,UPPER"]
    groups = ["--by", "COLUMN", "--groups", "@LIST.txt"]
    commands = [
        ["budget", "init", ledger, source, *options, "--epsilon", "TOTAL"],
        ["release", "count", *of_ledger, "--epsilon", "EPSILON"],
        ["release", "mean", *of_ledger, *number, "--epsilon", "EPSILON"],
        ["release", "median", *of_ledger, *number, "--epsilon", "EPSILON"],
        ["release", "count", *of_ledger, *groups, "--epsilon", "EPSILON"],
    ]
    _print()
    _print(
        "Commands to begin with. Put public knowledge in the place of capitals: what a form allows,"
    )
    _print("what the law or an earlier publication says, never what is printed above.")
    for words in commands:
        _print(f"  expmech {shlex.join(map(str, words))}")


def _share(count: int, total: int) -> str:
    """Return a share in percent; only nothing is 0%, and only all is 100%."""
    if not total:
        return "-"
    percent = 100.0 * count / total
    if 0 < count < total:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f}%".replace(".0%", "%")


def _print(line: str = "", **options: Any) -> None:
    output.print(line, **options)
