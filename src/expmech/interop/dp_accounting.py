"""A certificate as an event, or as a privacy loss distribution, of Google's dp_accounting.

Needs the extra ``expmech[dp-accounting]``. Theory page: docs/theory/composition.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from expmech.certificates.certificate import Certificate
from expmech.core.errors import ParameterTypeError, UnsupportedError
from expmech.core.rounding import float_up
from expmech.ledger.verification import has_bounded_range, rho_of
from expmech.theory.concentrated import rho_of_pure


def event(certificate: Certificate) -> Any:
    """Return a dp_accounting event that dominates the certified release.

    Parameters
    ----------
    certificate : Certificate
        The certificate of a release by any mechanism with a pure guarantee.

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
    A certificate is about one row. Where a person has up to k rows (``max_rows``), a ledger charges
    the person's epsilon, k times the certificate's; an event does not.
    Where the mechanism costs less than any pure one (an exponential mechanism, joint quantiles,
    noisy sums), and always under "add-remove", it is zero-concentrated DP with the mechanism's own
    rho, for RdpAccountant. Else, under "replace", it is randomised response on two buckets, the
    tight dominating pair of every epsilon-DP mechanism: use an accountant with
    ``NeighboringRelation.REPLACE_ONE``. For few releases :func:`privacy_loss_distribution` is
    tighter. Compose one event per release: PLDAccountant of dp_accounting 0.6.0 passes over
    ``count`` for randomised response.
    """
    import dp_accounting

    epsilon = _pure_epsilon(certificate, "event")
    size = Fraction(epsilon)
    rho = rho_of(certificate, size)
    if certificate.adjacency == "replace" and rho == rho_of_pure(size):
        # exp(epsilon) = (1 - p/2) / (p/2), p rounded down: less noise than there is.
        noise = math.nextafter(2.0 / (1.0 + math.exp(epsilon)), 0.0) if epsilon < 700.0 else 0.0
        return dp_accounting.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)
    return dp_accounting.ZCDpEvent(rho=float_up(rho))


def privacy_loss_distribution(certificate: Certificate, *, interval: float = 1e-4) -> Any:
    """Return a privacy loss distribution of dp_accounting that dominates the certified release.

    It composes with others of the same interval, in any order and chosen adaptively, under the
    adjacency of the certificate. Privacy losses are rounded up to whole multiples of ``interval``;
    a guarantee with a delta is refused.

    Of a bounded range epsilon: ``P(loss > l) = (1 - exp((l - epsilon) / 2)) / (1 - exp(-epsilon))``
    for l within epsilon of 0, whose hockey-stick divergences are the largest that such a release
    can have. Of anything else, permute-and-flip among it: randomised response.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    epsilon = _pure_epsilon(certificate, "privacy_loss_distribution")
    last = math.ceil(epsilon / interval)
    if has_bounded_range(certificate):
        whole = -math.expm1(-epsilon)

        def beyond(step: int) -> float:
            loss = min(max(step * interval, -epsilon), epsilon)
            return -math.expm1((loss - epsilon) / 2.0) / whole

        masses = {step: beyond(step - 1) - beyond(step) for step in range(-last, last + 1)}
    else:
        truth = 1.0 / (1.0 + math.exp(-epsilon))
        masses = {last: truth, math.ceil(-epsilon / interval): 1.0 - truth}
    return pld.PrivacyLossDistribution.create_from_rounded_probability(
        {step: mass for step, mass in masses.items() if mass > 0.0}, 0.0, interval
    )


def _pure_epsilon(certificate: Certificate, function: str) -> float:
    """Return the epsilon of a certificate, rounded up; raise where there is a delta."""
    if not isinstance(certificate, Certificate):
        raise ParameterTypeError(
            f"`certificate` of {function} must be an expmech.Certificate; got"
            f" {type(certificate).__name__}."
        )
    if certificate.delta > 0.0:
        raise UnsupportedError(
            f"dp_accounting.{function} needs a pure guarantee: dp_accounting has no event for"
            " epsilon and delta. Charge a Ledger, or use Metropolis(pure=True)."
        )
    return math.nextafter(certificate.epsilon, math.inf)
