"""BoxTree: exact rejection from cells that are refined where the mass is.

Theory page: docs/theory/box_tree.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import flint
import numpy as np
from numpy.typing import NDArray

from expmech.certificates.forecast import Forecast, power, times, widened
from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.coins import UNITS_PER_NAT, Coins
from expmech.core.errors import EnvelopeViolatedError, UnsupportedError, validate_integer
from expmech.domains import Indices
from expmech.exponential.envelopes.cells import CellBounds, Cells, certify, join, look, split, whole
from expmech.exponential.samplers.base import Sampler, SamplerTerms
from expmech.exponential.samplers.chain import (
    MemorylessChain,
    PointChain,
    PointState,
    first_accepted,
    unstarted,
)
from expmech.exponential.target import Target

_LOG2_TOTAL = 61  # integer weights of a tree sum to less than 2^62


@dataclass(frozen=True, eq=False)
class Tree:
    """Cells with integer weights, made by :func:`weigh`: a law that can be drawn exactly.

    ``mass`` is ``2^shift |C| exp(-(bound - base))`` in float64, relative error below 2^-47;
    ``weights`` are integers above it.
    """

    cells: Cells
    base: int
    shift: int
    mass: Floats
    weights: Integers
    cumulative: Integers
    units_per_nat: int = UNITS_PER_NAT

    @cached_property
    def shares(self) -> Floats:
        """The mass of each cell over its weight."""
        return self.mass / self.weights

    def propose(self, coins: Coins, size: int, bits: int) -> tuple[Integers, Indices]:
        """Draw cells by weight and a uniform point in each; return both."""
        chosen = coins.categorical(self.cumulative, size)
        low, sides = self.cells.low.take(chosen, axis=0), self.cells.bits.take(chosen, axis=0)
        # The leading bits of a word are uniform on the side of any cell, so one call serves all
        # sizes.
        uniform = coins.integers_below(1 << bits, low.size).reshape(low.shape)
        uniform >>= bits - sides
        uniform += low
        return chosen, uniform

    def accept(self, coins: Coins, chosen: Integers, energies: Integers) -> Flags:
        """Accept points with probability ``2^shift |C| exp(-(E - base)) / weight``, exactly."""
        deficit = energies - self.cells.bound.take(chosen)
        # A point below the bound of its cell: a declaration is false, and the law would be bent.
        if deficit.size and deficit.min() < 0:
            raise EnvelopeViolatedError
        probability = np.asarray(deficit * (-1.0 / self.units_per_nat), dtype=np.float64)
        np.exp(probability, out=probability)
        probability *= self.shares.take(chosen)

        def enclosure(j: int, precision: int) -> flint.arb:
            cell = int(chosen[j])
            power = self.shift + int(self.cells.bits[cell].sum())
            with flint.ctx.workprec(precision):
                exponent = flint.arb(flint.fmpq(self.base - int(energies[j]), self.units_per_nat))
                return exponent.exp() * flint.arb(2) ** power / int(self.weights[cell])

        return coins.bernoulli(probability, enclosure)


@cache
def _log_two(units_per_nat: int) -> tuple[int, float]:
    """Return log 2 in units, as an integer and a fraction."""
    whole = math.floor(math.log(2.0) * units_per_nat)
    with flint.ctx.workprec(128):
        return whole, float(flint.arb.const_log2() * units_per_nat - whole)


def weigh(cells: Cells, units_per_nat: int = UNITS_PER_NAT) -> Tree:
    """Give each cell the integer weight ``floor((1 + 2^-40) mass) + 1``, above its mass."""
    base = int(cells.bound.min())
    above, log2_size = cells.bound - base, cells.log2_size
    whole_part, fraction = _log_two(units_per_nat)
    halvings = np.rint(above / (math.log(2.0) * units_per_nat)).astype(np.int64)
    # within log(2)/2, error far below a unit
    rest = (above - halvings * whole_part) - halvings * fraction
    power = log2_size - halvings
    shift = min(40, _LOG2_TOTAL - len(cells).bit_length()) - int(power.max()) - 1
    mass = np.ldexp(np.exp(rest * (-1.0 / units_per_nat)), power + shift)
    weights = (mass * (1.0 + 2.0**-40)).astype(np.int64) + 1
    return Tree(cells, base, shift, mass, weights, np.cumsum(weights), units_per_nat)


LOT = 1 << 6
"""Cells refined, and points proposed, together: for fewer, calls cost more than is wasted."""

_CELLS = 4.0  # evaluations per cell of the flat tree: look, split, proposals after; measured
_LEVELS = 8.0  # evaluations per level of the lattice where bounds are exact; measured
_DEPTH = 25.0  # nats above the least energy that cells of a loss with its slopes must tell apart
_SLOPED_CELLS, _HALVING = 3.0, 2.0  # evaluations per such cell, per halving of an axis; measured
_PASS, _PASSES = 7.0, 1.5  # calls that a pass is worth, and passes of the smallest trees; measured
_PASS_HALVING = 0.3  # passes per halving of an axis that is steeper than the others; measured
_CELL_CALLS = 0.04  # calls that keeping the cells of an evaluation is worth; measured
_FINE_POWER = 0.55  # power of the usual number that a tree cut without evaluations takes; measured
_FINE_CALLS = 50.0  # calls of plain proposals that cutting for one evaluation is worth; measured
_MEMORY = (1 << 30) / 48  # words of 8 bytes of which a tree may hold six copies
_CELL_WORDS = 4


def forecast_tree(
    slopes: Sequence[float], bits: int, *, least: float, convex: bool = False
) -> Forecast:
    """Forecast a tree with Lipschitz bounds: usual losses use their slopes, the worst is flat.

    Where a loss rises by its slopes, cells far from the least energy stay large: the tree is about
    one of a flat loss whose bounds fall by a few dozen nats, and some halvings to get there.
    Tangents of a ``convex`` loss are nearer to it: the guess is a lot for each corner of a cell.
    """
    d = len(slopes)
    log_most = min(bits * d * math.log(2.0), math.log(_MEMORY / (_CELL_WORDS + 3 * d)))
    worst = 2 * LOT + _CELLS * _flat_cells(slopes, log_most)
    near = [slope * _DEPTH / (slope + _DEPTH) for slope in slopes]
    halvings = sum(math.log2(1.0 + slope / _DEPTH) for slope in slopes)
    usual = LOT + _SLOPED_CELLS * _flat_cells(near, log_most) + _HALVING * halvings
    usual = min(usual, worst)
    tangents = min(usual, LOT * 2.0 ** (d - 1)) if convex else usual
    return Forecast(
        expected=(least, worst),
        nearly_all=(least, 2.0 * worst),
        typical=tangents,
        calls=_calls(tangents) + _PASS * _PASS_HALVING * halvings + _CELL_CALLS * tangents,
        ranked=usual,
    )


def forecast_slow_loss(ordinary: Forecast) -> Forecast:
    """Forecast a tree that is cut without evaluations, from that of one that evaluates cells."""
    worst, most = ordinary.expected[1], ordinary.nearly_all[1]
    typical = ordinary.rank**_FINE_POWER
    return Forecast(
        expected=(2.0, worst), nearly_all=(2.0, most), typical=typical, calls=_FINE_CALLS * typical
    )


def forecast_own_bounds(bits: int, dimension: int, *, exact: bool, least: float) -> Forecast:
    """Forecast a tree with the loss's own bounds; only exact ones have a public limit."""
    worst, most, typical = None, None, 4.0 * LOT * dimension
    if exact:
        worst = 2 * LOT + _LEVELS * bits * dimension
        most, typical = 2.0 * worst, math.sqrt(LOT * worst)
    return Forecast(
        expected=(least, worst), nearly_all=(least, most), typical=typical, calls=_calls(typical)
    )


def _calls(evaluations: float) -> float:
    """Return the passes over the cells, each worth several calls of plain proposals; measured.

    A pass refines a lot of cells, or a quarter of them where that is more.
    """
    return _PASS * (_PASSES + math.log(max(1.0, evaluations / LOT)) / math.log(1.25))


def _flat_cells(slopes: Sequence[float], log_most: float) -> float:
    """Return the cells, or the proposals where they are more, of a flat loss with such bounds."""
    drop = _flat_drop(slopes, log_most)
    return max(power(_log_cells(slopes, drop)), power(drop))


def _flat_drop(slopes: Sequence[float], log_most: float) -> float:
    """Return how many nats below a flat loss the bounds of N equal cells end: log N.

    Then the mass the bounds add, a factor exp of that, is worth one evaluation per cell. Where
    memory allows fewer cells the bounds stay lower. An axis whose slope is smaller than the others'
    is cut less often.
    """
    low, high = 0.0, sum(slopes) / 2
    while high - low > 1e-9 * (1.0 + high):
        middle = (low + high) / 2
        if _log_cells(slopes, middle) > min(middle, log_most):
            low = middle
        else:
            high = middle
    return high


def _log_cells(slopes: Sequence[float], drop: float) -> float:
    """Return the log of the number of cells whose bounds lie ``drop`` nats below their center."""
    steep = sorted((slope for slope in slopes if slope > 0), reverse=True)
    parts, rest = len(steep), drop
    for slope in reversed(steep):  # a flat axis that uses up less than its part is never cut
        if slope / 2 > rest / parts:
            break
        rest -= slope / 2
        parts -= 1
        if parts == 0:
            return 0.0
    if rest <= 0:
        return math.inf
    return sum(math.log(slope / 2 * parts / rest) for slope in steep[:parts])


SLOW = 5e-3
"""Seconds an evaluation must take by its declaration for cells to be cut as finely as they can."""

_WORTH = 3e-4  # of the whole mass that cutting a cell may save, below which it is left
_TOGETHER = 256  # cells cut in a pass
_MOST_CUTS = (
    150  # passes times points evaluated: what is cut at once should cost less than the loss
)


def learn(cells: Cells, bounds: CellBounds, point: Indices, energy: int, gradient: Floats) -> Cells:
    """Return the cells with their bounds raised by what one evaluated point says about each.

    It says nothing about cells at another candidate of a list.
    """
    reference = np.broadcast_to(point, cells.low.shape)
    energies = np.full(len(cells), energy, dtype=np.int64)
    slopes = np.broadcast_to(gradient, (len(cells), len(gradient)))
    last = cells.last
    raised = bounds.from_reference(cells.low, last, reference, energies, slopes)
    better = bounds.comparable(cells.low, point) & (raised > cells.bound)
    here = ((reference >= cells.low) & (reference <= last)).all(axis=1)
    return dataclasses.replace(
        cells,
        bound=np.where(better, raised, cells.bound),
        reference=np.where(better[:, None], reference, cells.reference),
        energy=np.where(better, energies, cells.energy),
        gradient=np.where(better[:, None], slopes, cells.gradient),
        seen=np.where(better, here, cells.seen),
    )


def sharpen(cells: Cells, bounds: CellBounds, *, memory: float) -> Cells:
    """Cut cells, the heaviest first, until no cut would save much; the loss is not looked at."""
    # one cell for each evaluated point that some bound comes from
    known = cells.take(np.unique(cells.reference, axis=0, return_index=True)[1])
    unit = 1.0 / bounds.target.units_per_nat
    for _ in range(max(1, _MOST_CUTS // len(known))):
        if cells.bytes >= memory:
            break
        log_mass = cells.log2_size * math.log(2.0) - (cells.bound - cells.bound.min()) * unit
        mass = np.exp(log_mass - log_mass.max())
        # a bound holds for the farthest point of a cell: half of what lies across it is lost
        across = (((1 << cells.bits) - 1) * bounds.axis_weights).sum(axis=1) * unit
        gain = np.where(cells.log2_size > 0, mass * -np.expm1(-across / 2.0), 0.0)
        chosen = np.flatnonzero(gain > _WORTH * mass.sum())
        if not chosen.size:
            break
        chosen = chosen[np.argsort(-gain[chosen])[:_TOGETHER]]
        kept = np.ones(len(cells), dtype=np.bool_)
        kept[chosen] = False
        parts = split(cells.take(chosen), bounds)
        for row in range(len(known)):
            parts = learn(
                parts, bounds, known.reference[row], int(known.energy[row]), known.gradient[row]
            )
        cells = join([cells.take(kept), parts])
    return cells


MANY = 1 << 12
"""Draws from which on proposals are one stream; fewer are made by copies side by side."""

_STREAM = 1 << 13  # proposals of a stream that are worked on together: their arrays fit a cache
_SPARE = 8  # a lot has an eighth more than are missing: about as many as are refused
_CELL_COST = 32  # proposals of a stream that cutting a cell is worth; measured
# share of the difference between bound and nearby energy that an evaluation usually recovers
_LOOK_GAIN = 0.25
_GROWTH = 4  # and at least a quarter of the cells, so that a large tree is built in few passes
_HEAVY = 4.0  # a cell this much lighter than the heaviest is left alone when proposals have failed
_WORKING_COPIES = 6  # of the cells while they are refined and weighed
VIOLATION = (
    "the loss is nowhere below the bounds over boxes that its declared minimum, Lipschitz"
    " constants, gradient or lower_bound certify; otherwise an error with a fixed text is raised"
)


@dataclass(frozen=True)
class BoxTreeState(PointState):
    """The accepted point of each copy, once it has one, and the tree all copies share."""

    tree: NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class BoxTreeChain(PointChain):
    """Refine the tree and propose from it, in turn."""

    target: Target
    bounds: CellBounds
    root: Tree
    batch: int | None
    memory: int
    cuts_finely: bool = False
    first: dict[int, Tree] = field(default_factory=dict)  # the first tree, by copies

    def start(self, coins: Coins, size: int) -> BoxTreeState:
        """Return copies that have proposed nothing and share a tree of one cell."""
        tree = np.full(size, self.root, dtype=np.object_)
        return BoxTreeState(**vars(unstarted(self.target.domain, size)), tree=tree)

    def step(self, state: BoxTreeState, coins: Coins) -> BoxTreeState:
        """Refine the shared tree as far as it pays, then propose from it for every copy."""
        size = len(state.proposals)
        if self.cuts_finely and size == 1:
            return self._step_finely(state, coins)
        tree = state.tree[0]
        if tree is self.root and size not in self.first:
            self.first[size] = self.refine(tree, size)
        # The tree may follow the data and what was refused before: given the tree, an accepted
        # point has law f, whatever it is (docs/theory/box_tree.md, section 2).
        tree = self.first[size] if tree is self.root else self.refine(tree, size)
        proposed, accepted = self.propose(tree, coins, size * max(1, (self.batch or LOT) // size))
        rows, done, count = first_accepted(accepted, size)
        return BoxTreeState(
            indices=proposed[rows],
            proposals=state.proposals + count,
            tree=np.full(size, tree, dtype=np.object_),
            done=done,
        )

    def propose(self, tree: Tree, coins: Coins, size: int) -> tuple[Indices, Flags]:
        """Propose points from a tree; return them and which are accepted."""
        chosen, proposed = tree.propose(coins, size, self.bounds.box.bits)
        if self.target.box is not None:  # cells are parts of the domain
            return proposed, tree.accept(coins, chosen, self.target.energy(proposed))
        rows = np.flatnonzero(self.target.contains(proposed))
        accepted = np.zeros(size, dtype=np.bool_)
        accepted[rows] = tree.accept(coins, chosen[rows], self.target.energy(proposed[rows]))
        return proposed, accepted

    def for_many(self, size: int) -> PointChain:
        """Return one stream of proposals for all of many draws."""
        return self if self.batch or size < MANY else TreeStream(self, size)

    def _step_finely(self, state: BoxTreeState, coins: Coins) -> BoxTreeState:
        """Propose one point from cells cut as finely as all evaluations so far make worth it."""
        most = self.memory / _WORKING_COPIES
        tree = self._weigh(sharpen(state.tree[0].cells, self.bounds, memory=most))
        chosen, proposed = tree.propose(coins, 1, self.bounds.box.bits)
        accepted, cells = np.zeros(1, dtype=np.bool_), tree.cells
        if self.target.contains(proposed)[0]:
            energies, slopes = self.bounds.evaluate(proposed)
            accepted = tree.accept(coins, chosen, energies)
            cells = learn(cells, self.bounds, proposed[0], int(energies[0]), slopes[0])
        return BoxTreeState(
            indices=proposed,
            proposals=state.proposals + 1,
            tree=np.full(1, self._weigh(cells), dtype=np.object_),
            done=accepted,
        )

    def refine(self, tree: Tree, copies: int) -> Tree:
        """Return ``tree`` refined until no cell is expected to save ``copies`` draws its cost.

        A tree that was proposed from and failed is refined at its heaviest cells in any case: the
        estimate may be wrong. The result depends on the tree and the number of copies only, never
        on what was proposed.
        """
        cells = tree.cells
        if tree is not self.root:
            cells = self._refine_heaviest(cells, self.batch or LOT)
        while cells.bytes * _WORKING_COPIES < self.memory:
            chosen = self._worth_refining(cells, copies)
            if not chosen.size:
                break
            cells = self._refine_cells(cells, chosen)
        # never the root itself: a tree that is not the root has been proposed from
        return tree if cells is tree.cells and tree is not self.root else self._weigh(cells)

    def _refine_heaviest(self, cells: Cells, evaluations: int) -> Cells:
        """Refine about ``evaluations`` of the heaviest cells: as much work as what failed."""
        while evaluations > 0 and cells.bytes * _WORKING_COPIES < self.memory:
            mass = np.where(cells.seen & (cells.log2_size == 0), 0.0, self._weigh(cells).mass)
            chosen = _largest(np.where(mass >= mass.max() / _HEAVY, mass, 0.0), evaluations)
            if not chosen.size:
                break
            cells = self._refine_cells(cells, chosen)
            evaluations -= chosen.size
        return cells

    def _weigh(self, cells: Cells) -> Tree:
        return weigh(cells, self.target.units_per_nat)

    def _worth_refining(self, cells: Cells, copies: int) -> Integers:
        """Return the cells whose mass is probably too large by more than the normaliser.

        The expected number of proposals per draw is the total mass over the normaliser, so removing
        that much saves one evaluation. What a cell's mass should be is judged by its evaluated
        point or, where it has none, by the one its bound came from. Where very many are drawn, a
        proposal takes far less time than a cell.
        """
        many = copies >= MANY
        log_size = cells.log2_size * math.log(2.0)
        unit = 1.0 / self.target.units_per_nat
        log_mass = log_size - (cells.bound - cells.bound.min()) * unit
        mass = np.exp(log_mass - log_mass.max())
        slack = np.maximum(cells.energy - cells.bound, 0) * unit
        normaliser = (mass * np.exp(-slack))[cells.seen].sum()
        gain = -mass * np.where(
            cells.seen, np.expm1(-slack) * (log_size > 0), np.expm1(-_LOOK_GAIN * slack)
        )
        worth = gain * copies > normaliser * (_CELL_COST if many else 1)
        lot = self.batch or max(LOT, len(cells) if many else len(cells) // _GROWTH)
        return _largest(np.where(worth, gain, 0.0), lot)

    def _refine_cells(self, cells: Cells, chosen: Integers) -> Cells:
        if not chosen.size or cells.bytes * _WORKING_COPIES >= self.memory:
            return cells
        kept = np.ones(len(cells), dtype=np.bool_)
        kept[chosen] = False
        seen = cells.seen[chosen]
        parts = [cells.take(kept)]
        if seen.any():
            parts.append(split(cells.take(chosen[seen]), self.bounds))
        if not seen.all():
            parts.append(look(cells.take(chosen[~seen]), self.bounds))
        return join(parts)


@dataclass(eq=False)
class TreeStream(MemorylessChain):
    """Many draws as one stream of proposals, from one tree as long as that serves them well.

    Made anew for each call that draws: it counts what is missing.
    """

    chain: BoxTreeChain
    missing: int
    batch: int | None = None
    tree: Tree | None = None

    @property
    def target(self) -> Target:  # type: ignore[override]
        """The law to draw from."""
        return self.chain.target

    def first_lot(self, size: int) -> int:
        """Return about as many as are missing, within sizes that are worked on together."""
        return max(LOT, min(_STREAM, self.missing + self.missing // _SPARE))

    def next_lot(self, lot: int) -> int:
        return self.first_lot(self.missing)

    def propose(self, coins: Coins, size: int) -> tuple[Indices, Flags]:
        """Propose from the tree; where few are accepted, refine it for the next lot."""
        if self.tree is None:
            self.tree = self.chain.refine(self.chain.root, self.missing)
        proposed, accepted = self.chain.propose(self.tree, coins, size)
        drawn = int(np.count_nonzero(accepted))
        self.missing = max(0, self.missing - drawn)
        if self.missing and 2 * drawn < size:
            self.tree = self.chain.refine(self.tree, self.missing)
        return proposed, accepted


def _largest(scores: Floats, count: int) -> Integers:
    """Return at most ``count`` positions of the largest positive scores."""
    positive = np.flatnonzero(scores > 0.0)
    if len(positive) <= count:
        return positive
    return positive[np.argpartition(scores[positive], len(positive) - count)[-count:]]


class BoxTree(Sampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by rejection from boxes, refined where the mass is.

    Parameters
    ----------
    batch : int, optional
        Cells refined together, and points proposed together for a single draw; None chooses for
        speed. The law does not depend on it.
    memory : int, default 2^30
        Bytes beyond which the tree stops growing. Draws stay exact and take longer; that it
        happened is confidential.

    Notes
    -----
    Precondition: a Box, L1Ball, L2Ball or Product, and a loss with ``lipschitz`` constants, or
    ``convex = True`` and a ``gradient(points)``, or a ``lower_bound(lower, upper)`` over boxes of
    points. Each cell carries a certified lower bound on E; a cell is drawn by an integer weight of
    at least ``2^s |C| exp(-bound)``, a point uniformly in it, and it is accepted by an exact coin.
    Law: f, and draws that share the tree are independent. Expected proposals per draw: the mass of
    the cells over that of f. Theory page: docs/theory/box_tree.md.

    Examples
    --------
    >>> import expmech as em
    >>> mech = em.ExponentialMechanism(
    ...     loss=lambda y: abs(y[:, 0] - 0.3),
    ...     sensitivity=0.001,
    ...     domain=em.Box([0.0], [1.0]),
    ...     lipschitz=[1.0],
    ... )
    >>> draws = mech.sample(epsilon=1.0, sampler=BoxTree(), seed=1)
    >>> bool(abs(draws.values[0, 0] - 0.3) < 0.1)
    True
    """

    automatic = True
    bounded_range = True
    least_typical = float(LOT)
    assumptions = (VIOLATION,)
    serves_base = True

    def __init__(self, *, batch: int | None = None, memory: int = 1 << 30) -> None:
        self.batch = (
            None
            if batch is None
            else validate_integer(batch, name="batch", owner="BoxTree", low=1, high=1 << 20)
        )
        self.memory = validate_integer(memory, name="memory", owner="BoxTree", low=1, high=1 << 50)

    def prepare(self, target: Target) -> BoxTreeChain:
        bounds = certify(target)
        root = weigh(whole(bounds), target.units_per_nat)
        finely = self._cuts_finely(target)
        return BoxTreeChain(target, bounds, root, self.batch, self.memory, finely)

    def _cuts_finely(self, target: Target) -> bool:
        """Tell whether evaluations are declared to be slow; a public choice."""
        seconds = target.problem.evaluation_seconds
        bounded = target.slopes is not None and target.measure is None
        return self.batch is None and bounded and seconds is not None and seconds >= SLOW

    def validate_base(self, target: Target) -> None:
        """Refuse a base measure that excludes points: the middle of a cell may be one."""
        if target.measure is not None and target.measure.base.excludes:
            raise UnsupportedError(
                "BoxTree evaluates the loss in the middle of cells, which `base` may exclude. Use"
                " Rejection, or Tabulated on a small lattice."
            )

    def terms(self, target: Target) -> SamplerTerms:
        certify(target)
        return super().terms(target)

    def forecast(self, target: Target) -> Forecast:
        """Count cells and proposals of a first draw; Lipschitz bounds are worst on a flat loss."""
        bounds = certify(target)
        box = bounds.box
        # the proposals of a lot that miss a ball are not evaluated
        least = 1.0 if target.box is None else 1.0 + LOT
        spread = target.base_spread if bounds.base_slopes is None else 0.0
        if target.slopes is not None:
            slopes = target.slopes
            if bounds.base_slopes is not None:
                base = bounds.base_slopes * (box.points_per_axis / target.units_per_nat)
                slopes = tuple((np.array(slopes) + base).tolist())
            convex = target.problem.gradient is not None
            tree = forecast_tree(slopes, box.bits, least=least, convex=convex)
            if self._cuts_finely(target):
                tree = forecast_slow_loss(tree)
            return widened(times(tree, len(bounds.cover.low)), spread)
        exact = target.problem.exact_lower_bound and target.measure is None
        own = forecast_own_bounds(box.bits, box.dimension, exact=exact, least=least)
        return widened(times(own, len(bounds.cover.low)), spread)
