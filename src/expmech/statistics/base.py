"""A statistic says everything about itself; a settled one is charged, then read and drawn.

The order is that of the guarantee: what is public is settled first, the budget is charged, and only
then are the rows looked at.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from expmech.adjacency import Adjacency
from expmech.errors import DataError, ParameterError
from expmech.release import Certificate, Mechanism, Prepared, Release, Told
from expmech.release.finish import ByName, Finish, OneNumber, Unchanged
from expmech.samplers import Plan, Sampler
from expmech.samplers.base import CONSTANT
from expmech.samplers.choose import AUTO, UNPROTECTED
from expmech.statistics.reading import NOTHING_MISSING, validate_missing
from expmech.statistics.requests import Column, Request, Rows

LEAST_ROWS = 2
LONGEST = 60.0
"""Seconds that a named chain may take unless a budget says otherwise."""

NO_INTERVAL = "No interval can be given without looking at the data again."
_AS_READ = (
    "In at least 95% of releases the interval covers what the rows give as they are read. It"
    " follows from the noise and from what was released, not from the data."
)
_CHANGED = (
    "The rows do not fit the certificate that was charged: their number changed after it was"
    " counted. Nothing was released."
)


class Statistic(ABC):
    """What is released about a table: its request, its mechanism and its units, in one file.

    Attributes
    ----------
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    missing : str
        What a missing value counts as: one of :data:`~expmech.statistics.reading.MISSING_RULES`.
    """

    adjacency: Adjacency
    missing: str = "middle"
    shortfall: ClassVar[str | None] = None
    """What a bound on the loss of a draw says in words, with a place for the number."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What certificates and ledgers call it."""

    @abstractmethod
    def request(self, epsilon: Fraction) -> Request:
        """Return what it asks of the rows, from public quantities."""

    @abstractmethod
    def stand_in(self, count: int, epsilon: Fraction) -> Any:
        """Return an answer to the request that some table of ``count`` rows would give.

        Certificate and plan are made from it: they do not depend on which table it is.
        """

    @abstractmethod
    def mechanism(self, found: Any, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the mechanism for an answer to the request."""

    @property
    def finish(self) -> Finish:
        """The public map from a draw to the units of the data."""
        return Unchanged()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the guarantee rests on besides."""
        return (NOTHING_MISSING,) if self.missing == "error" else ()

    @property
    def told(self) -> Told:
        """What stands in the certificate about the statistic."""
        return Told(statistic=self.name, finish=self.finish, notes=self.notes)


def named_or_one(columns: Sequence[Column], *, named: bool) -> Finish:
    """Return the map to numbers by name, to the only number, or as they come."""
    if not named:
        return Unchanged()
    return OneNumber() if len(columns) == 1 else ByName(labels=tuple(map(str, columns)))


def one_of_several(count: int, whole: str, epsilon: str) -> str:
    """Return the note of a certificate on the others it was asked for with, and charged with."""
    return (
        f"one of {count} releases of this {whole}, which together cost epsilon = {epsilon} by basic"
        " composition"
    )


def check_missing(missing: str, adjacency: Adjacency, *, owner: str) -> str:
    """Return the rule for missing values; raise where it would move a public number of rows."""
    rule = validate_missing(missing, owner=owner)
    if rule == "drop" and adjacency.count_is_public:
        raise ParameterError(
            "`missing` must not be 'drop' under 'replace' adjacency: whether a row is dropped would"
            " change the number of rows, which 'replace' treats as public. Use 'middle' or 'lower',"
            " or 'add-remove' adjacency."
        )
    return rule


@dataclass(frozen=True, kw_only=True)
class Settled:
    """A statistic with its budget: the public half. Charge it before :meth:`release`."""

    statistic: Statistic
    epsilon: Fraction
    timing: str
    told: Told
    public: Prepared
    count: int | None

    @property
    def certificate(self) -> Certificate:
        """The certificate the release will carry; made without looking at a row."""
        return self.public.certificate

    @property
    def request(self) -> Request:
        """What will be asked of the rows."""
        return self.statistic.request(self.epsilon)

    def nearness(self, *, has_interval: bool) -> str:
        """Return what can be said in public about how far a release is from the truth."""
        if has_interval:
            return _AS_READ
        told = self.statistic.shortfall
        excess = None
        if told is not None:
            made = _stand_in(self.statistic, self.epsilon, self.count, self.timing)
            excess = made.plan(self.epsilon, timing=self.timing).excess_loss
        if told is None or excess is None:
            return NO_INTERVAL
        return f"In at least 95% of releases {told.format(excess[1])}. {NO_INTERVAL}"

    def release(self, found: Any) -> Release:
        """Draw the value from what the rows answered; it may leave."""
        return self._prepare(found).release()

    def study(self, found: Any, seed: int | Sequence[int]) -> Release:
        """Draw the value from a seeded stream: never a release."""
        return self._prepare(found).study(seed)

    @np.errstate(all="ignore")  # whatever the caller's state: a record must not make a warning
    def _prepare(self, found: Any) -> Prepared:
        mechanism = self.statistic.mechanism(found, self.epsilon, self.timing)
        ready = mechanism.prepare(
            epsilon=self.epsilon,
            sampler=self.public.sampler or "auto",
            timing=self.timing,
            told=self.told,
        )
        if ready.certificate != self.certificate:
            raise DataError(_CHANGED)
        return ready


@np.errstate(all="ignore")  # of public numbers here: bounds of 1e308 may underflow
def settle(
    statistic: Statistic,
    *,
    epsilon: Fraction,
    count: int | None,
    sampler: Sampler | str = "auto",
    timing: str = UNPROTECTED,
    budget_seconds: float | None = None,
    owner: str | None = None,
    premises: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Settled:
    """Return the public half of a release; raise, on public grounds, where there is none.

    ``count`` is the number of rows where it is public, else None. Refusals speak of ``owner``.
    ``premises`` and ``notes`` say what the guarantee rests on because of how the rows were given,
    first and last among the assumptions. What a public
    stand-in forecasts to take longer than ``budget_seconds`` is refused, and without one a named
    chain of constant length that would take over a minute.
    """
    own = statistic.told
    told = dataclasses.replace(own, owner=owner, premises=premises, notes=(*own.notes, *notes))
    mechanism = _stand_in(statistic, epsilon, count, timing)
    if budget_seconds is None and isinstance(sampler, Sampler) and sampler.timing == CONSTANT:
        budget_seconds = LONGEST
    public = mechanism.prepare(
        epsilon=epsilon,
        sampler=sampler,
        timing=timing,
        budget_seconds=budget_seconds,
        stand_in=True,
        told=told,
    )
    return Settled(
        statistic=statistic,
        epsilon=epsilon,
        timing=timing,
        told=told,
        public=public,
        count=count,
    )


def plan(
    statistic: Statistic,
    *,
    epsilon: Fraction,
    count: int | None,
    timing: str = AUTO,
    budget_seconds: float | None = None,
) -> Plan:
    """Return what a release of the statistic would guarantee and cost; no row is needed."""
    mechanism = _stand_in(statistic, epsilon, count, timing)
    return mechanism.plan(epsilon, timing=timing, budget_seconds=budget_seconds)


def _stand_in(statistic: Statistic, epsilon: Fraction, count: int | None, timing: str) -> Mechanism:
    if not statistic.adjacency.count_is_public:
        count = 1  # nothing public may depend on it, and any number will do
    elif count is None:
        raise ParameterError("The number of rows must be given under replace, where it is public.")
    return statistic.mechanism(statistic.stand_in(count, epsilon), epsilon, timing)


def public_count(rows: Rows, adjacency: Adjacency, *, least: int = LEAST_ROWS) -> int | None:
    """Return the number of rows where it is public; refuse a table too small for a statistic."""
    if not adjacency.count_is_public:
        return None
    count = rows.count()
    if count == 0:
        raise DataError("The table has no rows.")
    if count < least:
        raise DataError("The table has one row: at least two are needed for a statistic of many.")
    return count


@np.errstate(all="ignore")
def find_all(settled: Sequence[Settled], rows: Rows) -> list[Any]:
    """Return what the rows answer to each request; equal requests are asked once."""
    requests = [one.request for one in settled]
    firsts = [requests.index(request) for request in requests]
    found = {first: rows.find(requests[first]) for first in dict.fromkeys(firsts)}
    return [found[first] for first in firsts]
