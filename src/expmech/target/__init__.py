"""From a loss, a sensitivity and a domain to integer energies at a given epsilon."""

from expmech.target.calibration import ENERGY_CAP, Calibration, calibrate, validate_epsilon
from expmech.target.measure import SMALL_TABLE, BaseMeasure
from expmech.target.problem import Problem, make_problem
from expmech.target.slopes import LEAST_SLOPE, Energies, IntegerSlopes
from expmech.target.target import ENERGY_ROUNDING, TABLE_LIMIT, Target, make_target

__all__ = [
    "ENERGY_CAP",
    "ENERGY_ROUNDING",
    "LEAST_SLOPE",
    "SMALL_TABLE",
    "TABLE_LIMIT",
    "BaseMeasure",
    "Calibration",
    "Energies",
    "IntegerSlopes",
    "Problem",
    "Target",
    "calibrate",
    "make_problem",
    "make_target",
    "validate_epsilon",
]
