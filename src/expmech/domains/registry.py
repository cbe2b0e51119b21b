"""Domains by the name in a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expmech.domains.balls import L1Ball, L2Ball
from expmech.domains.base import Domain
from expmech.domains.box import Box
from expmech.domains.candidates import Candidates
from expmech.domains.product import Product
from expmech.domains.simplex import Simplex
from expmech.errors import ParameterError
from expmech.extensions import Registry

DOMAINS: Registry[type[Domain]] = Registry(
    "expmech.domains",
    [(kind.__name__, kind) for kind in (Box, L1Ball, L2Ball, Simplex, Candidates, Product)],
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
