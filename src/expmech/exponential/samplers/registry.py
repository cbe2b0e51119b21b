"""The list of samplers: those a plan tries, and those a name or a certificate may mean."""

from __future__ import annotations

from expmech.core.errors import ParameterError, ParameterTypeError, did_you_mean
from expmech.core.registry import Registry
from expmech.exponential.envelopes.registry import PLANNED as ENVELOPES_PLANNED
from expmech.exponential.samplers.base import Sampler
from expmech.exponential.samplers.box_tree import BoxTree
from expmech.exponential.samplers.conf_atom import ConfAtomPerfect
from expmech.exponential.samplers.constant_mixture import ConstantMixture
from expmech.exponential.samplers.metropolis import Metropolis
from expmech.exponential.samplers.random_atom import RandomAtomPerfect
from expmech.exponential.samplers.rejection import Rejection
from expmech.exponential.samplers.runtime import ConfAtomAndRuntimePerfect
from expmech.exponential.samplers.separable import Separable
from expmech.exponential.samplers.tabulated import ConstantTabulated, Tabulated

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
"""What a plan tries, in this order; of equal costs `auto` takes the first."""

UNPLANNED: tuple[type[Sampler], ...] = (RandomAtomPerfect, ConstantMixture)
"""Samplers that a plan cannot construct by itself; each says what it needs."""

SAMPLERS: Registry[type[Sampler]] = Registry(
    "expmech.samplers",
    [(kind.name(), kind) for kind in (*(type(sampler) for sampler in PLANNED), *UNPLANNED)],
)


def register(sampler: Sampler | type[Sampler]) -> None:
    """Make a sampler known, so that its certificates can be verified in this process.

    An entry point ``expmech.samplers`` of a package does the same for the command line.

    Parameters
    ----------
    sampler : Sampler or type
        A sampler defined outside this package, or its class.
    """
    kind = sampler if isinstance(sampler, type) else type(sampler)
    SAMPLERS.add(kind.name(), kind)


def names() -> list[str]:
    """Return the names that `sampler` accepts as text, with ``"auto"`` first."""
    # Metropolis has no default: it needs a delta, a number of steps, or pure=True
    named = [sampler.name() for sampler in PLANNED if not isinstance(sampler, Metropolis)]
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
        hint = did_you_mean(sampler, names(), cutoff=0.4)
        raise ParameterError(
            f"`sampler` must be one of {listed}, or a sampler object such as"
            f" Metropolis(pure=True); got {sampler!r}.{hint}"
        )
    return kind()
