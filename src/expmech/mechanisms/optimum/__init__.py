"""Optima of perturbed objectives, drawn exactly."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
    from expmech.mechanisms.optimum.calibration import (
        OptimumTerms,
        RegressionSettings,
        RowNorms,
        calibrate,
    )
    from expmech.mechanisms.optimum.draw import ArrayTable, Lattice, Table, draw_cells
    from expmech.mechanisms.optimum.rows import RegressionRows, prepare_rows
    from expmech.mechanisms.optimum.steps import LazyRows

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

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "calibration": "OptimumTerms RegressionSettings RowNorms calibrate",
        "draw": "ArrayTable Lattice Table draw_cells",
        "rows": "RegressionRows prepare_rows",
        "steps": "LazyRows",
    },
)
