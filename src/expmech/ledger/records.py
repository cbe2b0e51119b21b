"""What a ledger holds: entries, charges, and the error it refuses with."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from expmech.errors import ExpmechError
from expmech.ledger.limits import Amount


class LedgerError(ExpmechError, ValueError):
    """The ledger refused: exhausted, of another data set, or not a ledger."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one release of several charges.

    ``groups`` are disjoint parts of the table that are released at this cost together. ``run``
    names the plan that the release belongs to and its place there.
    """

    epsilon: object
    delta: object = 0
    statement: str = ""
    certificate: str = ""
    adjacency: str | None = None
    groups: tuple[str, ...] = ()
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One entry of a ledger.

    ``parallel`` lists the disjoint groups a parallel charge covers (empty for an ordinary one);
    ``certificate`` is JSON text; ``rho`` is what it adds under concentrated composition;
    ``adjacency`` is empty where the charge did not say, and ``run`` where it was of no plan.
    """

    number: int
    time: str
    epsilon: Fraction
    delta: Fraction
    statement: str
    parallel: tuple[str, ...]
    certificate: str
    rho: Fraction
    adjacency: str
    run: str

    @property
    def amount(self) -> Amount:
        """What it adds to what was spent."""
        return Amount(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
