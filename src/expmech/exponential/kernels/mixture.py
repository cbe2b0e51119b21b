"""Uniform moves, mixtures of kernels, and the list of kernels that certificates may name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from expmech.core.arrays import Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError, ParameterTypeError, validate_positive
from expmech.core.registry import Registry
from expmech.domains import Domain, Indices
from expmech.exponential.kernels.base import Kernel, Moves, SymmetricKernel
from expmech.exponential.kernels.hastings import MALA, Independence
from expmech.exponential.kernels.steps import Ball, Exchange, Gaussian, Laplace
from expmech.exponential.target import Target

_MOST_WEIGHT = 1 << 62
_COUNTABLE = 1 << 8


class UniformMoves(SymmetricKernel):
    """Moves to a uniform point of the domain, wherever they start: independence proposals.

    Examples
    --------
    >>> from expmech import Box
    >>> UniformMoves().log_minorisation(Box([0.0], [1.0]))
    0.0
    """

    name = "uniform"
    assumptions = ()

    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        return domain.draw_uniform(coins, len(indices))

    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Floats:
        points = domain.all_indices(_COUNTABLE)  # counted where they are few
        log_size = domain.log_size if points is None else math.log(len(points))
        return np.where(domain.contains(end), -log_size, -np.inf)

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return 0: every point is proposed with mass ``1/|Y|``."""
        return 0.0


class Mixture(Kernel):
    """Moves by one of several kernels, drawn anew for every move with public weights.

    A move is accepted by the ratio of the kernel that drew it: each part keeps f, so the mixture
    does.

    Parameters
    ----------
    kernels : sequence of Kernel
        At least one, symmetric or not.
    weights : sequence of float or Fraction, optional
        Positive numbers, one per kernel, read as exact fractions; None gives all the same weight.

    Examples
    --------
    >>> from expmech.exponential.kernels import Laplace
    >>> Mixture([Laplace(rate=100.0), UniformMoves()], weights=[9, 1]).describe()["weights"]
    ['9/10', '1/10']
    """

    name = "mixture"

    def __init__(
        self, kernels: Sequence[Kernel], *, weights: Sequence[float | Fraction] | None = None
    ) -> None:
        parts = tuple(kernels)
        if not parts or not all(isinstance(kernel, Kernel) for kernel in parts):
            raise ParameterTypeError(
                "`kernels` of Mixture must be a list of kernels such as UniformMoves(); got"
                f" {kernels!r}."
            )
        numbers = [1] * len(parts) if weights is None else list(weights)
        if len(numbers) != len(parts):
            raise ParameterError(
                f"`weights` of Mixture must be one per kernel, {len(parts)}; got {len(numbers)}."
            )
        exact = [validate_positive(weight, name="weights", owner="Mixture") for weight in numbers]
        self.parts = parts
        self.weights = tuple(weight / sum(exact) for weight in exact)
        common = math.lcm(*(weight.denominator for weight in self.weights))
        if common > _MOST_WEIGHT:
            raise ParameterError(
                "`weights` of Mixture must be fractions with a common denominator of at most 2^62;"
                f" got {numbers!r}. Use small whole numbers."
            )
        self._cumulative = np.cumsum([int(weight * common) for weight in self.weights])
        self.symmetric = all(kernel.symmetric for kernel in parts)
        assumptions = (text for kernel in parts for text in kernel.assumptions)
        self.assumptions = tuple(dict.fromkeys(assumptions))

    def validate(self, domain: Domain) -> None:
        for kernel in self.parts:
            kernel.validate(domain)

    def bind(self, target: Target) -> MixtureMoves:
        moves = tuple(kernel.bind(target) for kernel in self.parts)
        return MixtureMoves(moves, self.weights, self._cumulative)

    def log_minorisation(self, domain: Domain) -> float | None:
        known = [
            math.log(weight) + bound
            for weight, kernel in zip(self.weights, self.parts, strict=True)
            if (bound := kernel.log_minorisation(domain)) is not None
        ]
        if not known:
            return None
        total = float(np.logaddexp.reduce(known))
        return total - 2.0**-40 * (1.0 + abs(total))

    def describe(self) -> dict[str, Any]:
        return super().describe() | {
            "kernels": [kernel.describe() for kernel in self.parts],
            "weights": [str(weight) for weight in self.weights],
        }

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        parts = [rebuild_kernel(part) for part in description["kernels"]]
        return cls(parts, weights=[Fraction(weight) for weight in description["weights"]])


@dataclass(frozen=True, eq=False)
class MixtureMoves(Moves):
    """The moves of a mixture on one target; a chain accepts those of each part by its own ratio."""

    parts: tuple[Moves, ...]
    weights: tuple[Fraction, ...]
    cumulative: Integers

    @property
    def shares(self) -> list[float]:
        """The weights as floats."""
        return [float(weight) for weight in self.weights]

    def choose(self, coins: Coins, size: int) -> list[Integers]:
        """Draw a part for each of ``size`` rows; return the rows of each part."""
        chosen = coins.categorical(self.cumulative, size)
        return [np.flatnonzero(chosen == number) for number in range(len(self.parts))]

    def propose(self, coins: Coins, indices: Indices) -> Indices:
        moved = indices.copy()
        for rows, part in zip(self.choose(coins, len(indices)), self.parts, strict=True):
            if rows.size:
                moved[rows] = part.propose(coins, indices[rows])
        return moved

    def log_mass(self, start: Indices, end: Indices) -> Floats:
        masses = [
            math.log(weight) + part.log_mass(start, end)
            for weight, part in zip(self.weights, self.parts, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(masses, axis=0))


BUILT_IN: tuple[type[Kernel], ...] = (
    UniformMoves,
    Laplace,
    Gaussian,
    Ball,
    Exchange,
    MALA,
    Independence,
    Mixture,
)

KERNELS: Registry[type[Kernel]] = Registry(
    "expmech.kernels", [(kernel.name, kernel) for kernel in BUILT_IN]
)


def rebuild_kernel(description: Mapping[str, Any]) -> Kernel:
    """Return the kernel that a certificate describes.

    >>> rebuild_kernel({"kernel": "gaussian", "scale": 0.1}).scale
    0.1
    """
    name = str(description["kernel"])
    kind = KERNELS.find(name)
    if kind is None:
        raise ParameterError(f"`kernel` must be the name of a known kernel; got {name!r}.")
    return kind.rebuild(description)


def validate_kernel(kernel: object, *, owner: str) -> Kernel:
    """Return ``kernel``; raise ParameterTypeError, which names ``owner``, for anything else."""
    if not isinstance(kernel, Kernel):
        raise ParameterTypeError(
            f"`kernel` of {owner} must be a kernel such as em.kernels.Gaussian(scale=0.1); got"
            f" {kernel!r}."
        )
    return kernel
