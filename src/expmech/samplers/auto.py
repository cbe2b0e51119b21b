"""The sampler `auto` takes, from public quantities."""

from __future__ import annotations

import difflib
import math
from typing import Any

from expmech.envelopes import Uniform
from expmech.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.samplers.base import Sampler
from expmech.samplers.conf_atom import ConfAtomPerfect
from expmech.samplers.metropolis import Metropolis
from expmech.samplers.random_atom import RandomAtomPerfect
from expmech.samplers.rejection import Rejection, default_envelope
from expmech.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.samplers.tabulated import Tabulated
from expmech.target import Target

SAMPLERS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        Rejection,
        Tabulated,
        ConfAtomPerfect,
        RandomAtomPerfect,
        ConfAtomAndRuntimePerfect,
        Metropolis,
    )
}
_BY_NAME = ("Rejection", "Tabulated", "ConfAtomPerfect", "ConfAtomAndRuntimePerfect")  # those that need no arguments
_TABULATE = math.log(1 << 16)
_MOST_PROPOSALS = 1e9


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
            f"`sampler` must be a name ({', '.join(map(repr, names))}) or a sampler object such as Rejection(); got {sampler!r}."
        )
    return sampler


def choose_sampler(target: Target) -> Sampler:
    """Return the cheapest exact sampler, judged by the kind of loss, the domain and p_0: public quantities only.

    A lattice of at most 2^16 points, or a list of candidates, is tabulated; a loss with declared growth is rejected from the
    Laplace envelope; anything else from the uniform one, unless p_0 says that may take more than 1e9 evaluations.
    """
    if target.is_small and (target.domain.log_size <= _TABULATE + 1e-9 or not hasattr(target.domain, "widths")):
        return Tabulated()
    envelope = default_envelope(target)
    if isinstance(envelope, Uniform):
        floor = target.log_floor()
        if floor is not None and -floor > math.log(_MOST_PROPOSALS):
            raise UnsupportedError(
                "sampler='auto' found no affordable exact sampler: uniform rejection may need more than 1e9 loss evaluations "
                f"(about 10^{-floor / math.log(10.0):.0f}). Declare the loss's `growth`, lower epsilon or the dimension, or ask "
                "for Rejection() regardless."
            )
    return Rejection(envelope)
