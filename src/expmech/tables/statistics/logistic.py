"""Logistic regression with an intercept, by one of two laws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import Coefficients
from expmech.core.arrays import Floats
from expmech.core.errors import ParameterError, validate_choice, validate_positive
from expmech.domains import L2Ball
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.losses import LogisticRisk
from expmech.mechanisms.optimum import risks
from expmech.tables.aggregates import Column, DesignOf, LabelledRowsOf, TargetRows
from expmech.tables.scaling import centres, check_penalty, check_radius, scaled
from expmech.tables.statistics.regression import OptimumRegression, Regression, RegressionChoices

OPTIMUM, LIKELIHOOD = "perturbed optimum", "log-likelihood"
LAWS = (OPTIMUM, LIKELIHOOD)
LOGISTIC_PENALTY = 0.01
"""On rows of norm one: just enough to keep the optimum unique."""

LOGISTIC = "a logistic regression"
_OTHER_LABELS = (
    "A label that is none of those named counts as the other, or as the first class; capitals"
    " matter."
)
_STEEPEST = 2.0**30
"""Bound on ``epsilon penalty B``: beyond some 2^36 the rounding of the penalty's energies is
coarser than the law."""


@dataclass(frozen=True, kw_only=True)
class LabelRegression(Regression):
    """A regression of labels: ``positive`` is the label whose odds are modelled, against others."""

    kind = "logistic"
    positive: Any = None
    label_notes: tuple[str, ...] = ()

    @property
    def predicted(self) -> str:
        return f"{self.target_label} = {self.positive}"

    @property
    def missing_statement(self) -> str:
        """The rule for missing values, and that a label is compared with its capitals."""
        return f"{super().missing_statement} {_OTHER_LABELS}"

    @property
    def notes(self) -> tuple[str, ...]:
        """How the labels were determined, where they were not given."""
        return (*super().notes, *self.label_notes)


@dataclass(frozen=True, kw_only=True)
class LogisticOptimum(OptimumRegression, LabelRegression):
    """A logistic regression by the perturbed optimum of the penalised log-likelihood.

    Columns are scaled to [-1, 1] by their bounds. The release is the intercept and the slopes, in
    the units of the data.

    Parameters
    ----------
    columns, bounds, target, adjacency, missing, named, labels, settings, center
        As for :class:`~expmech.tables.statistics.Linear`.
    positive : object
        The label whose odds are modelled, against all others.
    label_notes : tuple of str, default ()
        How the labels were determined, where they were not given.
    classes : tuple, optional
        Three labels or more, each with coefficients of its own; any other label counts as the
        first. None where there is one label, ``positive``, against all others.
    """

    classes: tuple[Any, ...] | None = None

    @property
    def predicted(self) -> str:
        if self.classes is not None:
            return f"{self.target_label} in {', '.join(map(str, self.classes))}"
        return super().predicted

    @property
    def postprocessing(self) -> Coefficients:
        """Intercept and slopes in the units of the data, of each class where there are several."""
        middles, halves = np.array([(column.middle, column.half) for column in self.scalings]).T
        labels = tuple(map(str, self.classes)) if self.classes is not None and self.named else None
        return Coefficients(
            scales=(1.0, *(1.0 / halves).tolist()),
            centers=tuple(middles.tolist()),
            names=self.names,
            classes=labels,
        )

    def aggregation(self, epsilon: Fraction) -> DesignOf:
        return self.design(classes=(self.positive,) if self.classes is None else self.classes[1:])

    def risk(self, count: int, epsilon: Fraction) -> risks.Risk:
        """Return the logistic risk, or softmax for several classes."""
        return risks.Logistic() if self.classes is None else risks.Softmax(len(self.classes))


@dataclass(frozen=True, kw_only=True)
class LogisticLikelihood(LabelRegression):
    """Two classes by the exponential mechanism with the penalised log-likelihood.

    Columns are scaled to [-1, 1] by their bounds, long rows are shortened, a constant is added, and
    all is divided by ``sqrt(1 + data_norm^2)`` so that no row is longer than one.

    Parameters
    ----------
    columns, bounds, target, adjacency, missing, named, labels, positive, label_notes
        As for :class:`LogisticOptimum`.
    penalty : float, optional
        Ridge penalty on that scale; by default :data:`LOGISTIC_PENALTY`.
    radius : float, optional
        Bound on the Euclidean norm of the coefficients on that scale; by default
        :func:`logistic_radius`.
    data_norm : float, optional
        Scaled rows longer than this are shortened to it; by default half of what they can be.
    """

    penalty: float | None = None
    radius: float | None = None
    data_norm: float | None = None

    @property
    def postprocessing(self) -> Coefficients:
        middles, halves = centres(self.bounds)
        longest = self._longest
        return Coefficients(
            scales=(1.0 / longest, *(1.0 / longest / halves).tolist()),
            centers=tuple(middles.tolist()),
            names=self.names,
        )

    @property
    def _norm(self) -> float:
        if self.data_norm is None:
            return math.sqrt(len(self.bounds)) / 2
        return float(validate_positive(self.data_norm, name="data_norm", owner=LOGISTIC))

    @property
    def _longest(self) -> float:
        return math.sqrt(1.0 + self._norm**2)

    def aggregation(self, epsilon: Fraction) -> LabelledRowsOf:
        """Ask for rows and labels: the law is no function of a few sums."""
        return LabelledRowsOf(
            columns=self.columns,
            bounds=self.bounds,
            target=self.target,
            classes=(self.positive,),
            missing=self.missing_rule,
        )

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        zeros = np.zeros((1, len(self.columns)))
        rows = TargetRows(features=zeros, targets=np.zeros(1), counts=np.array([count]))
        loss = self.data(rows, epsilon)
        domain = L2Ball(len(self.bounds) + 1, self._radius(count, epsilon))
        return ExponentialMechanism(loss=loss, domain=domain, adjacency=self.adjacency)

    def _radius(self, count: int, epsilon: Fraction) -> float:
        if self.radius is not None:
            return self.radius
        rows = count if self.adjacency.count_is_public else None
        return logistic_radius(rows, len(self.bounds) + 1, float(epsilon))

    def data(self, rows: TargetRows, epsilon: Fraction) -> LogisticRisk:
        radius = self._radius(rows.count, epsilon)
        most = _STEEPEST / (check_radius(radius, LOGISTIC) * float(epsilon))
        penalty = LOGISTIC_PENALTY if self.penalty is None else self.penalty
        check_penalty(penalty, most, LOGISTIC)
        return LogisticRisk(
            self._design(rows.features),
            rows.targets > 0.0,
            counts=rows.counts,
            penalty=penalty,
            radius=radius,
            adjacency=self.adjacency,
        )

    def _design(self, rows: Floats) -> Floats:
        """Return rows of norm at most one: clipped, scaled, shortened, with a constant."""
        design = scaled(rows, self.bounds)
        lengths = np.linalg.norm(design, axis=1, keepdims=True)
        design *= np.minimum(1.0, self._norm / np.maximum(lengths, 2.0**-60))
        return np.column_stack([np.ones(len(rows)), design]) / self._longest


def logistic_radius(count: int | None, dimension: int, epsilon: float) -> float:
    """Return ``sqrt(n epsilon / d)``, but at least 8 and at most 16: the largest log odds of a row.

    8 where n is not public. The sensitivity grows with the radius, and beyond 16 a probability is
    within 1e-7 of certainty. Why: docs/regression_laws.md.
    """
    return 8.0 if count is None else min(max(math.sqrt(count * epsilon / dimension), 8.0), 16.0)


def logistic_regression(
    *,
    columns: tuple[Column, ...],
    law: str = OPTIMUM,
    classes: tuple[Any, ...] | None = None,
    center: bool = True,
    radius: float | None = None,
    choices: RegressionChoices | None = None,
    **labelled: Any,
) -> LogisticOptimum | LogisticLikelihood:
    """Return a logistic regression by one of two laws; refuse a setting that only the other has.

    Parameters
    ----------
    columns : tuple
        The features.
    law : {"perturbed optimum", "log-likelihood"}
        The first makes a :class:`LogisticOptimum`, the second a :class:`LogisticLikelihood`.
    radius : float, optional
        Of the log-likelihood only.
    choices : RegressionChoices, optional
        Settings; the log-likelihood has a ``penalty`` and a ``data_norm`` and no others.
    classes, center
        Of the perturbed optimum only.
    **labelled
        Bounds, target, label, adjacency and treatment of missing values: the other fields of
        either class.
    """
    validate_choice(law, name="law", owner=LOGISTIC, choices=LAWS)
    choices = choices or RegressionChoices()
    owned: dict[str, Any] = {"radius": radius}
    if law == LIKELIHOOD:
        owned = {"classes": classes, "center": None if center else False, **vars(choices)}
        del owned["penalty"], owned["data_norm"]
    other = OPTIMUM if law == LIKELIHOOD else LIKELIHOOD
    for name, value in owned.items():
        if value is not None:
            raise ParameterError(
                f"`{name}` of {LOGISTIC} belongs to law={other!r}: {law!r} has none; got {value!r}."
            )
    if law == LIKELIHOOD:
        return LogisticLikelihood(
            columns=columns,
            penalty=choices.penalty,
            radius=radius,
            data_norm=choices.data_norm,
            **labelled,
        )
    settings = choices.settings(len(columns), owner=LOGISTIC)
    return LogisticOptimum(
        columns=columns, classes=classes, settings=settings, center=center, **labelled
    )
