"""A row of the errata: what is claimed, how it is measured, and what is said about it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from expmech.paper.verdict import FALSE, HOLDS, Verdict

Facts = dict[str, float]
"""The computed numbers behind a row."""

Measure = Callable[[bool, list[int]], Facts]
"""Computes them: quick or not, and the row's own seed."""

FIELDS = (
    "claim",
    "printed",
    "measured",
    "corrected",
    "claimed epsilon",
    "realised epsilon",
    "sentence",
)


@dataclass(frozen=True)
class Erratum:
    """One difference between the paper and the specification.

    Parameters
    ----------
    title
        A few words.
    text
        A line for each of ``FIELDS``, "name: text" with the facts in braces (``{name}``, or
        ``{facts[name]}`` where a name has a dot); a line that begins with a space continues the
        one above. Only rows on privacy name two epsilons.
    measure
        Computes the facts.
    where
        Place of the claim in the paper.
    under
        The conditions under which it was measured.
    holds
        Says whether the facts bear the claim out.
    seconds
        Rough time of a full computation, for the progress bar.
    """

    title: str
    text: str
    measure: Measure
    where: str
    under: str
    holds: Callable[[Facts], bool]
    seconds: float = 0.5

    def describe(self, facts: Facts) -> dict[str, str]:
        """Return the text of each field with the facts filled in."""
        fields = dict.fromkeys(FIELDS, "")
        name = ""
        for line in textwrap.dedent(self.text).strip().splitlines():
            if line.startswith(" "):
                fields[name] += " " + line.strip()
                continue
            name, _, rest = line.partition(": ")
            fields[name] = rest.strip()
        return {name: text.format(facts=facts, **facts) for name, text in fields.items()}

    def judge(self, facts: Facts) -> Verdict:
        """Return the verdict on the claim."""
        text = self.describe(facts)
        return Verdict(
            sentence=text["claim"],
            where=self.where,
            under=self.under,
            verdict=HOLDS if self.holds(facts) else FALSE,
            number=f"printed: {text['printed']}; measured: {text['measured']}",
            command="expmech paper errata",
        )
