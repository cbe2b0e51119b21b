"""Exact random decisions from fair bits."""

from expmech.coins.exact import UNIT, UNITS_PER_NAT, Coins
from expmech.coins.factory import FactoryState, LinearFactory
from expmech.coins.normals import RevealedNormals
from expmech.coins.steady import SteadyTable
from expmech.coins.table import ExponentialTable

__all__ = [
    "UNIT",
    "UNITS_PER_NAT",
    "Coins",
    "ExponentialTable",
    "FactoryState",
    "LinearFactory",
    "RevealedNormals",
    "SteadyTable",
]
