"""The privacy budget of one data set, in a file that cannot be overspent."""

from expmech.ledger.amounts import exact_amount, show_amount
from expmech.ledger.ledger import Ledger
from expmech.ledger.limits import Amount, Limits
from expmech.ledger.outbox import SINGLE, charges_noted
from expmech.ledger.records import Charge, Entry, LedgerError

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
