"""Groups of commands that are known by name and help, and made when they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from typer.core import TyperCommand, TyperGroup


class LoadingGroup(TyperGroup):
    """A group that makes a command when it is called; until then it knows its name and help."""

    helps: Mapping[str, str]
    load: Callable[[str], Any]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=text) for name, text in self.helps.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names, made, and the other arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and self.load(str(name)), rest


def group_of(commands: Mapping[str, str], make: Callable[[str], Any]) -> type[LoadingGroup]:
    """Return the class of a group: the helps of its commands by name, and what makes one."""
    members = {"helps": commands, "load": staticmethod(cache(make))}
    return type("Commands", (LoadingGroup,), members)
