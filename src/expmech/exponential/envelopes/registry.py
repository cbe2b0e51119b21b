"""The list of envelopes, by their names in certificates."""

from __future__ import annotations

from expmech.core.registry import Registry
from expmech.exponential.envelopes.affine import Affine
from expmech.exponential.envelopes.base import Envelope
from expmech.exponential.envelopes.convex import Convex
from expmech.exponential.envelopes.cross import Cross
from expmech.exponential.envelopes.laplace import ProductLaplace
from expmech.exponential.envelopes.tangent import Tangent
from expmech.exponential.envelopes.uniform import Uniform

PLANNED: tuple[Envelope, ...] = (
    ProductLaplace(),
    Affine(),
    Convex(),
    Cross(),
    Uniform(),
    Tangent(),
)
"""What a plan tries, in order."""

ENVELOPES: Registry[type[Envelope]] = Registry(
    "expmech.envelopes", [(envelope.name, type(envelope)) for envelope in PLANNED]
)
