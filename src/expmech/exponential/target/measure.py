"""A public base measure: what the law of the exponential mechanism is a density against.

Its energies are integers that are added after calibration. They are the same for every data set,
so they cost nothing. Proofs: docs/theory/base_measure.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech.core.arrays import Array, Flags, Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import (
    LossError,
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    validate_number,
    validate_vector,
)
from expmech.domains import Domain, Indices
from expmech.domains.base import probe_indices
from expmech.exponential.target.calibration import ENERGY_CAP, RELATIVE_LOSS_ERROR
from expmech.losses.base import validate_function

OWNER = "BaseMeasure"
SMALL_TABLE = 1 << 16
"""Largest lattice that is listed to find a range, a share or a normaliser."""

BROKEN = (
    "`base` of ExponentialMechanism must return one float64 number per row, from `least` to `most`"
    " (0 unless declared), and -infinity only with `excludes=True`; it did not."
)
NOT_REPEATABLE = (
    "`base` of ExponentialMechanism must give the same float for the same point in any batch; it"
    " did not. Avoid matrix products over the batch."
)
REPEATABLE = (
    "the base measure is public and gives the same float for the same point in any batch"
    " (spot-checked)"
)
NEEDS_LIST = (
    "A sampler that starts at a uniform point needs a lattice of at most 2^16 points where `base`"
    " excludes some. Use fewer bits, Rejection or ConfAtomPerfect."
)
_UP = 1.0 + 2.0**-40  # more than float64 sums of a bound can lose
_EXCLUDES_ALL = (
    "`base` of ExponentialMechanism must leave at least one point of the domain; it excludes all."
)


@dataclass(frozen=True, eq=False)
class BaseMeasure:
    """A public measure with a log-density on the domain: a prior, a region of plausible answers.

    Parameters
    ----------
    log_density : callable
        Takes points as a loss does and returns as many float64 numbers, up to a constant that does
        not matter. Minus infinity excludes a point.
    name : str, optional
        What certificates call it; by default the function's own name.
    most, least : float, optional
        Public bounds: ``least <= log_density <= most`` wherever it is not minus infinity. A tight
        ``most`` saves proposals; ``least`` is needed where a number of steps is fixed beforehand on
        a large lattice.
    lipschitz : array-like, optional
        One constant per coordinate; the box tree then follows the measure too.
    terms : callable, optional
        ``terms(coordinates, values)``, none above 0: the log-density is their sum. A loss that is a
        sum over coordinates is then still drawn coordinate by coordinate.
    excludes : bool, default False
        Whether points are excluded. The loss is never evaluated there.

    Examples
    --------
    >>> BaseMeasure(lambda y: -(y[:, 0] ** 2) / 2, name="standard normal", least=-8.0).most
    0.0
    """

    log_density: Callable[[Array], Any]
    _: KW_ONLY
    name: str | None = None
    most: float = 0.0
    least: float | None = None
    lipschitz: Any = None
    terms: Callable[[Integers, Floats], Any] | None = None
    excludes: bool = False

    def __post_init__(self) -> None:
        validate_function(self.log_density, name="log_density", owner=OWNER)
        if self.terms is not None:
            validate_function(self.terms, name="terms", owner=OWNER)
        if not isinstance(self.excludes, bool):
            raise ParameterTypeError(
                f"`excludes` of {OWNER} must be True or False; got {self.excludes!r}."
            )
        most = validate_number(self.most, name="most", owner=OWNER)
        if self.least is not None:
            least = validate_number(self.least, name="least", owner=OWNER)
            if least > most:
                raise ParameterError(
                    f"`least` of {OWNER} must be at most `most`, {float(most)}; got {self.least!r}."
                )
        if self.terms is not None and (self.excludes or most != 0):
            raise ParameterError(
                f"`terms` of {OWNER} must go with most=0.0 and excludes=False: none is above 0, and"
                f" none excludes; got {self.most!r} and {self.excludes!r}."
            )

    @property
    def label(self) -> str:
        """What certificates call it."""
        kind = type(self.log_density).__name__
        return self.name or str(getattr(self.log_density, "__name__", kind))

    def slopes(self, dimension: int) -> Floats | None:
        """Return the Lipschitz constants, one per coordinate, none negative; None without them."""
        if self.lipschitz is None:
            return None
        slopes = validate_vector(self.lipschitz, name="lipschitz", owner=OWNER, length=dimension)
        if (slopes < 0).any():
            raise ParameterError(f"`lipschitz` of {OWNER} must not be negative; got {slopes!r}.")
        return slopes

    def evaluate(self, points: Array) -> Floats:
        """Return the log-density at points, checked for type, shape and declared range."""
        logs = np.asarray(self.log_density(points))
        if logs.dtype != np.float64 or logs.shape != (len(points),) or np.isnan(logs).any():
            raise LossError(BROKEN)
        kept = logs > -np.inf
        # Floors and forecasts rest on the declared range, so a density outside of it is refused.
        below = self.least is not None and (kept & (logs < self.least)).any()
        excluded = not self.excludes and not kept.all()
        if below or excluded or (logs > self.most).any():
            raise LossError(BROKEN)
        return logs

    def check_repeatable(self, domain: Domain) -> None:
        """Raise unless the log-density gives bit-equal values on public points in any batch."""
        if not is_repeatable(self.evaluate, domain.points(probe_indices(domain))):
            raise LossError(NOT_REPEATABLE)


def is_repeatable(evaluate: Callable[[Any], Floats], rows: Array) -> bool:
    """Tell whether a function gives bit-equal numbers for rows in order, backwards and alone."""
    whole = evaluate(rows)
    backwards = evaluate(np.ascontiguousarray(rows[::-1]))[::-1]
    single = [evaluate(rows[j : j + 1]) for j in range(len(rows))]
    alone = np.concatenate([whole[:0], *single])
    return np.array_equal(whole, backwards) and np.array_equal(whole, alone)


def validate_base(base: object, domain: Domain) -> BaseMeasure | None:
    """Return the base measure, made of a function where only that is given, checked on probes."""
    if base is None:
        return None
    measure = base if isinstance(base, BaseMeasure) else BaseMeasure(base)  # type: ignore[arg-type]
    widths = domain.axis_widths
    if widths is not None:
        measure.slopes(len(widths))
    elif measure.lipschitz is not None:
        raise ParameterError(f"`lipschitz` of {OWNER} must be left out on a list of candidates.")
    measure.check_repeatable(domain)
    return measure


@dataclass(frozen=True, eq=False)
class Measure:
    """A base measure on a lattice as integer energies ``B = round((most - log_density) U) >= 0``.

    They saturate at 2^60 units. Everything here is public.
    """

    base: BaseMeasure
    domain: Domain
    units_per_nat: int

    @cached_property
    def probe(self) -> Indices:
        """A fixed point of the domain, which may be excluded."""
        return np.asarray(probe_indices(self.domain)[0])

    def energy_of_points(self, points: Array) -> Integers:
        """Return B at points that are not excluded."""
        return self._round(self.base.evaluate(points), ENERGY_CAP)

    def energy(self, indices: Indices) -> Integers:
        """Return B at lattice points that are not excluded."""
        return self.energy_of_points(self.domain.points(indices))

    def term_energy(self, columns: Integers, values: Floats) -> Integers:
        """Return ``B_j`` of the terms ``columns`` at ``values``, each up to ``2^60 / d``."""
        logs = np.asarray(None if self.base.terms is None else self.base.terms(columns, values))
        if logs.dtype != np.float64 or logs.shape != values.shape or not np.isfinite(logs).all():
            raise LossError(BROKEN)
        if (logs > 0.0).any():
            raise LossError(BROKEN)
        return self._round(logs, ENERGY_CAP // self.domain.dimension)

    def _round(self, logs: Floats, cap: int) -> Integers:
        scaled = np.rint((self.base.most - logs) * self.units_per_nat)
        return np.minimum(scaled, float(cap)).astype(np.int64)

    def includes(self, indices: Indices) -> Flags:
        """Tell which points of the lattice are not excluded."""
        if not self.base.excludes:
            return np.ones(len(indices), dtype=np.bool_)
        return np.asarray(self.base.evaluate(self.domain.points(indices)) > -np.inf)

    @cached_property
    def listed(self) -> Indices | None:
        """Every point that is not excluded, on a lattice of at most 2^16 points, else None."""
        indices = self.domain.all_indices(SMALL_TABLE)
        if indices is None:
            return None
        kept = np.ascontiguousarray(indices[self.includes(indices)])
        if not len(kept):
            raise ParameterError(_EXCLUDES_ALL)
        return kept

    @cached_property
    def spread(self) -> float | None:
        """A bound on B in nats, by ``least`` or by listing a small lattice; None without either."""
        if self.listed is not None:
            return float(self.energy(self.listed).max()) / self.units_per_nat * _UP
        if self.base.least is None:
            return None
        wide = float(Fraction(self.base.most) - Fraction(self.base.least))
        return min(wide * _UP + 2.0 / self.units_per_nat, ENERGY_CAP / self.units_per_nat)

    @cached_property
    def log_share(self) -> float | None:
        """Log of the share of points that are not excluded, rounded down; None where unknown."""
        if not self.base.excludes:
            return 0.0
        if self.listed is None:
            return None
        return math.log(len(self.listed)) - self.domain.log_size - 1e-9

    @cached_property
    def error(self) -> float:
        """Nats by which a computed B may miss the true one, where it is Lipschitz: 2^-44 of it."""
        slopes, widths = self.base.slopes(self._columns), self.domain.axis_widths
        rise = 0.0 if slopes is None or widths is None else float((slopes * widths).sum())
        here = self.energy(probe_indices(self.domain)[:1])[0] / self.units_per_nat
        return float(RELATIVE_LOSS_ERROR) * (abs(self.base.most) + float(here) + rise)

    @property
    def _columns(self) -> int:
        widths = self.domain.axis_widths
        return 0 if widths is None else len(widths)

    def draw_uniform(self, coins: Coins, size: int) -> Indices:
        """Draw uniform points among those that are not excluded."""
        if not self.base.excludes:
            return self.domain.draw_uniform(coins, size)
        if self.listed is None:
            raise UnsupportedError(NEEDS_LIST)
        # Exclusions are public, so how many points are left is, too.
        return self.listed[coins.integers_below(len(self.listed), size)]

    def describe(self) -> dict[str, Any]:
        """Return what a certificate says of the measure, with a digest of B at public points."""
        slopes = self.base.slopes(self._columns)
        return {
            "name": self.base.label,
            "most": float(self.base.most),
            "least": None if self.base.least is None else float(self.base.least),
            "lipschitz": None if slopes is None else slopes.tolist(),
            "excludes": self.base.excludes,
            "digest": self.digest(),
        }

    def digest(self) -> str:
        """Return SHA-256 of B at the public probe points, -1 for those that are excluded."""
        probes = probe_indices(self.domain)
        kept = self.includes(probes)
        energies = np.full(len(probes), -1, dtype="<i8")
        energies[kept] = self.energy(probes[kept])
        return hashlib.sha256(energies.tobytes()).hexdigest()
