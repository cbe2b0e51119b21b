"""A file of releases: read, and turned into requests by the options of the command line."""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from expmech.cli.asked import Divided, Request
from expmech.cli.options import Budgeted, ReleaseOptions, TableOptions, command
from expmech.cli.shared import Registered
from expmech.cli.statistics import STATISTICS
from expmech.errors import ParameterError
from expmech.statistics import Statistic

_TOP = ("source", "ledger", "output", "defaults", "release")
_NOT_HERE = ("ledger", "output", "redeem", "json", "verbose")  # they belong to the whole run

_LISTS = ("candidates", "categories", "edges")  # what is said of one column is a list already

_app = typer.Typer(help="One release of a plan.")


def _work(registered: Registered) -> Any:
    def work(
        place: TableOptions, budgeted: Budgeted, asked: ReleaseOptions, own: dict[str, Any]
    ) -> Divided:
        request = Request(budgeted, place, asked)
        return request.divided(registered.of_table(request.shared, **own))

    return work


for _one in STATISTICS:
    _records = {"place": TableOptions, "budgeted": Budgeted, "asked": ReleaseOptions}
    command(_app, _one.name, _records, _one.of_table, _work(_one))


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a file of releases asks for.

    ``digest`` names the run: the same file, the same run.
    """

    ledger: Path
    output: Path | None
    asked: tuple[tuple[Request, Statistic], ...]
    digest: str


def read_plan(path: Path) -> Planned:
    """Read a file of releases; an option has the name and the meaning of the command line's."""
    try:
        told = tomllib.loads(path.read_text())
    except OSError as error:
        raise ParameterError(f"`--plan` must be a file; got {path} ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"`--plan` must be a TOML file; {path} is not: {error}.") from None
    releases = told.get("release")
    if not isinstance(releases, list) or not releases:
        raise ParameterError(f"{path} must hold at least one [[release]].")
    for name in ("source", "ledger"):
        if not isinstance(told.get(name), str):
            raise ParameterError(f"{path} must say `{name} = ...` at the top.")
    folder = path.parent
    place = {name: value for name, value in told.items() if name not in _TOP}
    common = place | told.get("defaults", {})
    _refuse_unknown(path, common)
    ledger, output = folder / told["ledger"], told.get("output")
    source = _near(told["source"], folder)
    asked = [
        _release(path, number, source, ledger, common, entry)
        for number, entry in enumerate(releases, start=1)
    ]
    text = json.dumps(told, sort_keys=True, default=str)
    return Planned(
        ledger=ledger,
        output=None if output is None else folder / output,
        asked=tuple(itertools.chain.from_iterable(asked)),
        digest=hashlib.sha256(text.encode()).hexdigest()[:16],
    )


def _refuse_unknown(path: Path, common: Mapping[str, Any]) -> None:
    """Raise for an option of all releases that none can take: a slip would go unnoticed."""
    takes = {flag for one in _commands().values() for part in one.params for flag in part.opts}
    for key in common:
        if key in _NOT_HERE:
            raise ParameterError(f"`{key}` of {path} does not belong to [defaults].")
        if f"--{key.replace('_', '-')}" not in takes:
            raise ParameterError(f"`{key}` of {path} is no option of any release.")


def _near(source: str, folder: Path) -> str:
    """Return a source whose path is read from the folder of the plan."""
    is_file = source != "spark" and "://" not in source
    return str(folder / source) if is_file else source


def _release(
    path: Path,
    number: int,
    source: str,
    ledger: Path,
    common: Mapping[str, Any],
    entry: Mapping[str, Any],
) -> Divided:
    where = f"[[release]] {number} of {path}"
    known = _commands()
    name = entry.get("statistic")
    if name not in known:
        listed = ", ".join(known)
        raise ParameterError(f"`statistic` of {where} must be one of {listed}; got {name!r}.")
    options = {key: value for key, value in entry.items() if key != "statistic"}
    for key in options:
        if key in _NOT_HERE:
            raise ParameterError(f"`{key}` belongs to the whole run, not to {where}.")
    takes = {flag.lstrip("-"): one for one in known[name].params for flag in one.opts}
    shared = {key: value for key, value in common.items() if key.replace("_", "-") in takes}
    arguments = [source, "--ledger", str(ledger)]
    for key, value in (shared | options).items():
        flag = key.replace("_", "-")
        several = flag in takes and bool(getattr(takes[flag], "multiple", False))
        several = several and (flag not in _LISTS or _holds_lists(value))
        arguments += _arguments(flag, value, several=several)
    try:
        made: list[tuple[Request, Statistic]] = known[name].main(
            args=arguments, standalone_mode=False
        )
    except Exception as error:
        text = str(getattr(error, "message", error))
        raise ParameterError(f"{where}: {text}") from None
    return made


def _arguments(flag: str, value: Any, *, several: bool) -> list[str]:
    """Return an option as the command line would have it; lists as repeats, or by commas."""
    if isinstance(value, bool):
        return [f"--{flag}"] if value else []
    if not isinstance(value, list):
        return [f"--{flag}", _text(value)]
    pairs = all(isinstance(one, (list, str)) for one in value)
    if several and pairs:
        return [part for one in value for part in (f"--{flag}", _text(one))]
    return [f"--{flag}", ",".join(map(_text, value))]


def _holds_lists(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) for one in value)


def _text(value: Any) -> str:
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)


def _commands() -> dict[str, TyperCommand]:
    group = typer.main.get_command(_app)
    if not isinstance(group, TyperGroup):  # a single command would not be a group
        raise ParameterError("There are no statistics to plan.")
    return {name: one for name, one in group.commands.items() if isinstance(one, TyperCommand)}
