"""The list of deliberate breakages, read from the text files beside this one.

A file is a room. ``tests:`` names the test files that are run against the lines that follow,
``file:`` the source file they break; both hold until the next of their kind. Every other line is

    old text  =>  new text  #  what it breaks

with two blanks around the marks; ``  ~  why`` at the end argues that no test can tell the two
apart, or that the program then refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src" / "expmech"
TESTS = ROOT / "tests"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One line of a source file, written as a tired programmer could have."""

    number: int
    room: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    argued: str


def read_all() -> list[Mutant]:
    """Return every mutant, numbered in the order of the files."""
    found: list[Mutant] = []
    for page in sorted(HERE.glob("*.txt")):
        found.extend(_read_room(page, len(found) + 1))
    return found


def mutate(text: str, mutant: Mutant) -> str:
    """Return a source text with the breakage; raise unless its line occurs exactly once."""
    times = text.count(mutant.old)
    if times != 1:
        raise ValueError(f"{mutant.file} holds {mutant.old!r} {times} times, and must once")
    return text.replace(mutant.old, mutant.new)


def _read_room(page: Path, first: int) -> Iterator[Mutant]:
    tests: tuple[str, ...] = ()
    file, number = "", first
    for line in page.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        kind, _, rest = line.partition(": ")
        if kind == "tests":
            tests = tuple(rest.split())
        elif kind == "file":
            file = rest.strip()
        else:
            yield _read_line(line, number, page.stem, file, tests)
            number += 1


def _read_line(line: str, number: int, room: str, file: str, tests: tuple[str, ...]) -> Mutant:
    old, arrow, rest = line.partition("  =>  ")
    new, mark, words = rest.partition("  #  ")
    if not arrow or not mark:
        raise ValueError(f"{room}: no `old  =>  new  #  what it breaks` in {line!r}")
    breaks, _, argued = words.partition("  ~  ")
    return Mutant(
        number=number,
        room=room,
        file=file,
        old=old.strip(),
        new=new.strip(),
        breaks=breaks.strip(),
        tests=tests,
        argued=argued.strip(),
    )
