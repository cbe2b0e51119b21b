"""One function a statistic.

From exact aggregates, or rows, to a mechanism that is ready to be charged and drawn.
"""

from expmech.statistics.aggregates import Bounds, Moments, histogram_of, moments_of, validate_bounds
from expmech.statistics.prepared import Prepared
from expmech.statistics.regression import logistic, ridge
from expmech.statistics.summaries import mean, quantile, rank_loss, select

__all__ = [
    "Bounds",
    "Moments",
    "Prepared",
    "histogram_of",
    "logistic",
    "mean",
    "moments_of",
    "quantile",
    "rank_loss",
    "ridge",
    "select",
    "validate_bounds",
]
