"""Regressions of one column on others, and linear regression by a perturbed optimum."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from expmech.certificates.card import CLIPPED
from expmech.certificates.mechanism import Mechanism
from expmech.certificates.postprocessing import Coefficients
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError, validate_positive
from expmech.core.rounding import float_down
from expmech.mechanisms.optimum import ArrayTable, RegressionSettings
from expmech.mechanisms.optimum.perturbed_optimum import PerturbedOptimum
from expmech.mechanisms.optimum.risks import Huber, LogCosh, Risk
from expmech.mechanisms.optimum.rule import default_threshold
from expmech.tables.aggregates import Column, DesignOf
from expmech.tables.reading import AUTO_MISSING
from expmech.tables.scaling import Bounds, Scaling, check_center, scalings
from expmech.tables.statistics.base import Statistic, listed


@dataclass(frozen=True, kw_only=True)
class RegressionChoices:
    """Settings of a regression by a perturbed optimum, as a caller gives them.

    Parameters
    ----------
    penalty, intercept_penalty, rows
        As in :class:`~expmech.mechanisms.optimum.RegressionSettings`.
    data_norm, sum_norm : float, optional
        Public bounds on the Euclidean norm and on the sum of absolute entries of the scaled
        columns, without the constant; a row beyond them is shortened as a whole.

    Examples
    --------
    >>> choices = RegressionChoices(data_norm=1.0)
    >>> choices.settings(3, owner="a linear regression").squared_norm
    Fraction(2, 1)
    """

    penalty: float | None = None
    data_norm: float | None = None
    sum_norm: float | None = None
    intercept_penalty: float | None = None
    rows: int | None = None

    def settings(self, columns: int, *, owner: str) -> RegressionSettings:
        """Return the settings of a regression on scaled columns and a constant, which comes first.

        Parameters
        ----------
        columns : int
            Number of features, the constant not counted.
        owner : str
            Name that errors speak of.

        Returns
        -------
        RegressionSettings
        """
        squared = total = None
        if self.data_norm is not None:
            squared = validate_positive(self.data_norm, name="data_norm", owner=owner) ** 2
        if self.sum_norm is not None:
            total = validate_positive(self.sum_norm, name="sum_norm", owner=owner)
        # at most what rows of a cube can be, as a float64 number, which a certificate can hold
        squared_norm, with_constant = (
            None if norm is None else Fraction(float_down(1 + min(norm, Fraction(columns))))
            for norm in (squared, total)
        )
        return RegressionSettings(
            penalty=self.penalty,
            intercept_penalty=self.intercept_penalty,
            squared_norm=squared_norm,
            sum_norm=with_constant,
            rows=self.rows,
        )


@dataclass(frozen=True, kw_only=True)
class Regression(Statistic):
    """A regression of ``target`` on ``columns``: an intercept, and one slope per column.

    ``named`` releases the slopes by the names of their columns.
    """

    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    target: Column
    adjacency: Adjacency
    missing: str = AUTO_MISSING
    named: bool = False
    labels: tuple[str, ...] = ()
    kind: ClassVar[str]
    no_interval = (
        "No interval is given for coefficients: how far noise moves them depends on how the rows"
        " lie, which is confidential, and no part of epsilon was kept to release it."
    )

    @property
    def name(self) -> str:
        columns = listed(self.columns, self.labels[:-1])
        return f"{self.kind} regression of {self.predicted} on {columns}"

    @property
    def predicted(self) -> str:
        """What is predicted, in words."""
        return self.target_label

    @property
    def target_label(self) -> str:
        """What certificates call the target."""
        return self.labels[-1] if self.labels else str(self.target)

    @property
    def clipping(self) -> str:
        """The public bounds to which values are clipped."""
        pairs = [f"{low:.12g} to {high:.12g}" for low, high in self.bounds]
        if len(pairs) > 1 and len(set(pairs)) == 1:
            return f"{pairs[0]} for each column"
        return ", ".join(pairs) + (" in the order of the columns" if len(pairs) > 1 else "")

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, f"{CLIPPED}{self.clipping}")

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the slopes are called."""
        return tuple(map(str, self.columns)) if self.named else None


@dataclass(frozen=True, kw_only=True)
class NumberRegression(Regression):
    """A regression of a target that is a number within ``target_bounds``."""

    target_bounds: Bounds

    @property
    def clipping(self) -> str:
        low, high = self.target_bounds
        return f"{super().clipping}, and the target to {low:.12g} to {high:.12g}"

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """The maps of the columns to [-1, 1]."""
        return scalings(self.bounds)

    @property
    def postprocessing(self) -> Coefficients:
        """Intercept and slopes in the units of the data, from columns scaled by their bounds."""
        maps = (*self.scalings, *scalings((self.target_bounds,)))
        middles, halves = np.array([(column.middle, column.half) for column in maps]).T
        with np.errstate(all="ignore"):
            scales = halves[-1] / halves[:-1]
        if not np.isfinite(scales).all():
            raise ParameterError(
                f"The bounds of a {self.kind} regression must be of comparable size: those of the"
                " target are more than 1e308 times as wide as those of a feature."
            )
        return Coefficients(
            scales=(float(halves[-1]), *scales.tolist()),
            centers=tuple(middles[:-1].tolist()),
            shift=float(middles[-1]),
            names=self.names,
        )


@dataclass(frozen=True, kw_only=True)
class OptimumRegression(Regression):
    """A regression by a perturbed optimum: noise on the gradient of a penalised risk, then solve.

    Columns are scaled to [-1, 1] by their bounds, about their middle or, without ``center``, about
    0, as sparse ones must be, and a constant is added. ``settings`` are on that scale.
    """

    settings: RegressionSettings = field(default_factory=RegressionSettings)
    center: bool = True

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """The maps of the columns to [-1, 1], about their middle or about 0."""
        check_center(self.bounds, center=self.center, owner=f"a {self.kind} regression")
        return scalings(self.bounds, center=self.center)

    def design(self, **target: Any) -> DesignOf:
        """Ask for scaled rows, and for what the target counts as: no few sums give the law."""
        return DesignOf(
            columns=self.columns,
            bounds=self.bounds,
            target=self.target,
            missing=self.missing_rule,
            center=self.center,
            **target,
        )

    @abstractmethod
    def risk(self, count: int, epsilon: Fraction) -> Risk:
        """Return the risk whose optimum is drawn.

        Parameters
        ----------
        count : int
            The number of rows; it is looked at under 'replace' only, where it is public.
        epsilon : Fraction
            The budget.

        Returns
        -------
        Risk
        """

    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the mechanism that draws the perturbed optimum of the risk."""
        table = ArrayTable(np.zeros((1, len(self.columns) + 1)), np.zeros(1), [count])
        risk = self.risk(count, epsilon)
        return PerturbedOptimum(risk, table, settings=self.settings, adjacency=self.adjacency)


@dataclass(frozen=True, kw_only=True)
class Linear(OptimumRegression, NumberRegression):
    """A linear regression of one column on others, by the perturbed optimum of a robust risk.

    Columns and target are scaled to [-1, 1] by their bounds, and a row is shortened as a whole,
    which leaves a linear relation as it is. The release is the intercept and the slopes, in the
    units of the data.

    Parameters
    ----------
    columns : tuple of str or int
        The columns to regress on.
    bounds : tuple of pairs of float
        Public bounds of each; values outside are clipped.
    target : str or int
        The column that is predicted.
    adjacency : Adjacency
        Which tables are neighbours.
    missing : str, default="auto"
        What a missing value counts as; "auto" is "middle" under replace, else its row is left out.
    named : bool, default False
        Whether slopes are released by the names of their columns.
    labels : tuple of str, default ()
        What certificates call the columns and, last, the target. Default: their names or positions.
    target_bounds : pair of float
        Public bounds of the target.
    settings : RegressionSettings
        Penalties and norms of rows on that scale; by default the public rules.
    center : bool, default True
        Whether columns are scaled about their middle, or about 0, as sparse ones must be.
    threshold : float, optional
        Residuals beyond it count linearly, in half widths of ``target_bounds``, by Huber's risk;
        by default the log-cosh risk, at the threshold of the public rule.
    """

    kind = "linear"
    threshold: float | None = None

    def aggregation(self, epsilon: Fraction) -> DesignOf:
        return self.design(target_bounds=self.target_bounds)

    def risk(self, count: int, epsilon: Fraction) -> Risk:
        """Return the log-cosh risk, or Huber's."""
        if self.threshold is not None:
            return Huber(self.threshold)
        rows = count if self.adjacency.count_is_public else self.settings.rows
        return LogCosh(default_threshold(len(self.bounds) + 1, rows, epsilon))
