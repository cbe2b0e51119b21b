"""Draws from lists: one winner, and ordered sequences of items."""

from expmech.lists.peeling import PeelingDraw
from expmech.lists.permute import first_of_a_random_order, winner_law
from expmech.lists.sequences import SequenceDraw

__all__ = ["PeelingDraw", "SequenceDraw", "first_of_a_random_order", "winner_law"]
