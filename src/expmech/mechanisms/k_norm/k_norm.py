"""The K-norm mechanism on integer vectors. Theory page: docs/theory/k_norm.md."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    SECRET_KEY,
    Check,
    budgets,
    check_assumed,
    check_described,
    check_equal,
)
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.timing import DATA_INDEPENDENT
from expmech.core.adjacency import validate_adjacency
from expmech.core.arrays import Array
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError, ParameterTypeError, UnsupportedError, shielded
from expmech.core.rounding import float_down
from expmech.mechanisms.k_norm.bodies import Body, draw_rounded, rebuild_body

WITHIN = (
    "what a row adds to the totals was decided from that row alone and public numbers, and whatever"
    " one row does to them lies in the body"
)
_MOST = 1 << 62  # values beyond are clamped, which is post-processing
_LEAST_ACCEPTANCE = 1e-3


class KNorm(Mechanism):
    """Release integer totals plus noise of density ``~ exp(-epsilon |b|_K)``, rounded last.

    K is a public symmetric convex body that holds the change of the totals for all neighbours. The
    noise is a uniform point of K times the sum of d + 1 exponential reals of rate epsilon; its
    digits are revealed as needed, so the law is exact.

    Parameters
    ----------
    totals : sequence of int
        The totals: confidential, below 2^62 in size.
    body : Body
        What one row can change; public.
    adjacency : {"replace", "add-remove"}
        Which data sets are neighbours.

    Examples
    --------
    >>> from expmech.mechanisms.k_norm import BoxBody
    >>> KNorm(totals=[40, 70], body=BoxBody([1, 1])).release(epsilon=1.0).value.shape
    (2,)
    """

    name = "KNorm"

    def __init__(self, *, totals: Sequence[int], body: Body, adjacency: str = "replace") -> None:
        self.adjacency = validate_adjacency(adjacency, owner=self.name)
        self.body = body
        self._totals = shielded(
            lambda: [int(total) for total in totals],
            ParameterTypeError(f"`totals` of {self.name} must be whole numbers."),
        )
        if len(self._totals) != body.dimension:
            raise ParameterError(f"`totals` of {self.name} must be one per coordinate of the body.")
        if any(abs(total) > _MOST for total in self._totals):
            raise ParameterError(f"`totals` of {self.name} must be below 2^62 in size.")

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return what is public about a draw: everything but the totals."""
        acceptance = self.body.acceptance
        if acceptance < _LEAST_ACCEPTANCE:
            raise UnsupportedError(
                f"{self.name} proposes points of the box around its body, and keeps fewer than one"
                " in a thousand of them. Give a smaller box, a product of bodies, or a `point` of"
                " the body's own."
            )
        return PublicTerms(
            adjacency=self.adjacency,
            sensitivity=1.0,
            eta=float_down(budget),
            domain={"kind": "whole numbers", "body": self.body.name, **self.body.describe()},
            assumptions=(WITHIN, SECRET_KEY),
            timing=DATA_INDEPENDENT,
            seconds=(2e-4 + 4e-5 * self.body.dimension) / acceptance,
            note="noise in the shape of what a row can do",
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw: noise that never looks at the totals is added to them."""

        def draw(coins: Coins, size: int) -> Draws:
            # round(T + b) = T + round(b) for whole T (Fact 3): the noise never sees the totals
            noisy = draw_rounded(self.body, coins, budget, size)
            noisy = noisy + np.array(self._totals, dtype=object)
            values = np.clip(noisy, -_MOST, _MOST).astype(np.int64)
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64))

        return draw

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute what the certificate says of the body, and the rate of the noise."""
        domain = dict(certificate.domain)
        body = rebuild_body(domain)
        rebuilt = {"kind": "whole numbers", "body": body.name, **body.describe()}
        least, most = budgets(certificate)
        eta = certificate.eta
        return [
            check_described("domain", domain, rebuilt),
            check_equal("sampler", certificate.sampler, {"sampler": cls.name}),
            check_equal("timing", certificate.timing, DATA_INDEPENDENT),
            check_equal("sensitivity", certificate.sensitivity, 1.0),
            check_equal("delta", float(certificate.delta), 0.0),
            check_equal("unit", certificate.unit, None),
            check_equal("loss error", float(certificate.loss_error), 0.0),
            Check(claim="eta", holds=least <= eta <= most, detail=f"{eta!r} of {float(most)!r}"),
            check_assumed(certificate, (WITHIN, SECRET_KEY)),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Array | None) -> bool:
        """Tell whether a point has whole numbers, one per coordinate."""
        if point is None or point.shape != (rebuild_body(certificate.domain).dimension,):
            return False
        return bool((point == np.floor(point)).all() and (np.abs(point) <= _MOST).all())
