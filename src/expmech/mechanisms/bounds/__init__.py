"""Bounds that nobody knows: noisy counts of numbers by sign and exponent."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
    from expmech.mechanisms.bounds.grid import NOWHERE, Magnitudes
    from expmech.mechanisms.bounds.private_bounds import PrivateBounds

__all__ = ["NOWHERE", "Magnitudes", "PrivateBounds"]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "grid": "NOWHERE Magnitudes",
        "private_bounds": "PrivateBounds",
    },
)
