"""Envelopes for norms of affine functions: exact proposals seen through an affine map."""

from expmech.envelopes.affine.envelope import Affine, BoundAffine

__all__ = ["Affine", "BoundAffine"]
