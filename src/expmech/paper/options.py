"""What a user may change about a study: grids, k, alpha, numbers of runs, Beta laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from expmech.core.errors import ParameterError

_OWNER = "expmech paper"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The size of a run and the grids of its studies; None is the study's own choice.

    Parameters
    ----------
    quick
        Smaller grids and fewer draws, where nothing else is said.
    n, epsilon, d
        Sizes of the data, budgets, dimensions.
    k
        Mixture weights of the atom.
    alpha
        Parameter of the Laplace proposals; the paper's n epsilon / 2 by default.
    beta
        Beta laws of the mean, as pairs (a, b).
    points
        Numbers of public points.
    runs
        Draws a cell.
    replications
        Random discretisations, and data sets where they are redrawn.
    most
        Cells of Figure 2 whose computed mean count is larger are not drawn.
    """

    quick: bool = False
    n: tuple[int, ...] | None = None
    epsilon: tuple[float, ...] | None = None
    d: tuple[int, ...] | None = None
    k: tuple[float, ...] | None = None
    alpha: float | None = None
    beta: tuple[tuple[float, float], ...] | None = None
    points: tuple[int, ...] | None = None
    runs: int | None = None
    replications: int | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        for name, low, high in (
            ("n", 1, 10**6),
            ("epsilon", 1e-6, 1e3),
            ("d", 1, 50),
            ("k", 1e-3, 1 - 1e-3),
            ("points", 1, 10**6),
        ):
            values = getattr(self, name)
            if values is not None and (not values or not all(low <= x <= high for x in values)):
                raise ParameterError(
                    f"`{name}` of {_OWNER} must be numbers in {low:g}..{high:g}; got {values!r}."
                )
        for name in ("alpha", "runs", "replications", "most"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ParameterError(f"`{name}` of {_OWNER} must be positive; got {value!r}.")
        if self.beta is not None and not all(a > 0 and b > 0 for a, b in self.beta):
            raise ParameterError(
                f"`beta` of {_OWNER} must be pairs of positive numbers; got {self.beta!r}."
            )

    @property
    def given(self) -> dict[str, Any]:
        """What the user said, apart from ``quick``."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: x for name, x in named.items() if name != "quick" and x is not None}

    def validate(self, which: str, takes: set[str]) -> None:
        """Raise when something was asked of studies that none of them varies."""
        for name in self.given:
            if name not in takes:
                known = ", ".join(sorted(takes)) or "nothing"
                raise ParameterError(f"`{name}` is not varied by {which}, which takes {known}.")

    @classmethod
    def parse(cls, *, quick: bool, beta: str | None, **given: Any) -> Options:
        """Return the options from what was typed: lists are texts with commas."""
        kinds = {"n": int, "epsilon": float, "d": int, "k": float, "points": int}
        for name, kind in kinds.items():
            given[name] = parse_numbers(given[name], name, kind)
        return cls(quick=quick, beta=parse_beta(beta), **given)


def parse_numbers(text: str | None, name: str, kind: Callable[[str], Any]) -> Any:
    """Return the numbers of a comma-separated list, or None."""
    if text is None:
        return None
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"`{name}` of {_OWNER} must be numbers separated by commas; got {text!r}."
        ) from None


def parse_beta(text: str | None) -> tuple[tuple[float, float], ...] | None:
    """Return Beta laws: "0.1" stands for Beta(.1,.1), "2:5" for Beta(2,5)."""
    if text is None:
        return None
    pairs = []
    for part in text.split(","):
        numbers = parse_numbers(part.replace(":", ","), "beta", float)
        if len(numbers) > 2:
            raise ParameterError(f"`beta` of {_OWNER} must be like 1,10 or 2:5; got {text!r}.")
        pairs.append((numbers[0], numbers[-1]))
    return tuple(pairs)
