"""A release that is settled but for the draw: a public half, charged first, and the rest."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expmech._version import __version__
from expmech.bits import OPERATING_SYSTEM, SEEDED, Bits, operating_system_bits, seeded_bits
from expmech.coins import Coins
from expmech.errors import UnsupportedError, validate_positive
from expmech.markup import card, folded
from expmech.release.accuracy import Accuracy
from expmech.release.certificate import RELEASE, STUDY, Certificate, digest_of, epsilon_up
from expmech.release.finish import Finish, Unchanged
from expmech.release.progress import shown
from expmech.samplers import Draws, Plan, Sampler, Wanted, over_budget
from expmech.samplers.base import CONSTANT
from expmech.samplers.choose import AUTO, UNPROTECTED

Draw = Callable[[Coins, int], Draws]
"""So many independent draws from coins."""


@dataclass(frozen=True)
class Release:
    """A value that may leave, and its certificate.

    ``accuracy`` says how far the truth may be, by the law of the noise and by what was released;
    None where that cannot be said without looking at the data.
    """

    value: Any
    certificate: Certificate
    accuracy: Accuracy | None = None

    def _repr_html_(self) -> str:
        """Return value and certificate for a notebook."""
        told = self.certificate
        cost = f"epsilon = {told.epsilon:g}, delta = {told.delta:g}, {told.adjacency} adjacency"
        rows = [(told.statistic, str(self.value)), ("guarantee", cost), ("kind", told.kind)]
        return card("Release", rows, after=folded("Certificate", str(told)))


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a statistic adds to a mechanism's certificate, all of it public.

    Its name, what is done to the draw, and what the guarantee rests on besides: ``premises``, about
    how the rows were read, come first of all, and ``notes`` last. ``owner`` is who refusals speak
    of; None for the mechanism itself.
    """

    statistic: str = "a draw"
    owner: str | None = None
    finish: Finish = field(default_factory=Unchanged)
    premises: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def certify(
        self,
        mechanism: str,
        epsilon: float | Fraction,
        *,
        assumptions: tuple[str, ...],
        loss_error: float = 0.0,
        delta: float = 0.0,
        unit: int | None = None,
        **stated: Any,
    ) -> Certificate:
        """Return the certificate of a release by ``mechanism``, which states the other fields."""
        rests_on = (*self.premises, *assumptions, *self.notes)
        return Certificate(
            kind=RELEASE,
            mechanism=mechanism,
            statistic=self.statistic,
            epsilon=epsilon_up(epsilon),
            delta=delta,
            loss_error=loss_error,
            unit=unit,
            finish=self.finish.describe(),
            randomness=OPERATING_SYSTEM,
            assumptions=rests_on,
            assumptions_digest=digest_of(rests_on),
            version=__version__,
            **stated,
        )


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """One release: everything is settled but the draw.

    ``certificate`` is the public half: it was made without looking at a loss value or a row, and is
    what a ledger is charged with. ``fit`` makes the confidential half (an envelope, a chain, a
    table); it is called once, when the first value is drawn. ``forecast_seconds`` says about how
    long that draw takes, from public quantities. ``accuracy`` gives intervals from the noisy
    sums of a draw.
    """

    certificate: Certificate
    sampler: Sampler | None
    finish: Finish
    fit: Callable[[], Draw]
    forecast_seconds: Callable[[], float]
    accuracy: Callable[[Any], Accuracy] | None = None

    @cached_property
    def seconds(self) -> float:
        """About how long a draw takes, by a public forecast."""
        return self.forecast_seconds()

    @cached_property
    def _draw(self) -> Draw:
        return self.fit()

    def release(self) -> Release:
        """Draw the value with randomness from the operating system; it may leave."""
        return self._one(operating_system_bits(), RELEASE)

    def study(self, seed: int | Sequence[int]) -> Release:
        """Draw the value from a seeded stream; its certificate says that it is never a release."""
        return self._one(seeded_bits(seed), STUDY)

    @np.errstate(all="ignore")  # whatever the caller's state: a record must not make a warning
    def sample(self, size: int, seed: int | Sequence[int]) -> Draws:
        """Draw many values, unfinished and with their counts, from a seeded stream."""
        return self._draw(Coins(seeded_bits(seed)), size)

    @np.errstate(all="ignore")
    def _one(self, bits: Bits, kind: str) -> Release:
        public_steps = self.sampler is not None and self.sampler.timing == CONSTANT
        with shown(lambda: self.seconds, public_steps=public_steps):
            drawn = self._draw(Coins(bits), 1)
        source = OPERATING_SYSTEM if kind == RELEASE else SEEDED
        certificate = dataclasses.replace(self.certificate, kind=kind, randomness=source)
        near = None
        if self.accuracy is not None and drawn.noisy is not None:
            near = self.accuracy(drawn.noisy[0]).finished(self.finish)
        value = self.finish.apply(drawn.values[0])
        return Release(value=value, certificate=certificate, accuracy=near)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a caller asks of one release.

    ``stand_in`` says that the data are a public stand-in, so that their speed may be measured.
    """

    epsilon: float | Fraction
    sampler: Sampler | str = "auto"
    timing: str = UNPROTECTED
    budget_seconds: float | None = None
    stand_in: bool = False
    told: Told = field(default_factory=Told)


class Mechanism(ABC):
    """What every mechanism offers: a plan, and a release that is prepared once."""

    def plan(
        self,
        epsilon: float | Fraction,
        *,
        timing: str = AUTO,
        budget_seconds: float | None = None,
    ) -> Plan:
        """Return what a release would guarantee and cost: public, so it may be printed.

        Parameters
        ----------
        epsilon
            The budget.
        timing
            "constant" asks for a number of loss evaluations that is fixed beforehand, "auto" for
            one where that is cheap, "unprotected" for none.
        budget_seconds
            What is forecast to take longer is refused.
        """
        return self.planned(epsilon, Wanted(timing=timing, budget_seconds=budget_seconds))

    @abstractmethod
    def planned(self, epsilon: float | Fraction, wanted: Wanted) -> Plan:
        """Return the plan of a release for what is asked of its time."""

    @abstractmethod
    def settle(self, asked: Asked) -> Prepared:
        """Settle everything but the draw; raise, on public grounds, where it cannot be."""

    def prepare(
        self,
        *,
        epsilon: float | Fraction,
        sampler: Sampler | str = "auto",
        timing: str = UNPROTECTED,
        budget_seconds: float | None = None,
        stand_in: bool = False,
        told: Told | None = None,
    ) -> Prepared:
        """Settle everything but the draw, from public quantities; the data are not looked at.

        ``timing="constant"`` asks for a number of evaluations that is fixed beforehand, "auto" for
        one where that is cheap. A draw that is forecast to take longer than ``budget_seconds`` is
        refused; the forecast is measured only where ``stand_in`` says that the data are public.
        ``told`` is what a statistic adds to the certificate.
        """
        if budget_seconds is not None:
            budget_seconds = float(
                validate_positive(budget_seconds, name="budget_seconds", owner="a release")
            )
        asked = Asked(
            epsilon=epsilon,
            sampler=sampler,
            timing=timing,
            budget_seconds=budget_seconds,
            stand_in=stand_in,
            told=told or self.default_told(),
        )
        prepared = self.settle(asked)
        if budget_seconds is not None and prepared.seconds > budget_seconds:
            name = prepared.certificate.sampler["sampler"]
            owner = asked.told.owner or prepared.certificate.mechanism
            refusal = over_budget(name, prepared.seconds, budget_seconds)
            raise UnsupportedError(f"{owner} {refusal}")
        return prepared

    def default_told(self) -> Told:
        """Return what stands in a certificate where no statistic says anything."""
        return Told()

    def release(
        self,
        *,
        epsilon: float | Fraction,
        sampler: Sampler | str = "auto",
        timing: str = AUTO,
        budget_seconds: float | None = None,
    ) -> Release:
        """Draw one value with randomness from the operating system; it may leave.

        With ``timing="auto"`` the number of evaluations is constant where that is cheap.

        Returns
        -------
        Release
            ``value`` and ``certificate``. The number of proposals is not in it: it is confidential.
        """
        ready = self.prepare(
            epsilon=epsilon, sampler=sampler, timing=timing, budget_seconds=budget_seconds
        )
        return ready.release()

    def study(
        self,
        *,
        epsilon: float | Fraction,
        sampler: Sampler | str = "auto",
        seed: int | Sequence[int],
        budget_seconds: float | None = None,
    ) -> Release:
        """Draw one value of the law of a release from a seeded stream; it is a study.

        It repeats: which sampler draws it depends on nothing that is measured.
        """
        ready = self.prepare(epsilon=epsilon, sampler=sampler, budget_seconds=budget_seconds)
        return ready.study(seed)

    def certificate(
        self, *, epsilon: float | Fraction, sampler: Sampler | str = "auto", timing: str = AUTO
    ) -> Certificate:
        """Return the certificate a release would carry, without drawing anything."""
        return self.prepare(epsilon=epsilon, sampler=sampler, timing=timing).certificate
