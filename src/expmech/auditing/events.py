"""Events that an audit may bet on; each can be written down and read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.auditing.outputs import Floats, Outputs
from expmech.errors import ParameterError

Mask = NDArray[np.bool_]


class Event(Protocol):
    """A set of outputs."""

    def holds(self, outputs: Outputs) -> Mask:
        """Return which outputs are in the set."""

    def describe(self) -> dict[str, Any]:
        """Return the set as JSON holds it: ``kind``, ``text`` and its parameters."""


@dataclass(frozen=True)
class Labels:
    """Outputs that equal one of a list."""

    labels: tuple[str, ...]

    def holds(self, outputs: Outputs) -> Mask:
        """Compare labels."""
        return np.isin(outputs.labels, self.labels)

    def describe(self) -> dict[str, Any]:
        """Return the list."""
        text = f"output in {{{', '.join(self.labels)}}}"
        return {"kind": "labels", "text": text, "labels": list(self.labels)}


@dataclass(frozen=True)
class Interval:
    """Outputs with a feature in ``[low, high)``."""

    feature: str
    low: float
    high: float

    def holds(self, outputs: Outputs) -> Mask:
        """Compare the feature."""
        values = outputs.named([self.feature])[:, 0]
        return (values >= self.low) & (values < self.high)

    def describe(self) -> dict[str, Any]:
        """Return the ends; none where there is none."""
        ends = [None if np.isinf(one) else one for one in (self.low, self.high)]
        return {"kind": "interval", "text": self._text, "feature": self.feature, "ends": ends}

    @property
    def _text(self) -> str:
        below = "" if np.isinf(self.low) else f"{self.low:.6g} <= "
        above = "" if np.isinf(self.high) else f" < {self.high:.6g}"
        return f"{below}{self.feature}{above}"


@dataclass(frozen=True)
class HalfSpace:
    """Outputs whose features have a weighted sum in ``[low, high)``."""

    features: tuple[str, ...]
    weights: tuple[float, ...]
    low: float
    high: float

    def holds(self, outputs: Outputs) -> Mask:
        """Add up and compare."""
        values = outputs.named(self.features)
        total = np.clip(values, -1e100, 1e100) @ np.array(self.weights)
        return np.asarray((total >= self.low) & (total < self.high))

    def describe(self) -> dict[str, Any]:
        """Return weights and ends."""
        ends = [None if np.isinf(one) else one for one in (self.low, self.high)]
        text = "a weighted sum of features within an interval"
        return {
            "kind": "half space",
            "text": text,
            "features": list(self.features),
            "weights": list(self.weights),
            "ends": ends,
        }


@dataclass(frozen=True, eq=False)
class Cells:
    """Outputs in some cells of a grid over two features."""

    pair: tuple[str, str]
    edges: tuple[Floats, Floats]
    chosen: Mask

    def holds(self, outputs: Outputs) -> Mask:
        """Look the cell up."""
        return self.chosen[self.places(outputs.named(self.pair))]

    def places(self, found: Floats) -> NDArray[np.int64]:
        """Return the number of the cell of each row of two features."""
        rows, columns = (
            np.searchsorted(edges, found[:, j], side="right") for j, edges in enumerate(self.edges)
        )
        return np.asarray(rows * (len(self.edges[1]) + 1) + columns, dtype=np.int64)

    def describe(self) -> dict[str, Any]:
        """Return the grid and the numbers of the cells."""
        return {
            "kind": "cells",
            "text": f"{int(self.chosen.sum())} cells of a grid over two features",
            "pair": list(self.pair),
            "edges": [one.tolist() for one in self.edges],
            "chosen": np.flatnonzero(self.chosen).tolist(),
        }


def read_event(stated: dict[str, Any]) -> Event:
    """Return the event that :meth:`Event.describe` wrote down."""
    kind = stated.get("kind")
    if kind == "labels":
        return Labels(tuple(stated["labels"]))
    if kind == "interval":
        return Interval(stated["feature"], *_ends(stated))
    if kind == "half space":
        return HalfSpace(tuple(stated["features"]), tuple(stated["weights"]), *_ends(stated))
    if kind == "cells":
        edges = [np.array(one, dtype=np.float64) for one in stated["edges"]]
        chosen = np.zeros((len(edges[0]) + 1) * (len(edges[1]) + 1), dtype=np.bool_)
        chosen[stated["chosen"]] = True
        return Cells((stated["pair"][0], stated["pair"][1]), (edges[0], edges[1]), chosen)
    raise ParameterError(f"`kind` of an event must be one that an audit writes; got {kind!r}.")


def _ends(stated: dict[str, Any]) -> tuple[float, float]:
    low, high = stated["ends"]
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)
