"""Private principal components."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from expmech.core.arrays import Floats
from expmech.core.errors import ParameterError, validate_flag, validate_integer
from expmech.estimators.base import PrivateEstimator, TimingParameters, column_labels
from expmech.estimators.tables import numbers_of
from expmech.tables.reading import AUTO_MISSING, fill_missing
from expmech.tables.release import account_of, charged, release_all
from expmech.tables.scaling import Bounds, make_standard
from expmech.tables.statistics import Mean, PrincipalComponents

MEAN_SHARE = Fraction(1, 5)
"""Of epsilon, where the center is to be private."""

_CENTERS = ("bounds", "private")


@dataclass(kw_only=True, eq=False, repr=False)
class PrivatePCA(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    TimingParameters,
    PrivateEstimator,
):
    """Principal components: each direction from ``exp(eta v'Av)`` on the sphere, exactly.

    Parameters
    ----------
    n_components : int, default 1
        Number of directions, which share epsilon equally.
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit: a number, or decimal text.
    bounds : pair of float, sequence of pairs, or dict
        Public bounds, a pair ``(lower, upper)`` for all columns or one pair per column; values
        outside are clipped.
    center : sequence of float, "bounds" or "private"
        What is subtracted from rows; required. Public numbers, one per column; or "bounds", the
        middle of the bounds; or "private", a private mean that costs a fifth of epsilon. **A
        private mean ruins the direction at small epsilon**: its error is a direction of its own,
        and with few rows or many columns it is the one that is found. On three tables of 178 to
        1797 rows and 13 to 64 columns, at epsilon = 1, components were no better than random ones
        after it, and good with a public center (benchmarks/results/pca.md).
    scale : sequence of float, optional
        Public numbers by which columns are divided; None: half the width of the bounds.
    row_norm : float, optional
        None: every row is scaled to norm one, so that long rows do not rule; a public number:
        rows longer than it (after centring and scaling) are shortened to it.
    variances : bool, default True
        Whether a tenth of what the components get goes to their variances.
    timing, budget_seconds
        "unprotected": how long a fit took may tell about the data. "constant" is refused.
    ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The private directions, of norm one, the largest entry of each positive.
    mean_, scale_ : ndarray of shape (n_features,)
        What rows are centred with and divided by.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Private mean squares of the scaled rows along the directions, and their share of the total;
        only with ``variances``.
    certificate_, certificates_
        That of the components, and all of them.

    Examples
    --------
    >>> X = np.outer(np.linspace(-1.0, 1.0, 200), [3.0, 4.0])
    >>> model = PrivatePCA(epsilon=2.0, bounds=(-5, 5), center=[0.0, 0.0]).fit(X)
    >>> model.transform(X).shape
    (200, 1)
    """

    n_components: int = field(default=1, kw_only=False)
    bounds: Any = None
    center: Any = None
    scale: Any = None
    row_norm: float | None = None
    variances: bool = True

    def fit(self, X: Any, y: Any = None) -> PrivatePCA:
        """Draw the components of X, and charge the ledger before.

        The parameters are those of :meth:`PrivateMean.fit`.
        """
        epsilon = self._validate_parameters()
        table, d = self._table(X)
        statistic = self._statistic(self._validate_column_bounds(self.bounds, d))
        rows = numbers_of(table, d, owner=self._name)
        share = epsilon * MEAN_SHARE if statistic.center_is_private else Fraction(0)
        means = self._prepare([_mean(statistic)], rows, share) if share else []
        (components,) = self._prepare([statistic], rows, epsilon - share)
        with charged(account_of(self.ledger), [*means, components]):
            draw = partial(release_all, rows=rows, ledger=None, seed=self.random_state)
            releases = draw(means)
            if releases:
                center = tuple(releases[0].value.tolist())
                statistic = dataclasses.replace(statistic, center=center)
                components = dataclasses.replace(components, statistic=statistic)
            releases += draw([components], before=1)
        self._keep(statistic, releases[-1].value)
        self.certificate_ = releases[-1].certificate
        self.certificates_ = tuple(release.certificate for release in releases)
        return self

    def transform(self, X: Any) -> Floats:
        """Return the coordinates of rows, centred and scaled, along the components.

        Rows are read as at the fit, each alone, and none is refused: in a pipeline they are the
        data of the model behind. An infinite value counts as its bound, and a missing one as at the
        fit, where that gives it a value; else the coordinates of its row are missing.
        """
        table = self._rows_to_transform(X)
        pairs = self._validate_column_bounds(self.bounds, table.shape[1])
        rule = "middle" if self.missing == AUTO_MISSING else self.missing
        if rule in ("middle", "lower", "clip"):
            table = fill_missing(table, pairs, rule)
        table = np.where(np.isinf(table), np.clip(table, *np.array(pairs).T), table)
        coordinates = np.zeros((len(table), len(self.components_)))
        with np.errstate(all="ignore"):
            scaled = (table - self.mean_) / self.scale_
            # not by a product of matrices, in which a row's last bits depend on how many there are
            for column, shares in zip(scaled.T, self.components_.T, strict=True):
                coordinates += column[:, None] * shares
        return coordinates

    def inverse_transform(self, X: Any) -> Floats:
        """Return the rows that coordinates along the components stand for."""
        return np.asarray(np.asarray(X) @ self.components_ * self.scale_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _statistic(self, bounds: tuple[Bounds, ...]) -> PrincipalComponents:
        """Check the parameters; a private center has the middle of the bounds until it is drawn."""
        d = len(bounds)
        validate_integer(self.n_components, name="n_components", owner=self._name, low=1, high=d)
        variances = validate_flag(self.variances, name="variances", owner=self._name)
        lower, upper = np.array(bounds, dtype=np.float64).T
        if self.center is None:
            raise ParameterError(
                f"`center` of {self._name} must be given: public numbers, one per column; 'bounds'"
                " for the middle of the bounds; or 'private' for a private mean, which ruins the"
                " components at small epsilon; got None."
            )
        public = not isinstance(self.center, str)
        if not public and self.center not in _CENTERS:
            raise ParameterError(
                f"`center` of {self._name} must be numbers, 'bounds' or 'private'; got"
                f" {self.center!r}."
            )
        standard = make_standard(
            lower=lower,
            upper=upper,
            center=self.center if public else lower / 2.0 + upper / 2.0,
            scale=self.scale,
            row_norm=self.row_norm,
            owner=self._name,
        )
        return PrincipalComponents(
            columns=tuple(range(d)),
            bounds=bounds,
            adjacency=self._relation,
            n_components=int(self.n_components),
            center=tuple(standard.center.tolist()),
            center_is_private=not public and self.center == "private",
            scale=tuple(standard.scale.tolist()),
            row_norm=standard.row_norm,
            variances=variances,
            missing=self.missing,
            labels=column_labels(self),
        )

    def _keep(self, statistic: PrincipalComponents, components: Any) -> None:
        self.mean_, self.scale_ = np.array(statistic.center), np.array(statistic.scale)
        self.components_ = components.directions
        if components.variances is not None:
            unit = 1.0 if statistic.row_norm is None else statistic.row_norm**2
            self.explained_variance_ = components.variances * unit
            total = max(components.total_variance, np.finfo(np.float64).tiny)
            self.explained_variance_ratio_ = components.variances / total


def _mean(statistic: PrincipalComponents) -> Mean:
    """Return the mean of the same columns, for a private center."""
    return Mean(
        columns=statistic.columns,
        bounds=statistic.bounds,
        adjacency=statistic.adjacency,
        missing=statistic.missing,
        labels=statistic.labels,
    )
