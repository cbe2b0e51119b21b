"""Losses that are sums over coordinates: d one-dimensional exact draws."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from expmech.certificates.forecast import SPARE, Forecast, power, quantile_of_sum, widened
from expmech.core.arrays import Flags, Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import EnvelopeViolatedError, LossError, UnsupportedError
from expmech.domains import Grid, Indices
from expmech.exponential.envelopes.laplace import laplace_slopes, log_laplace_mass
from expmech.exponential.samplers.base import Sampler, SamplerTerms
from expmech.exponential.samplers.box_tree import (
    LOT,
    BoxTree,
    BoxTreeChain,
    BoxTreeState,
    forecast_tree,
)
from expmech.exponential.samplers.chain import PointChain, PointState, unstarted
from expmech.exponential.samplers.rejection import VIOLATION
from expmech.exponential.target import ENERGY_CAP, ENERGY_ROUNDING, Energies, Target
from expmech.losses.base import Growth

TermFunction = Callable[[Integers, Floats], Any]

_BAD_TERMS = "`terms` of a loss must return one finite float64 number per value; it did not."


def need_terms(target: Target) -> tuple[Grid, TermFunction]:
    """Return the box and the terms of a separable loss; raise where there are none."""
    if target.box is None or target.problem.terms is None:
        raise UnsupportedError("Separable needs a Box and a loss that declares its `terms`.")
    return target.box, target.problem.terms


def term_energies(target: Target, columns: Integers, indices: Integers) -> Energies:
    """Return ``E_j(i) = round(eta L_j 2^(40-k))`` of coordinates ``columns`` at ``indices``.

    Each saturates at ``2^60 / d``.
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
    # Terms are cut one by one, so that their sum stays within the cap of energies.
    cap, scaled = ENERGY_CAP // box.dimension, losses * target.eta * target.units_per_nat
    energies = np.clip(np.rint(scaled), -cap, cap).astype(np.int64)
    if target.measure is not None:
        energies += target.measure.term_energy(columns, values)
    return energies


@dataclass(frozen=True, eq=False)
class Term:
    """One coordinate's share of a loss."""

    terms: TermFunction
    column: int

    def __call__(self, points: Floats) -> Floats:
        return np.asarray(self.terms(np.full(len(points), self.column), points[:, 0]))


@dataclass(frozen=True, eq=False)
class TermBound:
    """The loss's own bound on a term, cut at ``most``, where the term's energy saturates."""

    bound: Callable[[Integers, Floats, Floats], Any]
    column: int
    most: float

    def __call__(self, lower: Floats, upper: Floats) -> Floats:
        bounds = self.bound(np.full(len(lower), self.column), lower[:, 0], upper[:, 0])
        return np.asarray(np.minimum(bounds, self.most))


@dataclass(frozen=True, kw_only=True)
class TermTarget(Target):
    """The energies ``E_j`` of one coordinate."""

    whole: Target
    column: int

    def energy(self, indices: Indices) -> Energies:
        return term_energies(self.whole, np.full(len(indices), self.column), indices[:, 0])

    @cached_property
    def minimum_energy(self) -> int:
        # where the energy of a term saturates: nothing else bounds a single term from below
        return -(ENERGY_CAP // self.whole.domain.dimension)


@dataclass(frozen=True)
class SeparableTreeState(BoxTreeState):
    """The coordinates drawn so far of each copy, the one it is at, and the tree of that one."""

    column: Integers


@dataclass(frozen=True, eq=False)
class SeparableTreeChain(PointChain):
    """Draw one coordinate after the other, each from a box tree of its own."""

    target: Target
    chains: tuple[BoxTreeChain, ...]

    def start(self, coins: Coins, size: int) -> SeparableTreeState:
        return SeparableTreeState(
            **vars(unstarted(self.target.domain, size)),
            column=np.zeros(size, dtype=np.int64),
            tree=np.full(size, self.chains[0].root, dtype=np.object_),
        )

    def step(self, state: SeparableTreeState, coins: Coins) -> SeparableTreeState:
        """Make one step of the tree of the first missing coordinate, for copies that lack it."""
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


def with_base(target: Target) -> tuple[Floats | None, float]:
    """Return Lipschitz constants of the loss with its base measure, and the error of the base.

    Both are in units of the loss; the constants are None where loss or base has none.
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
        term = TermTarget(
            problem=alone,
            eta=target.eta,
            loss_error=target.loss_error + base_error,
            integer=None,
            units_per_nat=target.units_per_nat,
            whole=target,
            column=j,
        )
        chains.append(BoxTree().prepare(term))
    return SeparableTreeChain(target, tuple(chains))


MOST_COORDINATES = 1 << 14
# nats across the box where uniform and Laplace proposals are accepted about equally often, 0.43 at
# worst
FLAT = 2.0
_SAFE = 2.0**-45  # covers the float64 rounding of a product of five factors, on the safe side
SATURATION = (
    "each term of the loss lies within {:.6g} of 0, where its energy is cut off; beyond, terms that"
    " cancel in the sum would no longer cancel in the law, and epsilon would not hold"
)
_UNSUPPORTED = (
    "Separable needs a Box of at most 2^14 coordinates and a loss that declares its"
    " `terms(coordinates, values)` and its `growth`, its `lipschitz` constants or its"
    " `terms_lower_bound(coordinates, lower, upper)`; {}. Use Rejection or BoxTree."
)


@dataclass(frozen=True)
class SeparableState(PointState):
    """The coordinates accepted so far of each copy, and which are still open."""

    open: Flags


@dataclass(frozen=True, eq=False)
class SeparableChain(PointChain):
    """Propose every open coordinate from a discrete Laplace law about its center.

    The law is uniform where the slope is 0.
    Certified: ``E_j(i) + offset_j >= slope_j |i - center_j|`` on the box.
    """

    target: Target
    points_per_axis: int
    center: Integers
    slopes: Integers
    offsets: Energies

    def start(self, coins: Coins, size: int) -> SeparableState:
        at = unstarted(self.target.domain, size)
        return SeparableState(**vars(at), open=np.ones(at.indices.shape, dtype=np.bool_))

    def step(self, state: SeparableState, coins: Coins) -> SeparableState:
        copies, columns = np.nonzero(state.open)
        proposed = self._draw(coins, columns)
        inside = np.flatnonzero((proposed >= 0) & (proposed < self.points_per_axis))
        columns, copies, proposed = columns[inside], copies[inside], proposed[inside]
        drawn_with = self.slopes[columns] * np.abs(proposed - self.center[columns])
        deficit = self.energy(columns, proposed) + self.offsets[columns] - drawn_with
        if deficit.size and deficit.min() < 0:
            raise EnvelopeViolatedError
        accepted = np.flatnonzero(coins.bernoulli_exp(deficit, rate=self.target.unit))
        indices, open_ = state.indices.copy(), state.open.copy()
        indices[copies[accepted], columns[accepted]] = proposed[accepted]
        open_[copies[accepted], columns[accepted]] = False
        return SeparableState(
            indices=indices,
            open=open_,
            proposals=state.proposals + state.open.sum(axis=1),
            done=np.asarray(~open_.any(axis=1)),
        )

    def _draw(self, coins: Coins, columns: Integers) -> Integers:
        slopes = self.slopes[columns]
        proposed = self.center[columns]
        for slope in np.unique(self.slopes).tolist():
            same = np.flatnonzero(slopes == slope)
            if not same.size:
                continue
            if slope:
                proposed[same] += coins.discrete_laplace(slope * self.target.unit, len(same))
            else:
                proposed[same] = coins.integers_below(self.points_per_axis, len(same))
        return proposed

    def energy(self, columns: Integers, indices: Integers) -> Energies:
        return term_energies(self.target, columns, indices)


class Separable(Sampler):
    """Draw exactly from f(y) ~ exp(-sum_j E_j(y_j)), coordinate by coordinate.

    The loss must be a sum over the coordinates of a box.

    Notes
    -----
    Precondition: a Box; the loss offers ``terms(coordinates, values)``, the losses L_j of which it
    is the sum, and each term grows as its ``growth`` says: ``L_j >= rates_j |y_j - center_j| -
    slack``. Without growth, ``lipschitz`` constants or a ``terms_lower_bound(coordinates, lower,
    upper)`` over intervals will do: each coordinate is then drawn by a box tree. Law: coordinates
    are independent, each exactly ``exp(-E_j)``. Expected proposals: linear in d; with growth about
    one per coordinate, or two where the box binds. Theory page: docs/theory/separable.md.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([[0.2, 0.5], [0.3, 0.6], [0.4, 0.7]])
    >>> mech = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0, 0.0], [1.0, 1.0]))
    >>> mech.sample(epsilon=1.0, sampler=em.Separable(), seed=1).values.shape
    (1, 2)
    """

    automatic = True
    bounded_range = True
    assumptions = (VIOLATION,)
    serves_base = True

    @property
    def rounded_terms(self) -> int:
        """One more than the largest number of coordinates."""
        return 1 + MOST_COORDINATES

    def validate_base(self, target: Target) -> None:
        """Refuse a base measure that is not a sum over coordinates."""
        if target.measure is not None and target.measure.base.terms is None:
            raise UnsupportedError(
                "Separable needs a base measure that declares its `terms(coordinates, values)`;"
                " this one does not. Use Rejection or BoxTree."
            )

    def terms(self, target: Target) -> SamplerTerms:
        validate_separable(target)
        terms = super().terms(target)
        if not may_saturate(target):
            return terms
        cut = SATURATION.format(saturates_at(target))
        return dataclasses.replace(terms, assumptions=(*terms.assumptions, cut))

    def prepare(self, target: Target) -> SeparableChain | SeparableTreeChain:
        """Certify an offset, or bounds over intervals, for every coordinate."""
        domain, growth = validate_separable(target), target.problem.growth
        if growth is None:
            return make_tree_chain(target)
        form = target.integer
        if form is not None:
            center = (2 * form.sums + form.count) // (2 * form.count)
            offsets = form.slopes * np.abs(form.count * center - form.sums)
            slopes = form.slopes * form.count
        else:
            center, slopes, offsets = _certify(target, domain, growth)
        points = domain.points_per_axis
        # slopes so small that most Laplace proposals would miss the box become uniform; public
        slopes = np.where(slopes * float(points) < FLAT * target.units_per_nat, 0, slopes)
        return SeparableChain(target, points, center, slopes, offsets)

    def forecast(self, target: Target) -> Forecast:
        """Forecast 1 to about 2.4 proposals per coordinate with growth, else one tree for each."""
        domain, growth = validate_separable(target), target.problem.growth
        if growth is None:
            return _forecast_trees(target, domain)
        return widened(_forecast_grown(target, domain), target.base_spread)


def validate_separable(target: Target) -> Grid:
    """Return the domain; raise, on public grounds, where the sampler does not apply."""
    domain, problem = target.box, target.problem
    if domain is None or domain.dimension > MOST_COORDINATES:
        raise UnsupportedError(_UNSUPPORTED.format("this domain is another"))
    growth = problem.growth
    bounded = with_base(target)[0] is not None or problem.terms_lower_bound is not None
    if problem.terms is None or (growth is None and not bounded):
        raise UnsupportedError(_UNSUPPORTED.format("this loss does not"))
    if growth is not None and target.integer is None:
        rise = target.eta * target.units_per_nat * growth.rates * (1.0 - _SAFE)
        if ((rise * domain.steps < 1) & (rise * domain.widths > FLAT * target.units_per_nat)).any():
            flat = "this one's energy rises by less than one unit per lattice step"
            raise UnsupportedError(_UNSUPPORTED.format(flat))
    return domain


def may_saturate(target: Target) -> bool:
    """Tell, from public bounds, whether a term's energy may reach where it is cut off.

    Terms that lie between 0 and a bound of the whole loss stay below it, and whole slopes are not
    cut off at all.
    """
    if target.integer is not None:
        return False
    bound, proved = target.problem.bound, target.problem.proved
    return not proved or bound is None or bound > saturates_at(target) / 2


def saturates_at(target: Target) -> float:
    """Return the size of a term whose energy is cut off, rounded down for printing."""
    cap = ENERGY_CAP // target.domain.dimension
    return cap / target.units_per_nat / target.eta * (1.0 - 1e-5)


def _certify(target: Target, domain: Grid, growth: Growth) -> tuple[Indices, Indices, Energies]:
    """Return center, slopes and offsets with ``E_j(i) + offset_j >= slope_j |i - center_j|``."""
    scale = target.eta * target.units_per_nat
    rise = scale * growth.rates * (1.0 - _SAFE)
    most = ENERGY_CAP // (2 * domain.points_per_axis * domain.dimension)
    slopes = np.minimum(np.floor(rise * domain.steps), most).astype(np.int64)
    nearest = np.clip(growth.center, domain.lower, domain.upper)
    center = np.clip(domain.locate(nearest), 0, domain.points_per_axis - 1)
    away = np.abs(domain.points(center[None])[0] - nearest) + 4.0 * domain.value_errors
    slack = max(growth.slack, 0.0) + target.loss_error
    error = scale * slack * (1.0 + _SAFE) + ENERGY_ROUNDING
    # a center outside the box: what lies between it and the box is gained
    rounding = scale * 4.0 * domain.value_errors * growth.rates
    beyond = np.maximum(rise * np.abs(nearest - growth.center) - rounding, 0.0)
    lost = slopes / domain.steps * away * (1.0 + _SAFE)
    offsets = np.ceil(lost + error - beyond * (1.0 - _SAFE))
    # where a term saturates, at 2^60 / d, half of that is left for its slope and half for a
    # negative offset
    least = -(ENERGY_CAP // (2 * domain.dimension))
    return center, slopes, np.clip(offsets, least, ENERGY_CAP).astype(np.int64)


def _forecast_trees(target: Target, domain: Grid) -> Forecast:
    d = domain.dimension
    if target.slopes is None:  # the caller's own bounds: nothing public says how good they are
        least = (1.0 + LOT) * d
        return Forecast(expected=(least, None), nearly_all=(least, None), typical=2.0 * least)
    slopes, _ = with_base(target)
    steep = target.slopes if slopes is None else (target.eta * slopes * domain.widths).tolist()
    trees = [forecast_tree([slope], domain.bits, least=1.0 + LOT) for slope in steep]
    most = sum(tree.expected[1] or math.inf for tree in trees)
    return Forecast(
        expected=(sum(tree.expected[0] for tree in trees), most),
        nearly_all=(sum(tree.nearly_all[0] for tree in trees), 2.0 * most),
        typical=sum(tree.typical for tree in trees),
        calls=sum(tree.calls or 0.0 for tree in trees),
    )


def _forecast_grown(target: Target, domain: Grid) -> Forecast:
    d, points = domain.dimension, domain.points_per_axis
    growth, gap = target.problem.growth, target.gap
    if growth is None or not growth.public_slack or target.slopes is None or gap is None:
        return Forecast(expected=(float(d), None), nearly_all=(float(d), None), typical=2.0 * d)
    means = []
    for slope, steepest in zip(laplace_slopes(target), target.slopes, strict=True):
        least = float(points)
        if steepest > 0:
            least = -math.expm1(-steepest) / -math.expm1(-steepest / points)
        flat = slope * points < FLAT
        log_mass = math.log(points) if flat else log_laplace_mass(slope)
        error = slope / 2 + gap / d + target.energy_error
        means.append(max(1.0, SPARE * power(log_mass - math.log(least) + error)))
    return Forecast(
        expected=(float(d), sum(means)),
        nearly_all=(float(d), quantile_of_sum(means)),
        typical=(d + sum(means)) / 2,
    )
