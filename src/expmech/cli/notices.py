"""What a command says on standard error about a release, from public quantities."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from expmech.cli.common import complaints, warn
from expmech.release import Certificate
from expmech.release.progress import LONG, announcement
from expmech.samplers.base import DATA_DEPENDENT
from expmech.statistics import Settled


def announce(settled: Settled) -> None:
    """Say that a draw takes long where no bar is shown; the forecast is public."""
    seconds = settled.public.seconds
    if seconds >= LONG and not complaints.is_terminal:
        complaints.print(announcement(seconds), markup=False)


def warn_of(certificates: Sequence[Certificate], spent: Fraction, whom: str = "row") -> None:
    """Warn of an epsilon that hardly protects, and of a running time that tells.

    ``spent`` is that of all, and of all rows of a person where people have several.
    """
    epsilon = float(spent)
    if epsilon > 10.0:
        warn(
            f"epsilon = {epsilon:g} is above 10: what an observer can learn about one {whom} is"
            f" bounded only by a factor of e^{epsilon:g}, which is hardly a protection."
        )
    if any(one.timing == DATA_DEPENDENT for one in certificates):
        warn(
            "the running time depends on the data: do not let anyone outside measure how long this"
            " took."
        )
