"""What is done to a draw before it leaves: a public map, named in the certificate.

A map that depends on public numbers only is post-processing, so it costs no epsilon. It stands in
the certificate, so that a number of another kind cannot pass for what was certified.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError
from expmech.extensions import Registry

_TOLERANCE = 1e-9  # of a number's size: what going back through a map may lose


class Finish(ABC):
    """A public map from a point of the domain to what a user is given."""

    name: str

    @abstractmethod
    def apply(self, value: Any) -> Any:
        """Return what leaves."""

    @abstractmethod
    def back(self, released: Any) -> NDArray[Any] | None:
        """Return the point that ``released`` came from; None where nothing can be told from it."""

    def describe(self) -> dict[str, Any]:
        """Return the map for a certificate; :meth:`rebuild` takes it."""
        return {"map": self.name}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the map that a certificate names."""
        return cls(**{name: value for name, value in described.items() if name != "map"})


@dataclass(frozen=True)
class Unchanged(Finish):
    """The point itself."""

    name = "none"

    def apply(self, value: Any) -> Any:
        """Return the value."""
        return value

    def back(self, released: Any) -> NDArray[Any] | None:
        """Return the numbers; a label says nothing about where it stands in a list."""
        values = np.asarray(released)
        return np.atleast_1d(values).astype(np.float64) if values.dtype.kind in "fiu" else None


@dataclass(frozen=True)
class OneNumber(Finish):
    """The only coordinate, as a number."""

    name = "one number"

    def apply(self, value: Any) -> float:
        """Return the coordinate."""
        return float(value[0])

    def back(self, released: Any) -> NDArray[Any]:
        """Return the point of one coordinate."""
        return np.array([float(released)])


@dataclass(frozen=True, kw_only=True)
class Coefficients(Finish):
    """Intercept and slopes in the units of the data, from coefficients of scaled columns.

    ``slope_j = scales_j y_j`` and ``intercept = shift + scales_0 y_0 - sum_j slope_j centers_j``,
    by name where ``names`` are given.
    """

    name = "coefficients"
    scales: tuple[float, ...]
    centers: tuple[float, ...]
    shift: float = 0.0
    names: tuple[str, ...] | None = None

    def apply(self, value: Any) -> Any:
        """Return the intercept and the slopes."""
        scaled = np.asarray(self.scales) * np.asarray(value)
        slopes = scaled[1:]
        intercept = self.shift + scaled[0] - float(slopes @ np.asarray(self.centers))
        coefficients = np.array([intercept, *slopes])
        if self.names is None:
            return coefficients
        return dict(zip(("intercept", *self.names), coefficients.tolist(), strict=True))

    def back(self, released: Any) -> NDArray[Any]:
        """Return the coefficients of the scaled columns."""
        if isinstance(released, Mapping):
            released = [released[name] for name in ("intercept", *(self.names or ()))]
        numbers = np.asarray(released, dtype=np.float64)
        slopes = numbers[1:]
        first = numbers[0] - self.shift + float(slopes @ np.asarray(self.centers))
        return np.asarray(np.array([first, *slopes]) / np.asarray(self.scales))

    def describe(self) -> dict[str, Any]:
        """Return the map for a certificate."""
        return super().describe() | {
            "scales": list(self.scales),
            "centers": list(self.centers),
            "shift": self.shift,
            "names": None if self.names is None else list(self.names),
        }

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the map that a certificate names."""
        names = described["names"]
        return cls(
            scales=tuple(described["scales"]),
            centers=tuple(described["centers"]),
            shift=float(described["shift"]),
            names=None if names is None else tuple(names),
        )


FINISHES: Registry[type[Finish]] = Registry(
    "expmech.finishes", [(kind.name, kind) for kind in (Unchanged, OneNumber, Coefficients)]
)


def rebuild_finish(described: Mapping[str, Any]) -> Finish:
    """Return the map that a certificate names; raise where there is none of that name."""
    kind = FINISHES.find(str(described["map"]))
    if kind is None:
        raise ParameterError(f"`finish` must name a known map; got {described['map']!r}.")
    return kind.rebuild(described)


def within(point: NDArray[np.float64], lower: Any, upper: Any) -> bool:
    """Tell whether a point lies between the bounds, up to what a map may lose."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if point.shape != low.shape:
        return False
    spare = _TOLERANCE * (1.0 + np.maximum(np.abs(low), np.abs(high)))
    return bool(((point >= low - spare) & (point <= high + spare)).all())
