"""The box tree: exact rejection from adaptively refined cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.cost import Forecast, times, widened
from expmech.envelopes.cell_bounds import CellBounds, certify
from expmech.envelopes.cells import Cells, join, look, split, whole
from expmech.errors import UnsupportedError, validate_integer
from expmech.samplers.base import Sampler, Terms
from expmech.samplers.chain import PointState, first_accepted, unstarted
from expmech.samplers.patient_tree import SLOW, learn, sharpen
from expmech.samplers.tree import Tree, weigh
from expmech.samplers.tree_cost import LOT, forecast_own_bounds, forecast_patient, forecast_tree
from expmech.target import Target

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
class BoxTreeChain:
    """Refine the tree, propose from it, and again."""

    target: Target
    bounds: CellBounds
    root: Tree
    batch: int | None
    memory: int
    patient: bool = False

    def start(self, coins: Coins, size: int) -> BoxTreeState:
        """Return copies that have proposed nothing and share a tree of one cell."""
        tree = np.full(size, self.root, dtype=np.object_)
        return BoxTreeState(**vars(unstarted(self.target.domain, size)), tree=tree)

    def step(self, state: BoxTreeState, coins: Coins) -> BoxTreeState:
        """Refine the shared tree as far as it pays, then propose from it for every copy.

        The first accepted point counts.
        """
        size = len(state.proposals)
        if self.patient and size == 1:
            return self._step_patiently(state, coins)
        tree = self.refine(state.tree[0], size)
        batch = max(1, (self.batch or LOT) // size)
        chosen, proposed = tree.propose(coins, size * batch, self.bounds.box.bits)
        inside = np.flatnonzero(self.target.contains(proposed))
        accepted = np.zeros(size * batch, dtype=np.bool_)
        accepted[inside] = tree.accept(coins, chosen[inside], self.target.energy(proposed[inside]))
        rows, done, count = first_accepted(accepted, size)
        return BoxTreeState(
            indices=proposed[rows],
            proposals=state.proposals + count,
            tree=np.full(size, tree, dtype=np.object_),
            done=done,
        )

    def _step_patiently(self, state: BoxTreeState, coins: Coins) -> BoxTreeState:
        """Propose one point from cells that are as good as all evaluations so far can make them."""
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
        """Return ``tree`` refined until no cell promises to save ``copies`` draws what it costs.

        A tree that was proposed from and failed is refined at its heaviest cells in any case: the
        estimate may be wrong. It depends on the tree and the number of copies only, never on what
        was proposed.
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
        """Refine the heaviest cells, about ``evaluations`` of them.

        That is as much work as the proposals that failed.
        """
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

    def _lot(self, n_cells: int) -> int:
        return max(LOT, n_cells // _GROWTH) if self.batch is None else self.batch

    def _worth_refining(self, cells: Cells, copies: int) -> NDArray[np.int64]:
        """Return the cells whose mass is probably too large by more than the normaliser.

        The expected number of proposals a draw is the total mass over the normaliser, so removing
        that much saves one evaluation. What a cell's mass should be is judged by its evaluated
        point or, where it has none, by the one its bound came from.
        """
        log_size = cells.log2_size * math.log(2.0)
        unit = 1.0 / self.target.units_per_nat
        log_mass = log_size - (cells.bound - cells.bound.min()) * unit
        mass = np.exp(log_mass - log_mass.max())
        slack = np.maximum(cells.energy - cells.bound, 0) * unit
        normaliser = (mass * np.exp(-slack))[cells.seen].sum()
        gain = -mass * np.where(
            cells.seen, np.expm1(-slack) * (log_size > 0), np.expm1(-_LOOK_GAIN * slack)
        )
        return _largest(np.where(gain * copies > normaliser, gain, 0.0), self._lot(len(cells)))

    def _refine_cells(self, cells: Cells, chosen: NDArray[np.int64]) -> Cells:
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

    def values(self, state: BoxTreeState) -> NDArray[Any]:
        """Return the accepted points."""
        return self.target.domain.values(state.indices)


def _largest(scores: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return at most ``count`` positions of the largest positive scores."""
    positive = np.flatnonzero(scores > 0.0)
    if len(positive) <= count:
        return positive
    return positive[np.argpartition(scores[positive], len(positive) - count)[-count:]]


class BoxTree(Sampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by rejection from boxes, refined where the mass is.

    Parameters
    ----------
    batch
        Cells refined together, and points proposed together for a single draw; None chooses for
        speed. The law does not depend on it.
    memory
        Bytes beyond which the tree stops growing. Draws stay exact and take longer; that it
        happened is confidential.

    Notes
    -----
    Precondition: a Box, L1Ball, L2Ball or Product, and a loss with ``lipschitz`` constants, or
    ``convex = True`` and a ``gradient(points)``, or a ``lower_bound(lower, upper)`` over boxes of
    points. Each
    cell carries a certified lower bound on E; a cell is drawn by an integer weight of at least
    ``2^s |C| exp(-bound)``, a point uniformly in it, and it is accepted by an exact coin. Law: f,
    and draws that share the tree are independent. Expected proposals a draw: the mass of the cells
    over that of f. Theory page: docs/theory/box_tree.md.

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
        """Bound the loss over the whole box."""
        bounds = certify(target)
        root = weigh(whole(bounds), target.units_per_nat)
        patient = self._is_patient(target)
        return BoxTreeChain(target, bounds, root, self.batch, self.memory, patient)

    def _is_patient(self, target: Target) -> bool:
        """Tell whether evaluations are declared to be dear; a public choice."""
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

    def terms(self, target: Target) -> Terms:
        """Refuse, on public grounds, a loss that cannot be bounded over boxes."""
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
            one = forecast_tree(slopes, box.bits, least=least, convex=convex)
            if self._is_patient(target):
                one = forecast_patient(one)
            return widened(times(one, len(bounds.cover.low)), spread)
        exact = target.problem.exact_lower_bound and target.measure is None
        own = forecast_own_bounds(box.bits, box.dimension, exact=exact, least=least)
        return widened(times(own, len(bounds.cover.low)), spread)
