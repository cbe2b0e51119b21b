"""The page around the panels: files of the package, with the first state filled in."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from expmech._version import __version__
from expmech.explore.panels import Panel
from expmech.explore.questions import QUESTIONS
from expmech.explore.state import State

STATIC = ("app.js", "controls.js", "style.css", "figures.css", "icon.svg")


@cache
def _file(name: str) -> str:
    return files("expmech.explore").joinpath("static", name).read_text(encoding="utf-8")


def read_static(name: str) -> str | None:
    """Return a file of the page by its name; None where there is none."""
    return _file(name) if name in STATIC else None


def fill_page(state: State) -> str:
    """Return the page with what its script needs to know."""
    page_facts = {"state": state.settings(), "questions": facts()}
    # A JSON text inside HTML must not end its element.
    text = json.dumps(page_facts).replace("<", "\\u003c")
    return _file("index.html").replace("$FACTS", text).replace("$VERSION", __version__)


def facts() -> dict[str, Any]:
    """Return what the controls of every question are."""
    return {
        name: {
            "label": question.label,
            "story": question.story,
            "unit": question.unit,
            "rows": vars(question.rows),
            "size": vars(question.size),
            "sizeLabel": question.size_label,
            "bounds": question.bounds,
            "fixedBounds": question.fixed_bounds,
            "methods": question.methods,
            "errorSentence": question.error_sentence,
            "errorUnit": question.error_unit,
            "errorIsDistance": question.error_is_distance,
        }
        for name, question in QUESTIONS.items()
    }


def standalone(panel: Panel) -> str:
    """Return a picture as a file of its own: with its colours, on white."""
    style = f'<style>{_file("figures.css")}</style><rect width="100%" height="100%" fill="#fff"/>'
    start = panel.figure.find(">") + 1
    return panel.figure[:start] + style + panel.figure[start:]
