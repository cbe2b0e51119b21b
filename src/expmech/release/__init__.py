"""The user's end: mechanisms, releases and certificates."""

from expmech.release.certificate import Certificate
from expmech.release.exponential import ExponentialMechanism
from expmech.release.noisy_mean import NoisyMean
from expmech.release.prepared import Asked, Mechanism, Prepared, Release, Told
from expmech.release.principal_direction import PrincipalDirection

__all__ = [
    "Asked",
    "Certificate",
    "ExponentialMechanism",
    "Mechanism",
    "NoisyMean",
    "Prepared",
    "PrincipalDirection",
    "Release",
    "Told",
]
