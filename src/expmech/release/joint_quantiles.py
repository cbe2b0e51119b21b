"""Many quantiles by one exponential mechanism. Theory page: docs/theory/joint_quantiles.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech._version import __version__
from expmech.adjacency import Adjacency, validate_adjacency
from expmech.bits import Bits, operating_system_bits, seeded_bits
from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Box
from expmech.errors import ParameterError, ParameterTypeError, validate_integer
from expmech.quantiles import (
    JointDraw,
    Levels,
    RankGroups,
    cells_of,
    groups_from_cells,
    groups_from_counts,
    parse_levels,
)
from expmech.release.certificate import RELEASE, STUDY, Certificate
from expmech.release.exponential import Release
from expmech.rounding import float_down, float_up
from expmech.samplers.base import DATA_DEPENDENT
from expmech.target import validate_epsilon

NAME = "JointQuantiles"
KIND = "Quantiles"
MOST_VALUES = 1 << 31
_CLIPPED = (
    "values were clipped to the public bounds and moved to the middle of one of 2^bits cells one by"
    " one before they were counted"
)
_PLATFORM = (
    "float64 sums and products are those of IEEE 754; the operating system's random key is secret"
)


@dataclass(frozen=True, kw_only=True)
class QuantileTerms:
    """The public half: what is promised, for whatever values.

    ``count`` is the number of values under "replace", and None under "add-remove", where it is
    confidential.
    """

    levels: Levels
    box: Box
    adjacency: Adjacency
    count: int | None

    def units(self, epsilon: float | Fraction) -> int:
        """Return the energy of a loss of one over the levels' denominator, in 2^-40 nats."""
        return self.levels.units(validate_epsilon(epsilon, owner=NAME), self.adjacency)

    def certificate(
        self, epsilon: float | Fraction, *, kind: str = RELEASE, bits: Bits | None = None
    ) -> Certificate:
        """Return the certificate of a draw, which no value enters."""
        units = self.units(epsilon)
        domain: dict[str, Any] = {
            "kind": KIND,
            "lower": self.box.lower.tolist(),
            "upper": self.box.upper.tolist(),
            "bits": self.box.bits,
        }
        if self.count is not None:
            domain["count"] = self.count
        return Certificate(
            kind=kind,
            epsilon=float(epsilon),
            delta=0.0,
            adjacency=self.adjacency.value,
            sensitivity=float_up(self.levels.sensitivity(self.adjacency)),
            loss_error=0.0,
            eta=float_down(Fraction(units * self.levels.denominator, UNITS_PER_NAT)),
            domain=domain,
            sampler={"sampler": NAME, "levels": self.levels.texts, "units": units},
            timing=DATA_DEPENDENT,
            randomness=(operating_system_bits() if bits is None else bits).source,
            assumptions=(_CLIPPED, _PLATFORM),
            version=__version__,
        )


@dataclass(frozen=True, kw_only=True)
class JointQuantiles:
    """Draw all quantiles at once, exactly from ``f(o) ~ exp(-eta L(o))`` on nondecreasing tuples.

    ``L(o) = sum_j |#{o_j-1 <= x < o_j} - (q_j - q_j-1) n|`` over the m + 1 intervals that outputs
    cut the lattice into. D = 2 under "replace", ``2 (1 - min_j (q_j - q_j-1))`` under "add-remove",
    and ``eta = epsilon / 2D`` rounded down to where energies are whole numbers.

    Make one with :meth:`from_values` or :meth:`from_counts`. Tables are built at the first draw and
    serve all draws of the same epsilon.

    Examples
    --------
    >>> values = np.linspace(0.0, 10.0, 101)
    >>> thirds = JointQuantiles.from_values(values, levels=["1/3", "2/3"], lower=0.0, upper=10.0)
    >>> low, high = thirds.release(epsilon=1.0).value.tolist()
    >>> 0.0 <= low <= high <= 10.0
    True
    """

    public: QuantileTerms
    groups: RankGroups = field(repr=False)
    _draws: dict[int, JointDraw] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        *,
        levels: Any,
        lower: float,
        upper: float,
        bits: int = 32,
        adjacency: str = "replace",
    ) -> JointQuantiles:
        """Sort values of shape (n,), clipped to public bounds; they are confidential.

        Parameters
        ----------
        values
            Numbers without nan.
        levels
            Increasing: decimal text ("0.1"), fractions ("1/30") or floats read as decimals.
        lower, upper, bits
            Public: outputs are the middles of ``2^bits`` cells of the bounds.
        adjacency
            "replace" or "add-remove".
        """
        box = Box([lower], [upper], bits=bits)
        parsed, relation = (
            parse_levels(levels, owner=NAME),
            validate_adjacency(adjacency, owner=NAME),
        )
        numbers = _validate_values(values)
        cells = cells_of(numbers, float(box.lower[0]), float(box.upper[0]), bits)
        return cls._make(parsed, box, relation, groups_from_cells(cells, bits))

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        levels: Any,
        lower: float,
        upper: float,
        adjacency: str = "replace",
    ) -> JointQuantiles:
        """Take how many values lie in each of ``2^bits`` equal cells: what an engine sends back."""
        parsed, relation = (
            parse_levels(levels, owner=NAME),
            validate_adjacency(adjacency, owner=NAME),
        )
        cells = np.asarray(counts)
        bits = max(1, (cells.size - 1).bit_length())
        if cells.dtype.kind not in "iu" or cells.ndim != 1 or cells.size != 1 << bits:
            raise ParameterTypeError(
                f"`counts` of {NAME} must be whole numbers, one a cell, of a power of two of cells."
            )
        box = Box([lower], [upper], bits=bits)
        wide = cells.astype(np.int64)
        if (wide < 0).any() or int(wide.sum()) > MOST_VALUES:
            raise ParameterError(f"`counts` of {NAME} must be at least 0, together at most 2^31.")
        return cls._make(parsed, box, relation, groups_from_counts(wide, bits))

    @classmethod
    def _make(
        cls, levels: Levels, box: Box, adjacency: Adjacency, groups: RankGroups
    ) -> JointQuantiles:
        if adjacency.count_is_public and groups.count == 0:
            raise ParameterError(f"`values` of {NAME} must not be empty under 'replace'.")
        count = groups.count if adjacency.count_is_public else None
        public = QuantileTerms(levels=levels, box=box, adjacency=adjacency, count=count)
        return cls(public=public, groups=groups)

    def release(self, *, epsilon: float | Fraction) -> Release:
        """Draw one tuple with randomness from the operating system; it may leave."""
        return self._draw_one(epsilon, RELEASE, operating_system_bits())

    def study(self, *, epsilon: float | Fraction, seed: int | Sequence[int]) -> Release:
        """Draw one tuple from a seeded stream, as :meth:`release` would.

        Its certificate says that it is a study.
        """
        return self._draw_one(epsilon, STUDY, seeded_bits(seed))

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.float64]:
        """Draw ``size`` independent tuples, one a row, from a seeded stream: never a release."""
        size = validate_integer(size, name="size", owner=f"{NAME}.sample", low=1, high=1 << 40)
        return self.draw(Coins(seeded_bits(seed)), epsilon=epsilon, size=size)

    def certificate(self, *, epsilon: float | Fraction) -> Certificate:
        """Return the certificate a release would carry, without drawing anything."""
        return self.public.certificate(epsilon)

    def draw(self, coins: Coins, *, epsilon: float | Fraction, size: int) -> NDArray[np.float64]:
        """Draw ``size`` tuples, one a row, from ``coins``."""
        indices = self.draw_indices(coins, epsilon=epsilon, size=size)
        return self.public.box.values(indices.reshape(-1, 1)).reshape(indices.shape)

    def draw_indices(
        self, coins: Coins, *, epsilon: float | Fraction, size: int
    ) -> NDArray[np.int64]:
        """Draw ``size`` tuples of lattice indices, one a row."""
        units = self.public.units(epsilon)
        if units not in self._draws:
            self._draws.clear()  # tables are large: those of one epsilon are kept
            self._draws[units] = JointDraw(self.groups, self.public.levels, units)
        return np.stack([self._draws[units].draw(coins) for _ in range(size)])

    def _draw_one(self, epsilon: float | Fraction, kind: str, bits: Bits) -> Release:
        certificate = self.public.certificate(epsilon, kind=kind, bits=bits)
        return Release(
            value=self.draw(Coins(bits), epsilon=epsilon, size=1)[0], certificate=certificate
        )


def verify_terms(certificate: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """Return ``(claim, holds, detail)`` for what follows from a certificate's other fields."""
    sampler, domain = certificate["sampler"], certificate["domain"]
    levels = parse_levels(sampler["levels"], owner=NAME)
    adjacency = validate_adjacency(certificate["adjacency"], owner=NAME)
    sensitivity, units = levels.sensitivity(adjacency), sampler["units"]
    least = levels.units(validate_epsilon(certificate["epsilon"], owner=NAME), adjacency)
    most = levels.units(Fraction(math.nextafter(certificate["epsilon"], math.inf)), adjacency)
    eta = float_down(Fraction(least * levels.denominator, UNITS_PER_NAT))
    Box(domain["lower"], domain["upper"], bits=domain["bits"])  # raises unless it is one
    return [
        ("sensitivity", certificate["sensitivity"] == float_up(sensitivity), f"{sensitivity}"),
        ("units", type(units) is int and least <= units <= most, f"{units}, recomputed {least}"),
        (
            "eta",
            certificate["eta"] == float_down(Fraction(units * levels.denominator, UNITS_PER_NAT)),
            f"{certificate['eta']!r}, recomputed {eta!r}",
        ),
        ("pure", certificate["delta"] == 0.0 and certificate["loss_error"] == 0.0, "delta = 0"),
        (
            "public count",
            ("count" in domain) == adjacency.count_is_public,
            f"{adjacency} adjacency",
        ),
        (
            "domain",
            domain["kind"] == KIND and len(domain["lower"]) == 1,
            f"{domain['kind']} of {NAME}",
        ),
        ("timing", certificate["timing"] == DATA_DEPENDENT, f"{certificate['timing']!r}"),
    ]


def _validate_values(values: Any) -> NDArray[np.float64]:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "fiu":
        raise ParameterTypeError(
            f"`values` of {NAME} must be an array of numbers; got dtype {numbers.dtype}."
        )
    if numbers.ndim != 1 or numbers.size > MOST_VALUES:
        raise ParameterError(f"`values` of {NAME} must have shape (n,) with n at most 2^31.")
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        raise ParameterError(f"`values` of {NAME} must not hold nan.")
    return np.ascontiguousarray(numbers, dtype=np.float64)
