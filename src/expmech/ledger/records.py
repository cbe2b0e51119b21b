"""What a ledger holds: entries, charges, and the error it refuses with."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.errors import ExpmechError


class LedgerError(ExpmechError, ValueError):
    """The ledger refused: exhausted, of another data set, or not a ledger."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one release of several charges."""

    epsilon: object
    delta: object = 0
    statement: str = ""
    certificate: str = ""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One entry of a ledger.

    ``parallel`` lists the disjoint groups a parallel charge covers (empty for an ordinary one);
    ``certificate`` is JSON text.
    """

    number: int
    time: str
    epsilon: Fraction
    delta: Fraction
    statement: str
    parallel: tuple[str, ...]
    certificate: str
