"""Public output lattices: bounded sets with counting measure, chosen without looking at data."""

from expmech.domains.balls import Ball, L1Ball, L2Ball
from expmech.domains.base import Cover, Domain, Grid, Indices, Region
from expmech.domains.box import Box
from expmech.domains.candidates import Candidates
from expmech.domains.product import Choice, Product
from expmech.domains.registry import DOMAINS, rebuild_domain
from expmech.domains.simplex import Simplex

__all__ = [
    "DOMAINS",
    "Ball",
    "Box",
    "Candidates",
    "Choice",
    "Cover",
    "Domain",
    "Grid",
    "Indices",
    "L1Ball",
    "L2Ball",
    "Product",
    "Region",
    "Simplex",
    "rebuild_domain",
]
