"""Optima of perturbed objectives, drawn exactly."""

from expmech.optimum.calibration import Terms, calibrate
from expmech.optimum.draw import Lattice, draw_cells
from expmech.optimum.rows import MadeRows, Rows, prepare_rows

__all__ = ["Lattice", "MadeRows", "Rows", "Terms", "calibrate", "draw_cells", "prepare_rows"]
