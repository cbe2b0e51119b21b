"""Forward sums over increasing tuples of ranks: how much weight reaches each group of points.

Theory page: docs/theory/joint_quantiles.md, sections 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np

from expmech.core.adjacency import Adjacency
from expmech.core.arrays import Flags, Integers
from expmech.core.coins import UNIT, UNITS_PER_NAT
from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.mechanisms.quantiles.scaled import (
    ABSENT,
    Scaled,
    concatenate,
    cumulate,
    exponential,
    exponentials,
    from_integers,
    in_parts,
    inverse,
    normalise,
    plus,
    times,
    total,
)

MOST_LEVELS = 999
MOST_DENOMINATOR = 1 << 30
_MANY = 1 << 13  # groups from which on distant ones are merged
_NEAR = 64.0  # nats: what is farther from its level has hardly any weight
_RULE = "increasing numbers strictly between 0 and 1, at most 999 of them"


@dataclass(frozen=True)
class Levels:
    """The levels ``numerators[j] / denominator``, strictly increasing between 0 and 1.

    >>> levels = parse_levels(["0.1", "1/3", 0.5])
    >>> levels.numerators, levels.denominator, levels.widths
    ((3, 10, 15), 30, (3, 7, 5, 15))
    """

    numerators: tuple[int, ...]
    denominator: int

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The m + 1 steps from 0 to 1 between neighbouring levels, times the denominator."""
        ends = (0, *self.numerators, self.denominator)
        return tuple(above - below for below, above in pairwise(ends))

    @property
    def texts(self) -> list[str]:
        """The levels as text that :func:`parse_levels` reads."""
        return [str(Fraction(above, self.denominator)) for above in self.numerators]

    def sensitivity(self, adjacency: str) -> Fraction:
        """Return D of the joint loss: 2, or ``2 (1 - least width)`` under add-remove.

        Theory page: docs/theory/joint_quantiles.md, Fact 1.
        """
        if Adjacency(adjacency) is Adjacency.REPLACE:
            return Fraction(2)
        return 2 * (1 - Fraction(min(self.widths), self.denominator))

    def units(self, epsilon: Fraction, adjacency: str) -> int:
        """Return the energy, in units of 2^-40 nats, of a loss of ``1 / denominator``.

        The largest whole number s with ``2 s 2^-40 denominator D <= epsilon``.
        """
        share = epsilon * UNITS_PER_NAT / (2 * self.denominator * self.sensitivity(adjacency))
        if share < 1:
            most = int(share * self.denominator)
            raise ParameterError(
                f"`levels` must have a common denominator of at most {most} at this epsilon; got"
                f" {self.denominator}. Write them as decimal text with fewer digits."
            )
        return int(share)


def parse_levels(levels: Any, *, owner: str = "JointQuantiles") -> Levels:
    """Return levels given as decimal text ("0.1"), fractions ("1/30", Fraction) or floats.

    A float counts as the shortest decimal that names it: 0.1 is one tenth.
    """
    listed = [levels] if isinstance(levels, (str, float, Fraction)) else levels
    if not isinstance(listed, (Sequence, np.ndarray)) or len(listed) == 0:
        raise ParameterTypeError(f"`levels` of {owner} must be {_RULE}; got {levels!r}.")
    parsed = [_fraction(level, levels, owner=owner) for level in listed]
    increasing = all(below < above for below, above in pairwise(parsed))
    if not increasing or parsed[0] <= 0 or parsed[-1] >= 1 or len(parsed) > MOST_LEVELS:
        raise ParameterError(f"`levels` of {owner} must be {_RULE}; got {levels!r}.")
    denominator = lcm(*(level.denominator for level in parsed))
    if denominator > MOST_DENOMINATOR:
        raise ParameterError(
            f"`levels` of {owner} must have a common denominator of at most 2^30; got"
            f" {denominator}. Write them as decimal text with fewer digits."
        )
    return Levels(tuple(int(level * denominator) for level in parsed), denominator)


def _fraction(level: Any, levels: Any, *, owner: str) -> Fraction:
    known = isinstance(level, (str, float, Fraction, np.floating))
    if not known or isinstance(level, (bool, np.bool_)):
        raise ParameterTypeError(f"`levels` of {owner} must be {_RULE}; got {levels!r}.")
    text = repr(float(level)) if isinstance(level, (float, np.floating)) else level
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(f"`levels` of {owner} must be {_RULE}; got {levels!r}.") from None


@dataclass(frozen=True)
class RankGroups:
    """Runs of lattice points with equal rank ``#{x < y}``, in increasing order.

    Group k holds the ``sizes[k] >= 1`` points from index ``first[k]`` on, and ``ranks[k]`` of the
    ``count`` values lie below them. Ranks increase strictly and start at 0. Of merged groups the
    ranks differ from ``ranks[k]`` by up to ``within[k]``.
    """

    ranks: Integers
    sizes: Integers
    first: Integers
    count: int
    within: Integers | None = None

    @property
    def n_groups(self) -> int:
        """How many different ranks there are."""
        return int(self.ranks.size)


def rank_groups(occupied: Integers, counts: Integers, points: int) -> RankGroups:
    """Return the groups of ``points`` points, ``counts[k]`` values at point ``occupied[k]``.

    A value is not below its own point, but below the next.
    """
    ranks = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    first = np.concatenate([[0], occupied + 1]).astype(np.int64)
    sizes = np.diff(np.append(first, points))
    kept = slice(0, None) if sizes[-1] else slice(0, -1)  # values at the last point: none above
    return RankGroups(ranks[kept], sizes[kept], first[kept], int(ranks[-1]))


def merge_distant(groups: RankGroups, levels: Levels, rate: Fraction) -> RankGroups:
    """Merge neighbouring groups far from every level; ``rate`` is the energy of a count in nats.

    From :data:`_NEAR` nats on the ranks of a merged group lie within one part in twice the number
    of levels of its distance, so all outputs together are taken for at most half as far from their
    levels as the farthest of them is. A short list of groups is returned as it is.
    """
    if groups.n_groups < _MANY:
        return groups
    many, near = len(levels.numerators), _NEAR / float(rate)
    # an output d ranks from its level costs at least 2 d (signed differences up to it add up to d,
    # and all of them to 0): docs/theory/joint_quantiles.md, section 3
    targets = np.array([above * groups.count / levels.denominator for above in levels.numerators])
    places = np.searchsorted(targets, groups.ranks)
    low = groups.ranks - targets[np.maximum(places - 1, 0)]
    high = targets[np.minimum(places, many - 1)] - groups.ranks
    below = (places > 0) & ((places == many) | (low < high))  # the level below is the nearer one
    distance = np.where(below, low, high)
    steps = np.log(np.maximum(distance / near, 1.0)) * (1.0 / math.log1p(1.0 / many))
    cells = np.floor(steps).astype(np.int64)
    same = (cells[1:] == cells[:-1]) & (places[1:] == places[:-1]) & (below[1:] == below[:-1])
    same &= (distance[1:] >= near) & (distance[:-1] >= near)
    starts = np.flatnonzero(np.append(np.True_, ~same))
    least = groups.ranks[starts]
    most = groups.ranks[np.append(starts[1:], groups.n_groups) - 1]
    middle = (least + most) // 2
    return RankGroups(
        ranks=middle,
        sizes=np.add.reduceat(groups.sizes, starts),
        first=groups.first[starts],
        count=groups.count,
        within=np.maximum(middle - least, most - middle),
    )


class Tables:
    """Sums of ``exp(-energy)`` over the first j outputs, by the group that the j-th one is in.

    With c the energy of a count, t_j the j-th width times the number of values, r ranks and N
    sizes of groups,

        entering[j](k) = sum over k' < k of exp(-c |r_k - r_k' - t_j|) arriving[j-1](k')
        arriving[j](k) = sum over s of entering[j-s+1](k) C(N_k+s-1, s) exp(-c (t_j-s+2 + .. + t_j))

    s the number of outputs that share group k. Of merged groups, in which ranks differ by up to
    w_k, each output weighs ``exp(2 c w_k)`` times as much: a bound from above. Runs longer than
    ``runs`` are bounded, too, instead of summed. Each table is a sum of non-negative numbers with a
    proven relative error, so it is superharmonic up to the factor ``1 + slack`` a step.
    """

    def __init__(self, groups: RankGroups, levels: Levels, units: int, *, runs: int) -> None:
        self.groups, self.levels, self.units = groups, levels, units
        # The groups are confidential. Runs beyond `runs` are bounded, which changes the time only.
        self.runs = min(runs, len(levels.numerators))
        self.rate = rate = UNIT * units * levels.denominator
        self.growth = exponentials(rate, groups.ranks)
        self.lift = None if groups.within is None else exponentials(rate, 2 * groups.within)
        self.decay = exponentials(-rate, groups.ranks)
        self._falls: dict[int, Scaled] = {}
        self._runs: list[Scaled] = []  # of the last level, by length; longer ones bounded at last
        self.entering: list[Scaled] = []
        self.arriving: list[Scaled] = []
        for j in range(len(levels.numerators)):
            self.entering.append(self._enter(j) if j else self._first())
            self.arriving.append(self._arrive(j))
        self._runs = []

    @property
    def slack(self) -> Fraction:
        """How far sums as proposed from may exceed those as computed, relatively, a step.

        The first term is for running sums and runs, the others for integer weights in two picks.
        """
        depth = 512 + 16 * len(self.levels.numerators)
        longest = max(1024, math.isqrt(self.groups.n_groups) + 2)
        return (
            Fraction(depth, 1 << 52) + Fraction(longest * longest, 1 << 52) + Fraction(1, 1 << 33)
        )

    @cached_property
    def bound(self) -> tuple[Fraction, int]:
        """M as ``number * 2^power``: the weight of all tuples, raised by the slack a step."""
        (mantissa,), (exponent,) = total(self.finals)
        steps = 2 * len(self.levels.numerators) + 2
        # Theorem 2: f(o) / pi(o) <= (1 + slack)^(2m + 2) A for tables that are nearly superharmonic
        return Fraction(float(mantissa)) * (1 + self.slack) ** steps, int(exponent)

    def fall(self, j: int) -> Scaled:
        """Return ``exp(-c t_j)``, what an interval that holds no value weighs."""
        width = self.levels.widths[j]
        if width not in self._falls:
            self._falls[width] = exponential(-UNIT * self.units * width * self.groups.count)
        return self._falls[width]

    def window(self, j: int) -> int:
        """Return the largest whole number that is at most ``t_j``."""
        return self.levels.widths[j] * self.groups.count // self.levels.denominator

    @cached_property
    def finals(self) -> Scaled:
        """The weight of tuples whose last output is in each group, the last interval included."""
        last = len(self.levels.numerators)
        energy = UNIT * self.units * self.levels.denominator * self.groups.count
        fall = self.fall(last)
        low, high = times(exponential(-energy), inverse(fall)), times(exponential(energy), fall)
        near = self.groups.count - self.groups.ranks <= self.window(last)

        def compute(part: slice) -> Scaled:
            below, above = times(self.growth.at(part), low), times(self.decay.at(part), high)
            kernel = plus(above.where(near[part]), below.where(~near[part]))
            return times(self.arriving[-1].at(part), kernel)

        return in_parts(self.groups.n_groups, compute)

    def predecessors(self, j: int, k: int) -> Scaled:
        """Return the terms of ``entering[j](k)``, one for each group before k, for ``j >= 1``."""
        ranks = self.groups.ranks
        far = int(np.searchsorted(ranks, ranks[k] - self.window(j), side="left"))
        here, fall = slice(k, k + 1), self.fall(j)
        low = times(self.decay.at(here), inverse(fall))
        high = times(self.growth.at(here), fall)
        before = self.arriving[j - 1]
        distant = times(before.at(slice(0, far)), self.growth.at(slice(0, far)), low)
        near = times(before.at(slice(far, k)), self.decay.at(slice(far, k)), high)
        return concatenate(distant, near)

    def _first(self) -> Scaled:
        """Return ``entering[0]``, the weight of the interval below the first output."""
        fall, inside = self.fall(0), self.groups.ranks <= self.window(0)

        def compute(part: slice) -> Scaled:
            near = times(self.growth.at(part), fall).where(inside[part])
            return plus(near, times(self.decay.at(part), inverse(fall)).where(~inside[part]))

        return in_parts(self.groups.n_groups, compute)

    def _enter(self, j: int) -> Scaled:
        """Return ``entering[j]``: the two sides of the kernel, each a running sum."""
        ranks, size, window = self.groups.ranks, self.groups.n_groups, self.window(j)
        fall, before = self.fall(j), self.arriving[j - 1]
        rise = inverse(fall)
        edge = np.searchsorted(ranks, ranks - window, side="left")
        distant_terms = _product(before, self.growth)
        if window:
            near_terms = _product(before, self.decay)
            beyond, near = _windows(distant_terms, near_terms, ranks, edge, window)
        else:
            beyond, near = cumulate(distant_terms), None

        def compute(part: slice) -> Scaled:
            distant = times(_sum_before(beyond, edge[part]), self.decay.at(part), rise)
            if near is None:
                return distant
            return plus(distant, times(near.sums(part), self.growth.at(part), fall))

        return in_parts(size, compute)

    def _arrive(self, j: int) -> Scaled:
        """Return ``arriving[j]``; keep the runs of each length, and a bound on the longer ones.

        The number of placings grows by ``C(N+s, s+1) / C(N+s-1, s) = (N+s)/(s+1)`` with one output
        more, which falls as s grows: runs too long to be counted are bounded by the last factor.
        """
        size, fall, before = self.groups.n_groups, self.fall(j), self._runs
        lengths = min(j + 1, self.runs + 1)
        kept = [Scaled(np.empty(size), np.empty(size, dtype=np.int64)) for _ in range(lengths)]

        def compute(part: slice) -> Scaled:
            sizes = self.groups.sizes[part]
            arriving = Scaled(np.zeros(sizes.size), np.full(sizes.size, ABSENT))
            lift = () if self.lift is None else (self.lift.at(part),)
            for run in range(lengths):
                if run == 0:
                    weight = times(self.entering[j].at(part), from_integers(sizes), *lift)
                else:
                    weight = before[run - 1].at(part)
                    if run == self.runs and len(before) > run:
                        weight = plus(weight, before[run].at(part))
                    more = from_integers((sizes + run) / (run + 1.0))
                    weight = times(weight, fall, more, *lift)
                weight = normalise(weight)
                kept[run].mantissa[part], kept[run].exponent[part] = weight
                arriving = plus(arriving, weight)
            return arriving

        arriving = in_parts(size, compute)
        self._runs = kept
        return arriving


@dataclass(frozen=True)
class _Windows:
    """Sums over the groups from ``edge[k]`` to ``k - 1``, whose ranks lie within a window.

    Blocks of as many ranks as the window: a window is the end of one block and the beginning of
    the next, so two running sums that begin anew with each block do, without a subtraction.
    """

    ahead: Scaled
    back: Scaled
    edge: Integers
    block: Integers
    starts: Flags

    def sums(self, part: slice) -> Scaled:
        """Return the sums of some windows."""
        edge, block, starts = self.edge[part], self.block[part], self.starts[part]
        index = np.where(starts, 0, np.arange(part.start, part.stop))
        within = _sum_before(self.ahead, index)
        return plus(within, self.back.at(edge).where(self.block[edge] < block))


def _windows(
    distant: Scaled, near: Scaled, ranks: Integers, edge: Integers, window: int
) -> tuple[Scaled, _Windows]:
    """Return the running sums of distant terms, and those of near ones by windows, in one call."""
    block, size = ranks // window, ranks.size
    starts = np.append(np.True_, block[1:] != block[:-1])
    backward = slice(None, None, -1)
    ends = np.append(starts[1:], np.True_)[backward]
    begins = np.concatenate([np.arange(size) == 0, starts, ends])
    sums = cumulate(concatenate(distant, near, near.at(backward)), begins)
    ahead, back = sums.at(slice(size, 2 * size)), sums.at(slice(2 * size, None)).at(backward)
    return sums.at(slice(size)), _Windows(ahead, back, edge, block, starts)


def _sum_before(sums: Scaled, index: Integers) -> Scaled:
    """Return the running sum before each index; nothing comes before index 0."""
    return sums.at(np.maximum(index - 1, 0)).where(index > 0)


def _product(first: Scaled, other: Scaled) -> Scaled:
    return in_parts(first.mantissa.size, lambda part: times(first.at(part), other.at(part)))
