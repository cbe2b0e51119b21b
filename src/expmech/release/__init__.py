"""The user's end: mechanisms, releases and certificates."""

from expmech.release.accuracy import Accuracy
from expmech.release.certificate import Certificate
from expmech.release.exponential import ExponentialMechanism
from expmech.release.joint_quantiles import JointQuantiles
from expmech.release.noisy_mean import NoisyMean
from expmech.release.noisy_sums import NoisySums
from expmech.release.permute_and_flip import PermuteAndFlip
from expmech.release.perturbed_optimum import PerturbedOptimum
from expmech.release.prepared import Asked, Mechanism, Prepared, Release, Told
from expmech.release.principal_direction import PrincipalDirection
from expmech.release.top_k import TopK

__all__ = [
    "Accuracy",
    "Asked",
    "Certificate",
    "ExponentialMechanism",
    "JointQuantiles",
    "Mechanism",
    "NoisyMean",
    "NoisySums",
    "PermuteAndFlip",
    "PerturbedOptimum",
    "Prepared",
    "PrincipalDirection",
    "Release",
    "Told",
    "TopK",
]
