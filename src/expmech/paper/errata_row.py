"""What a row of the errata says."""

from __future__ import annotations

from dataclasses import dataclass

Facts = dict[str, float]
"""The computed numbers behind a row."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A claim of the paper, what is printed, what was measured, what is right.

    Rows on privacy carry two epsilons.
    """

    claim: str
    printed: str
    measured: str
    corrected: str
    sentence: str
    claimed_epsilon: str = ""
    realised_epsilon: str = ""
