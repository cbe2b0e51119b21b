"""Write docs/command_line.md from the help of the commands and the examples below.

Run: python docs/hooks/command_line.py. A test holds the page equal to what this makes, and runs
the examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from expmech.cli.groups import LoadingGroup
from expmech.cli.main import COMMANDS, app, load

PAGE = Path(__file__).parents[1] / "command_line.md"
OPENING = """\
# The command line

Every command with its options, as `--help` shows them, and examples to copy. This page is made by `docs/hooks/command_line.py`. The [guides](guides/first_release.md) explain the tasks, and [errors](guides/errors.md) lists the exit codes.

```sh
pip install 'expmech[cli,data]'
```
"""
SURVEY = "survey.csv"
EXAMPLES = {
    "": ["expmech --version"],
    "release": ["expmech release --help"],
    "release mean": [
        f"expmech release mean {SURVEY} --column age --bounds 18,100 --epsilon 0.5",
        f"expmech release mean {SURVEY} --column age --bounds 18,100 --epsilon 0.5 --output mean.json",
        f"expmech release mean {SURVEY} --column age --bounds 18,100 --column commute_minutes --bounds 0,150 --epsilon 0.5",
    ],
    "release count": [
        f"expmech release count {SURVEY} --where \"age >= 65 and answer = 'yes'\" --epsilon 0.1",
        f"expmech release count {SURVEY} --by answer --groups yes,no --epsilon 0.1",
        f"expmech release count {SURVEY} --by town --universe text:8 --epsilon 1",
    ],
    "release missing": [f"expmech release missing {SURVEY} --column income --epsilon 0.1"],
    "release sum": [
        f"expmech release sum {SURVEY} --column commute_minutes --bounds 0,150 --epsilon 0.5"
    ],
    "release histogram": [
        f"expmech release histogram {SURVEY} --column age --edges 18,30,65,inf --epsilon 0.5",
        f"expmech release histogram {SURVEY} --column town --categories Bern,Biel --epsilon 0.5",
    ],
    "release variance": [
        f"expmech release variance {SURVEY} --column age --bounds 18,100 --epsilon 0.5"
    ],
    "release quantile": [
        f"expmech release quantile {SURVEY} --column age --bounds 18,100 --step 1 --epsilon 0.5",
        f"expmech release quantile {SURVEY} --column age --bounds 18,100 --q 0.1,1/2,0.9 --epsilon 0.5",
    ],
    "release linear": [
        f"expmech release linear {SURVEY} --column age --bounds 18,100 --target commute_minutes --target-bounds 0,150 --epsilon 1"
    ],
    "release ridge": [
        f"expmech release ridge {SURVEY} --column age --bounds 18,100 --target commute_minutes --target-bounds 0,150 --epsilon 1"
    ],
    "release logistic": [
        f"expmech release logistic {SURVEY} --column age --bounds 18,100 --target answer --positive yes --epsilon 1"
    ],
    "release pca": [
        f"expmech release pca {SURVEY} --column age --bounds 18,100 --column commute_minutes --bounds 0,150 --components 1 --epsilon 1"
    ],
    "release select": [
        f"expmech release select {SURVEY} --column answer --candidates yes,no --epsilon 0.1"
    ],
    "release top": [
        f"expmech release top {SURVEY} --column town --candidates Basel,Bern,Biel,Chur,Zug --k 2 --epsilon 0.5"
    ],
    "plan mean": ["expmech plan mean --rows 10000 --bounds 0,120 --error 0.5"],
    "plan quantile": ["expmech plan quantile --rows 1000 --bounds 0,100 --epsilon 0.5"],
    "plan ridge": ["expmech plan ridge --features 3 --rows 1000 --epsilon 1 --json"],
    "budget init": ["expmech budget init survey.ledger survey.csv --epsilon 1"],
    "budget show": ["expmech budget show survey.ledger"],
    "budget history": ["expmech budget history survey.ledger"],
    "budget recover": ["expmech budget recover survey.ledger"],
    "report": ["expmech report survey.ledger --html --output report.html"],
    "verify": ["expmech verify mean.json"],
    "demo": ["expmech demo"],
    "paper": [
        "expmech paper fig2 --n 10,100 --epsilon .1,1 --k .25,.5 --beta 1,2:5 --runs 2000 --jobs 2 --out mine",
        "expmech paper fig1 --d 1,2,5 --alpha 3 --out mine",
        "expmech paper delta --n 5,10 --epsilon .5,1 --out mine",
    ],
}
SECTIONS = ("release", "plan", "budget")  # whose commands share options


def page() -> str:
    """Return the text of docs/command_line.md."""
    parts = [OPENING, _examples(""), _commands()]
    for name in COMMANDS:
        command = load(name)
        parts += [f"## expmech {name}\n", _help(command), _examples(name)]
        inner = getattr(command, "commands", {})
        if isinstance(command, LoadingGroup):
            inner = {word: command.load(word) for word in inner}
        parts.append(_options(command.params))
        shared = _shared(list(inner.values())) if name in SECTIONS else []
        if shared:
            parts += [f"### Options of every `expmech {name}`\n", _options(shared)]
        names = {option.name for option in shared}
        for word, each in inner.items():
            own = [option for option in each.params if option.name not in names]
            parts += [f"### expmech {name} {word}\n", _help(each)]
            parts += [_examples(f"{name} {word}"), _options(own)]
    return "\n".join(part for part in parts if part)


def _commands() -> str:
    lines = [
        f"| [`{name}`](#expmech-{name}) | {_escaped(text)} |" for name, text in COMMANDS.items()
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *lines, ""])


def _help(command: Any) -> str:
    return f"{_escaped(' '.join(str(command.help or '').split()))}\n"


def _examples(name: str) -> str:
    lines = "".join(f"$ {line}\n" for line in EXAMPLES.get(name, []))
    return f"```console\n{lines}```\n" if lines else ""


def _shared(commands: Sequence[Any]) -> list[Any]:
    """Return the options that all commands have, with the same words."""
    described = [{(each.name, each.help) for each in command.params} for command in commands]
    common = set.intersection(*described) if len(described) > 1 else set()
    return [each for each in commands[0].params if (each.name, each.help) in common]


def _options(parameters: Sequence[Any]) -> str:
    lines = list(_rows(parameters))
    return "\n".join(["| option | what it does | default |", "|---|---|---|", *lines, ""]) * bool(
        lines
    )


def _rows(parameters: Sequence[Any]) -> Iterator[str]:
    for each in parameters:
        if each.name == "help":
            continue
        option = each.param_type_name == "option"
        name = ", ".join(each.opts) if option else str(each.metavar or each.name).upper()
        default = "required" if each.required else _default(each)
        yield f"| `{name}` | {_escaped(each.help or '')} | {default} |"


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or isinstance(value, bool) or callable(value) or value in ("", (), []):
        return ""
    return f"`{value}`"


def _escaped(text: str) -> str:
    return re.sub(r"([\[\]<>|*_])", r"\\\1", text)


def main() -> None:
    """Write the page."""
    typer.main.get_command(app)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
