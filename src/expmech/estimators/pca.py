"""Private principal components."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from expmech.directions.pca import PcaBudget, Standard, make_standard, split_epsilon
from expmech.directions.rows import row_products
from expmech.errors import ParameterError, validate_integer
from expmech.estimators.base import PrivateEstimator
from expmech.ledger import Entry, Ledger
from expmech.release import Certificate, NoisyMean
from expmech.release.noisy_mean import affordable_bits
from expmech.release.principal_direction import PrincipalDirection


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components: each direction from ``exp(eta v'Av)`` on the sphere, exactly.

    Parameters
    ----------
    n_components
        Number of directions, which share epsilon equally.
    epsilon
        Budget of one fit: a number, or decimal text.
    bounds
        Public bounds, a pair ``(lower, upper)`` for all columns or one pair a column; values
        outside are clipped.
    center
        None: a private mean, which costs a fifth of epsilon; "bounds": the middle of the bounds; or
        public numbers, one a column. Where columns are many and rows few the private mean is mostly
        noise, and so is what is centred with it: give public numbers there.
    scale
        Public numbers by which columns are divided; None: half the width of the bounds.
    row_norm
        None: every row is scaled to norm one, so that long rows do not rule; a public number:
        rows longer than it (after centring and scaling) are shortened to it.
    variances
        Whether a tenth of what the components get goes to their variances.
    timing
        "unprotected": how long a fit took may tell about the data.
    accountant, adjacency, random_state
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
    >>> model = PrivatePCA(epsilon=2.0, bounds=(-5, 5), center="bounds").fit(X)
    >>> model.transform(X).shape
    (200, 1)
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        epsilon: Any = 1.0,
        bounds: Any = None,
        center: Any = None,
        scale: Any = None,
        row_norm: float | None = None,
        variances: bool = True,
        timing: str = "unprotected",
        accountant: Any = None,
        adjacency: str = "replace",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.bounds = bounds
        self.center = center
        self.scale = scale
        self.row_norm = row_norm
        self.variances = variances
        self.timing = timing
        self.accountant = accountant
        self.adjacency = adjacency
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PrivatePCA:
        """Draw the components of X; y is ignored."""
        epsilon = self._validate_parameters()
        if self.timing != "unprotected":
            raise ParameterError(
                f"`timing` of {self._name} must be 'unprotected': the number of proposals depends"
                f" on the data; got {self.timing!r}."
            )
        table = self._validate_training(X, dtype=np.float64)
        columns = table.shape[1]
        validate_integer(
            self.n_components, name="n_components", owner=self._name, low=1, high=columns
        )
        pairs = self._validate_column_bounds(self.bounds, columns)
        lower = np.array([float(low) for low, _ in pairs])
        upper = np.array([float(high) for _, high in pairs])
        budget = split_epsilon(epsilon, private_mean=self.center is None)
        draft = self._standard(lower, upper, self._public_center(lower, upper))
        mean = self._mean_mechanism(table, lower, upper, budget) if self.center is None else None
        self._charge(mean, len(table), columns, budget)
        certificates = []
        if mean is not None:
            found = self._draw_one(mean, budget.mean, 0)
            certificates.append(found.certificate)
            draft = self._standard(lower, upper, found.value)
        rows = draft.rows(table)
        drawn = self._draw_one(self._mechanism(row_products(rows), len(rows)), budget.components, 1)
        self._keep(draft, drawn.value, [*certificates, drawn.certificate])
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the coordinates of rows, centred and scaled, along the components."""
        table = self._validate_new(X)
        return np.asarray(((table - self.mean_) / self.scale_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Return the rows that coordinates along the components stand for."""
        return np.asarray(np.asarray(X) @ self.components_ * self.scale_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _public_center(self, lower: NDArray[Any], upper: NDArray[Any]) -> Any:
        """Return the public center; where the mean is to be private, a stand-in for checks."""
        if self.center is None or (isinstance(self.center, str) and self.center == "bounds"):
            return lower / 2.0 + upper / 2.0
        return self.center

    def _standard(self, lower: NDArray[Any], upper: NDArray[Any], center: Any) -> Standard:
        return make_standard(
            lower=lower,
            upper=upper,
            center=center,
            scale=self.scale,
            row_norm=self.row_norm,
            owner=self._name,
        )

    def _mean_mechanism(
        self, table: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], budget: PcaBudget
    ) -> NoisyMean:
        bits = affordable_bits(budget.mean, lower.size)
        return NoisyMean.from_rows(
            table, lower=lower, upper=upper, bits=bits, adjacency=self.adjacency
        )

    def _mechanism(self, products: Any, count: int) -> PrincipalDirection:
        return PrincipalDirection(
            products=products,
            count=count,
            n_components=self.n_components,
            variances=self.variances,
            adjacency=self.adjacency,
        )

    def _charge(self, mean: NoisyMean | None, count: int, columns: int, budget: PcaBudget) -> None:
        """Charge both draws before the first; certificates need public numbers only."""
        blank = self._mechanism(np.zeros((columns, columns), dtype=np.int64), count)
        planned = [("components", budget.components, blank.certificate(epsilon=budget.components))]
        if mean is not None:
            planned.append(("mean", budget.mean, mean.certificate(epsilon=budget.mean)))
        if self.accountant is None:
            return
        ledger = self.accountant if isinstance(self.accountant, Ledger) else Ledger(self.accountant)
        ledger.charge_all(
            [
                Entry(
                    epsilon=epsilon,
                    delta=0.0,
                    statement=f"{self._name}: {statement}",
                    certificate=certificate.to_json(),
                )
                for statement, epsilon, certificate in planned
            ]
        )

    def _draw_one(
        self, mechanism: NoisyMean | PrincipalDirection, epsilon: Fraction, stream: int
    ) -> Any:
        if self.random_state is None:
            return mechanism.release(epsilon=epsilon)
        return mechanism.study(epsilon=epsilon, seed=(int(self.random_state), stream))

    def _keep(self, standard: Standard, found: Any, certificates: list[Certificate]) -> None:
        self.mean_, self.scale_ = standard.center, standard.scale
        self.components_ = found.directions
        if found.variances is not None:
            self.explained_variance_ = found.variances * standard.unit
            total = max(found.total_variance, np.finfo(np.float64).tiny)
            self.explained_variance_ratio_ = found.variances / total
        self.certificates_ = tuple(certificates)
        self.certificate_ = certificates[-1]
