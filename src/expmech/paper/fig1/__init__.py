"""Figure 1: what delta a Metropolis chain of m steps costs."""

from expmech.paper.fig1.study import STUDY

__all__ = ["STUDY"]
