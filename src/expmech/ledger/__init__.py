"""The privacy budget of one data set, in a file that cannot be overspent."""

from expmech.ledger.amounts import Amount, Limits, exact_amount, show_amount
from expmech.ledger.entries import Charge, Entry, LedgerError
from expmech.ledger.ledger import Ledger
from expmech.ledger.outbox import SINGLE, charges_noted

__all__ = [
    "SINGLE",
    "Amount",
    "Charge",
    "Entry",
    "Ledger",
    "LedgerError",
    "Limits",
    "charges_noted",
    "exact_amount",
    "show_amount",
]
