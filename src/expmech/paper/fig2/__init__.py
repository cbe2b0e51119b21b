"""Figure 2: how many proposals an exact draw takes."""

from expmech.paper.fig2.study import STUDY

__all__ = ["STUDY"]
