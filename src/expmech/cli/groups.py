"""Groups whose commands are made when they are called, and commands that start quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup


def _process(parameter: Any, convert: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if value is None and not parameter.required:
        kept: Any = () if getattr(parameter, "multiple", False) else None
    elif value and kind is str and isinstance(value, str):
        kept = value
    elif value and kind == list[str] and isinstance(value, (list, tuple)):
        kept = list(value)
    else:
        return convert(context, value)
    return kept if parameter.callback is None else parameter.callback(context, parameter, kept)


class _Quick:
    """A command whose options keep a text, and that they were not given.

    Of these two Typer gives back the same, but it imports Pydantic to do so.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, the option for help among them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = partial(_process, parameter, parameter.process_value)
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the arguments; what is missing is told with its help."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        except BadParameter as error:
            if not error.message and error.param is not None:
                error.message = getattr(error.param, "help", None) or ""
            raise


class QuickCommand(_Quick, TyperCommand):
    """A command of Typer's that does not import Pydantic for texts."""


OTHER_NAMES = {
    **dict.fromkeys(("average", "avg"), ("mean",)),
    **dict.fromkeys(("total",), ("sum",)),
    **dict.fromkeys(("std", "stdev", "sd"), ("variance",)),
    **dict.fromkeys(("percentile", "percentiles"), ("quantile",)),
    **dict.fromkeys(("min", "minimum", "max", "maximum", "range"), ("quantile", "bounds")),
    **dict.fromkeys(("table", "crosstab", "frequencies"), ("count", "histogram")),
    **dict.fromkeys(("share", "proportion", "percentage"), ("count", "mean")),
    **dict.fromkeys(("mode", "choose"), ("select",)),
    **dict.fromkeys(("regression", "ols"), ("linear", "ridge", "logistic")),
    **dict.fromkeys(("classification",), ("logistic",)),
}
"""What people call a command, and the commands that do it."""


class LoadingGroup(_Quick, TyperGroup):
    """A group that makes a command when it is called; until then it knows its name and help."""

    helps: Mapping[str, str]
    load: Callable[[str], Any]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=text) for name, text in self.helps.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names, made, and the other arguments."""
        asked = args[0] if args else ""
        near = [] if asked in self.commands else self.named_otherwise(asked)
        if near:
            ctx.fail(f"No such command {asked!r}. Did you mean {' or '.join(map(repr, near))}?")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and self.load(str(name)), rest

    def named_otherwise(self, asked: str) -> list[str]:
        """Return the commands of the group that people call by another name."""
        return [name for name in OTHER_NAMES.get(asked.lower(), ()) if name in self.commands]
