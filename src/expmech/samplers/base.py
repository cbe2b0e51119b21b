"""The one contract of every sampler: it says everything about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from expmech.cost import MOST_EVALUATIONS, Forecast
from expmech.domains import Domain
from expmech.errors import UnsupportedError
from expmech.samplers.chain import Chain
from expmech.target import Problem, Target, make_target

CONSTANT, DATA_INDEPENDENT, DATA_DEPENDENT = "constant", "data-independent", "data-dependent"
"""Timing classes: the number of proposals is fixed; random with a public law; or its law depends
on the data."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What may be said in public about a draw, before the data are looked at.

    ``parameters`` go to the certificate; the one called ``sampler`` names the class.
    """

    timing: str
    parameters: dict[str, Any]
    delta: float = 0.0
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim of a certificate, whether it holds, and what was compared."""

    claim: str
    holds: bool
    detail: str


def check_equal(claim: str, written: Any, expected: Any) -> Check:
    """Compare a number or text of a certificate with what it was recomputed to be."""
    holds = type(written) is type(expected) and written == expected
    return Check(claim=claim, holds=holds, detail=f"{written!r}, recomputed {expected!r}")


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """What a certificate claims, as far as the sampler it names has to do with it."""

    delta: float
    sensitivity: float
    loss_error: float
    eta: float
    unit: int
    timing: str
    parameters: Mapping[str, Any]
    domain: Domain


class Sampler(ABC):
    """A recipe for exact draws: it says everything about itself.

    A sampler of one's own must give :meth:`prepare`; the rest has defaults that are true of a pure
    sampler whose running time depends on the data.

    Attributes
    ----------
    timing : str
        Timing class of the number of proposals.
    automatic : bool
        Whether `auto` may take it: pure, and not only of interest to research.
    most_affordable : float
        Evaluations up to which `auto` regards it as affordable.
    least_typical : float
        No forecast of it is below this, so none is made where another sampler is cheaper.
    planned_delta : float
        The delta a plan shows for it.
    bounded_range : bool
        Whether the log ratio of the laws of neighbours lies in an interval of width epsilon, as
        where the law is f exactly: a ledger then counts an eighth of epsilon squared, not a half.
    lists_first : bool
        Whether it is always taken on a list of candidates that it can serve.
    serves_base : bool
        Whether it draws under a public base measure: it accepts by the energies of the target and
        takes what the target contains.
    needs : str or None
        Why a plan cannot make one by itself.
    assumptions : tuple of str
        What the guarantee, or the absence of errors, rests on beyond the problem's assumptions.
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
        """Return what certificates call it."""
        return cls.__name__

    @property
    def label(self) -> str:
        """What a plan calls it, options included."""
        return self.name()

    @property
    def reserve(self) -> Fraction:
        """Part of epsilon the sampler needs for itself, taken off before calibration."""
        return Fraction(0)

    @property
    def rounded_terms(self) -> int:
        """Number of separately rounded terms in an energy: units taken off either half of epsilon.

        How much that is in nats depends on the unit, which calibration chooses.
        """
        return 1

    def calibrate(self, problem: Problem, epsilon: Fraction) -> Target:
        """Return the target of ``problem`` at ``epsilon`` that this sampler draws from."""
        return make_target(problem, epsilon - self.reserve, terms=self.rounded_terms)

    def validate_base(self, target: Target) -> None:
        """Raise UnsupportedError where it does not draw under the target's base measure."""
        if target.measure is not None and not self.serves_base:
            raise UnsupportedError(
                f"{self.name()} does not say that it draws under a base measure. Use a sampler that"
                " does, such as Rejection or Tabulated, or leave `base` out."
            )

    def terms(self, target: Target) -> Terms:
        """Return what is public about a draw; raise UnsupportedError, on public grounds."""
        return Terms(timing=self.timing, parameters=self.describe(), assumptions=self.assumptions)

    def describe(self) -> dict[str, Any]:
        """Return the public parameters that :meth:`rebuild` takes, and the class's name."""
        return {"sampler": self.name()}

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the sampler that wrote these parameters into a certificate."""
        return cls()

    def assumed(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return assumptions that a certificate with these parameters must state."""
        return self.assumptions

    @abstractmethod
    def prepare(self, target: Target) -> Chain[Any]:
        """Fit to ``target``: the confidential half, built once a release.

        Raise UnsupportedError, with the reason and the alternative, where it cannot be.
        """

    def forecast(self, target: Target) -> Forecast:
        """Return what a draw will cost, from public quantities; here only that it is unknown."""
        self.terms(target)
        return Forecast(expected=(1.0, None), nearly_all=(1.0, None), typical=float("inf"))

    def verify(self, claimed: Claimed) -> list[Check]:
        """Recompute the sampler's part of a certificate: here its timing class, and no delta."""
        return [
            self.verify_timing(claimed),
            check_equal("delta", float(claimed.delta), 0.0),
        ]

    def verify_timing(self, claimed: Claimed) -> Check:
        """Compare the timing class with the sampler's own."""
        detail = f"{claimed.timing!r}, where {self.name()} has {self.timing!r}"
        return Check(claim="timing", holds=claimed.timing == self.timing, detail=detail)
