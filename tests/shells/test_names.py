"""Names of columns, groups and data sets are shown as they are, wherever they are shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.core.errors import ParameterError
from expmech.core.markup import visible
from expmech.ledger import Ledger

NAMES = [
    "speed [m/s]",
    "x[/red]",
    "[bold]x",
    ":smile:",
    "a|b",
    "<script>alert(1)</script>",
    "`code` *and* _more_ & &lt; ~~gone~~",
    "colour\x1b[31m",
    "csi\x9b31m",
    "two\nlines",
    "back\rwards",
    "\u202egnp.exe",
    "tag\U000e0001",
    "\u2028line",
    "\x00nul\x07",
    "Zürich, Genève 東京",
]


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


def assert_harmless(text: str) -> None:
    for mark in text:
        category = unicodedata.category(mark)
        assert mark == "\n" or category not in {"Cc", "Cf", "Zl", "Zp", "Cs"}, (mark, text)


def test_what_is_seen_is_kept_and_what_is_not_is_escaped() -> None:
    for name in NAMES:
        shown = visible(name)
        assert shown.isprintable()
        assert (shown == name) == name.isprintable()
    assert visible("a\u00a0b\u200d") == "a\u00a0b\u200d"
    assert visible("lone \ud800") == "lone \\ud800"


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_is_shown_as_it_is_everywhere(name: str, tmp_path: Path) -> None:
    rows, ledger = tmp_path / "rows.parquet", tmp_path / "rows.ledger"
    group = "one " + name
    pq.write_table(pa.table({name: [1.0, 2.0, 3.0], "town": [group] * 3}), rows)
    Ledger.create(ledger, data_set=str(rows), epsilon="9", adjacency="add-remove")
    asked = ["release", "mean", str(rows), "--column", name, "--bounds", "0,5", "--epsilon", "1"]
    asked += ["--ledger", str(ledger), "--adjacency", "add-remove"]
    text = run(*asked)
    assert_harmless(text)
    assert f"mean of {visible(name)}" in text
    stated = json.loads(run(*asked, "--json"))
    assert stated["statement"] == f"mean of {visible(name)}"
    if "," not in name:
        text = run(*asked, "--by", "town", "--groups", group)
        assert_harmless(text)
        assert visible(group) in text
    for words in (("budget", "show"), ("budget", "history"), ("report",)):
        assert_harmless(run(*words, str(ledger)))
    for words in (("budget", "show"), ("budget", "history")):
        text = run(*words, str(ledger), "--json")
        assert_harmless(text)
        json.loads(text)
    for kind in (["--html"], []):
        file = tmp_path / f"report{len(kind)}"
        run("report", str(ledger), *kind, "--title", name, "--output", str(file))
        assert_harmless(file.read_text())
    page = HtmlText.of(run("report", str(ledger), "--html", "--title", name))
    assert f"mean of {visible(name)}" in page


class HtmlText(HTMLParser):
    """The text of a page; scripts are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    @classmethod
    def of(cls, page: str) -> str:
        assert_harmless(page)
        parser = cls()
        parser.feed(page)
        return parser.text

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag != "script"

    def handle_data(self, data: str) -> None:
        self.text += data


def test_json_on_the_command_line_holds_the_name_itself(tmp_path: Path) -> None:
    """Escapes are those of JSON: who parses it gets every character back."""
    ledger = tmp_path / "a.ledger"
    for number, name in enumerate(NAMES):
        path = ledger.with_name(f"{number}.ledger")
        Ledger.create(path, data_set=name, epsilon="1")
        assert json.loads(run("budget", "show", str(path), "--json"))["data_set"] == name


def test_a_character_that_the_terminal_lacks_ends_nothing(tmp_path: Path) -> None:
    """On a terminal, or in a pipe, of ASCII: a value that was paid for is shown all the same."""
    rows, ledger, town = tmp_path / "rows.csv", tmp_path / "rows.ledger", "Genève 東京 🎉"
    rows.write_text(f"town\n{town}\n", encoding="utf-8")
    Ledger.create(ledger, data_set="Genève 東京", epsilon="9", adjacency="add-remove")
    release = ["release", "count", str(rows), "--by", "town", "--groups", town, "--epsilon", "1"]
    page, record = tmp_path / "page.html", tmp_path / "value.json"
    commands = [
        [*release, "--output", str(record)],
        [*release, "--json"],
        ["verify", str(record)],
        ["check", str(rows)],
        ["budget", "show", str(ledger)],
        ["report", str(ledger), "--title", town],
        ["report", str(ledger), "--title", town, "--html"],
        ["report", str(ledger), "--title", town, "--html", "--output", str(page)],
    ]
    script = f"""
import json, sys
from expmech.cli.main import main
for words in json.loads({json.dumps(commands)!r}):
    sys.argv = ["expmech", *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, words
    print("\\f")
"""
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | plain | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        encoding="ascii",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    card, stated, _, _, budget, markdown, html, _, _ = done.stdout.split("\f")
    assert town.encode("ascii", "backslashreplace").decode() in card
    assert list(json.loads(stated)["value"]) == [town]
    assert "Gen\\xe8ve" in budget and "Gen\\xe8ve" in markdown
    assert town in unescape(html)
    assert town in HtmlText.of(page.read_text(encoding="utf-8"))


def test_a_data_set_whose_name_is_no_text_gets_no_ledger(tmp_path: Path) -> None:
    """Linux allows such names of files; another system could not read the ledger's."""
    with pytest.raises(ParameterError, match=r"Rename the file\."):
        Ledger.create(tmp_path / "a.ledger", data_set="Z\udcfcrich.csv", epsilon="1")
    assert not list(tmp_path.iterdir())
