"""The user's end: mechanisms, releases and certificates."""

from expmech.release.certificate import Certificate
from expmech.release.mechanism import ExponentialMechanism, Release

__all__ = ["Certificate", "ExponentialMechanism", "Release"]
