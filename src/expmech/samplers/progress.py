"""Who is told how far a draw is: only of chains whose number of steps is public."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watch = Callable[[float], None]
"""Called with the share of the public steps that are done."""

_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Tell ``watch`` how far draws inside are."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def current_watch() -> Watch | None:
    """Return who is to be told."""
    return _WATCH.get()
