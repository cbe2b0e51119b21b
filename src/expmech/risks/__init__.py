"""Convex risks of a row, by their first two derivatives."""

from expmech.risks.base import Risk
from expmech.risks.custom import Custom
from expmech.risks.known import RISKS, rebuild_risk
from expmech.risks.ramps import Huber, SmoothedHinge, SmoothedPinball
from expmech.risks.smooth import Logistic, Softmax

__all__ = [
    "RISKS",
    "Custom",
    "Huber",
    "Logistic",
    "Risk",
    "SmoothedHinge",
    "SmoothedPinball",
    "Softmax",
    "rebuild_risk",
]
