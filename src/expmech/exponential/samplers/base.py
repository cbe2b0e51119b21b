"""The base class of samplers, and the records of what they say in public."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from expmech.certificates.checks import Check, check_equal
from expmech.certificates.forecast import MOST_EVALUATIONS, Forecast
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.core.errors import ExpmechError, UnsupportedError
from expmech.domains import Domain
from expmech.exponential.envelopes import ENVELOPES
from expmech.exponential.kernels import Kernel, check_kernel
from expmech.exponential.kernels.mixture import rebuild_kernel
from expmech.exponential.samplers.chain import Chain
from expmech.exponential.target import Problem, Target, make_target


@dataclass(frozen=True, kw_only=True)
class SamplerTerms:
    """What may be said in public about a draw, before the data are looked at.

    Parameters
    ----------
    timing : str
        Timing class of the number of proposals.
    parameters : dict
        What the certificate says of the sampler; the entry ``sampler`` is the name of its class.
    delta : float, default 0.0
        The delta of the guarantee.
    assumptions : tuple of str, default ()
        What the guarantee, or the absence of errors, rests on.
    """

    timing: str
    parameters: dict[str, Any]
    delta: float = 0.0
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SamplerClaims:
    """The claims of a certificate that its sampler must verify.

    Parameters
    ----------
    delta : float
        The delta of the guarantee.
    sensitivity, loss_error : float
        Largest change of the loss between neighbours, and the largest error of the computed loss.
    eta : float
        Energy per unit of loss.
    unit : int
        Log to base 2 of the unit of energies, in nats.
    timing : str
        Timing class of the number of proposals.
    parameters : Mapping
        Public parameters of the sampler, as :meth:`Sampler.terms` gave them.
    domain : Domain
        The set of possible answers.
    """

    delta: float
    sensitivity: float
    loss_error: float
    eta: float
    unit: int
    timing: str
    parameters: Mapping[str, Any]
    domain: Domain


class Sampler(ABC):
    """Base class of samplers: each draws exactly from a law and says everything about itself.

    A subclass must define :meth:`prepare`. The rest has defaults that are true of a sampler with
    delta = 0 whose running time depends on the data.

    Attributes
    ----------
    timing : str
        Timing class of the number of proposals.
    automatic : bool
        Whether `auto` may choose it: delta is 0, and it is not only of interest to research.
    most_affordable : float
        Number of evaluations up to which `auto` regards it as affordable.
    least_typical : float
        No forecast of it is below this, so none is made where another sampler is cheaper.
    planned_delta : float
        The delta a plan shows for it.
    bounded_range : bool
        Whether the log ratio of the laws of neighbours lies in an interval of width epsilon, as
        where the law is f exactly. A ledger then counts at most epsilon^2/8 of rho, not up to
        epsilon^2/2.
    lists_first : bool
        Whether `auto` always takes it for a list of candidates that it can serve.
    serves_base : bool
        Whether it draws under a public base measure: it accepts by the energies of the target and
        proposes only what the target contains.
    needs : str or None
        Why a plan cannot construct it by itself.
    assumptions : tuple of str
        What the guarantee, or the absence of errors, rests on beyond the problem's assumptions.

    Examples
    --------
    >>> from expmech.exponential.samplers import Rejection
    >>> Rejection().name(), Rejection().timing, float(Rejection().reserve)
    ('Rejection', 'data-dependent', 0.0)
    """

    timing: str = DATA_DEPENDENT
    automatic: bool = False
    most_affordable: float = MOST_EVALUATIONS
    least_typical: float = 1.0
    planned_delta: float = 0.0
    bounded_range: bool = False
    lists_first: bool = False
    serves_base: bool = False
    needs: str | None = None
    assumptions: tuple[str, ...] = ()

    @classmethod
    def name(cls) -> str:
        """Return the name that certificates use."""
        return cls.__name__

    @property
    def label(self) -> str:
        """The name that a plan shows, with the main options."""
        return self.name()

    @property
    def reserve(self) -> Fraction:
        """Part of epsilon that the sampler itself costs, subtracted before calibration."""
        return Fraction(0)

    @property
    def rounded_terms(self) -> int:
        """Number of separately rounded terms in an energy; calibration reserves a unit for each."""
        return 1

    def calibrate(self, problem: Problem, epsilon: Fraction) -> Target:
        """Return the target of a problem at epsilon that this sampler draws from.

        Parameters
        ----------
        problem : Problem
            Loss, sensitivity and domain.
        epsilon : Fraction
            The budget.

        Returns
        -------
        Target
            Integer energies at what is left of epsilon after :attr:`reserve`.
        """
        return make_target(problem, epsilon - self.reserve, terms=self.rounded_terms)

    def validate_base(self, target: Target) -> None:
        """Raise UnsupportedError if the sampler cannot draw under the target's base measure."""
        if target.measure is not None and not self.serves_base:
            raise UnsupportedError(
                f"{self.name()} does not say that it draws under a base measure. Use a sampler that"
                " does, such as Rejection or Tabulated, or leave `base` out."
            )

    def terms(self, target: Target) -> SamplerTerms:
        """Return what is public about a draw, without looking at the loss.

        Raises
        ------
        UnsupportedError
            Where the sampler does not apply, for reasons that are public.
        """
        return SamplerTerms(
            timing=self.timing, parameters=self.describe(), assumptions=self.assumptions
        )

    def describe(self) -> dict[str, Any]:
        """Return the name of the class and the public parameters that :meth:`rebuild` takes."""
        return {"sampler": self.name()}

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the sampler that wrote these parameters into a certificate."""
        return cls()

    def assumed(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the assumptions that a certificate with these parameters must state."""
        return self.assumptions

    @abstractmethod
    def prepare(self, target: Target) -> Chain[Any]:
        """Return the chain that draws from ``target``: the confidential half, once per release.

        Raises
        ------
        UnsupportedError
            Where the sampler does not apply; the text names the reason and an alternative.
        """

    def forecast(self, target: Target) -> Forecast:
        """Return what a draw will cost, from public quantities; by default, that it is unknown."""
        self.terms(target)
        return Forecast(expected=(1.0, None), nearly_all=(1.0, None), typical=float("inf"))

    def verify(self, claims: SamplerClaims) -> list[Check]:
        """Recompute the sampler's part of a certificate; by default timing class and delta = 0."""
        return [self.verify_timing(claims), check_equal("delta", float(claims.delta), 0.0)]

    def verify_timing(self, claims: SamplerClaims) -> Check:
        detail = f"{claims.timing!r}, where {self.name()} has {self.timing!r}"
        return Check(claim="timing", holds=claims.timing == self.timing, detail=detail)


_UNREADABLE = (ExpmechError, TypeError, KeyError, ValueError)


def find_kernel(description: Mapping[str, Any] | None) -> Kernel | None:
    """Return the kernel of a certificate, None if it names none or an unknown one."""
    if description is None:
        return None
    try:
        return rebuild_kernel(description)
    except _UNREADABLE:
        return None


def verify_kernel(description: Mapping[str, Any] | None, domain: Domain) -> list[Check]:
    """Rebuild the kernel; check that it is symmetric and that its draws have the stated masses."""
    if description is None:
        return []
    try:
        kernel = rebuild_kernel(description)
        check_kernel(kernel, domain)
    except _UNREADABLE:
        detail = f"{description!r} cannot be made, or fails its check"
        return [Check(claim="kernel", holds=False, detail=detail)]
    return [Check(claim="kernel", holds=True, detail=f"{kernel.name!r}")]


def verify_envelope(name: str, claim: str = "envelope") -> Check:
    known = ENVELOPES.find(name) is not None
    detail = f"{name!r}" if known else f"unknown envelope {name!r}"
    return Check(claim=claim, holds=known, detail=detail)
