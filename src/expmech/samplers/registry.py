"""Samplers: one list. What a plan tries, what a name means, what a certificate may speak of."""

from __future__ import annotations

import difflib

from expmech.envelopes.registry import PLANNED as ENVELOPES_PLANNED
from expmech.errors import ParameterError, ParameterTypeError
from expmech.extensions import Registry
from expmech.samplers.base import Sampler
from expmech.samplers.box_tree import BoxTree
from expmech.samplers.conf_atom import ConfAtomPerfect
from expmech.samplers.constant_mixture import ConstantMixture
from expmech.samplers.constant_tabulated import ConstantTabulated
from expmech.samplers.metropolis import Metropolis
from expmech.samplers.random_atom import RandomAtomPerfect
from expmech.samplers.rejection import Rejection
from expmech.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.samplers.separable import Separable
from expmech.samplers.tabulated import Tabulated

PLANNED: tuple[Sampler, ...] = (
    Tabulated(),
    Separable(),
    *(Rejection(envelope) for envelope in ENVELOPES_PLANNED),
    BoxTree(),
    ConfAtomPerfect(),
    ConfAtomPerfect(proposal="uniform"),
    ConfAtomAndRuntimePerfect(),
    ConfAtomAndRuntimePerfect("constant"),
    ConstantTabulated(),
    Metropolis(pure=True),
    Metropolis(delta=1e-9),
)
"""What a plan tries, in order: of equal costs `auto` takes the first."""

UNPLANNED: tuple[type[Sampler], ...] = (RandomAtomPerfect, ConstantMixture)
"""What a plan cannot make by itself; each says what it needs."""

SAMPLERS: Registry[type[Sampler]] = Registry(
    "expmech.samplers",
    [(kind.name(), kind) for kind in (*(type(one) for one in PLANNED), *UNPLANNED)],
)


def register(sampler: Sampler | type[Sampler]) -> None:
    """Let certificates of a sampler of one's own be verified in this process.

    An entry point ``expmech.samplers`` of a package does the same for the command line.
    """
    kind = sampler if isinstance(sampler, type) else type(sampler)
    SAMPLERS.add(kind.name(), kind)


def names() -> list[str]:
    """Return the names that need no arguments, with ``"auto"`` first."""
    named = [one.name() for one in PLANNED if not isinstance(one, Metropolis)]
    return ["auto", *dict.fromkeys(named)]


def validate_sampler(sampler: Sampler | str) -> Sampler | str:
    """Return ``"auto"``, or the sampler named or given."""
    listed = ", ".join(map(repr, names()))
    if isinstance(sampler, Sampler):
        return sampler
    if not isinstance(sampler, str):
        raise ParameterTypeError(
            f"`sampler` must be a name ({listed}) or a sampler object such as Rejection(); got"
            f" {sampler!r}."
        )
    if sampler == "auto":
        return sampler
    kind = SAMPLERS.find(sampler) if sampler in names() else None
    if kind is None:
        close = difflib.get_close_matches(sampler, names(), n=1, cutoff=0.4)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ParameterError(
            f"`sampler` must be one of {listed}, or a sampler object such as"
            f" Metropolis(pure=True); got {sampler!r}.{hint}"
        )
    return kind()
