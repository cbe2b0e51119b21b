"""Exact samplers, one signature for all.

``prepare(target)`` gives a chain, ``run`` drives it to its draws.
"""

from expmech.samplers.base import Chain, Draws, Sampler, run
from expmech.samplers.box_tree import BoxTree
from expmech.samplers.conf_atom import ConfAtomPerfect
from expmech.samplers.metropolis import Metropolis
from expmech.samplers.plan import Option, Plan, choose_sampler, make_plan
from expmech.samplers.random_atom import RandomAtomPerfect
from expmech.samplers.registry import SAMPLERS
from expmech.samplers.rejection import Rejection
from expmech.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.samplers.separable import Separable
from expmech.samplers.tabulated import Tabulated

__all__ = [
    "SAMPLERS",
    "BoxTree",
    "Chain",
    "ConfAtomAndRuntimePerfect",
    "ConfAtomPerfect",
    "Draws",
    "Metropolis",
    "Option",
    "Plan",
    "RandomAtomPerfect",
    "Rejection",
    "Sampler",
    "Separable",
    "Tabulated",
    "choose_sampler",
    "make_plan",
    "run",
]
