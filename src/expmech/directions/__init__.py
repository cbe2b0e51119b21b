"""Principal directions: the real Bingham law on the sphere, rounded last."""

from expmech.directions.bingham import ROUNDING_BITS, UNIT_LENGTH, draw_axes
from expmech.directions.proposal import Moments, Proposal, eta_below, fit_proposal
from expmech.directions.whole import WholeMatrix

__all__ = [
    "ROUNDING_BITS",
    "UNIT_LENGTH",
    "Moments",
    "Proposal",
    "WholeMatrix",
    "draw_axes",
    "eta_below",
    "fit_proposal",
]
