"""The exponential mechanism as a user meets it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from expmech.domains import Domain
from expmech.errors import (
    ParameterError,
    UnsupportedError,
    validate_choice,
    validate_integer,
)
from expmech.losses.base import Declared, Loss
from expmech.release.exponential_checks import PLATFORM
from expmech.release.prepared import Asked, Draw, Mechanism, Prepared
from expmech.rounding import float_up
from expmech.samplers import (
    TIMINGS,
    Chain,
    Draws,
    Plan,
    Sampler,
    Wanted,
    choose_sampler,
    make_plan,
    run,
    validate_sampler,
)
from expmech.samplers.base import CONSTANT, DATA_DEPENDENT
from expmech.samplers.pace import measured_pace, table_pace
from expmech.target import (
    SMALL_TABLE,
    BaseMeasure,
    Target,
    make_problem,
    make_target,
    validate_epsilon,
)

_OWNER = "ExponentialMechanism"


class ExponentialMechanism(Mechanism):
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
    base
        A public base measure: a log-density, at most 0, or a :class:`~expmech.BaseMeasure` that
        knows more. The law is then f(y) ~ exp(base(y) - eta L(y)), at the same epsilon.
    lipschitz
        One constant a coordinate, true for every data set.
    minimum, bound
        Public bounds ``minimum <= L <= bound``. The minimum is 0 by default. The bound sets the
        unit of energies, so that none saturates; without one (or ``lipschitz``) the law is flat
        where the least loss is very large, and sampler="auto" refuses.
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
        domain: Domain,
        adjacency: str = "replace",
        base: BaseMeasure | Callable[[NDArray[Any]], Any] | None = None,
        **declared: Unpack[Declared],
    ) -> None:
        self._problem = make_problem(
            loss=loss, domain=domain, adjacency=adjacency, base=base, **declared
        )
        if not self._problem.proved:
            self._problem.check_loss()
        self._chosen: dict[tuple[Fraction, Wanted], tuple[Sampler, Target]] = {}

    @property
    def domain(self) -> Domain:
        """The public lattice."""
        return self._problem.domain

    def target(self, *, epsilon: float | Fraction) -> Target:
        """Return the calibrated energies at ``epsilon``; they are confidential."""
        return make_target(self._problem, validate_epsilon(epsilon, owner=_OWNER))

    def chain(self, *, epsilon: float | Fraction, sampler: Sampler | str = "auto") -> Chain[Any]:
        """Return the fitted chain of a draw, for enumeration and studies; it is confidential."""
        chosen, target = self._choose(
            Asked(epsilon=epsilon, sampler=sampler, timing="unprotected"), _OWNER
        )
        return chosen.prepare(target)

    def settle(self, asked: Asked) -> Prepared:
        """Choose, calibrate and certify; the loss is not looked at before the first draw."""
        told = asked.told
        chosen, target = self._choose(asked, told.owner or _OWNER)
        chosen.validate_base(target)
        terms = chosen.terms(target)

        def seconds() -> float:
            measured = asked.stand_in and asked.budget_seconds is not None
            pace = measured_pace(target) if measured else table_pace(target)
            return pace.seconds(chosen.forecast(target))

        def fit() -> Draw:
            chain = chosen.prepare(target)
            return lambda coins, size: run(chain, coins, size)

        certificate = told.certify(
            _OWNER,
            asked.epsilon,
            delta=terms.delta,
            adjacency=str(self._problem.adjacency),
            sensitivity=float_up(self._problem.sensitivity),
            loss_error=target.loss_error,
            eta=target.eta,
            unit=1 - target.units_per_nat.bit_length(),
            domain=_describe(target),
            sampler=terms.parameters,
            timing=terms.timing,
            assumptions=(
                *self._problem.assumptions,
                *_flatness(target),
                *terms.assumptions,
                PLATFORM,
            ),
        )
        return Prepared(
            certificate=certificate,
            sampler=chosen,
            finish=told.finish,
            fit=fit,
            forecast_seconds=seconds,
        )

    def _choose(self, asked: Asked, owner: str) -> tuple[Sampler, Target]:
        """Return the sampler and the target it is calibrated to; a public choice."""
        budget = validate_epsilon(asked.epsilon, owner=owner)
        timing = validate_choice(asked.timing, name="timing", owner=owner, choices=TIMINGS)
        valid = validate_sampler(asked.sampler)
        if isinstance(valid, Sampler):
            if timing == CONSTANT and valid.timing == DATA_DEPENDENT:
                raise ParameterError(
                    f"`sampler` of {owner} must be 'auto', Metropolis or ConfAtomAndRuntimePerfect"
                    f" with timing='constant'; got {valid.label}, whose running time depends on the"
                    " data."
                )
            return valid, valid.calibrate(self._problem, budget)
        wanted = Wanted(timing=timing, budget_seconds=asked.budget_seconds)
        if (budget, wanted) not in self._chosen:  # a public choice, made once
            self._chosen[budget, wanted] = choose_sampler(
                self._problem, budget, wanted, owner=owner
            )
        return self._chosen[budget, wanted]

    def sample(
        self,
        *,
        epsilon: float | Fraction,
        size: int = 1,
        sampler: Sampler | str = "auto",
        seed: int | Sequence[int],
    ) -> Draws:
        """Draw ``size`` independent values from a seeded stream: for studies, never a release.

        Their proposal counts come with them.
        """
        size = validate_integer(size, name="size", owner=f"{_OWNER}.sample", low=1, high=1 << 40)
        return self.prepare(epsilon=epsilon, sampler=sampler).sample(size, seed)

    def planned(self, epsilon: float | Fraction, wanted: Wanted) -> Plan:
        """Return what every sampler would guarantee and cost."""
        plan = make_plan(self._problem, validate_epsilon(epsilon, owner=_OWNER), wanted)
        return dataclasses.replace(plan, epsilon=float(epsilon))

    def law(self, *, epsilon: float | Fraction) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return every lattice point and its probability (confidential).

        When the lattice has at most 2^16 points.
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


def _describe(target: Target) -> dict[str, Any]:
    """Return the domain as a certificate has it, with the base measure where there is one."""
    described = target.domain.describe()
    return described if target.measure is None else described | {"base": target.measure.describe()}


def _flatness(target: Target) -> tuple[str, ...]:
    """Return what a certificate says where the law may be flat."""
    if target.flat_above is None:
        return ()
    limit = f"{target.flat_above:.6g}"
    return (
        f"utility, not privacy: losses beyond {limit} either way"
        " are not told apart, and where the least loss is above that the law is flat",
    )
