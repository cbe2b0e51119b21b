"""Figure 3: what running the mechanism on random points costs in utility."""

from expmech.paper.fig3.study import STUDY

__all__ = ["STUDY"]
