"""The envelope for smooth convex losses.

Discrete Gaussians on shells, seen through an affine map.
"""

from expmech.envelopes.convex.envelope import BoundConvex, Convex

__all__ = ["BoundConvex", "Convex"]
