"""A mechanism as an OpenDP measurement. Needs the extra ``expmech[opendp]``."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from expmech.certificates.certificate import Certificate, epsilon_up
from expmech.certificates.mechanism import Mechanism
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.core.rounding import validate_epsilon
from expmech.exponential.samplers import Sampler

_OWNER = "as_measurement"


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
    mechanism : Mechanism or callable
        A function of the data set that makes the mechanism; or a mechanism, which holds its data
        set: the measurement is then invoked on that mechanism, and on nothing else.
    epsilon : float or Fraction
        The budget; k changed rows cost k epsilon.
    sampler : Sampler or "auto"
        How to draw, for mechanisms that have a choice.
    adjacency : {"replace", "add-remove"}, optional
        OpenDP's change-one or symmetric distance. Needed for a function; a mechanism has its own.

    Returns
    -------
    opendp.mod.Measurement

    Raises
    ------
    UnsupportedError
        If the guarantee has a delta.
    ParameterError
        If the adjacency is missing, or is not that of the mechanism.

    Notes
    -----
    OpenDP counts user functions as honest-but-curious: enable ``"contrib"`` and
    ``"honest-but-curious"`` first.
    """
    import opendp.prelude as dp

    validate_epsilon(epsilon, owner=_OWNER)
    if isinstance(mechanism, Mechanism):
        relation = _pure_certificate(mechanism, epsilon, sampler).adjacency
        if adjacency not in (None, relation):
            raise ParameterError(
                f"`adjacency` of {_OWNER} must be that of the mechanism, {relation!r}; got"
                f" {adjacency!r}."
            )
    elif callable(mechanism):
        relation = str(validate_adjacency(adjacency, owner=_OWNER))
    else:
        raise ParameterTypeError(
            f"`mechanism` of {_OWNER} must be a mechanism or a function that makes one; got"
            f" {mechanism!r}."
        )

    def invoke(data: Any) -> Any:
        if not isinstance(mechanism, Mechanism):
            own = mechanism(data)
        elif data is mechanism:
            own = mechanism
        else:
            raise ParameterError(
                "This measurement was made from a mechanism and must be invoked on that mechanism."
            )
        if _pure_certificate(own, epsilon, sampler).adjacency != relation:
            raise ParameterError(
                f"`mechanism` of {_OWNER} must make mechanisms of {relation!r} adjacency; it did"
                " not."
            )
        return own.release(epsilon=epsilon, sampler=sampler).value

    replace = relation == Adjacency.REPLACE
    return dp.m.make_user_measurement(
        data_domain(),
        dp.change_one_distance() if replace else dp.symmetric_distance(),
        dp.max_divergence(),
        invoke,
        lambda rows: epsilon_up(epsilon) * rows,
        TO="ExtrinsicObject",
    )


def data_domain() -> Any:
    """Return the OpenDP domain of any data set a mechanism may be made from.

    Pass it to ``Context.compositor(domain=...)``.
    """
    import opendp.prelude as dp

    return dp.user_domain("expmech data sets", member=lambda _: True)


def _pure_certificate(
    mechanism: Mechanism, epsilon: float | Fraction, sampler: Sampler | str
) -> Certificate:
    """Return what a release would guarantee; raise unless it is pure."""
    certificate = mechanism.certificate(epsilon=epsilon, sampler=sampler)
    if certificate.delta > 0.0:
        raise UnsupportedError(
            f"{_OWNER} needs a pure guarantee; this sampler has a delta. Use Metropolis(pure=True)"
            " or Rejection()."
        )
    return certificate
