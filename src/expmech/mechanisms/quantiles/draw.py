"""The exact draw of a tuple of quantiles: backward through the tables, one coin at the end.

Theory page: docs/theory/joint_quantiles.md, sections 3 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import partial

import flint
import numpy as np

from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.coins import UNIT, Coins
from expmech.core.errors import EnvelopeViolatedError
from expmech.mechanisms.quantiles.scaled import (
    Scaled,
    concatenate,
    exponential,
    exponentials,
    from_integer,
    power_of_two,
    times,
)
from expmech.mechanisms.quantiles.tables import Levels, RankGroups, Tables, merge_distant

_CHEAP = 1 << 22  # entries of runs of every length that are summed without being needed
_PATIENCE = 8  # tuples refused before longer runs are summed
_KEPT = 4096  # short lists of weights kept
_BLOCK = 1024  # indices are drawn by blocks of at least this many, then within


class Choices:
    """Draw indices by integer weights, each at least a fixed multiple of the number it stands for.

    ``factors`` collects, as ``(total, weight)``, one over the probability of what was drawn.
    Weights of short lists are ``kept`` for the next tuple.
    """

    def __init__(self, coins: Coins, kept: dict[Hashable, Integers]) -> None:
        self.coins, self.kept = coins, kept
        self.factors: list[tuple[int, int]] = []

    def pick(self, key: Hashable, make: Callable[[], Scaled]) -> int:
        """Draw an index with a probability close to its share of the terms; never of a zero."""
        if key in self.kept:
            return self.pick_weight(self.kept[key])
        terms = make()
        values = _relative_to_largest(terms)
        size = max(_BLOCK, math.isqrt(values.size))
        if values.size <= size:
            cumulative = integer_weights(values, terms.mantissa > 0.0)
            if len(self.kept) < _KEPT:
                self.kept[key] = cumulative
            return self.pick_weight(cumulative)
        starts = np.arange(0, values.size, size)
        some = np.maximum.reduceat(terms.mantissa, starts) > 0.0
        block = self.pick_weight(integer_weights(np.add.reduceat(values, starts), some))
        part = terms.at(slice(block * size, (block + 1) * size))
        cumulative = integer_weights(_relative_to_largest(part), part.mantissa > 0.0)
        return block * size + self.pick_weight(cumulative)

    def pick_weight(self, cumulative: Integers) -> int:
        """Draw an index by weights, given as their cumulative sums."""
        index = int(self.coins.categorical(cumulative, 1)[0])
        weight = int(cumulative[index]) - (int(cumulative[index - 1]) if index else 0)
        # What was drawn had this probability exactly; the coin at the end needs it.
        self.factors.append((int(cumulative[-1]), weight))
        return index


def _relative_to_largest(terms: Scaled) -> Floats:
    return terms.mantissa * power_of_two(terms.exponent - terms.exponent.max())


def integer_weights(values: Floats, possible: Flags) -> Integers:
    """Return cumulative sums of integers, each at least a fixed multiple of its value.

    The multiple is a power of two over the largest value's, the same for all. What is possible
    weighs at least 1, also where float64 has no number small enough beside the largest.
    """
    scale = 2.0 ** (58 - int(values.size).bit_length() - int(np.frexp(values.max())[1]))
    # the factor covers the rounding of large products in float64, and `possible` gives back what
    # truncation takes
    weights = (values * (scale * (1.0 + 2.0**-36))).astype(np.int64)
    weights += possible
    return np.cumsum(weights)


class JointDraw:
    """Draw exactly from ``f(o) ~ exp(-units 2^-40 sum_j |Q (r_j - r_j-1) - p_j n|)``.

    Over nondecreasing tuples o of lattice points, r their ranks, p_j / Q the widths of the levels.

    A tuple is proposed with a probability that is an exact rational and accepted with ``f(o)``
    over that probability and a bound ``M``, in ball arithmetic. Rounding of the tables costs
    proposals only. Expected proposals: 1 + 2^-20 where runs in one group are short, and a few more
    until their length is known.
    """

    def __init__(self, groups: RankGroups, levels: Levels, units: int) -> None:
        self.exact, self.levels, self.units = groups, levels, units
        self.groups = merge_distant(groups, levels, UNIT * units * levels.denominator)
        self._tables: Tables | None = None
        self._kept: dict[Hashable, Integers] = {}
        self._falls: dict[int, Scaled] = {}
        self._refused = 0

    @property
    def tables(self) -> Tables:
        """Return the tables, built when first needed.

        After many refusals without merged groups, then with longer runs.
        """
        m = len(self.levels.numerators)
        if self._tables is None:
            cheap = self.groups.n_groups * m * m <= _CHEAP
            self._tables = self._build(m if cheap else 2)
        elif self._refused >= _PATIENCE and self.groups is not self.exact:
            self.groups = self.exact
            self._tables = self._build(self._tables.runs)
            self._refused = 0
        elif self._refused >= _PATIENCE and self._tables.runs < m:
            self._tables = self._build(4 * self._tables.runs)
            self._refused = 0
        return self._tables

    def _build(self, runs: int) -> Tables:
        self._kept = {}
        return Tables(self.groups, self.levels, self.units, runs=runs)

    def draw(self, coins: Coins) -> Integers:
        """Return the m lattice indices of one tuple, in order."""
        while True:
            indices = self.propose(coins)
            if indices is not None:
                return indices
            self._refused += 1

    def propose(self, coins: Coins) -> Integers | None:
        """Return a tuple, or None where what is left over comes up: then all of it begins anew."""
        tables = self.tables
        choices = Choices(coins, self._kept)
        runs = self._choose_groups(tables, choices)
        # the coin of a tuple with merged groups needs true ranks: its points are drawn first
        merged = self.groups.within is not None and any(self.groups.within[k] for k, _ in runs)
        indices = self._place_all(coins, runs) if merged else None
        if not self._accept(tables, choices, runs, self.energy(runs, indices), coins):
            return None
        return self._place_all(coins, runs) if indices is None else indices

    def _place_all(self, coins: Coins, runs: list[tuple[int, int]]) -> Integers:
        parts = [self._place(coins, group, run) for group, run in reversed(runs)]
        return np.array([index for part in parts for index in part], dtype=np.int64)

    def _choose_groups(self, tables: Tables, choices: Choices) -> list[tuple[int, int]]:
        """Return the groups that hold outputs, last first, each with how many it holds."""
        left = len(self.levels.numerators)
        group = choices.pick("last", lambda: tables.finals)
        chosen = []
        while True:
            terms = partial(self._run_terms, tables, left - 1, group)
            run = 1 + choices.pick(("run", left, group), terms)
            chosen.append((group, run))
            left -= run
            if left == 0:
                return chosen
            group = choices.pick(("group", left, group), partial(tables.predecessors, left, group))

    def _run_terms(self, tables: Tables, j: int, group: int) -> Scaled:
        """Return the terms of ``arriving[j](group)``, one per length of the run that ends it."""
        size, placings = int(self.groups.sizes[group]), 1
        entered, placed, fallen = [], [], []
        for run in range(1, j + 2):
            placings = placings * (size + run - 1) // run
            entered.append(tables.entering[j - run + 1])
            placed.append(from_integer(placings))
            fallen.append(self._fall(j - run + 1, j))
        at = slice(group, group + 1)
        terms = times(
            concatenate(*(term.at(at) for term in entered)),
            concatenate(*placed),
            concatenate(*fallen),
        )
        if self.groups.within is None:
            return terms
        twice = 2 * int(self.groups.within[group])
        return times(terms, exponentials(tables.rate, twice * np.arange(1, j + 2)))

    def _fall(self, first: int, last: int) -> Scaled:
        """Return ``exp(-c (t_first+1 + .. + t_last))``."""
        width = self.levels.numerators[last] - self.levels.numerators[first]
        if width not in self._falls:
            nats = -UNIT * self.units * self.groups.count * width
            self._falls[width] = exponential(nats)
        return self._falls[width]

    def _accept(
        self,
        tables: Tables,
        choices: Choices,
        runs: list[tuple[int, int]],
        energy: Fraction,
        coins: Coins,
    ) -> bool:
        """Flip the coin of a proposal: its weight over its probability and the bound M."""
        placings = math.prod(math.comb(int(self.groups.sizes[k]) + s - 1, s) for k, s in runs)
        most, power = tables.bound

        def enclosure(_: int, precision: int) -> flint.arb:
            with flint.ctx.workprec(precision + 64):
                exponent = flint.fmpq(-energy.numerator, energy.denominator)
                chance = flint.arb(exponent).exp() * flint.arb((1, -power)) * placings
                chance = chance * flint.fmpq(most.denominator, most.numerator)
                for total, weight in choices.factors:
                    chance = chance * total / weight
                return chance

        chance = enclosure(0, 128)
        # Theorem 2 says that it cannot be; were it so, the law would not be exact
        if not chance < 1:
            raise EnvelopeViolatedError
        return bool(coins.bernoulli(np.array([float(chance.mid())]), enclosure)[0])

    def energy(self, runs: list[tuple[int, int]], indices: Integers | None = None) -> Fraction:
        """Return the energy, in nats, of a tuple with these groups (last first) and runs.

        Outputs in merged groups have ranks of their own: there the lattice ``indices`` are needed.
        """
        if indices is None:
            ranks = [int(self.groups.ranks[k]) for k, s in reversed(runs) for _ in range(s)]
        else:
            places = np.searchsorted(self.exact.first, indices, side="right") - 1
            ranks = self.exact.ranks[places].tolist()
        ends = [0, *ranks, self.groups.count]
        scale, count = self.levels.denominator, self.groups.count
        missed = sum(
            abs(scale * (above - below) - width * count)
            for below, above, width in zip(ends, ends[1:], self.levels.widths, strict=False)
        )
        return UNIT * self.units * missed

    def _place(self, coins: Coins, group: int, run: int) -> list[int]:
        """Return a uniform multiset of ``run`` points of a group, in order.

        Multisets of N points are sets of N + run - 1: Floyd's way to draw one.
        """
        # independent points that are sorted would weigh s different ones s! times as much as equal
        # ones
        points = int(self.groups.sizes[group]) + run - 1
        chosen: set[int] = set()
        for last in range(points - run, points):
            drawn = int(coins.integers_below(last + 1, 1)[0])
            chosen.add(last if drawn in chosen else drawn)
        return [
            int(self.groups.first[group]) + index - place
            for place, index in enumerate(sorted(chosen))
        ]
