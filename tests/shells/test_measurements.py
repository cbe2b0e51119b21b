"""What a page says was measured stands on a page of benchmarks/results, and says where.

A number that a machine took, such as 3 ms, 2 GB or 5 times as long, stands in a section that links
to a page of results, and on that page. So does every other number in a line that has such a link.
A number of the page may have more digits than the one that is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import history
from expmech.exponential.samplers.box_tree import SLOW
from expmech.exponential.samplers.choose import CHEAP

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
PAGES = {page.stem: page.read_text() for page in sorted(RESULTS.glob("*.md"))}
# These are made from runs of their own, which other tests hold.
MADE = ("docs/command_line.md", "docs/reproduction.md")
TEXTS = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if str(page.relative_to(ROOT)) not in MADE
}
NUMBER = r"\d[\d,]*(?:\.\d+)?"
UNIT = r"(?:[mu]s|s|(?:milli|micro|nano)?seconds?|[KMG]i?B)\b"
MEASURED = re.compile(rf"(?<![\w.^-])({NUMBER}) ?{UNIT}")
TIMES = re.compile(rf"(?<![\w.^-])({NUMBER}) times (?:as (?:long|fast|slow)|longer|faster|slower)")
QUOTED = re.compile(rf"(?<![\w.^/])({NUMBER})(?![\d^.\w])")
CITED = re.compile(r"benchmarks/results/(\w+)\.md")
RULES = {f"{1e3 * CHEAP:g} ms", f"{1e3 * SLOW:g} ms"}
"""Public constants of the program, which nobody measured."""


def lines_of(text: str) -> Iterator[tuple[str, str]]:
    """Return each paragraph, row or item outside of code, with the section that it stands in."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for section in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        for part in re.split(r"\n\s*\n|\n(?=\||- |\d+\. )", section):
            yield part, section


def plain(text: str) -> str:
    """Return text without code, formulas and targets of links."""
    return re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", "", text)


def stands_on(number: str, pages: list[str]) -> bool:
    """Tell whether a page has the number, or one that is rounded to it."""
    digits = len(number.partition(".")[2])
    value = float(number.replace(",", ""))
    there = (match.replace(",", "") for page in pages for match in re.findall(NUMBER, page))
    return any(round(float(each), digits) == value for each in there if each)


def faults(text: str) -> list[str]:
    """Return the numbers of a page that no page of results bears out."""
    wrong = []
    for line, section in lines_of(text):
        own = [PAGES.get(name, "") for name in CITED.findall(line)]
        cited = own or [PAGES.get(name, "") for name in CITED.findall(section)]
        measured = [match for match in MEASURED.finditer(plain(line)) if match[0] not in RULES]
        measured += TIMES.finditer(plain(line))
        numbers = [match[1] for match in measured]
        if own:
            quoted = (match[1] for match in QUOTED.finditer(plain(line)))
            numbers += [each for each in quoted if "." in each or len(each) > 1]
        wrong += [each for each in numbers if not stands_on(each, cited)]
    return wrong


@pytest.mark.parametrize("page", TEXTS)
def test_measured_numbers_stand_on_the_page_of_results_they_name(page: str) -> None:
    assert faults(TEXTS[page]) == [], page


def test_a_number_that_no_page_has_is_seen() -> None:
    link = "[prepared](benchmarks/results/prepared.md)"
    row = next(line for line in PAGES["prepared"].splitlines() if line.startswith("| mean"))
    ratio = row.split("|")[4].strip()
    assert faults(f"A mean takes {ratio} times as long: {link}.") == []
    assert faults(f"A mean takes {ratio} times as long.") == [ratio], "without a page"
    assert faults(f"A mean takes 98765 times as long: {link}.") == ["98765", "98765"]
    assert faults(f"It takes {1e3 * CHEAP:g} ms at most.") == [], "a rule"
    assert faults("It takes 31.7 ms.\n\n```text\n8.6 ms\n```\n") == ["31.7"], "code is run"
    assert faults(f"## One\n\n{link}\n\n## Two\n\nIt takes 3 s.") == ["3"], "another section"


def test_every_page_of_results_says_how_it_was_made() -> None:
    for name, text in PAGES.items():
        assert name == "README" or re.search(r" at commit [0-9a-f]{8}\b", text), name
        assert name == "README" or re.search(r"\bload\b", text), name


def test_every_page_of_results_is_listed_once() -> None:
    listed = re.findall(r"\]\((\w+)\.md\)", PAGES["README"])
    assert sorted(listed) == sorted(set(PAGES) - {"README"})


def test_the_newest_ratios_of_the_history_are_those_of_the_pages() -> None:
    newest: dict[str, dict[str, float]] = {}
    for entry in history.read():
        of_page = newest.setdefault(f"{entry.page} {entry.commit}", {})
        of_page[entry.job] = entry.ratio
    latest = {key.split()[0]: ratios for key, ratios in newest.items()}
    assert len(latest) >= 8
    for page, ratios in latest.items():
        assert ratios == history.ratios(PAGES[page]), page


def test_a_regression_of_a_fifth_shows(tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    page = (
        "## {}\n\n| job | ours | ratio |\n|---|---|---|\n| mean | 3 ms | {} |\n| sum | 1 s | 2 |\n"
    )
    for commit, ratio in (("aa", 1.0), ("bb", 1.1), ("bb", 1.04), ("cc", 1.2)):
        history.note("core", page.format("Time", ratio), commit=commit, file=file)
    entries = history.read(file)
    assert [each.ratio for each in entries if each.job == "Time / mean / ratio"] == [1.0, 1.04, 1.2]
    assert history.regressions(entries) == [], "18 percent above the median"
    history.note("core", page.format("Time", 1.3), commit="dd", file=file)
    ((worse, usual),) = history.regressions(history.read(file))
    assert (worse.job, worse.ratio, usual) == ("Time / mean / ratio", 1.3, 1.04)
