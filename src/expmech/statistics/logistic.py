"""Logistic regression with an intercept, by one of two laws."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from expmech.errors import ParameterError, validate_choice
from expmech.optimum import ArrayTable
from expmech.release import Mechanism
from expmech.release.finish import Coefficients
from expmech.statistics.logistic_likelihood import LogisticLikelihood
from expmech.statistics.logistic_optimum import LogisticOptimum
from expmech.statistics.regression import Regression
from expmech.statistics.requests import DesignOf, LabelledRowsOf, TargetRows

OPTIMUM, LIKELIHOOD = "perturbed optimum", "log-likelihood"
LAWS = (OPTIMUM, LIKELIHOOD)
_OWNER = "a logistic regression"


class Law(Protocol):
    """What a law says: the mechanism for rows, and how its draw becomes coefficients."""

    @property
    def finish(self) -> Coefficients:
        """Intercept and slopes in the units of the data."""

    def mechanism(self, found: Any, epsilon: Fraction) -> Mechanism:
        """Return the mechanism for the rows."""


@dataclass(frozen=True, kw_only=True)
class Logistic(Regression):
    """A logistic regression: the intercept and the slopes, in the units of the data.

    ``positive`` is the label whose odds are modelled, against every other; or ``classes`` are three
    or more labels, of which each has coefficients of its own, and any other label counts as the
    first. ``law`` is :class:`~expmech.statistics.logistic_optimum.LogisticOptimum` or
    :class:`~expmech.statistics.logistic_likelihood.LogisticLikelihood`, which say what ``penalty``
    and ``data_norm`` are; ``radius`` belongs to the latter, ``classes``, ``rows``, a public guess
    of the number of rows under add-remove, ``sum_norm``, ``intercept_penalty`` and ``center``, as
    of :class:`~expmech.statistics.linear.Linear`, to the former.
    """

    kind = "logistic"
    positive: Any = None
    classes: tuple[Any, ...] | None = None
    law: str = OPTIMUM
    radius: float | None = None
    data_norm: float | None = None
    rows: int | None = None
    sum_norm: float | None = None
    intercept_penalty: float | None = None
    center: bool = True
    label_notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validate_choice(self.law, name="law", owner=_OWNER, choices=LAWS)
        owned: dict[str, Any] = {"radius": self.radius}
        other = LIKELIHOOD
        if self.law == LIKELIHOOD:
            owned = {
                "classes": self.classes,
                "rows": self.rows,
                "sum_norm": self.sum_norm,
                "intercept_penalty": self.intercept_penalty,
                "center": None if self.center else False,
            }
            other = OPTIMUM
        for name, value in owned.items():
            if value is not None:
                raise ParameterError(
                    f"`{name}` of {_OWNER} belongs to law={other!r}: {self.law!r} has none; got"
                    f" {value!r}."
                )

    @property
    def predicted(self) -> str:
        """The target with its labels."""
        if self.classes is not None:
            return f"{self.target} in {', '.join(map(str, self.classes))}"
        return f"{self.target} = {self.positive}"

    @property
    def by_law(self) -> Law:
        """The law with its settings."""
        if self.law == LIKELIHOOD:
            return LogisticLikelihood(
                bounds=self.bounds,
                adjacency=self.adjacency,
                penalty=self.penalty,
                radius=self.radius,
                data_norm=self.data_norm,
                names=self.names,
            )
        several = self.classes is not None and self.named
        return LogisticOptimum(
            bounds=self.bounds,
            adjacency=self.adjacency,
            classes=2 if self.classes is None else len(self.classes),
            penalty=self.penalty,
            data_norm=self.data_norm,
            rows=self.rows,
            sum_norm=self.sum_norm,
            intercept_penalty=self.intercept_penalty,
            center=self.center,
            names=self.names,
            class_names=tuple(map(str, self.classes or ())) if several else None,
        )

    @property
    def finish(self) -> Coefficients:
        """Intercept and slopes in the units of the data."""
        return self.by_law.finish

    @property
    def notes(self) -> tuple[str, ...]:
        """How the labels were found, where they were not given."""
        return (*super().notes, *self.label_notes)

    def request(self, epsilon: Fraction) -> LabelledRowsOf | DesignOf:
        """Ask for rows and labels: the law is no function of a few sums."""
        asked: dict[str, Any] = {
            "columns": self.columns,
            "bounds": self.bounds,
            "target": self.target,
            "classes": (self.positive,) if self.classes is None else self.classes[1:],
            "missing": self.missing,
        }
        if self.law == LIKELIHOOD:
            return LabelledRowsOf(**asked)
        return DesignOf(center=self.center, **asked)

    def stand_in(self, count: int, epsilon: Fraction) -> TargetRows | ArrayTable:
        """Return as many rows of zeros."""
        if self.law == OPTIMUM:
            return self.zeros(count)
        zeros = np.zeros((1, len(self.columns)))
        return TargetRows(features=zeros, targets=np.zeros(1), counts=np.array([count]))

    def mechanism(self, found: Any, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the mechanism of the law."""
        return self.by_law.mechanism(found, epsilon)
