"""Packages that import much that nobody needs: their own file runs when a name of it is used."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any


def postpone(package: str) -> None:
    """Let modules of a package be imported without the package's own file.

    That file runs when a name is asked for that is none of the package's modules, so whoever uses
    the package sees no difference. Nothing happens where the package was imported before.
    """
    parent, _, child = package.rpartition(".")
    before = import_module(parent)
    spec = None if package in sys.modules else find_spec(package)
    if spec is None or spec.loader is None:
        return
    loader, module = spec.loader, module_from_spec(spec)

    def load(name: str) -> Any:
        if not name.startswith("__") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        if "__getattr__" not in vars(module):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        del vars(module)["__getattr__"]
        loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = load
    sys.modules[package] = module
    setattr(before, child, module)
