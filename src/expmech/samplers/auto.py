"""The sampler `auto` takes, from public quantities."""

from __future__ import annotations

import difflib
import math
from typing import Any

from expmech.domains import Box
from expmech.envelopes import Affine, Uniform
from expmech.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.samplers.base import Sampler
from expmech.samplers.box_tree import BoxTree
from expmech.samplers.conf_atom import ConfAtomPerfect
from expmech.samplers.metropolis import Metropolis
from expmech.samplers.random_atom import RandomAtomPerfect
from expmech.samplers.rejection import Rejection, default_envelope
from expmech.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.samplers.separable import Separable
from expmech.samplers.tabulated import Tabulated
from expmech.target import Target

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
# samplers that need no arguments
_BY_NAME = (
    "Rejection",
    "Tabulated",
    "BoxTree",
    "Separable",
    "ConfAtomPerfect",
    "ConfAtomAndRuntimePerfect",
)  # those that need no arguments
_TABULATE = math.log(1 << 16)
_MOST_PROPOSALS = 1e9
_CHEAP_PROPOSALS = 1e3
_TREE_DIMENSION = 6


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

    1. A lattice of at most 2^16 points, or a list of candidates, is tabulated.
    2. A loss with declared growth on a grid is drawn coordinate by coordinate where it is a sum of terms on a box, else rejected
       from the Laplace envelope.
    3. A norm of an affine function is rejected from the affine envelope, unless p_0 makes uniform proposals cheap.
    4. A loss whose minimum over boxes can be bounded, in at most six dimensions, is drawn by a box tree.
    5. Anything else is rejected from the uniform envelope, unless p_0 says that may take more than 1e9 evaluations.
    """
    if target.is_small and (target.domain.log_size <= _TABULATE + 1e-9 or not hasattr(target.domain, "widths")):
        return Tabulated()
    envelope, floor = default_envelope(target), target.log_floor()
    if not isinstance(envelope, Uniform):
        separable = isinstance(target.domain, Box) and hasattr(target.problem.loss, "terms")
        return Separable() if separable else Rejection(envelope)
    grid = hasattr(target.domain, "locate")
    if grid and target.problem.affine is not None and (floor is None or -floor > math.log(_CHEAP_PROPOSALS)):
        return Rejection(Affine())
    if grid and target.domain.dimension <= _TREE_DIMENSION and _bounds_boxes(target):
        return BoxTree()
    if floor is not None and -floor > math.log(_MOST_PROPOSALS):
        raise UnsupportedError(
            "sampler='auto' found no affordable exact sampler: uniform rejection may need more than 1e9 loss evaluations "
            f"(about 10^{-floor / math.log(10.0):.0f}). Declare the loss's `growth`, lower epsilon or the dimension, or ask "
            "for Rejection() regardless."
        )
    return Rejection(envelope)


def _bounds_boxes(target: Target) -> bool:
    """Tell whether the loss offers what a box tree needs: Lipschitz constants, lower bounds, or convexity with a gradient."""
    loss = target.problem.loss
    if target.problem.lipschitz is not None or hasattr(loss, "lower_bound"):
        return True
    return bool(getattr(loss, "convex", False)) and hasattr(loss, "gradient")
