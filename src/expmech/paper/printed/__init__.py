"""The paper's algorithms as printed, for studies only.

They draw from a seeded stream and can be audited by enumeration. They are not samplers of the
library: they have no ``prepare``, so no release, certificate or plan accepts them.
"""

from expmech.paper.printed.algorithms import (
    PrintedConfAtomPerfect,
    PrintedRandomAtomPerfect,
    PrintedRuntimePerfect,
    ReadConfAtomPerfect,
)
from expmech.paper.printed.cost import (
    expected_flips,
    expected_proposals_corrected,
    expected_proposals_printed,
    expected_steps_direct,
)
from expmech.paper.printed.kernel import READINGS, PrintedKernel

__all__ = [
    "READINGS",
    "PrintedConfAtomPerfect",
    "PrintedKernel",
    "PrintedRandomAtomPerfect",
    "PrintedRuntimePerfect",
    "ReadConfAtomPerfect",
    "expected_flips",
    "expected_proposals_corrected",
    "expected_proposals_printed",
    "expected_steps_direct",
]
