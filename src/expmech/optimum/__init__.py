"""Optima of perturbed objectives, drawn exactly."""

from expmech.optimum.calibration import Terms, calibrate
from expmech.optimum.draw import Lattice, draw_cells
from expmech.optimum.rows import MadeRows, Rows, prepare_rows
from expmech.optimum.tables import ArrayTable, Table

__all__ = [
    "ArrayTable",
    "Lattice",
    "MadeRows",
    "Rows",
    "Table",
    "Terms",
    "calibrate",
    "draw_cells",
    "prepare_rows",
]
