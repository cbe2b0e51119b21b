"""Many quantiles at once: levels, ranks, tables and the exact draw from them."""

from expmech.quantiles.draw import JointDraw
from expmech.quantiles.levels import Levels, parse_levels
from expmech.quantiles.ranks import RankGroups, cells_of, groups_from_cells, groups_from_counts
from expmech.quantiles.tables import Tables

__all__ = [
    "JointDraw",
    "Levels",
    "RankGroups",
    "Tables",
    "cells_of",
    "groups_from_cells",
    "groups_from_counts",
    "parse_levels",
]
