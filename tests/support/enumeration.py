"""What tests of exact laws use of the library's enumeration."""

from __future__ import annotations

from expmech.auditing.chain_law import ChainLaw, Transitions, lattice_point, law_after
from expmech.auditing.enumeration import (
    EnumeratingCoins,
    largest_log_ratio,
    law_of,
    outcomes,
    total_variation,
)

__all__ = [
    "ChainLaw",
    "EnumeratingCoins",
    "Transitions",
    "largest_log_ratio",
    "lattice_point",
    "law_after",
    "law_of",
    "outcomes",
    "total_variation",
]
