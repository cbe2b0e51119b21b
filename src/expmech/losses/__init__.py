"""Losses: their contract, and the built-in ones, order-stable with proved errors."""

from expmech.losses.base import AffineForm, Curvature, Facts, Growth, IntegerForm, Loss
from expmech.losses.convex_losses import (
    GeometricMedian,
    HingeRisk,
    HuberRegression,
    QuantileRegression,
)
from expmech.losses.gradient_norm import GradientNorm
from expmech.losses.likelihood import BoundedLogLikelihood
from expmech.losses.logistic import LogisticRisk
from expmech.losses.mean import L1Mean
from expmech.losses.pmse import PMSE
from expmech.losses.quantile import Quantile
from expmech.losses.ridge import RidgeGradient
from expmech.losses.scores import Scores

__all__ = [
    "PMSE",
    "AffineForm",
    "BoundedLogLikelihood",
    "Curvature",
    "Facts",
    "GeometricMedian",
    "GradientNorm",
    "Growth",
    "HingeRisk",
    "HuberRegression",
    "IntegerForm",
    "L1Mean",
    "LogisticRisk",
    "Loss",
    "Quantile",
    "QuantileRegression",
    "RidgeGradient",
    "Scores",
]
