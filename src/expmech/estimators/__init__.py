"""Private estimators in the style of scikit-learn. Page: docs/guides/from_scikit_learn.md."""

from expmech.estimators.counts import PrivateCount, PrivateHistogram
from expmech.estimators.means import PrivateMean, PrivateSum, PrivateVariance
from expmech.estimators.pca import PrivatePCA
from expmech.estimators.pipelines import PipelineCheck, check_pipeline, reserve
from expmech.estimators.quantile import PrivateQuantile
from expmech.estimators.regression import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRidge,
)
from expmech.estimators.scaler import PrivateScaler
from expmech.estimators.selector import PrivateSelector

__all__ = [
    "PipelineCheck",
    "PrivateCount",
    "PrivateHistogram",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateMean",
    "PrivatePCA",
    "PrivateQuantile",
    "PrivateRidge",
    "PrivateScaler",
    "PrivateSelector",
    "PrivateSum",
    "PrivateVariance",
    "check_pipeline",
    "reserve",
]
