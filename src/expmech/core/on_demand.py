"""Packages whose names are loaded on first use, so that a command loads only what it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_demand(
    package: str, homes: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    ``homes`` has the names that the package takes from each of its modules, apart by blanks;
    ``modules`` those that it shows as a whole, by the name they have there.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}
    whole = modules or {}

    def load(name: str) -> Any:
        if name not in home and name not in whole:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{whole.get(name) or home[name]}")
        value = module if name in whole else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: list(sys.modules[package].__all__)
