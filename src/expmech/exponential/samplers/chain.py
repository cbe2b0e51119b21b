"""Chains: a sampler fitted to one target, and the loop that drives copies in lockstep."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np

from expmech.certificates.forecast import BLOCK
from expmech.certificates.mechanism import Draws
from expmech.certificates.progress import current_watch
from expmech.core.arrays import Array, Flags, Integers
from expmech.core.coins import Coins
from expmech.domains import Domain, Indices
from expmech.exponential.kernels import Moves
from expmech.exponential.kernels.base import Ratio
from expmech.exponential.kernels.mixture import MixtureMoves
from expmech.exponential.target import Energies, Target

S = TypeVar("S", bound=Any)


class Chain(Protocol[S]):
    """A sampler fitted to one target: a start, a pure step, and the values at the end.

    A state is a frozen dataclass of arrays with one row per copy. It has at least ``proposals``,
    the number made so far, and ``done``.
    """

    def start(self, coins: Coins, size: int) -> S:
        """Return ``size`` independent copies in their initial state."""

    def step(self, state: S, coins: Coins) -> S:
        """Advance every copy; those that finish are marked done and hold the point to release."""

    def values(self, state: S) -> Array:
        """Return the values of finished copies, one row per copy."""


@dataclass(frozen=True)
class PointState:
    """The accepted point of each copy, once it has one."""

    indices: Indices
    proposals: Integers
    done: Flags


def unstarted(domain: Domain, size: int) -> PointState:
    """Return copies that have proposed nothing."""
    return PointState(
        indices=np.zeros((size, domain.dimension), dtype=np.int64),
        proposals=np.zeros(size, dtype=np.int64),
        done=np.zeros(size, dtype=np.bool_),
    )


class PointChain(ABC):
    """A chain whose copies end at lattice points of the target's domain."""

    target: Target

    def start(self, coins: Coins, size: int) -> Any:
        """Return copies that have proposed nothing."""
        return unstarted(self.target.domain, size)

    def values(self, state: Any) -> Array:
        """Return the points at which copies ended."""
        return self.target.domain.values(state.indices)

    def for_many(self, size: int) -> PointChain:
        """Return the chain for ``size`` draws: one of the same law, perhaps with less work."""
        return self


class MemorylessChain(PointChain):
    """A chain whose copies remember nothing until they are done.

    All can then share one stream of proposals, ``batch`` at a time (None leaves it to the loop).
    """

    batch: int | None

    @abstractmethod
    def propose(self, coins: Coins, size: int) -> tuple[Indices, Flags]:
        """Make ``size`` independent proposals; return the points and which are accepted."""

    def first_lot(self, size: int) -> int:
        """Return how many proposals to make first, for ``size`` draws."""
        return self.batch or min(size, BLOCK)

    def next_lot(self, lot: int) -> int:
        """Return how many to make after a lot that did not suffice."""
        return self.batch or min(2 * lot, BLOCK)

    def step(self, state: PointState, coins: Coins) -> PointState:
        """Make one proposal per copy."""
        proposed, accepted = self.propose(coins, len(state.proposals))
        return PointState(proposed, state.proposals + 1, accepted)


class CountingChain(ABC):
    """A chain that counts its steps by kind too, for studies."""

    @abstractmethod
    def counts(self, state: Any) -> dict[str, Integers]:
        """Return what finished copies counted, by name."""


class FixedChain(PointChain):
    """A chain whose number of proposals is public, so its progress may be shown."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Number of proposals of every copy."""


def flip(coins: Coins, probability: Fraction, size: int) -> Flags:
    """Flip coins of a rational probability, exactly."""
    zeros = np.zeros(size, dtype=np.int64)
    return coins.bernoulli_exp(
        zeros, numerator=probability.numerator, denominator=probability.denominator
    )


LOT = 1 << 14
"""Rounds of a constant number that are evaluated together."""


@dataclass(frozen=True)
class RoundsState(PointState):
    """The point that a copy will release, and whether a round has accepted it."""

    accepted: Flags


@dataclass(frozen=True, kw_only=True)
class RoundsChain(FixedChain):
    """Make a constant number of rounds; release the first acceptance, else a uniform draw."""

    target: Target
    rounds: int
    lot: int = LOT

    @abstractmethod
    def propose(self, coins: Coins, size: int) -> tuple[Indices, Flags]:
        """Make ``size`` rounds; return the points and which are accepted."""

    @property
    def length(self) -> int:
        return self.rounds

    def start(self, coins: Coins, size: int) -> RoundsState:
        """Return copies that hold a public uniform draw."""
        no = np.zeros(size, dtype=np.bool_)
        indices = self.target.draw_uniform(coins, size)
        return RoundsState(indices, np.zeros(size, dtype=np.int64), no, accepted=no)

    def step(self, state: RoundsState, coins: Coins) -> RoundsState:
        """Make the next lot of rounds; its size is public."""
        size = len(state.proposals)
        rounds = min(max(1, self.lot // size), self.rounds - int(state.proposals[0]))
        proposed, accepted = self.propose(coins, size * rounds)
        rows, accepted_any, _ = first_accepted(accepted, size)
        # Later rounds are made all the same, so that the number of rounds is public.
        take = ~state.accepted & accepted_any
        indices = np.where(take[:, None], proposed[rows], state.indices)
        proposals = state.proposals + rounds
        done = proposals >= self.rounds
        return RoundsState(indices, proposals, done, accepted=state.accepted | take)


def select(state: S, rows: Array) -> S:
    """Return the copies of ``state`` named by a mask or an index array."""
    parts = {}
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        # the state of a chain within a chain is a record too
        within = dataclasses.is_dataclass(value)
        parts[field.name] = select(value, rows) if within else value[rows]
    return dataclasses.replace(state, **parts)


def join(parts: list[S], rows: list[Integers]) -> S:
    """Return the copies of several states as one, each in the row given for it."""
    back = np.argsort(np.concatenate(rows))
    joined = {}
    for field in dataclasses.fields(parts[0]):
        pieces = [getattr(part, field.name) for part in parts]
        within = dataclasses.is_dataclass(pieces[0])
        joined[field.name] = join(pieces, rows) if within else np.concatenate(pieces)[back]
    return dataclasses.replace(parts[0], **joined)


def run(chain: Chain[Any], coins: Coins, size: int) -> Draws:
    """Drive independent copies of a chain to their end."""
    stream = chain.for_many(size) if isinstance(chain, PointChain) else chain
    if isinstance(stream, MemorylessChain):
        return _run_memoryless(stream, coins, size)
    values, proposals, counts = [], [], []
    for first in range(0, size, BLOCK):
        block = _run_block(chain, coins, min(BLOCK, size - first))
        values.append(chain.values(block))
        proposals.append(block.proposals)
        counts.append(chain.counts(block) if isinstance(chain, CountingChain) else {})
    return Draws(
        values=np.concatenate(values),
        proposals=np.concatenate(proposals),
        counts={name: np.concatenate([block[name] for block in counts]) for name in counts[0]},
    )


def _run_memoryless(chain: MemorylessChain, coins: Coins, size: int) -> Draws:
    """Read draws off one stream: the j-th accepted is the j-th draw, the gaps are the counts."""
    points, counts = [], []
    missing, since, lot = size, 0, chain.first_lot(size)
    while missing > 0:
        indices, accepted = chain.propose(coins, lot)
        hits = np.flatnonzero(accepted)[:missing]
        if hits.size:
            points.append(indices[hits])
            counts.append(np.diff(hits, prepend=-1 - since))
            # Proposals beyond the last draw are thrown away: draws stay independent of how lots
            # were cut.
            since = lot - 1 - int(hits[-1])
        else:
            since += lot
        missing -= hits.size
        lot = chain.next_lot(lot)
    return Draws(
        values=chain.target.domain.values(np.concatenate(points)), proposals=np.concatenate(counts)
    )


def _run_block(chain: Chain[S], coins: Coins, size: int) -> S:
    state = chain.start(coins, size)
    ended: list[S] = []
    copies, order = np.arange(size), []
    watch = current_watch() if isinstance(chain, FixedChain) else None
    while copies.size:
        state = chain.step(state, coins)
        done = state.done
        if watch is not None and isinstance(chain, FixedChain):
            watch(int(state.proposals[0]) / chain.length)
        if done.any():
            ended.append(select(state, done))
            order.append(copies[done])
            state, copies = select(state, ~done), copies[~done]
    return join(ended, order)


def first_accepted(accepted: Flags, size: int) -> tuple[Integers, Flags, Integers]:
    """Find the first accepted of each copy's proposals, which lie side by side.

    Return the row of the last proposal that each copy used, whether it was accepted, and how many
    the copy used. Every proposal is looked at: `argmax` and `any` of NumPy stop at the first that
    is accepted, and `where` takes a third longer if many are and many are not.
    """
    grid = accepted.reshape(size, -1)
    batch = grid.shape[1]
    places = (np.arange(batch) + batch * ~grid).min(axis=1)
    done, first = places < batch, np.minimum(places, batch - 1)
    return np.arange(size) * batch + first, done, first + 1


def metropolis_move(
    target: Target,
    indices: Indices,
    energies: Energies,
    coins: Coins,
    moves: Moves,
    *,
    even: bool = False,
) -> tuple[Indices, Energies]:
    """Advance each row by one Metropolis-Hastings step; exp(-E) is invariant.

    Moves out of the domain are refused. With ``even`` the loss is evaluated and a coin is flipped
    for them too, at the row's own point, so their number shows neither in the evaluations nor in
    the coins. Each row of a mixture makes a step by the part it draws.
    """
    if isinstance(moves, MixtureMoves):
        moved, moved_energies = indices.copy(), energies.copy()
        for rows, part in zip(moves.choose(coins, len(indices)), moves.parts, strict=True):
            if rows.size:
                moved[rows], moved_energies[rows] = metropolis_move(
                    target, indices[rows], energies[rows], coins, part, even=even
                )
        return moved, moved_energies
    proposed = moves.propose(coins, indices)
    inside = target.contains(proposed)
    if even:
        ends = np.where(inside[:, None], proposed, indices)
        # A move to outside evaluates the point itself again: the work does not tell where it led.
        new = target.energy(ends)  # of all rows
        kept = inside & _accept(target, coins, moves.log_ratio(indices, ends), new - energies)
        return np.where(kept[:, None], proposed, indices), np.where(kept, new, energies)
    rows = np.flatnonzero(inside)
    moved, moved_energies = indices.copy(), energies.copy()
    if rows.size:
        starts, ends = indices[rows], proposed[rows]
        new = target.energy(ends)
        kept = _accept(target, coins, moves.log_ratio(starts, ends), new - energies[rows])
        moved[rows[kept]] = ends[kept]
        moved_energies[rows[kept]] = new[kept]
    return moved, moved_energies


def _accept(target: Target, coins: Coins, ratio: Ratio | None, rise: Energies) -> Flags:
    """Flip coins of ``min(1, exp(-rise) q(y', y) / q(y, y'))``, exactly."""
    if ratio is None:
        return coins.bernoulli_exp(np.maximum(0, rise), rate=target.unit)
    counts, rate = ratio
    if rate == target.unit and counts.dtype == np.int64:
        return coins.bernoulli_exp(np.maximum(0, rise - counts), rate=rate)
    # both over one power of two, as integers of Python; a coin for each of a fixed number of parts
    whole = math.lcm(target.units_per_nat, rate.denominator)
    gained = counts.astype(object) * (rate.numerator * (whole // rate.denominator))
    cost = np.maximum(0, rise.astype(object) * (whole // target.units_per_nat) - gained)
    kept = np.ones(len(rise), dtype=np.bool_)
    for place in range(_PARTS):
        last = place == _PARTS - 1
        part = np.minimum(cost, _MOST_COUNT) if last else cost & (_PART - 1)
        kept &= coins.bernoulli_exp(
            part.astype(np.int64), rate=Fraction(1 << (place * _PART_BITS), whole)
        )
        cost = cost >> _PART_BITS
    return kept


_PART_BITS = 31
_PART = 1 << _PART_BITS
_PARTS = 5  # 124 bits and 62 more: costs of squares of 50-bit distances fit
_MOST_COUNT = 1 << 62
