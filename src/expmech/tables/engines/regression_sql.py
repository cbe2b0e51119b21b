"""One pass of a regression as SQL: score as whole numbers, Hessian in floats, in one query.

Each row is shortened and snapped as :func:`expmech.mechanisms.optimum.prepare_rows` does it,
operation by operation. The derivatives of a risk are lists of layers: names, and expressions of
names before them. What float64 does to them: docs/theory/perturbed_optimum_in_engine.md, 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expmech.core.errors import UnsupportedError
from expmech.mechanisms.optimum.calibration import RowNorms
from expmech.mechanisms.optimum.dyadic import Dyadics
from expmech.mechanisms.optimum.in_engine import Sums
from expmech.mechanisms.optimum.risks import Huber, LogCosh, Risk
from expmech.mechanisms.optimum.rows import SHORTER
from expmech.mechanisms.optimum.steps import STEP_BITS
from expmech.tables.sources.execution import sum_or_zero

EXP_ERROR = 2.0**-44
"""What is assumed of an engine's exp: relative, 256 units in the last place."""

_FARTHEST = 300.0  # exp(-300) squared does not underflow, which PostgreSQL would refuse
_KINKS = tuple(2.0**-k for k in range(32, 3, -4))
_SLOPE_BITS = 52  # derivatives are rounded to 2^-52 times a power of two above their bound
_LIMB = 26  # and summed in two halves: 20 bits of an entry and 26 of a half fit in 53
_MOST_AGGREGATES = 1000  # PostgreSQL selects at most 1664 expressions
_PRIME, _SPREAD = (1 << 31) - 1, (1 << 19) - 1  # of marks, and of what their columns are mixed by
_DOUBLE = {
    "duckdb": "DOUBLE",
    "postgres": "DOUBLE PRECISION",
    "pyspark": "DOUBLE",
    "datafusion": "DOUBLE",
}
_STEPS = 1 << STEP_BITS
Floats = NDArray[np.float64]

Layers = list[dict[str, str]]
Number = Callable[[float], str]
"""Writes a float64 constant in an engine's SQL."""


@dataclass(frozen=True, kw_only=True)
class Formula:
    """Layers, and which names hold derivatives, second derivatives, and nearness to kinks."""

    layers: Layers
    slopes: Sequence[str]
    weights: Mapping[tuple[int, int], str]
    near: Mapping[float, str]


class Formulas(Protocol):
    """The derivatives of a risk as SQL."""

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
        return f"CASE WHEN {name} > 0 THEN {number(1.0)} ELSE {number(-1.0)} END"

    def of(self, margins: Sequence[str], target: str, number: Number, tag: str) -> Formula:
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
        # the exponential, and the quotient
        return (EXP_ERROR + margin) * (1.0 + 2.0**-30), 2.0**-51


@dataclass(frozen=True)
class SoftmaxFormulas:
    """``p - e_z``, p from exponentials of margins less the largest."""

    risk: Risk

    def target(self, name: str, number: Number) -> str:
        return name

    def of(self, margins: Sequence[str], target: str, number: Number, tag: str) -> Formula:
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
        # exponentials, their sum, the quotient and the difference
        return (EXP_ERROR + 4.0 * margin) * (1.0 + 2.0**-30), (self.risk.margins + 4.0) * 2.0**-52


@dataclass(frozen=True)
class HuberFormulas:
    """``clip(t - z, -c, c)``: a difference and two comparisons."""

    risk: Huber

    def target(self, name: str, number: Number) -> str:
        return f"{name} * {number(2.0**-20)}"

    def of(self, margins: Sequence[str], target: str, number: Number, tag: str) -> Formula:
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
        # the margin, and the difference where it is not clipped
        return (margin + 2.0**-52 * (self.risk.threshold + 2.0)) * (1.0 + 2.0**-30), 0.0


@dataclass(frozen=True)
class LogCoshFormulas:
    """``c sign(u) (1 - e)/(1 + e)`` and ``4 e/(1 + e)^2`` with ``e = exp(-2 |u|/c)``."""

    risk: LogCosh

    def target(self, name: str, number: Number) -> str:
        return f"{name} * {number(2.0**-20)}"

    def of(self, margins: Sequence[str], target: str, number: Number, tag: str) -> Formula:
        (t,), one, c = margins, number(1.0), self.risk.threshold
        u, e, o, g, w = (f"{letter}{tag}" for letter in "ueogw")
        sign = f"CASE WHEN {u} < {number(0.0)} THEN {number(-c)} ELSE {number(c)} END"
        layers = [
            {u: f"{t} - {target}"},
            {e: f"exp(-least(abs({u}) * {number(2.0 / c)}, {number(_FARTHEST)}))"},
            {o: f"{one} + {e}"},
            {
                g: f"({sign}) * (({one} - {e}) / {o})",
                w: f"{number(4.0)} * {e} / ({o} * {o})",
            },
        ]
        return Formula(layers=layers, slopes=[g], weights={(0, 0): w}, near={})

    def errors(self, margin: float) -> tuple[float, float]:
        # the margin, the exponential of 2 |u|/c, and its argument, which counts up to 300 only
        c = self.risk.threshold
        shift = margin + c * (EXP_ERROR + 300.0 * 2.0**-51) + 2.0**-52
        return shift * (1.0 + 2.0**-30), 2.0**-50 * c


def formulas_of(risk: Risk) -> Formulas:
    """Return the derivatives of a risk as SQL."""
    if isinstance(risk, Huber):
        return HuberFormulas(risk)
    if isinstance(risk, LogCosh):
        return LogCoshFormulas(risk)
    known: dict[str, Callable[[Risk], Formulas]] = {
        "logistic": LogisticFormulas,
        "softmax": SoftmaxFormulas,
    }
    if risk.name not in known:
        raise UnsupportedError(f"There are no formulas of the risk {risk.name!r} for an engine.")
    return known[risk.name](risk)


def mark_of(steps: Floats) -> int:
    """Return the sum of the marks of rows in whole steps, the target last.

    The mark of a row is a cube modulo a prime of a weighted sum of its entries, which is exact:
    20 bits of an entry, 19 of a weight and at most 2^13 entries make 52.
    """
    mixed = _SPREAD + steps @ np.array(_weights(steps.shape[1]))
    root = np.fmod(mixed.astype(np.int64), _PRIME)
    return int(np.fmod(np.fmod(root * root, _PRIME) * root, _PRIME).sum())


def _weights(size: int) -> list[float]:
    return [float(pow(5, j + 1, _SPREAD)) for j in range(size)]


@dataclass(frozen=True, kw_only=True)
class RowQuery:
    """Rows in whole steps as text of an engine's language; the target is the last column."""

    text: str
    columns: tuple[str, ...]
    engine: str

    def number(self, value: float) -> str:
        """Return a float64 constant: engines read text as the nearest one."""
        return f"CAST('{float(value)!r}' AS {_DOUBLE[self.engine]})"

    def nearest(self, text: str) -> str:
        """Return a number rounded to the nearest whole one, as a float."""
        return self.floored(f"{text} + {self.number(0.5)}")

    def floored(self, text: str) -> str:
        """Return a number rounded down to a whole one, as a float."""
        return f"CAST(floor({text}) AS {_DOUBLE[self.engine]})"

    def truncated(self, text: str) -> str:
        """Return a number rounded toward zero to a whole one, as a float."""
        if self.engine == "pyspark":
            return f"CAST(CAST({text} AS BIGINT) AS DOUBLE)"
        return f"trunc({text})"

    def wide_sum(self, text: str) -> str:
        """Return an exact sum of 64-bit whole numbers."""
        wraps = self.engine in ("pyspark", "datafusion")
        wide = f"CAST({text} AS DECIMAL(20, 0))" if wraps else text
        return f"SUM({wide})"


@dataclass(frozen=True, kw_only=True)
class PassQueries:
    """The queries of a regression: rows, a risk's formulas and the norms rows are shortened to."""

    rows: RowQuery
    formulas: Formulas
    norms: RowNorms

    @property
    def _d(self) -> int:
        return len(self.rows.columns)  # the target gives its place to the constant

    @property
    def _unit(self) -> float:
        """Return the unit of rounded derivatives."""
        return 2.0 ** (max(0, math.ceil(math.log2(float(self.formulas.risk.bound)))) - _SLOPE_BITS)

    def sums(self, point: Floats) -> list[str]:
        """Return the query of the sums at a grid point; several where there are very many sums."""
        formula = self._formula("")
        layers = [*self._shortened(), self._margins(point, "t"), *formula.layers]
        layers += self._products(formula)
        inner = self._layered(layers)
        near = [f"SUM({name})" for name in formula.near.values()]
        grams = [f"SUM(x{i} * y{a}_{b}_{j})" for (a, b), i, j in self._places(formula)]
        every = [*self._scores(formula), *near, *grams]
        chunks = range(0, len(every), _MOST_AGGREGATES)
        return [_totals(every[first : first + _MOST_AGGREGATES], inner) for first in chunks]

    def read_sums(self, totals: Sequence[Any], point: Floats) -> Sums:
        """Return the sums of the queries' results, with what they may be off by."""
        d, k = self._d, self.formulas.risk.margins
        formula = self._formula("")
        values = iter(totals)
        count = int(next(values))
        halves = [[int(sum_or_zero(next(values), count)) for _ in range(k * d)] for _ in range(2)]
        scores = [(high << _LIMB) + low for high, low in zip(*halves, strict=True)]
        near = tuple((distance, int(sum_or_zero(next(values), count))) for distance in formula.near)
        curvature = np.zeros((k * d, k * d))
        for (a, b), i, j in self._places(formula):
            value = float(sum_or_zero(next(values), count)) * 2.0 ** (-2 * STEP_BITS)
            for row, column in ((i, j), (j, i)):
                curvature[a * d + row, b * d + column] = value
                curvature[b * d + column, a * d + row] = value
        eta, beta = self.formulas.errors(self._margin_error(point))
        return Sums(
            count=count,
            score=Dyadics(values=scores, exponent=STEP_BITS - round(math.log2(self._unit))),
            curvature=curvature,
            eta=eta,
            beta=beta + 1.01 * self._unit,
            near=near if formula.near else None,
        )

    def within(self, limits: Sequence[Fraction]) -> str:
        """Return the query of how many rows have at most each squared norm."""
        squares = self._shortened()[:3]
        most = [(limit * _STEPS**2).__floor__() for limit in limits]
        sums = [
            f"SUM(CAST(squares <= {self.rows.number(float(limit))} AS INTEGER))" for limit in most
        ]
        return _totals(sums, self._layered(squares))

    def slopes(self, point: Floats, step: Floats, lengths: Sequence[float]) -> str:
        """Return the query of the slopes along a step."""
        k = self.formulas.risk.margins
        layers = [*self._shortened(), self._margins(point, "t") | self._margins(step, "s")]
        number = self.rows.number
        layers.append(
            {
                f"t{m}_{i}": f"t{i} + {number(length)} * s{i}"
                for m, length in enumerate(lengths)
                for i in range(k)
            }
        )
        formulas = [self._formula(f"{m}_") for m in range(len(lengths))]
        for beside in zip(*(formula.layers for formula in formulas), strict=True):
            layers.append({name: text for layer in beside for name, text in layer.items()})
        sums = [
            f"SUM({' + '.join(f'{g} * s{i}' for i, g in enumerate(formula.slopes))})"
            for formula in formulas
        ]
        return _totals(sums, self._layered(layers))

    def _formula(self, tag: str) -> Formula:
        names = [f"t{tag}{i}" for i in range(self.formulas.risk.margins)]
        return self.formulas.of(names, "z", self.rows.number, f"q{tag}")

    def _shortened(self) -> Layers:
        """Return the layers that shorten and snap a row: entries x0 (the constant) to x of d-1.

        Beside them stands the mark of the row, as :func:`mark_of` computes it.
        """
        number, cut = self.rows.number, self.rows.truncated
        *columns, target = self.rows.columns
        first = {f"v{j + 1}": self.rows.nearest(name) for j, name in enumerate(columns)}
        names = list(first)
        squares = " + ".join([number(_STEPS**2), *(f"{v} * {v}" for v in names)])
        sums = " + ".join([number(_STEPS), *(f"abs({v})" for v in names)])
        norms = {"squares": squares} | ({} if self.norms.total is None else {"sums": sums})
        weights = zip([*names, "target"], _weights(len(self.rows.columns)), strict=True)
        mixed = " + ".join([number(_SPREAD), *(f"{v} * {number(weight)}" for v, weight in weights)])
        entries = {"x0": cut(f"{number(_STEPS)} * f")}
        entries |= {f"x{j + 1}": cut(f"{v} * f") for j, v in enumerate(names)}
        scaled = self.formulas.risk.scales_targets()
        shortened = cut("target * f") if scaled else "target"
        return [
            first | {"target": self.rows.nearest(target)},
            norms | {"root": f"CAST({mixed} AS BIGINT) % {_PRIME}"},
            {"f": self._factor(), "mark": f"(root * root % {_PRIME}) * root % {_PRIME}"},
            entries | {"held": shortened},
            {"z": self.formulas.target("held", number)},
        ]

    def _factor(self) -> str:
        number = self.rows.number
        one, shorter = number(1.0), number(SHORTER)
        most = number(float(self.norms.squared) * _STEPS**2)
        text = f"CASE WHEN squares <= {most} THEN {one} ELSE sqrt({most} / squares) * {shorter} END"
        if self.norms.total is None:
            return text
        most = number(float(self.norms.total) * _STEPS)
        other = f"CASE WHEN sums <= {most} THEN {one} ELSE {most} / sums * {shorter} END"
        return f"least({text}, {other})"

    def _margins(self, point: Floats, name: str) -> dict[str, str]:
        number = self.rows.number
        return {
            f"{name}{k}": " + ".join(
                f"x{j} * {number(value * 2.0**-STEP_BITS)}" for j, value in enumerate(line)
            )
            for k, line in enumerate(point.tolist())
        }

    def _margin_error(self, point: Floats) -> float:
        """Bound the error of a margin: d products and sums of numbers that |x|_inf <= 1 bounds."""
        sizes = np.minimum(
            np.abs(point).sum(axis=1), math.sqrt(self.norms.squared) * np.linalg.norm(point, axis=1)
        )
        return float(sizes.max()) * (self._d + 2) * 2.0**-53 * (1.0 + 2.0**-20)

    def _products(self, formula: Formula) -> Layers:
        """Return derivatives as whole numbers in two halves, and entries times weights.

        A derivative is ``2^26 high + low`` units, ``0 <= low < 2^26``. They are floats, whose
        products with entries are exact, and which engines multiply faster than whole numbers.
        """
        number, d, classes = self.rows.number, self._d, range(len(formula.slopes))
        products = {
            f"k{i}": self.rows.nearest(f"{g} * {number(1.0 / self._unit)}")
            for i, g in enumerate(formula.slopes)
        }
        high = {f"high{i}": self.rows.floored(f"k{i} * {number(2.0**-_LIMB)}") for i in classes}
        low = {f"low{i}": f"k{i} - high{i} * {number(2.0**_LIMB)}" for i in classes}
        for (a, b), weight in formula.weights.items():
            products |= {f"y{a}_{b}_{j}": f"x{j} * {weight}" for j in range(d)}
        return [products, high, low]

    def _scores(self, formula: Formula) -> list[str]:
        places = [(i, j) for i in range(len(formula.slopes)) for j in range(self._d)]
        return [
            self.rows.wide_sum(f"CAST({half}{i} * x{j} AS BIGINT)")
            for half in ("high", "low")
            for i, j in places
        ]

    def _places(self, formula: Formula) -> list[tuple[tuple[int, int], int, int]]:
        d = self._d
        return [(pair, i, j) for pair in formula.weights for i in range(d) for j in range(i, d)]

    def _layered(self, layers: Layers) -> str:
        """Return nested queries, each with the names of those inside it and new ones."""
        # without a fence PostgreSQL computes a name as often as it is used
        fence = " OFFSET 0" if self.rows.engine == "postgres" else ""
        text = f"({self.rows.text}) AS rows_0"
        known: list[str] = []
        for number, layer in enumerate(layers):
            new = [f"{expression} AS {name}" for name, expression in layer.items()]
            text = f"(SELECT {', '.join([*known, *new])} FROM {text}{fence}) AS rows_{number + 1}"
            known += layer
        return text


def _totals(sums: Sequence[str], inner: str) -> str:
    """Return the query of sums, after the number of rows and the sum of their marks."""
    return f"SELECT {', '.join(['COUNT(*)', 'SUM(mark)', *sums])} FROM {inner}"
