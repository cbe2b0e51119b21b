"""The panels of the page: one list, in the order in which they are computed."""

from collections.abc import Callable

from expmech.explore.panels.answers import answers
from expmech.explore.panels.attacker import attacker
from expmech.explore.panels.base import NARROWEST, WIDEST, Panel
from expmech.explore.panels.code import code
from expmech.explore.panels.composition import composition
from expmech.explore.panels.enumerated import enumerated
from expmech.explore.panels.paper import paper
from expmech.explore.panels.samplers import samplers
from expmech.explore.panels.stopwatch import stopwatch
from expmech.explore.panels.tradeoff import tradeoff
from expmech.explore.view import View

PANELS: dict[str, Callable[[View, int], Panel]] = {
    "answers": answers,
    "attacker": attacker,
    "tradeoff": tradeoff,
    "samplers": samplers,
    "stopwatch": stopwatch,
    "composition": composition,
    "paper": paper,
    "code": code,
    "enumerated": enumerated,
}
"""The last one takes a second, so the page asks for it only when a person does."""

__all__ = ["NARROWEST", "PANELS", "WIDEST", "Panel"]
