"""What a page of HTML or Markdown links to, names and asks for, read by the standard library."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

# Attributes that a browser follows by itself, and elements whose text is not prose.
FETCHED = {"src", "srcset", "poster", "data", "action"}
FETCHING_LINKS = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "manifest",
}
VERBATIM = {"code", "pre", "script", "style", "math", "title", "option", "template"}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", flags=re.DOTALL | re.MULTILINE)


@dataclass
class Page(HTMLParser):
    """Anchors, links, things fetched and prose of one page of HTML."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    formulas: int = 0
    _inside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        self.formulas += tag == "math"
        if tag in VERBATIM:
            self._inside.append(tag)
        self.fetched.extend(found[name] for name in FETCHED & set(found))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and FETCHING_LINKS & set(found.get("rel", "").split()):
            self.fetched.append(found["href"])

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.prose.append(data)


def read_html(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    return page


def fences(text: str) -> list[tuple[str, str]]:
    """Return language and body of each fenced block of Markdown."""
    return [(language, body) for _, language, body in FENCE.findall(text)]


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of Markdown in a language."""
    return [body for found, body in fences(text) if found == language]


def indented(text: str) -> list[str]:
    """Return the lines of Markdown that stand as code by their indentation."""
    return re.findall(r"^    +(.*)$", FENCE.sub("", text), flags=re.MULTILINE)


def markdown_links(text: str) -> list[str]:
    """Return the targets of links and pictures outside code."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def heading_anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of Markdown."""
    anchors: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.*)$", FENCE.sub("", text), flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        number = sum(
            anchor == slug or re.fullmatch(f"{slug}-\\d+", anchor) is not None for anchor in anchors
        )
        anchors.add(f"{slug}-{number}" if number else slug)
    return anchors


def sentences(text: str) -> list[str]:
    """Return the sentences of Markdown: list items and cells of tables too, code as one word."""
    text = re.sub(r"<!--.*?-->|<[^<>\n]*>", "", FENCE.sub("\n\n", text), flags=re.DOTALL)
    text = re.sub(r"^ {4,}.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`\n]*`|\$[^$\n]+\$", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^(?:[-*] |\d+\. |#+ |> )", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*\|?[-:| ]+\|?\s*$", "\n\n", text, flags=re.MULTILINE)
    parts = re.split(r"\n\s*\n|\||(?<=[.!?])[*\"')]*\s|\|\n", text)
    cleaned = (" ".join(part.replace("*", "").split()).rstrip(".!?") for part in parts)
    return [part for part in cleaned if part]
