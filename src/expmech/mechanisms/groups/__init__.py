"""Counts of groups that nobody listed: every key of a public universe may be shown."""

from expmech.mechanisms.groups.universe import Universe, parse_universe
from expmech.mechanisms.groups.unknown_groups import UnknownGroups

__all__ = ["Universe", "UnknownGroups", "parse_universe"]
