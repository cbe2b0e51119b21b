"""Losses: their contract, and the built-in ones, order-stable with proved errors."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
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

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "base": "AffineForm Curvature Facts Growth IntegerForm Loss",
        "convex_losses": "GeometricMedian HingeRisk HuberRegression QuantileRegression",
        "gradient_norm": "GradientNorm",
        "likelihood": "BoundedLogLikelihood",
        "logistic": "LogisticRisk",
        "mean": "L1Mean",
        "pmse": "PMSE",
        "quantile": "Quantile",
        "ridge": "RidgeGradient",
        "scores": "Scores",
    },
)
