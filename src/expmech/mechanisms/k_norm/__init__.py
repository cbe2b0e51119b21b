"""Noise in the shape of what a row can do: bodies, and the mechanism for one of your own."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
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

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "bodies": "BODIES Body BoxBody CrossPolytope Ellipsoid EuclideanBall MomentHull Polytope"
        " ProductBody",
        "k_norm": "KNorm",
    },
)
