"""Bounds that nobody knows: noisy counts of numbers by sign and exponent."""

from expmech.mechanisms.bounds.grid import NOWHERE, Magnitudes
from expmech.mechanisms.bounds.private_bounds import PrivateBounds

__all__ = ["NOWHERE", "Magnitudes", "PrivateBounds"]
