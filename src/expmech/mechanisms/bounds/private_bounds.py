"""Bounds of a column: noise on counts by sign and exponent, then a choice of an interval.

Theory page: docs/theory/private_bounds.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.accuracy import LEVEL, half_width
from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    SECRET_KEY,
    Check,
    budgets,
    check_assumed,
    check_between,
    check_count,
    check_described,
    check_equal,
    check_noise,
)
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import Array
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import ParameterError, ParameterTypeError, shielded, validate_integer
from expmech.core.rounding import float_down
from expmech.exponential.target import ENERGY_CAP
from expmech.mechanisms.bounds import rule
from expmech.mechanisms.bounds.grid import LARGEST, NOWHERE, Magnitudes
from expmech.mechanisms.selection.permute_and_flip import first_of_a_random_order
from expmech.theory.concentrated import rho_of_discrete_laplace, rho_of_pure

_OWNER, _KIND = "PrivateBounds", "Bounds"
OCTAVES_SHARE = Fraction(2, 3)
"""Share of epsilon for counts by exponent; the rest is for the choice of an interval in them."""

_FINE_FROM = 500
"""Rows times epsilon from which cells are half an octave, split at 3/2."""

_FARTHEST_ZOOM = 8.0  # bounds of one sign whose ratio is at most this are looked at more closely
_SMALLEST = 2.0**-940  # bounds of smaller numbers would be too near to each other to divide by
_MOST_ROWS = 1 << 60
_ROUNDED = Fraction(1, 1 << 52)  # of a rate, where it becomes a float
_ONE_CELL = "a row counts for one cell at most, and which one was decided from that row alone"
_DETECTION = (
    "bounds are found in at least 95% of releases where {shown_from} values of the column have"
    " sizes near 1 within a factor of {factor}; of very large or very small values more are needed"
)
_CLIPPED_LATER = (
    "values outside of the bounds are clipped later on: bounds leave out what few rows have; a"
    " release may find none, and has spent its epsilon all the same"
)
Bounds = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class HistogramTerms:
    """The public half: the rates of both steps, and how finely octaves are cut."""

    rate: Fraction
    split: int
    grid: Magnitudes

    @property
    def octaves_rate(self) -> Fraction:
        """Return the rate of the noise on counts by exponent."""
        return self.rate * OCTAVES_SHARE

    @property
    def interval_rate(self) -> Fraction:
        """Return what one value outside adds to the energy of an interval, in nats."""
        return self.rate - self.octaves_rate

    @property
    def levels(self) -> rule.Levels:
        """Return what counts by exponent are compared with."""
        return rule.octave_levels(self.grid.octaves, self.grid.least, self.split)

    @property
    def shown_from(self) -> int:
        """Return how many rows of one cell near 1 are seen in 95% of releases."""
        cells = self.grid.octaves * self.split
        near = cells + 1 + max(0, min(1 - self.grid.least, self.grid.octaves - 1)) * self.split
        least = rule.threshold(self.levels[0][near : near + 1], float(self.octaves_rate))[0]
        return int(least) + half_width(self.octaves_rate, 2 * (1 - LEVEL))

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what a certificate states."""
        return {
            "noise": "discrete Laplace",
            "split": self.split,
            "octaves_share": float(OCTAVES_SHARE),
            "shown_from": self.shown_from,
        }


def _validate_counts(counts: Mapping[int, int], grid: Magnitudes) -> dict[int, int]:
    """Return counts by place of the grid; no message names one."""
    kept = shielded(
        lambda: {int(place): int(n) for place, n in counts.items() if n > 0},
        ParameterTypeError(f"`counts` of {_OWNER} must be whole numbers by place."),
    )
    if any(not NOWHERE <= place < grid.size for place in kept):
        raise ParameterError(f"`counts` of {_OWNER} must be of places of the grid.")
    if sum(kept.values()) > _MOST_ROWS:
        raise ParameterError(f"`counts` of {_OWNER} must be at most 2^60, all together.")
    return kept


@dataclass(frozen=True, kw_only=True)
class PrivateBounds(Mechanism):
    """Find bounds of a column by noisy counts of its values by sign and binary exponent.

    Cells whose noisy counts are large are seen, and the bounds reach from the first to the last of
    them. Of a column far from zero, such as years, a narrower interval is chosen. Where no cell is
    seen, there are no bounds. Make one with :meth:`from_counts` or
    :meth:`from_values`.

    Parameters
    ----------
    adjacency : Adjacency
        Which data sets are neighbours.
    grid : Magnitudes
        The public places of numbers.
    rows : int or None
        The number of rows where it is public: it decides how fine the cells are.
    counts : mapping from int to int
        How many values are in each place; confidential.

    Examples
    --------
    >>> ages = np.random.default_rng(1).normal(40.0, 12.0, 5000)
    >>> PrivateBounds.from_values(ages).study(epsilon=1.0, seed=1).value
    (0.0, 128.0)
    """

    name = _OWNER

    adjacency: Adjacency
    grid: Magnitudes = field(default_factory=Magnitudes)
    rows: int | None = None
    counts: Mapping[int, int] = field(repr=False)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[int, int],
        *,
        adjacency: str = "add-remove",
        rows: int | None = None,
        grid: Magnitudes | None = None,
    ) -> PrivateBounds:
        """Take confidential counts by place.

        Parameters
        ----------
        counts : mapping from int to int
            How many values are in each place of the grid; -1 for those that are no numbers.
            Confidential.
        adjacency : {"add-remove", "replace"}, default "add-remove"
            Which data sets are neighbours.
        rows : int, optional
            About how many rows there are, where that is public and not from this table: from
            ``rows * epsilon = 500`` on cells are half as wide. Under replace it is counted.
        grid : Magnitudes, optional
            The places; by default those of all float64 numbers.

        Returns
        -------
        PrivateBounds

        Raises
        ------
        ParameterError, ParameterTypeError
            Where an argument breaks its rule.
        """
        relation = validate_adjacency(adjacency, owner=_OWNER)
        if rows is not None:
            validate_integer(rows, name="rows", owner=_OWNER, low=1, high=_MOST_ROWS)
        places = grid or Magnitudes()
        kept = _validate_counts(counts, places)
        if relation.count_is_public:
            rows = sum(kept.values())
        return cls(adjacency=relation, grid=places, rows=rows, counts=kept)

    def with_data(self, counts: Mapping[int, int]) -> PrivateBounds:
        """Return the same search in other values, by how many are in each place."""
        # The number of rows is public here, and the mechanism was certified for it.
        kept = _validate_counts(counts, self.grid)
        if self.adjacency.count_is_public and sum(kept.values()) != self.rows:
            raise ParameterError(f"`counts` of {_OWNER} must be of as many rows as before.")
        return dataclasses.replace(self, counts=kept)

    @classmethod
    def from_values(
        cls, values: Any, *, adjacency: str = "add-remove", rows: int | None = None
    ) -> PrivateBounds:
        """Take the confidential values of a column.

        Parameters
        ----------
        values : array-like of float
            The values; confidential.
        adjacency, rows
            As for :meth:`from_counts`.

        Returns
        -------
        PrivateBounds
        """
        grid = Magnitudes()
        array = shielded(
            lambda: np.asarray(values, dtype=np.float64).reshape(-1),
            ParameterTypeError(f"`values` of {_OWNER} must be numbers."),
        )
        return cls.from_counts(grid.count(array), adjacency=adjacency, rows=rows, grid=grid)

    def terms(self, budget: Fraction) -> HistogramTerms:
        """Return the rates and the cells; raise where so few rows cannot be seen."""
        terms = _terms(budget, self.adjacency, self.rows, self.grid)
        if self.rows is not None and self.rows < terms.shown_from:
            raise ParameterError(
                f"`epsilon` of {_OWNER} is too small for {self.rows} rows: private bounds would be"
                f" found in less than 95% of releases even if all rows had one size, and"
                f" {terms.shown_from} rows are needed for that. Use a larger epsilon, or give"
                " public bounds."
            )
        return terms

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return what is public about a draw: everything but the counts."""
        terms = self.terms(budget)
        stated = {"rows": self.rows} if self.adjacency == Adjacency.ADD_REMOVE else {}
        parameters = terms.parameters | stated
        return PublicTerms(
            adjacency=self.adjacency,
            sensitivity=float(self.adjacency.rows_moved),
            eta=float_down(terms.rate),
            domain=_domain(self.grid) | self.adjacency.public(self.rows or 0),
            parameters=parameters,
            assumptions=_assumed(parameters),
            timing=DATA_DEPENDENT,
            seconds=1e-2,
            note=_detection(parameters),
            shown_from=terms.shown_from,
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of bounds, pairs of floats; None where no cell is seen."""
        terms = self.terms(budget)

        def draw(coins: Coins, size: int) -> Draws:
            values = np.empty(size, dtype=object)
            for j in range(size):
                values[j] = self._bounds(coins, terms)
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64))

        return draw

    def _bounds(self, coins: Coins, terms: HistogramTerms) -> Bounds | None:
        """Draw bounds; what follows the noisy counts is post-processing, but for the interval."""
        grid, split = self.grid, terms.split
        middle = grid.octaves * split
        numbers = [(place, n) for place, n in self.counts.items() if place != NOWHERE]
        counts = np.zeros(2 * middle + 1, dtype=np.int64)
        for place, n in numbers:
            counts[_cell(place - grid.zero, grid.parts // split) + middle] += n
        # every cell gets noise, also empty ones: which cells have rows is confidential
        noisy = counts + coins.discrete_laplace(terms.octaves_rate, len(counts))
        ends = rule.find_octaves(noisy, float(terms.octaves_rate), terms.levels)
        if ends is None:
            return None
        first, last = (end - middle for end in ends)
        if first <= 0 <= last:
            return _set_apart(self._edge(first, split), self._edge(last, split))
        sign = 1 if first > 0 else -1
        near, far = sorted((abs(first), abs(last)))
        step = grid.parts // split
        inner, outer = grid.edge(grid.zero + step * (near - 1) + 1), self._edge(far, split)
        # Up to here all is post-processing of the noisy counts. Whether an interval is chosen
        # depends on them; its epsilon is charged either way.
        near_zero = outer > min(_FARTHEST_ZOOM * inner, LARGEST / 2) or inner <= _SMALLEST
        if not near_zero and not rule.goes_on_to_zero(noisy, ends, split):
            rows = float(noisy[ends[0] : ends[1] + 1].sum())
            near, far = sorted(abs(end - middle) for end in rule.certain(noisy, ends))
            apart = self._edge(near, split), grid.edge(grid.zero + step * (far - 1) + 1)
            inner, outer = self._choose_interval(coins, terms, sign, outer, rows, apart)
        else:
            inner = 0.0
        return _set_apart(inner, outer) if sign > 0 else _set_apart(-outer, 0.0 - inner)

    def _choose_interval(
        self,
        coins: Coins,
        terms: HistogramTerms,
        sign: int,
        outer: float,
        rows: float,
        apart: Bounds,
    ) -> Bounds:
        """Return an interval between zero and ``outer`` by permute-and-flip.

        Its energy is the number of values outside, and what its width is worth by public rules. It
        begins below the first number of ``apart`` and ends above the second.
        """
        grid = self.grid
        places = np.array([place for place in self.counts if place != NOWHERE], dtype=np.int64)
        counts = np.array([self.counts[place] for place in places.tolist()], dtype=np.int64)
        sizes = np.array([sign * grid.edge(place) for place in places.tolist()])
        order = np.argsort(sizes)
        up_to = np.concatenate([[0], np.cumsum(counts[order])])
        rate = float(terms.interval_rate)
        ends, halvings = rule.intervals(grid.parts, rows, rate)
        unit = math.ldexp(0.5, math.frexp(np.nextafter(outer, 0.0))[1]) / grid.parts
        both = (ends[:, 0] * unit < apart[0]) & (ends[:, 1] * unit > apart[1])
        ends, halvings = ends[both], halvings[both]
        # a row moves the number of values outside by at most 1: docs/theory/private_bounds.md,
        # Theorem 1
        below, above = up_to[np.searchsorted(sizes[order], ends * unit)].T
        outside = int(up_to[-1]) - (above - below)
        worth = rule.worth_of_a_halving(rows, rate)
        widths = np.rint((halvings.max() - halvings) * worth * UNITS_PER_NAT).astype(np.int64)
        per_value = math.floor(terms.interval_rate * UNITS_PER_NAT)
        # Saturation is the same monotone map for neighbours, so energies come no further apart.
        energies = np.minimum(outside, ENERGY_CAP // max(1, per_value)) * per_value + widths
        # permute-and-flip needs a candidate of energy 0; the difference is the same for all
        chosen = first_of_a_random_order(coins, energies - energies.min())
        lower, upper = (ends[chosen] * unit).tolist()
        least = grid.edge(grid.zero + 1)  # smaller numbers are in its place
        lower, upper = lower if lower >= least else 0.0, max(upper, least)
        return lower, min(upper, outer) if lower < outer else upper

    def _edge(self, cell: int, split: int) -> float:
        """Return the far end of a cell, counted from zero."""
        place = self.grid.parts // split * cell + (1 if cell > 0 else -1)
        return 0.0 if cell == 0 else self.grid.edge(self.grid.zero + place)

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute the rate, the fineness of cells, and from how many rows bounds are found."""
        c, parameters = certificate, certificate.sampler
        adjacency = validate_adjacency(c.adjacency, owner=_OWNER)
        moved = adjacency.rows_moved
        least, largest = c.domain["exponents"]
        grid = Magnitudes(least=least, largest=largest, parts=c.domain["parts"])
        rows = c.domain["count"] if adjacency.count_is_public else parameters["rows"]
        least_paid, most_paid = paid = budgets(c)
        low, high = (_terms(budget, adjacency, rows, grid) for budget in paid)
        kept = {name: parameters[name] for name in ("shown_from", "split")}
        stated = {} if adjacency.count_is_public else {"rows": rows}
        expected = {"sampler": _OWNER, **high.parameters, **stated, **kept}
        # a larger budget may cut cells in two, and halves are seen from more rows on
        shown_from = sorted((low.shown_from, high.shown_from))
        return [
            *check_noise(c, _OWNER, DATA_DEPENDENT, float(moved)),
            check_equal("delta", float(c.delta), 0.0),
            Check(
                claim="eta",
                holds=least_paid * (1 - _ROUNDED) <= Fraction(c.eta) * moved <= most_paid,
                detail=f"{c.eta!r}, paid {moved} times, of {float(most_paid)!r}",
            ),
            check_between("cells", kept["split"], low.split, high.split),
            check_between("shown from", kept["shown_from"], *shown_from),
            check_count(c.domain, adjacency),
            check_described("domain", c.domain, _domain(grid) | adjacency.public(rows or 0)),
            check_described("parameters", dict(parameters), expected),
            check_assumed(c, _assumed(parameters)),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Array | None) -> bool:
        """Tell whether there are no bounds, or both are edges of places or stand for such."""
        if point is None or point.shape not in ((0,), (2,)):
            return False
        least, largest = certificate.domain["exponents"]
        grid = Magnitudes(least=least, largest=largest, parts=certificate.domain["parts"])
        ends = point.tolist()
        if ends != sorted(set(ends)):
            return False
        return all(grid.is_edge(end) or abs(end) in (1.0, _SMALLEST) for end in ends)

    @classmethod
    def rho(cls, certificate: Certificate, epsilon: Fraction) -> Fraction:
        """Return the rho of one count moved by one, or two at half the rate, and of the choice."""
        moved = Adjacency(certificate.adjacency).rows_moved
        octaves = moved * rho_of_discrete_laplace(epsilon * OCTAVES_SHARE / moved, 1)
        return octaves + rho_of_pure(epsilon * (1 - OCTAVES_SHARE))


def _terms(
    budget: Fraction, adjacency: Adjacency, rows: int | None, grid: Magnitudes
) -> HistogramTerms:
    rate = budget / adjacency.rows_moved
    fine = rows is not None and rows * budget >= _FINE_FROM
    return HistogramTerms(rate=rate, split=2 if fine else 1, grid=grid)


def _cell(steps: int, parts: int) -> int:
    """Return the cell of a place, both counted from zero."""
    cell = (abs(steps) + parts - 1) // parts
    return cell if steps > 0 else -cell


def _set_apart(lower: float, upper: float) -> Bounds:
    """Return bounds that are far enough apart to divide by; about zero alone, -1 and 1."""
    if lower == upper:
        return -1.0, 1.0
    if max(-lower, upper) < _SMALLEST:
        return (-_SMALLEST if lower < 0.0 else 0.0), (_SMALLEST if upper > 0.0 else 0.0)
    return lower, upper


def _domain(grid: Magnitudes) -> dict[str, Any]:
    return {"kind": _KIND, **grid.describe()}


def _detection(parameters: Mapping[str, Any]) -> str:
    factor = 2 if parameters["split"] == 1 else 1.5
    return _DETECTION.format(shown_from=parameters["shown_from"], factor=factor)


def _assumed(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a certificate lists, from the parameters that it states."""
    return (_ONE_CELL, _detection(parameters), _CLIPPED_LATER, SECRET_KEY)
