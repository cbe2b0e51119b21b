"""One report.html for all studies, with the figures inside.

It opens offline and can be sent by itself.
"""

from __future__ import annotations

import base64
import csv
import dataclasses
import json
from html import escape
from pathlib import Path
from typing import Any

from expmech._version import __version__
from expmech.paper.options import Options
from expmech.paper.study import Section

VERDICT_FIELDS = ("sentence", "where", "under", "verdict", "number", "command")

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
figure { margin: 1rem 0; } img { width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #444; }
table { border-collapse: collapse; font-size: .85rem; width: 100%; table-layout: fixed; }
th, td { border: 1px solid #ccc; padding: .3rem .45rem; vertical-align: top; text-align: left;
         overflow-wrap: break-word; }
th:nth-child(1) { width: 28%; } th:nth-child(2) { width: 16%; } th:nth-child(3) { width: 10%; }
th:nth-child(5) { width: 14%; }
.run { color: #555; font-size: .9rem; }
.erratum { border: 1px solid #ccc; border-left: .3rem solid #d55e00; border-radius: .2rem;
           padding: .2rem 1rem .6rem; margin: 1rem 0; break-inside: avoid; }
.erratum h3 { font-size: 1.05rem; margin: .5rem 0; }
.erratum dl { display: grid; grid-template-columns: 9rem 1fr; gap: .2rem .8rem; margin: 0; }
.erratum dt { color: #555; } .erratum dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 45rem) {
  thead { display: none; }
  tr { display: block; border: 1px solid #ccc; margin: .8rem 0; }
  td { display: block; border: 0; padding: .2rem .5rem; }
  td::before { content: attr(data-name) ": "; color: #555; }
  .erratum dl { grid-template-columns: 1fr; gap: 0; } .erratum dd { margin-bottom: .4rem; }
  figure { margin: 1rem -.5rem; }
}
@media print {
  body { max-width: none; margin: 0; font-size: 10pt; } table { font-size: 8pt; }
  figure, tr { break-inside: avoid; } thead { display: table-header-group; }
  h2 { break-after: avoid; }
}
"""


def write_section(out: Path, name: str, section: Section, options: Options, seed: int) -> None:
    """Keep a study's entry, so that a later run of another study still reports it."""
    run = {"quick": options.quick, "given": options.given, "seed": seed, "version": __version__}
    facts = {**dataclasses.asdict(section), **run}
    (out / f"{name}.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")


def write_report(out: Path, names: list[str]) -> Path:
    """Write ``report.html`` from every entry found in ``out``, in the order of ``names``."""
    entries = [
        (name, json.loads((out / f"{name}.json").read_text(encoding="utf-8")))
        for name in names
        if (out / f"{name}.json").exists()
    ]
    links = " · ".join(
        f'<a href="#{name}">{escape(entry["title"].split(".")[0].split(":")[0])}</a>'
        for name, entry in entries
    )
    body = "\n".join(_entry(out, name, entry) for name, entry in entries)
    report = out / "report.html"
    report.write_text(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport"'
        ' content="width=device-width">\n<title>The paper, reproduced and'
        f" corrected</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>The paper, reproduced"
        " and corrected</h1>\n<p>Seeman, Reimherr, Slavkovic, <em>Exact Privacy Guarantees for"
        " Markov Chain Implementations of the Exponential Mechanism with Artificial Atoms</em>"
        " (2021): what it claims, what is true, and what the corrected methods"
        f" cost.</p>\n<p>{links}</p>\n{body}\n</body>\n</html>\n",
        encoding="utf-8",
    )
    return report


def write_verdicts(out: Path, names: list[str]) -> None:
    """Write ``verdicts.csv`` and ``verdicts.md`` from every entry found in ``out``."""
    rows = []
    for name in names:
        path = out / f"{name}.json"
        if path.exists():
            entries = json.loads(path.read_text(encoding="utf-8"))["verdicts"]
            rows += [[row[field] for field in VERDICT_FIELDS] for row in entries]
    with (out / "verdicts.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([VERDICT_FIELDS, *rows])
    (out / "verdicts.md").write_text(render_verdicts(rows), encoding="utf-8")


def render_verdicts(rows: list[list[str]]) -> str:
    """Return the verdicts as a table in Markdown."""
    head = "| the paper says | where | judged under | verdict | number | command |"
    lines = [head, "|---|---|---|---|---|---|"]
    for row in rows:
        sentence, where, under, verdict, number, command = (
            text.replace("|", "\\|") for text in row
        )
        lines.append(f"| {sentence} | {where} | {under} | **{verdict}** | {number} | `{command}` |")
    return "\n".join(lines) + "\n"


def _entry(out: Path, name: str, entry: dict[str, Any]) -> str:
    size = "quick run: smaller grids and fewer draws" if entry["quick"] else "full run"
    if entry["given"]:
        size = ", ".join([size, *(f"{name} = {value}" for name, value in entry["given"].items())])
    parts = [
        f'<section id="{name}">\n<h2>{escape(entry["title"])}</h2>',
        f'<p class="run">{size}, seed {entry["seed"]}, expmech {escape(entry["version"])}</p>',
    ]
    for figure, caption in entry["figures"]:
        image = base64.b64encode((out / f"{figure}.png").read_bytes()).decode()
        parts.append(
            f'<figure><a href="{figure}.svg"><img alt="{escape(caption)}"'
            f' src="data:image/png;base64,{image}"></a><figcaption>{escape(caption)} (<a'
            f' href="{figure}.png">PNG</a>, <a href="{figure}.svg">SVG</a>)</figcaption></figure>'
        )
    if name == "errata":
        with (out / "errata.csv").open(newline="", encoding="utf-8") as file:
            parts += [_erratum(row) for row in csv.DictReader(file)]
    else:
        parts.append(
            "<ul>"
            + "".join(f"<li>{escape(finding)}</li>" for finding in entry["findings"])
            + "</ul>"
        )
    if entry["verdicts"]:
        rows = [[row[field] for field in VERDICT_FIELDS] for row in entry["verdicts"]]
        parts.append(_table(list(VERDICT_FIELDS), rows))
    tables = ", ".join(f'<a href="{table}.csv">{table}.csv</a>' for table in entry["tables"])
    parts.append(f"<p>Numbers: {tables}</p>\n</section>")
    return "\n".join(parts)


def _table(header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in header)
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td data-name="{escape(name)}">{escape(value)}</td>'
            for name, value in zip(header, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _erratum(row: dict[str, str]) -> str:
    """Return a row of the errata as a block of its own: its texts are too long for columns."""
    number, title, *names = row
    fields = "".join(
        f"<dt>{escape(name.replace('_', ' '))}</dt><dd>{escape(row[name])}</dd>"
        for name in names
        if row[name]
    )
    heading = f"{escape(row[number])}. {escape(row[title])}"
    return f'<div class="erratum"><h3>{heading}</h3><dl>{fields}</dl></div>'
