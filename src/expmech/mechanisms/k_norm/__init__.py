"""Noise in the shape of what a row can do: bodies, and the mechanism for one of your own."""

from expmech.mechanisms.k_norm.bodies import (
    BODIES,
    Body,
    BoxBody,
    CrossPolytope,
    Ellipsoid,
    EuclideanBall,
    MomentHull,
    Polytope,
    ProductBody,
)
from expmech.mechanisms.k_norm.k_norm import KNorm

__all__ = [
    "BODIES",
    "Body",
    "BoxBody",
    "CrossPolytope",
    "Ellipsoid",
    "EuclideanBall",
    "KNorm",
    "MomentHull",
    "Polytope",
    "ProductBody",
]
