"""The best of a list of candidates, by score."""

from __future__ import annotations

import numpy as np

from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.errors import ParameterError, validate_vector
from expmech.domains import Domain, Region
from expmech.losses.base import Facts


class Scores:
    """``L(j) = max(scores) - scores_j`` on a list of candidates: the classical discrete mechanism.

    Parameters
    ----------
    scores : array-like of float
        Confidential, one per candidate; higher is better.

    Notes
    -----
    Give the mechanism the sensitivity of the *scores*: D if every score moves by at most D either
    way; D/2 if between adjacent data sets all move the same way by at most D, as counts do under
    add-remove. The shift by the maximum is common to all candidates and cancels. Saturation keeps
    it so: with the maximum moved by m, losses move by values of ``[m - D, m + D]`` (one-way: ``[m -
    D, m]``), an interval that holds 0, the move of a saturated loss; only its length enters the
    privacy bound. The difference rounds by 2^-53 of itself, which the default loss error of 2^-44
    of where energies saturate covers.

    Examples
    --------
    >>> Scores([3, 5, 4])(np.array([0, 1, 2]))
    array([2., 0., 1.])
    """

    def __init__(self, scores: ArrayLike) -> None:
        values = validate_vector(scores, name="scores", owner="Scores", confidential=True)
        with np.errstate(all="ignore"):  # beyond 1e308 energies have saturated long before
            losses = np.minimum(values.max() - values, np.finfo(np.float64).max)
        self._losses = np.asarray(losses, dtype=np.float64)

    def __call__(self, indices: Integers) -> Floats:
        """Return the loss of each candidate."""
        return self._losses[indices]

    def facts(self, domain: Domain) -> Facts:
        """Return what is known on a list of as many candidates as there are scores.

        The gap is 0: the best candidate's loss is exactly the minimum, whatever the data.
        """
        size = self._losses.size
        as_many = domain.is_listable(size) and not domain.is_listable(size - 1)
        if isinstance(domain, Region) or not as_many:
            raise ParameterError(f"`domain` of Scores must be Candidates, one per score ({size}).")
        return Facts(minimum=0.0, gap=0.0, proved=True)
