"""What a running time may tell, and what a caller requires of it."""

from __future__ import annotations

from dataclasses import dataclass

CONSTANT, DATA_INDEPENDENT, DATA_DEPENDENT = "constant", "data-independent", "data-dependent"
"""Timing classes: the number of proposals is fixed; random with a public law; or its law depends
on the data."""

AUTO, UNPROTECTED = "auto", "unprotected"


TIMINGS = (AUTO, UNPROTECTED, CONSTANT)
"""What may be request of the running time: a number of loss evaluations that is fixed beforehand
where that is cheap; nothing; or such a number whatever it costs."""


@dataclass(frozen=True, kw_only=True)
class TimingRequirement:
    """What a caller requires of the running time: what it may tell, and how long it may take."""

    timing: str = UNPROTECTED
    budget_seconds: float | None = None
