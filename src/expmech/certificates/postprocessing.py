"""What is done to a draw before it leaves: a public map, named in the certificate.

A map that depends on public numbers only is post-processing, so it costs no epsilon. It stands in
the certificate, so that a number of another kind cannot pass for what was certified.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from expmech.core.arrays import Array, Floats
from expmech.core.dates import date_text, days_of_text
from expmech.core.errors import ParameterError
from expmech.core.registry import Registry

_ROUNDED = 2.0**-50  # of the numbers met: what a sum in float64 may lose per term, there and back
_MICROSECOND = 2.0**-36  # of a day, and a little more
_TOLERANCE = 1e-9  # of a number's size: what going back through a map may lose


class Postprocessing(ABC):
    """A public map from a point of the domain to what a user is given.

    Attributes
    ----------
    name : str
        What certificates call it.
    """

    name: str

    @abstractmethod
    def apply(self, value: Any) -> Any:
        """Return what is released, from a drawn point."""

    @abstractmethod
    def back(self, released: Any) -> Array | None:
        """Return the point that ``released`` came from; None for a label.

        Raise where it holds anything but finite numbers in the shape of the map.
        """

    def apply_width(self, width: Any) -> Any:
        """Return a width, such as the scale of the noise, in the shape of the released value."""
        return self.apply(width)

    def back_width(self, released: Any) -> Array | None:
        """Return the numbers that :meth:`apply_width` gave a shape."""
        return self.back(released)

    def lost(self, point: Floats) -> Floats:
        """Return how far roundings on the way and back may have moved each entry: here none."""
        return np.zeros_like(point)

    def describe(self) -> dict[str, Any]:
        """Return the map for a certificate; :meth:`rebuild` takes it."""
        return {"map": self.name}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        """Return the map that a certificate names."""
        return cls(**{name: value for name, value in described.items() if name != "map"})


@dataclass(frozen=True)
class Unchanged(Postprocessing):
    """Release the point itself."""

    name = "none"

    def apply(self, value: Any) -> Any:
        return value

    def back(self, released: Any) -> Array | None:
        """Return the numbers; a label says nothing about where it stands in a list."""
        if released is None or isinstance(released, Mapping):
            raise ParameterError("There must be numbers, or a label.")
        several = isinstance(released, (list, np.ndarray))
        return numbers(released) if several or _is_number(released) else None


@dataclass(frozen=True)
class OneNumber(Postprocessing):
    """Release the only coordinate, as a number; a count stays a whole number."""

    name = "one number"

    def apply(self, value: Any) -> float | int:
        number: float | int = np.asarray(value)[0].item()
        return number

    def back(self, released: Any) -> Array:
        if not _is_number(released):
            raise ParameterError("There must be one number.")
        return numbers([released])


@dataclass(frozen=True, kw_only=True)
class ByName(Postprocessing):
    """Release numbers by the names of columns, cells or levels; counts stay whole.

    Nothing is sorted: quantiles are drawn in order.
    """

    name = "by name"
    labels: tuple[str, ...]

    def apply(self, value: Any) -> dict[str, float | int]:
        return dict(zip(self.labels, np.asarray(value).tolist(), strict=True))

    def back(self, released: Any) -> Array:
        return numbers(_entries(released, self.labels), dimensions=1)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"labels": list(self.labels)}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        return cls(labels=tuple(map(str, described["labels"])))


@dataclass(frozen=True, kw_only=True)
class Dates(Postprocessing):
    """Release days since 1970-01-01 as ISO dates; a part of a day as a time, to the microsecond."""

    name = "dates"
    shape: Postprocessing

    def apply(self, value: Any) -> Any:
        return _each(date_text, self.shape.apply(value))

    def back(self, released: Any) -> Array | None:
        return self.shape.back(_each(days_of_text, released))

    def apply_width(self, width: Any) -> Any:
        """Return a number of days, which is no date."""
        return self.shape.apply(width)

    def back_width(self, released: Any) -> Array | None:
        return self.shape.back(released)

    def lost(self, point: Floats) -> Floats:
        """Return a microsecond, and a few float64 steps of each entry."""
        return np.asarray(_MICROSECOND + _ROUNDED * np.abs(point))

    def describe(self) -> dict[str, Any]:
        shape = self.shape.describe()
        return shape | {"map": self.name, "shape": shape["map"]}

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        shape = {name: entry for name, entry in described.items() if name != "shape"}
        kinds = [kind.name for kind in (Unchanged, OneNumber, ByName)]
        # A map within a map could nest without end: a certificate is anybody's text.
        if described["shape"] not in kinds:
            raise ParameterError(f"Dates must have one of the shapes {', '.join(kinds)}.")
        return cls(shape=rebuild_postprocessing(shape | {"map": described["shape"]}))


def _each(convert: Callable[[Any], Any], value: Any) -> Any:
    """Return a value, a list or a mapping with each entry converted."""
    if isinstance(value, Mapping):
        return {name: convert(entry) for name, entry in value.items()}
    several = isinstance(value, (list, np.ndarray))
    return [convert(entry) for entry in value] if several else convert(value)


@dataclass(frozen=True)
class Listed(Postprocessing):
    """Release different labels as a list, the best first."""

    name = "list"

    def apply(self, value: Any) -> list[Any]:
        labels: list[Any] = np.asarray(value).tolist()
        return labels

    def back(self, released: Any) -> Array:
        """Return the places, as labels do not tell positions; raise where one comes twice."""
        scalar = (str, bool, int, float)  # whatever the list of candidates holds, as JSON has it
        if not isinstance(released, list) or not all(isinstance(item, scalar) for item in released):
            raise ParameterError("A list of the best must hold labels.")
        numbers([item for item in released if _is_number(item)])
        if len(set(released)) < len(released):
            raise ParameterError("A list of the best must hold different labels.")
        return np.arange(len(released), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class ShownGroups(Postprocessing):
    """Release counts by the keys that were shown, the largest first."""

    name = "shown groups"
    most: int | None = None

    def apply(self, value: Any) -> dict[str, float | int]:
        return dict(value[: self.most])

    def back(self, released: Any) -> Array:
        """Return the pairs of key and number, one per row."""
        if not isinstance(released, Mapping) or not all(isinstance(key, str) for key in released):
            raise ParameterError("There must be numbers by key.")
        if self.most is not None and len(released) > self.most:
            raise ParameterError("There must be no more keys than the certificate says.")
        numbers([*released.values(), 0])
        pairs = np.empty((len(released), 2), dtype=object)
        for place, key in enumerate(sorted(released)):
            pairs[place] = key, released[key]
        return pairs

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"most": self.most}


@dataclass(frozen=True)
class FoundBounds(Postprocessing):
    """Release a lower and an upper bound by name, or that none were found."""

    name = "found bounds"
    none = "none found"

    def apply(self, value: Any) -> dict[str, float] | str:
        return self.none if value is None else dict(zip(("lower", "upper"), value, strict=True))

    def back(self, released: Any) -> Array:
        """Return both bounds; no number where none were found."""
        if isinstance(released, str) and released == self.none:
            return np.empty(0)
        return numbers(_entries(released, ("lower", "upper")), dimensions=1)


@dataclass(frozen=True, kw_only=True)
class Coefficients(Postprocessing):
    """Release intercept and slopes in the units of the data, from those of scaled columns.

    ``slope_j = scales_j y_j`` and ``intercept = shift + scales_0 y_0 - sum_j slope_j centers_j``.
    """

    name = "coefficients"
    scales: tuple[float, ...]
    centers: tuple[float, ...]
    shift: float = 0.0
    names: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None

    def apply(self, value: Any) -> Any:
        scaled = np.asarray(self.scales) * np.asarray(value)
        slopes = scaled[..., 1:]
        intercepts = self.shift + scaled[..., :1] - (slopes @ np.asarray(self.centers))[..., None]
        return self._named(np.concatenate([intercepts, slopes], axis=-1))

    def _named(self, coefficients: Array) -> Any:
        if self.names is None:
            return coefficients
        if coefficients.ndim == 2:
            return dict(zip(self.classes or (), map(self._named, coefficients), strict=True))
        return dict(zip(("intercept", *self.names), coefficients.tolist(), strict=True))

    def back(self, released: Any) -> Array:
        coefficients = numbers(self._unnamed(released))
        slopes = coefficients[..., 1:]
        first = coefficients[..., :1] - self.shift + (slopes @ np.asarray(self.centers))[..., None]
        return np.asarray(np.concatenate([first, slopes], axis=-1) / np.asarray(self.scales))

    def lost(self, point: Floats) -> Floats:
        """Return a few float64 steps of each entry; of the first also of what was subtracted."""
        scaled = np.abs(np.asarray(self.scales) * point)
        about = scaled[..., 1:] @ np.abs(np.asarray(self.centers))
        scaled[..., 0] += abs(self.shift) + 2.0 * about
        return np.asarray(_ROUNDED * len(self.scales) * scaled / np.abs(self.scales))

    def _unnamed(self, released: Any) -> Any:
        if not isinstance(released, Mapping):
            return released
        if self.classes and isinstance(released.get(self.classes[0]), Mapping):
            return [self._unnamed(part) for part in _entries(released, self.classes)]
        return _entries(released, ("intercept", *(self.names or ())))

    def describe(self) -> dict[str, Any]:
        classes = {} if self.classes is None else {"classes": list(self.classes)}
        return super().describe() | {
            "scales": list(self.scales),
            "centers": list(self.centers),
            "shift": self.shift,
            "names": None if self.names is None else list(self.names),
            **classes,
        }

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
        lists = {name: tuple(entry) for name, entry in described.items() if type(entry) is list}
        rebuilt = cls(shift=float(described["shift"]), **lists)
        scales, centers, columns = rebuilt.scales, rebuilt.centers, rebuilt.names
        entries = numbers([*scales, *centers])
        many = len(scales) == len(centers) + 1 == len(columns or ()) + 1
        if not (many or columns is None) or len(entries) != 2 * len(scales) - 1:
            raise ParameterError("There must be one scale for each column and the intercept.")
        names = (*(columns or ()), *(rebuilt.classes or ()))
        if not all(isinstance(name, str) for name in names) or min(scales) <= 0.0:
            raise ParameterError("Names must be texts, and scales positive.")
        return rebuilt


@dataclass(frozen=True, kw_only=True, eq=False)
class Components:
    """Directions, one per row, and noisy mean squares of the rows along them.

    ``variances`` and ``total_variance`` are None unless they were requested.
    """

    directions: Floats
    variances: Floats | None = None
    total_variance: float | None = None


@dataclass(frozen=True, kw_only=True)
class Directions(Postprocessing):
    """Release unit vectors, and the variances along them, as :class:`Components` or by name.

    One long point holds the directions one after the other, their variances and the total.
    """

    name = "directions"
    components: int
    dimension: int
    variances: bool = False
    names: tuple[str, ...] | None = None

    def apply(self, value: Any) -> Any:
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

    def back(self, released: Any) -> Array:
        if isinstance(released, Mapping):
            return self._from_names(released)
        point = [*np.ravel(released.directions)]
        if self.variances:
            point += [*released.variances, released.total_variance]
        return numbers(point, dimensions=1)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {
            "components": self.components,
            "dimension": self.dimension,
            "variances": self.variances,
            "names": None if self.names is None else list(self.names),
        }

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> Self:
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
        released: dict[str, Any] = {
            label: dict(zip(columns, line, strict=True))
            for label, line in zip(self._labels, directions, strict=True)
        }
        if self.variances:
            released["variance"] = dict(zip((*self._labels, "total"), rest, strict=True))
        return released

    def _from_names(self, released: Mapping[str, Any]) -> Floats:
        names = (*self._labels, "variance") if self.variances else self._labels
        lines = _entries(released, names)
        columns = self.names or ()
        point = [entry for line in lines[: self.components] for entry in _entries(line, columns)]
        if self.variances:
            point += _entries(lines[-1], (*self._labels, "total"))
        return numbers(point, dimensions=1)


POSTPROCESSINGS: Registry[type[Postprocessing]] = Registry(
    "expmech.postprocessings",
    [
        (kind.name, kind)
        for kind in (
            Unchanged,
            OneNumber,
            ByName,
            Dates,
            Listed,
            ShownGroups,
            FoundBounds,
            Coefficients,
            Directions,
        )
    ],
)


def rebuild_postprocessing(described: Mapping[str, Any]) -> Postprocessing:
    """Return the map that a certificate names; raise where there is none of that name."""
    kind = POSTPROCESSINGS.find(str(described["map"]))
    if kind is None:
        raise ParameterError(f"`postprocessing` must name a known map; got {described['map']!r}.")
    return kind.rebuild(described)


def numbers(values: Any, *, dimensions: int | None = None) -> Floats:
    """Return finite numbers as float64; raise where one is missing, infinite, text or a bool."""
    array = np.asarray(values)
    if array.dtype.kind == "O":  # whole numbers beyond int64, or no numbers
        array = np.asarray(values, dtype=np.float64) if _all_numbers(values) else array
    if not (array.dtype.kind in "fiu" and _all_numbers(values) and np.isfinite(array).all()):
        raise ParameterError("A released value must hold finite numbers.")
    if dimensions is not None and array.ndim != dimensions:
        raise ParameterError("A released value must have the shape that its certificate says.")
    return array.astype(np.float64)


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


def within(point: Floats, lower: Any, upper: Any) -> bool:
    """Tell whether a point lies between the bounds, up to what a map may lose."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if point.shape != low.shape:
        return False
    spare = _TOLERANCE * (1.0 + np.maximum(np.abs(low), np.abs(high)))
    return bool(((point >= low - spare) & (point <= high + spare)).all())
