"""Exact random decisions from fair bits."""

from expmech.core.coins.exact import (
    UNIT,
    UNITS_PER_NAT,
    Coins,
    bernoulli_between,
    cached_parts,
    exp_evenly,
)
from expmech.core.coins.factory import FactoryState, LinearFactory
from expmech.core.coins.laws import draw_discrete_gaussian, gaussian_mass, propose_cube_laplace
from expmech.core.coins.reals import ExponentialReals, LaplaceReals, RevealedNormals, UniformReals
from expmech.core.coins.table import ConstantTimeTable, ExponentialTable

__all__ = [
    "UNIT",
    "UNITS_PER_NAT",
    "Coins",
    "ConstantTimeTable",
    "ExponentialReals",
    "ExponentialTable",
    "FactoryState",
    "LaplaceReals",
    "LinearFactory",
    "RevealedNormals",
    "UniformReals",
    "bernoulli_between",
    "cached_parts",
    "draw_discrete_gaussian",
    "exp_evenly",
    "gaussian_mass",
    "propose_cube_laplace",
]
