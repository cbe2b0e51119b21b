"""Recompute the terms of a perturbed optimum from a certificate's own fields."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from expmech.adjacency import Adjacency
from expmech.optimum.calibration import (
    NOISES,
    Terms,
    determinant_cost,
    leverage,
    noise_cost,
)
from expmech.risks import Huber, Logistic, Risk, SmoothedHinge, SmoothedPinball, Softmax

Claim = tuple[str, bool, str]

_CONSTANTS = ("bound", "spread", "lipschitz", "rank")


def describe_terms(terms: Terms) -> dict[str, Any]:
    """Return the terms as numbers that JSON holds exactly; every one follows from the others."""
    risk = terms.risk
    return {
        "sampler": "PerturbedOptimum",
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


def verify_terms(certificate: dict[str, Any]) -> list[Claim]:
    """Return (claim, whether it holds, detail) for all that can be recomputed.

    ``certificate`` is a certificate as a dictionary; the terms stand in its field ``sampler``. A
    custom risk's constants are the caller's assumption and are not checked.
    """
    fields = certificate["sampler"]
    epsilon = Fraction(repr(float(certificate["epsilon"])))
    adjacency = Adjacency(certificate["adjacency"])
    claims: list[Claim] = []
    risk = _known_risk(fields["risk"])
    if risk is None:
        risk = _Declared(fields)
    else:
        for name in _CONSTANTS:
            expected = float(getattr(risk, name))
            claims.append(_claim(name, fields[name] == expected, fields[name], expected))
    penalty, first = Fraction(fields["penalty"]), Fraction(fields["intercept_penalty"])
    claims.append(_claim("penalties", min(penalty, first) > 0, float(min(penalty, first)), "> 0"))
    determinant = determinant_cost(risk, leverage(Fraction(fields["squared_norm"]), penalty, first))
    written = Fraction(fields["determinant"])
    claims.append(_claim("determinant", written >= determinant, float(written), float(determinant)))
    claims.append(_claim("noise", fields["noise"] in NOISES, fields["noise"], NOISES))
    total = None if fields["sum_norm"] is None else Fraction(fields["sum_norm"])
    steps = int(fields["steps"])
    cost = noise_cost(risk, adjacency, fields["noise"], steps, total)
    rate = Fraction(fields["rate"])
    spent = rate * cost + max(determinant, written)
    claims.append(_claim("steps", steps >= 1, steps, ">= 1"))
    claims.append(_claim("rate", rate > 0, float(rate), "> 0"))
    claims.append(_claim("epsilon", spent <= epsilon, float(spent), float(epsilon)))
    used = spent >= epsilon * (1 - Fraction(1, 1 << 40))
    claims.append(_claim("epsilon is used", used, float(spent), float(epsilon)))
    claims.append(_claim("eta", certificate["eta"] == fields["rate"], certificate["eta"], "rate"))
    return claims


def _claim(name: str, holds: bool, written: object, expected: object) -> Claim:
    return name, bool(holds), f"{written!r}, recomputed {expected!r}"


def _known_risk(fields: dict[str, Any]) -> Risk | None:
    name = fields["name"]
    if name == "logistic":
        return Logistic()
    if name == "huber":
        return Huber(fields["threshold"])
    if name == "softmax":
        return Softmax(fields["classes"])
    if name == "smoothed-hinge":
        return SmoothedHinge(fields["width"])
    if name == "smoothed-pinball":
        return SmoothedPinball(fields["q"], fields["width"])
    return None


class _Declared(Logistic):
    """The constants that a caller declared for a risk of one margin."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.bound = Fraction(fields["bound"])
        self.spread = self.bound
        self.lipschitz = Fraction(fields["lipschitz"])
        self.trace = self.lipschitz
