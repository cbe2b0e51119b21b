"""The exponential mechanism: its law, its release by any sampler, and its checks."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import EXP_AND_LOG, Check, check_assumed, check_described
from expmech.certificates.mechanism import (
    Draw,
    DrawRequest,
    Draws,
    Mechanism,
    PreparedDraw,
    PublicTerms,
)
from expmech.certificates.plan import Plan
from expmech.certificates.postprocessing import rebuild_postprocessing, within
from expmech.certificates.timing import CONSTANT, DATA_DEPENDENT, TIMINGS, TimingRequirement
from expmech.core.arrays import Array, Floats
from expmech.core.coins import UNITS_PER_NAT
from expmech.core.errors import ExpmechError, ParameterError, UnsupportedError, validate_choice
from expmech.core.rounding import float_up, validate_epsilon
from expmech.domains import Domain, Grid, Region
from expmech.domains.registry import rebuild_domain
from expmech.exponential.samplers import SAMPLERS, Sampler, SamplerClaims
from expmech.exponential.samplers.chain import Chain, run
from expmech.exponential.samplers.choose import choose_sampler, make_plan, measured_pace, table_pace
from expmech.exponential.samplers.registry import validate_sampler
from expmech.exponential.target import (
    COARSEST_UNIT,
    SMALL_TABLE,
    BaseMeasure,
    Target,
    calibrate,
    make_problem,
    make_target,
)
from expmech.exponential.target.measure import REPEATABLE, Measure
from expmech.losses.base import Declared, Growth, Loss

_OWNER = "ExponentialMechanism"
_CLAIMED = ("delta", "sensitivity", "loss_error", "eta", "timing")  # what a sampler speaks of
_TOLERANCE = 2.0**-40  # certificates hold float64 numbers printed in full
_DIGEST_BYTES = 32
_MOST_TERMS = 64  # separately rounded terms a loss may have
_FINEST = UNITS_PER_NAT.bit_length() - 1  # the unit is 2^-40 nats or larger


class ExponentialMechanism(Mechanism):
    """Draw exactly from the exponential mechanism f(y) ~ exp(-epsilon L(y) / 2D) on a lattice.

    Facts about a loss that does not state them itself may be declared here (``sensitivity`` and
    what follows it below); each is then an assumption of the certificate.

    Parameters
    ----------
    loss : callable
        Takes an (m, d) C-contiguous float64 array (for :class:`~expmech.Candidates` the index
        array) and returns (m,) numbers. An object may also offer what it knows, see
        :class:`~expmech.Facts`.
    domain : Domain
        Where outputs live; public.
    adjacency : {"replace", "add-remove"}, default "replace"
        What the sensitivity refers to: one row replaced, the number of rows being public, or one
        row added or removed.
    base : callable or BaseMeasure, optional
        A public base measure: a log-density, at most 0, or a :class:`~expmech.BaseMeasure` that
        knows more. The law is then f(y) ~ exp(base(y) - eta L(y)), at the same epsilon.
    sensitivity : float or Fraction, optional
        ``D``: how much the loss may change at any point between adjacent data sets. May be left
        out for a built-in loss.
    lipschitz : array-like, optional
        One constant per coordinate, true for every data set.
    minimum, bound : float, optional
        Public bounds ``minimum <= L <= bound``. The minimum is 0 by default. The bound sets the
        unit of energies, so that none saturates; without one (or ``lipschitz``) the law is flat
        where the least loss is very large, and sampler="auto" refuses.
    gap : float, optional
        Public bound on how far the least loss lies above ``minimum``.
    loss_error : float, optional
        Public bound on the difference between the computed and the true loss. By default 2^-44
        of the bound on the loss, or of where energies saturate when there is none.
    growth : Growth, optional
        What the loss is known to grow by, see :class:`~expmech.Growth`.
    convex : bool, optional
        As in :class:`~expmech.Facts`, like all that follow.
    gradient, lower_bound, terms, terms_lower_bound : callable, optional
        Functions that the loss offers.
    gradient_error, evaluation_seconds : float, optional
        The error of the gradient, and about how long one evaluation takes.

    Raises
    ------
    ParameterError
        If a fact is out of range, unknown, or contradicts the loss at public points.

    Examples
    --------
    >>> import numpy as np, expmech as em
    >>> rows = np.array([[0.2], [0.4], [0.9]])
    >>> loss, box = em.losses.L1Mean(rows), em.Box([0.0], [1.0])
    >>> mech = em.ExponentialMechanism(loss=loss, sensitivity=1 / 3, domain=box)
    >>> mech.release(epsilon=1.0).value.shape
    (1,)
    """

    name = _OWNER

    def __init__(
        self,
        *,
        loss: Loss,
        domain: Domain,
        adjacency: str = "replace",
        base: BaseMeasure | Callable[[Array], Any] | None = None,
        **declared: Unpack[Declared],
    ) -> None:
        self._problem = make_problem(
            loss=loss, domain=domain, adjacency=adjacency, base=base, **declared
        )
        if not self._problem.proved:
            self._problem.check_loss()
        self._chosen: dict[tuple[Fraction, TimingRequirement], tuple[Sampler, Target]] = {}
        self._declared = declared

    def with_data(self, loss: Loss) -> ExponentialMechanism:
        """Return the mechanism of the loss of other data, which states the same public facts.

        Parameters
        ----------
        loss : callable
            As for the class; confidential.

        Returns
        -------
        ExponentialMechanism

        Raises
        ------
        LossError
            If the loss states other public facts, or breaks its contract at public points.
        ParameterError
            If functions of the data were declared beside the loss.
        """
        if any(callable(fact) or isinstance(fact, Growth) for fact in self._declared.values()):
            raise ParameterError(
                f"`loss` of {_OWNER} must offer its functions itself where it is a statistic's:"
                " what is declared beside it would be of other data."
            )
        made = copy.copy(self)
        # It refuses a loss that states other public facts: the certificate could not describe it.
        made._problem = self._problem.with_loss(loss)
        if not made._problem.proved:
            made._problem.check_loss()
        made._chosen = {}
        return made

    @property
    def domain(self) -> Domain:
        """The public lattice."""
        return self._problem.domain

    def target(self, *, epsilon: float | Fraction) -> Target:
        """Return the calibrated energies at ``epsilon``; they are confidential."""
        return make_target(self._problem, validate_epsilon(epsilon, owner=_OWNER))

    def chain(self, *, epsilon: float | Fraction, sampler: Sampler | str = "auto") -> Chain[Any]:
        """Return the fitted chain of a draw, for enumeration and studies; it is confidential.

        Parameters
        ----------
        epsilon : float or Fraction
            The budget.
        sampler : Sampler or "auto", default "auto"
            How to draw.

        Returns
        -------
        Chain
            With ``start``, ``step`` and ``values``.
        """
        chosen, target = self._choose(
            DrawRequest(epsilon=epsilon, sampler=sampler, timing="unprotected"), _OWNER
        )
        return chosen.prepare(target)

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return the terms of the sampler that `auto` takes."""
        return self._terms(*self._choose(DrawRequest(epsilon=budget), _OWNER))

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of the sampler that `auto` takes."""
        chain = self.chain(epsilon=budget)
        return lambda coins, size: run(chain, coins, size)

    def prepare_draw(self, request: DrawRequest) -> PreparedDraw:
        """Choose, calibrate and certify; the loss is not looked at before the first draw."""
        context = request.context
        chosen, target = self._choose(request, context.owner or _OWNER)
        chosen.validate_base(target)

        def seconds() -> float:
            measured = request.stand_in and request.budget_seconds is not None
            pace = measured_pace(target) if measured else table_pace(target)
            return pace.seconds(chosen.forecast(target))

        def fit(mechanism: ExponentialMechanism) -> Draw:
            # The sampler and the scale were fixed on public grounds, and certified; only the loss
            # is new.
            chain = chosen.prepare(target.with_problem(mechanism._problem))
            return lambda coins, size: run(chain, coins, size)

        return PreparedDraw(
            certificate=context.certify(_OWNER, request.epsilon, self._terms(chosen, target)),
            sampler=chosen,
            postprocessing=context.postprocessing,
            mechanism=self,
            fit_mechanism=fit,
            forecast_seconds=seconds,
        )

    def _terms(self, sampler: Sampler, target: Target) -> PublicTerms:
        """Return what is public about a draw by a sampler calibrated to a target."""
        own, base = sampler.terms(target), target.measure
        flat: tuple[str, ...] = ()
        if target.flat_above is not None:
            flat = (
                f"utility, not privacy: losses beyond {target.flat_above:.6g} either way"
                " are not told apart, and where the least loss is above that the law is flat",
            )
        return PublicTerms(
            adjacency=self._problem.adjacency,
            sensitivity=float_up(self._problem.sensitivity),
            loss_error=target.loss_error,
            eta=target.eta,
            unit=1 - target.units_per_nat.bit_length(),
            delta=own.delta,
            domain=target.domain.describe() | ({} if base is None else {"base": base.describe()}),
            parameters=own.parameters,
            timing=own.timing,
            assumptions=(*self._problem.assumptions, *flat, *own.assumptions, EXP_AND_LOG),
        )

    def _choose(self, request: DrawRequest, owner: str) -> tuple[Sampler, Target]:
        """Return the sampler and the target it is calibrated to; a public choice."""
        budget = validate_epsilon(request.epsilon, owner=owner)
        timing = validate_choice(request.timing, name="timing", owner=owner, choices=TIMINGS)
        valid = validate_sampler(request.sampler)
        if isinstance(valid, Sampler):
            if timing == CONSTANT and valid.timing == DATA_DEPENDENT:
                raise ParameterError(
                    f"`sampler` of {owner} must be 'auto', Metropolis or ConfAtomAndRuntimePerfect"
                    f" with timing='constant'; got {valid.label}, whose running time depends on the"
                    " data."
                )
            return valid, valid.calibrate(self._problem, budget)
        requirement = TimingRequirement(timing=timing, budget_seconds=request.budget_seconds)
        # The choice looks at public facts of the problem alone, so it needs no budget of its own.
        if (budget, requirement) not in self._chosen:  # a public choice, made once
            self._chosen[budget, requirement] = choose_sampler(
                self._problem, budget, requirement, owner=owner
            )
        return self._chosen[budget, requirement]

    def sample(  # type: ignore[override]
        self,
        *,
        epsilon: float | Fraction,
        size: int = 1,
        sampler: Sampler | str = "auto",
        seed: int | Sequence[int],
    ) -> Draws:
        """Draw independent values by a sampler, with the number of proposals of each: for studies.

        The parameters are those of :meth:`Mechanism.sample`; ``sampler`` is as for a release.
        """
        return self._sample(size, seed, epsilon=epsilon, sampler=sampler)

    def planned(self, epsilon: float | Fraction, requirement: TimingRequirement) -> Plan:
        plan = make_plan(self._problem, validate_epsilon(epsilon, owner=_OWNER), requirement)
        return dataclasses.replace(plan, epsilon=float(epsilon))

    def law(self, *, epsilon: float | Fraction) -> tuple[Array, Floats]:
        """Return every lattice point and its probability; confidential.

        Parameters
        ----------
        epsilon : float or Fraction
            The budget.

        Returns
        -------
        values : ndarray
            Every point, as a release would return it.
        probabilities : ndarray of float
            The probability of each point.

        Raises
        ------
        UnsupportedError
            If the lattice has more than 2^16 points.
        """
        target = self.target(epsilon=epsilon)
        indices = target.all_indices(SMALL_TABLE)
        if indices is None:
            raise UnsupportedError(
                f"ExponentialMechanism.law lists lattices of at most {SMALL_TABLE} points; this"
                " domain has more. Use fewer bits, or sample."
            )
        energies = target.energy(indices)
        weights = np.exp((energies - energies.min()) * (-1.0 / target.units_per_nat))
        return self.domain.values(indices), weights / weights.sum()

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute a certificate's domain, sampler and energy scale from its other fields."""
        try:
            domain = rebuild_domain(certificate.domain)
        except (ExpmechError, TypeError, KeyError):
            unknown = f"{certificate.domain.get('kind')!r} cannot be made from its description"
            return [Check(claim="domain", holds=False, detail=unknown)]
        name = str(certificate.sampler.get("sampler"))
        written = {key: value for key, value in certificate.domain.items() if key != "base"}
        checks = [check_described("domain", written, domain.describe())]
        kind = SAMPLERS.find(name)
        if kind is None:
            return [*checks, Check(claim="timing", holds=False, detail=f"unknown sampler {name!r}")]
        unit = certificate.unit
        if unit is None or not 0 <= unit + _FINEST <= COARSEST_UNIT:
            return [*checks, Check(claim="unit", holds=False, detail=f"no unit of 2^{unit} nats")]
        if "base" in certificate.domain:
            checks.append(_verify_base(certificate.domain["base"], domain))
        sampler = kind.rebuild(certificate.sampler)
        same = {name: getattr(certificate, name) for name in _CLAIMED}
        claimed = SamplerClaims(**same, unit=unit, parameters=certificate.sampler, domain=domain)
        needed = (*sampler.assumed(certificate.sampler), EXP_AND_LOG)
        if "base" in certificate.domain:
            needed = (*needed, REPEATABLE)
        rebuilt = sampler.describe()
        parameters = {key: certificate.sampler.get(key) for key in rebuilt}
        return [
            *checks,
            check_described("parameters", parameters, rebuilt),
            check_assumed(certificate, needed),
            _verify_scale(certificate, sampler, 1 << -unit),
            *sampler.verify(claimed),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Floats | None) -> bool:
        """Tell whether a point can be a draw of the mechanism that the certificate describes.

        On a list it is one label, which a certificate does not hold, or one number; else a point of
        the lattice.
        """
        domain = rebuild_domain(certificate.domain)
        if not isinstance(domain, Region):
            return point is None or point.ndim == 0
        if point is None or not within(point, domain.lower, domain.upper):
            return False
        return not isinstance(domain, Grid) or _on_lattice(certificate, domain, point)

    @classmethod
    def bounded_range(cls, certificate: Certificate) -> bool:
        """Tell whether the sampler's law has a bounded range."""
        kind = SAMPLERS.find(str(certificate.sampler.get("sampler")))
        return kind is not None and kind.rebuild(certificate.sampler).bounded_range


def _verify_base(written: Mapping[str, Any], domain: Domain) -> Check:
    """Check that what a certificate says of a base measure makes sense."""
    try:
        slopes, widths = written["lipschitz"], domain.axis_widths
        known = BaseMeasure(
            lambda points: np.zeros(len(points)),  # the function is not in a certificate
            name=written["name"],
            most=written["most"],
            least=written["least"],
            lipschitz=slopes,
            excludes=written["excludes"],
        )
        typed = type(written["name"]) is str and (slopes is None or type(slopes) is list)
        fits = slopes is None or known.slopes(0 if widths is None else len(widths)) is not None
        holds = typed and fits and len(bytes.fromhex(written["digest"])) == _DIGEST_BYTES
    except (ExpmechError, KeyError, TypeError, ValueError):
        return Check(claim="base", holds=False, detail="no base measure is described like this")
    return Check(claim="base", holds=holds, detail=f"{written['name']!r}, digest not compared")


def compare_base(certificate: Certificate, base: BaseMeasure | None) -> Check:
    """Recompute what a certificate says of its base measure from the measure itself."""
    written, expected = certificate.domain.get("base"), None
    if base is not None and certificate.unit is not None:
        domain = rebuild_domain(certificate.domain)
        expected = Measure(base, domain, 1 << -certificate.unit).describe()
    holds = written == expected
    detail = "as described, by its energies at public points" if holds else "another than described"
    return Check(claim="base measure", holds=holds, detail=detail)


def _on_lattice(certificate: Certificate, domain: Grid, point: Floats) -> bool:
    """Tell whether a vector is a point of the grid, bit for bit where no map rounded it."""
    indices = domain.locate(point)[None, :]
    nearest = domain.points(indices)[0]
    lost = rebuild_postprocessing(certificate.postprocessing).lost(point)
    if not lost.any():
        return bool(domain.contains(indices)[0]) and nearest.tobytes() == point.tobytes()
    return bool((np.abs(nearest - point) <= lost + domain.value_errors).all())


def _verify_scale(certificate: Certificate, sampler: Sampler, units: int) -> Check:
    """Check ``eta`` against epsilon, sensitivity, loss error and what the sampler reserves."""
    whole = Fraction(repr(certificate.epsilon))
    budget = whole - sampler.reserve(whole)
    sensitivity, error = Fraction(certificate.sensitivity), Fraction(certificate.loss_error)
    if sensitivity <= 0:
        return Check(claim="eta", holds=False, detail="the sensitivity is not positive")
    terms = sampler.rounded_terms
    high, low = (
        calibrate(budget, sensitivity, error, terms=most, units_per_nat=units).eta
        for most in (terms, terms - 1 + _MOST_TERMS)
    )
    scale = certificate.eta
    # A smaller eta is private, too, but is not what the release of this epsilon draws.
    holds = 0.0 < low * (1.0 - _TOLERANCE) <= scale <= high * (1.0 + _TOLERANCE)
    return Check(claim="eta", holds=holds, detail=f"{scale!r}, recomputed {high!r}")
