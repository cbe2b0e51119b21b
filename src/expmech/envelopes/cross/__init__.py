"""The envelope for any convex loss with a gradient: a cross of tangents about the optimum."""

from expmech.envelopes.cross.envelope import Cross

__all__ = ["Cross"]
