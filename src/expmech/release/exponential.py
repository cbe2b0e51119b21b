"""The exponential mechanism as a user meets it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech._version import __version__
from expmech.bits import Bits, operating_system_bits, seeded_bits
from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Domain
from expmech.errors import UnsupportedError, validate_integer
from expmech.losses.base import Growth
from expmech.release.certificate import RELEASE, STUDY, Certificate
from expmech.samplers import Chain, Draws, Plan, Sampler, choose_sampler, make_plan, run
from expmech.samplers.registry import validate_sampler
from expmech.target import SMALL_TABLE, Target, make_problem, make_target, validate_epsilon
from expmech.target.problem import Loss

_OWNER = "ExponentialMechanism"
_PLATFORM = (
    "NumPy's exp and log are accurate to 16 units in the last place; the operating system's random"
    " key is secret"
)


@dataclass(frozen=True)
class Release:
    """A value that may leave, and its certificate."""

    value: Any
    certificate: Certificate


class ExponentialMechanism:
    """Draw exactly from the exponential mechanism f(y) ~ exp(-epsilon L(y) / 2D) on a lattice.

    Parameters
    ----------
    loss
        Takes an (m, d) C-contiguous float64 array (for :class:`~expmech.Candidates` the index
        array) and returns (m,) numbers. An object may also offer what it knows: ``sensitivity``,
        ``lipschitz``, ``growth``, ``minimum``, ``bound``, ``gap``, ``loss_error``.
    sensitivity
        ``D``: how much the loss may change at any point between adjacent data sets. May be left out
        for a built-in loss.
    domain
        Where outputs live; public.
    adjacency
        "replace" (one row replaced, the number of rows public) or "add-remove"; what the
        sensitivity refers to.
    lipschitz
        One constant a coordinate, true for every data set.
    minimum, bound
        Public bounds ``minimum <= L <= bound``. The minimum is 0 by default.
    gap
        Public bound on how far the least loss lies above ``minimum``.
    loss_error
        Public bound on the difference between the computed and the true loss. By default 2^-44 of
        the bound on the loss, or of where energies saturate when there is none.
    growth
        What the loss is known to grow by, see :class:`~expmech.Growth`.

    Examples
    --------
    >>> import numpy as np, expmech as em
    >>> rows = np.array([[0.2], [0.4], [0.9]])
    >>> loss, box = em.losses.L1Mean(rows), em.Box([0.0], [1.0])
    >>> mech = em.ExponentialMechanism(loss=loss, sensitivity=1 / 3, domain=box)
    >>> mech.release(epsilon=1.0).value.shape
    (1,)
    """

    def __init__(
        self,
        *,
        loss: Loss,
        sensitivity: float | Fraction | None = None,
        domain: Domain,
        adjacency: str = "replace",
        lipschitz: ArrayLike | None = None,
        minimum: float | None = None,
        bound: float | None = None,
        gap: float | None = None,
        loss_error: float | None = None,
        growth: Growth | None = None,
    ) -> None:
        self._problem = make_problem(
            loss=loss,
            sensitivity=sensitivity,
            domain=domain,
            adjacency=adjacency,
            lipschitz=lipschitz,
            minimum=minimum,
            bound=bound,
            gap=gap,
            loss_error=loss_error,
            growth=growth,
        )
        self._problem.check_loss()

    @property
    def domain(self) -> Domain:
        """The public lattice."""
        return self._problem.domain

    def target(self, *, epsilon: float | Fraction) -> Target:
        """Return the calibrated energies at ``epsilon``; they are confidential."""
        return make_target(self._problem, validate_epsilon(epsilon, owner=_OWNER))

    def release(self, *, epsilon: float | Fraction, sampler: Sampler | str = "auto") -> Release:
        """Draw one value with randomness from the operating system; it may leave.

        Returns
        -------
        Release
            ``value`` and ``certificate``. The number of proposals is not in it: it is confidential.
        """
        bits = operating_system_bits()
        draws, certificate = self._draw(epsilon, sampler, 1, bits, RELEASE)
        return Release(value=draws.values[0], certificate=certificate)

    def study(
        self,
        *,
        epsilon: float | Fraction,
        sampler: Sampler | str = "auto",
        seed: int | Sequence[int],
    ) -> Release:
        """Draw one value from a seeded stream, as :meth:`release` would.

        Its certificate says that it is a study.
        """
        draws, certificate = self._draw(epsilon, sampler, 1, seeded_bits(seed), STUDY)
        return Release(value=draws.values[0], certificate=certificate)

    def sample(
        self,
        *,
        epsilon: float | Fraction,
        size: int = 1,
        sampler: Sampler | str = "auto",
        seed: int | Sequence[int],
    ) -> Draws:
        """Draw ``size`` independent values from a seeded stream, with their proposal counts.

        For studies, never a release.
        """
        size = validate_integer(size, name="size", owner=f"{_OWNER}.sample", low=1, high=1 << 40)
        return self._draw(epsilon, sampler, size, seeded_bits(seed), STUDY)[0]

    def certificate(
        self, *, epsilon: float | Fraction, sampler: Sampler | str = "auto"
    ) -> Certificate:
        """Return the certificate a release would carry, without drawing anything."""
        _, chain, target = self._prepare(epsilon, sampler)
        return self._certify(epsilon, chain, target, operating_system_bits(), RELEASE)

    def plan(self, epsilon: float | Fraction, *, timing: str = "unprotected") -> Plan:
        """Return what every sampler would guarantee and cost at ``epsilon``.

        From public quantities: it may be printed.

        Parameters
        ----------
        epsilon
            The budget.
        timing
            "constant" makes `auto` choose among samplers whose number of loss evaluations is fixed
            beforehand.
        """
        plan = make_plan(self._problem, validate_epsilon(epsilon, owner=_OWNER), timing=timing)
        return dataclasses.replace(plan, epsilon=float(epsilon))

    def law(self, *, epsilon: float | Fraction) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return every lattice point and its probability.

        When the lattice has at most 2^16 points (confidential).
        """
        target = self.target(epsilon=epsilon)
        indices = self.domain.all_indices(SMALL_TABLE)
        if indices is None:
            raise UnsupportedError(
                f"ExponentialMechanism.law lists lattices of at most {SMALL_TABLE} points; this"
                " domain has more. Use fewer bits, or sample."
            )
        energies = target.energy(indices)
        weights = np.exp((energies - energies.min()) * (-1.0 / UNITS_PER_NAT))
        return self.domain.values(indices), weights / weights.sum()

    def _prepare(
        self, epsilon: float | Fraction, sampler: Sampler | str
    ) -> tuple[Sampler, Chain[Any], Target]:
        budget = validate_epsilon(epsilon, owner=_OWNER)
        valid = validate_sampler(sampler)
        chosen = choose_sampler(self._problem, budget) if isinstance(valid, str) else valid
        target = make_target(self._problem, budget - chosen.reserve)
        return chosen, chosen.prepare(target), target

    def _draw(
        self, epsilon: float | Fraction, sampler: Sampler | str, size: int, bits: Bits, kind: str
    ) -> tuple[Draws, Certificate]:
        _, chain, target = self._prepare(epsilon, sampler)
        certificate = self._certify(epsilon, chain, target, bits, kind)
        return run(chain, Coins(bits), size), certificate

    def _certify(
        self, epsilon: float | Fraction, chain: Chain[Any], target: Target, bits: Bits, kind: str
    ) -> Certificate:
        return Certificate(
            kind=kind,
            epsilon=float(epsilon),
            delta=chain.delta,
            adjacency=self._problem.adjacency,
            sensitivity=float(self._problem.sensitivity),
            loss_error=target.loss_error,
            eta=target.eta,
            domain=self.domain.describe(),
            sampler=chain.parameters,
            timing=chain.timing,
            randomness=bits.source,
            assumptions=(*self._problem.assumptions, *chain.assumptions, _PLATFORM),
            version=__version__,
        )
