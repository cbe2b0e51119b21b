"""Public output lattices: bounded sets with counting measure, chosen without looking at data."""

from expmech.domains.balls import L1Ball, L2Ball
from expmech.domains.base import Domain, Indices
from expmech.domains.box import Box
from expmech.domains.candidates import Candidates
from expmech.domains.simplex import Simplex

__all__ = ["Box", "Candidates", "Domain", "Indices", "L1Ball", "L2Ball", "Simplex"]
