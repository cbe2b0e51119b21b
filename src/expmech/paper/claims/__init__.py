"""Sentences of the paper that no figure shows, each checked by computation."""

from expmech.paper.claims.study import STUDY

__all__ = ["STUDY"]
