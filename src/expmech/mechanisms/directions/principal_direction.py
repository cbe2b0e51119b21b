"""Principal directions as a mechanism beside the exponential mechanism on a lattice.

Theory page: docs/theory/principal_direction.md.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import SECRET_KEY, Check, check_assumed, check_equal
from expmech.certificates.mechanism import CertificateContext, Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.postprocessing import Directions
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import ArrayLike, Floats
from expmech.core.coins import Coins
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    shielded,
    validate_flag,
    validate_integer,
)
from expmech.core.rounding import validate_epsilon
from expmech.mechanisms.directions.bingham import ROUNDING_BITS, UNIT_LENGTH, eta_below
from expmech.mechanisms.directions.components import (
    ComponentLaw,
    draw_variances,
    variance_rate,
    variance_sums,
)
from expmech.mechanisms.directions.rows import (
    MOST_ROWS,
    ROW_BITS,
    make_moments,
    row_products,
    validate_count,
    validate_products,
)
from expmech.mechanisms.directions.whole import MOST_COLUMNS
from expmech.theory.concentrated import rho_of_bounded_range, rho_of_pure

_OWNER, _KIND, _SAMPLER = "PrincipalDirection", "Sphere", "Bingham"
_ASSUMED = (
    "rows were shortened to norm at most 1 and snapped to 2^-20 toward zero one by one before"
    " their products were summed; there are at most 2^32 of them",
    "NumPy's exp and log are accurate to 16 units in the last place and its matrix products sum"
    f" float64 products, in any order; {SECRET_KEY}",
)
_TOLERANCE = Fraction(1, 1 << 40)  # an epsilon that was a float was rounded down before it was used
_LENGTH = 1e-9  # what float64 may lose of a length, a right angle or a share
_STEP = 2.0**-12  # and of a ratio in units of 2^-24
_MOST_ETA = Fraction(256)
"""A larger eta would not pay: with 2^32 rows float64 eigenpairs could not follow it."""

_VARIANCE_SHARE = Fraction(1, 10)
"""Of epsilon, where variances are requested."""

_WIDTH = {Adjacency.REPLACE: 2, Adjacency.ADD_REMOVE: 1}
"""Width of the interval in which one row moves ``v'Av``."""


@dataclass(frozen=True, kw_only=True)
class DirectionTerms:
    """Shares of epsilon and what they buy; nothing here is computed from confidential data."""

    epsilon: Fraction
    dimension: int
    n_components: int
    variances: bool
    adjacency: Adjacency

    @property
    def sensitivity(self) -> int:
        """How far apart one row can move ``v'Av``: ``epsilon = eta * width``."""
        return _WIDTH[self.adjacency]

    @property
    def variance_epsilon(self) -> Fraction:
        """The part of epsilon that pays for noisy variances."""
        return self.epsilon * _VARIANCE_SHARE if self.variances else Fraction(0)

    @property
    def component_epsilon(self) -> Fraction:
        """The part of epsilon that pays for one component."""
        # A component is drawn from what the earlier ones leave: adaptive composition of equal
        # shares.
        return (self.epsilon - self.variance_epsilon) / self.n_components

    @property
    def eta(self) -> Fraction:
        """Concentration of the law of a component, rounded down to 22 bits."""
        return eta_below(min(self.component_epsilon / self.sensitivity, _MOST_ETA))

    def describe(self) -> dict[str, Any]:
        """Return the sampler's part of a certificate; fractions as exact text."""
        return {
            "sampler": _SAMPLER,
            "components": self.n_components,
            "component_epsilon": str(self.component_epsilon),
            "variance_epsilon": str(self.variance_epsilon),
        }


def _square(products: Any) -> NDArray[np.object_]:
    """Return a confidential table of whole numbers; raise unless it is square."""
    whole: NDArray[np.object_] = shielded(
        lambda: np.array(products, dtype=object),
        ParameterTypeError(f"`products` of {_OWNER} must be a table of whole numbers."),
    )
    if whole.ndim != 2 or not 1 <= len(whole) <= MOST_COLUMNS or len({*whole.shape}) != 1:
        raise ParameterError(
            f"`products` of {_OWNER} must be a square table of 1 to {MOST_COLUMNS} columns."
        )
    return whole


class PrincipalDirection(Mechanism):
    """Draw a direction v with density ``~ exp(eta v'Av)`` on the sphere, and round it last.

    A is the sum of ``xx'`` over rows of norm at most one; eta is ``epsilon / 2`` under "replace"
    and ``epsilon`` under "add-remove", rounded down to 22 bits. Further components are drawn from
    the same law on what earlier ones leave, each at an equal share of epsilon.

    Parameters
    ----------
    products : array-like of int, shape (d, d)
        Sums of products of columns of whole-number rows in units of 2^-20. Confidential.
    count : int
        Number of rows. Confidential under "add-remove".
    n_components : int, default 1
        Number of directions, 1 to d.
    variances : bool, default False
        Whether a tenth of epsilon goes to noisy variances along them.
    adjacency : {"replace", "add-remove"}, default "replace"
        Which data sets are neighbours.

    Examples
    --------
    >>> rows = np.array([[0.6, 0.8], [0.0, 1.0], [-0.5, -0.5]])
    >>> mechanism = PrincipalDirection.from_rows(rows)
    >>> mechanism.release(epsilon=1.0).value.directions.shape
    (1, 2)
    """

    name = _OWNER
    constant_instead = "Use timing='unprotected' and let nobody see how long it takes."

    def __init__(
        self,
        *,
        products: Any,
        count: int,
        n_components: int = 1,
        variances: bool = False,
        adjacency: str = "replace",
    ) -> None:
        self.adjacency = validate_adjacency(adjacency, owner=_OWNER)
        whole = _square(products)
        self.dimension = len(whole)
        self.n_components = validate_integer(
            n_components, name="n_components", owner=_OWNER, low=1, high=self.dimension
        )
        self.variances = validate_flag(variances, name="variances", owner=_OWNER)
        self._set_rows(whole, count)

    def _set_rows(self, products: NDArray[np.object_], count: int) -> None:
        self._count = validate_count(count, least=int(self.adjacency.count_is_public), owner=_OWNER)
        self._products = validate_products(products, self._count, owner=_OWNER)

    def with_data(self, data: tuple[Any, int]) -> PrincipalDirection:
        """Return the directions of other rows, by their products and their number."""
        products, count = data
        made, whole = copy.copy(self), _square(products)
        made._set_rows(whole, count)
        if len(whole) != self.dimension or (
            self.adjacency.count_is_public and made._count != self._count
        ):
            raise ParameterError(
                f"`products` of {_OWNER} must be of as many columns and, under 'replace', of as"
                " many rows as before."
            )
        return made

    @classmethod
    def from_rows(
        cls,
        rows: ArrayLike,
        *,
        n_components: int = 1,
        variances: bool = False,
        adjacency: str = "replace",
    ) -> PrincipalDirection:
        """Shorten rows to norm at most one, round them to multiples of 2^-20 and multiply them.

        Parameters
        ----------
        rows : array-like of shape (n, d)
            Numbers without nan; confidential.
        n_components, variances, adjacency
            As for the class.

        Returns
        -------
        PrincipalDirection

        Raises
        ------
        ParameterError, ParameterTypeError
            If ``rows`` holds nan or is no table of numbers; no message names a value.
        """
        table = confidential_array(rows, name="rows", owner=_OWNER)
        if table.ndim != 2 or table.shape[1] == 0:
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

    def default_context(self) -> CertificateContext:
        """Return a context in which the value of a release is :class:`Components`."""
        return CertificateContext(
            statistic="principal directions", postprocessing=self.as_components()
        )

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return the shares of epsilon and what they buy; the products are not looked at."""
        terms = self.terms(budget)
        share = min(1.0, math.sqrt(2.0 / (math.e * self.dimension)))
        return PublicTerms(
            adjacency=self.adjacency,
            sensitivity=float(terms.sensitivity),
            eta=float(terms.eta),  # exact: it has 22 bits
            domain={
                "kind": _KIND,
                "dimension": self.dimension,
                "row_bits": ROW_BITS,
                "rounding_bits": ROUNDING_BITS,
                **self.adjacency.public(self._count),
            },
            parameters=terms.describe(),
            assumptions=_ASSUMED,
            timing=DATA_DEPENDENT,
            seconds=3e-3 + self.n_components * (8e-4 + 1e-4 * self.dimension),  # measured
            note=(
                "of the proposals for a direction about sqrt(2/(e d)) ="
                f" {share:.2g} are accepted where the law is concentrated, usually more if not"
            ),
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of long points: directions one after the other, variances, the total."""
        terms = self.terms(budget)
        law = ComponentLaw(make_moments(self._products), [terms.eta] * self.n_components)

        def draw(coins: Coins, size: int) -> Draws:
            directions, proposals = law.draw(coins, size)
            points = directions.reshape(size, -1)
            if self.variances:
                more = [self._draw_variances(terms, coins, axes) for axes in directions]
                points = np.column_stack([points, more])
            return Draws(values=points, proposals=proposals)

        return draw

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> Floats:
        """Draw independent sets of directions: an array of shape (size, components, columns)."""
        values = super().sample(epsilon=epsilon, size=size, seed=seed)
        entries = self.n_components * self.dimension
        return np.asarray(values[:, :entries].reshape(-1, self.n_components, self.dimension))

    def terms(self, epsilon: float | Fraction) -> DirectionTerms:
        """Return everything public about a draw at ``epsilon``: shares, eta, noise."""
        return DirectionTerms(
            epsilon=validate_epsilon(epsilon, owner=_OWNER),
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

    def _draw_variances(self, terms: DirectionTerms, coins: Coins, axes: Floats) -> Floats:
        sums = variance_sums(self._products, self._count, 2 * ROW_BITS, axes)
        public = self.adjacency.count_is_public
        rate = variance_rate(terms.variance_epsilon, self.n_components, replace=public)
        variances, total = draw_variances(coins, sums, rate, self._count if public else None)
        return np.append(variances, total)

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute the shares of epsilon, eta and the width that they rest on."""
        domain, parameters = certificate.domain, certificate.sampler
        if domain["kind"] != _KIND:
            other = f"{domain['kind']!r} is not what a direction is released in"
            return [Check(claim="domain", holds=False, detail=other)]
        named = parameters.get("sampler") == _SAMPLER and certificate.timing == DATA_DEPENDENT
        timing = Check(claim="timing", holds=named, detail=f"{certificate.timing!r} of {_SAMPLER}")
        if not named:
            return [timing]
        dimension, components = domain["dimension"], parameters["components"]
        fits = _counts(dimension, MOST_COLUMNS) and _counts(components, dimension)
        public = Adjacency(certificate.adjacency).count_is_public
        counted = _counts(domain.get("count"), MOST_ROWS) if public else "count" not in domain
        return [
            timing,
            Check(claim="domain", holds=fits, detail=f"{components!r} of {dimension!r} directions"),
            *_verify_shares(certificate),
            check_equal("delta", float(certificate.delta), 0.0),
            check_equal("loss error", float(certificate.loss_error), 0.0),
            check_equal("unit", certificate.unit, None),
            check_equal("rows", domain["row_bits"], ROW_BITS),
            check_equal("rounding", domain["rounding_bits"], ROUNDING_BITS),
            check_assumed(certificate, _ASSUMED),
            _verify_map(certificate),
            Check(claim="public count", holds=counted, detail="stated under 'replace' only"),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Floats | None) -> bool:
        """Tell whether a point can be directions, and variances along them, of this certificate.

        The first direction is a multiple of a vector of whole numbers whose largest is 2^24. The
        others are that within what earlier ones leave, where the basis is a function of these in
        float64; here they must have length one and be at right angles.
        """
        if point is None:
            return False
        components, dimension = certificate.sampler["components"], certificate.domain["dimension"]
        entries = components * dimension
        directions = point[:entries].reshape(components, dimension)
        square = directions @ directions.T
        largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
        steps = directions[0] * (UNIT_LENGTH / largest[0])
        return bool(
            (np.abs(square - np.eye(components)) <= _LENGTH).all()
            and (largest > 0.0).all()
            and (np.abs(steps - np.rint(steps)) <= _STEP).all()
            and _admits_variances(certificate, point[entries:])
        )

    @classmethod
    def bounded_range(cls, certificate: Certificate) -> bool:
        """Tell whether one direction alone was drawn, without variances."""
        parameters = certificate.sampler
        return parameters["components"] == 1 and Fraction(parameters["variance_epsilon"]) == 0

    @classmethod
    def rho(cls, certificate: Certificate, epsilon: Fraction) -> Fraction:
        """Return the rho of components of bounded range at equal shares and of noisy variances."""
        components = int(certificate.sampler["components"])
        noisy = Fraction(certificate.sampler["variance_epsilon"]) != 0
        variances = _VARIANCE_SHARE * epsilon if noisy else Fraction(0)
        share = (epsilon - variances) / components
        return components * rho_of_bounded_range(share) + rho_of_pure(variances)


def _verify_map(certificate: Certificate) -> Check:
    """Check that the map takes as many directions, and variances, as were drawn."""
    written, parameters = certificate.postprocessing, certificate.sampler
    drawn = {
        "components": parameters["components"],
        "dimension": certificate.domain["dimension"],
        "variances": Fraction(parameters["variance_epsilon"]) != 0,
    }
    holds = written["map"] != "directions" or all(written[key] == drawn[key] for key in drawn)
    return Check(claim="map", holds=holds, detail="of what was drawn")


def _verify_shares(certificate: Certificate) -> list[Check]:
    parameters, width = certificate.sampler, _WIDTH[Adjacency(certificate.adjacency)]
    budget = Fraction(repr(certificate.epsilon))
    each, noise = (Fraction(parameters[f"{name}_epsilon"]) for name in ("component", "variance"))
    spent = parameters["components"] * each + noise
    whole = budget * (1 - _TOLERANCE) <= spent <= budget
    shared = each > 0 and noise in (0, spent * _VARIANCE_SHARE)
    return [
        Check(claim="shares", holds=whole and shared, detail=f"{float(spent)!r} is spent"),
        _verify_scale(certificate, budget - (spent * _VARIANCE_SHARE if noise else 0)),
        check_equal("sensitivity", float(certificate.sensitivity), float(width)),
    ]


def _verify_scale(certificate: Certificate, left: Fraction) -> Check:
    """Check ``eta`` against what is left for the components, which share it equally."""
    cost = certificate.sampler["components"] * Fraction(certificate.sensitivity)
    if cost <= 0:
        return Check(claim="eta", holds=False, detail="the sensitivity is not positive")
    limit = min(left / cost, _MOST_ETA)
    high, low = eta_below(limit), eta_below(limit * (1 - _TOLERANCE))
    holds = Fraction(certificate.eta) in (high, low)
    return Check(
        claim="eta", holds=holds, detail=f"{certificate.eta!r}, recomputed {float(high)!r}"
    )


def _admits_variances(certificate: Certificate, rest: Floats) -> bool:
    if Fraction(certificate.sampler["variance_epsilon"]) == 0:
        return rest.size == 0
    if rest.size != certificate.sampler["components"] + 1:
        return False
    shares = bool(((rest >= 0.0) & (rest <= 1.0)).all())
    return shares and bool(rest[-1] >= min(rest[:-1].sum(), 1.0) - _LENGTH)


def _counts(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
