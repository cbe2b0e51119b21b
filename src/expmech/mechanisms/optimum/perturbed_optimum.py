"""The perturbed optimum as a mechanism. Theory: docs/theory/perturbed_optimum.md."""

from __future__ import annotations

import copy
import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import Check
from expmech.certificates.forecast import forecast_constant
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.postprocessing import rebuild_postprocessing, within
from expmech.certificates.timing import CONSTANT, DATA_DEPENDENT
from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError
from expmech.core.rounding import validate_epsilon
from expmech.mechanisms.optimum.calibration import OptimumTerms, RegressionSettings, calibrate
from expmech.mechanisms.optimum.constant_time import (
    Schedule,
    at_norm,
    dither_rate,
    draw_constant_time,
    require_schedule,
)
from expmech.mechanisms.optimum.cost import OWNER
from expmech.mechanisms.optimum.draw import ArrayTable, DrawCells, Lattice, Table
from expmech.mechanisms.optimum.risks import Custom, Risk
from expmech.mechanisms.optimum.rows import RegressionRows
from expmech.mechanisms.optimum.verification import ASSUMPTIONS, DECLARED, row_bound, verify_terms

KIND = "Optimum"


class PerturbedOptimum(Mechanism):
    """Release the y, rounded, at which ``sum_i x_i phi'(x_i.y) + Lambda y + b = 0``, b noise.

    Parameters
    ----------
    risk : Risk
        A risk of :mod:`expmech.mechanisms.optimum.risks`.
    features : array-like or sparse matrix of shape (n, d), or Table
        Confidential rows, entries in [-1, 1] (they are clipped; missing ones are 0), the constant
        first if there is one. Each row is shortened and snapped by itself: see
        :func:`expmech.mechanisms.optimum.prepare_rows`. Or a
        :class:`expmech.mechanisms.optimum.Table` in the place of features, targets and counts:
        rows that stay in an engine.
    targets : array-like of shape (n,)
        Confidential targets, as the risk has them.
    counts : array-like of shape (n,), optional
        How many equal rows each row stands for; one each by default.
    settings : RegressionSettings, optional
        Penalties, norms of rows, kind of noise; by default all by the public rules.
    lattice : Lattice, optional
        The grid of released parameters; its outermost cells are infinite.
    adjacency : {"replace", "add-remove"}, default "replace"
        Under "add-remove" the number of rows is confidential.
    **choices
        Fields of ``settings`` by their names, such as ``penalty=3.0``.

    Notes
    -----
    Pure epsilon-DP: ``epsilon = c r + max_t [r |phi'(t)| + ln(1 + q phi''(t))]`` for noise of rate
    r in the max norm, ``q = s2 / lambda``, and its kin. The law is that of real numbers, then
    rounded. Time depends on the data; with ``timing="constant"`` the work is
    fixed beforehand, for a small part of epsilon (docs/theory/perturbed_optimum_constant_time.md).

    Examples
    --------
    >>> import expmech.mechanisms.optimum.risks as risks
    >>> rows = np.array([[1.0, -0.5], [1.0, 0.25], [1.0, 0.5], [1.0, -0.75]])
    >>> mechanism = PerturbedOptimum(risks.Logistic(), rows, [0, 1, 1, 0], penalty=3.0)
    >>> mechanism.release(epsilon=1.0).value.shape
    (2,)
    """

    name = OWNER

    def __init__(
        self,
        risk: Risk,
        features: Any,
        targets: Any = None,
        *,
        counts: ArrayLike | None = None,
        settings: RegressionSettings | None = None,
        lattice: Lattice | None = None,
        adjacency: str = "replace",
        **choices: Any,
    ) -> None:
        self.risk = risk
        self.adjacency = validate_adjacency(adjacency, owner=OWNER)
        self.lattice = Lattice() if lattice is None else lattice
        is_table = isinstance(features, Table)
        self._table = features if is_table else ArrayTable(features, targets, counts)
        self.dimension = self._table.dimension
        settings = settings or RegressionSettings()
        self.settings = dataclasses.replace(settings, **choices) if choices else settings
        self.settings.noise_norm(risk, self.dimension, Fraction(1))  # raises where there is none
        if self.adjacency.count_is_public and self.settings.rows is not None:
            raise ParameterError(
                f"`rows` of {OWNER} must be left out under 'replace', where the number of rows is"
                " public."
            )
        self._timing = DATA_DEPENDENT
        self._decided: dict[tuple[Fraction, str], tuple[OptimumTerms, Schedule | None]] = {}

    @property
    def _public_count(self) -> int | None:
        # Under add-remove the number of rows is confidential: whatever is public must not see it.
        return self._table.count if self.adjacency.count_is_public else None

    def with_data(self, table: Table) -> PerturbedOptimum:
        """Return the optimum of other rows: of as many columns and, where it is public, as many."""
        made = copy.copy(self)
        made._table = table
        if table.dimension != self.dimension or made._public_count != self._public_count:
            raise ParameterError(
                f"`features` of {OWNER} must have as many columns and, under 'replace', as many"
                " rows as before."
            )
        return made

    def serving(self, timing: str) -> PerturbedOptimum:
        """Return the mechanism, with an amount of work that is fixed beforehand for "constant"."""
        if timing != CONSTANT:
            return self
        constant = copy.copy(self)
        constant._timing = CONSTANT
        return constant

    def terms(self, *, epsilon: float | Fraction, timing: str = "unprotected") -> OptimumTerms:
        """Return norms, penalties and rates at this epsilon; all of it is public.

        Parameters
        ----------
        epsilon : float or Fraction
            The budget.
        timing : {"auto", "constant", "unprotected"}, default "unprotected"
            "constant" reserves a part of epsilon for an amount of work that is fixed beforehand.

        Returns
        -------
        OptimumTerms
        """
        budget = validate_epsilon(epsilon, owner=OWNER)
        return calibrate(
            self.settings,
            risk=self.risk,
            dimension=self.dimension,
            epsilon=budget,
            adjacency=self.adjacency,
            rows=self._public_count if self.adjacency.count_is_public else self.settings.rows,
            dither=dither_rate(budget, self.dimension) if timing == CONSTANT else Fraction(0),
        )

    def schedule(self, terms: OptimumTerms) -> Schedule:
        """Return the amount of work where it is fixed beforehand; raise, on public grounds."""
        return require_schedule(terms, self._public_count)

    def _scheduled(self, budget: Fraction) -> tuple[OptimumTerms, Schedule | None]:
        """Return what is decided in public, once; mechanisms of other data share it."""
        key = budget, self._timing
        if key not in self._decided:
            terms = self.terms(epsilon=budget, timing=self._timing)
            schedule = self.schedule(terms) if self._timing == CONSTANT else None
            self._decided[key] = terms, schedule
        return self._decided[key]

    def public_terms(self, budget: Fraction) -> PublicTerms:
        terms, schedule = self._scheduled(budget)
        count = self._public_count or 0
        seconds = 3e-3 + self.risk.margins * count * (6e-7 + 4e-8 * self.dimension)
        if schedule is not None:
            seconds += schedule.passes * (5e-5 + count * (2e-8 + 2e-9 * self.dimension))
        return PublicTerms(
            adjacency=self.adjacency,
            sensitivity=row_bound(self.risk, self.adjacency),
            eta=float(terms.row_nats),
            domain={
                "kind": KIND,
                "classes": self.risk.margins,
                "columns": self.dimension,
                "bits": self.lattice.bits,
                "reach_bits": self.lattice.reach_bits,
                **self.adjacency.public(self._table.count),
            },
            parameters=terms.describe() | ({} if schedule is None else schedule.describe(terms)),
            assumptions=(*ASSUMPTIONS, *((DECLARED,) if isinstance(self.risk, Custom) else ())),
            timing=self._timing,
            forecast=forecast_constant(0 if schedule is None else schedule.passes),
            seconds=seconds,
            note=str(terms) if schedule is None else f"{terms}. {schedule}",
        )

    def fit(self, budget: Fraction) -> Draw:
        terms, schedule = self._scheduled(budget)
        draw_cells = self._draw_cells(terms, schedule)

        def draw(coins: Coins, size: int) -> Draws:
            cells = [draw_cells(self.lattice, coins) for _ in range(size)]
            values = np.stack(cells) * 2.0**-self.lattice.bits
            return Draws(
                values=values[:, 0, :] if self.risk.margins == 1 else values,
                proposals=np.zeros(size, dtype=np.int64),
            )

        return draw

    def _draw_cells(self, terms: OptimumTerms, schedule: Schedule | None) -> DrawCells:
        search = terms.search
        if search is None:
            return self._draw_at(terms, schedule)
        within = self._table.count_within(search.grid)
        prepared: dict[Fraction, DrawCells] = {}

        def draw(lattice: Lattice, coins: Coins) -> Integers:
            # Drawn first, at its own share of epsilon; what follows may use it, as composition is
            # adaptive (docs/theory/perturbed_optimum.md, section 9).
            squared = search.draw(within, coins)
            if squared not in prepared:
                drawn = terms.at_norm(squared)
                work = schedule and at_norm(schedule, drawn, self._table.count)
                prepared.clear()  # no second copy of the rows is kept
                prepared[squared] = self._draw_at(drawn, work)
            return prepared[squared](lattice, coins)

        return draw

    def prepare_rows(self, terms: OptimumTerms) -> RegressionRows:
        """Shorten and snap the rows: the confidential half, computed once per release."""
        return self._table.rows(self.risk, terms.norms)

    def _draw_at(self, terms: OptimumTerms, schedule: Schedule | None) -> DrawCells:
        if schedule is None:
            return self._table.prepare_draws(terms)
        rows = self.prepare_rows(terms)
        return lambda lattice, coins: draw_constant_time(terms, schedule, rows, lattice, coins)

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute the constants of the risk, the determinant's part of epsilon, the noise's."""
        domain = certificate.domain
        if domain["kind"] != KIND:
            other = f"{domain['kind']!r} is not what an optimum is released in"
            return [Check(claim="domain", holds=False, detail=other)]
        Lattice(bits=domain["bits"], reach_bits=domain["reach_bits"])  # raises unless it is a grid
        return [Check(claim="domain", holds=True, detail=KIND), *verify_terms(certificate)]

    @classmethod
    def admits(cls, certificate: Certificate, point: Floats | None) -> bool:
        """Tell whether a point can be a draw: the right shape, not too large, on the lattice."""
        if point is None:
            return False
        domain = certificate.domain
        classes, columns = int(domain["classes"]), int(domain["columns"])
        rows = np.atleast_2d(point)
        most = np.full((classes, columns), 2.0 ** domain["reach_bits"])
        if not within(rows, -most, most):
            return False
        scale = 2.0 ** domain["bits"]
        off = np.abs(rows * scale - np.rint(rows * scale))
        lost = rebuild_postprocessing(certificate.postprocessing).lost(rows)
        return bool((off <= lost * scale).all())
