"""Statistics of a table, one file each; and how they are settled, charged, read and drawn."""

from expmech.statistics.aggregates import Bounds, Moments, validate_bounds
from expmech.statistics.arrays import ArrayRows
from expmech.statistics.base import Settled, Statistic, find_all, plan, public_count, settle
from expmech.statistics.counts import CountOf, MissingOf
from expmech.statistics.histogram import HistogramIn
from expmech.statistics.joint_quantiles import QuantilesOf
from expmech.statistics.linear import Linear
from expmech.statistics.logistic import Logistic
from expmech.statistics.mean import Mean
from expmech.statistics.pca import PrincipalComponents
from expmech.statistics.planning import enough
from expmech.statistics.quantile import QuantileOf
from expmech.statistics.requests import Request, Rows
from expmech.statistics.ridge import Ridge
from expmech.statistics.select import BestScore, LargestTotal, MostFrequent
from expmech.statistics.sparse import SparseRows
from expmech.statistics.top_k import TopOf
from expmech.statistics.totals import SumOf, VarianceOf

__all__ = [
    "ArrayRows",
    "BestScore",
    "Bounds",
    "CountOf",
    "HistogramIn",
    "LargestTotal",
    "Linear",
    "Logistic",
    "Mean",
    "MissingOf",
    "Moments",
    "MostFrequent",
    "PrincipalComponents",
    "QuantileOf",
    "QuantilesOf",
    "Request",
    "Ridge",
    "Rows",
    "Settled",
    "SparseRows",
    "Statistic",
    "SumOf",
    "TopOf",
    "VarianceOf",
    "enough",
    "find_all",
    "plan",
    "public_count",
    "settle",
    "validate_bounds",
]
