"""Built-in losses.

Order-stable, with a proved error, sensitivity, growth and Lipschitz constants.
"""

from expmech.losses.logistic import LogisticRisk
from expmech.losses.mean import L1Mean
from expmech.losses.quantile import Quantile
from expmech.losses.ridge import RidgeGradient
from expmech.losses.scores import Scores

__all__ = ["L1Mean", "LogisticRisk", "Quantile", "RidgeGradient", "Scores"]
