"""The perturbed optimum as a mechanism. Theory: docs/theory/perturbed_optimum.md."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    SECRET_KEY,
    Check,
    check_assumed,
    check_count,
    check_described,
    check_equal,
)
from expmech.certificates.forecast import forecast_constant
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.postprocessing import rebuild_postprocessing, within
from expmech.certificates.timing import CONSTANT, DATA_DEPENDENT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError, validate_nonnegative
from expmech.core.rounding import validate_epsilon
from expmech.mechanisms.optimum.calibration import (
    NOISES,
    OWNER,
    OptimumTerms,
    RegressionSettings,
    RowNorms,
    calibrate,
    default_share,
    determinant_cost,
    leverage,
    noise_cost,
    rows_moved,
)
from expmech.mechanisms.optimum.constant_time import (
    Schedule,
    dither_rate,
    draw_constant_time,
    make_schedule,
    require_schedule,
    serves,
)
from expmech.mechanisms.optimum.draw import ArrayTable, DrawCells, Lattice, Table
from expmech.mechanisms.optimum.risks import Custom, Logistic, Risk, rebuild_risk
from expmech.mechanisms.optimum.rows import RegressionRows

KIND = "Optimum"
ASSUMPTIONS = (
    "rows were clipped to [-1, 1], shortened to the public norms and snapped to 2^-20 one by one",
    "float64 is IEEE 754 with sums of products in any order; numpy's exp is within 16 units in the"
    " last place",
    SECRET_KEY,
)
DECLARED = "the derivative of the custom risk is monotone and has the declared bounds and error"
_NUMBERS = ("penalty", "intercept_penalty", "rate", "determinant", "dither")
_CONSTANTS = ("bound", "spread", "lipschitz", "rank")
_USED = 1 - Fraction(1, 1 << 40)  # the share of epsilon that roundings toward privacy leave


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
    Pure epsilon-DP: ``epsilon = 2 c r + ln(1 + a s2 / lambda)`` and its kin. The law is that of
    real numbers, then rounded. Time depends on the data; with ``timing="constant"`` the work is
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
        given = isinstance(features, Table)
        self._table = features if given else ArrayTable(features, targets, counts)
        self.dimension = self._table.dimension
        settings = settings or RegressionSettings()
        self.settings = dataclasses.replace(settings, **choices) if choices else settings
        self.settings.noise_norm(risk, self.dimension)  # raises where there is none
        if self.adjacency.count_is_public and self.settings.rows is not None:
            raise ParameterError(
                f"`rows` of {OWNER} must be left out under 'replace', where the number of rows is"
                " public."
            )
        self._timing = DATA_DEPENDENT

    @property
    def _public_count(self) -> int | None:
        return self._table.count if self.adjacency.count_is_public else None

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
        budget, settings = validate_epsilon(epsilon, owner=OWNER), self.settings
        if settings.share is None:
            count = self._public_count if self.adjacency.count_is_public else settings.rows
            share = default_share(self.risk, self.dimension, count, budget)
            settings = dataclasses.replace(settings, share=share)
        return calibrate(
            settings,
            risk=self.risk,
            dimension=self.dimension,
            epsilon=budget,
            adjacency=self.adjacency,
            dither=dither_rate(budget, self.dimension) if timing == CONSTANT else Fraction(0),
        )

    def schedule(self, terms: OptimumTerms) -> Schedule:
        """Return the amount of work where it is fixed beforehand; raise, on public grounds."""
        return require_schedule(terms, self._public_count)

    def _scheduled(self, budget: Fraction) -> tuple[OptimumTerms, Schedule | None]:
        terms = self.terms(epsilon=budget, timing=self._timing)
        return terms, self.schedule(terms) if self._timing == CONSTANT else None

    def public_terms(self, budget: Fraction) -> PublicTerms:
        terms, schedule = self._scheduled(budget)
        count = self._public_count or 0
        seconds = 3e-3 + self.risk.margins * count * (6e-7 + 4e-8 * self.dimension)
        if schedule is not None:
            seconds += schedule.passes * (5e-5 + count * (2e-8 + 2e-9 * self.dimension))
        custom = (DECLARED,) if isinstance(self.risk, Custom) else ()
        return PublicTerms(
            adjacency=self.adjacency,
            sensitivity=_row_bound(self.risk, self.adjacency),
            eta=float(terms.rate),
            domain={
                "kind": KIND,
                "classes": self.risk.margins,
                "columns": self.dimension,
                "bits": self.lattice.bits,
                "reach_bits": self.lattice.reach_bits,
                **self.adjacency.public(self._table.count),
            },
            parameters=terms.describe() | ({} if schedule is None else schedule.describe(terms)),
            assumptions=(*ASSUMPTIONS, *custom),
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
        if schedule is None:
            return self._table.prepare_draws(terms)
        rows = self.prepare_rows()
        return lambda lattice, coins: draw_constant_time(terms, schedule, rows, lattice, coins)

    def prepare_rows(self) -> RegressionRows:
        """Shorten and snap the rows: the confidential half, computed once per release."""
        return self._table.rows(self.risk, self.settings.norms(self.dimension))

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute the constants of the risk, the determinant's part of epsilon, the noise's."""
        domain, described = certificate.domain, certificate.sampler
        if domain["kind"] != KIND:
            other = f"{domain['kind']!r} is not what an optimum is released in"
            return [Check(claim="domain", holds=False, detail=other)]
        Lattice(bits=domain["bits"], reach_bits=domain["reach_bits"])  # raises unless it is a grid
        adjacency = Adjacency(certificate.adjacency)
        known = rebuild_risk(described["risk"])
        risk: Risk = _DeclaredRisk(described) if known is None else known
        timing = CONSTANT if "dither" in described else DATA_DEPENDENT
        named = described.get("sampler") == OWNER and certificate.timing == timing
        constants = [
            check_equal(name, float(described[name]), float(getattr(risk, name)))
            for name in _CONSTANTS
        ]
        bound = _row_bound(risk, adjacency)
        return [
            Check(claim="domain", holds=True, detail=KIND),
            Check(claim="timing", holds=named, detail=f"{certificate.timing!r} of {OWNER}"),
            check_equal("delta", float(certificate.delta), 0.0),
            check_equal("classes", domain["classes"], risk.margins),
            check_equal("columns", domain["columns"], described["columns"]),
            check_count(domain, adjacency),
            check_equal("unit", certificate.unit, None),
            check_equal("loss error", float(certificate.loss_error), 0.0),
            check_described("numbers", described, _with_numbers(described)),
            check_described("risk", described["risk"], risk.describe()),
            check_assumed(certificate, (*ASSUMPTIONS, *(() if known else (DECLARED,)))),
            check_equal("sensitivity", float(certificate.sensitivity), bound),
            check_equal("eta", certificate.eta, described["rate"]),
            *constants,
            *_verify_spent(certificate, risk, adjacency),
            *(_verify_work(certificate, risk, adjacency) if "dither" in described else []),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
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


def _row_bound(risk: Risk, adjacency: Adjacency) -> float:
    """Return how far one row moves an entry of the gradient."""
    return float(risk.bound) * rows_moved(adjacency)


def _with_numbers(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the terms with numbers where numbers belong: a text or a truth value is none."""
    names = [name for name in ("squared_norm", *_NUMBERS, *_CONSTANTS) if name in described]
    real = {name: float(described[name]) for name in names}
    whole = {name: int(described[name]) for name in ("rank", "columns", "steps")}
    norm = None if described["sum_norm"] is None else float(described["sum_norm"])
    return {**described, **real, **whole, "sum_norm": norm}


def _norms(described: Mapping[str, Any]) -> RowNorms:
    total = None if described["sum_norm"] is None else Fraction(described["sum_norm"])
    return RowNorms(squared=Fraction(described["squared_norm"]), total=total)


def _verify_spent(certificate: Certificate, risk: Risk, adjacency: Adjacency) -> list[Check]:
    """Add up what determinant and noise cost, from the penalties and the rate."""
    described = certificate.sampler
    penalty, first = Fraction(described["penalty"]), Fraction(described["intercept_penalty"])
    rate, steps = Fraction(described["rate"]), int(described["steps"])
    noise, dither = described["noise"], Fraction(described.get("dither", 0))
    positive = min(penalty, first, rate) > 0 and dither >= 0 and steps >= 1
    if not positive or noise not in NOISES:
        detail = "penalties, rate or steps that are not positive, or noise of no known norm"
        return [Check(claim="terms", holds=False, detail=detail)]
    norms = _norms(described)
    determinant = determinant_cost(risk, leverage(norms.squared, penalty, first))
    spent = rate * noise_cost(risk, adjacency, noise, steps, norms.total) + determinant
    spent += 2 * dither
    epsilon = Fraction(repr(certificate.epsilon))
    detail = f"{float(spent)!r} spent of {certificate.epsilon!r}"
    return [
        check_equal("determinant", described["determinant"], float(determinant)),
        Check(claim="epsilon", holds=epsilon * _USED <= spent <= epsilon, detail=detail),
    ]


def _verify_work(certificate: Certificate, risk: Risk, adjacency: Adjacency) -> list[Check]:
    """Recompute the amount of work from the number of rows, which is public, and the terms."""
    described, count = certificate.sampler, int(certificate.domain.get("count", -1))
    terms = OptimumTerms(
        risk=risk,
        dimension=int(described["columns"]),
        epsilon=Fraction(repr(certificate.epsilon)),
        adjacency=adjacency,
        norms=_norms(described),
        noise=described["noise"],
        steps=int(described["steps"]),
        **{name: Fraction(described[name]) for name in _NUMBERS},
    )
    fixed = count >= 0 and terms.dither > 0 and serves(risk)
    schedule = make_schedule(terms, count) if fixed else None
    expected = None if schedule is None else schedule.describe(terms)["work"]
    return [check_equal("work", described["work"], expected)]


class _DeclaredRisk(Logistic):
    """The constants that a caller declared for a risk of one margin: an assumption, unchecked."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.bound = Fraction(described["bound"])
        self.spread = self.bound
        self.lipschitz = Fraction(described["lipschitz"])
        self.trace = self.lipschitz
        self.error = validate_nonnegative(described["risk"]["error"], name="error", owner=OWNER)
        self.name = str(described["risk"]["name"])

    def describe(self) -> dict[str, Any]:
        constants = {"bound": float(self.bound), "lipschitz": float(self.lipschitz)}
        return {"name": self.name, "error": float(self.error), **constants}
