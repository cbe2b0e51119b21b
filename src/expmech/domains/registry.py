"""The list of domains, by their names in certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expmech.core.errors import ParameterError
from expmech.core.registry import Registry
from expmech.domains.base import Domain
from expmech.domains.lists import Candidates, Product
from expmech.domains.regions import Box, L1Ball, L2Ball, Multiples, Simplex

DOMAINS: Registry[type[Domain]] = Registry(
    "expmech.domains",
    [
        (kind.__name__, kind)
        for kind in (Box, Multiples, L1Ball, L2Ball, Simplex, Candidates, Product)
    ],
)


def rebuild_domain(description: Mapping[str, Any]) -> Domain:
    """Return the domain that a certificate describes; raise where there is none of that kind.

    A base measure on it, ``base``, is a function that no certificate can hold; it is left out.
    """
    kind = DOMAINS.find(str(description["kind"]))
    if kind is None:
        raise ParameterError(
            f"`kind` of a domain must be a known one; got {description['kind']!r}."
        )
    return kind.rebuild({name: part for name, part in description.items() if name != "base"})
