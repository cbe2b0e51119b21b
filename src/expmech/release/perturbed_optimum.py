"""The optimum of a perturbed objective, drawn exactly. Theory: docs/theory/perturbed_optimum.md."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.adjacency import validate_adjacency
from expmech.coins import Coins
from expmech.cost import forecast_constant
from expmech.errors import (
    ParameterError,
    UnsupportedError,
    validate_choice,
    validate_integer,
    validate_scale,
)
from expmech.optimum.calibration import (
    CLASS_NORM,
    NOISES,
    SUM_NORM,
    Terms,
    calibrate,
    validate_norm,
)
from expmech.optimum.draw import Lattice
from expmech.optimum.rows import Rows
from expmech.optimum.rule import default_noise, default_share, default_squared_norm
from expmech.optimum.steady import Schedule, dither_rate, draw_steady, require_schedule
from expmech.optimum.tables import ArrayTable, DrawCells, Table
from expmech.release.certificate import Certificate
from expmech.release.perturbed_optimum_checks import (
    ASSUMPTIONS,
    DECLARED,
    KIND,
    OWNER,
    describe_terms,
    row_bound,
)
from expmech.release.prepared import Asked, Draw, Mechanism, Prepared, Told
from expmech.risks import Custom, Risk
from expmech.samplers import TIMINGS, Draws, Option, Plan, Wanted, plan_alone
from expmech.samplers.base import CONSTANT, DATA_DEPENDENT
from expmech.target import validate_epsilon


class PerturbedOptimum(Mechanism):
    """Release the y, rounded, at which ``sum_i x_i phi'(x_i.y) + Lambda y + b = 0``, b noise.

    Parameters
    ----------
    risk
        A risk of :mod:`expmech.risks`.
    features, targets
        Confidential rows, shape (n, d), entries in [-1, 1] (they are clipped; missing ones are 0),
        the constant first if there is one; a sparse matrix of scipy is accepted. Targets as the
        risk has them. Each row is shortened and snapped by itself: see
        :func:`expmech.optimum.prepare_rows`. Or a :class:`expmech.optimum.Table` in the place of
        features, targets and counts: rows that are elsewhere.
    counts
        How many equal rows each of them stands for; None: one.
    penalty, intercept_penalty
        Ridge penalties of the columns and of the first one; None takes the public rule, and the
        same penalty for the first column.
    share
        The share of epsilon that the penalty is chosen to spend; None takes the public rule.
    squared_norm, sum_norm
        Public bounds on ``|x|^2`` and ``|x|_1``; rows are shortened to them. None: the rule; no
        bound.
    noise
        "max", "sum", "class" or "auto", by the public rule.
    lattice
        The grid of released parameters; its outermost cells are infinite.
    adjacency, rows
        "replace" or "add-remove". Under the latter the number of rows is confidential, and rules
        that need one take the public guess ``rows``.

    Notes
    -----
    Pure epsilon-DP: ``epsilon = 2 c r + ln(1 + a s2 / lambda)`` and its kin. The law is that of
    real numbers, then rounded. Time depends on the data; with ``timing="constant"`` the work is
    fixed beforehand, for a small part of epsilon (docs/theory/perturbed_optimum_steady.md).

    Examples
    --------
    >>> import expmech.risks as risks
    >>> rows = np.array([[1.0, -0.5], [1.0, 0.25], [1.0, 0.5], [1.0, -0.75]])
    >>> mechanism = PerturbedOptimum(risks.Logistic(), rows, [0, 1, 1, 0])
    >>> mechanism.release(epsilon=1.0).value.shape
    (2,)
    """

    def __init__(
        self,
        risk: Risk,
        features: Any,
        targets: Any = None,
        *,
        counts: ArrayLike | None = None,
        penalty: float | Fraction | None = None,
        intercept_penalty: float | Fraction | None = None,
        share: float | Fraction | None = None,
        squared_norm: float | Fraction | None = None,
        sum_norm: float | Fraction | None = None,
        noise: str = "auto",
        lattice: Lattice | None = None,
        adjacency: str = "replace",
        rows: int | None = None,
    ) -> None:
        self.risk = risk
        self.adjacency = validate_adjacency(adjacency, owner=OWNER)
        self.lattice = Lattice() if lattice is None else lattice
        given = isinstance(features, Table)
        self._table = features if given else ArrayTable(features, targets, counts)
        self.dimension = self._table.dimension
        found = validate_norm(squared_norm, "squared_norm")
        self.squared_norm = default_squared_norm(self.dimension) if found is None else found
        self.sum_norm = validate_norm(sum_norm, "sum_norm")
        self.penalty = _optional(penalty, "penalty")
        self.intercept_penalty = _optional(intercept_penalty, "intercept_penalty")
        self.share = _optional(share, "share")
        self.noise = self._validate_noise(noise)
        self.public_rows = self._validate_rows(rows)

    def _validate_noise(self, noise: str) -> str:
        """Return the norm of the noise, by a rule of public numbers where none is named."""
        validate_choice(noise, name="noise", owner=OWNER, choices=("auto", *NOISES))
        if noise == "auto":
            return default_noise(self.risk, self.dimension, self.sum_norm)
        if noise == CLASS_NORM and self.risk.margins == 1:
            raise ParameterError(f"`noise` of {OWNER} can be 'class' for several classes only.")
        if noise == SUM_NORM and self.sum_norm is None:
            raise ParameterError(f"`sum_norm` of {OWNER} must be given for noise='sum'.")
        return noise

    def _validate_rows(self, rows: int | None) -> int | None:
        """Return the public number of rows, or None; under replace it is the true one."""
        if self.adjacency.count_is_public:
            if rows is not None:
                raise ParameterError(
                    f"`rows` of {OWNER} must be left out under 'replace', where the number of"
                    " rows is public."
                )
            return self._table.count
        if rows is None:
            return None
        return validate_integer(rows, name="rows", owner=OWNER, low=1, high=1 << 40)

    def terms(self, *, epsilon: float | Fraction, timing: str = "unprotected") -> Terms:
        """Return the public half: norms, penalties and rates at this epsilon."""
        budget = validate_epsilon(epsilon, owner=OWNER)
        share = self.share
        if share is None:
            share = default_share(self.risk, self.dimension, self.public_rows, budget)
        return calibrate(
            risk=self.risk,
            dimension=self.dimension,
            epsilon=budget,
            adjacency=self.adjacency,
            squared_norm=self.squared_norm,
            sum_norm=self.sum_norm,
            noise=self.noise,
            share=share,
            penalty=self.penalty,
            intercept_penalty=self.intercept_penalty,
            dither=dither_rate(budget, self.dimension) if timing == CONSTANT else Fraction(0),
        )

    def schedule(self, terms: Terms) -> Schedule:
        """Return the amount of work where it is fixed beforehand; raise, on public grounds."""
        public = self.adjacency.count_is_public
        return require_schedule(terms, self._table.count if public else None)

    def settle(self, asked: Asked) -> Prepared:
        """Settle everything but noise and solution; no row is looked at before the first draw."""
        validate_choice(asked.timing, name="timing", owner=OWNER, choices=TIMINGS)
        if asked.sampler != "auto":
            raise ParameterError(
                f"`sampler` of {OWNER} must be 'auto': noise on a gradient needs none; got"
                f" {asked.sampler!r}."
            )
        terms = self.terms(epsilon=asked.epsilon, timing=asked.timing)
        schedule = self.schedule(terms) if asked.timing == CONSTANT else None

        def fit() -> Draw:
            drawn = self._table.opened(terms) if schedule is None else self._steady(terms, schedule)
            return lambda coins, size: self._draws(drawn, coins, size)

        certificate = self._certify(asked.epsilon, terms, schedule, asked.told)
        return Prepared(
            certificate=certificate,
            sampler=None,
            finish=asked.told.finish,
            fit=fit,
            forecast_seconds=lambda: self.seconds(schedule),
        )

    def _steady(self, terms: Terms, schedule: Schedule) -> DrawCells:
        rows = self.prepare_rows()
        return lambda lattice, coins: draw_steady(terms, schedule, rows, lattice, coins)

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.float64]:
        """Draw ``size`` independent optima from a seeded stream: for studies, never a release.

        The shape is (size, d), or (size, classes, d).
        """
        size = validate_integer(size, name="size", owner=f"{OWNER}.sample", low=1, high=1 << 40)
        return np.asarray(self.prepare(epsilon=epsilon).sample(size, seed).values)

    def planned(self, epsilon: float | Fraction, wanted: Wanted) -> Plan:
        """Return what a release does: noise on the gradient, a solution, and nothing rejected."""
        validate_choice(wanted.timing, name="timing", owner=OWNER, choices=TIMINGS)
        terms = self.terms(epsilon=epsilon, timing=wanted.timing)
        work, refusal = None, None
        if wanted.timing == CONSTANT:
            try:
                work = self.schedule(terms)
            except UnsupportedError as error:
                refusal = str(error)
        only = Option(
            name=OWNER,
            sampler=None,
            delta=0.0,
            timing=CONSTANT if wanted.timing == CONSTANT else DATA_DEPENDENT,
            forecast=None if refusal else forecast_constant(0 if work is None else work.passes),
            reason=refusal,
            seconds=self.seconds(work),
        )
        return plan_alone(
            only,
            epsilon=epsilon,
            note=str(terms) if work is None else f"{terms}. {work}",
            refusal=refusal,
            budget_seconds=wanted.budget_seconds,
        )

    def seconds(self, work: Schedule | None = None) -> float:
        """Return about how long a draw takes, by a public table, of rows that are public."""
        rows = self._table.count if self.adjacency.count_is_public else 0
        usual = 3e-3 + self.risk.margins * rows * (6e-7 + 4e-8 * self.dimension)
        if work is None:
            return usual
        return usual + work.passes * (5e-5 + rows * (2e-8 + 2e-9 * self.dimension))

    def prepare_rows(self) -> Rows:
        """Shorten and snap the rows: the confidential half, made once a release."""
        return self._table.rows(self.risk, self.squared_norm, self.sum_norm)

    def _draws(self, drawn: DrawCells, coins: Coins, size: int) -> Draws:
        cells = [drawn(self.lattice, coins) for _ in range(size)]
        values = np.stack(cells) * 2.0**-self.lattice.bits
        return Draws(
            values=values[:, 0, :] if self.risk.margins == 1 else values,
            proposals=np.zeros(size, dtype=np.int64),
        )

    def _certify(
        self, epsilon: float | Fraction, terms: Terms, schedule: Schedule | None, told: Told
    ) -> Certificate:
        domain: dict[str, Any] = {
            "kind": KIND,
            "classes": self.risk.margins,
            "columns": self.dimension,
            "bits": self.lattice.bits,
            "reach_bits": self.lattice.reach_bits,
            **self.adjacency.public(self._table.count),
        }
        custom = (DECLARED,) if isinstance(self.risk, Custom) else ()
        return told.certify(
            OWNER,
            epsilon,
            adjacency=str(self.adjacency),
            sensitivity=row_bound(self.risk, self.adjacency),
            eta=float(terms.rate),
            domain=domain,
            sampler=describe_terms(terms, schedule),
            timing=DATA_DEPENDENT if schedule is None else CONSTANT,
            assumptions=(*ASSUMPTIONS, *custom),
        )


def _optional(value: float | Fraction | None, name: str) -> Fraction | None:
    return None if value is None else validate_scale(value, name=name, owner=OWNER)
