"""Laws that can be drawn exactly, with integer energies and a certified offset."""

from expmech.exponential.envelopes.affine import Affine
from expmech.exponential.envelopes.base import BoundEnvelope, Envelope, ReentryLaw
from expmech.exponential.envelopes.convex import Convex
from expmech.exponential.envelopes.cross import Cross
from expmech.exponential.envelopes.laplace import ProductLaplace
from expmech.exponential.envelopes.registry import ENVELOPES
from expmech.exponential.envelopes.tangent import Tangent
from expmech.exponential.envelopes.uniform import Uniform

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
