"""Principal directions as a mechanism beside the exponential mechanism on a lattice.

Theory page: docs/theory/principal_direction.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.adjacency import validate_adjacency
from expmech.coins import Coins
from expmech.cost import forecast_constant
from expmech.directions import ROUNDING_BITS
from expmech.directions.components import (
    ComponentLaw,
    draw_variances,
    variance_rate,
    variance_sums,
)
from expmech.directions.rows import (
    ROW_BITS,
    make_moments,
    row_products,
    validate_count,
    validate_products,
)
from expmech.directions.terms import MOST_DIMENSION, DirectionTerms
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    confidential_array,
    shielded,
    validate_choice,
    validate_integer,
)
from expmech.release.certificate import Certificate
from expmech.release.finish import Directions
from expmech.release.prepared import Asked, Draw, Mechanism, Prepared, Told
from expmech.release.principal_direction_checks import KIND, OWNER, PLATFORM, ROWS
from expmech.samplers import TIMINGS, Draws, Option, Plan, Wanted, plan_alone
from expmech.samplers.base import CONSTANT, DATA_DEPENDENT
from expmech.target import validate_epsilon

_NO_CONSTANT = (
    "cannot promise timing='constant': how many proposals a direction takes is random, by"
    " a law that depends on the data. Use timing='unprotected' and let nobody see how long it took."
)


class PrincipalDirection(Mechanism):
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
        self.adjacency = validate_adjacency(adjacency, owner=OWNER)
        whole = shielded(
            lambda: np.array(products, dtype=object),
            ParameterTypeError(f"`products` of {OWNER} must be a table of whole numbers."),
        )
        if whole.ndim != 2 or not 1 <= len(whole) <= MOST_DIMENSION or len({*whole.shape}) != 1:
            raise ParameterError(
                f"`products` of {OWNER} must be a square table of 1 to {MOST_DIMENSION} columns."
            )
        self.dimension = len(whole)
        self.n_components = validate_integer(
            n_components, name="n_components", owner=OWNER, low=1, high=self.dimension
        )
        if not isinstance(variances, bool):
            raise ParameterTypeError(
                f"`variances` of {OWNER} must be True or False; got {variances!r}."
            )
        self.variances = variances
        self._count = validate_count(count, least=int(self.adjacency.count_is_public), owner=OWNER)
        self._products = validate_products(whole, self._count, owner=OWNER)

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
        table = confidential_array(rows, name="rows", owner=OWNER)
        if table.ndim != 2 or table.shape[1] == 0:
            raise ParameterTypeError(f"`rows` of {OWNER} must be numbers of shape (n, d).")
        table = table.astype(np.float64)
        if np.isnan(table).any():
            raise ParameterError(f"`rows` of {OWNER} must not hold nan.")
        return cls(
            products=row_products(table),
            count=len(table),
            n_components=n_components,
            variances=variances,
            adjacency=adjacency,
        )

    def default_told(self) -> Told:
        """Say that the value of a release is :class:`Components`."""
        return Told(statistic="principal directions", finish=self.as_components())

    def settle(self, asked: Asked) -> Prepared:
        """Share epsilon and certify; the products are not looked at before the first draw."""
        owner = asked.told.owner or OWNER
        validate_choice(asked.timing, name="timing", owner=owner, choices=TIMINGS)
        if asked.sampler != "auto":
            raise ParameterError(
                f"`sampler` of {owner} must be 'auto': a direction has one of its own; got"
                f" {asked.sampler!r}."
            )
        if asked.timing == CONSTANT:
            raise UnsupportedError(f"{owner} {_NO_CONSTANT}")
        terms, told = self.terms(asked.epsilon), asked.told

        def fit() -> Draw:
            law = ComponentLaw(make_moments(self._products), [terms.eta] * self.n_components)
            return lambda coins, size: self._draws(law, terms, coins, size)

        certificate = self._certify(asked.epsilon, terms, told)
        return Prepared(
            certificate=certificate,
            sampler=None,
            finish=told.finish,
            fit=fit,
            forecast_seconds=self.seconds,
        )

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.float64]:
        """Draw ``size`` independent answers, shape (size, k, d): for studies, never a release."""
        size = validate_integer(size, name="size", owner=f"{OWNER}.sample", low=1, high=1 << 40)
        values = self.prepare(epsilon=epsilon).sample(size, seed).values
        entries = self.n_components * self.dimension
        return np.asarray(values[:, :entries].reshape(size, self.n_components, self.dimension))

    def planned(self, epsilon: float | Fraction, wanted: Wanted) -> Plan:
        """Return what a release does: proposals by normal numbers, with no loss evaluated."""
        validate_choice(wanted.timing, name="timing", owner=OWNER, choices=TIMINGS)
        self.terms(epsilon)
        refusal = f"{OWNER} {_NO_CONSTANT}" if wanted.timing == CONSTANT else None
        only = Option(
            name=OWNER,
            sampler=None,
            delta=0.0,
            timing=DATA_DEPENDENT,
            forecast=forecast_constant(0.0) if refusal is None else None,
            reason=refusal,
            seconds=self.seconds(),
        )
        share = min(1.0, math.sqrt(2.0 / (math.e * self.dimension)))
        return plan_alone(
            only,
            epsilon=epsilon,
            note=(
                "no loss is evaluated: of the proposals for a direction about sqrt(2/(e d)) ="
                f" {share:.2g} are accepted where the law is concentrated, usually more elsewhere"
            ),
            refusal=refusal,
            budget_seconds=wanted.budget_seconds,
        )

    def seconds(self) -> float:
        """Return about how long a draw takes, by a public table; measured."""
        return 3e-3 + self.n_components * (8e-4 + 1e-4 * self.dimension)

    def terms(self, epsilon: float | Fraction) -> DirectionTerms:
        """Return everything public about a draw at ``epsilon``: shares, eta, noise."""
        return DirectionTerms(
            epsilon=validate_epsilon(epsilon, owner=OWNER),
            dimension=self.dimension,
            n_components=self.n_components,
            variances=self.variances,
            adjacency=self.adjacency,
        )

    def as_components(self, names: tuple[str, ...] | None = None) -> Directions:
        """Return the map from a draw, which is one long point, to directions and variances."""
        return Directions(
            components=self.n_components,
            dimension=self.dimension,
            variances=self.variances,
            names=names,
        )

    def _draws(self, law: ComponentLaw, terms: DirectionTerms, coins: Coins, size: int) -> Draws:
        """Draw long points: directions one after the other, their variances, the total."""
        directions, proposals = law.draw(coins, size)
        points = directions.reshape(size, -1)
        if self.variances:
            more = [self._draw_variances(terms, coins, axes) for axes in directions]
            points = np.column_stack([points, more])
        return Draws(values=points, proposals=proposals)

    def _draw_variances(
        self, terms: DirectionTerms, coins: Coins, axes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        sums = variance_sums(self._products, self._count, 2 * ROW_BITS, axes)
        public = self.adjacency.count_is_public
        rate = variance_rate(terms.variance_epsilon, self.n_components, replace=public)
        found, total = draw_variances(coins, sums, rate, self._count if public else None)
        return np.append(found, total)

    def _certify(self, epsilon: float | Fraction, terms: DirectionTerms, told: Told) -> Certificate:
        domain: dict[str, Any] = {
            "kind": KIND,
            "dimension": self.dimension,
            "row_bits": ROW_BITS,
            "rounding_bits": ROUNDING_BITS,
            **self.adjacency.public(self._count),
        }
        return told.certify(
            OWNER,
            epsilon,
            adjacency=str(self.adjacency),
            sensitivity=float(terms.sensitivity),
            eta=float(terms.eta),  # exact: it has 22 bits
            domain=domain,
            sampler=terms.describe(),
            timing=DATA_DEPENDENT,
            assumptions=(ROWS, PLATFORM),
        )
