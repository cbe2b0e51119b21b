"""The registry of extensions: the names that certificates use, and what they stand for.

A certificate names the domain, kernel, envelope and sampler it was made with. To recompute it,
`verify` looks for a name among those of the library, those added in this process, and those that
installed packages announce under the entry points ``expmech.domains``, ``expmech.kernels``,
``expmech.envelopes``, ``expmech.samplers``, ``expmech.mechanisms``, ``expmech.bodies``,
``expmech.risks`` and ``expmech.postprocessings``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from expmech.core.errors import ParameterError

T = TypeVar("T")


class Registry(Generic[T]):
    """Extensions of one kind by the name that certificates use.

    >>> sizes = Registry("expmech.sizes", [("small", 1)])
    >>> sizes.add("large", 9), sizes.find("large"), sizes.find("huge")
    (9, 9, None)
    """

    def __init__(
        self,
        group: str,
        known: Iterable[tuple[str, T]] = (),
        *,
        on_demand: Mapping[str, str] | None = None,
    ) -> None:
        self.group = group
        self._known: dict[str, T] = dict(known)
        self._on_demand = dict(on_demand or {})

    def add(self, name: str, extension: T) -> T:
        """Add an extension in this process and return it; raise where the name is taken."""
        self._load(name)
        if self._known.setdefault(name, extension) is not extension:
            raise ParameterError(f"`name` must be new to {self.group}; got {name!r}.")
        return extension

    def find(self, name: str) -> T | None:
        """Return the extension called ``name``, or None; its package is loaded on demand."""
        self._load(name)
        if name not in self._known:
            from importlib.metadata import entry_points  # takes a while to import

            for announced in entry_points(group=self.group, name=name):
                self._known[name] = announced.load()
        return self._known.get(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names known in this process."""
        return iter(dict.fromkeys([*self._on_demand, *self._known]))

    def _load(self, name: str) -> None:
        """Import one of the library's own."""
        if name in self._on_demand and name not in self._known:
            module, _, attribute = self._on_demand[name].partition(":")
            self._known[name] = getattr(import_module(module), attribute)
