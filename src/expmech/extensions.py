"""What others add to a list of ours: by an entry point of their package, or by hand.

A certificate names the domain, kernel, envelope and sampler it was made with. To recompute it,
`verify` looks for a name among those of the library, those added in this process, and those that
installed packages announce under the entry points ``expmech.domains``, ``expmech.kernels``,
``expmech.envelopes``, ``expmech.samplers``, ``expmech.mechanisms``, ``expmech.risks`` and
``expmech.finishes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from expmech.errors import ParameterError

T = TypeVar("T")


class Registry(Generic[T]):
    """Things by the name that certificates call them.

    Parameters
    ----------
    group
        The entry point under which packages announce more of them.
    known
        The library's own, each with its name.
    """

    def __init__(self, group: str, known: Iterable[tuple[str, T]]) -> None:
        self.group = group
        self._known: dict[str, T] = dict(known)

    def add(self, name: str, thing: T) -> T:
        """Make ``thing`` known in this process; raise where the name is another's."""
        if self._known.setdefault(name, thing) is not thing:
            raise ParameterError(f"`name` must be new to {self.group}; got {name!r}.")
        return thing

    def find(self, name: str) -> T | None:
        """Return what is called ``name``, or None; a package is loaded when it is asked for."""
        if name not in self._known:
            for announced in entry_points(group=self.group, name=name):
                self._known[name] = announced.load()
        return self._known.get(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names known in this process."""
        return iter(self._known)
