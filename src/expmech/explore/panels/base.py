"""A panel of the page: one message, one picture, a few plain sentences, the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

NARROWEST, WIDEST = 260, 960
"""Pixels that a picture may be wide."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What the page shows of one thing.

    ``title`` is the message, ``numbers`` what the picture is drawn from, for machines.
    """

    title: str
    figure: str = ""
    sentences: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    folded: tuple[tuple[str, tuple[str, ...]], ...] = ()
    code: tuple[tuple[str, str], ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the panel as plain values."""
        return asdict(self)


def quoted(number: float) -> str:
    """Return a number as a sentence has it: three digits, no powers of ten where avoidable."""
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.3g}" if abs(number) >= 1e-4 else f"{number:.1e}"


def percent(share: float) -> str:
    """Return a share in percent; never 0 or 100 where it is not."""
    if 0.0 < share < 0.001 or 0.999 < share < 1.0:
        return "below 0.1%" if share < 0.5 else "above 99.9%"
    return f"{100.0 * share:.3g}%"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
