"""The privacy budget of one data set, in a file that cannot be overspent."""

from expmech.ledger.amounts import Amount, Limits, exact_amount
from expmech.ledger.entries import Charge, Entry, LedgerError
from expmech.ledger.ledger import Ledger

__all__ = ["Amount", "Charge", "Entry", "Ledger", "LedgerError", "Limits", "exact_amount"]
