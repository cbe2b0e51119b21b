"""Minami's theorem measured: the true delta of a Metropolis chain on a small lattice."""

from expmech.paper.delta.study import STUDY

__all__ = ["STUDY"]
