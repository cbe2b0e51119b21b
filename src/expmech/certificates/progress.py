"""A draw that is forecast to take long says so, to whoever sits at a terminal or a notebook.

How far a draw is may be shown where its number of steps is public, and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

from expmech.certificates.plan import show_seconds

Watch = Callable[[float], None]
"""Called with the share of the public steps that are done."""

Progress = Callable[[int], None]
"""Called with the number of each pass as it starts. That number is confidential, as time is."""

_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Call ``watch`` with the progress of draws inside."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def current_watch() -> Watch | None:
    """Return the function to call with the progress of a draw, or None."""
    return _WATCH.get()


def silent(number: int) -> None:
    """Show nothing of a pass."""


LONG = 2.0
"""Seconds, by forecast, from which a draw is announced."""

_LEAST = 0.01  # share of the steps between two updates


def announcement(seconds: float) -> str:
    """Return what is said about a long draw; public."""
    return f"drawing, about {show_seconds(seconds)} by a public forecast"


NO_PROGRESS = "; no progress is shown, as it would depend on the data"


@contextmanager
def shown(forecast_seconds: Callable[[], float], *, public_steps: bool) -> Iterator[None]:
    """Show a long draw while it runs; the forecast is made only where somebody looks."""
    seen = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not seen or (seconds := forecast_seconds()) < LONG:
        yield
        return
    print(announcement(seconds) + ("" if public_steps else NO_PROGRESS), file=sys.stderr)
    with _bar() if public_steps else nullcontext():
        yield


@contextmanager
def _bar() -> Iterator[None]:
    """Show a bar of public steps, where Rich is installed."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield
        return
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task, displayed = progress.add_task("steps", total=1.0), 0.0

        def watch(share: float) -> None:
            nonlocal displayed
            if share - displayed >= _LEAST or share >= 1.0:
                displayed = share
                progress.update(task, completed=share)

        with watched(watch):
            yield
