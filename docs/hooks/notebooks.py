"""Notebooks of the tutorial: run their cells, keep what they show, and make pages of them.

    python docs/hooks/notebooks.py docs/tutorial/*.ipynb

runs each notebook from its top and writes what its cells print, return and draw into the file.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
VARIES = "varies"  # the tag of a cell whose output is different each time it runs


def run(file: Path) -> list[Cell]:
    """Return the cells of a notebook with the outputs that they have now."""
    os.environ["MPLBACKEND"] = "agg"
    names: dict[str, Any] = {"__name__": "__main__"}
    cells: list[Cell] = json.loads(file.read_text())["cells"]
    with contextlib.chdir(file.parent):
        for number, cell in enumerate(cells, start=1):
            if cell["cell_type"] == "code":
                cell["outputs"] = _outputs("".join(cell["source"]), f"cell {number}", names)
    return cells


def _outputs(source: str, name: str, names: dict[str, Any]) -> list[Cell]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    outputs: list[Cell] = []
    if printed.getvalue():
        outputs.append(
            {"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}
        )
    if value is not None and not source.rstrip().endswith(";"):  # as Jupyter has it
        outputs.append(_shown("execute_result", {"text/plain": _lines(repr(value))}))
    return outputs + _pictures()


def _pictures() -> list[Cell]:
    from matplotlib import pyplot

    outputs = []
    for number in pyplot.get_fignums():
        drawn = io.BytesIO()
        pyplot.figure(number).savefig(
            drawn, dpi=100, bbox_inches="tight", metadata={"Software": None}
        )
        text = base64.b64encode(drawn.getvalue()).decode()
        outputs.append(_shown("display_data", {"image/png": text}))
    pyplot.close("all")
    return outputs


def _shown(kind: str, data: dict[str, Any]) -> Cell:
    extra = {"execution_count": None} if kind == "execute_result" else {}
    return {"output_type": kind, "data": data, "metadata": {}, **extra}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def texts(cells: list[Cell]) -> list[tuple[str, str]]:
    """Return source and text of the outputs of each code cell that repeats."""
    kept = [cell for cell in cells if cell["cell_type"] == "code"]
    kept = [cell for cell in kept if VARIES not in cell["metadata"].get("tags", [])]
    return [("".join(cell["source"]), "".join(map(_text, cell["outputs"]))) for cell in kept]


def _text(output: Cell) -> str:
    return "".join(output.get("text") or output["data"].get("text/plain", []))


def page(file: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by name."""
    parts, pictures = [], dict[str, bytes]()
    for cell in json.loads(file.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            if text := _text(output).rstrip():
                parts.append(f"```{{.text .output}}\n{text}\n```")
            if drawn := output.get("data", {}).get("image/png"):
                name = f"{file.stem}_{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(drawn)
                parts.append(f"![{_alternative(source)}]({name})")
    parts.append(f'<a href="{file.name}" download>Download this page as a notebook.</a>')
    return "\n\n".join(parts) + "\n", pictures


def _alternative(source: str) -> str:
    titles = re.findall(r'title="([^"]*)"', source)
    return "; ".join(titles) or "Picture drawn by the cell above"


def main() -> None:
    """Run the notebooks named on the command line and write their outputs."""
    for name in sys.argv[1:]:
        file = Path(name)
        notebook = json.loads(file.read_text())
        notebook["cells"] = run(file)
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
