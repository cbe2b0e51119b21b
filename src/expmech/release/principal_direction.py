"""Principal directions as a mechanism beside the exponential mechanism on a lattice.

Theory page: docs/theory/principal_direction.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech._version import __version__
from expmech.bits import Bits, operating_system_bits, seeded_bits
from expmech.coins import Coins
from expmech.directions.bingham import ROUNDING_BITS
from expmech.directions.components import (
    ComponentLaw,
    draw_variances,
    variance_rate,
    variance_sums,
)
from expmech.directions.rows import MOST_ROWS, ROW_BITS, make_moments, row_products
from expmech.directions.terms import MOST_DIMENSION, DirectionTerms
from expmech.errors import ParameterError, ParameterTypeError, validate_choice, validate_integer
from expmech.release.certificate import RELEASE, STUDY, Certificate
from expmech.release.exponential import Release
from expmech.rounding import float_up
from expmech.samplers.base import DATA_DEPENDENT
from expmech.target import validate_epsilon
from expmech.target.problem import ADJACENCIES

_OWNER = "PrincipalDirection"
_ROWS = (
    "rows were shortened to norm at most 1 and snapped to 2^-20 toward zero one by one before"
    " their products were summed; there are at most 2^32 of them"
)
_PLATFORM = (
    "NumPy's exp and log are accurate to 16 units in the last place and its matrix products sum"
    " float64 products, in any order; the operating system's random key is secret"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Components:
    """Directions, one a row, and noisy mean squares of the rows along them.

    ``variances`` and ``total_variance`` are None unless they were asked for.
    """

    directions: NDArray[np.float64]
    variances: NDArray[np.float64] | None = None
    total_variance: float | None = None


class PrincipalDirection:
    """Draw a direction v with density ``~ exp(eta v'Av)`` on the sphere, and round it last.

    A is the sum of ``xx'`` over rows of norm at most one; eta is ``epsilon / 2`` under "replace"
    and ``epsilon`` under "add-remove", rounded down to 22 bits. Further components are drawn from
    the same law on what earlier ones leave, each at an equal share of epsilon.

    Parameters
    ----------
    products
        Sums of products of columns of whole-number rows in units of 2^-20, shape (d, d).
        Confidential.
    count
        Number of rows. Confidential under "add-remove".
    n_components
        Number of directions, 1 to d.
    variances
        Whether a tenth of epsilon goes to noisy variances along them.
    adjacency
        "replace" or "add-remove".

    Examples
    --------
    >>> rows = np.array([[0.6, 0.8], [0.0, 1.0], [-0.5, -0.5]])
    >>> mechanism = PrincipalDirection.from_rows(rows)
    >>> mechanism.release(epsilon=1.0).value.directions.shape
    (1, 2)
    """

    def __init__(
        self,
        *,
        products: Any,
        count: int,
        n_components: int = 1,
        variances: bool = False,
        adjacency: str = "replace",
    ) -> None:
        self.adjacency = validate_choice(
            adjacency, name="adjacency", owner=_OWNER, choices=ADJACENCIES
        )
        whole = np.array(products, dtype=object)
        if whole.ndim != 2 or not 1 <= len(whole) <= MOST_DIMENSION or len({*whole.shape}) != 1:
            raise ParameterError(
                f"`products` of {_OWNER} must be a square table of 1 to {MOST_DIMENSION} columns."
            )
        self.dimension = len(whole)
        self.n_components = validate_integer(
            n_components, name="n_components", owner=_OWNER, low=1, high=self.dimension
        )
        if not isinstance(variances, bool):
            raise ParameterTypeError(
                f"`variances` of {_OWNER} must be True or False; got {variances!r}."
            )
        self.variances = variances
        self._count = _validate_count(count, adjacency)
        self._products = _validate_products(whole, self._count)
        self._laws: dict[Fraction, ComponentLaw] = {}

    @classmethod
    def from_rows(
        cls,
        rows: ArrayLike,
        *,
        n_components: int = 1,
        variances: bool = False,
        adjacency: str = "replace",
    ) -> PrincipalDirection:
        """Shorten rows of shape (n, d) to norm at most one, snap and multiply them."""
        table = np.asarray(rows)
        if table.dtype.kind not in "fiu" or table.ndim != 2 or table.shape[1] == 0:
            raise ParameterTypeError(f"`rows` of {_OWNER} must be numbers of shape (n, d).")
        table = table.astype(np.float64)
        if np.isnan(table).any():
            raise ParameterError(f"`rows` of {_OWNER} must not hold nan.")
        return cls(
            products=row_products(table),
            count=len(table),
            n_components=n_components,
            variances=variances,
            adjacency=adjacency,
        )

    def terms(self, epsilon: float | Fraction) -> DirectionTerms:
        """Return everything public about a draw at ``epsilon``: shares, eta, noise."""
        return DirectionTerms(
            epsilon=validate_epsilon(epsilon, owner=_OWNER),
            dimension=self.dimension,
            n_components=self.n_components,
            variances=self.variances,
            adjacency=self.adjacency,
        )

    def release(self, *, epsilon: float | Fraction) -> Release:
        """Draw with randomness from the operating system; the value may leave."""
        return self._draw_one(epsilon, RELEASE, operating_system_bits())

    def study(self, *, epsilon: float | Fraction, seed: int | Sequence[int]) -> Release:
        """Draw from a seeded stream, as :meth:`release` would; its certificate says so."""
        return self._draw_one(epsilon, STUDY, seeded_bits(seed))

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.float64]:
        """Draw ``size`` independent answers, shape (size, k, d): for studies, never a release."""
        size = validate_integer(size, name="size", owner=f"{_OWNER}.sample", low=1, high=1 << 40)
        return self._law(self.terms(epsilon)).draw(Coins(seeded_bits(seed)), size)

    def certificate(self, *, epsilon: float | Fraction) -> Certificate:
        """Return the certificate a release would carry, without drawing anything."""
        return self._certify(epsilon, RELEASE, operating_system_bits())

    def draw(self, coins: Coins, *, epsilon: float | Fraction) -> Components:
        """Draw the components, and their variances if asked for, from ``coins``."""
        terms = self.terms(epsilon)
        directions = self._law(terms).draw(coins, 1)[0]
        if not self.variances:
            return Components(directions=directions)
        sums = variance_sums(self._products, self._count, 2 * ROW_BITS, directions)
        replace = self.adjacency == "replace"
        rate = variance_rate(terms.variance_epsilon, self.n_components, replace=replace)
        found, total = draw_variances(coins, sums, rate, self._count if replace else None)
        return Components(directions=directions, variances=found, total_variance=total)

    def _law(self, terms: DirectionTerms) -> ComponentLaw:
        """Return the confidential half at one eta; it is fitted once."""
        if terms.eta not in self._laws:
            etas = [terms.eta] * self.n_components
            self._laws[terms.eta] = ComponentLaw(make_moments(self._products), etas)
        return self._laws[terms.eta]

    def _draw_one(self, epsilon: float | Fraction, kind: str, bits: Bits) -> Release:
        certificate = self._certify(epsilon, kind, bits)
        return Release(value=self.draw(Coins(bits), epsilon=epsilon), certificate=certificate)

    def _certify(self, epsilon: float | Fraction, kind: str, bits: Bits) -> Certificate:
        terms = self.terms(epsilon)
        domain: dict[str, Any] = {
            "kind": "Sphere",
            "dimension": self.dimension,
            "row_bits": ROW_BITS,
            "rounding_bits": ROUNDING_BITS,
        }
        if self.adjacency == "replace":
            domain["count"] = self._count
        return Certificate(
            kind=kind,
            epsilon=max(float(epsilon), float_up(terms.epsilon)),
            delta=0.0,
            adjacency=self.adjacency,
            sensitivity=float(terms.sensitivity),
            loss_error=0.0,
            eta=float(terms.eta),  # exact: it has 22 bits
            domain=domain,
            sampler=terms.describe(),
            timing=DATA_DEPENDENT,
            randomness=bits.source,
            assumptions=(_ROWS, _PLATFORM),
            version=__version__,
        )


def _validate_count(count: int, adjacency: str) -> int:
    """Return the number of rows; under add-remove an error must not tell it."""
    rule = f"`count` of {_OWNER} must be a whole number up to 2^32, at least 1 under 'replace'."
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        raise ParameterTypeError(rule)
    if not (1 if adjacency == "replace" else 0) <= count <= MOST_ROWS:
        raise ParameterError(rule)
    return int(count)


def _validate_products(whole: NDArray[np.object_], count: int) -> NDArray[np.object_]:
    """Return the products as Python integers; raise unless rows of norm one can have them."""
    rule = (
        f"`products` of {_OWNER} must be sums of products of whole-number rows of norm at most"
        " 2^20: a symmetric table of whole numbers whose trace is at most count * 2^40."
    )
    if not all(isinstance(entry, (int, np.integer)) for entry in whole.flat):
        raise ParameterTypeError(rule)
    found = np.array([[int(entry) for entry in row] for row in whole], dtype=object)
    diagonal = np.diagonal(found)
    pairs = diagonal[:, None] + diagonal[None, :]  # at least 2 |x_i x_j| a row
    if (found != found.T).any() or (2 * abs(found) > pairs).any():
        raise ParameterError(rule)
    if sum(diagonal) > count << (2 * ROW_BITS):
        raise ParameterError(rule)
    return found
