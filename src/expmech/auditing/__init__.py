"""Audits: is a mechanism what it claims? By betting on draws, or exactly by enumeration."""

from expmech.auditing import neighbours
from expmech.auditing.audit import Claim, Report, Witness, audit, replay
from expmech.auditing.chain_law import ChainLaw
from expmech.auditing.enumeration import (
    EnumeratingCoins,
    largest_log_ratio,
    law_of,
    outcomes,
    total_variation,
)
from expmech.auditing.events import read_event
from expmech.auditing.exact import Enumerated, enumerate_law, exact_epsilon
from expmech.auditing.laboratory import Laboratory, laboratory
from expmech.auditing.neighbours import Pair, counted, timed

__all__ = [
    "ChainLaw",
    "Claim",
    "Enumerated",
    "EnumeratingCoins",
    "Laboratory",
    "Pair",
    "Report",
    "Witness",
    "audit",
    "counted",
    "enumerate_law",
    "exact_epsilon",
    "laboratory",
    "largest_log_ratio",
    "law_of",
    "neighbours",
    "outcomes",
    "read_event",
    "replay",
    "timed",
    "total_variation",
]
