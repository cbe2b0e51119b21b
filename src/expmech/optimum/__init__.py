"""Optima of perturbed objectives, drawn exactly."""

from expmech.optimum.calibration import Terms, calibrate
from expmech.optimum.draw import Lattice, draw_cells
from expmech.optimum.rows import Rows, prepare_rows

__all__ = ["Lattice", "Rows", "Terms", "calibrate", "draw_cells", "prepare_rows"]
