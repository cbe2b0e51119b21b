"""Recompute the claims of a certificate of a perturbed optimum, by formulas of their own.

Costs are found by bisection in decimals, where :mod:`expmech.mechanisms.optimum.cost` has closed
forms in ball arithmetic. Certificates of the first law are checked by its own theorem:
docs/theory/perturbed_optimum.md, 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    SECRET_KEY,
    Check,
    check_assumed,
    check_count,
    check_described,
    check_equal,
)
from expmech.certificates.timing import CONSTANT, DATA_DEPENDENT
from expmech.core.adjacency import Adjacency
from expmech.core.errors import validate_nonnegative
from expmech.mechanisms.optimum.calibration import LAW, OptimumTerms, RowNorms
from expmech.mechanisms.optimum.constant_time import make_schedule, serves
from expmech.mechanisms.optimum.cost import CLASS_NORM, EUCLIDEAN, MAX_NORM, NOISES, OWNER, SUM_NORM
from expmech.mechanisms.optimum.risks import (
    CurvatureBound,
    Logistic,
    Risk,
    rebuild_risk,
    validate_curvature_bound,
)
from expmech.mechanisms.optimum.row_norm import NormSearch
from expmech.mechanisms.optimum.rows import MOST_COLUMNS

ASSUMPTIONS = (
    "rows were clipped to [-1, 1], shortened to the public norms and snapped to 2^-20 one by one",
    "float64 is IEEE 754 with sums of products in any order; numpy's exp is within 16 units in the"
    " last place",
    SECRET_KEY,
)
DECLARED = "the derivative of the custom risk is monotone and has the declared bounds and error"

FIRST_LAW = 1
_CONSTANTS = ("bound", "spread", "lipschitz", "rank")
_REAL = ("squared_norm", "penalty", "intercept_penalty", "rate", "leverage", "row_nats")
_SHARED = ("determinant", "dither", *_CONSTANTS)
_WHOLE = ("rank", "columns", "steps", "law")
_SLACK = Fraction(1, 1 << 40)  # the part of a number that roundings toward privacy may take
_DIGITS = 60
_HALVINGS = 160


def verify_terms(certificate: Certificate) -> list[Check]:
    """Return one check per claim about the risk, the noise, the penalty and the work."""
    domain, described = certificate.domain, certificate.sampler
    adjacency = Adjacency(certificate.adjacency)
    known = rebuild_risk(described["risk"])
    risk: Risk = _DeclaredRisk(described) if known is None else known
    timing = CONSTANT if "dither" in described else DATA_DEPENDENT
    named = described.get("sampler") == OWNER and certificate.timing == timing
    law = described.get("law", FIRST_LAW)
    eta = "rate" if law == FIRST_LAW else "row_nats"
    spent = {FIRST_LAW: _verify_first_law, LAW: _verify_spent}
    return [
        Check(claim="timing", holds=named, detail=f"{certificate.timing!r} of {OWNER}"),
        Check(claim="law", holds=law in spent, detail=f"version {law!r}"),
        check_equal("delta", float(certificate.delta), 0.0),
        check_equal("classes", domain["classes"], risk.margins),
        check_equal("columns", domain["columns"], described["columns"]),
        check_count(domain, adjacency),
        check_equal("unit", certificate.unit, None),
        check_equal("loss error", float(certificate.loss_error), 0.0),
        check_described("numbers", described, _with_numbers(described)),
        check_described("risk", described["risk"], risk.describe()),
        check_assumed(certificate, (*ASSUMPTIONS, *(() if known else (DECLARED,)))),
        check_equal("sensitivity", certificate.sensitivity, row_bound(risk, adjacency)),
        check_equal("eta", certificate.eta, described[eta]),
        *(
            check_equal(name, float(described[name]), float(getattr(risk, name)))
            for name in _CONSTANTS
        ),
        *spent[law](certificate, risk, adjacency),
        *(_verify_work(certificate, risk, adjacency) if "dither" in described else []),
    ]


def row_bound(risk: Risk, adjacency: Adjacency) -> float:
    """Return how far one row moves an entry of the gradient."""
    return float(risk.bound) * adjacency.rows_moved


def _with_numbers(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the terms with numbers where numbers belong: a text or a truth value is none."""
    whole = {name: int(described[name]) for name in _WHOLE if name in described}
    real: dict[str, Any] = {
        name: float(described[name])
        for name in (*_REAL, *_SHARED)
        if name in described and name not in whole
    }
    total = described.get("sum_norm")
    norm = {} if total is None else {"sum_norm": float(total)}
    if "norm" in described:
        search = described["norm"]
        numbers = {"epsilon": float(search["epsilon"]), "level": float(search["level"])}
        real["norm"] = {**numbers, "points": int(search["points"])}
    return {**described, **real, **whole, **norm}


def _near(claim: str, stated: Fraction, exact: Fraction, *, up: bool, unit: Fraction) -> Check:
    """Check a number that was rounded up, or down, by at most 2^-40 of a unit."""
    gap = stated - exact if up else exact - stated
    detail = f"{float(stated)!r}, recomputed {float(exact)!r}"
    return Check(claim=claim, holds=0 <= gap <= unit * _SLACK, detail=detail)


def _verify_spent(certificate: Certificate, risk: Risk, adjacency: Adjacency) -> list[Check]:
    """Add up what a norm, determinant and noise cost."""
    described = certificate.sampler
    q, nats = Fraction(described["leverage"]), Fraction(described["row_nats"])
    dither = Fraction(described.get("dither", 0))
    if min(q, nats) <= 0 or dither < 0:
        return [Check(claim="terms", holds=False, detail="leverage or noise of no known size")]
    checks, measured = [], Fraction(0)
    if "norm" in described:
        search = described["norm"]
        measured = Fraction(search["epsilon"])
        # d 2^(-j/8) is at least one as long as 2^j is at most d^8
        points = (int(described["columns"]) ** 8).bit_length()
        checks += [
            Check(claim="norm", holds=measured > 0, detail=f"{float(measured)!r} for a norm"),
            check_equal("level of the norm", search["level"], 0.5),
            check_equal("points of the norm", search["points"], points),
        ]
    else:
        checks += _verify_norms(described, risk, q, nats)
    moved = adjacency.rows_moved
    with localcontext() as context:
        context.prec = _DIGITS
        gain = _gain(risk, nats, q)
        spent = Fraction(gain) + (moved - 1) * nats
    whole = spent + measured + 2 * dither
    epsilon = Fraction(repr(certificate.epsilon))
    slack = Fraction(1, 10**40)  # of decimals
    holds = epsilon * (1 - _SLACK) <= whole <= epsilon + slack
    determinant = Fraction(described["determinant"])
    return [
        *checks,
        _near("determinant", determinant + slack, spent - moved * nats, up=True, unit=epsilon),
        Check(
            claim="epsilon",
            holds=holds,
            detail=f"{float(whole)!r} spent of {certificate.epsilon!r}",
        ),
    ]


def _verify_norms(
    described: Mapping[str, Any], risk: Risk, q: Fraction, nats: Fraction
) -> list[Check]:
    """Check the leverage that norms and penalties give, and the rate of the noise."""
    penalty, first = Fraction(described["penalty"]), Fraction(described["intercept_penalty"])
    squared, rate = Fraction(described["squared_norm"]), Fraction(described["rate"])
    total, noise = described["sum_norm"], described["noise"]
    known = noise in NOISES and (noise != CLASS_NORM or risk.margins > 1)
    known = known and (noise != SUM_NORM or total is not None)
    if not known or min(penalty, first, rate, squared) <= 0:
        detail = "penalties or rate that are not positive, or noise of no known norm"
        return [Check(claim="terms", holds=False, detail=detail)]
    head = [Fraction(0), min(Fraction(1), squared)]
    ends = [part / first + (squared - part) / penalty for part in head]
    # squares: a Euclidean norm has a root in it
    lengths = {MAX_NORM: risk.bound**2, CLASS_NORM: risk.spread**2}
    lengths[EUCLIDEAN] = risk.squared_length * squared
    lengths[SUM_NORM] = (risk.spread * Fraction(total or 0)) ** 2
    reached = rate**2 * lengths[noise]
    return [
        _near("leverage", q, max(ends), up=True, unit=q),
        _near("rate", reached, nats**2, up=False, unit=4 * nats**2),
    ]


def _gain(risk: Risk, nats: Fraction, q: Fraction) -> Decimal:
    """Bound what one row costs: noise and determinant together, or each at its worst."""
    inner = 1 + _decimal(risk.trace * q / risk.rank)
    product = _decimal(nats) + risk.rank * inner.ln()
    return product if risk.margins > 1 else min(product, _together(risk, nats, q))


def _together(risk: Risk, nats: Fraction, q: Fraction) -> Decimal:
    """Bound ``max_p [s p + ln(1 + q W(c p))]``: halve the interval where its slope changes sign."""
    w0, w1, w2 = (_decimal(number) for number in risk.curvature_bound)
    s, lever, c = _decimal(nats), _decimal(q), _decimal(risk.bound)

    def inside(p: Decimal) -> Decimal:
        return 1 + lever * (w0 + w1 * c * p - w2 * (c * p) ** 2)

    def slope(p: Decimal) -> Decimal:
        return s + lever * (w1 * c - 2 * w2 * c**2 * p) / inside(p)

    low, high = Decimal(0), Decimal(1)
    if slope(high) >= 0:
        return s + inside(high).ln()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    # concave: it rises by less than its slope times what is left
    return s * low + inside(low).ln() + abs(slope(low)) * (high - low)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _verify_first_law(certificate: Certificate, risk: Risk, adjacency: Adjacency) -> list[Check]:
    """Add up what determinant and noise cost by the theorem that a release of then rested on."""
    described = certificate.sampler
    penalty, first = Fraction(described["penalty"]), Fraction(described["intercept_penalty"])
    rate, steps = Fraction(described["rate"]), int(described["steps"])
    noise, dither = described["noise"], Fraction(described.get("dither", 0))
    squared, total = Fraction(described["squared_norm"]), described["sum_norm"]
    positive = min(penalty, first, rate) > 0 and dither >= 0 and steps >= 1
    costs = {MAX_NORM: Fraction(steps), CLASS_NORM: adjacency.rows_moved * risk.spread}
    if total is not None:
        costs[SUM_NORM] = costs[CLASS_NORM] * Fraction(total)
    if not positive or noise not in costs or (noise == CLASS_NORM and risk.margins == 1):
        detail = "penalties, rate or steps that are not positive, or noise of no known norm"
        return [Check(claim="terms", holds=False, detail=detail)]
    head = [Fraction(0), min(Fraction(1), squared)]
    ends = [part / first + (squared - part) / penalty for part in head]
    with localcontext() as context:
        context.prec = _DIGITS
        inner = 1 + _decimal(risk.trace * max(ends) / risk.rank)
        exact = Fraction(risk.rank * inner.ln())
    determinant = Fraction(described["determinant"])
    spent = rate * costs[noise] + determinant + 2 * dither
    epsilon = Fraction(repr(certificate.epsilon))
    detail = f"{float(spent)!r} spent of {certificate.epsilon!r}"
    return [
        _near("determinant", determinant, exact, up=True, unit=exact),
        Check(claim="epsilon", holds=epsilon * (1 - _SLACK) <= spent <= epsilon, detail=detail),
    ]


def _verify_work(certificate: Certificate, risk: Risk, adjacency: Adjacency) -> list[Check]:
    """Recompute the amount of work from the number of rows, which is public, and the terms."""
    described, count = certificate.sampler, int(certificate.domain.get("count", -1))
    terms = _terms_of(certificate, risk, adjacency)
    fixed = count >= 0 and terms.dither > 0 and serves(risk) and terms.dimension <= MOST_COLUMNS
    schedule = make_schedule(terms, count) if fixed else None
    expected = None if schedule is None else schedule.describe(terms)["work"]
    return [check_equal("work", described["work"], expected)]


def _terms_of(certificate: Certificate, risk: Risk, adjacency: Adjacency) -> OptimumTerms:
    """Return the terms that a certificate tells, as far as the amount of work depends on them."""
    described, columns = certificate.sampler, int(certificate.sampler["columns"])
    search = None
    if "norm" in described:
        nats = Fraction(described["norm"]["epsilon"])
        search = NormSearch(dimension=columns, epsilon=nats, adjacency=adjacency)
    rate = Fraction(described.get("rate", 1))
    if (
        "steps" in described and described["noise"] == MAX_NORM
    ):  # of the first law: in steps of a grid
        rate = rate * int(described["steps"]) / (adjacency.rows_moved * risk.bound)
    total = described.get("sum_norm")
    return OptimumTerms(
        risk=risk,
        dimension=columns,
        epsilon=Fraction(repr(certificate.epsilon)),
        adjacency=adjacency,
        norms=RowNorms(
            squared=Fraction(described.get("squared_norm", columns)),
            total=None if total is None else Fraction(total),
        ),
        penalty=Fraction(described.get("penalty", 1)),
        intercept_penalty=Fraction(described.get("intercept_penalty", 1)),
        noise=described.get("noise", MAX_NORM),
        rate=rate,
        row_nats=Fraction(described.get("row_nats", 1)),
        leverage=Fraction(described.get("leverage", 1)),
        determinant=Fraction(described["determinant"]),
        dither=Fraction(described["dither"]),
        search=search,
    )


class _DeclaredRisk(Logistic):
    """The constants that a caller declared for a risk of one margin: an assumption, unchecked."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.bound = Fraction(described["bound"])
        self.spread = self.bound
        self.lipschitz = Fraction(described["lipschitz"])
        self.trace = self.lipschitz
        self.error = validate_nonnegative(described["risk"]["error"], name="error", owner=OWNER)
        self.name = str(described["risk"]["name"])
        declared = described["risk"].get("curvature_bound")
        self._declared = declared and validate_curvature_bound(declared, self.bound)

    @property
    def curvature_bound(self) -> CurvatureBound:
        """Return what was declared, or that nothing was."""
        return self._declared or (self.lipschitz, Fraction(0), Fraction(0))

    def describe(self) -> dict[str, Any]:
        constants = {"bound": float(self.bound), "lipschitz": float(self.lipschitz)}
        description: dict[str, Any] = {"name": self.name, "error": float(self.error), **constants}
        if self._declared is not None:
            description["curvature_bound"] = [float(number) for number in self._declared]
        return description
