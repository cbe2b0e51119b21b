"""Turn the formulas of a page into MathML, which browsers draw without a script or a network."""

from __future__ import annotations

import html
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fontTools import subset
from math_core import LatexError, LatexToMathML
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink

FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>([.,;:)\]]*)', flags=re.DOTALL)
PLAIN = re.compile(r"\\\((.*?)\\\)")
TAG = re.compile(r"\\tag\{(.*?)\}")
CONVERTER = LatexToMathML(fancy_error=False)
FONT = "ziamath/fonts/STIXTwoMath-Regular.ttf"  # free to pass on: SIL Open Font License
SHORT = 24  # characters of LaTeX that are never broken over two lines
OPENING, CLOSING = "([{⌈⌊⟨", ")]}⌉⌋⟩"
BREAKING = set("=<>≤≥≠≈∼∝∈∉⊂⊆→↦⇔≪≫⪯⪰,+−±")  # noqa: RUF001
# A browser sets a letter alone in italics, which have code points of their own.
ITALICS = "\u210e" + "".join(map(chr, [*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)]))
used: set[str] = set(ITALICS)


def on_page_content(content: str, page: Page, **_: Any) -> str:
    """Replace each formula of the page, also in its table of contents."""
    name = page.file.src_uri
    for anchor in page.toc:
        _rename(anchor, name)
    return FORMULA.sub(lambda found: _formula(found[2], found[3], name), content)


def on_post_build(config: MkDocsConfig) -> None:
    """Put the part of a mathematical font that the formulas use beside the pages."""
    package, _, file = FONT.partition("/")
    found = find_spec(package)
    if found is None or found.origin is None:
        raise PluginError(f"The package {package} with the font of the formulas is missing.")
    options = subset.Options(flavor="woff", layout_features=["*"], name_IDs=["*"])
    font = subset.load_font(str(Path(found.origin).parent / file), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(sorted(used)))
    subsetter.subset(font)
    subset.save_font(font, str(Path(config.site_dir) / "assets" / "formulas.woff"), options)


def _formula(text: str, after: str, page: str) -> str:
    latex = html.unescape(text)
    if latex.startswith("\\["):
        return _display(latex[2:-2], page) + after
    mathml = _mathml(latex[2:-2], page)
    *first, last = [mathml] if len(latex) < SHORT + 4 else _pieces(mathml)
    last = f'<span class="last">{last}{after}</span>'  # no line starts with a comma
    return f'<span class="formula">{"<wbr>".join([*first, last])}</span>'


def _display(latex: str, page: str) -> str:
    tag = TAG.search(latex)
    number = f'<span class="number">({tag[1]})</span>' if tag else ""
    formula = _mathml(TAG.sub("", latex), page, display=True)
    return f'<div class="formula">{formula}{number}</div>'


def _mathml(latex: str, page: str, display: bool = False) -> str:
    try:
        mathml = str(CONVERTER.convert_with_local_state(latex, displaystyle=display))
    except LatexError as error:
        raise PluginError(f"{page}: the formula {latex!r} cannot be read: {error}") from None
    mathml = mathml.replace("&ApplyFunction;", "\u2061")
    used.update(html.unescape(re.sub("<[^>]*>", "", mathml)))
    return mathml


def _pieces(mathml: str) -> list[str]:
    """Cut a long formula after its relations and signs: a browser breaks no line within one."""
    root = ElementTree.fromstring(mathml)
    pieces = [ElementTree.Element("math")]
    depth = 0
    for child in root:
        pieces[-1].append(child)
        depth += sum(_opens(operator) for operator in child.iter("mo"))
        if depth == 0 and child.tag == "mo" and child.text in BREAKING and not _unary(child):
            child.attrib.setdefault("form", "infix")
            pieces.append(ElementTree.Element("math"))
    full = [piece for piece in pieces if len(piece)]
    return [ElementTree.tostring(piece, encoding="unicode") for piece in full]


def _opens(operator: ElementTree.Element) -> int:
    text, form = operator.text or "", operator.get("form")
    if text in ("|", "‖"):
        return {"prefix": 1, "postfix": -1}.get(form or "", 0)
    return (text in OPENING) - (text in CLOSING) if text else 0


def _unary(operator: ElementTree.Element) -> bool:
    return operator.get("lspace") == "0" and operator.text != ","


def _rename(anchor: AnchorLink, page: str) -> None:
    anchor.title = PLAIN.sub(lambda found: _mathml(html.unescape(found[1]), page), anchor.title)
    for child in anchor.children:
        _rename(child, page)
