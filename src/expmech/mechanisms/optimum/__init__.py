"""Optima of perturbed objectives, drawn exactly."""

from expmech.mechanisms.optimum.calibration import (
    OptimumTerms,
    RegressionSettings,
    RowNorms,
    calibrate,
)
from expmech.mechanisms.optimum.draw import ArrayTable, Lattice, Table, draw_cells
from expmech.mechanisms.optimum.rows import LazyRows, RegressionRows, prepare_rows

__all__ = [
    "ArrayTable",
    "Lattice",
    "LazyRows",
    "OptimumTerms",
    "RegressionRows",
    "RegressionSettings",
    "RowNorms",
    "Table",
    "calibrate",
    "draw_cells",
    "prepare_rows",
]
