"""ConstantMixture: the paper's (1-k) f + k g, by one coin."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from expmech.certificates.checks import Check
from expmech.certificates.forecast import Forecast
from expmech.certificates.timing import CONSTANT, DATA_INDEPENDENT
from expmech.core.arrays import Array, ArrayLike, Flags, Floats, Integers
from expmech.core.coins import Coins, ConstantTimeTable, ExponentialTable
from expmech.core.coins.table import MOST
from expmech.core.errors import ParameterError, ParameterTypeError, validate_fraction
from expmech.exponential.samplers.base import Sampler, SamplerClaims, SamplerTerms
from expmech.exponential.samplers.chain import Chain, flip, join, select
from expmech.exponential.samplers.random_atom import (
    CHOSEN_BLINDLY,
    RandomAtomPerfect,
    read_points,
    validate_points,
)
from expmech.exponential.samplers.rejection import Rejection
from expmech.exponential.target import Problem, Target
from expmech.theory import expected_cost_constant_mixture


@dataclass(frozen=True)
class MixtureState:
    """The state of f's chain, and the number of the public point that a copy takes, -1 if none."""

    inner: Any
    chosen: Integers

    @property
    def proposals(self) -> Integers:
        return np.where(self.chosen >= 0, 0, self.inner.proposals)

    @property
    def done(self) -> Flags:
        return np.asarray((self.chosen >= 0) | self.inner.done)


@dataclass(frozen=True)
class MixtureChain:
    """Flip a coin of k; heads draws a public point by its energy, tails runs the chain of f."""

    target: Target
    inner: Chain[Any]
    points: Floats
    k: Fraction

    @cached_property
    def table(self) -> ConstantTimeTable:
        """The discrete mechanism on the points; evaluated when the first coin asks for it."""
        energies = self.target.energy_of_points(self.points)
        return ConstantTimeTable(ExponentialTable(energies, self.target.units_per_nat))

    def start(self, coins: Coins, size: int) -> MixtureState:
        """Flip the coins, and draw the points of heads."""
        heads, chosen = flip(coins, self.k, size), np.full(size, -1, dtype=np.int64)
        if heads.any():
            chosen[heads] = self.table.draw(coins, int(heads.sum()))
        return MixtureState(self.inner.start(coins, size), chosen)

    def step(self, state: MixtureState, coins: Coins) -> MixtureState:
        """Advance the copies that draw f."""
        drawn, moving = (np.flatnonzero(x) for x in (state.chosen >= 0, state.chosen < 0))
        if not moving.size:
            return state
        after = self.inner.step(select(state.inner, moving), coins)
        inner = join([after, select(state.inner, drawn)], [moving, drawn])
        return MixtureState(inner, state.chosen)

    def values(self, state: MixtureState) -> Array:
        values, drawn = np.empty((len(state.chosen), self.points.shape[1])), state.chosen >= 0
        values[drawn] = self.points[state.chosen[drawn]]
        if not drawn.all():
            values[~drawn] = self.inner.values(select(state.inner, ~drawn))
        return values


class ConstantMixture(Sampler):
    """Draw exactly from ``(1-k) f + k g``, g the discrete mechanism on public points.

    The law of the paper's Corollary 1, with the constant k that it states.

    Parameters
    ----------
    points : array-like of shape (l, d)
        Public points inside the domain's bounds; they need not be lattice points.
    k : float, default 0.5
        Share of the points, in (0, 1); it does not depend on the data.
    sampler : Sampler or str, optional
        How f is drawn: any sampler whose law is f, or its name, as in ``"Rejection"``; None takes
        ``Rejection()``.

    Notes
    -----
    A coin of k decides; no normaliser is needed. Both parts are epsilon-DP, so the mixture is; a
    delta of the sampler of f stays. Expected evaluations: ``(1-k)`` times those of f, plus ``k l``.
    Theory page: docs/theory/random_atom_perfect.md.

    References
    ----------
    Seeman, Reimherr, Slavkovic (2021), Corollary 1.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([[0.2], [0.3], [0.4]])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> sampler = em.ConstantMixture([[0.25], [0.5], [0.75]], k=0.1)
    >>> mech.sample(epsilon=1.0, sampler=sampler, seed=1).values.shape
    (1, 1)
    """

    needs = "ConstantMixture needs public points; name it with them, ConstantMixture(points)."

    def __init__(
        self, points: ArrayLike, k: float = 0.5, *, sampler: Sampler | str | None = None
    ) -> None:
        self.points = read_points(points, owner="ConstantMixture")
        if len(self.points) > MOST:
            raise ParameterError(
                f"`points` of ConstantMixture must be at most 2^22; got {len(self.points)}. Use a"
                " lattice, with Tabulated or Rejection."
            )
        self.k = validate_fraction(k, name="k", owner="ConstantMixture")
        self.sampler = Rejection() if sampler is None else _named(sampler)
        if isinstance(self.sampler, (ConstantMixture, RandomAtomPerfect)):
            raise ParameterError(
                "`sampler` of ConstantMixture must be one whose law is f; got"
                f" {self.sampler.name()}, whose law has points of its own."
            )

    @property
    def label(self) -> str:
        return f"{self.name()}, {self.sampler.label}"

    @property
    def timing(self) -> str:  # type: ignore[override]
        """The class of f's sampler; the coin makes a constant number random, with a public law."""
        return DATA_INDEPENDENT if self.sampler.timing == CONSTANT else self.sampler.timing

    def reserve(self, epsilon: Fraction) -> Fraction:
        return self.sampler.reserve(epsilon)

    @property
    def rounded_terms(self) -> int:
        return self.sampler.rounded_terms

    def calibrate(self, problem: Problem, epsilon: Fraction) -> Target:
        return self.sampler.calibrate(problem, epsilon)

    def validate_base(self, target: Target) -> None:
        self.sampler.validate_base(target)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"k": float(self.k), "points": len(self.points)}

    def terms(self, target: Target) -> SamplerTerms:
        validate_points(self.points, target, owner=self.name())
        of_f = self.sampler.terms(target)
        return SamplerTerms(
            timing=self.timing,
            parameters=self.describe() | {"of_f": of_f.parameters},
            delta=of_f.delta,
            assumptions=(*of_f.assumptions, CHOSEN_BLINDLY),
        )

    def prepare(self, target: Target) -> MixtureChain:
        validate_points(self.points, target, owner=self.name())
        return MixtureChain(target, self.sampler.prepare(target), self.points, self.k)

    def forecast(self, target: Target) -> Forecast:
        """Mix the forecast of f with the evaluations of all points."""
        k, count, of_f = float(self.k), len(self.points), self.sampler.forecast(target)
        low, high = of_f.expected
        most = of_f.nearly_all[1]
        return Forecast(
            expected=(
                expected_cost_constant_mixture(k, low, count),
                None if high is None else expected_cost_constant_mixture(k, high, count),
            ),
            nearly_all=(of_f.nearly_all[0], None if most is None else max(most, float(count))),
            typical=expected_cost_constant_mixture(k, of_f.typical, count),
            calls=of_f.calls,
        )

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        from expmech.exponential.samplers.registry import SAMPLERS  # which lists this class

        of_f = parameters["of_f"]
        kind = SAMPLERS.find(str(of_f["sampler"]))
        if kind is None:
            raise ParameterError(
                f"`sampler` must be the name of a known sampler; got {of_f['sampler']!r}."
            )
        points = np.zeros((parameters["points"], 1))  # as many: a certificate does not hold them
        return cls(points, parameters["k"], sampler=kind.rebuild(of_f))

    def assumed(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return (*self.sampler.assumed(parameters["of_f"]), CHOSEN_BLINDLY)

    def verify(self, claims: SamplerClaims) -> list[Check]:
        """Check the timing class, and all that f's sampler claims."""
        of_f = dataclasses.replace(
            claims, parameters=claims.parameters["of_f"], timing=self.sampler.timing
        )
        rest = [check for check in self.sampler.verify(of_f) if check.claim != "timing"]
        return [self.verify_timing(claims), *rest]


def _named(sampler: object) -> Sampler:
    """Return the sampler given or named; "auto" is refused, since its choice is made later."""
    from expmech.exponential.samplers.registry import validate_sampler  # which lists this class

    if not isinstance(sampler, (str, Sampler)):
        raise ParameterTypeError(
            "`sampler` of ConstantMixture must be a sampler such as Rejection(), or its name; got"
            f" {sampler!r}."
        )
    chosen = validate_sampler(sampler)
    if not isinstance(chosen, Sampler):
        raise ParameterError(
            "`sampler` of ConstantMixture must be a sampler such as Rejection(), or its name; got"
            f" {sampler!r}, whose choice is made for a whole release."
        )
    return chosen
