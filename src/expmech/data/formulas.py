"""Derivatives of risks in an engine's own words, and what float64 does to them there.

A formula is a list of layers: names and expressions of names before them. Theory:
docs/theory/perturbed_optimum_elsewhere.md, 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from expmech.errors import UnsupportedError
from expmech.risks import Risk
from expmech.risks.ramps import Huber

EXP_ERROR = 2.0**-44
"""What is assumed of an engine's exp: relative, 256 units in the last place."""

_FARTHEST = 300.0  # exp(-300) squared does not underflow, which PostgreSQL would refuse
_KINKS = tuple(2.0**-k for k in range(32, 3, -4))

Layers = list[dict[str, str]]
Number = Callable[[float], str]
"""A float64 constant in an engine's own words."""


@dataclass(frozen=True, kw_only=True)
class Formula:
    """Layers, and which names hold derivatives, second derivatives, and nearness to kinks."""

    layers: Layers
    slopes: Sequence[str]
    weights: Mapping[tuple[int, int], str]
    near: Mapping[float, str]


class Formulas(Protocol):
    """A risk in an engine's own words."""

    @property
    def risk(self) -> Risk:
        """The risk."""

    def target(self, name: str, number: Number) -> str:
        """Return the target a formula takes, from the column of targets in steps."""

    def of(self, margins: Sequence[str], target: str, number: Number, tag: str) -> Formula:
        """Return derivatives at margins; ``tag`` keeps their names apart from others'."""

    def errors(self, margin: float) -> tuple[float, float]:
        """Return eta and beta where computed margins are off by ``margin``."""


@dataclass(frozen=True)
class LogisticFormulas:
    """``-z/(1 + exp(z t))`` and ``e/(1 + e)^2``, without cancellation."""

    risk: Risk

    def target(self, name: str, number: Number) -> str:
        """Return +1 for the class that is modelled, else -1."""
        return f"CASE WHEN {name} > 0 THEN {number(1.0)} ELSE {number(-1.0)} END"

    def of(self, margins: Sequence[str], target: str, number: Number, tag: str) -> Formula:
        """Return the derivative by the exponential of minus the margin's size."""
        (t,), one = margins, number(1.0)
        e, o, g, w = (f"{letter}{tag}" for letter in "eogw")
        signed = f"CASE WHEN {t} * {target} > {number(0.0)} THEN {e} ELSE {one} END"
        layers = [
            {e: f"exp(-least(abs({t}), {number(_FARTHEST)}))"},
            {o: f"{one} + {e}"},
            {g: f"-{target} * ({signed}) / {o}", w: f"{e} / ({o} * {o})"},
        ]
        return Formula(layers=layers, slopes=[g], weights={(0, 0): w}, near={})

    def errors(self, margin: float) -> tuple[float, float]:
        """Return what the exponential and the quotient are off by."""
        return (EXP_ERROR + margin) * (1.0 + 2.0**-30), 2.0**-51


@dataclass(frozen=True)
class SoftmaxFormulas:
    """``p - e_z``, p from exponentials of margins less the largest."""

    risk: Risk

    def target(self, name: str, number: Number) -> str:
        """Return the class."""
        return name

    def of(self, margins: Sequence[str], target: str, number: Number, tag: str) -> Formula:
        """Return shares, less one for the class of the row."""
        k, one = len(margins), number(1.0)
        top, total = f"top{tag}", f"total{tag}"
        e, p, g = ([f"{letter}{tag}_{i}" for i in range(k)] for letter in "epg")
        far = number(_FARTHEST)
        layers: Layers = [
            {top: f"greatest({', '.join(margins)})"},
            {e[i]: f"exp(-least({top} - {margins[i]}, {far}))" for i in range(k)},
            {total: " + ".join(e)},
            {p[i]: f"{e[i]} / {total}" for i in range(k)},
            {
                g[i]: f"CASE WHEN {target} = {i} THEN {p[i]} - {one} ELSE {p[i]} END"
                for i in range(k)
            },
        ]
        pairs = [(i, j) for i in range(k) for j in range(i, k)]
        weights = {pair: f"w{tag}_{pair[0]}_{pair[1]}" for pair in pairs}
        layers[-1] |= {
            name: f"{p[i]} * ({one} - {p[i]})" if i == j else f"-{p[i]} * {p[j]}"
            for (i, j), name in weights.items()
        }
        return Formula(layers=layers, slopes=g, weights=weights, near={})

    def errors(self, margin: float) -> tuple[float, float]:
        """Return what exponentials, their sum, the quotient and the difference are off by."""
        return (EXP_ERROR + 4.0 * margin) * (1.0 + 2.0**-30), (self.risk.margins + 4.0) * 2.0**-52


@dataclass(frozen=True)
class HuberFormulas:
    """``clip(t - z, -c, c)``: a difference and two comparisons."""

    risk: Huber

    def target(self, name: str, number: Number) -> str:
        """Return the target: steps, made a number where it is shortened."""
        return f"{name} * {number(2.0**-20)}"

    def of(self, margins: Sequence[str], target: str, number: Number, tag: str) -> Formula:
        """Return the clipped residual, one inside the ends, and how near the ends are."""
        (t,), high, low = margins, number(self.risk.threshold), number(-self.risk.threshold)
        u, g, w = (f"{letter}{tag}" for letter in "ugw")
        near = {distance: f"near{tag}_{i}" for i, distance in enumerate(_KINKS)}
        inside = f"{u} > {low} AND {u} < {high}"
        layers = [
            {u: f"{t} - {target}"},
            {
                g: f"CASE WHEN {u} < {low} THEN {low} WHEN {u} > {high} THEN {high} ELSE {u} END",
                w: f"CASE WHEN {inside} THEN {number(1.0)} ELSE {number(0.0)} END",
                **{
                    name: f"CASE WHEN abs(abs({u}) - {high}) <= {number(distance)}"
                    " THEN 1 ELSE 0 END"
                    for distance, name in near.items()
                },
            },
        ]
        return Formula(layers=layers, slopes=[g], weights={(0, 0): w}, near=near)

    def errors(self, margin: float) -> tuple[float, float]:
        """Return the margin's error and that of the difference, where it is not clipped."""
        return (margin + 2.0**-52 * (self.risk.threshold + 2.0)) * (1.0 + 2.0**-30), 0.0


def formulas_of(risk: Risk) -> Formulas:
    """Return a risk in an engine's own words."""
    if isinstance(risk, Huber):
        return HuberFormulas(risk)
    known: dict[str, Callable[[Risk], Formulas]] = {
        "logistic": LogisticFormulas,
        "softmax": SoftmaxFormulas,
    }
    if risk.name not in known:
        raise UnsupportedError(f"There are no formulas of the risk {risk.name!r} for an engine.")
    return known[risk.name](risk)
