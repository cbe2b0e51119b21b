"""What a ledger promises and what is left of it, in words for a person."""

from __future__ import annotations

from fractions import Fraction

from expmech.adjacency import Adjacency, unit_of
from expmech.ledger import Amount, Ledger, show_amount
from expmech.theory.concentrated import BOUNDED_RANGE

_KINDS = 3  # the latest different releases that are spoken of
_USUAL = Fraction(1, 10)


def promise(ledger: Ledger) -> str:
    """Return the guarantee of all releases together, in a line."""
    return f"{neighbours(ledger.adjacency)}; {ledger.limits.composition} composition"


def neighbours(adjacency: str) -> str:
    """Return what an observer cannot tell, in words."""
    unit = unit_of(adjacency)
    if unit is not None:
        return f"one {unit} added or removed with all its rows"
    if adjacency in list(Adjacency):
        return Adjacency(adjacency).promise
    return "the neighbours that the first release names"


def left_in_words(ledger: Ledger) -> list[str]:
    """Return how many more of the latest releases there can be, or of a usual one."""
    kinds: dict[tuple[str, Fraction], Amount] = {}
    for charge in reversed(ledger.history()):
        kinds.setdefault((charge.statement or "a release", charge.epsilon), charge.amount)
    if not kinds:
        factor = BOUNDED_RANGE if ledger.wants_bounded_range else Fraction(1, 2)
        usual = Amount(epsilon=_USUAL, rho=factor * _USUAL**2)
        kinds = {("a quantile, say", _USUAL): usual}
    sentences = []
    for (statement, epsilon), amount in list(kinds.items())[:_KINDS]:
        sentences.append(_left(statement, show_amount(epsilon), ledger.times(amount)))
    return sentences


def _left(statement: str, epsilon: str, times: int) -> str:
    if times == 0:
        return f"Nothing is left for: {statement}, at {epsilon}."
    often = "once more" if times == 1 else f"about {times} times more"
    return f"What is left is enough for: {statement}, at {epsilon}, {often}."
