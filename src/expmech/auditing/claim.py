"""What is claimed of a mechanism, and what an audit reports."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from expmech.errors import validate_nonnegative


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The claim that neighbours have ``P(S) <= e^epsilon Q(S) + delta`` for every event S.

    Examples
    --------
    >>> Claim(epsilon=1.0)
    Claim(epsilon=1.0, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        validate_nonnegative(self.epsilon, name="epsilon", owner="Claim")
        validate_nonnegative(self.delta, name="delta", owner="Claim")


@dataclass(frozen=True, kw_only=True)
class Witness:
    """Two data sets and an event that tell them apart, with what was counted.

    ``likely`` of ``draws`` outputs on the first data set were in the event, and ``unlikely`` of as
    many on the second. They were drawn after the event was chosen. Data sets and event are as JSON
    holds them, so that the count can be repeated.
    """

    pair: str
    first: Any
    second: Any
    event: dict[str, Any]
    draws: int
    likely: int
    unlikely: int

    def __str__(self) -> str:
        return (
            f"{self.pair}: {self.event['text']} in {self.likely} of {self.draws} draws, and in"
            f" {self.unlikely} of {self.draws} on the neighbour"
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an audit found.

    ``epsilon_at_least`` is a lower bound on the epsilon of the mechanism that is wrong in at most
    ``1 - confidence`` of all audits, whenever they are stopped. ``refuted`` says that the claim
    was rejected at that confidence; a claim that was not refuted was not proved either.
    """

    claim: Claim
    refuted: bool
    epsilon_at_least: float
    confidence: float
    draws: int
    witness: Witness | None

    def to_json(self) -> str:
        """Return the report as JSON text, with its witness."""
        fields = {
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta},
            "refuted": self.refuted,
            "epsilon_at_least": self.epsilon_at_least,
            "confidence": self.confidence,
            "draws": self.draws,
            "witness": None if self.witness is None else vars(self.witness),
        }
        return json.dumps(fields, indent=2)

    def __str__(self) -> str:
        claimed = f"epsilon = {self.claim.epsilon:g}"
        if self.claim.delta:
            claimed += f", delta = {self.claim.delta:g}"
        verdict = "refuted" if self.refuted else "not refuted"
        sure = f"{100 * self.confidence:g}%"
        lines = [
            f"Claim {claimed}: {verdict}.",
            f"With {sure} confidence epsilon is at least {_down(self.epsilon_at_least)}"
            f" ({self.draws} draws on either side).",
        ]
        if self.witness is not None:
            lines.append(f"Witness: {self.witness}.")
        if not self.refuted:
            lines.append("That nothing was found is no proof: small violations stay unseen.")
        return "\n".join(lines)


def _down(bound: float) -> str:
    return f"{math.floor(bound * 100) / 100:g}"
