"""How long the road of a release is: functions, files and kinds of objects that a warm call passes.

Counted with ``sys.setprofile`` over the second of two equal calls. A function counts once however often it is called;
comprehensions, lambdas and generator expressions do not count. ``python -m benchmarks.road`` writes the page
`benchmarks/results/road.md`; with ``--list`` it prints every function that each call passes, in order and below its caller.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from traceback import walk_stack
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import expmech as em
from benchmarks.support import write
from expmech.tables.release import remembered_release

PACKAGE = Path(em.__file__).parent
GOALS = {
    "command line, mean of a CSV": (110, 28, 16),
    "PrivateMean.fit": (60, 15, None),
    "a loss of one's own": (130, 28, None),
    "PrivateLogisticRegression.fit": (130, 25, None),
    "nine joint quantiles": (150, 30, None),
}


STEPS = {
    "read_command": "options",
    "PrivateEstimator._validate_parameters": "options",
    "PrivateEstimator._table": "options",
    "PrivateRegression._inputs": "options",
    "PrivateLogisticRegression._labels": "options",
    "logistic_regression": "options",
    "PrivateQuantile._quantiles": "options",
    "BoundedColumns._draw_bounded": "options",
    "open_table": "table",
    "ReleaseCommand.prepare": "public half",
    "PrivateEstimator._prepare": "public half",
    "Mechanism.prepare": "public half",
    "_release": "charge",
    "PrivateEstimator._draw": "charge",
    "TableRows.aggregate": "aggregate",
    "DeferredRows.aggregate": "aggregate",
    "PreparedRelease.release": "draw",
    "PreparedDraw.release": "draw",
    "_accuracy": "record",
    "with_digest": "record",
    "_show": "record",
}
"""The step of the road that a function begins; what it calls belongs to it, up to the next one."""

REMAINS = [
    "Why the goals for means and the logistic regression are not reached: a function of these roads has 8 to 11 lines"
    " without its docstring, and as much work in half as many functions would need 20. What they do is long:",
    "",
    "- The command line makes a request of some thirty options, opens a file whose lines are cut by a public rule, writes"
    " SQL in which no value can fail, draws exactly, computes an interval and prints a card: 20 to 60 functions each.",
    "- An estimator checks parameters and the form of a table by scikit-learn's rules before it looks at a value; more"
    " than half of the functions of a mean are its draw: exact coins, noise, values and their interval.",
    "- Two thirds of a logistic regression are its certified root: noise whose digits are revealed, Newton's steps, exact"
    " sums and an enclosure. It is proved step by step, and the functions are the steps of the proofs.",
    "",
    "What is done twice on purpose: the query of an aggregate is written over no rows, so that an engine refuses it before"
    " the charge, and again over all rows; bounds on the command line are looked at as text, to see whether they are"
    " private, and then read as numbers; neighbours, the rule for missing values and the number of rows are checked by"
    " each layer that people call by itself: command or estimator, statistic, mechanism.",
]


class Passed(NamedTuple):
    """A function of the package, how many others are above it when it is first called, and its step."""

    code: CodeType
    depth: int
    step: str

    @property
    def place(self) -> Path:
        return Path(self.code.co_filename).relative_to(PACKAGE)


def is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<")


def walk(call: Callable[[], Any], *, forget: bool = False) -> tuple[list[Passed], set[type]]:
    """Return the functions of the package that a warm call passes, in order, and the classes it makes.

    With ``forget`` what is public of the release is made anew, as in a process that releases once.
    """
    call()
    if forget:
        remembered_release.cache_clear()
    functions: dict[CodeType, Passed] = {}
    classes: set[type] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_name == "__init__" and "self" in frame.f_locals:
            kind = type(frame.f_locals["self"])
            if kind.__module__.startswith("expmech"):
                classes.add(kind)
        if is_ours(code) and code not in functions:
            frames = [each.f_code for each, _ in walk_stack(frame) if is_ours(each.f_code)]
            steps = [STEPS[each.co_qualname] for each in frames if each.co_qualname in STEPS]
            functions[code] = Passed(code, len(frames) - 1, steps[0] if steps else "call")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(functions.values()), classes


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the five calls that are counted."""
    from typer.testing import CliRunner

    from expmech.cli.main import app
    from expmech.estimators import PrivateLogisticRegression, PrivateMean, PrivateQuantile

    random = np.random.default_rng(0)
    values = random.normal(size=(500, 3))
    file = folder / "table.csv"
    file.write_text("x\n" + "\n".join(str(value) for value in values[:, 0]) + "\n")
    command = ["release", "mean", str(file), "--column", "x", "--bounds=-3,3", "--epsilon", "1"]
    mean = values.mean()
    loss = em.ExponentialMechanism(
        loss=lambda y: np.abs(y[:, 0] - mean),
        sensitivity=0.01,
        domain=em.Box([-3.0], [3.0]),
        lipschitz=[1.0],
    )
    labels = values[:, 0] > 0

    def run() -> None:
        done = CliRunner().invoke(app, command)
        if done.exit_code:
            raise RuntimeError(done.output)

    return {
        "command line, mean of a CSV": run,
        "PrivateMean.fit": lambda: PrivateMean(epsilon=1.0, bounds=(-3, 3)).fit(values),
        "a loss of one's own": lambda: loss.release(epsilon=1.0),
        "PrivateLogisticRegression.fit": lambda: PrivateLogisticRegression(
            epsilon=1.0, bounds_X=(-3, 3), classes=[False, True]
        ).fit(values, labels),
        "nine joint quantiles": lambda: PrivateQuantile(
            q=[k / 10 for k in range(1, 10)], epsilon=1.0, bounds=(-3, 3)
        ).fit(values[:, :1]),
    }


def show(name: str, functions: list[Passed], classes: set[type]) -> None:
    """Print what a call passes, in the order in which it first passes it, below what calls it."""
    print(f"# {name}")
    for each in functions:
        line = f"{each.place}:{each.code.co_firstlineno} {each.code.co_qualname}"
        print("  " * each.depth + line)
    print("makes", ", ".join(sorted(kind.__qualname__ for kind in classes)), end="\n\n")


def main() -> None:
    lines = [
        "# How long the road of a release is",
        "",
        "Functions of the package that a warm call passes, the files they stand in, and the classes of the package it makes;"
        " the goals in brackets. Comprehensions and lambdas are not counted. The path may differ a little between runs,"
        " as draws do. `python -m benchmarks.road` writes this page; `--list` prints the functions in order, each below its caller.",
        "",
        "| call | functions | files | classes |",
        "|---|---|---|---|",
    ]
    rooms = ["", "Where the functions stand, by room:", ""]
    steps = ["", "By the step of the road in which they are first called:", ""]
    anew = []
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            anew.append(f"{name} {len(walk(call, forget=True)[0])}")
            functions, classes = walk(call)
            if "--list" in sys.argv:
                show(name, functions, classes)
            counts = (len(functions), len({each.place for each in functions}), len(classes))
            cells = (
                f"{n}" + (f" ({most})" if most else "")
                for n, most in zip(counts, GOALS[name], strict=True)
            )
            lines.append(f"| {name} | {' | '.join(cells)} |")
            most = Counter(each.place.parts[0] for each in functions).most_common()
            rooms.append(f"- {name}: {', '.join(f'{room} {n}' for room, n in most)}")
            order = Counter(each.step for each in functions)  # in the order of the road
            steps.append(f"- {name}: {', '.join(f'{step} {n}' for step, n in order.items())}")
    lines += [*rooms, *steps, ""]
    lines.append(
        "In these calls the public half of an equal request is remembered. Functions with it, as in a process that releases"
        f" once: {', '.join(anew)}."
    )
    lines += ["", *REMAINS]
    print("\n".join(lines[4:]))
    if "--list" not in sys.argv:
        write("road", lines)


if __name__ == "__main__":
    main()
