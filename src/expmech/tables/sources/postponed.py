"""Packages that import much that nobody needs: their own file runs when a name of it is used."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec, module_from_spec
from threading import RLock
from typing import Any


def postpone(package: str) -> None:
    """Let modules of a package be imported without the package's own file.

    A name that the file imports from one of the package's modules comes from there alone; at any
    other name the file runs. So whoever uses the package sees no difference, in any thread.
    Nothing happens where the package was imported before.
    """
    parent, _, child = package.rpartition(".")
    before = import_module(parent)
    spec = None if package in sys.modules else find_spec(package)
    if spec is None or not isinstance(spec.loader, InspectLoader):
        return
    loader, module = spec.loader, module_from_spec(spec)
    origins, lock, started = _origins(loader.get_source(package) or ""), RLock(), list[str]()

    def load(name: str) -> Any:
        if not name.startswith("__"):
            if find_spec(f"{package}.{name}") is not None:
                return import_module(f"{package}.{name}")
            if name in origins:  # a module that is being imported may ask: it must not wait for all
                return getattr(import_module(origins[name]), name)
        with lock:
            if not started:
                started.append(name)
                try:
                    loader.exec_module(module)
                except BaseException:
                    started.clear()
                    raise
        if name not in vars(module):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return vars(module)[name]

    vars(module)["__getattr__"] = load
    sys.modules[package] = module
    setattr(before, child, module)


def _origins(source: str) -> dict[str, str]:
    """Return the module of each name that a file imports from one, by its absolute name."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.parse(source).body
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
        if alias.name == (alias.asname or alias.name) != "*"
    }
