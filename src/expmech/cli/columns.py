"""How the command line names a statistic: columns, bounds, lists, and what is common to all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from expmech.core.adjacency import Adjacency, adjacency_of_units
from expmech.core.errors import ParameterError, validate_integer
from expmech.core.strict_json import read_json
from expmech.tables.aggregates import validate_different
from expmech.tables.dates import public_days
from expmech.tables.scaling import Bounds, validate_bounds
from expmech.tables.sources.text_files import split_line
from expmech.tables.statistics import Statistic

_NOT_BOUNDS = (
    "`{}` must be two numbers LOWER,UPPER; got {!r}. A mean and quantiles take dates too, such as"
    " 2020-01-01,2024-12-31. Where nobody knows them, --bounds private finds them."
)
_NO_PAIR = "`{}` must be two numbers LOWER,UPPER; got {!r}."


def parse_bounds(text: str, *, name: str = "--bounds") -> tuple[float, float]:
    """Read ``LOWER,UPPER``."""
    wrong = ParameterError((_NOT_BOUNDS if name == "--bounds" else _NO_PAIR).format(name, text))
    parts = text.split(",")
    if len(parts) != 2:
        raise wrong
    try:
        return float(parts[0]), float(parts[1])
    except ValueError:
        raise wrong from None


def split(text: str, option: str) -> list[str]:
    """Read a public list separated by commas; quotes enclose a value that holds one, as in CSV."""
    parts = split_line(text, delimiter=",", quote='"')
    if parts is None:
        raise ParameterError(
            f"`{option}` must be values separated by commas, where quotes enclose a whole value and"
            f" are doubled inside one; got {text}."
        )
    return [part for part in parts if part]


def join(values: Sequence[str], separator: str = ",") -> str:
    """Return values as one text that :func:`split` takes apart again."""
    quoted = (
        '"' + value.replace('"', '""') + '"'
        if "," in value or '"' in value or value.startswith("@")
        else value
        for value in values
    )
    return separator.join(quoted)


def read_list(text: str, option: str) -> tuple[str, ...]:
    """Read a public list: by commas, or from a file ``@FILE``.

    The file has one value per line, which quotes may enclose as in CSV; one that ends in .json was
    written by `--output` and gives the values that an earlier release showed.
    """
    if not text.startswith("@"):
        return tuple(split(text, option))
    path = Path(text[1:])
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ParameterError(
            f"`{option} {text}` must name a file with one value per line; it cannot be read"
            f" ({reason}). A value that begins with @ is put in quotes."
        ) from None
    if path.suffix == ".json":
        return _released_names(content, f"`{option} {text}`")
    return tuple(filter(None, map(_unquoted, content.splitlines())))


def _unquoted(line: str) -> str:
    """Return the value of a line, without blanks and without quotes around the whole of it."""
    line = line.strip()
    parts = split_line(line, delimiter=",", quote='"') if line.startswith('"') else None
    return parts[0] if parts is not None and len(parts) == 1 else line


def _released_names(content: str, where: str) -> tuple[str, ...]:
    """Return the names that an earlier release gave values to."""
    try:
        record = read_json(content, name=where)
    except ParameterError:
        record = None
    value = record.get("value") if isinstance(record, dict) else None
    if not isinstance(value, dict):
        raise ParameterError(
            f"{where} must be a file that a release of groups wrote with --output."
        )
    if not value:
        raise ParameterError(f"{where} shows no group, so there is nothing to release.")
    return tuple(value)


def parse_numbers(text: str, name: str) -> tuple[float, ...]:
    """Read public numbers separated by commas."""
    try:
        return tuple(map(float, split(text, name)))
    except ValueError:
        raise ParameterError(f"`{name}` must hold numbers; got {text!r}.") from None


def parse_edges(text: str) -> dict[str, Any]:
    """Read public edges separated by commas: numbers, or dates."""
    days = public_days(split(text, "--edges"), name="--edges", owner="a histogram")
    if days is not None:
        return {"edges": days, "dates": True}
    return {"edges": parse_numbers(text, "--edges")}


Value = TypeVar("Value")


@dataclass(frozen=True)
class CommonSettings:
    """What is common to all statistics: neighbours, the rule for missing values, a named sampler.

    ``bounded_range`` says that the ledger charges less for laws of bounded range; ``by`` is the
    column of groups that nobody listed, and ``delta`` may be theirs.
    """

    adjacency: Adjacency
    missing: str = "auto"
    sampler_named: bool = False
    bounded_range: bool = False
    by: str | None = None
    delta: Fraction = Fraction(0)

    @property
    def reading(self) -> dict[str, Any]:
        """Return the arguments that every statistic of a table takes."""
        return {"adjacency": self.adjacency, "missing": self.missing}


Statistics = Statistic | tuple[Statistic, ...]
"""One statistic of all columns, or one for each of them: these share epsilon equally."""


@dataclass(frozen=True, kw_only=True)
class StatisticCommand:
    """A statistic of the command line: how `release` and how `plan` make it."""

    name: str
    of_table: Callable[..., Statistics]
    of_numbers: Callable[..., Statistics]


def of_units(column: str, adjacency: str) -> str:
    """Return the adjacency of units; raise unless it is add-remove."""
    if adjacency != Adjacency.ADD_REMOVE:
        raise ParameterError(
            "`--unit` needs --adjacency add-remove: neighbours differ by one unit more or less."
        )
    return adjacency_of_units(column)


def limits(columns: list[str], bounds: list[str]) -> tuple[Bounds, ...]:
    """Return the bounds of each column."""
    pairs = zip(columns, for_each(columns, bounds, "--bounds"), strict=True)
    return tuple(validate_bounds(parse_bounds(text), name=name) for name, text in pairs)


def limits_or_dates(columns: list[str], bounds: list[str]) -> tuple[tuple[Bounds, ...], bool]:
    """Return the bounds of each column, and whether they are the days of dates."""
    texts = for_each(columns, bounds, "--bounds")
    days: tuple[float, ...] = ()
    try:
        pairs = list(map(parse_bounds, texts))
    except ParameterError:
        parts = [part for text in texts for part in text.split(",")]
        days = public_days(parts, name="--bounds", owner=", ".join(columns)) or ()
        if len(days) != 2 * len(columns):
            raise
        pairs = list(zip(days[::2], days[1::2], strict=True))
    named = zip(columns, pairs, strict=True)
    return tuple(validate_bounds(pair, name=name) for name, pair in named), bool(days)


def for_each(columns: Sequence[str], given: Sequence[Value], option: str) -> list[Value]:
    """Return the value of an option for each column: given once for all, or once for each."""
    validate_different(columns)
    if len(given) not in (1, len(columns)):
        raise ParameterError(
            f"`{option}` must be given once for all columns or once for every column, in the same"
            f" order; got {len(given)} for {len(columns)}."
        )
    return list(given) * len(columns) if len(given) == 1 else list(given)


def over_columns(common: CommonSettings, columns: list[str], bounds: list[str]) -> dict[str, Any]:
    """Return the arguments of a statistic of one number per column."""
    return {
        "columns": tuple(columns),
        "bounds": limits(columns, bounds),
        "adjacency": common.adjacency,
        "missing": common.missing,
        "named": True,
    }


def numbered(columns: int) -> list[str]:
    """Return names for the columns of a plan, which has none."""
    most = validate_integer(columns, name="--features", owner="plan", low=1, high=1000)
    return [f"column {j + 1}" for j in range(most)]


def unnamed(given: Sequence[object]) -> list[str]:
    """Return names for the columns of a plan, as many as options were given."""
    return ["the column"] if len(given) == 1 else numbered(len(given))
