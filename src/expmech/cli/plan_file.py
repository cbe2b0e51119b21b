"""`expmech release --plan`: many releases, charged together or not at all, that can be continued.

A file of releases is read into the commands that the command line has.
Page: docs/guides/plan_file.md.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import typer
from rich.table import Column, Table
from typer.models import OptionInfo

from expmech.certificates.card import usual_name
from expmech.certificates.plan import Plan, show_number, show_seconds
from expmech.cli.columns import join
from expmech.cli.common import new_file
from expmech.cli.console import MISTAKE, complaints, output
from expmech.cli.endings import Ending, ending, warn_of
from expmech.cli.options import options_of
from expmech.cli.records import record_json, show
from expmech.cli.release import RECORDS, Record, ReleaseCommand, deliver, read_command, unshown
from expmech.cli.searches import LimitedCommand
from expmech.cli.settings import open_table
from expmech.cli.statistics import STATISTICS
from expmech.core.errors import ExpmechError, ParameterError, did_you_mean
from expmech.core.markup import visible
from expmech.core.strict_json import read_json
from expmech.ledger import Amount, Charge, Ledger, LedgerError
from expmech.ledger.amounts import show_amount
from expmech.ledger.entries import price
from expmech.tables.release import LEAST_ROWS, PreparedRelease
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import text_ending

_TOP = ("source", "ledger", "output", "defaults", "release")
_WHOLE_RUN = ("ledger", "output", "redeem", "json", "verbose")
_LISTS = (
    "candidates",
    "categories",
    "edges",
    "groups",
)  # what is said of one column is a list already
_OPTIONS = {name: options_of(RECORDS, each.of_table) for name, each in STATISTICS.items()}


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """The releases of a file.

    ``digest`` names the run: what the file asks for, wherever it stands and is written to.
    """

    ledger: Path
    output: Path | None
    commands: tuple[ReleaseCommand, ...]
    digest: str


def read_plan(path: Path) -> PlanFile:
    """Read a file of releases; an option has the name and the meaning of the command line's."""
    content = _read(path)
    folder = path.parent
    top = {name: value for name, value in content.items() if name not in _TOP}
    ledger, written = folder / content["ledger"], content.get("output")
    common = _named(top, f"{path}") | _named(content.get("defaults", {}), f"[defaults] of {path}")
    known = {name for statistic in _OPTIONS for name in options_by_name(statistic)}
    for name in common:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ParameterError(f"`{name}` of {path} is no option of any release.{hint}")
    base: dict[str, Any] = {"ledger": ledger}
    if "source" in content:
        base["source"] = _near(content["source"], folder)
    commands = [
        _command(entry, common, base, folder, f"[[release]] {number} of {path}")
        for number, entry in enumerate(content["release"], start=1)
    ]
    kept = {name: value for name, value in content.items() if name != "output"}
    text = json.dumps(kept, sort_keys=True, default=str)
    return PlanFile(
        ledger=ledger,
        output=None if written is None else folder / written,
        commands=tuple(commands),
        digest=hashlib.sha256(text.encode()).hexdigest()[:16],
    )


def _read(path: Path) -> dict[str, Any]:
    """Return the content of the file; raise unless its parts are of the right kind."""
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ParameterError(f"`--plan` must be a file; got {path} ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"`--plan` must be a TOML file; {path} is not: {error}.") from None
    except RecursionError:
        raise ParameterError(
            f"`--plan` must be a TOML file; {path} is nested too deeply."
        ) from None
    releases = content.get("release")
    if (
        not isinstance(releases, list)
        or not releases
        or not all(isinstance(entry, dict) for entry in releases)
    ):
        raise ParameterError(f"{path} must hold at least one [[release]].")
    if not isinstance(content.get("ledger"), str) or not content["ledger"]:
        raise ParameterError(f"{path} must say `ledger = ...` at the top, as text.")
    for name in ("source", "output"):
        if not isinstance(content.get(name, "text"), str) or content.get(name) == "":
            raise ParameterError(f"`{name}` of {path} must be the name of a file, as text.")
    if not isinstance(content.get("defaults", {}), dict):
        raise ParameterError(f"`defaults` of {path} must be a table, [defaults].")
    return content


def _named(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return values by the names of options; raise for options of the whole run."""
    named: dict[str, Any] = {}
    for key, value in entry.items():
        name = key.replace("_", "-")
        if name in _WHOLE_RUN:
            raise ParameterError(f"`{key}` belongs to the whole run, not to {where}.")
        if name in named:
            raise ParameterError(f"`{key}` of {where} must be given once, with _ or with -.")
        named[name] = value
    return named


def options_by_name(statistic: str) -> dict[str, inspect.Parameter]:
    """Return the options of a statistic by their names, without those of the whole run."""
    named = {}
    for parameter in _OPTIONS[statistic].parameters:
        info = get_args(parameter.annotation)[1]
        if isinstance(info, OptionInfo):
            # of an annotation the first flag stands where a default would
            flag = str(info.default).partition("/")[0]
            named[flag.removeprefix("--")] = parameter
    return {name: option for name, option in named.items() if name not in _WHOLE_RUN}


def _near(source: str, folder: Path) -> str:
    """Return a source whose path is read from the folder of the plan."""
    is_file = source != "spark" and "://" not in source
    return str(folder / source) if is_file else source


def _is_file(table: str) -> bool:
    """Return whether a second table is a file; of a server it is the name of a table."""
    return bool(text_ending(table)) or table.lower().endswith(".parquet")


def _command(
    entry: Mapping[str, Any],
    common: Mapping[str, Any],
    base: Mapping[str, Any],
    folder: Path,
    where: str,
) -> ReleaseCommand:
    """Return the command of one entry; ``base`` are the options of the whole run.

    ``folder`` is where the plan stands: files of lists are read from there.
    """
    name = entry.get("statistic")
    if not isinstance(name, str) or name not in _OPTIONS:
        listed, hint = ", ".join(_OPTIONS), did_you_mean(str(name), _OPTIONS)
        raise ParameterError(f"`statistic` of {where} must be one of {listed}; got {name!r}.{hint}")
    own = _named({key: value for key, value in entry.items() if key != "statistic"}, where)
    known = options_by_name(name)
    for key in own:
        if key not in known:
            hint = did_you_mean(key, known)
            raise ParameterError(f"`{key}` of {where} is no option of {name}.{hint}")
    values = {key: value for key, value in common.items() if key in known} | own
    options = _OPTIONS[name]
    given = {option.name: option.default for option in options.parameters} | dict(base)
    for key, value in values.items():
        typed = _typed(known[key], key, value, where)
        if key == "lookup" or (key == "unit-from" and _is_file(typed)):
            typed = _near(typed, folder)
        elif key in (*_LISTS, "classes"):
            several = isinstance(typed, list)
            texts = [
                f"@{folder / text[1:]}" if text.startswith("@") else text
                for text in (typed if several else [typed])
            ]
            typed = texts if several else texts[0]
        given[known[key].name] = typed
    for key, option in known.items():
        if given[option.name] is inspect.Parameter.empty:
            raise ParameterError(f"{where}: `{key}` must be given.")
    try:
        return read_command(STATISTICS[name], **options.gather(given))
    except LedgerError as error:
        raise LedgerError(f"{where}: {error}") from None
    except ExpmechError as error:
        raise ParameterError(f"{where}: {error}") from None


def _typed(option: inspect.Parameter, name: str, value: Any, where: str) -> Any:
    """Return a value of the file as the command line reads it: lists as repeats, or by commas."""
    kind: Any = get_args(option.annotation)[0]
    if NoneType in get_args(kind):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    if (kind is bool) != isinstance(value, bool):
        rule = "true or false" if kind is bool else "a value, not true or false"
        raise ParameterError(f"`{name}` of {where} must be {rule}; got {value!r}.")
    if kind is bool:
        return value
    if get_origin(kind) is list:
        several = isinstance(value, list) and all(isinstance(part, (list, str)) for part in value)
        if several and name in _LISTS:
            several = all(isinstance(part, list) for part in value)
        return [_text(part, name, where) for part in (value if several else [value])]
    text = _text(value, name, where)
    try:
        return kind(text)
    except ValueError:
        rule = "a whole number" if kind is int else "a number"
        raise ParameterError(f"`{name}` of {where} must be {rule}; got {value!r}.") from None


def _text(value: Any, name: str, where: str) -> str:
    """Return a value as text, a list by commas; raise where it would be read as another list."""
    if isinstance(value, (bool, dict)):
        raise ParameterError(f"`{name}` of {where} must hold text or numbers; got {value!r}.")
    if not isinstance(value, list):
        return str(value)
    texts = [_text(part, name, where) for part in value]
    if any(isinstance(part, list) for part in value):
        return ",".join(texts)
    for text in texts:
        if text != text.strip() or not text:
            raise ParameterError(
                f"`{name}` of {where} must list texts that neither are empty nor begin or end with"
                f" a blank; got {text!r}."
            )
    return join(texts)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one command of a plan charges and releases: places of its releases, which are public.

    A row limit and private bounds come first; what follows stands in for the release for them.
    """

    command: ReleaseCommand
    source: Source
    start: int
    stages: tuple[tuple[PreparedRelease, ...], ...]
    prepared: tuple[PreparedRelease, ...]

    @property
    def whole(self) -> tuple[PreparedRelease, ...]:
        """Return all its releases."""
        return (*chain(*self.stages), *self.prepared)

    @property
    def fixed(self) -> dict[int, PreparedRelease]:
        """Return by their places those that are known before anything is released."""
        first = self.stages[0] if self.stages else self.prepared
        return dict(enumerate(first, start=self.start))


def run_plan(
    path: Path, *, dry_run: bool, again: bool, as_json: bool, rows: int | None = None
) -> None:
    """Check everything public, charge all releases at once, then draw those without a value.

    A release between private bounds is charged when they are known. ``rows`` is a public guess of
    the number of rows, for the errors that a dry run expects.
    """
    plan = read_plan(path)
    with ending() as end, ExitStack() as opened:
        sources = _open(plan, opened)
        parts = _parts(plan, sources)
        whole = [each for part in parts for each in part.whole]
        fixed = {place: each for part in parts for place, each in part.fixed.items()}
        (ledger, *_) = [
            command.ledger(source) for command, source in zip(plan.commands, sources, strict=True)
        ]
        if ledger is None:
            raise LedgerError(f"{path} names no ledger.")
        number, charges = _unfinished_run(ledger, plan, parts, again=again)
        _check_same(fixed, charges)
        pairs = [
            pair for part in parts for pair in zip(part.command.bounded, part.stages, strict=True)
        ]
        for text in dict.fromkeys(each.announcement(stage) for each, stage in pairs):
            complaints.print(text, markup=False)
        if dry_run:
            _forecast(ledger, plan, parts, charges, as_json=as_json, guess=rows)
            return
        with new_file(plan.output) as file:
            if charges:  # of the run that is continued
                end.charged(ledger, lambda: list(charges.values()))
            else:
                ledger.require_all([each.entry() for each in whole])
            run = _Run(ledger=ledger, end=end, name=f"{plan.digest}/{number}", charges=charges)
            run.charge(fixed)
            records = _draw(run, parts, as_json=as_json)
            if file is not None:
                file.write(record_json(records, indent=2, sort_keys=True) + "\n")
        if len(records) < len(whole):
            remedy = (
                "Run the plan again once the cause is mended: nothing is charged a second time."
            )
            values = _values(ledger, run.charges)
            if not any(_waits(part, values) for part in parts):
                remedy = "Without bounds the others never are; --again charges for a new run."
            complaints.print(
                f"error: {len(records)} of {len(whole)} values were released. {remedy}",
                style="red",
                markup=False,
            )
            raise typer.Exit(MISTAKE)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A run of a plan, by its name, and the charges that it has, by their places."""

    ledger: Ledger
    end: Ending
    name: str
    charges: dict[int, Charge]

    def charge(self, prepared: Mapping[int, PreparedRelease]) -> None:
        """Charge at once what is not charged yet."""
        new = {place: each for place, each in prepared.items() if place not in self.charges}
        entries = [each.entry(f"{self.name}:{place}") for place, each in new.items()]
        if entries:
            made = self.end.charged(self.ledger, lambda: self.ledger.charge_all(entries))
            self.charges.update(zip(new, made, strict=True))


def _parts(plan: PlanFile, sources: Sequence[Source]) -> list[Part]:
    """Prepare what is public of every command."""
    parts: list[Part] = []
    start = 0
    for command, source in zip(plan.commands, sources, strict=True):
        part = Part(
            command=command,
            source=source,
            start=start,
            stages=tuple(tuple(each.prepare(source)) for each in command.before),
            prepared=tuple(command.prepare(source)),
        )
        parts.append(part)
        start += len(part.whole)
    return parts


def _open(plan: PlanFile, opened: ExitStack) -> list[Source]:
    """Return the source of each command: queries and bounds on units may differ between them."""
    sources: dict[Any, Source] = {}
    for command in plan.commands:
        key = (command.place, command.adjacency)
        if key not in sources:
            sources[key] = opened.enter_context(closing(open_table(command.place)))
    return [sources[command.place, command.adjacency] for command in plan.commands]


def _unfinished_run(
    ledger: Ledger, plan: PlanFile, parts: Sequence[Part], *, again: bool
) -> tuple[int, dict[int, Charge]]:
    """Return the number of the run, and its charges if it is one that has values to come.

    Where the latest run is complete, running the plan anew must be asked for: it costs again.
    """
    runs = _runs(ledger, plan)
    if not runs:
        return 1, {}
    number = max(runs)
    latest = runs[number]
    values = _values(ledger, latest)
    if again and not any(_waits(part, values) for part in parts):
        return number + 1, {}
    if len(values) < sum(len(part.whole) for part in parts):
        return number, latest
    numbers = [charge.number for charge in latest.values()]
    raise LedgerError(
        f"All values of this plan were released already, by charges {min(numbers)} to"
        f" {max(numbers)}: `expmech budget recover {ledger.path}` shows them. --again"
        " charges for new ones. Nothing was charged."
    )


def _values(ledger: Ledger, charges: Mapping[int, Charge]) -> dict[int, str]:
    """Return the records that the outbox has, by their places."""
    shown = ledger.outbox()
    return {
        place: shown[charge.number] for place, charge in charges.items() if charge.number in shown
    }


def _waits(part: Part, values: Mapping[int, str]) -> bool:
    """Return whether a value of a command is to come: none is where its bounds were not found."""
    if all(place in values for place in range(part.start, part.start + len(part.whole))):
        return False
    command, place = part.command, part.start
    for stage in part.stages:
        places = range(place, place + len(stage))
        if not all(each in values for each in places):
            return True
        found = [read_json(values[each], name="A value")["value"] for each in places]
        try:
            command = command.bounded[0].after(found, None)
        except ExpmechError:
            return False
        place += len(stage)
    return True


def _runs(ledger: Ledger, plan: PlanFile) -> dict[int, dict[int, Charge]]:
    """Return the charges of every run of this plan, by the number of the run and their places."""
    runs: dict[int, dict[int, Charge]] = {}
    for charge in ledger.history():
        digest, _, where = charge.run.partition("/")
        if where and digest == plan.digest:
            number, _, place = where.partition(":")
            runs.setdefault(int(number), {})[int(place)] = charge
    return runs


def _check_same(prepared: Mapping[int, PreparedRelease], charges: Mapping[int, Charge]) -> None:
    """Raise unless every charge, if there are any, was made for the release at its place.

    The number of rows is in certificates where it is public: a table that changed since is noticed.
    """
    for place, each in prepared.items() if charges else ():
        entry, charge = each.entry(), charges.get(place)
        asked = (entry.statement, entry.certificate, entry.groups)
        if charge is None or asked != (charge.statement, charge.certificate, charge.groups):
            raise LedgerError(
                "The plan was charged for, and what it asks for has changed since: the table has"
                " another number of rows, or the program is another version. Nothing was drawn."
            )


def _draw(run: _Run, parts: Sequence[Part], *, as_json: bool) -> list[Record]:
    """Show what is in the outbox; draw, keep and then show what is not."""
    records: list[Record] = []
    for part in parts:
        command, prepared = part.command, part.fixed
        records += (drawn := _draw_each(run, command, prepared, as_json=as_json))
        while command.bounded and len(drawn) == len(prepared):  # else it was said already
            try:
                command = command.bounded[0].after([record["value"] for record in drawn], None)
                stage = (*command.before, command)[0].prepare(part.source)
                prepared = dict(enumerate(stage, start=max(prepared) + 1))
                charged = prepared.keys() & run.charges.keys()
                _check_same({place: prepared[place] for place in charged}, run.charges)
                run.charge(prepared)
            except ExpmechError as error:  # the others are not held up by it
                complaints.print(f"error: {error}", style="red", markup=False)
                break
            records += (drawn := _draw_each(run, command, prepared, as_json=as_json))
    if as_json:
        try:
            output.print_json(record_json(records))
        except OSError as error:
            raise unshown(records, run.ledger.path, error) from None
    return records


def _draw_each(
    run: _Run, command: ReleaseCommand, prepared: Mapping[int, PreparedRelease], *, as_json: bool
) -> list[Record]:
    """Return the records of releases that were charged, each shown when it is there."""
    shown, records = run.ledger.outbox(), []
    for place, each in prepared.items():
        charge = run.charges[place]
        try:
            if charge.number in shown:
                record = read_json(shown[charge.number], name=f"The value of {charge.number}")
            else:
                warn_of(each.request, [each.certificate])
                record = deliver(run.ledger, charge, each)
        except ExpmechError as error:  # the others are not held up by it
            text = f"error: {each.statement}, charge {charge.number}: {error}"
            complaints.print(text, style="red", markup=False)
            continue
        records.append(record)
        if not as_json and command.interval is None:
            _show(run, record, first=len(records) == 1)
    if not as_json and command.interval is not None:
        for place, record in enumerate(command.cards(records, [*prepared.values()])):
            _show(run, record, first=place == 0)
    return records


def _show(run: _Run, record: Record, *, first: bool) -> None:
    try:
        if not first:
            output.print()
        show(record)
    except OSError as error:
        raise unshown([record], run.ledger.path, error) from None


def _forecast(
    ledger: Ledger,
    plan: PlanFile,
    parts: Sequence[Part],
    charges: Mapping[int, Charge],
    *,
    as_json: bool,
    guess: int | None,
) -> None:
    """Print what each release costs and takes; raise where the budget does not suffice."""
    prepared = [each for part in parts for each in part.whole]
    if not charges:
        ledger.require_all([each.entry() for each in prepared])
    costs = _costs(ledger, prepared) if not charges else [Fraction(0)] * len(prepared)
    seconds = [len(each.parts) * each.public.seconds for each in prepared]
    between = [_found_first(part, k) for part in parts for k in range(len(part.whole))]
    rows = []
    for each, cost, time, later in zip(prepared, costs, seconds, between, strict=True):
        epsilon = show_amount(each.request.epsilon)
        plan_of = _plan(each, guess)
        error = plan_of.expected_error or _unknown_error(each, guess)
        if later:
            error = (
                f"known when the {later} are" if later == "bounds" else f"known after the {later}"
            )
        evaluations = _evaluations(plan_of)
        statement, units = each.statement, each.request.units
        if units is not None and LimitedCommand.found in later:  # which stands in
            statement = f"{statement.removesuffix(units.statement)}, within the row limit"
        rows.append((statement, epsilon, show_amount(cost), error, evaluations, time))
    if as_json:
        names = ("statement", "epsilon", "cost", "error", "evaluations", "seconds")
        output.print_json(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
        return
    heads = ("release", "epsilon", "cost here", "error in 95% of releases", "time to draw")
    table = Table(*(Column(head, overflow="fold") for head in heads))
    for statement, epsilon, cost_text, error, _, time in rows:
        table.add_row(visible(usual_name(statement)), epsilon, cost_text, error, show_seconds(time))
    output.print(table)
    output.print(
        f"The draws take about {show_seconds(sum(seconds))}, by a public forecast; reading the"
        " table is not in it.",
        markup=False,
    )
    total = show_amount(sum(costs, Fraction(0)))
    state = "It was charged already and can be continued." if charges else "Nothing was charged."
    output.print(f"Together epsilon = {total}. {state}", markup=False)


def _found_first(part: Part, place: int) -> str:
    """Return what must be found before the error of a release is known; nothing, of the first."""
    if not part.stages or place < len(part.stages[0]):
        return ""
    stages = zip(part.command.bounded, part.stages, strict=True)
    found = [each.found for each, stage in stages for _ in stage]
    return " and ".join(dict.fromkeys(found[:place]))


def _costs(ledger: Ledger, prepared: Sequence[PreparedRelease]) -> list[Fraction]:
    """Return what each release would add to the epsilon spent, by the composition in force."""
    spent = sum((charge.amount for charge in ledger.history()), Amount())
    amounts = [price(each.entry(), owner="release").amount for each in prepared]
    return ledger.limits.costs(amounts, spent)


def _plan(prepared: PreparedRelease, guess: int | None) -> Plan:
    """Return the plan of a release, with its expected error, from public quantities."""
    request, count = prepared.request, prepared.certificate.domain.get("count")
    made = prepared.mechanism.plan(request.row_epsilon, timing=request.timing)
    ranks = prepared.statistic.rank_error(request.row_epsilon, count)
    error = made.error
    if error is None and guess is not None and not request.by:
        error = prepared.statistic.error_at(request.row_epsilon, guess)
    return replace(made, ranks=ranks, error=error, shortfall=prepared.statistic.shortfall)


def _unknown_error(prepared: PreparedRelease, guess: int | None) -> str:
    """Say what the error of a release depends on."""
    if prepared.request.by or prepared.statistic.error_at(Fraction(1), LEAST_ROWS) is None:
        return "not known beforehand"
    return "depends on the number of rows: give --rows" if guess is None else "not known beforehand"


def _evaluations(plan: Plan) -> str:
    """Return the forecast of the loss evaluations of a draw."""
    option = plan.recommended
    if option is None or option.forecast is None:
        return "unknown"
    return show_number(option.forecast.typical)
