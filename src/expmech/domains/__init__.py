"""Public output lattices: bounded sets with counting measure, chosen without looking at data."""

from expmech.domains.base import Domain, Grid, Indices, Region
from expmech.domains.lists import Candidates, Product
from expmech.domains.regions import Box, L1Ball, L2Ball, Simplex
from expmech.domains.registry import DOMAINS

__all__ = [
    "DOMAINS",
    "Box",
    "Candidates",
    "Domain",
    "Grid",
    "Indices",
    "L1Ball",
    "L2Ball",
    "Product",
    "Region",
    "Simplex",
]
