"""Why a ledger refuses a charge, in words; nothing is charged then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from expmech.ledger.amounts import show_amount
from expmech.ledger.limits import BASIC, CONCENTRATED, Amount, Limits
from expmech.ledger.records import Charge, LedgerError
from expmech.theory.concentrated import BOUNDED_RANGE

BOTH = "both"
"""What a ledger made before ledgers had an adjacency is under, once charged with either."""


def common_adjacency(charges: Sequence[Charge]) -> str:
    """Return the adjacency of charges: one, none yet (empty), or both."""
    found = sorted({charge.adjacency for charge in charges} - {""})
    return BOTH if len(found) > 1 else "".join(found)


def refuse_other(path: Path, held: str, asked: Sequence[str]) -> None:
    """Raise where a charge is private under another adjacency than the ledger counts."""
    if held == BOTH:
        raise LedgerError(
            f"The ledger {path} was made before ledgers had an adjacency and holds charges of both:"
            " their sum speaks of neither. Make a new one for what is to come. Nothing was charged."
        )
    for adjacency in asked:
        if held and adjacency and adjacency != held:
            raise LedgerError(
                f"The ledger {path} counts under {held} adjacency, and this release is private"
                f" under {adjacency}: their sum would speak of neither. Release under"
                f" {held}, or make a ledger for {adjacency}. Nothing was charged."
            )
        held = held or adjacency


def refuse_beyond(path: Path, limits: Limits, wanted: Amount, spent: Amount) -> None:
    """Raise, with what is left, where the budget does not allow what is wanted."""
    if limits.allows(spent + wanted):
        return
    if limits.composition == CONCENTRATED:
        raise LedgerError(_concentrated(path, limits, wanted, spent))
    left = limits.left(spent)
    name, amount, available, total = "epsilon", wanted.epsilon, left[0], limits.epsilon
    if wanted.epsilon <= left[0]:
        name, amount, available, total = "delta", wanted.delta, left[1], limits.delta
    raise LedgerError(
        f"The budget does not allow {name} = {show_amount(amount)}: {show_amount(available)} is"
        f" left of {show_amount(total)} in {path}. Nothing was charged."
    )


def _concentrated(path: Path, limits: Limits, wanted: Amount, spent: Amount) -> str:
    if wanted.delta:
        return (
            f"The delta of the ledger {path} pays for composition, so that a release cannot have"
            " one of its own: leave --delta out, or make a ledger with --composition"
            f" {BASIC}. Nothing was charged."
        )
    any_kind = show_amount(limits.left(spent)[0])
    bounded = show_amount(limits.left(spent, BOUNDED_RANGE)[0])
    return (
        f"The budget does not allow epsilon = {show_amount(wanted.epsilon)}: one more release may"
        f" have at most {bounded} if its range is bounded, and else {any_kind}, in {path}. Nothing"
        " was charged."
    )
