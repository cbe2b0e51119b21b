"""Exact samplers, one signature for all.

``prepare(target)`` gives a chain, ``run`` drives it to its draws.
"""

from expmech.exponential.samplers.base import Sampler, SamplerClaims, SamplerTerms
from expmech.exponential.samplers.box_tree import BoxTree
from expmech.exponential.samplers.conf_atom import ConfAtomPerfect
from expmech.exponential.samplers.constant_mixture import ConstantMixture
from expmech.exponential.samplers.metropolis import Ergodicity, Metropolis
from expmech.exponential.samplers.random_atom import RandomAtomPerfect
from expmech.exponential.samplers.registry import SAMPLERS, register
from expmech.exponential.samplers.rejection import Rejection
from expmech.exponential.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.exponential.samplers.separable import Separable
from expmech.exponential.samplers.tabulated import ConstantTabulated, Tabulated

__all__ = [
    "SAMPLERS",
    "BoxTree",
    "ConfAtomAndRuntimePerfect",
    "ConfAtomPerfect",
    "ConstantMixture",
    "ConstantTabulated",
    "Ergodicity",
    "Metropolis",
    "RandomAtomPerfect",
    "Rejection",
    "Sampler",
    "SamplerClaims",
    "SamplerTerms",
    "Separable",
    "Tabulated",
    "register",
]
