"""A plan: every sampler beside the others, what it guarantees, costs, or why it does not apply.

Everything here is public, so a plan may be printed. Theory page: docs/theory/plan.md.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from expmech.certificates.card import text_rows
from expmech.certificates.forecast import Forecast
from expmech.core.markup import card, labelled, number_text, unfolded, values_table

if TYPE_CHECKING:
    from expmech.exponential.samplers.base import Sampler


@dataclass(frozen=True, kw_only=True)
class Option:
    """One sampler in a plan: its guarantee, timing class and cost, or why it does not apply.

    Parameters
    ----------
    name : str
        The sampler, with its envelope or kernel.
    sampler : Sampler or None
        The sampler itself; None for a mechanism that draws by itself.
    delta : float
        0 for a pure guarantee.
    timing : str
        Timing class: "constant", "data-independent" or "data-dependent".
    forecast : Forecast or None
        Loss evaluations per draw; None where the sampler does not apply.
    reason : str or None
        Why it does not apply.
    seconds : float, default inf
        About how long a draw takes by a public table, the same on every machine.

    Examples
    --------
    >>> import expmech as em
    >>> mechanism = em.PermuteAndFlip.from_scores([3, 5, 4], sensitivity=1)
    >>> (option,) = mechanism.plan(1.0).options
    >>> option.name, option.timing, option.delta
    ('PermuteAndFlip', 'constant', 0.0)
    """

    name: str
    sampler: Sampler | None
    delta: float
    timing: str
    forecast: Forecast | None
    reason: str | None
    seconds: float = math.inf

    @property
    def applies(self) -> bool:
        """Whether the sampler can serve the problem at all."""
        return self.forecast is not None

    @property
    def typical(self) -> float:
        """Evaluations on usual data; infinite where the sampler does not apply."""
        return math.inf if self.forecast is None else self.forecast.typical

    @property
    def rank(self) -> float:
        """What options are ranked by; infinite where the sampler does not apply."""
        return math.inf if self.forecast is None else self.forecast.rank

    def describe(self) -> dict[str, Any]:
        """Return the option as plain values."""
        record = {
            "name": self.name,
            "delta": self.delta,
            "timing": self.timing,
            "applies": self.forecast is not None,
        }
        if self.forecast is None:
            return record | {"reason": self.reason}
        cost = self.forecast
        return record | {
            "typical": _finite((cost.typical,))[0],
            "expected": _finite(cost.expected),
            "nearly_all": _finite(cost.nearly_all),
            "seconds": _finite((self.seconds,))[0],
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What each sampler would guarantee and cost for one problem at one epsilon.

    It is public: it does not depend on the data.

    Parameters
    ----------
    epsilon : float
        The budget.
    options : tuple of Option
        Every sampler, with its cost or the reason why it does not apply.
    chosen : str or None
        The name of the option that sampler="auto" takes; None where it refuses.
    refusal : str or None
        Why "auto" refuses.
    excess_loss : tuple of float, or None
        Bounds on how much the loss of a draw exceeds the least one: its mean, and what 95% of draws
        stay below. They hold for every sampler whose law is the mechanism's; None where nothing
        public bounds it.
    saturates_at : float or None
        The loss from which on the law is flat, where nothing public bounds the least loss: a data
        set whose least loss is above it gets a uniform answer.
    note : str, optional
        A sentence about the method.
    error : float, optional
        How far a number is from the truth in 95% of releases, at most, where public quantities
        tell.
    ranks : float, optional
        How many ranks each value is from the true quantile in 95% of releases, for quantiles.
    shortfall : str, optional
        What an excess of the loss means for a choice: a sentence with a place for the number.
    shown_from : int, optional
        The size from which a group is shown in 95% of releases, where groups are not listed.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([0.2, 0.4, 0.9])
    >>> mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> mechanism.plan(1.0).chosen
    'ConfAtomAndRuntimePerfect, constant'
    """

    epsilon: float
    options: tuple[Option, ...]
    chosen: str | None
    refusal: str | None
    excess_loss: tuple[float, float] | None
    saturates_at: float | None
    note: str | None = None
    error: float | None = None
    ranks: float | None = None
    shortfall: str | None = None
    shown_from: int | None = None

    @property
    def recommended(self) -> Option | None:
        """The option `auto` takes; None where it refuses."""
        return next((option for option in self.options if option.name == self.chosen), None)

    def describe(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "epsilon": self.epsilon,
            "chosen": self.chosen,
            "refusal": self.refusal,
            "excess_loss": (
                None
                if self.excess_loss is None
                else {"mean": self.excess_loss[0], "nearly_all": self.excess_loss[1]}
            ),
            "saturates_at": self.saturates_at,
            "error": self.error,
            "ranks": self.ranks,
            "shown_from": self.shown_from,
            "note": self.note,
            "options": [option.describe() for option in self.options],
        }

    def __str__(self) -> str:
        """Return the method that will be used and its expected error."""
        return "\n".join([self._title, *text_rows(self._rows())])

    def in_full(self) -> str:
        """Return the same, then a table of every method and why others do not apply."""
        lines = [str(self), ""]
        rows = self._table()
        widths = [max(len(row[j]) for row in rows) for j in range(len(_HEADS))]
        for row in rows:
            mark = "*" if row[0] == self.chosen else " "
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(f"{mark} {'  '.join(cells).rstrip()}")
        if self.chosen:
            lines += ["", "The star marks the method that will be used."]
        unfit = self._unfit()
        if unfit:
            lines += ["", "Does not apply:"]
            for name, reason in unfit:
                lines += textwrap.wrap(
                    f"{name}: {reason}", width=110, initial_indent="  ", subsequent_indent="    "
                )
        return "\n".join(lines)

    @property
    def expected_error(self) -> str | None:
        """How far a release is from the truth, in a few words; None where nothing public tells."""
        if self.ranks is not None:
            return f"within {_in_ranks(self.ranks)} of the true quantile"
        if self.shown_from is not None:
            return f"groups of {number_text(self.shown_from)} rows and more are shown"
        if self.error is not None:
            return f"within {number_text(self.error, digits=3)} of the exact value"
        if self.excess_loss is not None and self.shortfall is not None:
            return self.shortfall.format(self.excess_loss[1])
        if self.excess_loss is not None:
            return f"loss at most {number_text(self.excess_loss[1], digits=3)} above the least"
        return None

    @property
    def _title(self) -> str:
        return f"Plan at epsilon = {self.epsilon:g} (public: it does not depend on the data)"

    def _rows(self) -> list[tuple[str, str]]:
        """Return method, expected error and what else a reader should know, by their labels."""
        option = self.recommended
        rows = [("refused", f"auto refuses: {self.refusal}")]
        if option is not None:
            pure = f", delta = {option.delta:.1g}" if option.delta else ""
            time = show_seconds(option.seconds)
            rows = [("method", f"{option.name}{pure}; {option.timing} time, about {time}")]
        error = self.expected_error
        if error is not None:
            rows.append(("error", f"{error}, in 95% of releases"))
        else:
            rows.append(("error", "not known before the release: no public number bounds it"))
        if self.error is not None:
            rows.append(("", "exact value: computed from the rows as they are read and clipped"))
        if self.ranks is not None:
            rows.append(("", "where values lie about evenly around it or are tied; more in a gap"))
        if self.excess_loss is not None and self.ranks is None and self.shortfall is None:
            mean = number_text(self.excess_loss[0], digits=3)
            rows.append(("", f"on average the loss is at most {mean} above the least one"))
        if self.saturates_at is not None and self.ranks is None:  # some rank is always near
            rows.append(
                (
                    "caution",
                    f"energies saturate: losses from {self.saturates_at:.3g} up are not told apart."
                    " Where the least loss is above that, every answer is equally likely: declare"
                    " `bound`",
                )
            )
        if self.note is not None:
            rows.append(("note", self.note))
        return rows

    def _table(self) -> list[tuple[str, ...]]:
        rows = (_option_row(option) for option in self.options)
        return [_HEADS, *(row for row in rows if row is not None)]

    def _unfit(self) -> list[tuple[str, str]]:
        """Return the methods that do not apply, each with its reason."""
        return [(each.name, str(each.reason)) for each in self.options if not each.applies]

    def _repr_html_(self) -> str:
        """Return the plan for a notebook; the other methods are folded."""
        heads, *rows = self._table()
        others = values_table(heads, rows) + labelled(self._unfit())
        return card(self._title, self._rows(), after=unfolded("Every method", others))


_HEADS = (
    *("sampler", "delta", "timing", "evaluations: typical", "mean, best to worst", "99% below"),
    "time, about",
)


def _option_row(option: Option) -> tuple[str, ...] | None:
    """Return the cells of an option's line in a table; None where it does not apply."""
    if option.forecast is None:
        return None
    delta = f"{option.delta:.1g}" if option.delta else "0"
    expected, nearly_all = (
        _interval(pair) for pair in (option.forecast.expected, option.forecast.nearly_all)
    )
    typical = option.forecast.typical
    shown = "unknown" if typical == math.inf else show_number(typical)
    time = show_seconds(option.seconds)
    return option.name, delta, option.timing, shown, expected, nearly_all, time


def _interval(pair: tuple[float, float | None]) -> str:
    low, high = pair
    if high is None:
        return f"{show_number(low)} to no public bound"
    least, most = show_number(low), show_number(high)
    return least if least == most else f"{least} to {most}"


def show_number(value: float) -> str:
    """Return a number as a table shows it."""
    if math.isinf(value):
        return "over 1e300"
    return f"{value:.3g}" if value < 1000 or value >= 1e6 else f"{value:.0f}"


def show_seconds(seconds: float) -> str:
    """Return a time as a table shows it, with the unit that suits it."""
    if math.isinf(seconds):
        return "unknown"
    units = (("years", 3.156e7), ("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
    unit, size = next((pair for pair in units if seconds >= pair[1]), ("ms", 1e-3))
    many = seconds / size
    return f"{many:.2g} {unit}" if many < 100 else f"{show_number(round(many))} {unit}"


def _finite(numbers: tuple[float | None, ...]) -> list[float | None]:
    """Return numbers for JSON, which has no infinity.

    None stands for no bound and for numbers beyond 1e300.
    """
    return [None if number is None or math.isinf(number) else number for number in numbers]


def _in_ranks(ranks: float) -> str:
    number = math.ceil(ranks)
    return f"{number_text(number)} {'rank' if number == 1 else 'ranks'}"


def within_ranks(ranks: float) -> str:
    """Say how near quantiles are to the true ones."""
    return (
        f"With 95% probability each answer is within {_in_ranks(ranks)} of the true quantile, if"
        " the values near it lie about evenly or are tied; beside a wide gap it may be more. Each"
        " value counts as the possible answer nearest to it."
    )


def over_budget(name: str, seconds: float, budget_seconds: float) -> str:
    """Say what a draw would take, and what would help."""
    if math.isinf(seconds):
        would = "nothing public bounds how long it takes"
    else:
        would = f"it would take about {show_seconds(seconds)} by a public forecast"
    return (
        f"refuses {name} within budget_seconds={budget_seconds:g}: {would}. A larger"
        " budget_seconds runs it; a lower epsilon, fewer rows or columns, a smaller or coarser"
        " domain, or a loss that declares its `growth`, `lipschitz` or `bound` may make it cheaper."
    )
