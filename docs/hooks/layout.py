"""Lay the site out as the repository is, so that a link that works in one works in the other.

Pages keep their place below the root of the repository as their source, and get a shorter address.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import notebooks
import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = ("docs/**/*.md", "*.md", "benchmarks/results/*.md")
HIDDEN = {"README.md"}  # its place is taken by docs/README.md
GUIDES = "docs/guides/"
NOTEBOOK = re.compile(r"(\]\([^)#:\s]+)\.ipynb(?=[)#])")
OPTION = re.compile(r"<code>(--?[a-z][^<]{0,24})</code>")
LINK = re.compile(r"\]\(([^)#:\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let entries of the navigation with a star stand for the pages that no other names."""
    named = {entry for entry in _leaves(config.nav) if "*" not in entry}
    config.nav = _expand(config.nav, named)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Move the pages of docs/ to their place in the repository, and add those from outside it."""
    moved = Files([file for file in files if file.src_dir != config.docs_dir])
    for file in files:
        if file.src_dir == config.docs_dir:
            moved.append(_file(f"docs/{file.src_uri}", config, file.inclusion))
    for path in _outside():
        moved.append(_file(path, config))
    made: dict[str, str | bytes] = {**reference.pages()}
    for notebook in _notebooks():
        text, pictures = notebooks.page(notebook)
        made[_name(notebook.with_suffix(".md"))] = text
        made |= {_name(notebook.with_name(name)): drawn for name, drawn in pictures.items()}
    for path, content in made.items():
        page = File.generated(config, path, content=content)
        page.dest_uri = page.dest_uri.removeprefix("docs/")
        moved.append(page)
    return moved


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to a notebook to the page that is made of it; the search finds guides first."""
    if page.file.src_uri.startswith(GUIDES):
        page.meta.setdefault("search", {"boost": 4})
    return NOTEBOOK.sub(r"\1.md", markdown)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Keep options of the command line on one line: a browser would break them at a hyphen."""
    return OPTION.sub(r'<code class="option">\1</code>', html)


@event_priority(-100)  # after the search has written its index
def on_post_build(config: MkDocsConfig) -> None:
    """Write the index of the search as a script too: a page on a disk may fetch nothing else."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    index.with_suffix(".js").write_text(f"var __index = {index.read_text()}")


def _file(path: str, config: MkDocsConfig, inclusion: Any = None) -> File:
    page = File(path, str(ROOT), config.site_dir, config.use_directory_urls)
    page.dest_uri = page.dest_uri.removeprefix("docs/")
    if inclusion is not None:
        page.inclusion = inclusion
    return page


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _notebooks() -> list[Path]:
    return sorted((ROOT / "docs").rglob("*.ipynb"))


@cache
def _outside() -> list[str]:
    """Return the pages outside docs/, and the files there that any page links to."""
    pages = [path for pattern in PAGES for path in ROOT.glob(pattern)]
    linked = {
        (page.parent / link).resolve() for page in pages for link in LINK.findall(page.read_text())
    }
    files = {path for path in {*pages, *linked} if path.is_file() and path.is_relative_to(ROOT)}
    names = {_name(path) for path in files}
    return sorted(name for name in names - HIDDEN if not name.startswith("docs/"))


def _known() -> list[str]:
    inside = [*(ROOT / "docs").rglob("*.md"), *(path.with_suffix(".md") for path in _notebooks())]
    return [*sorted(map(_name, inside)), *_outside(), *reference.pages()]


def _leaves(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    children = entry.values() if isinstance(entry, dict) else entry
    return [leaf for child in children for leaf in _leaves(child)]


def _expand(entry: Any, named: set[str]) -> Any:
    if isinstance(entry, dict):
        return {title: _expand(child, named) for title, child in entry.items()}
    if isinstance(entry, str):
        return _matching(entry, named) if "*" in entry else entry
    expanded: list[Any] = []
    for child in entry:
        found = _expand(child, named)
        expanded.extend(found if isinstance(found, list) else [found])
    return expanded


def _matching(pattern: str, named: set[str]) -> list[str]:
    depth = pattern.count("/")
    return [
        path
        for path in _known()
        if fnmatch(path, pattern) and path.count("/") == depth and path not in named
    ]
