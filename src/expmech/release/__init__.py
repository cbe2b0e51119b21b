"""The user's end: mechanisms, releases and certificates."""

from expmech.release.certificate import Certificate
from expmech.release.exponential import ExponentialMechanism, Release
from expmech.release.noisy_mean import NoisyMean

__all__ = ["Certificate", "ExponentialMechanism", "NoisyMean", "Release"]
