"""Audits: is a mechanism what it claims? By betting on draws, or exactly by enumeration."""

from expmech.auditing import neighbours
from expmech.auditing.audit import Claim, Report, audit, replay
from expmech.auditing.enumeration import largest_log_ratio, outcomes, total_variation
from expmech.auditing.exact import enumerate_law, exact_epsilon
from expmech.auditing.neighbours import Pair, counted, timed

__all__ = [
    "Claim",
    "Pair",
    "Report",
    "audit",
    "counted",
    "enumerate_law",
    "exact_epsilon",
    "largest_log_ratio",
    "neighbours",
    "outcomes",
    "replay",
    "timed",
    "total_variation",
]
