"""Statistics of a table: what each aggregates, its mechanism and its units."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
    from expmech.tables.statistics.base import Statistic
    from expmech.tables.statistics.bounds import BoundsOf
    from expmech.tables.statistics.counts import CountOf, HistogramIn, MissingOf, UsableOf
    from expmech.tables.statistics.groups import GroupsOf
    from expmech.tables.statistics.logistic import (
        LAWS,
        LogisticLikelihood,
        LogisticOptimum,
        logistic_regression,
    )
    from expmech.tables.statistics.pca import PrincipalComponents
    from expmech.tables.statistics.quantiles import QuantileOf, QuantilesOf
    from expmech.tables.statistics.regression import Linear, RegressionChoices
    from expmech.tables.statistics.ridge import Ridge
    from expmech.tables.statistics.row_limits import RowLimit
    from expmech.tables.statistics.selection import BestScore, LargestTotal, MostFrequent, TopOf
    from expmech.tables.statistics.sums import Mean, SumOf, VarianceOf

__all__ = [
    "LAWS",
    "BestScore",
    "BoundsOf",
    "CountOf",
    "GroupsOf",
    "HistogramIn",
    "LargestTotal",
    "Linear",
    "LogisticLikelihood",
    "LogisticOptimum",
    "Mean",
    "MissingOf",
    "MostFrequent",
    "PrincipalComponents",
    "QuantileOf",
    "QuantilesOf",
    "RegressionChoices",
    "Ridge",
    "RowLimit",
    "Statistic",
    "SumOf",
    "TopOf",
    "UsableOf",
    "VarianceOf",
    "logistic_regression",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "base": "Statistic",
        "bounds": "BoundsOf",
        "counts": "CountOf HistogramIn MissingOf UsableOf",
        "groups": "GroupsOf",
        "logistic": "LAWS LogisticLikelihood LogisticOptimum logistic_regression",
        "pca": "PrincipalComponents",
        "quantiles": "QuantileOf QuantilesOf",
        "regression": "Linear RegressionChoices",
        "ridge": "Ridge",
        "row_limits": "RowLimit",
        "selection": "BestScore LargestTotal MostFrequent TopOf",
        "sums": "Mean SumOf VarianceOf",
    },
)
