"""Public output lattices: bounded sets with counting measure, chosen without looking at data."""

from expmech.domains.base import Cover, Domain, Grid, Indices, Region
from expmech.domains.lists import Candidates, Choice, Product
from expmech.domains.regions import (
    Ball,
    Box,
    L1Ball,
    L2Ball,
    Multiples,
    Simplex,
    cells_of,
    lattice_of,
    line_of,
)
from expmech.domains.registry import DOMAINS, rebuild_domain

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
    "Multiples",
    "Product",
    "Region",
    "Simplex",
    "cells_of",
    "lattice_of",
    "line_of",
    "rebuild_domain",
]
