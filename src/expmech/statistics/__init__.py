"""Statistics of a table, one file each; and how they are settled, charged, read and drawn."""

from expmech.statistics.aggregates import Bounds, Moments, validate_bounds
from expmech.statistics.arrays import ArrayRows
from expmech.statistics.base import Settled, Statistic, find_all, plan, public_count, settle
from expmech.statistics.joint_quantiles import QuantilesOf
from expmech.statistics.linear import Linear
from expmech.statistics.logistic import Logistic
from expmech.statistics.mean import Mean
from expmech.statistics.pca import PrincipalComponents
from expmech.statistics.quantile import QuantileOf
from expmech.statistics.requests import Request, Rows
from expmech.statistics.ridge import Ridge
from expmech.statistics.select import BestScore, LargestTotal, MostFrequent
from expmech.statistics.top_k import TopOf

__all__ = [
    "ArrayRows",
    "BestScore",
    "Bounds",
    "LargestTotal",
    "Linear",
    "Logistic",
    "Mean",
    "Moments",
    "MostFrequent",
    "PrincipalComponents",
    "QuantileOf",
    "QuantilesOf",
    "Request",
    "Ridge",
    "Rows",
    "Settled",
    "Statistic",
    "TopOf",
    "find_all",
    "plan",
    "public_count",
    "settle",
    "validate_bounds",
]
