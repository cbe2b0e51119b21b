"""Text of the command line read as numbers and lists."""

from __future__ import annotations

from expmech.errors import ParameterError


def parse_bounds(text: str) -> tuple[float, float]:
    """Read ``LOWER,UPPER``."""
    wrong = ParameterError(f"`--bounds` must be two numbers LOWER,UPPER; got {text!r}.")
    parts = text.split(",")
    if len(parts) != 2:
        raise wrong
    try:
        return float(parts[0]), float(parts[1])
    except ValueError:
        raise wrong from None


def split(text: str) -> list[str]:
    """Read a public list separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_numbers(text: str, name: str) -> tuple[float, ...]:
    """Read public numbers separated by commas."""
    try:
        return tuple(map(float, split(text)))
    except ValueError:
        raise ParameterError(f"`{name}` must hold numbers; got {text!r}.") from None
