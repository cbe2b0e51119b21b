"""Linear regression and classification by convex risks with kinks: quantiles, Huber, hinge."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from expmech.domains import Domain, Region
from expmech.errors import (
    ParameterError,
    confidential_array,
    validate_fraction,
    validate_scale,
)
from expmech.losses.base import validate_region
from expmech.losses.logistic_rows import SNAP, snap_rows, validate_features, validate_labels
from expmech.losses.row_terms import Floats, RowTerms, sort_rows

_QUANTILE = "QuantileRegression"


class LinearRisk(RowTerms):
    """``L(y) = sum_i phi(r_i)``, convex phi of the residuals ``r_i = z_i - x_i.y``.

    Rows longer than one in the Euclidean norm are scaled to one, and all are rounded toward zero to
    multiples of 2^-26. With targets in [-1, 1] and ``|y| <= radius`` residuals are at most ``1 +
    radius`` in size.
    """

    def __init__(
        self,
        features: ArrayLike,
        targets: Floats,
        *,
        radius: float,
        largest: Fraction,
        slope: Fraction,
        adjacency: str,
    ) -> None:
        owner = type(self).__name__
        self.radius = validate_scale(radius, name="radius", owner=owner)
        rows = snap_rows(validate_features(features, owner)) / SNAP
        if targets.shape != (len(rows),):
            raise ParameterError(f"{owner} must be given one target a row of `features`.")
        super().__init__(
            sort_rows(np.column_stack([rows, targets])),
            dimension=rows.shape[1],
            most=largest,
            slope=slope,
            reach=1 + self.radius,
            adjacency=adjacency,
        )

    @abstractmethod
    def find_risk(self, residuals: Floats) -> Floats:
        """Return phi of the residuals."""

    @abstractmethod
    def find_slope(self, residuals: Floats) -> Floats:
        """Return a subgradient of phi at the residuals."""

    def validate_domain(self, domain: Domain) -> Region:
        """Return the domain; raise unless ``|y| <= radius`` on it."""
        owner = type(self).__name__
        return validate_region(domain, self.dimension, "l2", self.radius, owner=owner)

    def find_terms(self, y: Floats, rows: slice) -> Floats:
        """Return phi of the residuals."""
        return self.find_risk(self._residuals(y, rows))

    def find_pulls(self, y: Floats, rows: slice) -> Floats:
        """Return the sum of ``-phi'(r) x``."""
        slopes = self.find_slope(self._residuals(y, rows))
        pulls = np.empty_like(y)
        for j in range(self.dimension):
            pulls[:, j] = -(slopes * self._columns[j, rows]).sum(axis=1)
        return pulls

    def _residuals(self, y: Floats, rows: slice) -> Floats:
        margins = y[:, :1] * self._columns[0, rows]
        for j in range(1, self.dimension):
            margins += y[:, j : j + 1] * self._columns[j, rows]
        return np.asarray(self._columns[self.dimension, rows] - margins)


class QuantileRegression(LinearRisk):
    """``L(y) = sum_i max(q r_i, (q - 1) r_i)``, ``r_i = z_i - x_i.y``: a quantile given features.

    With q = 1/2 least absolute deviations.

    Parameters
    ----------
    features, targets
        Confidential data, shapes (n, p) and (n,). Rows longer than one in the Euclidean norm are
        scaled to one, and targets are clipped to [-1, 1].
    q
        Which quantile, strictly between 0 and 1; a float is taken at its exact binary value.
    radius
        Public bound B on the Euclidean norm of the points of the domain; a wider one is refused.
    adjacency
        "replace": ``D = max(q, 1 - q) (1 + B)``. "add-remove": half of that, and half of it is
        subtracted from every row's term, which cancels in the law.

    Notes
    -----
    Proofs of sensitivity and errors: docs/theory/convex_losses.md.

    Examples
    --------
    >>> loss = QuantileRegression([[1.0], [0.5]], [0.5, -0.5], q=0.25, radius=1.0)
    >>> loss(np.array([[0.0], [0.5]]))
    array([0.5   , 0.5625])
    >>> loss.sensitivity
    Fraction(3, 2)
    """

    def __init__(
        self,
        features: ArrayLike,
        targets: ArrayLike,
        *,
        q: float | Fraction = 0.5,
        radius: float,
        adjacency: str = "replace",
    ) -> None:
        self.q = validate_fraction(q, name="q", owner=_QUANTILE)
        self._levels = float(self.q), float(self.q - 1)
        steepest = max(self.q, 1 - self.q)
        super().__init__(
            features,
            _clip_targets(targets, _QUANTILE),
            radius=radius,
            largest=steepest * (1 + validate_scale(radius, name="radius", owner=_QUANTILE)),
            slope=steepest,
            adjacency=adjacency,
        )

    def find_risk(self, residuals: Floats) -> Floats:
        """Return ``max(q r, (q - 1) r)``."""
        above, below = self._levels
        return np.maximum(residuals * above, residuals * below)

    def find_slope(self, residuals: Floats) -> Floats:
        """Return q above zero, else ``q - 1``."""
        above, below = self._levels
        return np.where(residuals > 0.0, above, below)


class HuberRegression(LinearRisk):
    """``L(y) = sum_i h(r_i)``, ``h(r) = r^2 / 2`` up to the threshold t, then ``t |r| - t^2 / 2``.

    Parameters
    ----------
    features, targets, radius, adjacency
        As in :class:`QuantileRegression`; D is ``h(1 + B)``, under "add-remove" half of it.
    threshold
        The residual beyond which the risk is linear; at most ``1 + B`` is of use.

    Examples
    --------
    >>> loss = HuberRegression([[1.0], [0.5]], [0.5, -0.5], threshold=0.25, radius=1.0)
    >>> loss(np.array([[0.0], [0.5]]))
    array([0.1875 , 0.15625])
    """

    def __init__(
        self,
        features: ArrayLike,
        targets: ArrayLike,
        *,
        threshold: float,
        radius: float,
        adjacency: str = "replace",
    ) -> None:
        bend = validate_scale(threshold, name="threshold", owner="HuberRegression")
        reach = 1 + validate_scale(radius, name="radius", owner="HuberRegression")
        self.threshold, bend = bend, min(bend, reach)
        self._bend = float(bend)
        super().__init__(
            features,
            _clip_targets(targets, "HuberRegression"),
            radius=radius,
            largest=bend * reach - bend**2 / 2,
            slope=bend,
            adjacency=adjacency,
        )

    def find_risk(self, residuals: Floats) -> Floats:
        """Return h: with s the residual cut to the threshold, ``s (r - s / 2)``."""
        cut = np.clip(residuals, -self._bend, self._bend)
        return np.asarray(cut * (residuals - cut / 2.0))

    def find_slope(self, residuals: Floats) -> Floats:
        """Return the residual, cut to the threshold."""
        return np.clip(residuals, -self._bend, self._bend)


class HingeRisk(LinearRisk):
    """``L(y) = sum_i max(0, 1 - s_i x_i.y)``, labels ``s_i = +-1``: a support vector machine.

    Parameters
    ----------
    features, labels
        Confidential data, shapes (n, p) and (n,); labels are 0 and 1, or -1 and 1. Rows longer than
        one in the Euclidean norm are scaled to one.
    radius, adjacency
        As in :class:`QuantileRegression`; D is ``1 + B``, under "add-remove" half of it.

    Examples
    --------
    >>> loss = HingeRisk([[1.0], [0.5]], [1, 0], radius=1.0)
    >>> loss(np.array([[0.0], [0.5]]))
    array([2.  , 1.75])
    """

    def __init__(
        self, features: ArrayLike, labels: ArrayLike, *, radius: float, adjacency: str = "replace"
    ) -> None:
        rows = validate_features(features, "HingeRisk")
        signs = validate_labels(labels, "HingeRisk").astype(np.float64)
        if len(signs) != len(rows):
            raise ParameterError("`labels` of HingeRisk must have one entry a row of `features`.")
        # with the sign in the row the target is 1: 1 - s x.y is the residual
        super().__init__(
            rows * signs[:, None],
            np.ones(len(rows)),
            radius=radius,
            largest=1 + validate_scale(radius, name="radius", owner="HingeRisk"),
            slope=Fraction(1),
            adjacency=adjacency,
        )

    def find_risk(self, residuals: Floats) -> Floats:
        """Return the positive part."""
        return np.maximum(residuals, 0.0)

    def find_slope(self, residuals: Floats) -> Floats:
        """Return 1 above zero."""
        return (residuals > 0.0).astype(np.float64)


def _clip_targets(targets: ArrayLike, owner: str) -> Floats:
    """Return targets clipped to [-1, 1]."""
    numbers = confidential_array(targets, name="targets", owner=owner)
    if numbers.ndim != 1 or np.isnan(numbers).any():
        raise ParameterError(f"`targets` of {owner} must be a list of numbers, none of them nan.")
    return np.clip(numbers.astype(np.float64), -1.0, 1.0)
