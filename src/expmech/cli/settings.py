"""What a ledger knows of its table, so that a command need not say it again.

`budget init` notes where the table is, who is protected and how its text is written; a release with
`--ledger` takes from there what its command line leaves out, and refuses what contradicts it.
"""

from __future__ import annotations

import codecs
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from expmech.cli.columns import split
from expmech.cli.options import TableOptions
from expmech.core.adjacency import Adjacency, unit_of, validate_adjacency
from expmech.core.errors import ParameterError, validate_integer
from expmech.ledger import Ledger, LedgerError
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import TextFormat, text_ending
from expmech.tables.sources.units import MOST_ROWS

_CONSTANT = ("unit", "max_rows", "delimiter", "quote", "encoding", "decimal", "names")
"""Options that every release of a ledger shares, once `budget init` was given them."""


def text_format(place: TableOptions) -> TextFormat:
    """Return how the lines of a text file are cut, by options that were given and by defaults."""
    names: list[str] | int | None = None
    if place.names is not None:
        names = int(place.names) if place.names.isdecimal() else split(place.names, "--names")
    return TextFormat(
        delimiter=place.delimiter,
        quote='"' if place.quote is None else place.quote or None,
        header=names is None,
        names=names,
        encoding=place.encoding or "utf-8",
        decimal=place.decimal or ".",
    )


def open_table(place: TableOptions) -> Source:
    """Open the table that the options name; no row is read yet."""
    if place.source is None:
        raise ParameterError(
            "SOURCE must be given (in a plan `source = ...` at the top): a CSV or Parquet file, a"
            " postgresql:// address, or 'spark'. Only with a ledger that knows it, as `expmech"
            " budget init` makes them, may it be left out."
        )
    is_text = place.table is None and text_ending(place.source)
    return open_source(
        place.source,
        table=place.table,
        query=place.query,
        text_format=text_format(place) if is_text else None,
        lookup=place.lookup,
        on=place.on,
        unit=place.unit,
        unit_from=place.unit_from,
        unit_on=place.unit_on,
    )


def settings_of(place: TableOptions, ledger: Path) -> dict[str, Any]:
    """Return what a new ledger notes of its table: the options that were given, no password.

    A file is noted by its path from the folder of the ledger, so that both can move together.
    """
    given = {name: value for name, value in vars(place).items() if value is not None}
    if "max_rows" in given:
        given["max_rows"] = row_limit(given["max_rows"], owner="budget init")
    if "://" in given["source"]:
        given["source"] = _without_password(given["source"])
    elif _is_file(given["source"]):
        given["source"] = _beside(given["source"], ledger)
        if "unit_from" in given:
            given["unit_from"] = _beside(given["unit_from"], ledger)
    if "lookup" in given:
        given["lookup"] = _beside(given["lookup"], ledger)
    return given


def row_limit(text: str, *, owner: str) -> int:
    """Return how many rows of a person count; raise where the option holds no such number."""
    if not text.isdecimal():
        raise ParameterError(
            f"`--max-rows` of {owner} must be a whole number, or for a release auto; got {text!r}."
        )
    return validate_integer(int(text), name="--max-rows", owner=owner, low=1, high=MOST_ROWS)


def _beside(file: str, ledger: Path) -> str:
    """Return the path of a file from the folder of the ledger."""
    folder, name = os.path.split(os.path.abspath(file))
    path = os.path.join(os.path.realpath(folder), name)
    with suppress(ValueError):  # another drive of Windows: the path stays absolute
        path = os.path.relpath(path, os.path.realpath(ledger.parent))
    return path


def complete(
    place: TableOptions, adjacency: str | None, path: Path | None, *, owner: str
) -> tuple[TableOptions, Adjacency]:
    """Return the options with what the ledger knows; raise where they contradict it.

    Without a ledger that says otherwise neighbours differ by one row more or less.
    """
    ledger = None if path is None else Ledger(path)
    relation = "" if ledger is None else ledger.adjacency
    if adjacency is None:
        adjacency = relation if relation == Adjacency.REPLACE else Adjacency.ADD_REMOVE
    neighbours = validate_adjacency(adjacency, name="--adjacency", owner=owner)
    if ledger is None:
        return place, neighbours
    if not relation.startswith(neighbours):
        ledger.require_adjacency(neighbours)
    known = {"unit": unit_of(relation)} | ledger.settings
    if "max_rows" in known:
        known["max_rows"] = str(known["max_rows"])
    for name in _CONSTANT:
        value, own = getattr(place, name), known.get(name)
        if None not in (value, own) and not _same(name, value, own):
            option = f"--{name.replace('_', '-')}"
            raise LedgerError(
                f"`{option}` contradicts the ledger {path}, which was made with {option} {own}; got"
                f" {value}. Leave {option} out. Nothing was charged."
            )
    folder, in_files = ledger.path.resolve().parent, _is_file(known.get("source", ""))
    for name in ("lookup", *(("source", "unit_from") if in_files else ())):
        if name in known:  # kept as a path from the folder of the ledger
            known[name] = os.path.join(folder, known[name])
    filled = {name: known.get(name) for name in _CONSTANT if getattr(place, name) is None}
    if place.source is None:
        filled["source"] = known.get("source")
    for first, second in (("lookup", "on"), ("unit_from", "unit_on")):
        if getattr(place, first) is None and getattr(place, second) is None and first in known:
            filled |= {first: known[first], second: known[second]}
    if place.table is None and place.query is None:
        filled["query"] = known.get("query")
        if not _is_file(filled.get("source") or place.source or ""):
            filled["table"] = known.get("table")
    completed = replace(place, **filled)
    if completed.unit is not None and completed.max_rows is None and place.unit is None:
        raise ParameterError(
            f"`--max-rows` must be given: the ledger {path} protects people, named by the column"
            f" {completed.unit}, and this says how many rows of each count."
        )
    return completed, neighbours


def _same(name: str, given: Any, known: Any) -> bool:
    if name == "unit":
        return str(given).lower() == str(known).lower()
    if name == "encoding":
        with suppress(LookupError):
            return codecs.lookup(given).name == codecs.lookup(known).name
    return bool(given == known)


def _is_file(source: str) -> bool:
    return source != "spark" and "://" not in source


def _without_password(address: str) -> str:
    """Return an address of a database as a ledger may keep it."""
    parts = urlsplit(address)
    user, at, place = parts.netloc.rpartition("@")
    query = [
        pair for pair in parse_qsl(parts.query, keep_blank_values=True) if "pass" not in pair[0]
    ]
    netloc = user.partition(":")[0] + at + place
    return parts._replace(netloc=netloc, query=urlencode(query)).geturl()
