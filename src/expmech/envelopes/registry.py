"""Envelopes by the name in a certificate: one list."""

from __future__ import annotations

from expmech.envelopes.affine import Affine
from expmech.envelopes.base import Envelope
from expmech.envelopes.convex import Convex
from expmech.envelopes.cross import Cross
from expmech.envelopes.laplace import ProductLaplace
from expmech.envelopes.tangent import Tangent
from expmech.envelopes.uniform import Uniform
from expmech.extensions import Registry

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
