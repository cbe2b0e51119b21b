"""Very many quantiles: medians of parts. Theory page: docs/theory/recursive_quantiles.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import Check, budgets, check_equal
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import Integers
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import ParameterError
from expmech.core.rounding import float_down, float_up
from expmech.mechanisms.quantiles.base import CellCounts, SeveralQuantiles
from expmech.mechanisms.quantiles.draw import JointDraw
from expmech.mechanisms.quantiles.tables import Levels, parse_levels
from expmech.theory.concentrated import rho_of_bounded_range

_OWNER = "RecursiveQuantiles"


@dataclass(frozen=True)
class LevelNode:
    """One level, drawn from the values between two others.

    ``start < at < end`` are the numerators of the level before, of this one and of the level after
    it among those drawn earlier: within its part it is the quantile ``(at - start) / (end -
    start)``. ``depth`` is 0 for the first.
    """

    index: int
    start: int
    at: int
    end: int
    depth: int

    @property
    def widest(self) -> int:
        """The wider side of the level; divided by ``end - start`` it is D under add-remove."""
        return max(self.at - self.start, self.end - self.at)


def nodes_of(levels: Levels) -> Iterator[LevelNode]:
    """Yield the levels as they are drawn: the middle one of a part, then those of its halves."""
    numerators = levels.numerators

    def below(first: int, last: int, start: int, end: int, depth: int) -> Iterator[LevelNode]:
        if first == last:
            return
        middle = (first + last - 1) // 2
        at = numerators[middle]
        yield LevelNode(middle, start, at, end, depth)
        yield from below(first, middle, start, at, depth + 1)
        yield from below(middle + 1, last, at, end, depth + 1)

    return below(0, len(numerators), 0, levels.denominator, 0)


def by_level(levels: Levels) -> list[LevelNode]:
    """Return the nodes in the order of their levels."""
    return sorted(nodes_of(levels), key=lambda node: node.index)


def depth_of(levels: int) -> int:
    """Return how many draws a row takes part in: ``ceil(log2(levels + 1))``."""
    return levels.bit_length()


def node_units(node: LevelNode, share: Fraction, adjacency: Adjacency) -> int:
    """Return the energy, in units of 2^-40 nats, of half a rank over the width of the part.

    ``share`` is the epsilon of a depth. A row more or less in a part moves its loss by D = widest
    over width; a row replaced moves two parts, or one by 1.
    """
    # eta is share / 2D, and s units are an energy of 2 s (end - start) for each rank; with D =
    # widest / (end - start) that is s = share / (4 widest): docs/theory/recursive_quantiles.md
    if adjacency is Adjacency.ADD_REMOVE:
        moved = 4 * node.widest
    elif node.depth == 0:
        moved = 4 * (node.end - node.start)
    else:
        moved = 8 * node.widest
    units = int(share * UNITS_PER_NAT / moved)
    if units < 1:
        raise ParameterError(
            "`levels` must have a smaller common denominator at this epsilon. Write them as decimal"
            " text with fewer digits."
        )
    return units


@dataclass(frozen=True, kw_only=True)
class RecursiveQuantiles(SeveralQuantiles):
    """Draw the middle quantile, then those of the values below it and above it, and so on.

    Each from the exponential mechanism with the loss ``|#{x < y} - q n|`` of its part, after equal
    values were spread over the points of their cell. A row takes part in ``ceil(log2(m + 1))``
    draws, which share epsilon: better than :class:`JointQuantiles` where m is large.

    Make one with :meth:`from_values` or :meth:`from_counts`.

    Parameters
    ----------
    levels, lattice, adjacency, spread, cells
        As for :class:`JointQuantiles`.

    Examples
    --------
    >>> values = np.linspace(0.0, 10.0, 1001)
    >>> levels = [f"{j}/50" for j in range(1, 50)]
    >>> many = RecursiveQuantiles.from_values(values, levels=levels, lower=0.0, upper=10.0)
    >>> many.release(epsilon=1.0).value.shape
    (49,)
    """

    name = _OWNER
    note = (
        "one draw per level, from the values between the two levels next to it that were drawn"
        " before: the numbers above are entries of tables, one per level and different rank"
    )

    def _units(self, budget: Fraction) -> list[int]:
        """Return the energy units of each level, in the order of the levels."""
        # A row lies in one part of each depth, so epsilon is divided by the depth and not by the
        # number of levels (docs/theory/recursive_quantiles.md, section 2).
        share = budget / depth_of(len(self.levels.numerators))
        return [node_units(node, share, self.adjacency) for node in by_level(self.levels)]

    def energy_terms(self, budget: Fraction) -> dict[str, Any]:
        units = self._units(budget)
        return {
            "sensitivity": float_up(_sensitivity(self.levels, self.adjacency)),
            "eta": _eta(self.levels, units),
            "parameters": {"units": units, "depth": depth_of(len(units))},
        }

    def _seconds(self, ranks: int, budget: Fraction) -> float:
        many = len(self.levels.numerators)
        return 5e-3 + 1.4e-3 * many + 5e-8 * ranks * many.bit_length()

    def points_draw(self, spread: CellCounts, budget: Fraction) -> Callable[[Coins], Integers]:
        units, top = self._units(budget), self.levels.denominator

        def draw(coins: Coins) -> Integers:
            drawn = {0: 0, top: spread.cells - 1}
            for node in nodes_of(self.levels):
                low, high = drawn[node.start], drawn[node.end]
                # values at a point that was drawn belong to the part above it
                inside = spread.between(low, high if node.end == top else high - 1)
                part = CellCounts(inside.occupied, inside.counts, high - low + 1)
                level = Levels((node.at - node.start,), node.end - node.start)
                joint = JointDraw(part.groups, level, units[node.index])
                drawn[node.at] = low + int(joint.draw(coins)[0])
            return np.array([drawn[at] for at in self.levels.numerators], dtype=np.int64)

        return draw

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute the energies depth by depth, and what a row can move in all."""
        levels = parse_levels(certificate.sampler["levels"], owner=_OWNER)
        adjacency = validate_adjacency(certificate.adjacency, owner=_OWNER)
        units = certificate.sampler["units"]
        depth = depth_of(len(levels.numerators))
        least, most = (
            [node_units(node, budget / depth, adjacency) for node in by_level(levels)]
            for budget in budgets(certificate)
        )
        within = [low <= unit <= high for low, unit, high in zip(least, units, most, strict=True)]
        spent = sum(_spent(levels, units, adjacency), Fraction(0))
        return [
            *cls.verify_common(certificate, levels),
            check_equal("depth", certificate.sampler["depth"], depth),
            check_equal(
                "sensitivity", certificate.sensitivity, float_up(_sensitivity(levels, adjacency))
            ),
            check_equal("eta", certificate.eta, _eta(levels, units)),
            Check(
                claim="units",
                holds=all(type(unit) is int for unit in units)
                and all(within)
                and spent <= budgets(certificate)[1],
                detail=f"a row moves probabilities by {float(spent):.9g} in all",
            ),
        ]

    @classmethod
    def rho(cls, certificate: Certificate, epsilon: Fraction) -> Fraction:
        """Return the rho of as many draws of bounded range as a row takes part in."""
        depth = depth_of(len(certificate.sampler["levels"]))
        return depth * rho_of_bounded_range(epsilon / depth)


def _spent(levels: Levels, units: list[int], adjacency: Adjacency) -> list[Fraction]:
    """Return by how much a row can move log probabilities at each depth, from the units alone.

    Parts of a depth are found by cutting the list of levels, not by :func:`nodes_of`.
    """
    ends = [0, *levels.numerators, levels.denominator]
    parts = [(0, len(ends) - 1)]
    spent: list[Fraction] = []
    while any(right - left > 1 for left, right in parts):
        alone, added, deeper = Fraction(0), [Fraction(0), Fraction(0)], []
        for left, right in parts:
            if right - left > 1:
                middle = (left + right) // 2
                nats = Fraction(2 * units[middle - 1], UNITS_PER_NAT)  # of a rank over the width
                sides = ends[middle] - ends[left], ends[right] - ends[middle]
                added.append(nats * max(sides))
                # a row that is replaced within one part moves its rank by 1: both sides of the
                # level together
                alone = max(alone, nats * sum(sides))
                deeper += [(left, middle), (middle, right)]
        first, second = sorted(added, reverse=True)[:2]
        moved = first if adjacency is Adjacency.ADD_REMOVE else max(first + second, alone)
        spent.append(2 * moved)
        parts = deeper
    return spent


def _sensitivity(levels: Levels, adjacency: Adjacency) -> Fraction:
    """Return D of the first draw, from all values."""
    if adjacency is Adjacency.REPLACE:
        return Fraction(1)
    middle = Fraction(levels.numerators[_root(levels)], levels.denominator)
    return max(middle, 1 - middle)


def _eta(levels: Levels, units: list[int]) -> float:
    """Return the energy of a rank in the first draw in nats, rounded down."""
    return float_down(Fraction(2 * units[_root(levels)] * levels.denominator, UNITS_PER_NAT))


def _root(levels: Levels) -> int:
    """Return which level is drawn first."""
    return (len(levels.numerators) - 1) // 2
