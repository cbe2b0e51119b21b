"""The pages of the API reference: every public name, from the lists ``__all__`` of the source."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.pages import Page

SOURCE = Path(__file__).parents[2] / "src" / "expmech"
# Rooms of the package in the order of the reference. Of a whole room every public name is shown,
# of the others what `expmech` itself exports.
TITLES = {
    "release": "Mechanisms and releases",
    "estimators": "Estimators",
    "domains": "Domains",
    "losses": "Losses",
    "target": "Base measures",
    "samplers": "Samplers and plans",
    "envelopes": "Envelopes",
    "kernels": "Kernels",
    "optimum": "Optima",
    "risks": "Risks",
    "ledger": "Ledger",
    "data": "Data",
    "statistics": "Statistics",
    "auditing": "Audits",
    "theory": "Bounds",
    "adjacency": "Adjacency",
    "errors": "Errors",
    "opendp": "OpenDP",
    "dp_accounting": "dp_accounting",
}
WHOLE = (
    "estimators",
    "losses",
    "kernels",
    "risks",
    "ledger",
    "data",
    "statistics",
    "auditing",
    "theory",
)
MODULES = ("opendp", "dp_accounting")
ROLE = re.compile(r":[a-z]+:<code>~?([\w.]+)</code>")  # what Sphinx calls a role
FILE = re.compile(r"(?<![\w/])docs/([\w/]+)\.md")


@cache
def pages() -> dict[str, str]:
    """Return the text of each page by its path."""
    found = {"reference/README.md": _overview()}
    for room, title in TITLES.items():
        entries = "\n\n".join(f"::: {name}" for name in entries_of(room))
        found[f"reference/{room}.md"] = f"# {title}\n\n{_summary(room)}\n\n{entries}\n"
    return found


def on_page_content(content: str, page: Page, **_: Any) -> str:
    """Link the names and the pages that docstrings mention."""
    if not page.file.src_uri.startswith("reference/"):
        return content
    return FILE.sub(r'<a href="../\1.html">\1</a>', ROLE.sub(_named, content))


def _named(found: re.Match[str]) -> str:
    short = found[1].rpartition(".")[2]
    return f'<autoref identifier="{found[1]}" optional><code>{short}</code></autoref>'


def entries_of(room: str) -> list[str]:
    """Return the dotted names that the page of a room shows."""
    if room in MODULES:
        return [f"expmech.{room}"]
    short = {name for name, where in exported().items() if where == room}
    names = public_names(room) if room in WHOLE else sorted(short)
    return [f"expmech.{name}" if name in short else f"expmech.{room}.{name}" for name in names]


@cache
def exported() -> dict[str, str]:
    """Return the room from which `expmech` exports each name."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    rooms = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("expmech."):
            for alias in node.names:
                rooms[alias.name] = node.module.split(".")[1]
    return {name: rooms[name] for name in _all(tree) if name in rooms and name != "__version__"}


def public_names(room: str) -> list[str]:
    """Return the list ``__all__`` of a room, without constants."""
    names = _all(ast.parse((SOURCE / room / "__init__.py").read_text()))
    return [name for name in names if not name.isupper()]


def _all(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise ValueError("A room of the reference has no list __all__.")


def _summary(room: str) -> str:
    folder = SOURCE / room / "__init__.py"
    file = folder if folder.exists() else SOURCE / f"{room}.py"
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def _overview() -> str:
    lines = [
        "# API reference",
        "",
        "Everything public, from the docstrings of the source. `import expmech as em`; what a user needs first"
        " is `em.ExponentialMechanism`, `em.Box`, the losses and the estimators.",
        "",
        "| page | about |",
        "|---|---|",
    ]
    for room, title in TITLES.items():
        lines.append(f"| [{title}]({room}.md) | {_summary(room).splitlines()[0]} |")
    return "\n".join([*lines, ""])
