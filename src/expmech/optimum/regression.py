"""Regressions from raw columns and public bounds to a mechanism, and back to the data's units.

Columns become [-1, 1] by their bounds, a constant comes first, and whole rows are shortened by the
mechanism, the target with them, so that coefficients hold for rows of any length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_vector
from expmech.optimum.rule import default_threshold
from expmech.risks import Huber, Logistic, Risk, Softmax

Floats = NDArray[np.float64]
Bounds = tuple[float, float]


@dataclass(frozen=True, eq=False, kw_only=True)
class Regression:
    """What a mechanism takes, and how its value becomes coefficients.

    ``risk``, ``features``, ``targets`` and ``options`` are the arguments of
    :class:`expmech.release.PerturbedOptimum`; features and targets are confidential.
    """

    risk: Risk
    features: Floats
    targets: Floats
    middles: Floats
    halves: Floats
    target_middle: float = 0.0
    target_half: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)

    def finish(self, value: Floats) -> tuple[Floats, Floats]:
        """Return slopes, shape (classes, p), and intercepts in the units of the data."""
        rows = np.atleast_2d(value)
        slopes = self.target_half * rows[:, 1:] / self.halves
        intercepts = self.target_middle + self.target_half * rows[:, 0] - slopes @ self.middles
        return slopes, np.asarray(intercepts)


def logistic(
    columns: Floats,
    labels: Any,
    bounds: Sequence[Bounds],
    *,
    classes: Sequence[Any],
    **options: Any,
) -> Regression:
    """Prepare a logistic regression on public classes: two, or more by softmax.

    A label that is none of the classes counts as the first one: a rule for each row by itself.

    Examples
    --------
    >>> found = logistic(np.array([[3.0], [9.0]]), ["a", "b"], [(0.0, 10.0)], classes=["a", "b"])
    >>> found.features.tolist(), found.targets.tolist()
    ([[1.0, -0.4], [1.0, 0.8]], [0.0, 1.0])
    """
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise ParameterError(
            f"`classes` of logistic must be two or more different labels; got {classes!r}."
        )
    places = {label: float(place) for place, label in enumerate(classes)}
    targets = np.array([places.get(label, 0.0) for label in np.asarray(labels).tolist()])
    risk: Risk = Logistic() if len(classes) == 2 else Softmax(len(classes))
    middles, halves = _centres(bounds)
    return Regression(
        risk=risk,
        features=scale_columns(columns, middles, halves),
        targets=targets.reshape(-1),
        middles=middles,
        halves=halves,
        options=options,
    )


def linear(
    columns: Floats,
    target: Floats,
    bounds: Sequence[Bounds],
    target_bounds: Bounds,
    *,
    epsilon: float | Fraction,
    adjacency: str = "replace",
    rows: int | None = None,
    threshold: float | None = None,
    **options: Any,
) -> Regression:
    """Prepare a regression with Huber's risk; its threshold is in half widths of the target.

    None takes the public rule, from the number of rows where that is public and ``rows`` else.
    """
    middles, halves = _centres(bounds)
    middle, half = (float(one[0]) for one in _centres([target_bounds]))
    if threshold is None:
        count = len(target) if adjacency == "replace" else rows
        threshold = default_threshold(len(bounds) + 1, count, Fraction(epsilon))
    return Regression(
        risk=Huber(threshold),
        features=scale_columns(columns, middles, halves),
        targets=(np.asarray(target, dtype=np.float64) - middle) / half,
        middles=middles,
        halves=halves,
        target_middle=middle,
        target_half=half,
        options=options | {"adjacency": adjacency, "rows": rows},
    )


def scale_columns(columns: Floats, middles: Floats, halves: Floats) -> Floats:
    """Return a constant and the columns on [-1, 1]; clipping is the mechanism's."""
    table = np.asarray(columns, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(middles):
        raise ParameterError("`columns` of a regression must have one column a pair of bounds.")
    scaled = np.empty((len(table), len(middles) + 1))
    scaled[:, 0] = 1.0
    np.subtract(table, middles, out=scaled[:, 1:])
    scaled[:, 1:] /= halves
    return scaled


def _centres(bounds: Sequence[Bounds]) -> tuple[Floats, Floats]:
    lower = validate_vector([one[0] for one in bounds], name="bounds", owner="a regression")
    upper = validate_vector([one[1] for one in bounds], name="bounds", owner="a regression")
    if not (lower < upper).all():
        raise ParameterError(f"`bounds` of a regression must be (low, high) pairs; got {bounds!r}.")
    return (lower + upper) / 2, (upper - lower) / 2
