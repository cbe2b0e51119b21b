"""A mechanism as an OpenDP measurement. Needs the extra ``expmech[opendp]``."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from expmech.adjacency import validate_adjacency
from expmech.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.release import ExponentialMechanism, NoisyMean, Release
from expmech.samplers import Sampler
from expmech.target import validate_epsilon

Mechanism = ExponentialMechanism | NoisyMean
_OWNER = "as_measurement"
_DOMAIN = "expmech data sets"


def as_measurement(
    mechanism: Mechanism | Callable[[Any], Mechanism],
    *,
    epsilon: float | Fraction,
    sampler: Sampler | str = "auto",
    adjacency: str | None = None,
) -> Any:
    """Return an OpenDP measurement, epsilon-DP under max divergence, for an OpenDP Context.

    Parameters
    ----------
    mechanism
        A function of the data set that makes the mechanism, or a mechanism, which holds its data
        set; the measurement is then invoked on that mechanism, and on nothing else.
    adjacency
        "replace" (OpenDP's change-one distance) or "add-remove" (symmetric distance). Needed for a
        function; a mechanism has its own.

    Notes
    -----
    OpenDP counts user functions as honest-but-curious: enable ``"contrib"`` and
    ``"honest-but-curious"`` first. k changed rows cost k epsilon.
    """
    import opendp.prelude as dp

    budget = float(validate_epsilon(epsilon, owner=_OWNER))
    own = _adjacency(mechanism, adjacency, epsilon, sampler)

    def invoke(data: Any) -> Any:
        made = _made(mechanism, data)
        if _certified_adjacency(made, epsilon, sampler) != own:
            raise ParameterError(
                f"`mechanism` of {_OWNER} must make mechanisms of {own!r} adjacency; it did not."
            )
        return _release(made, epsilon, sampler).value

    metric = dp.change_one_distance() if own == "replace" else dp.symmetric_distance()
    return dp.m.make_user_measurement(
        data_domain(),
        metric,
        dp.max_divergence(),
        invoke,
        lambda rows: _up(budget, epsilon) * rows,
        TO="ExtrinsicObject",
    )


def _adjacency(
    mechanism: Any, adjacency: str | None, epsilon: float | Fraction, sampler: Sampler | str
) -> str:
    """Return the neighbours of the measurement: a mechanism's own, or those asked for."""
    if isinstance(mechanism, (ExponentialMechanism, NoisyMean)):
        own = _certified_adjacency(mechanism, epsilon, sampler)
        if adjacency not in (None, own):
            raise ParameterError(
                f"`adjacency` of {_OWNER} must be that of the mechanism, {own!r}; got"
                f" {adjacency!r}."
            )
        return own
    if not callable(mechanism):
        raise ParameterTypeError(
            f"`mechanism` of {_OWNER} must be a mechanism or a function that makes one; got"
            f" {mechanism!r}."
        )
    return str(validate_adjacency(adjacency, owner=_OWNER))


def _made(mechanism: Any, data: Any) -> Mechanism:
    """Return the mechanism of a data set: a mechanism holds its own."""
    made: Mechanism = mechanism
    if not isinstance(mechanism, (ExponentialMechanism, NoisyMean)):
        made = mechanism(data)
    elif data is not mechanism:
        raise ParameterError(
            "This measurement was made from a mechanism and must be invoked on that mechanism."
        )
    return made


def data_domain() -> Any:
    """Return the OpenDP domain of any data set a mechanism may be made from.

    Pass it to ``Context.compositor(domain=...)``.
    """
    import opendp.prelude as dp

    return dp.user_domain(_DOMAIN, member=lambda _: True)


def _certified_adjacency(
    mechanism: Mechanism, epsilon: float | Fraction, sampler: Sampler | str
) -> str:
    """Return the adjacency of the guarantee; raise unless it is pure."""
    if isinstance(mechanism, NoisyMean):
        return mechanism.adjacency
    certificate = mechanism.certificate(epsilon=epsilon, sampler=sampler)
    if certificate.delta > 0.0:
        raise UnsupportedError(
            f"{_OWNER} needs a pure guarantee; this sampler has a delta. Use Metropolis(pure=True)"
            " or Rejection()."
        )
    return certificate.adjacency


def _release(mechanism: Mechanism, epsilon: float | Fraction, sampler: Sampler | str) -> Release:
    if isinstance(mechanism, NoisyMean):
        return mechanism.release(epsilon=epsilon)
    return mechanism.release(epsilon=epsilon, sampler=sampler)


def _up(budget: float, epsilon: float | Fraction) -> float:
    """Return epsilon as a float that is not below what is spent; a float counts as itself."""
    if isinstance(epsilon, float):
        return epsilon
    return budget if Fraction(budget) >= epsilon else math.nextafter(budget, math.inf)
