"""Sums over coordinates without declared growth: one box tree a coordinate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.coins import Coins
from expmech.domains import Grid, Indices
from expmech.errors import LossError, UnsupportedError
from expmech.samplers.box_tree import BoxTree, BoxTreeChain, BoxTreeState
from expmech.samplers.chain import unstarted
from expmech.target import Energies, Target
from expmech.target.calibration import ENERGY_CAP

Terms = Callable[[NDArray[np.int64], NDArray[np.float64]], Any]

_BAD_TERMS = "`terms` of a loss must return one finite float64 number a value; it did not."


def need_terms(target: Target) -> tuple[Grid, Terms]:
    """Return the box and the terms of a separable loss; raise where there are none."""
    if target.box is None or target.problem.terms is None:
        raise UnsupportedError("Separable needs a Box and a loss that declares its `terms`.")
    return target.box, target.problem.terms


def term_energies(
    target: Target, columns: NDArray[np.int64], indices: NDArray[np.int64]
) -> Energies:
    """Return ``E_j(i) = round(eta L_j 2^(40-k))``, saturating at ``2^60 / d``.

    It is for the coordinates ``columns`` at ``indices``.
    """
    form = target.integer
    if form is not None:
        distances = np.abs(form.count * indices - form.sums[columns])
        return np.asarray(form.slopes[columns] * distances, dtype=np.int64)
    box, terms = need_terms(target)
    values = (indices + 0.5) * box.steps[columns] + box.lower[columns]
    losses = np.asarray(terms(columns, values))
    if losses.dtype != np.float64 or losses.shape != values.shape or not np.isfinite(losses).all():
        raise LossError(_BAD_TERMS)
    cap, scaled = ENERGY_CAP // box.dimension, losses * target.eta * target.units_per_nat
    energies = np.clip(np.rint(scaled), -cap, cap).astype(np.int64)
    if target.measure is not None:
        energies += target.measure.term_energy(columns, values)
    return energies


@dataclass(frozen=True, eq=False)
class Term:
    """One coordinate's share of a loss."""

    terms: Terms
    column: int

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the term at points of one coordinate."""
        return np.asarray(self.terms(np.full(len(points), self.column), points[:, 0]))


@dataclass(frozen=True, eq=False)
class TermBound:
    """The loss's own bound on a term, at most ``most``, where the term's energy saturates.

    So it bounds the saturated energy too.
    """

    bound: Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], Any]
    column: int
    most: float

    def __call__(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return bounds over intervals of one coordinate."""
        bounds = self.bound(np.full(len(lower), self.column), lower[:, 0], upper[:, 0])
        return np.asarray(np.minimum(bounds, self.most))


@dataclass(frozen=True, kw_only=True)
class TermTarget(Target):
    """The energies ``E_j`` of one coordinate."""

    whole: Target
    column: int

    def energy(self, indices: Indices) -> Energies:
        """Return the energies of the coordinate's term."""
        return term_energies(self.whole, np.full(len(indices), self.column), indices[:, 0])

    @cached_property
    def minimum_energy(self) -> int:
        """Return where the energy of a term saturates.

        Nothing else bounds a single term from below.
        """
        return -(ENERGY_CAP // self.whole.domain.dimension)


@dataclass(frozen=True)
class SeparableTreeState(BoxTreeState):
    """The coordinates drawn so far of each copy, the one it is at, and the tree of that one."""

    column: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeparableTreeChain:
    """Draw one coordinate after the other, each from a box tree of its own."""

    target: Target
    chains: tuple[BoxTreeChain, ...]

    def start(self, coins: Coins, size: int) -> SeparableTreeState:
        """Return copies that have drawn nothing."""
        return SeparableTreeState(
            **vars(unstarted(self.target.domain, size)),
            column=np.zeros(size, dtype=np.int64),
            tree=np.full(size, self.chains[0].root, dtype=np.object_),
        )

    def step(self, state: SeparableTreeState, coins: Coins) -> SeparableTreeState:
        """Make one step of the tree of the first coordinate that some copy lacks.

        The step is for the copies that lack it.
        """
        j = int(state.column.min())
        rows = np.flatnonzero(state.column == j)
        before = BoxTreeState(
            state.indices[rows, j : j + 1],
            state.proposals[rows],
            state.done[rows],
            tree=state.tree[rows],
        )
        after = self.chains[j].step(before, coins)
        drawn = rows[after.done]
        indices, column, proposals, tree = (
            state.indices.copy(),
            state.column.copy(),
            state.proposals.copy(),
            state.tree.copy(),
        )
        indices[drawn, j] = after.indices[after.done, 0]
        column[drawn] += 1
        proposals[rows] = after.proposals
        tree[rows] = after.tree
        tree[drawn] = self.chains[min(j + 1, len(self.chains) - 1)].root
        done = np.asarray(column == len(self.chains))
        return SeparableTreeState(indices, proposals, done, tree=tree, column=column)

    def values(self, state: SeparableTreeState) -> NDArray[Any]:
        """Return the accepted points."""
        return self.target.domain.values(state.indices)


def with_base(target: Target) -> tuple[NDArray[np.float64] | None, float]:
    """Return Lipschitz constants of the loss with its base measure, and what the base errs by.

    In units of the loss; no constants where either has none.
    """
    lipschitz, measure = target.problem.lipschitz, target.measure
    if measure is None or lipschitz is None:
        return lipschitz, 0.0
    slopes = measure.base.slopes(len(lipschitz))
    if slopes is None:
        return None, 0.0
    up = (1.0 + 2.0**-40) / target.eta
    return lipschitz + slopes * up, (measure.error + 2.0 / target.units_per_nat) * up


def make_tree_chain(target: Target) -> SeparableTreeChain:
    """Return a chain of d one-dimensional box trees: terms can be bounded over intervals."""
    (box, terms), problem = need_terms(target), target.problem
    most = ENERGY_CAP // box.dimension / target.units_per_nat / target.eta
    own = problem.terms_lower_bound
    slopes, base_error = with_base(target)
    chains = []
    for j in range(box.dimension):
        alone = dataclasses.replace(
            problem,
            loss=Term(terms, j),
            domain=box.restrict((j,)),
            lipschitz=None if slopes is None else slopes[j : j + 1],
            base=None,  # its terms are in the energies of the coordinate
            lower_bound=None if own is None else TermBound(own, j, most),
            gradient=None,
        )
        one = TermTarget(
            problem=alone,
            eta=target.eta,
            loss_error=target.loss_error + base_error,
            integer=None,
            units_per_nat=target.units_per_nat,
            whole=target,
            column=j,
        )
        chains.append(BoxTree().prepare(one))
    return SeparableTreeChain(target, tuple(chains))
