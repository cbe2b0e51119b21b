"""Every difference between the paper and the library's specification as a computed fact."""

from expmech.paper.errata.study import STUDY

__all__ = ["STUDY"]
