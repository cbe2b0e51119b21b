"""Small pictures of released numbers, as SVG that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from expmech.markup import BLUE, GREY, ORANGE, escape, round_ticks

_WIDTH, _LINE, _LEFT, _RIGHT, _TOP, _FOOT = 480.0, 28.0, 160.0, 30.0, 8.0, 32.0
_LONGEST = 18  # characters of a name beside a line
_MOST = 60  # lines of a picture
Place = Callable[[float], float]


@dataclass(frozen=True, kw_only=True)
class Number:
    """A released number by its name, with the ends of its interval where there is one."""

    name: str
    value: float
    lower: float | None = None
    upper: float | None = None


def picture(numbers: Sequence[Number], *, bars: bool, label: str) -> str:
    """Return a line a number: a dot, or a bar from zero, and its interval; nothing if one is bare.

    The table beside the picture says the same in text.
    """
    bare = len(numbers) < 2 and all(one.lower is None for one in numbers)
    if not numbers or bare or len(numbers) > _MOST:
        return ""
    low, high = _span(numbers, bars=bars)
    inner = _WIDTH - _LEFT - _RIGHT

    def place(value: float) -> float:
        return _LEFT + inner * (value - low) / (high - low)

    parts = []
    for k, one in enumerate(numbers):
        middle = _TOP + _LINE * (k + 0.5)
        parts.append(_line(one, middle, place, bars=bars))
    bottom = _TOP + _LINE * len(numbers)
    parts.append(_axis(low, high, bottom, place))
    height = bottom + _FOOT
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" width="100%"'
        f' style="max-width:{_WIDTH:g}px" font-family="sans-serif" font-size="14">'
        f"<title>{escape(label)}</title>{''.join(parts)}</svg>"
    )


def _span(numbers: Sequence[Number], *, bars: bool) -> tuple[float, float]:
    ends = [0.0] if bars else []
    for one in numbers:
        ends += [one.value, *(end for end in (one.lower, one.upper) if end is not None)]
    low, high = min(ends), max(ends)
    if low == high:
        return low - 1.0, high + 1.0
    room = 0.04 * (high - low)
    return (low if bars and low == 0.0 else low - room), high + room


def _line(one: Number, y: float, place: Place, *, bars: bool) -> str:
    x = place(one.value)
    name = one.name if len(one.name) <= _LONGEST else one.name[: _LONGEST - 1] + "\u2026"
    parts = [f'<text x="{_LEFT - 10:g}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>']
    if bars:
        zero = place(0.0)
        left, width = min(zero, x), abs(x - zero)
        parts.append(
            f'<rect x="{left:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16" fill="{BLUE}"'
            ' opacity=".55"/>'
        )
    if one.lower is not None and one.upper is not None:
        ends = [place(one.lower), place(one.upper)]
        parts.append(
            f'<path d="M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}M{ends[0]:.1f} {y - 5:.1f}v10'
            f'M{ends[1]:.1f} {y - 5:.1f}v10" stroke="{ORANGE}" stroke-width="2" fill="none"/>'
        )
    if not bars:
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{BLUE}"/>')
    return "".join(parts)


def _axis(low: float, high: float, y: float, place: Place) -> str:
    parts = [f'<path d="M{_LEFT:g} {y:.1f}H{_WIDTH - _RIGHT:g}" stroke="{GREY}"/>']
    for value in round_ticks(low, high):
        x = place(value)
        parts.append(
            f'<path d="M{x:.1f} {y:.1f}v5" stroke="{GREY}"/><text x="{x:.1f}" y="{y + 20:.1f}"'
            f' text-anchor="middle" fill="{GREY}">{value:,.10g}</text>'
        )
    return "".join(parts)
