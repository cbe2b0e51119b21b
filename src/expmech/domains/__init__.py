"""Public output lattices: bounded sets with counting measure, chosen without looking at data."""

from expmech.domains.balls import Ball, L1Ball, L2Ball
from expmech.domains.base import Domain, Grid, Indices, Region
from expmech.domains.box import Box
from expmech.domains.candidates import Candidates
from expmech.domains.registry import DOMAINS, rebuild_domain
from expmech.domains.simplex import Simplex

__all__ = [
    "DOMAINS",
    "Ball",
    "Box",
    "Candidates",
    "Domain",
    "Grid",
    "Indices",
    "L1Ball",
    "L2Ball",
    "Region",
    "Simplex",
    "rebuild_domain",
]
