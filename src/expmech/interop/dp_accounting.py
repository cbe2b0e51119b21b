"""A certificate as an event of Google's dp_accounting.

Needs the extra ``expmech[dp-accounting]``.
"""

from __future__ import annotations

import math
from typing import Any

from expmech.certificates.certificate import Certificate
from expmech.core.errors import ParameterTypeError, UnsupportedError


def event(certificate: Certificate) -> Any:
    """Return a dp_accounting event that dominates the certified release.

    Parameters
    ----------
    certificate : Certificate
        Of any mechanism with a pure guarantee.

    Returns
    -------
    dp_accounting.DpEvent
        One per release.

    Raises
    ------
    UnsupportedError
        If the guarantee has a delta.

    Notes
    -----
    Under "replace" the event is randomised response on two buckets, the tight dominating pair of
    every epsilon-DP mechanism: use an accountant with ``NeighboringRelation.REPLACE_ONE``. Under
    "add-remove", for which dp_accounting has no such event, it is ``epsilon^2 / 2``
    zero-concentrated DP, which every epsilon-DP mechanism satisfies (Bun and Steinke 2016,
    Proposition 1.4), for RdpAccountant. Compose one event per release: PLDAccountant of
    dp_accounting 0.6.0 passes over ``count`` for randomised response.
    """
    import dp_accounting

    if not isinstance(certificate, Certificate):
        raise ParameterTypeError(
            "`certificate` of event must be an expmech.Certificate; got"
            f" {type(certificate).__name__}."
        )
    if certificate.delta > 0.0:
        raise UnsupportedError(
            "dp_accounting.event needs a pure guarantee: dp_accounting has no event for epsilon and"
            " delta. Charge a Ledger, or use Metropolis(pure=True)."
        )
    epsilon = math.nextafter(certificate.epsilon, math.inf)
    if certificate.adjacency == "replace":
        # exp(epsilon) = (1 - p/2) / (p/2), p rounded down: less noise than there is.
        noise = math.nextafter(2.0 / (1.0 + math.exp(epsilon)), 0.0) if epsilon < 700.0 else 0.0
        return dp_accounting.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)
    return dp_accounting.ZCDpEvent(rho=math.nextafter(epsilon * epsilon / 2.0, math.inf))
