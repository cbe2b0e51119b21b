"""Choices from public lists: the best item, or the k best in order."""

from expmech.mechanisms.selection.permute_and_flip import PermuteAndFlip
from expmech.mechanisms.selection.top_k import TopK

__all__ = ["PermuteAndFlip", "TopK"]
