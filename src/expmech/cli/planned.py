"""A file of releases: read, and turned into requests by the options of the command line."""

from __future__ import annotations

import hashlib
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
_WHOLE_RUN = ("ledger", "output", "redeem", "json", "verbose")

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

    ``digest`` names the run: what the file asks for, wherever it stands and is written to.
    """

    ledger: Path
    output: Path | None
    asked: tuple[tuple[Request, Statistic], ...]
    digest: str


def read_plan(path: Path) -> Planned:
    """Read a file of releases; an option has the name and the meaning of the command line's."""
    told = _read(path)
    folder = path.parent
    top = {name: value for name, value in told.items() if name not in _TOP}
    ledger, output = folder / told["ledger"], told.get("output")
    common = _options(top, f"{path}") | _options(told.get("defaults", {}), f"[defaults] of {path}")
    taken = {name for command in _commands().values() for name in _taken(command)}
    for name in common:
        if name not in taken:
            raise ParameterError(f"`{name}` of {path} is no option of any release.")
    base = [f"--ledger={ledger}"], ["--", _near(told["source"], folder)]
    asked = [
        one
        for number, entry in enumerate(told["release"], start=1)
        for one in _release(entry, common, base, f"[[release]] {number} of {path}")
    ]
    kept = {name: value for name, value in told.items() if name != "output"}
    text = json.dumps(kept, sort_keys=True, default=str)
    return Planned(
        ledger=ledger,
        output=None if output is None else folder / output,
        asked=tuple(asked),
        digest=hashlib.sha256(text.encode()).hexdigest()[:16],
    )


def _read(path: Path) -> dict[str, Any]:
    """Return what the file holds; raise unless its parts are of the right kind."""
    try:
        told = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ParameterError(f"`--plan` must be a file; got {path} ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"`--plan` must be a TOML file; {path} is not: {error}.") from None
    except RecursionError:
        raise ParameterError(
            f"`--plan` must be a TOML file; {path} is nested too deeply."
        ) from None
    releases = told.get("release")
    if (
        not isinstance(releases, list)
        or not releases
        or not all(isinstance(entry, dict) for entry in releases)
    ):
        raise ParameterError(f"{path} must hold at least one [[release]].")
    for name in ("source", "ledger"):
        if not isinstance(told.get(name), str) or not told[name]:
            raise ParameterError(f"{path} must say `{name} = ...` at the top, as text.")
    if not isinstance(told.get("output", "text"), str) or told.get("output") == "":
        raise ParameterError(f"`output` of {path} must be the name of a file, as text.")
    if not isinstance(told.get("defaults", {}), dict):
        raise ParameterError(f"`defaults` of {path} must be a table, [defaults].")
    return told


def _options(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return options by the names of the command line; raise for those of the whole run."""
    found: dict[str, Any] = {}
    for key, value in entry.items():
        name = key.replace("_", "-")
        if name in _WHOLE_RUN:
            raise ParameterError(f"`{key}` belongs to the whole run, not to {where}.")
        if name in found:
            raise ParameterError(f"`{key}` of {where} must be given once, with _ or with -.")
        found[name] = value
    return found


def _taken(command: TyperCommand) -> dict[str, Any]:
    """Return the options of a statistic by their names, without those of the whole run."""
    named = {flag.lstrip("-"): one for one in command.params for flag in one.opts}
    return {
        name: one
        for name, one in named.items()
        if name not in _WHOLE_RUN and one.param_type_name == "option"
    }


def _near(source: str, folder: Path) -> str:
    """Return a source whose path is read from the folder of the plan."""
    is_file = source != "spark" and "://" not in source
    return str(folder / source) if is_file else source


def _release(
    entry: Mapping[str, Any],
    common: Mapping[str, Any],
    base: tuple[list[str], list[str]],
    where: str,
) -> Divided:
    """Return the requests of one entry; ``base`` is what comes before and after its options."""
    known = _commands()
    name = entry.get("statistic")
    if not isinstance(name, str) or name not in known:
        listed = ", ".join(known)
        raise ParameterError(f"`statistic` of {where} must be one of {listed}; got {name!r}.")
    own = {key: value for key, value in entry.items() if key != "statistic"}
    options, takes = _options(own, where), _taken(known[name])
    for key in options:
        if key not in takes:
            raise ParameterError(f"`{key}` of {where} is no option of {name}.")
    shared = {key: value for key, value in common.items() if key in takes}
    arguments = []
    for key, value in (shared | options).items():
        arguments += _arguments(takes[key], key, value, where)
    before, after = base
    try:
        made: Divided = known[name].main(args=[*before, *arguments, *after], standalone_mode=False)
    except Exception as error:
        text = str(getattr(error, "message", error))
        raise ParameterError(f"{where}: {text}") from None
    return made


def _arguments(option: Any, name: str, value: Any, where: str) -> list[str]:
    """Return an option as the command line would have it; lists as repeats, or by commas."""
    if option.is_flag != isinstance(value, bool):
        kind = "true or false" if option.is_flag else "a value, not true or false"
        raise ParameterError(f"`{name}` of {where} must be {kind}; got {value!r}.")
    if option.is_flag:
        flags = [f"--{name}"] if value else option.secondary_opts[:1]
        return list(flags)
    if not isinstance(value, list):
        return [f"--{name}={_text(value, name, where)}"]
    several = option.multiple and (name not in _LISTS or _holds_lists(value))
    if several and all(isinstance(one, (list, str)) for one in value):
        return [f"--{name}={_text(one, name, where)}" for one in value]
    return [f"--{name}={_joined(value, name, where)}"]


def _holds_lists(value: list[Any]) -> bool:
    return all(isinstance(one, list) for one in value)


def _text(value: Any, name: str, where: str) -> str:
    if isinstance(value, list):
        return _joined(value, name, where)
    if isinstance(value, (bool, dict)):
        raise ParameterError(f"`{name}` of {where} must hold text or numbers; got {value!r}.")
    return str(value)


def _joined(values: list[Any], name: str, where: str) -> str:
    """Return a list by commas; raise where it would be read as another list."""
    texts = [_text(one, name, where) for one in values]
    for one, text in zip(values, texts, strict=True):
        if not isinstance(one, list) and ("," in text or text != text.strip() or not text):
            raise ParameterError(
                f"`{name}` of {where} must list texts without commas, that neither are empty nor"
                f" begin or end with a blank; got {text!r}."
            )
    return ",".join(texts)


def _commands() -> dict[str, TyperCommand]:
    group = typer.main.get_command(_app)
    if not isinstance(group, TyperGroup):  # a single command would not be a group
        raise ParameterError("There are no statistics to plan.")
    return {name: one for name, one in group.commands.items() if isinstance(one, TyperCommand)}
