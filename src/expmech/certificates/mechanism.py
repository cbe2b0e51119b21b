"""The base of every mechanism: its public terms, a release that is prepared once, its checks."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from expmech._version import __version__
from expmech.certificates.accuracy import Accuracy
from expmech.certificates.card import (
    UNNAMED,
    ShownValue,
    assumed,
    caution,
    guarantee,
    heading,
    shown_values,
    text_rows,
)
from expmech.certificates.certificate import RELEASE, STUDY, Certificate, digest_of, epsilon_up
from expmech.certificates.checks import Check
from expmech.certificates.forecast import NO_EVALUATIONS, Forecast
from expmech.certificates.plan import Option, Plan, over_budget
from expmech.certificates.postprocessing import Postprocessing, Unchanged
from expmech.certificates.progress import shown
from expmech.certificates.timing import (
    AUTO,
    CONSTANT,
    DATA_DEPENDENT,
    TIMINGS,
    UNPROTECTED,
    TimingRequirement,
)
from expmech.core.bits import OPERATING_SYSTEM, SEEDED, Bits, operating_system_bits, seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import (
    ParameterError,
    UnsupportedError,
    validate_choice,
    validate_integer,
    validate_positive,
)
from expmech.core.markup import card, escape, values_table, visible
from expmech.core.rounding import validate_epsilon
from expmech.theory.concentrated import rho_of_bounded_range, rho_of_pure

if TYPE_CHECKING:
    from expmech.exponential.samplers.base import Sampler


@dataclass(frozen=True)
class Draws:
    """Values of a study, the number of proposals each took, and what else its chain counted.

    Counts are confidential and never part of a release.

    Parameters
    ----------
    values : ndarray
        One value per row.
    proposals : ndarray of int
        Proposals that each value took.
    counts : mapping from str to ndarray of int, default empty
        Further counts per draw. Algorithm 1 with its factory counts ``outer``, ``bern`` and
        ``inner`` (steps of its three loops), ``entered`` (how often the inner loop began) and
        ``nonatomic`` (runs until one did not end at the atom).
    noisy : ndarray, optional
        The noisy sums that values were computed from, where there are any; they are as private as
        the values.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([0.2, 0.4, 0.9])
    >>> mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> draws = mechanism.sample(epsilon=1.0, size=3, seed=1)
    >>> draws.values.shape, draws.proposals.shape
    ((3, 1), (3,))
    """

    values: NDArray[Any]
    proposals: NDArray[np.int64]
    counts: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    noisy: NDArray[Any] | None = None


Draw = Callable[[Coins, int], Draws]
"""A function that makes so many independent draws from coins."""


@dataclass(frozen=True)
class Release:
    """A value that may be published, and its certificate.

    Parameters
    ----------
    value : object
        The released value: a number, an array, a label or a record of them.
    certificate : Certificate
        What it guarantees, and on which assumptions.
    accuracy : Accuracy, optional
        How far the truth may be, by the law of the noise and by what was released; None where that
        cannot be said without looking at the data.
    bounds : tuple of Release, default ()
        The releases of private bounds that this one rests on, one per column, or of a row limit,
        each with its own certificate; they were paid for as well. Empty where these were given.
    accuracy_statement : str, default ""
        What is said in public about how near a quantile is: in ranks, or about its interval.
    ends : tuple of Release, default ()
        The releases of the lower and the upper end of the interval, where it was bought with a
        share of epsilon.
    reading : tuple of str, default ()
        How values were read: the public rule for missing ones first.

    Examples
    --------
    >>> import expmech as em
    >>> best = em.PermuteAndFlip.from_scores([3, 5, 4], candidates=["a", "b", "c"], sensitivity=1)
    >>> release = best.study(epsilon=1.0, seed=1)
    >>> release.value in ("a", "b", "c"), release.certificate.kind
    (True, 'study, not a release')
    """

    value: Any
    certificate: Certificate
    accuracy: Accuracy | None = None
    bounds: tuple[Release, ...] = ()
    accuracy_statement: str = ""
    ends: tuple[Release, ...] = ()
    reading: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return value, interval, guarantee and what is assumed, on a card of a few lines."""
        values = self._values()
        names = [f"{value.name}: " if value.name else "" for value in values]
        lines = [heading(self.certificate.statistic)]
        for name, value in zip(names, values, strict=True):
            interval = f" (95% interval {value.interval})" if value.interval else ""
            lines.append(f"  {visible(name)}{value.text}{interval}")
        return "\n".join([*lines, *text_rows(self._terms())])

    def _repr_html_(self) -> str:
        """Return value and certificate for a notebook."""
        values = self._values()
        if len(values) == 1 and not values[0].name:
            (value,) = values
            before = f'<div style="font-size:1.5em;margin:.2em 0">{escape(value.text)}</div>'
            rows = [("95% interval", value.interval)] if value.interval else []
        else:
            heads = ["", "value", "95% interval", "all at once"]
            lines = [[each.name, each.text, each.interval, each.jointly] for each in values]
            while len(heads) > 2 and not any(line[-1] for line in lines):
                heads, lines = heads[:-1], [line[:-1] for line in lines]
            before, rows = values_table(heads, lines), []
        title = heading(self.certificate.statistic)
        return card(title, [*rows, *self._terms()], before=before, after=self.certificate.folded())

    def _values(self) -> list[ShownValue]:
        near = self.accuracy
        fields = () if near is None else dataclasses.fields(near)
        stated = {field.name: getattr(near, field.name) for field in fields}
        return shown_values(
            self.value, {name: part for name, part in stated.items() if part is not None}
        )

    def _terms(self) -> list[tuple[str, str]]:
        kind = self.certificate.kind
        study = [] if kind == RELEASE else [("kind", kind)]
        near = [("accuracy", self.accuracy_statement)] if self.accuracy_statement else []
        together = math.fsum(each.certificate.epsilon for each in (self, *self.ends))
        promise = guarantee(dataclasses.replace(self.certificate, epsilon=together))
        values = [("values", visible(" ".join(self.reading)))] if self.reading else []
        rows = [("guarantee", promise), *assumed(self.certificate), *values]
        return [*study, *near, *caution(self.certificate, self._values()), *rows]


@dataclass(frozen=True, kw_only=True)
class PublicTerms:
    """What is public about a draw at one epsilon: the numbers of its certificate and of its plan.

    Parameters
    ----------
    adjacency : str
        "replace" or "add-remove".
    sensitivity, loss_error, eta : float
        As the certificate states them.
    epsilon : Fraction or None
        The epsilon that holds at ``delta``, where that is not the one asked for.
    unit : int or None
        Energies are whole multiples of ``2^unit`` nats; None where there are no energies.
    domain : dict
        What values are drawn from; ``domain["kind"]`` names it.
    parameters : dict
        What else determines the draw. ``parameters["sampler"]`` names the method where that is not
        the mechanism's own name.
    assumptions : tuple of str
        What the guarantee rests on.
    timing : str
        Timing class: "constant", "data-independent" or "data-dependent".
    delta : float
        0 for a pure guarantee.
    forecast : Forecast
        Evaluations of a draw; none by default.
    seconds : float
        About how long a draw takes, by a public table.
    note : str or None
        What a plan says about the method.
    error : float or None
        How far each number is from the truth in 95% of releases, at most, where that is public.
    log_size : float or None
        The log of the number of possible answers, which bounds how far a draw is from the best one;
        None where it does not.
    shown_from : int or None
        The size from which a group is shown in 95% of releases, where groups are not listed.
    """

    adjacency: str
    sensitivity: float
    eta: float
    domain: dict[str, Any]
    assumptions: tuple[str, ...]
    timing: str
    parameters: dict[str, Any] = field(default_factory=dict)
    loss_error: float = 0.0
    unit: int | None = None
    delta: float = 0.0
    epsilon: Fraction | None = None
    forecast: Forecast = NO_EVALUATIONS
    seconds: float = 0.0
    note: str | None = None
    error: float | None = None
    log_size: float | None = None
    shown_from: int | None = None

    @property
    def excess_loss(self) -> tuple[float, float] | None:
        """Bounds on the loss of a draw above the least: its mean, and the 95% quantile.

        Of N answers those with a loss of t and more above the least come with probability
        ``N exp(-eta t)`` at most; so do winners of coins of ``exp(-eta t)``.
        """
        if self.log_size is None:
            return None
        mean, most = (self.log_size + nats for nats in (1.0, math.log(20.0)))
        return mean / self.eta, most / self.eta


@dataclass(frozen=True, kw_only=True)
class CertificateContext:
    """What a statistic adds to a mechanism's certificate, all of it public.

    Parameters
    ----------
    statistic : str
        The name of the released number.
    owner : str or None
        Whom errors name; None for the mechanism itself.
    postprocessing : Postprocessing
        The public map that is applied to the draw.
    premises, notes : tuple of str
        Assumptions about how rows were read, stated before and after those of the mechanism.
    """

    statistic: str = UNNAMED
    owner: str | None = None
    postprocessing: Postprocessing = field(default_factory=Unchanged)
    premises: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def certify(self, mechanism: str, epsilon: float | Fraction, terms: PublicTerms) -> Certificate:
        """Return the certificate of a release by the mechanism of this name."""
        assumptions = (*self.premises, *terms.assumptions, *self.notes)
        return Certificate(
            kind=RELEASE,
            mechanism=mechanism,
            statistic=self.statistic,
            epsilon=epsilon_up(epsilon) if terms.epsilon is None else epsilon_up(terms.epsilon),
            delta=terms.delta,
            adjacency=str(terms.adjacency),
            sensitivity=terms.sensitivity,
            loss_error=terms.loss_error,
            eta=terms.eta,
            unit=terms.unit,
            domain=terms.domain,
            sampler={"sampler": mechanism, **terms.parameters},
            postprocessing=self.postprocessing.describe(),
            timing=terms.timing,
            randomness=OPERATING_SYSTEM,
            assumptions=assumptions,
            assumptions_digest=digest_of(assumptions),
            version=__version__,
        )


@dataclass(frozen=True, kw_only=True)
class PreparedDraw:
    """One release, of which everything is prepared but the draw.

    ``certificate`` is the public half: it was made without looking at a loss value or a row, and is
    what a ledger is charged with. ``fit_mechanism`` makes the confidential half (an envelope, a
    chain, a table) of a mechanism with these public terms: of ``mechanism``, unless
    :meth:`with_data` puts other data in its place. ``forecast_seconds`` says about how long a draw
    takes, from public quantities. ``accuracy`` gives intervals from the noisy sums of a draw;
    ``accuracy_statement`` and ``reading`` (how values are read, the rule for missing ones first)
    are public sentences of the :class:`Release`, no part of the certificate.
    """

    certificate: Certificate
    sampler: Sampler | None
    postprocessing: Postprocessing
    mechanism: Mechanism
    fit_mechanism: Callable[[Any], Draw]
    forecast_seconds: Callable[[], float]
    accuracy: Callable[[Any], Accuracy] | None = None
    accuracy_statement: str = ""
    reading: tuple[str, ...] = ()

    def with_data(self, data: Any) -> PreparedDraw:
        """Return the draw from other data: all that was prepared in public is shared with it."""
        return dataclasses.replace(self, mechanism=self.mechanism.with_data(data))

    @cached_property
    def seconds(self) -> float:
        """About how long a draw takes, by a public forecast."""
        return self.forecast_seconds()

    @cached_property
    def draw(self) -> Draw:
        """The draw: the confidential half, made once, when the first value is drawn."""
        return self.fit_mechanism(self.mechanism)

    def release(self) -> Release:
        """Draw the value with randomness from the operating system; it may be published."""
        return self._draw_value(operating_system_bits(), RELEASE)

    def study(self, seed: int | Sequence[int]) -> Release:
        """Draw the value from a seeded stream; its certificate says that it is never a release."""
        return self._draw_value(seeded_bits(seed), STUDY)

    @np.errstate(all="ignore")  # whatever the caller's state: a record must not make a warning
    def sample(self, size: int, seed: int | Sequence[int]) -> Draws:
        """Draw many values, before post-processing and with their counts, from a seeded stream."""
        return self.draw(Coins(seeded_bits(seed)), size)

    @np.errstate(all="ignore")
    def _draw_value(self, bits: Bits, kind: str) -> Release:
        public_steps = self.sampler is not None and self.sampler.timing == CONSTANT
        with shown(lambda: self.seconds, public_steps=public_steps):
            drawn = self.draw(Coins(bits), 1)
        certificate = self.certificate
        if kind == STUDY:
            certificate = dataclasses.replace(certificate, kind=STUDY, randomness=SEEDED)
        accuracy = None
        if self.accuracy is not None and drawn.noisy is not None:
            accuracy = self.accuracy(drawn.noisy[0]).postprocessed(self.postprocessing)
        value = self.postprocessing.apply(drawn.values[0])
        return Release(
            value=value,
            certificate=certificate,
            accuracy=accuracy,
            accuracy_statement=self.accuracy_statement,
            reading=self.reading,
        )


@dataclass(frozen=True, kw_only=True)
class DrawRequest:
    """What a caller asks of one draw of a mechanism.

    ``stand_in`` says that the data are a public stand-in, so that their speed may be measured.
    """

    epsilon: float | Fraction
    sampler: Sampler | str = "auto"
    timing: str = UNPROTECTED
    budget_seconds: float | None = None
    stand_in: bool = False
    context: CertificateContext = field(default_factory=CertificateContext)


class Mechanism(ABC):
    """A randomised algorithm with a privacy guarantee: its law, its public terms and its checks.

    A mechanism defines :meth:`public_terms` (everything that is public about a draw), :meth:`fit`
    (the draw itself), and the class methods :meth:`verify` and :meth:`admits`, which recompute a
    certificate from its fields alone. Plans, releases, studies and certificates follow from these.
    With :meth:`with_data` it serves statistics of tables, too. CONTRIBUTING.md, "Adding a
    mechanism", has a whole example.

    Attributes
    ----------
    name : str
        What certificates call it.
    constant_instead : str
        What an error recommends where timing='constant' is not served.
    gives_intervals : bool
        Whether releases carry an interval for every number, see :meth:`explains`.
    """

    name: str
    constant_instead: ClassVar[str] = "Use timing='unprotected' and hide how long it takes."
    gives_intervals: ClassVar[bool] = False

    @abstractmethod
    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return everything that is public about a draw that costs ``budget``.

        No confidential number may enter. Raise where there can be no such draw.
        """

    @abstractmethod
    def fit(self, budget: Fraction) -> Draw:
        """Return the draw: the confidential half, made once per release."""

    def with_data(self, data: Any) -> Self:
        """Return this mechanism of other data; nothing public about it may depend on them.

        Statistics need it: their mechanism is made, certified and charged before a row is read.

        Parameters
        ----------
        data : object
            What draws are made from; confidential.

        Returns
        -------
        Mechanism
            It shares all that is public.
        """
        raise UnsupportedError(
            f"{self.name} defines no `with_data`, which a statistic of a table needs: its mechanism"
            " is made before a row is read."
        )

    @classmethod
    @abstractmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute what the certificate claims from its other fields.

        An exception of a missing or malformed field counts as a failed check.
        """

    @classmethod
    @abstractmethod
    def admits(cls, certificate: Certificate, point: NDArray[np.float64] | None) -> bool:
        """Tell whether a value can be a draw of the mechanism that a certificate describes.

        Parameters
        ----------
        certificate : Certificate
            A certificate that names this mechanism.
        point : ndarray or None
            The value before post-processing; None stands for a label.

        Returns
        -------
        bool
            Whether the mechanism can return the value at all.
        """

    @classmethod
    def explains(
        cls, certificate: Certificate, point: NDArray[np.float64], stated: Accuracy
    ) -> bool:
        """Tell whether the interval stated for a value is the one that follows from the noise.

        Parameters
        ----------
        certificate : Certificate
            A certificate that names this mechanism.
        point : ndarray
            The value before post-processing.
        stated : Accuracy
            The interval that was stated with it.

        Returns
        -------
        bool
            False for mechanisms that give no intervals.
        """
        return False

    @classmethod
    def bounded_range(cls, certificate: Certificate) -> bool:
        """Tell whether log ratios of probabilities of neighbours lie in an interval of epsilon."""
        return False

    @classmethod
    def rho(cls, certificate: Certificate, epsilon: Fraction) -> Fraction:
        """Return the rho of zero-concentrated privacy of a release at ``epsilon``, rounded up.

        By default that of a bounded range, or of any pure mechanism (docs/theory/composition.md).

        Parameters
        ----------
        certificate : Certificate
            What was promised.
        epsilon : Fraction
            What is charged, at least the certificate's.

        Returns
        -------
        Fraction
        """
        bounded = cls.bounded_range(certificate)
        return rho_of_bounded_range(epsilon) if bounded else rho_of_pure(epsilon)

    @classmethod
    def concentrated_only(cls, certificate: Certificate) -> bool:
        """Tell whether a release with a delta has a rho all the same: here never."""
        return False

    def serving(self, timing: str) -> Mechanism:
        """Return the mechanism that serves a timing requirement: here itself.

        A mechanism that can also work in constant time, by another law or at another cost, returns
        that one for "constant".
        """
        return self

    def interval(self, budget: Fraction) -> Callable[[Any], Accuracy] | None:
        """Return the function from noisy sums to an interval; None where there is none."""
        return None

    def default_context(self) -> CertificateContext:
        """Return what stands in a certificate where no statistic adds anything."""
        return CertificateContext()

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
        epsilon, timing, budget_seconds
            As for :meth:`release`.

        Returns
        -------
        Plan
        """
        return self.planned(
            epsilon, TimingRequirement(timing=timing, budget_seconds=budget_seconds)
        )

    def planned(self, epsilon: float | Fraction, requirement: TimingRequirement) -> Plan:
        """Return the plan of a release under a timing requirement.

        Parameters
        ----------
        epsilon : float or Fraction
            The budget.
        requirement : TimingRequirement
            Timing and time limit, as :meth:`plan` takes them one by one.

        Returns
        -------
        Plan
        """
        validate_choice(requirement.timing, name="timing", owner="plan", choices=TIMINGS)
        budget = validate_epsilon(epsilon, owner=self.name)
        refusal = None
        try:
            terms = self._terms_in_time(budget, requirement.timing, self.name)
        except UnsupportedError as error:
            refusal, terms = str(error), self.public_terms(budget)
        seconds, most = terms.seconds, requirement.budget_seconds
        option = Option(
            name=self.name,
            sampler=None,
            delta=terms.delta,
            timing=terms.timing,
            forecast=None if refusal else terms.forecast,
            reason=refusal,
            seconds=seconds,
        )
        if refusal is None and most is not None and seconds > most:
            refusal = over_budget(self.name, seconds, most)
        return Plan(
            epsilon=float(epsilon),
            options=(option,),
            chosen=None if refusal else self.name,
            refusal=refusal,
            excess_loss=terms.excess_loss,
            saturates_at=None,
            note=terms.note,
            error=terms.error,
            shown_from=terms.shown_from,
        )

    def _terms_in_time(self, budget: Fraction, timing: str, owner: str) -> PublicTerms:
        """Return the terms of the draw that serves a timing requirement, or refuse it."""
        terms = self.serving(timing).public_terms(budget)
        if timing == CONSTANT and terms.timing == DATA_DEPENDENT:
            raise UnsupportedError(
                f"{owner} has a running time that depends on the data, so it does not serve"
                f" timing='constant'. {self.constant_instead}"
            )
        return terms

    def prepare_draw(self, request: DrawRequest) -> PreparedDraw:
        """Prepare everything but the draw; raise, on public grounds, where it cannot be."""
        context = request.context
        owner = context.owner or self.name
        validate_choice(request.timing, name="timing", owner=owner, choices=TIMINGS)
        if request.sampler != "auto":
            given = request.sampler
            label = given if isinstance(given, str) else given.label
            raise ParameterError(
                f"`sampler` of {owner} must be 'auto': it draws by itself; got {label}."
            )
        budget = validate_epsilon(request.epsilon, owner=owner)
        terms = self._terms_in_time(budget, request.timing, owner)
        return PreparedDraw(
            certificate=context.certify(self.name, request.epsilon, terms),
            sampler=None,
            postprocessing=context.postprocessing,
            mechanism=self.serving(request.timing),
            fit_mechanism=lambda mechanism: mechanism.fit(budget),
            forecast_seconds=lambda: terms.seconds,
            accuracy=self.interval(budget),
        )

    def prepare(
        self,
        *,
        epsilon: float | Fraction,
        sampler: Sampler | str = "auto",
        timing: str = UNPROTECTED,
        budget_seconds: float | None = None,
        stand_in: bool = False,
        context: CertificateContext | None = None,
    ) -> PreparedDraw:
        """Prepare everything but the draw, from public quantities; the data are not looked at.

        Parameters
        ----------
        epsilon, sampler, timing, budget_seconds
            As for :meth:`release`; here ``timing`` is "unprotected" by default.
        stand_in : bool, default False
            Whether the data are a public stand-in, so that their speed may be measured.
        context : CertificateContext, optional
            What a statistic adds to the certificate.

        Returns
        -------
        PreparedDraw
            Its ``certificate`` is what a ledger is charged with; its ``release()`` draws.

        Raises
        ------
        UnsupportedError
            Where the timing cannot be served, or the draw would take too long.
        """
        if budget_seconds is not None:
            budget_seconds = float(
                validate_positive(budget_seconds, name="budget_seconds", owner="a release")
            )
        request = DrawRequest(
            epsilon=epsilon,
            sampler=sampler,
            timing=timing,
            budget_seconds=budget_seconds,
            stand_in=stand_in,
            context=context or self.default_context(),
        )
        prepared = self.prepare_draw(request)
        if budget_seconds is not None and prepared.seconds > budget_seconds:
            method = prepared.certificate.sampler["sampler"]
            refusal = over_budget(method, prepared.seconds, budget_seconds)
            raise UnsupportedError(f"{request.context.owner or self.name} {refusal}")
        return prepared

    def release(
        self,
        *,
        epsilon: float | Fraction,
        sampler: Sampler | str = "auto",
        timing: str = AUTO,
        budget_seconds: float | None = None,
    ) -> Release:
        """Draw one value with randomness from the operating system; it may be published.

        Parameters
        ----------
        epsilon : float or Fraction
            The budget: the release is epsilon-DP, or what its certificate says.
        sampler : Sampler or "auto", default "auto"
            How to draw, for mechanisms that have a choice.
        timing : {"auto", "constant", "unprotected"}, default "auto"
            "constant" fixes the number of loss evaluations beforehand or refuses, "auto" does so
            where that is cheap, "unprotected" takes the fastest way.
        budget_seconds : float, optional
            Time limit in seconds: a draw that is forecast to take longer is refused.

        Returns
        -------
        Release
            ``value`` and ``certificate``. The number of proposals is not in it: it is confidential.

        Raises
        ------
        ParameterError
            If ``epsilon`` is out of range.
        UnsupportedError
            Where the timing cannot be served, or the draw would take too long.
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

        Parameters
        ----------
        epsilon, sampler, budget_seconds
            As for :meth:`release`.
        seed : int or sequence of int
            Seed of the random bits; the same seed gives the same value.

        Returns
        -------
        Release
            Its certificate says that it is a study and must not be published as a release.
        """
        ready = self.prepare(epsilon=epsilon, sampler=sampler, budget_seconds=budget_seconds)
        return ready.study(seed)

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[Any]:
        """Draw ``size`` independent values from a seeded stream: for studies, never a release.

        Parameters
        ----------
        epsilon : float or Fraction
            The budget of each.
        size : int, default 1
            How many values.
        seed : int or sequence of int
            Seed of the random bits; the same seed gives the same values.

        Returns
        -------
        ndarray
            One value per row, before any post-processing.
        """
        return self._sample(size, seed, epsilon=epsilon).values

    def _sample(self, size: int, seed: int | Sequence[int], **options: Any) -> Draws:
        owner = f"{self.name}.sample"
        size = validate_integer(size, name="size", owner=owner, low=1, high=1 << 40)
        return self.prepare(**options).sample(size, seed)

    def certificate(
        self, *, epsilon: float | Fraction, sampler: Sampler | str = "auto", timing: str = AUTO
    ) -> Certificate:
        """Return the certificate a release would carry, without drawing anything.

        Parameters
        ----------
        epsilon, sampler, timing
            As for :meth:`release`.

        Returns
        -------
        Certificate
            Public: it does not depend on the data.
        """
        return self.prepare(epsilon=epsilon, sampler=sampler, timing=timing).certificate
