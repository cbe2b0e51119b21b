"""Run the blocks of a page of Markdown and hold what they print against what the page shows.

    PYTHONPATH=src:tests python -m support.shown README.md docs/guides/*.md

runs the pages named, writes what their blocks print now into them, and names what failed.
The format of a page is told at the top of tests/shells/test_documents.py.
"""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import os
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from unittest import mock

from typer.testing import CliRunner

from expmech.core.bits import Bits, seeded_bits

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
ASK = "?"  # in the place of an output: the script writes it
CUT = "..."  # the last line of an output of which the page shows only the beginning
HOME = "/data"  # where the folder of the reader is said to be
TIME = datetime(2026, 3, 2, 9, 0, 0)  # every charge is made at this time
# What no patch makes repeat: durations that were measured, and digests of what holds a path.
VARIES = re.compile(r"\b[\d.]+ (?:ms|s|us|seconds)\b|\b[0-9a-f]{16,64}\b")


@dataclass
class Shown:
    """What one block, or one command of it, printed, beside what the page shows."""

    source: str
    shown: str | None  # None: the page shows no output
    printed: str
    code: int = 0
    start: int = 0
    """Where the output stands in the page."""
    end: int = 0

    @property
    def renewed(self) -> str | None:
        """What the page should show: what it shows, where only what varies differs."""
        if self.shown is None:
            return None
        lines, shown = self.printed.splitlines(), self.shown.splitlines()
        if shown and shown[-1] == CUT:
            lines = [*lines[: len(shown) - 1], CUT]
        text = "".join(f"{line}\n" for line in lines)
        return self.shown if _masked(text) == _masked(self.shown) else text

    @property
    def failed(self) -> bool:
        """Whether a command ended with an error that the page does not show."""
        shows_it = self.shown is not None and (self.code == 4 or "error:" in self.shown.lower())
        return self.code != 0 and not shows_it


def _masked(text: str) -> str:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return VARIES.sub("#", "\n".join(lines))


@dataclass
class Reader:
    """Somebody who types what a page shows, from its top, in a folder with the survey."""

    folder: Path
    shorten: Callable[[str], str] = lambda command: command
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def read(self, text: str) -> list[Shown]:
        """Run every block and return what it printed."""
        results: list[Shown] = []
        for match in BLOCK.finditer(text):
            if match[1] == "python":
                shown = match[3]
                printed = self._python(match[2])
                start, end = match.span(3) if shown is not None else (0, 0)
                results.append(Shown(match[2], shown, printed, start=start, end=end))
            elif match[1] == "console":
                results.extend(self._console(match[2], match.start(2)))
        return results

    def _python(self, source: str) -> str:
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            exec(compile(tree, "<page>", "exec"), self.names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<page>", "eval"), self.names)
                if value is not None:
                    print(value)
        return self._public(printed.getvalue())

    def _console(self, block: str, offset: int) -> Iterator[Shown]:
        for match in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            command = re.sub(r"\\\n\s*", "", match[1])
            shown = match[2] or None
            start, end = match.span(2)
            printed, code = self._command(command if shown else self.shorten(command))
            yield Shown(command, shown, printed, code, start=offset + start, end=offset + end)

    def _command(self, command: str) -> tuple[str, int]:
        from expmech.cli.main import app

        words = shlex.split(command)
        if words[0] == "head":  # head -3 survey.csv
            lines = Path(words[2]).read_text().splitlines(keepends=True)
            return "".join(lines[: int(words[1].lstrip("-n"))]), 0
        assert words[0] == "expmech", command
        result = CliRunner().invoke(app, words[1:])
        return self._public(result.output), result.exit_code

    def _public(self, text: str) -> str:
        for folder in {str(self.folder), str(self.folder.resolve())}:
            text = text.replace(folder, HOME)
        return text


@contextlib.contextmanager
def desk(folder: Path, text: str) -> Iterator[None]:
    """Stand in a folder with what pages use; draws, dates and forecasts are always the same.

    Draws come from seeded streams in this process alone. The product has no such option.
    """
    from expmech.exponential.samplers.choose import table_pace

    streams = itertools.count()

    def bits() -> Bits:
        return seeded_bits([23, next(streams)])

    class Clock:
        @staticmethod
        def now(zone: tzinfo) -> datetime:
            return TIME.replace(tzinfo=zone)

    shutil.copytree(ROOT / "examples", folder / "examples")
    for table in (ROOT / "examples" / "data").glob("*.csv"):
        shutil.copy(table, folder)
    languages = [(match[1], match[2]) for match in BLOCK.finditer(text)]
    for name, language in (("day.toml", "toml"), ("mine.py", "python")):
        (folder / name).write_text("\n".join(body for kind, body in languages if kind == language))
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, EXPMECH_STATE=str(folder / ".register")),
        mock.patch.object(sys, "path", [str(folder), *sys.path]),
        mock.patch("expmech.certificates.mechanism.operating_system_bits", bits),
        mock.patch("expmech.ledger.file.datetime", Clock),
        mock.patch("expmech.exponential.mechanism.measured_pace", table_pace),
    ):
        sys.modules.pop("mine", None)  # that of another page
        yield


def renew(page: Path) -> list[str]:
    """Write what the blocks of a page print now into it; return what failed."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder, desk(Path(folder), text):
        results = Reader(Path(folder)).read(text)
    for result in reversed(results):
        if result.renewed is not None and result.renewed != result.shown:
            text = text[: result.start] + result.renewed + text[result.end :]
    page.write_text(text)
    ended = [result for result in results if result.code]
    return [f"{page}: `{result.source}` ended with {result.code}" for result in ended]


def main() -> None:
    """Renew the pages named on the command line."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning)  # as in the tests
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    for page in pages:
        for line in renew(page):
            print(line)


if __name__ == "__main__":
    main()
