"""Pictures as SVG: a canvas, two scales, axes and dots. Colours are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from expmech.core.markup import escape, round_ticks

LINE, LETTER = 18.0, 7.0  # pixels that a line and a letter of text take
_WIDEST = 6  # letters that have room beside a vertical axis


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A number's place in pixels, along a line or by its logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """Return where a number is; beyond the ends it is at the end."""
        inside = min(max(value, self.low), self.high)
        share = (self._coordinate(inside) - self._coordinate(self.low)) / (
            self._coordinate(self.high) - self._coordinate(self.low)
        )
        return self.start + (self.end - self.start) * share

    def _coordinate(self, value: float) -> float:
        return math.log(value) if self.log else value

    def ticks(self, apart: float = 50.0) -> list[float]:
        """Return round numbers that have room: powers of ten ``apart`` on a logarithmic scale."""
        room = abs(self.end - self.start)
        if not self.log:
            return round_ticks(self.low, self.high, parts=max(2.0, room / 90.0))
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high))
        every = max(1, math.ceil((last - first + 1) * apart / room))
        return [10.0**power for power in range(first, last + 1, every)]


@dataclass
class Canvas:
    """What is drawn, piece by piece; text is escaped."""

    width: float
    height: float
    label: str
    pieces: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a line."""
        self.pieces.append(
            f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" fill="none"/>'
        )

    def path(self, points: Iterable[tuple[float, float]], kind: str, *, closed: bool) -> None:
        """Draw a curve through points, or the area that it bounds."""
        drawn = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        if drawn:
            fill = "" if closed else ' fill="none"'
            self.pieces.append(f'<path class="{kind}" d="M{drawn}{"Z" if closed else ""}"{fill}/>')

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Draw a rectangle."""
        self.pieces.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}"'
            f' height="{max(0.0, height):.1f}"/>'
        )

    def dot(self, x: float, y: float, kind: str, radius: float = 5.0) -> None:
        """Draw a dot."""
        self.pieces.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>')

    def diamond(self, x: float, y: float, kind: str) -> None:
        """Draw a diamond, which differs from a dot also without colour."""
        corners = ((x, y - 5.0), (x + 5.0, y), (x, y + 5.0), (x - 5.0, y))
        self.path(corners, kind, closed=True)

    def text(self, x: float, y: float, text: str, kind: str = "label", at: str = "start") -> None:
        """Write a text; ``at`` says which part of it is at x."""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{at}"'
        self.pieces.append(f'<text class="{kind}" {place}>{escape(text)}</text>')

    def axis(self, scale: Scale, y: float, title: str) -> None:
        """Draw a horizontal axis with its unit."""
        self.line(scale.start, y, scale.end, y, "axis")
        for value in scale.ticks():
            x = scale.place(value)
            self.line(x, y, x, y + 5.0, "axis")
            self.text(x, y + 19.0, show(value), "tick", "middle")
        half = LETTER * len(title) / 2.0
        middle = min(max((scale.start + scale.end) / 2.0, half), self.width - half)
        self.text(middle, y + 38.0, title, "tick", "middle")

    def upright(self, scale: Scale, x: float, title: str) -> None:
        """Draw a vertical axis with its unit above it."""
        self.line(x, scale.start, x, scale.end, "axis")
        for value in scale.ticks(apart=20.0):
            y = scale.place(value)
            self.line(x - 5.0, y, x, y, "axis")
            label = show(value) if len(show(value)) <= _WIDEST else f"{value:.0e}"
            self.text(x - 8.0, y + 4.0, label, "tick", "end")
        self.text(x - 40.0, scale.end - 10.0, title, "tick")

    def legend(self, x: float, y: float, entries: Sequence[tuple[str, str]]) -> float:
        """Draw what each mark means, broken into lines where there is no room; return the foot."""
        left = x
        for kind, label in entries:
            needed = 34.0 + LETTER * len(label)
            if left + needed > self.width and left > x:
                left, y = x, y + LINE
            self.mark(kind, left + 8.0, y - 4.0)
            self.text(left + 20.0, y, label, "tick")
            left += needed
        return y

    def mark(self, kind: str, x: float, y: float) -> None:
        """Draw the mark that a class of the style sheet begins with."""
        if kind.startswith("dot"):
            self.dot(x, y, kind, 4.5)
        elif kind.startswith("diamond"):
            self.diamond(x, y, kind)
        elif kind.startswith("line"):
            self.line(x - 7.0, y, x + 7.0, y, kind)
        else:
            self.box(x - 6.0, y - 5.0, 12.0, 10.0, kind)

    def svg(self) -> str:
        """Return the picture; it needs a style sheet."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f}'
            f' {self.height:.0f}" width="{self.width:.0f}" height="{self.height:.0f}" role="img"'
            f' aria-label="{escape(self.label)}">{"".join(self.pieces)}</svg>'
        )


def heaps(places: Sequence[float], diameter: float) -> list[tuple[float, float]]:
    """Return where dots go that pile up over a line: their places, and heights above it."""
    heights: dict[int, int] = {}
    dots = []
    for place in sorted(places):
        pile = round(place / diameter)
        level = heights.get(pile, 0)
        heights[pile] = level + 1
        dots.append((pile * diameter, (level + 0.5) * diameter))
    return dots


def window(numbers: Sequence[float], *, least: float = 0.0) -> tuple[float, float]:
    """Return a round range that holds all numbers, the same for numbers that hardly differ."""
    low, high = min(numbers), max(numbers)
    rough = max((high - low) * 1.1, least, abs(high) * 1e-6, 1e-9)
    power = 10.0 ** math.floor(math.log10(rough))
    width = next(power * k for k in (1.0, 2.0, 5.0, 10.0) if power * k >= rough)
    middle = round((low + high) / 2.0 / (width / 10.0)) * width / 10.0
    start = middle - width / 2.0
    while low < start:
        start -= width / 10.0
    while high > start + width:
        start += width / 10.0
    if low < start:  # both ends do not fit by a little
        start, width = low, high - low
    return start, start + width


def show(value: float) -> str:
    """Return the text of a tick."""
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.6g}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
