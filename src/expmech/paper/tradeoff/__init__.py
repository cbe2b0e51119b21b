"""Privacy, utility and runtime of every sampler on both examples."""

from expmech.paper.tradeoff.study import STUDY

__all__ = ["STUDY"]
