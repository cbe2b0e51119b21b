"""From a loss, a sensitivity and a domain to a calibrated problem."""

from expmech.mechanism import losses
from expmech.mechanism.calibration import Calibration, calibrate, validate_epsilon
from expmech.mechanism.facts import AffineForm, Curvature, Growth, IntegerForm
from expmech.mechanism.problem import Problem, make_problem

__all__ = [
    "AffineForm",
    "Calibration",
    "Curvature",
    "Growth",
    "IntegerForm",
    "Problem",
    "calibrate",
    "losses",
    "make_problem",
    "validate_epsilon",
]
