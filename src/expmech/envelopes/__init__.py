"""Laws that can be drawn exactly, with integer energies and a certified offset."""

from expmech.envelopes.affine import Affine
from expmech.envelopes.base import BoundEnvelope, Envelope, ReentryLaw
from expmech.envelopes.convex import Convex
from expmech.envelopes.cross import Cross
from expmech.envelopes.laplace import ProductLaplace
from expmech.envelopes.registry import ENVELOPES
from expmech.envelopes.tangent import Tangent
from expmech.envelopes.uniform import Uniform

__all__ = [
    "ENVELOPES",
    "Affine",
    "BoundEnvelope",
    "Convex",
    "Cross",
    "Envelope",
    "ProductLaplace",
    "ReentryLaw",
    "Tangent",
    "Uniform",
]
