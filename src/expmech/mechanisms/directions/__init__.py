"""Principal directions: the real Bingham law on the sphere, rounded last."""

from expmech.mechanisms.directions.principal_direction import PrincipalDirection

__all__ = ["PrincipalDirection"]
