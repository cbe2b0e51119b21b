"""Samplers by name; which one `auto` takes is the plan's to say."""

from __future__ import annotations

import difflib
from typing import Any

from expmech.errors import ParameterError, ParameterTypeError
from expmech.samplers.base import Sampler
from expmech.samplers.box_tree import BoxTree
from expmech.samplers.conf_atom import ConfAtomPerfect
from expmech.samplers.metropolis import Metropolis
from expmech.samplers.random_atom import RandomAtomPerfect
from expmech.samplers.rejection import Rejection
from expmech.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.samplers.separable import Separable
from expmech.samplers.tabulated import Tabulated

SAMPLERS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        Rejection,
        Tabulated,
        BoxTree,
        Separable,
        ConfAtomPerfect,
        RandomAtomPerfect,
        ConfAtomAndRuntimePerfect,
        Metropolis,
    )
}
_BY_NAME = (
    "Rejection",
    "Tabulated",
    "BoxTree",
    "Separable",
    "ConfAtomPerfect",
    "ConfAtomAndRuntimePerfect",
)  # those that need no arguments


def validate_sampler(sampler: Sampler | str) -> Sampler | str:
    """Return ``"auto"``, or the sampler named or given."""
    names = ("auto", *_BY_NAME)
    if isinstance(sampler, str):
        if sampler == "auto":
            return sampler
        if sampler in _BY_NAME:
            chosen: Sampler = SAMPLERS[sampler]()
            return chosen
        close = difflib.get_close_matches(sampler, names, n=1, cutoff=0.4)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ParameterError(
            f"`sampler` must be one of {', '.join(map(repr, names))}, or a sampler object such as "
            f"Metropolis(pure=True); got {sampler!r}.{hint}"
        )
    if isinstance(sampler, type) or not hasattr(sampler, "prepare"):
        raise ParameterTypeError(
            f"`sampler` must be a name ({', '.join(map(repr, names))}) or a sampler object such as"
            f" Rejection(); got {sampler!r}."
        )
    return sampler
