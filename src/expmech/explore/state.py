"""What is on the screen, all of it in the address: a link shows the same picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from expmech.core.errors import ParameterError, validate_choice, validate_integer
from expmech.explore.questions import QUESTIONS, Question, Setting
from expmech.explore.questions.base import QuestionState
from expmech.ledger import exact_amount
from expmech.ledger.amounts import show_amount

OWNER = "the page"
WHOLE = {
    "data": Setting(low=0, high=9999, start=7),
    "seed": Setting(low=0, high=9999, start=1),
    "prior": Setting(low=1, high=99, start=50),
    "releases": Setting(low=1, high=1000, start=50),
    "failure": Setting(low=3, high=12, start=6),
    "people": Setting(low=2, high=30, start=10),
}
"""Whole numbers that no question changes: seeds, the attacker's prior in percent, the composition
of many releases with its delta of ten to minus ``failure``, and the rows of the paper's chain."""

DECIMAL = {
    "epsilon": (Fraction(1, 100), Fraction(100), Fraction(1)),
    "weight": (Fraction(1, 20), Fraction(19, 20), Fraction(1, 2)),
    "pace": (Fraction(1, 10), Fraction(4), Fraction(1)),
}
"""Decimals: least, greatest and first value. ``weight`` and ``pace`` are k and alpha of the paper's
chain, alpha as a multiple of n epsilon / 2."""

_FURTHEST = 1e6  # bounds on the bounds


@dataclass(frozen=True, kw_only=True)
class State(QuestionState):
    """Every control of the page."""

    seed: int
    prior: int
    releases: int
    failure: int
    people: int
    weight: Fraction
    pace: Fraction

    @property
    def chosen_question(self) -> Question:
        """The question that ``question`` names."""
        return QUESTIONS[self.question]

    def settings(self) -> dict[str, str]:
        """Return every control as text, in the order of the address."""
        return {name: _text(getattr(self, name)) for name in self.__dataclass_fields__}

    def address(self) -> str:
        """Return the part of a link after the question mark."""
        return urlencode(self.settings())


def read_state(texts: Mapping[str, str]) -> State:
    """Read the controls from an address; what is left out has the question's own first value.

    Examples
    --------
    >>> read_state({"question": "mean", "epsilon": "0.5"}).rows
    400
    """
    unknown = sorted(set(texts) - set(State.__dataclass_fields__))
    if unknown:
        raise ParameterError(
            f"`{unknown[0][:40]}` is no setting of {OWNER}; they are"
            f" {', '.join(State.__dataclass_fields__)}."
        )
    question = _read_choice(texts, "question", tuple(QUESTIONS))
    chosen = QUESTIONS[question]
    lower, upper = _bounds(texts, chosen)
    whole = WHOLE | {"rows": chosen.rows, "size": chosen.size}
    numbers: dict[str, Any] = {
        name: _read_integer(texts, name, setting) for name, setting in whole.items()
    }
    numbers |= {name: _read_decimal(texts, name) for name in DECIMAL}
    return State(
        question=question,
        method=_read_choice(texts, "method", tuple(chosen.methods)),
        lower=lower,
        upper=upper,
        **numbers,
    )


def _read_choice(texts: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    return validate_choice(texts.get(name, choices[0]), name=name, owner=OWNER, choices=choices)


def _read_integer(texts: Mapping[str, str], name: str, setting: Setting) -> int:
    text = texts.get(name, str(setting.start))
    number: Any = int(text) if text.isdecimal() and len(text) < 10 else text[:40]
    return validate_integer(number, name=name, owner=OWNER, low=setting.low, high=setting.high)


def _read_decimal(texts: Mapping[str, str], name: str) -> Fraction:
    low, high, start = DECIMAL[name]
    amount = exact_amount(texts.get(name, start), name=name, owner=OWNER)
    if not low <= amount <= high:
        raise ParameterError(
            f"`{name}` of {OWNER} must be between {show_amount(low)} and {show_amount(high)}; got"
            f" {show_amount(amount)}."
        )
    return amount


def _bounds(texts: Mapping[str, str], chosen: Question) -> tuple[float, float]:
    """Return the public bounds; those of a question that has its own cannot be moved."""
    if chosen.fixed_bounds and not {"lower", "upper"} & set(texts):
        return chosen.bounds
    ends = []
    for name, start in zip(("lower", "upper"), chosen.bounds, strict=True):
        text = texts.get(name, str(start))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not abs(number) <= _FURTHEST:
            raise ParameterError(
                f"`{name}` of {OWNER} must be a number of at most a million; got {text[:40]}."
            )
        ends.append(number)
    lower, upper = ends
    if chosen.fixed_bounds and (lower, upper) != chosen.bounds:
        raise ParameterError(f"the bounds of {chosen.label!r} are fixed: leave them out.")
    if not upper - lower >= 1e-3:
        raise ParameterError(
            f"`upper` of {OWNER} must be above `lower` by a thousandth at least; got {lower:g} and"
            f" {upper:g}."
        )
    return lower, upper


def _text(value: Any) -> str:
    if isinstance(value, Fraction):
        return show_amount(value)
    return f"{value:.12g}" if isinstance(value, float) else str(value)
