"""Uniform moves, and mixtures of kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np

from expmech.coins import Coins
from expmech.domains import Domain, Indices
from expmech.domains.base import Floats
from expmech.errors import ParameterError, ParameterTypeError, validate_positive
from expmech.kernels.base import Kernel

_MOST_WEIGHT = 1 << 62
_COUNTABLE = 1 << 8


class Uniform(Kernel):
    """Moves to a uniform point of the domain, wherever they start: independence proposals."""

    name = "uniform"
    assumptions = ()

    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        """Draw a uniform point a row."""
        return domain.draw_uniform(coins, len(indices))

    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Floats:
        """Return minus the log of the number of points, counted where they are few."""
        points = domain.all_indices(_COUNTABLE)
        log_size = domain.log_size if points is None else math.log(len(points))
        return np.where(domain.contains(end), -log_size, -np.inf)

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return 0: every point is proposed with mass ``1/|Y|``."""
        return 0.0


class Mixture(Kernel):
    """Moves by one of several kernels, drawn anew for every move with public weights.

    Parameters
    ----------
    kernels
        At least one; each symmetric, so their mixture is.
    weights
        Positive numbers, one a kernel, read as exact fractions; None weighs all alike.

    Examples
    --------
    >>> from expmech.kernels import Laplace
    >>> Mixture([Laplace(rate=100.0), Uniform()], weights=[9, 1]).describe()["weights"]
    ['9/10', '1/10']
    """

    name = "mixture"

    def __init__(
        self, kernels: Sequence[Kernel], *, weights: Sequence[float | Fraction] | None = None
    ) -> None:
        parts = tuple(kernels)
        if not parts or not all(isinstance(kernel, Kernel) for kernel in parts):
            raise ParameterTypeError(
                f"`kernels` of Mixture must be a list of kernels such as Uniform(); got {kernels!r}"
                "."
            )
        given = [1] * len(parts) if weights is None else list(weights)
        if len(given) != len(parts):
            raise ParameterError(
                f"`weights` of Mixture must be one a kernel, {len(parts)}; got {len(given)}."
            )
        exact = [validate_positive(one, name="weights", owner="Mixture") for one in given]
        self.parts = parts
        self.weights = tuple(one / sum(exact) for one in exact)
        common = math.lcm(*(one.denominator for one in self.weights))
        if common > _MOST_WEIGHT:
            raise ParameterError(
                "`weights` of Mixture must be fractions with a common denominator of at most 2^62;"
                f" got {given!r}. Use small whole numbers."
            )
        self._cumulative = np.cumsum([int(one * common) for one in self.weights])
        self.assumptions = tuple(dict.fromkeys(text for one in parts for text in one.assumptions))

    def validate(self, domain: Domain) -> None:
        """Refuse what any of the kernels refuses."""
        for kernel in self.parts:
            kernel.validate(domain)

    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        """Draw a kernel a row, then its move."""
        chosen = coins.categorical(self._cumulative, len(indices))
        moved = indices.copy()
        for number, kernel in enumerate(self.parts):
            rows = np.flatnonzero(chosen == number)
            if rows.size:
                moved[rows] = kernel.propose(domain, coins, indices[rows])
        return moved

    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> Floats:
        """Return the log of the weighted sum of masses."""
        masses = [
            math.log(weight) + kernel.log_mass(domain, start, end)
            for weight, kernel in zip(self.weights, self.parts, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(masses, axis=0))

    def log_minorisation(self, domain: Domain) -> float | None:
        """Return the log of the weighted sum of what is known of each kernel."""
        found = [
            (weight, kernel.log_minorisation(domain))
            for weight, kernel in zip(self.weights, self.parts, strict=True)
        ]
        known = [math.log(weight) + one for weight, one in found if one is not None]
        if not known:
            return None
        total = float(np.logaddexp.reduce(known))
        return total - 2.0**-40 * (1.0 + abs(total))

    def describe(self) -> dict[str, Any]:
        """Return the kernels and their weights."""
        return super().describe() | {
            "kernels": [kernel.describe() for kernel in self.parts],
            "weights": [str(weight) for weight in self.weights],
        }

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> Self:
        """Return the mixture of a certificate, of kernels that are known by name."""
        from expmech.kernels.registry import rebuild_kernel  # which lists this class

        parts = [rebuild_kernel(part) for part in description["kernels"]]
        return cls(parts, weights=[Fraction(weight) for weight in description["weights"]])
