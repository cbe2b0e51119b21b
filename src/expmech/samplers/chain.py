"""Chains: a sampler fitted to one target, and the loop that drives copies in lockstep."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.cost import BLOCK
from expmech.domains import Domain, Indices
from expmech.samplers.progress import current_watch
from expmech.target import Target

S = TypeVar("S", bound=Any)


class Chain(Protocol[S]):
    """A sampler fitted to one target: a pure step."""

    def start(self, coins: Coins, size: int) -> S:
        """Return ``size`` independent copies in their initial state."""

    def step(self, state: S, coins: Coins) -> S:
        """Advance every copy; those that finish are marked done and hold the point to release."""

    def values(self, state: S) -> NDArray[Any]:
        """Return the values of finished copies."""


@dataclass(frozen=True)
class PointState:
    """The accepted point of each copy, once it has one."""

    indices: Indices
    proposals: NDArray[np.int64]
    done: NDArray[np.bool_]


def unstarted(domain: Domain, size: int) -> PointState:
    """Return copies that have proposed nothing."""
    return PointState(
        indices=np.zeros((size, domain.dimension), dtype=np.int64),
        proposals=np.zeros(size, dtype=np.int64),
        done=np.zeros(size, dtype=np.bool_),
    )


class MemorylessChain(ABC):
    """A chain whose copies remember nothing until they are done.

    All can then share one stream of proposals, ``batch`` at a time (None leaves it to the loop).
    """

    target: Target
    batch: int | None

    @abstractmethod
    def propose(self, coins: Coins, size: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Make independent proposals; return the points and which are accepted."""

    def first_lot(self, size: int) -> int:
        """Return how many proposals to make first, for ``size`` draws."""
        return self.batch or min(size, BLOCK)

    def next_lot(self, lot: int) -> int:
        """Return how many to make after a lot that did not suffice."""
        return self.batch or min(2 * lot, BLOCK)

    def start(self, coins: Coins, size: int) -> PointState:
        """Return copies that have proposed nothing."""
        return unstarted(self.target.domain, size)

    def step(self, state: PointState, coins: Coins) -> PointState:
        """Make one proposal a copy."""
        proposed, accepted = self.propose(coins, len(state.proposals))
        return PointState(proposed, state.proposals + 1, accepted)

    def values(self, state: PointState) -> NDArray[Any]:
        """Return the accepted points."""
        return self.target.domain.values(state.indices)


class CountingChain(ABC):
    """A chain that counts its steps by kind too, for studies."""

    @abstractmethod
    def counts(self, state: Any) -> dict[str, NDArray[np.int64]]:
        """Return what finished copies counted, by name."""


class FixedChain(ABC):
    """A chain whose number of proposals is public, so that how far it is may be shown."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Proposals of every copy."""


@dataclass(frozen=True)
class Draws:
    """Values of a study, the number of proposals each took, and what else its chain counted.

    Counts are confidential and never part of a release. Algorithm 1 with its factory counts
    ``outer``, ``bern`` and ``inner`` (steps of its three loops), ``entered`` (how often the inner
    loop began) and ``nonatomic`` (runs until one did not end at the atom), all a draw.
    ``noisy`` are the noisy sums that values were computed from, where there are any; they are as
    private as the values.
    """

    values: NDArray[Any]
    proposals: NDArray[np.int64]
    counts: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    noisy: NDArray[Any] | None = None


def select(state: S, rows: NDArray[Any]) -> S:
    """Return the copies of ``state`` named by a mask or an index array."""
    names = [one.name for one in dataclasses.fields(state)]
    return dataclasses.replace(state, **{name: _take(getattr(state, name), rows) for name in names})


def _take(value: Any, rows: NDArray[Any]) -> Any:
    """Return rows of an array, or of the state of a chain within a chain."""
    return select(value, rows) if dataclasses.is_dataclass(value) else value[rows]


def join(parts: list[S], rows: list[NDArray[np.int64]]) -> S:
    """Return the copies of several states as one, each in the row given for it."""
    back = np.argsort(np.concatenate(rows))
    joined = {}
    for one in dataclasses.fields(parts[0]):
        pieces = [getattr(part, one.name) for part in parts]
        within = dataclasses.is_dataclass(pieces[0])
        joined[one.name] = join(pieces, rows) if within else np.concatenate(pieces)[back]
    return dataclasses.replace(parts[0], **joined)


def run(chain: Chain[Any], coins: Coins, size: int) -> Draws:
    """Drive ``size`` independent copies of ``chain`` to their end."""
    if isinstance(chain, MemorylessChain):
        return _run_memoryless(chain, coins, size)
    values, proposals, counts = [], [], []
    for first in range(0, size, BLOCK):
        block = _run_block(chain, coins, min(BLOCK, size - first))
        values.append(chain.values(block))
        proposals.append(block.proposals)
        counts.append(chain.counts(block) if isinstance(chain, CountingChain) else {})
    return Draws(
        values=np.concatenate(values),
        proposals=np.concatenate(proposals),
        counts={name: np.concatenate([one[name] for one in counts]) for name in counts[0]},
    )


def _run_memoryless(chain: MemorylessChain, coins: Coins, size: int) -> Draws:
    """Read draws off one stream of independent proposals.

    The j-th accepted is the j-th draw, the gaps are the counts.
    """
    found, counts = [], []
    missing, since, lot = size, 0, chain.first_lot(size)
    while missing > 0:
        indices, accepted = chain.propose(coins, lot)
        hits = np.flatnonzero(accepted)[:missing]
        if hits.size:
            found.append(indices[hits])
            counts.append(np.diff(hits, prepend=-1 - since))
            since = lot - 1 - int(hits[-1])
        else:
            since += lot
        missing -= hits.size
        lot = chain.next_lot(lot)
    return Draws(
        values=chain.target.domain.values(np.concatenate(found)), proposals=np.concatenate(counts)
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


def first_accepted(
    accepted: NDArray[np.bool_], size: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Find the first accepted of each copy's proposals, which lie side by side.

    Every proposal is looked at: `argmax` and `any` of NumPy stop at the first that is accepted, and
    `where` takes a third longer if many are and many are not.

    Returns
    -------
    tuple
        The row of the proposal each copy looked at last, whether it was accepted, and how many the
        copy looked at.
    """
    grid = accepted.reshape(size, -1)
    batch = grid.shape[1]
    places = (np.arange(batch) + batch * ~grid).min(axis=1)
    done, first = places < batch, np.minimum(places, batch - 1)
    return np.arange(size) * batch + first, done, first + 1
