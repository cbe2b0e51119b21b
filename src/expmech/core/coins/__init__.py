"""Exact random decisions from fair bits."""

from expmech.core.coins.exact import UNIT, UNITS_PER_NAT, Coins, cached_parts
from expmech.core.coins.factory import FactoryState, LinearFactory
from expmech.core.coins.reals import RevealedNormals
from expmech.core.coins.table import ConstantTimeTable, ExponentialTable

__all__ = [
    "UNIT",
    "UNITS_PER_NAT",
    "Coins",
    "ConstantTimeTable",
    "ExponentialTable",
    "FactoryState",
    "LinearFactory",
    "RevealedNormals",
    "cached_parts",
]
