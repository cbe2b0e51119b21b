"""Posterior sampling: a prior as the base measure, clipped log-likelihoods as the loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from expmech.core.arrays import Array
from expmech.core.rounding import float_up
from expmech.domains import Domain
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.target import BaseMeasure
from expmech.losses.likelihood import BoundedLogLikelihood
from expmech.theory import posterior_epsilon


class PosteriorSampling(ExponentialMechanism):
    """The mechanism that :func:`posterior` returns.

    It draws from ``prior(y) exp(eta sum_i clip(l_i(y), low, high))``, eta = epsilon / 2D or a
    little less: the posterior itself at ``full_epsilon``, tempered below it.

    Parameters
    ----------
    loss : BoundedLogLikelihood
        Minus the clipped log-likelihood.
    domain : Domain
        Public: where the parameters live.
    adjacency : {"replace", "add-remove"}, default "replace"
        The neighbouring relation of the loss.
    base : BaseMeasure or callable, optional
        The prior.

    Notes
    -----
    What else may be declared is listed at :class:`~expmech.ExponentialMechanism`.
    """

    @property
    def full_epsilon(self) -> float:
        """The epsilon at which eta reaches 1 and the draw is from the posterior itself."""
        problem = self._problem
        least = posterior_epsilon(
            float_up(problem.sensitivity), loss_error=float_up(problem.loss_error or Fraction(0))
        )
        units = self.target(epsilon=least).units_per_nat  # coarser where losses may be very large
        return float_up(Fraction(math.nextafter(least, math.inf)) + Fraction(1026, units))

    def power(self, *, epsilon: float) -> float:
        """Return eta at ``epsilon``: the power of the likelihood, public.

        Parameters
        ----------
        epsilon : float
            The epsilon of the release.

        Returns
        -------
        float
        """
        return self.target(epsilon=epsilon).eta


def posterior(
    log_likelihood: Callable[[Array], Any],
    *,
    domain: Domain,
    bound: tuple[float, float],
    prior: BaseMeasure | Callable[[Array], Any] | None = None,
    adjacency: str = "replace",
    lipschitz: Any = None,
) -> PosteriorSampling:
    """Return the mechanism that draws parameters from a posterior, tempered to the epsilon asked.

    Parameters
    ----------
    log_likelihood : callable
        Takes parameters, one line each, and returns the log-likelihood of every row of the
        confidential data, one column per row. It must give the same float for the same parameters
        in any batch, and a column must depend on its own row only.
    domain : Domain
        Public: where the parameters live.
    bound : tuple of two floats
        Public ``(low, high)``. A row's log-likelihood outside is clipped to it, and nan counts as
        low, so that the epsilon holds whatever the model; a wide bound clips less and tempers more.
    prior : BaseMeasure or callable, optional
        Public log-density on the domain, at most 0; uniform by default. It costs no epsilon.
    adjacency : {"replace", "add-remove"}, default "replace"
        What neighbouring data sets are; add-remove halves the sensitivity.
    lipschitz : array-like, optional
        Public: how fast a row's log-likelihood may change, one constant per coordinate. On lattices
        that are too large to be listed samplers need it.

    Returns
    -------
    PosteriorSampling
        An :class:`~expmech.ExponentialMechanism` with ``full_epsilon`` and ``power``.

    Notes
    -----
    Law, epsilon and proof: docs/theory/posterior.md.

    Examples
    --------
    >>> import numpy as np, expmech as em
    >>> rows = np.array([1.0, 1.0, 0.0, 1.0])
    >>> def bernoulli(y):
    ...     return np.where(rows == 1.0, np.log(y[:, :1]), np.log1p(-y[:, :1]))
    >>> rate = em.posterior(bernoulli, domain=em.Box([0.1], [0.9], bits=10), bound=(-2.3, -0.1))
    >>> rate.full_epsilon
    4.4...
    >>> rate.release(epsilon=1.0).value.shape
    (1,)
    """
    loss = BoundedLogLikelihood(
        log_likelihood, bound=bound, adjacency=adjacency, lipschitz=lipschitz
    )
    return PosteriorSampling(loss=loss, domain=domain, adjacency=adjacency, base=prior)
