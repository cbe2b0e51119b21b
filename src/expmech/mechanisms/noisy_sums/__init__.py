"""Counts, sums, means and variances by exact noise on integer sums."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
    from expmech.mechanisms.noisy_sums.centred import CentredMeans, CentredTotals
    from expmech.mechanisms.noisy_sums.gaussian import DiscreteGaussian
    from expmech.mechanisms.noisy_sums.interpretations import (
        ConsistentCounts,
        Counts,
        Interpretation,
        Means,
        Shares,
        Totals,
    )
    from expmech.mechanisms.noisy_sums.moments import HullNoise, MomentVariances
    from expmech.mechanisms.noisy_sums.noise import CubeNoise, DiscreteLaplace, Noise
    from expmech.mechanisms.noisy_sums.noisy_sums import NoisyMean, NoisySums
    from expmech.mechanisms.noisy_sums.variances import ThreeSums, Variances

__all__ = [
    "CentredMeans",
    "CentredTotals",
    "ConsistentCounts",
    "Counts",
    "CubeNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "HullNoise",
    "Interpretation",
    "Means",
    "MomentVariances",
    "Noise",
    "NoisyMean",
    "NoisySums",
    "Shares",
    "ThreeSums",
    "Totals",
    "Variances",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "centred": "CentredMeans CentredTotals",
        "gaussian": "DiscreteGaussian",
        "interpretations": "ConsistentCounts Counts Interpretation Means Shares Totals",
        "moments": "HullNoise MomentVariances",
        "noise": "CubeNoise DiscreteLaplace Noise",
        "noisy_sums": "NoisyMean NoisySums",
        "variances": "ThreeSums Variances",
    },
)
