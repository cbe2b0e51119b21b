"""A mechanism that draws by itself, without a sampler: what such mechanisms share.

It says its name, its timing class and its cost, certifies from public quantities and fits once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from expmech.cost import Forecast
from expmech.errors import ParameterError, UnsupportedError, validate_choice, validate_integer
from expmech.release.direct_checks import ENERGY_UNIT
from expmech.release.prepared import Asked, Draw, Mechanism, Prepared
from expmech.samplers import TIMINGS, Option, Plan, Sampler, Wanted, plan_alone
from expmech.samplers.base import CONSTANT, DATA_DEPENDENT
from expmech.target import validate_epsilon


@dataclass(frozen=True, kw_only=True)
class DirectTerms:
    """What a mechanism says in public about a draw at one epsilon.

    ``log_size`` is the log of the number of possible answers, which bounds how far a draw is from
    the best one; None where that says nothing.
    """

    sensitivity: float
    loss_error: float
    eta: float
    domain: dict[str, Any]
    parameters: dict[str, Any]
    assumptions: tuple[str, ...]
    adjacency: str
    log_size: float | None = None


class DirectMechanism(Mechanism):
    """Everything a mechanism offers on top of its public terms and its draw.

    Attributes
    ----------
    owner : str
        What certificates call it.
    timing : str
        Timing class of the draw.
    constant_instead : str
        What serves timing='constant' where this does not.
    """

    owner: str
    timing: str
    constant_instead: str = ""

    @abstractmethod
    def terms(self, budget: Fraction) -> DirectTerms:
        """Return what is public about a draw; no confidential number enters."""

    @abstractmethod
    def fit(self, budget: Fraction) -> Draw:
        """Return the draw: the confidential half, made once."""

    @abstractmethod
    def forecast(self) -> Forecast:
        """Return what a draw costs, from public quantities."""

    @abstractmethod
    def seconds(self) -> float:
        """Return about how long a draw takes, from public quantities and a public table."""

    @property
    @abstractmethod
    def note(self) -> str:
        """What a plan says about it."""

    def settle(self, asked: Asked) -> Prepared:
        """Settle everything but the draw; what is confidential is not looked at before it."""
        budget = validate_epsilon(asked.epsilon, owner=self.owner)
        self._check(asked.sampler, asked.timing)
        told = asked.told
        terms = self.terms(budget)
        certificate = told.certify(
            self.owner,
            asked.epsilon,
            adjacency=str(terms.adjacency),
            sensitivity=terms.sensitivity,
            loss_error=terms.loss_error,
            eta=terms.eta,
            unit=ENERGY_UNIT,
            domain=terms.domain,
            sampler={"sampler": self.owner, **terms.parameters},
            timing=self.timing,
            assumptions=terms.assumptions,
        )
        return Prepared(
            certificate=certificate,
            sampler=None,
            finish=told.finish,
            fit=lambda: self.fit(budget),
            forecast_seconds=self.seconds,
        )

    def _check(self, sampler: Sampler | str, timing: str) -> None:
        validate_choice(timing, name="timing", owner=self.owner, choices=TIMINGS)
        if sampler != "auto":
            name = sampler if isinstance(sampler, str) else sampler.label
            raise ParameterError(
                f"`sampler` of {self.owner} must be 'auto': it draws by itself; got {name}."
            )
        if timing == CONSTANT and self.timing == DATA_DEPENDENT:
            raise UnsupportedError(self._refusal)

    @property
    def _refusal(self) -> str:
        return (
            f"{self.owner} has a running time that depends on the data, so it does not serve"
            f" timing='constant'. {self.constant_instead}"
        )

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[Any]:
        """Draw ``size`` independent answers from a seeded stream: for studies, never a release."""
        owner = f"{self.owner}.sample"
        size = validate_integer(size, name="size", owner=owner, low=1, high=1 << 40)
        return self.prepare(epsilon=epsilon).sample(size, seed).values

    def planned(self, epsilon: float | Fraction, wanted: Wanted) -> Plan:
        """Return what a release guarantees and costs: public, so it may be printed."""
        validate_choice(wanted.timing, name="timing", owner="plan", choices=TIMINGS)
        terms = self.terms(validate_epsilon(epsilon, owner=self.owner))
        serves = wanted.timing != CONSTANT or self.timing != DATA_DEPENDENT
        only = Option(
            name=self.owner,
            sampler=None,
            delta=0.0,
            timing=self.timing,
            forecast=self.forecast(),
            reason=None,
            seconds=self.seconds(),
        )
        return plan_alone(
            only,
            epsilon=epsilon,
            note=self.note,
            refusal=None if serves else self._refusal,
            excess_loss=_excess_loss(terms),
            budget_seconds=wanted.budget_seconds,
        )


def _excess_loss(terms: DirectTerms) -> tuple[float, float] | None:
    """Bound the loss of a draw above the least: its mean, and what 95% of draws stay below.

    Of N answers those with a loss of t and more above the least come with probability
    ``N exp(-eta t)`` at most; so do winners of coins of ``exp(-eta t)``.
    """
    if terms.log_size is None:
        return None
    mean, most = (terms.log_size + nats for nats in (1.0, math.log(20.0)))
    return mean / terms.eta, most / terms.eta
