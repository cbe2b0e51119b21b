"""From a loss, a sensitivity and a domain to integer energies at a given epsilon."""

from expmech.exponential.target.calibration import COARSEST_UNIT, ENERGY_CAP, Calibration, calibrate
from expmech.exponential.target.measure import SMALL_TABLE, BaseMeasure
from expmech.exponential.target.problem import Problem, make_problem
from expmech.exponential.target.target import (
    ENERGY_ROUNDING,
    LEAST_SLOPE,
    LIST_LIMIT,
    TABLE_LIMIT,
    Energies,
    Target,
    make_target,
)

__all__ = [
    "COARSEST_UNIT",
    "ENERGY_CAP",
    "ENERGY_ROUNDING",
    "LEAST_SLOPE",
    "LIST_LIMIT",
    "SMALL_TABLE",
    "TABLE_LIMIT",
    "BaseMeasure",
    "Calibration",
    "Energies",
    "Problem",
    "Target",
    "calibrate",
    "make_problem",
    "make_target",
]
