"""Python that draws what is on the screen, line by line."""

from __future__ import annotations

IMPORTS = ["import numpy as np", "", "import expmech as em"]


def statistic_lines(constructor: str, table: str) -> list[str]:
    """Return the lines that draw a statistic; ``epsilon`` and ``seed`` stand above them."""
    return [
        f"statistic = {constructor}",
        f"aggregate = ArrayRows({table}).aggregate(statistic.aggregation(epsilon))",
        'mechanism = statistic.mechanism(aggregate, epsilon, "unprotected")',
        "ready = mechanism.prepare(epsilon=epsilon, context=statistic.context)",
        "values = [ready.postprocessing.apply(value) for value in ready.sample(20, seed).values]",
    ]


def mechanism_lines(constructor: str) -> list[str]:
    """Return the lines that draw from a mechanism of its own."""
    return [
        f"mechanism = {constructor}",
        "values = list(mechanism.sample(epsilon=epsilon, size=20, seed=seed).values)",
    ]


def script(lines: list[str], *, epsilon: str, seed: int) -> str:
    """Return a script that prints twenty draws."""
    head = ["from fractions import Fraction", "", *IMPORTS]
    if any("statistics." in line for line in lines):
        head += [
            "from expmech.tables import statistics",
            "from expmech.tables.arrays import ArrayRows",
        ]
    body = [
        "",
        f'epsilon, seed = Fraction("{epsilon}"), {seed}',
        *lines,
        "for value in values:",
        "    print(value.tolist() if isinstance(value, np.ndarray) else value)",
    ]
    return "\n".join([*head, *body]) + "\n"
