"""Tabulated and ConstantTabulated: the energies of the whole lattice in a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from expmech.certificates.checks import Check, check_equal
from expmech.certificates.forecast import Forecast, forecast_constant
from expmech.certificates.timing import CONSTANT
from expmech.core.arrays import Flags
from expmech.core.coins import Coins, ConstantTimeTable, ExponentialTable
from expmech.core.errors import UnsupportedError
from expmech.domains import Indices
from expmech.exponential.samplers.base import Sampler, SamplerClaims, SamplerTerms
from expmech.exponential.samplers.chain import Chain, MemorylessChain, RoundsChain
from expmech.exponential.target import LIST_LIMIT, TABLE_LIMIT, Target

TOO_LARGE = (
    f"A table needs a lattice of at most {TABLE_LIMIT} points, or a list of at most {LIST_LIMIT}"
    " candidates; this domain has more. Use Rejection, or fewer bits; for a list, PermuteAndFlip."
)
_TOO_LONG = (
    f"ConstantTabulated needs at most {TABLE_LIMIT} points; this domain has more. Use Tabulated, or"
    " PermuteAndFlip, which flips one coin per candidate whatever the data."
)
ROUNDS = 2
"""Rounds of ConstantTabulated. Both are refused with probability 2^-64, whatever the data are."""


class _FromTable:
    """Proposals drawn by integer weight from a table, each corrected by an exact coin."""

    indices: Indices
    table: ExponentialTable | ConstantTimeTable

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Flags]:
        index, accepted = self.table.propose(coins, size)
        return self.indices[index], accepted


@dataclass(frozen=True)
class TableChain(_FromTable, MemorylessChain):
    """Propose from a table until a proposal is accepted."""

    target: Target
    indices: Indices
    table: ExponentialTable
    batch: int | None = None


@dataclass(frozen=True, kw_only=True)
class TableRounds(_FromTable, RoundsChain):
    """Rounds from a table, each accepted with the same public probability."""

    indices: Indices
    table: ConstantTimeTable


class Tabulated(Sampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by evaluating every point of a small lattice.

    This is the classical discrete exponential mechanism, on at most 2^22 points, or 2^24
    candidates.

    Notes
    -----
    Law: f. Cost: one loss evaluation per lattice point, then about one proposal per draw. Theory
    page: docs/theory/rejection.md.

    Examples
    --------
    >>> import expmech as em
    >>> mech = em.ExponentialMechanism(
    ...     loss=lambda y: abs(y[:, 0] - 0.3),
    ...     sensitivity=0.001,
    ...     domain=em.Box([0.0], [1.0], bits=10),
    ... )
    >>> draws = mech.sample(epsilon=1.0, sampler=em.Tabulated(), seed=1)
    >>> bool(abs(draws.values[0, 0] - 0.3) < 0.1)
    True
    """

    automatic = True
    bounded_range = True
    lists_first = True
    serves_base = True

    def terms(self, target: Target) -> SamplerTerms:
        if not target.is_tabulated:
            raise UnsupportedError(TOO_LARGE)
        return super().terms(target)

    def prepare(self, target: Target) -> Chain[Any]:
        if target.table is None:
            raise UnsupportedError(TOO_LARGE)
        return self._chain(target, *target.table)

    def _chain(self, target: Target, indices: Indices, table: ExponentialTable) -> Chain[Any]:
        return TableChain(target, indices, table)

    def forecast(self, target: Target) -> Forecast:
        self.terms(target)
        return forecast_constant(round(math.exp(target.domain.log_size)))


class ConstantTabulated(Tabulated):
    """Draw exactly from ``(1 - 2^-64) f + 2^-64 u``, u uniform, by two rounds from a table.

    The number of evaluations and of proposals is constant, so the running time says nothing about
    the data.

    Notes
    -----
    The table has every point of a lattice of at most 2^22. A round is accepted with the public
    probability ``1 - 2^-32``, so the share of u is public too: the value is epsilon-DP as f is, and
    nothing is reserved. Cost: one loss evaluation per lattice point. Theory page:
    docs/theory/conf_atom_and_runtime_perfect.md.

    Examples
    --------
    >>> import expmech as em
    >>> mech = em.ExponentialMechanism(
    ...     loss=lambda y: abs(y[:, 0] - 0.3),
    ...     sensitivity=0.001,
    ...     domain=em.Box([0.0], [1.0], bits=10),
    ... )
    >>> mech.sample(epsilon=1.0, size=3, sampler="ConstantTabulated", seed=1).proposals.tolist()
    [2, 2, 2]
    """

    timing = CONSTANT
    lists_first = False

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"rounds": ROUNDS}

    def terms(self, target: Target) -> SamplerTerms:
        terms = super().terms(target)
        if not target.is_small:  # the error analysis of its sum ends there
            raise UnsupportedError(_TOO_LONG)
        return terms

    def _chain(self, target: Target, indices: Indices, table: ExponentialTable) -> Chain[Any]:
        return TableRounds(
            target=target, rounds=ROUNDS, indices=indices, table=ConstantTimeTable(table)
        )

    def verify(self, claims: SamplerClaims) -> list[Check]:
        rounds = check_equal("rounds", claims.parameters["rounds"], ROUNDS)
        return [*super().verify(claims), rounds]
