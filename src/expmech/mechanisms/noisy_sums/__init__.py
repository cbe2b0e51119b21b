"""Counts, sums, means and variances by discrete Laplace noise on integer sums."""

from expmech.mechanisms.noisy_sums.interpretations import (
    Counts,
    Interpretation,
    Means,
    Shares,
    Totals,
)
from expmech.mechanisms.noisy_sums.noisy_sums import NoisyMean, NoisySums
from expmech.mechanisms.noisy_sums.variances import ThreeSums, Variances

__all__ = [
    "Counts",
    "Interpretation",
    "Means",
    "NoisyMean",
    "NoisySums",
    "Shares",
    "ThreeSums",
    "Totals",
    "Variances",
]
