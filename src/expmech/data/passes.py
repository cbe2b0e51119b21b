"""One pass over rows in an engine: score as whole numbers, Hessian in floats, in one query.

Each row is shortened and snapped as :func:`expmech.optimum.prepare_rows` does it, operation by
operation. Theory: docs/theory/perturbed_optimum_elsewhere.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.data.engines import summed
from expmech.data.formulas import Formula, Formulas, Layers
from expmech.optimum.dyadic import Dyadics
from expmech.optimum.elsewhere import Sums
from expmech.optimum.rows import SHORTER, STEP_BITS

_SLOPE_BITS = 52  # derivatives are rounded to 2^-52 times a power of two above their bound
_LIMB = 26  # and summed in two halves: 20 bits of an entry and 26 of a half fit in 64
_MOST_AGGREGATES = 1000  # PostgreSQL selects at most 1664 expressions
_DOUBLE = {"duckdb": "DOUBLE", "postgres": "DOUBLE PRECISION", "pyspark": "DOUBLE"}
_STEPS = 1 << STEP_BITS

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RowQuery:
    """Rows in whole steps as text of an engine's language; the target is the last column."""

    text: str
    columns: tuple[str, ...]
    engine: str

    def number(self, value: float) -> str:
        """Return a float64 constant: engines read text as the nearest one."""
        return f"CAST('{float(value)!r}' AS {_DOUBLE[self.engine]})"

    def nearest(self, name: str) -> str:
        """Return a column of steps, each the nearest whole number, as a float."""
        return f"CAST(floor({name} + {self.number(0.5)}) AS {_DOUBLE[self.engine]})"

    def truncated(self, text: str) -> str:
        """Return a number rounded toward zero to a whole one, as a float."""
        if self.engine == "pyspark":
            return f"CAST(CAST({text} AS BIGINT) AS DOUBLE)"
        return f"trunc({text})"

    def wide_sum(self, text: str) -> str:
        """Return an exact sum of 64-bit whole numbers."""
        wide = f"CAST({text} AS DECIMAL(20, 0))" if self.engine == "pyspark" else text
        return f"SUM({wide})"


@dataclass(frozen=True, kw_only=True)
class PassQueries:
    """The queries of a regression: rows, a risk's formulas and the norms rows are shortened to."""

    rows: RowQuery
    formulas: Formulas
    squared_norm: float
    sum_norm: float | None

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
        every = ["COUNT(*)", *self._scores(formula), *self._near(formula), *self._grams(formula)]
        chunks = range(0, len(every), _MOST_AGGREGATES)
        parts = [every[first : first + _MOST_AGGREGATES] for first in chunks]
        return [f"SELECT {', '.join(part)} FROM {inner}" for part in parts]

    def read_sums(self, found: Sequence[Any], point: Floats) -> Sums:
        """Return what the query found, with what it may be off by."""
        d, k = self._d, self.formulas.risk.margins
        formula = self._formula("")
        values = iter(found)
        count = int(next(values))
        halves = [[int(summed(next(values), count)) for _ in range(k * d)] for _ in range(2)]
        scores = [(high << _LIMB) + low for high, low in zip(*halves, strict=True)]
        near = tuple((distance, int(summed(next(values), count))) for distance in formula.near)
        curvature = np.zeros((k * d, k * d))
        for (a, b), i, j in self._places(formula):
            value = float(summed(next(values), count)) * 2.0 ** (-2 * STEP_BITS)
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
        found = [self._formula(f"{m}_") for m in range(len(lengths))]
        for beside in zip(*(formula.layers for formula in found), strict=True):
            layers.append({name: text for layer in beside for name, text in layer.items()})
        sums = [
            f"SUM({' + '.join(f'{g} * s{i}' for i, g in enumerate(formula.slopes))})"
            for formula in found
        ]
        return f"SELECT {', '.join(sums)} FROM {self._layered(layers)}"

    def _formula(self, tag: str) -> Formula:
        names = [f"t{tag}{i}" for i in range(self.formulas.risk.margins)]
        return self.formulas.of(names, "z", self.rows.number, f"q{tag}")

    def _shortened(self) -> Layers:
        """Return the layers that shorten and snap a row: entries x0 (the constant) to x of d-1."""
        number, cut = self.rows.number, self.rows.truncated
        *columns, target = self.rows.columns
        first = {f"v{j + 1}": self.rows.nearest(name) for j, name in enumerate(columns)}
        names = list(first)
        squares = " + ".join([number(_STEPS**2), *(f"{v} * {v}" for v in names)])
        sums = " + ".join([number(_STEPS), *(f"abs({v})" for v in names)])
        made = {"squares": squares} | ({} if self.sum_norm is None else {"sums": sums})
        entries = {"x0": cut(f"{number(_STEPS)} * f")}
        entries |= {f"x{j + 1}": cut(f"{v} * f") for j, v in enumerate(names)}
        scaled = self.formulas.risk.scales_targets()
        held = cut("target * f") if scaled else "target"
        return [
            first | {"target": self.rows.nearest(target)},
            made,
            {"f": self._factor()},
            entries | {"held": held},
            {"z": self.formulas.target("held", number)},
        ]

    def _factor(self) -> str:
        number = self.rows.number
        one, shorter = number(1.0), number(SHORTER)
        most = number(self.squared_norm * _STEPS**2)
        text = f"CASE WHEN squares <= {most} THEN {one} ELSE sqrt({most} / squares) * {shorter} END"
        if self.sum_norm is None:
            return text
        most = number(self.sum_norm * _STEPS)
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
            np.abs(point).sum(axis=1), math.sqrt(self.squared_norm) * np.linalg.norm(point, axis=1)
        )
        return float(sizes.max()) * (self._d + 2) * 2.0**-53 * (1.0 + 2.0**-20)

    def _products(self, formula: Formula) -> Layers:
        """Return derivatives and entries as whole numbers, and entries times weights.

        A derivative is ``2^26 high + low`` units, ``0 <= low < 2^26``.
        """
        number, d, classes = self.rows.number, self._d, range(len(formula.slopes))
        found = {
            f"k{i}": f"CAST(floor({g} * {number(1.0 / self._unit)} + {number(0.5)}) AS BIGINT)"
            for i, g in enumerate(formula.slopes)
        }
        high = {f"high{i}": f"CAST(floor(k{i} * {number(2.0**-_LIMB)}) AS BIGINT)" for i in classes}
        low = {f"low{i}": f"k{i} - high{i} * {1 << _LIMB}" for i in classes}
        found |= {f"i{j}": f"CAST(x{j} AS BIGINT)" for j in range(d)}
        for (a, b), weight in formula.weights.items():
            found |= {f"y{a}_{b}_{j}": f"x{j} * {weight}" for j in range(d)}
        return [found, high, low]

    def _scores(self, formula: Formula) -> list[str]:
        places = [(i, j) for i in range(len(formula.slopes)) for j in range(self._d)]
        return [
            self.rows.wide_sum(f"{half}{i} * i{j}") for half in ("high", "low") for i, j in places
        ]

    def _near(self, formula: Formula) -> list[str]:
        return [f"SUM({name})" for name in formula.near.values()]

    def _places(self, formula: Formula) -> list[tuple[tuple[int, int], int, int]]:
        d = self._d
        return [(pair, i, j) for pair in formula.weights for i in range(d) for j in range(i, d)]

    def _grams(self, formula: Formula) -> list[str]:
        return [f"SUM(x{i} * y{a}_{b}_{j})" for (a, b), i, j in self._places(formula)]

    def _layered(self, layers: Layers) -> str:
        """Return nested queries, each with the names of those inside it and new ones."""
        # without a fence PostgreSQL computes a name as often as it is used
        fence = " OFFSET 0" if self.rows.engine == "postgres" else ""
        text = f"({self.rows.text}) AS rows_0"
        known: list[str] = []
        for number, layer in enumerate(layers):
            made = [f"{expression} AS {name}" for name, expression in layer.items()]
            text = f"(SELECT {', '.join([*known, *made])} FROM {text}{fence}) AS rows_{number + 1}"
            known += layer
        return text
