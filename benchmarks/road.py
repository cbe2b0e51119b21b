"""How long the road of a release is: functions, files and kinds of objects that a warm call passes.

Counted with ``sys.setprofile`` over the second of two equal calls. A function counts once however often it is called;
comprehensions, lambdas and generator expressions do not count. Run it with ``python -m benchmarks.road``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import expmech as em

PACKAGE = str(Path(em.__file__).parent)
GOALS = {
    "command line, mean of a CSV": (110, 28, 16),
    "PrivateMean.fit": (60, 15, None),
    "a loss of one's own": (130, 28, None),
    "PrivateLogisticRegression.fit": (130, 25, None),
    "nine joint quantiles": (150, 30, None),
}


def walk(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Return how many functions, files and classes of the package a warm call passes."""
    call()
    functions: set[Any] = set()
    classes: set[type] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_name == "__init__" and "self" in frame.f_locals:
            kind = type(frame.f_locals["self"])
            if kind.__module__.startswith("expmech"):
                classes.add(kind)
        if code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            functions.add(code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(functions), len({code.co_filename for code in functions}), len(classes)


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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            print(name, *walk(call), "goal", *GOALS[name])


if __name__ == "__main__":
    main()
