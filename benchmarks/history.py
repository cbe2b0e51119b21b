"""The ratios of all pages, commit by commit: history.csv, which every run of a page adds to.

    python -m benchmarks.history

lists the jobs whose newest ratio is a fifth or more above what it was, and ends with 1 if there is
one. A ratio is our time or error over that of what it is compared with, so that less is better. It
is taken from the tables of a page: from columns whose head begins with "ratio" or ends so.
"""

from __future__ import annotations

import csv
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

FILE = Path(__file__).parent / "history.csv"
MARGIN = 1.2
OF_OTHER_THINGS = ("clock", "forecasts")  # their ratios should be 1
LATEST = 5  # runs before the newest one, whose median it is held against
_RATIO = re.compile(r"^ratio\b|\bratio$", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Entry:
    """One ratio of one run."""

    page: str
    job: str
    ratio: float
    commit: str


def ratios(text: str) -> dict[str, float]:
    """Return the ratios in the tables of a page, by section, first cells and head."""
    found: dict[str, float] = {}
    section, heads = "", None
    for line in text.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ") if line.startswith("##") else ""
        if not line.startswith("|"):
            heads = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if heads is None:
            heads = cells
        elif not re.fullmatch(r"[|\s:-]+", line):
            for job, ratio in _of_row(section, heads, cells):
                found.setdefault(job, ratio)
    return found


def _of_row(
    section: str, heads: Sequence[str], cells: Sequence[str]
) -> Iterator[tuple[str, float]]:
    columns = [k for k, head in enumerate(heads) if _RATIO.search(head)]
    names = [
        cell for cell, head in zip(cells, heads, strict=False) if head in _NAMES or head == heads[0]
    ]
    for place, k in enumerate(columns):
        if k < len(cells) and _NUMBER.fullmatch(cells[k]):
            again = heads[k] if heads.index(heads[k]) == k else f"{heads[k]} {place + 1}"
            yield " / ".join(filter(None, (section, *names, again))), float(cells[k])


_NAMES = ("task", "file", "job", "problem", "table", "n", "p", "norm", "regression", "scores", "d")
"""Heads of columns that name a job beside the first one."""


def read(file: Path = FILE) -> list[Entry]:
    """Return all entries, the oldest first."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [Entry(row["page"], row["job"], float(row["ratio"]), row["commit"]) for row in rows]


def note(page: str, text: str, *, commit: str, file: Path = FILE) -> None:
    """Add the ratios of a page; those of an earlier run of the same page and commit are replaced."""
    entries = [each for each in read(file) if (each.page, each.commit) != (page, commit)]
    if page in OF_OTHER_THINGS:
        return
    entries += [Entry(page, job, ratio, commit) for job, ratio in ratios(text).items()]
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow([field.name for field in fields(Entry)])
        writer.writerows(map(astuple, entries))


def regressions(entries: Sequence[Entry]) -> list[tuple[Entry, float]]:
    """Return the newest entry of each job that became worse, with the median of those before."""
    jobs: dict[tuple[str, str], list[Entry]] = {}
    for each in entries:
        jobs.setdefault((each.page, each.job), []).append(each)
    worse = []
    for *before, newest in jobs.values():
        if before:
            usual = statistics.median(each.ratio for each in before[-LATEST:])
            if newest.ratio >= MARGIN * usual:
                worse.append((newest, usual))
    return worse


def main() -> int:
    worse = regressions(read())
    for entry, usual in worse:
        print(f"{entry.page}: {entry.job}: {usual:g} -> {entry.ratio:g} at {entry.commit}")
    print(f"{len(worse)} of the newest ratios are a fifth or more above what they were.")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
