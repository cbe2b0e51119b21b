"""What is done to a draw before it leaves: a public map, named in the certificate.

A map that depends on public numbers only is post-processing, so it costs no epsilon. It stands in
the certificate, so that a number of another kind cannot pass for what was certified.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError
from expmech.extensions import Registry

_ROUNDED = 2.0**-50  # of the numbers met: what a sum in float64 may lose per term, there and back
_TOLERANCE = 1e-9  # of a number's size: what going back through a map may lose


class Finish(ABC):
    """A public map from a point of the domain to what a user is given.

    ``name`` is what certificates call it.
    """

    name: str

    @abstractmethod
    def apply(self, value: Any) -> Any:
        """Return what leaves."""

    @abstractmethod
    def back(self, released: Any) -> NDArray[Any] | None:
        """Return the point that ``released`` came from; None for a label.

        Raise where it holds anything but finite numbers in the shape of the map.
        """

    def lost(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far roundings on the way and back may have moved each entry: here not."""
        return np.zeros_like(point)

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
        if released is None or isinstance(released, Mapping):
            raise ParameterError("There must be numbers, or a label.")
        several = isinstance(released, (list, np.ndarray))
        return numbers(released) if several or _is_number(released) else None


@dataclass(frozen=True)
class OneNumber(Finish):
    """The only coordinate, as a number."""

    name = "one number"

    def apply(self, value: Any) -> float | int:
        """Return the coordinate; a count stays a whole number."""
        number: float | int = np.asarray(value)[0].item()
        return number

    def back(self, released: Any) -> NDArray[Any]:
        """Return the point of one coordinate."""
        if not _is_number(released):
            raise ParameterError("There must be one number.")
        return numbers([released])


@dataclass(frozen=True, kw_only=True)
class ByName(Finish):
    """Numbers by the names of columns, cells or levels; counts stay whole.

    Nothing is sorted: quantiles are drawn in order.
    """

    name = "by name"
    labels: tuple[str, ...]

    def apply(self, value: Any) -> dict[str, float | int]:
        """Return one number a name."""
        return dict(zip(self.labels, np.asarray(value).tolist(), strict=True))

    def back(self, released: Any) -> NDArray[Any]:
        """Return the numbers; raise unless there is one for each name and no other."""
        return numbers(_entries(released, self.labels), dimensions=1)

    def describe(self) -> dict[str, Any]:
        """Return the map for a certificate."""
        return super().describe() | {"labels": list(self.labels)}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the map that a certificate names."""
        return cls(labels=tuple(map(str, described["labels"])))


@dataclass(frozen=True)
class Listed(Finish):
    """Different labels, the best first."""

    name = "list"

    def apply(self, value: Any) -> list[Any]:
        """Return the labels as a list."""
        labels: list[Any] = np.asarray(value).tolist()
        return labels

    def back(self, released: Any) -> NDArray[Any]:
        """Return the places, as labels do not tell positions; raise where one comes twice."""
        scalar = (str, bool, int, float)  # whatever the list of candidates holds, as JSON has it
        if not isinstance(released, list) or not all(isinstance(one, scalar) for one in released):
            raise ParameterError("A list of the best must hold labels.")
        numbers([one for one in released if _is_number(one)])
        if len(set(released)) < len(released):
            raise ParameterError("A list of the best must hold different labels.")
        return np.arange(len(released), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Coefficients(Finish):
    """Intercept and slopes in the units of the data, from coefficients of scaled columns.

    ``slope_j = scales_j y_j`` and ``intercept = shift + scales_0 y_0 - sum_j slope_j centers_j``,
    by ``names`` where they are given; for each row of a point that has several, by ``classes``.
    """

    name = "coefficients"
    scales: tuple[float, ...]
    centers: tuple[float, ...]
    shift: float = 0.0
    names: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None

    def apply(self, value: Any) -> Any:
        """Return the intercept and the slopes, of each class where there are several."""
        scaled = np.asarray(self.scales) * np.asarray(value)
        slopes = scaled[..., 1:]
        intercepts = self.shift + scaled[..., :1] - (slopes @ np.asarray(self.centers))[..., None]
        return self._named(np.concatenate([intercepts, slopes], axis=-1))

    def _named(self, found: NDArray[Any]) -> Any:
        if self.names is None:
            return found
        if found.ndim == 2:
            return dict(zip(self.classes or (), map(self._named, found), strict=True))
        return dict(zip(("intercept", *self.names), found.tolist(), strict=True))

    def back(self, released: Any) -> NDArray[Any]:
        """Return the coefficients of the scaled columns."""
        found = numbers(self._unnamed(released))
        slopes = found[..., 1:]
        first = found[..., :1] - self.shift + (slopes @ np.asarray(self.centers))[..., None]
        return np.asarray(np.concatenate([first, slopes], axis=-1) / np.asarray(self.scales))

    def lost(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a few float64 steps of each entry; of the first also of what was subtracted."""
        scaled = np.abs(np.asarray(self.scales) * point)
        about = scaled[..., 1:] @ np.abs(np.asarray(self.centers))
        scaled[..., 0] += abs(self.shift) + 2.0 * about
        return np.asarray(_ROUNDED * len(self.scales) * scaled / np.abs(self.scales))

    def _unnamed(self, released: Any) -> Any:
        if not isinstance(released, Mapping):
            return released
        if self.classes and isinstance(released.get(self.classes[0]), Mapping):
            return [self._unnamed(one) for one in _entries(released, self.classes)]
        return _entries(released, ("intercept", *(self.names or ())))

    def describe(self) -> dict[str, Any]:
        """Return the map for a certificate."""
        told: dict[str, Any] = {"scales": list(self.scales), "centers": list(self.centers)}
        told |= {"shift": self.shift, "names": None if self.names is None else list(self.names)}
        told |= {} if self.classes is None else {"classes": list(self.classes)}
        return super().describe() | told

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the map that a certificate names."""
        lists = {name: tuple(one) for name, one in described.items() if isinstance(one, list)}
        found = cls(shift=float(described["shift"]), **lists)
        entries = numbers([*found.scales, *found.centers])
        names = (*(found.names or ()), *(found.classes or ()))
        many = len(found.scales) == len(found.centers) + 1 == len(found.names or ()) + 1
        if not (many or found.names is None) or len(entries) != 2 * len(found.scales) - 1:
            raise ParameterError("There must be one scale for each column and the intercept.")
        if not all(isinstance(one, str) for one in names) or min(found.scales) <= 0.0:
            raise ParameterError("Names must be texts, and scales positive.")
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Components:
    """Directions, one a row, and noisy mean squares of the rows along them.

    ``variances`` and ``total_variance`` are None unless they were asked for.
    """

    directions: NDArray[np.float64]
    variances: NDArray[np.float64] | None = None
    total_variance: float | None = None


@dataclass(frozen=True, kw_only=True)
class Directions(Finish):
    """Unit vectors of ``dimension`` entries each, and the variances along them if asked for.

    One long point holds the directions one after the other, their variances and the total. They are
    released by name where ``names`` of the columns are given.
    """

    name = "directions"
    components: int
    dimension: int
    variances: bool = False
    names: tuple[str, ...] | None = None

    def apply(self, value: Any) -> Any:
        """Return :class:`Components`, or a mapping by name."""
        point = np.asarray(value, dtype=np.float64)
        directions = point[: self._entries].reshape(self.components, self.dimension)
        rest = point[self._entries :]
        if self.names is not None:
            return self._by_name(directions.tolist(), rest.tolist())
        if not self.variances:
            return Components(directions=directions)
        return Components(
            directions=directions, variances=rest[:-1], total_variance=float(rest[-1])
        )

    def back(self, released: Any) -> NDArray[Any]:
        """Return the long point."""
        if isinstance(released, Mapping):
            return self._from_names(released)
        found = [*np.ravel(released.directions)]
        if self.variances:
            found += [*released.variances, released.total_variance]
        return numbers(found, dimensions=1)

    def describe(self) -> dict[str, Any]:
        """Return the map for a certificate."""
        return super().describe() | {
            "components": self.components,
            "dimension": self.dimension,
            "variances": self.variances,
            "names": None if self.names is None else list(self.names),
        }

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the map that a certificate names."""
        names = described["names"]
        if names is not None and len(names) != described["dimension"]:
            raise ParameterError("There must be one name for each column.")
        return cls(
            components=int(described["components"]),
            dimension=int(described["dimension"]),
            variances=bool(described["variances"]),
            names=None if names is None else tuple(map(str, names)),
        )

    @property
    def _entries(self) -> int:
        return self.components * self.dimension

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(f"component {k + 1}" for k in range(self.components))

    def _by_name(self, directions: list[list[float]], rest: list[float]) -> dict[str, Any]:
        columns = self.names or ()
        found: dict[str, Any] = {
            label: dict(zip(columns, line, strict=True))
            for label, line in zip(self._labels, directions, strict=True)
        }
        if self.variances:
            found["variance"] = dict(zip((*self._labels, "total"), rest, strict=True))
        return found

    def _from_names(self, released: Mapping[str, Any]) -> NDArray[np.float64]:
        names = (*self._labels, "variance") if self.variances else self._labels
        lines = _entries(released, names)
        found = [
            one for line in lines[: self.components] for one in _entries(line, self.names or ())
        ]
        if self.variances:
            found += _entries(lines[-1], (*self._labels, "total"))
        return numbers(found, dimensions=1)


FINISHES: Registry[type[Finish]] = Registry(
    "expmech.finishes",
    [
        (kind.name, kind)
        for kind in (Unchanged, OneNumber, ByName, Listed, Coefficients, Directions)
    ],
)


def rebuild_finish(described: Mapping[str, Any]) -> Finish:
    """Return the map that a certificate names; raise where there is none of that name."""
    kind = FINISHES.find(str(described["map"]))
    if kind is None:
        raise ParameterError(f"`finish` must name a known map; got {described['map']!r}.")
    return kind.rebuild(described)


def numbers(values: Any, *, dimensions: int | None = None) -> NDArray[np.float64]:
    """Return finite numbers as float64; raise where one is missing, infinite, text or a truth."""
    found = np.asarray(values)
    if found.dtype.kind == "O":  # whole numbers beyond int64, or what is none
        found = np.asarray(values, dtype=np.float64) if _all_numbers(values) else found
    if not (found.dtype.kind in "fiu" and _all_numbers(values) and np.isfinite(found).all()):
        raise ParameterError("A released value must hold finite numbers.")
    if dimensions is not None and found.ndim != dimensions:
        raise ParameterError("A released value must have the shape that its certificate says.")
    return found.astype(np.float64)


def _all_numbers(values: Any) -> bool:
    if isinstance(values, (list, tuple)):
        return all(map(_all_numbers, values))
    return isinstance(values, np.ndarray) or _is_number(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _entries(released: Any, names: Sequence[str]) -> list[Any]:
    """Return what is released under each name; raise unless there are these names and no other."""
    if not isinstance(released, Mapping) or set(released) != set(names):
        raise ParameterError("There must be one entry for each name of the certificate.")
    return [released[name] for name in names]


def within(point: NDArray[np.float64], lower: Any, upper: Any) -> bool:
    """Tell whether a point lies between the bounds, up to what a map may lose."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if point.shape != low.shape:
        return False
    spare = _TOLERANCE * (1.0 + np.maximum(np.abs(low), np.abs(high)))
    return bool(((point >= low - spare) & (point <= high + spare)).all())
