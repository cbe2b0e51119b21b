"""What an optimum of a perturbed objective recomputes of its own certificates."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.adjacency import Adjacency
from expmech.errors import validate_nonnegative
from expmech.optimum.calibration import (
    NOISES,
    Terms,
    determinant_cost,
    leverage,
    noise_cost,
    rows_moved,
)
from expmech.optimum.draw import Lattice
from expmech.optimum.steady import Schedule, make_schedule, serves
from expmech.release.certificate import Certificate
from expmech.release.direct_checks import check_assumed, check_count, check_described
from expmech.release.finish import rebuild_finish, within
from expmech.risks import Logistic, Risk, rebuild_risk
from expmech.samplers import Check
from expmech.samplers.base import CONSTANT, DATA_DEPENDENT, check_equal

OWNER, KIND = "PerturbedOptimum", "Optimum"
ASSUMPTIONS = (
    "rows were clipped to [-1, 1], shortened to the public norms and snapped to 2^-20 one by one",
    "float64 is IEEE 754 with sums of products in any order; numpy's exp is within 16 units in the"
    " last place",
    "the operating system's random key is secret",
)
DECLARED = "the derivative of the custom risk is monotone and has the declared bounds and error"
_NUMBERS = (
    "squared_norm",
    "penalty",
    "intercept_penalty",
    "rate",
    "determinant",
    "dither",
)
_CONSTANTS = ("bound", "spread", "lipschitz", "rank")
_USED = 1 - Fraction(1, 1 << 40)  # the share of epsilon that roundings toward privacy leave


def describe_terms(terms: Terms, schedule: Schedule | None) -> dict[str, Any]:
    """Return the terms as numbers that JSON holds exactly; every one follows from the others."""
    risk = terms.risk
    work = {} if schedule is None else {"dither": float(terms.dither), "work": schedule.describe()}
    return work | {
        "sampler": OWNER,
        "risk": risk.describe(),
        "bound": float(risk.bound),
        "spread": float(risk.spread),
        "lipschitz": float(risk.lipschitz),
        "rank": risk.rank,
        "columns": terms.dimension,
        "squared_norm": float(terms.squared_norm),
        "sum_norm": None if terms.sum_norm is None else float(terms.sum_norm),
        "penalty": float(terms.penalty),
        "intercept_penalty": float(terms.intercept_penalty),
        "noise": terms.noise,
        "steps": terms.steps,
        "rate": float(terms.rate),
        "determinant": float(terms.determinant),
    }


def row_bound(risk: Risk, adjacency: Adjacency) -> float:
    """Return how far one row moves an entry of the gradient."""
    return float(risk.bound) * rows_moved(adjacency)


def verify_optimum(certificate: Certificate) -> list[Check]:
    """Recompute the constants of the risk, the determinant's part of epsilon and the noise's."""
    domain, told = certificate.domain, certificate.sampler
    if domain["kind"] != KIND:
        other = f"{domain['kind']!r} is not what an optimum is released in"
        return [Check(claim="domain", holds=False, detail=other)]
    Lattice(bits=domain["bits"], reach_bits=domain["reach_bits"])  # raises unless it is a grid
    adjacency = Adjacency(certificate.adjacency)
    known = rebuild_risk(told["risk"])
    risk: Risk = _Declared(told) if known is None else known
    timing = CONSTANT if "dither" in told else DATA_DEPENDENT
    named = told.get("sampler") == OWNER and certificate.timing == timing
    return [
        Check(claim="domain", holds=True, detail=KIND),
        Check(claim="timing", holds=named, detail=f"{certificate.timing!r} of {OWNER}"),
        check_equal("delta", float(certificate.delta), 0.0),
        check_equal("classes", domain["classes"], risk.margins),
        check_equal("columns", domain["columns"], told["columns"]),
        check_count(domain, adjacency),
        check_equal("unit", certificate.unit, None),
        check_equal("loss error", float(certificate.loss_error), 0.0),
        check_described("numbers", told, _numbers(told)),
        check_described("risk", told["risk"], risk.describe()),
        check_assumed(certificate, (*ASSUMPTIONS, *(() if known else (DECLARED,)))),
        check_equal("sensitivity", float(certificate.sensitivity), row_bound(risk, adjacency)),
        check_equal("eta", certificate.eta, told["rate"]),
        *(check_equal(name, float(told[name]), float(getattr(risk, name))) for name in _CONSTANTS),
        *_verify_spent(certificate, risk, adjacency),
        *(_verify_work(certificate, risk, adjacency) if "dither" in told else []),
    ]


def _numbers(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the terms with numbers where numbers belong: a text or a truth is none."""
    real = {name: float(told[name]) for name in (*_NUMBERS, *_CONSTANTS) if name in told}
    whole = {name: int(told[name]) for name in ("rank", "columns", "steps")}
    norm = None if told["sum_norm"] is None else float(told["sum_norm"])
    return {**told, **real, **whole, "sum_norm": norm}


def _verify_spent(certificate: Certificate, risk: Risk, adjacency: Adjacency) -> list[Check]:
    """Add up what determinant and noise cost, from the penalties and the rate."""
    told = certificate.sampler
    penalty, first = Fraction(told["penalty"]), Fraction(told["intercept_penalty"])
    rate, steps = Fraction(told["rate"]), int(told["steps"])
    dither = Fraction(told.get("dither", 0))
    positive = min(penalty, first, rate) > 0 and dither >= 0 and steps >= 1
    positive &= told["noise"] in NOISES
    if not positive:
        detail = "penalties, rate or steps that are not positive, or noise of no known norm"
        return [Check(claim="terms", holds=False, detail=detail)]
    reach = leverage(Fraction(told["squared_norm"]), penalty, first)
    determinant = determinant_cost(risk, reach)
    sum_norm = None if told["sum_norm"] is None else Fraction(told["sum_norm"])
    spent = rate * noise_cost(risk, adjacency, told["noise"], steps, sum_norm) + determinant
    spent += 2 * dither
    epsilon = Fraction(repr(certificate.epsilon))
    held = epsilon * _USED <= spent <= epsilon
    detail = f"{float(spent)!r} spent of {certificate.epsilon!r}"
    return [
        check_equal("determinant", told["determinant"], float(determinant)),
        Check(claim="epsilon", holds=held, detail=detail),
    ]


def _verify_work(certificate: Certificate, risk: Risk, adjacency: Adjacency) -> list[Check]:
    """Recompute the amount of work from the number of rows, which is public, and the terms."""
    told, count = certificate.sampler, int(certificate.domain.get("count", -1))
    numbers = {name: Fraction(told[name]) for name in _NUMBERS}
    terms = Terms(
        risk=risk,
        dimension=int(told["columns"]),
        epsilon=Fraction(repr(certificate.epsilon)),
        adjacency=adjacency,
        sum_norm=None if told["sum_norm"] is None else Fraction(told["sum_norm"]),
        noise=told["noise"],
        steps=int(told["steps"]),
        **numbers,
    )
    fixed = count >= 0 and terms.dither > 0 and serves(risk)
    schedule = make_schedule(terms, count) if fixed else None
    expected = None if schedule is None else schedule.describe()
    return [check_equal("work", told["work"], expected)]


class _Declared(Logistic):
    """The constants that a caller declared for a risk of one margin: an assumption, unchecked."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.bound = Fraction(told["bound"])
        self.spread = self.bound
        self.lipschitz = Fraction(told["lipschitz"])
        self.trace = self.lipschitz
        self.error = validate_nonnegative(told["risk"]["error"], name="error", owner=OWNER)
        self.name = str(told["risk"]["name"])

    def describe(self) -> dict[str, Any]:
        """Return what a risk of one's own says about itself."""
        constants = {"bound": float(self.bound), "lipschitz": float(self.lipschitz)}
        return {"name": self.name, "error": float(self.error), **constants}


def admits_optimum(certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
    """Tell whether a point can be a draw: the right shape, in reach and on the lattice."""
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
    return bool((off <= rebuild_finish(certificate.finish).lost(rows) * scale).all())
