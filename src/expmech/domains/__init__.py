"""Public output lattices: bounded sets with counting measure, chosen without looking at data."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
    from expmech.domains.base import Domain, Grid, Indices, Region
    from expmech.domains.lists import Candidates, Product
    from expmech.domains.regions import Box, L1Ball, L2Ball, Multiples, Simplex
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
    "Multiples",
    "Product",
    "Region",
    "Simplex",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "base": "Domain Grid Indices Region",
        "lists": "Candidates Product",
        "regions": "Box L1Ball L2Ball Multiples Simplex",
        "registry": "DOMAINS",
    },
)
