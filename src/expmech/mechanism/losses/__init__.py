"""Built-in losses: order-stable, with a proved error, sensitivity, growth and Lipschitz constants."""

from expmech.mechanism.losses.logistic import LogisticRisk
from expmech.mechanism.losses.mean import L1Mean
from expmech.mechanism.losses.quantile import Quantile
from expmech.mechanism.losses.ridge import RidgeGradient
from expmech.mechanism.losses.scores import Scores

__all__ = ["L1Mean", "LogisticRisk", "Quantile", "RidgeGradient", "Scores"]
