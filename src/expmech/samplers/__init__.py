"""Exact samplers, one signature for all.

``prepare(target)`` gives a chain, ``run`` drives it to its draws.
"""

from expmech.samplers.base import Check, Claimed, Sampler, Terms
from expmech.samplers.box_tree import BoxTree
from expmech.samplers.chain import Chain, Draws, run
from expmech.samplers.choose import TIMINGS, Wanted, choose_sampler, make_plan
from expmech.samplers.conf_atom import ConfAtomPerfect
from expmech.samplers.constant_mixture import ConstantMixture
from expmech.samplers.constant_tabulated import ConstantTabulated
from expmech.samplers.convergence import Ergodicity
from expmech.samplers.metropolis import Metropolis
from expmech.samplers.plan import Option, Plan, over_budget, plan_alone
from expmech.samplers.random_atom import RandomAtomPerfect
from expmech.samplers.registry import SAMPLERS, names, register, validate_sampler
from expmech.samplers.rejection import Rejection
from expmech.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.samplers.separable import Separable
from expmech.samplers.tabulated import Tabulated

__all__ = [
    "SAMPLERS",
    "TIMINGS",
    "BoxTree",
    "Chain",
    "Check",
    "Claimed",
    "ConfAtomAndRuntimePerfect",
    "ConfAtomPerfect",
    "ConstantMixture",
    "ConstantTabulated",
    "Draws",
    "Ergodicity",
    "Metropolis",
    "Option",
    "Plan",
    "RandomAtomPerfect",
    "Rejection",
    "Sampler",
    "Separable",
    "Tabulated",
    "Terms",
    "Wanted",
    "choose_sampler",
    "make_plan",
    "names",
    "over_budget",
    "plan_alone",
    "register",
    "run",
    "validate_sampler",
]
