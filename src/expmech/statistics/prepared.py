"""A mechanism with its budget: everything is settled but the draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from expmech.errors import ParameterError, UnsupportedError, validate_choice
from expmech.release import Certificate, ExponentialMechanism, NoisyMean, Release
from expmech.samplers import Sampler
from expmech.samplers.base import DATA_DEPENDENT
from expmech.samplers.forecast import MOST_EVALUATIONS
from expmech.samplers.plan import MOST_STEPS, TIMINGS


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A mechanism, what it may spend, its sampler.

    And the way back from the lattice to the units of the data.

    Charge ``epsilon`` before :meth:`release`. ``finish`` is public: it is a function of bounds
    alone. ``notes`` are public too, and are added to the assumptions of the certificate.
    """

    mechanism: ExponentialMechanism | NoisyMean
    epsilon: Fraction
    sampler: Sampler | str = "auto"
    finish: Callable[[Any], Any] = lambda value: value
    notes: tuple[str, ...] = ()

    def timed(self, timing: str, *, owner: str) -> Prepared:
        """Return this with a sampler whose running time is as asked, by public quantities.

        Refuse where there is none.
        """
        validate_choice(timing, name="timing", owner=owner, choices=TIMINGS)
        if timing == "unprotected" or isinstance(self.mechanism, NoisyMean):
            return self  # the noise of a mean is drawn without looking at the data
        if self.sampler != "auto":
            if self.certificate().timing == DATA_DEPENDENT:
                raise ParameterError(
                    f"`sampler` of {owner} must be 'auto', Metropolis or ConfAtomAndRuntimePerfect"
                    f" with timing='constant'; got {self.sampler!r}, whose running time depends on"
                    " the data."
                )
            return self
        recommended = self.mechanism.plan(self.epsilon, timing=timing).recommended
        if recommended is None or recommended.sampler is None:
            raise UnsupportedError(
                f"{owner}(timing='constant') found no exact sampler that ends after a number of"
                f" proposals fixed beforehand and affordable ({MOST_EVALUATIONS:.0e} together, or"
                f" {MOST_STEPS:.0e} one by one). A lower epsilon, fewer rows or columns, a coarser"
                " or smaller range of answers or 'replace' adjacency may make it feasible; or use"
                " timing='unprotected' and let nobody see how long it took."
            )
        return replace(self, sampler=recommended.sampler)

    def certificate(self) -> Certificate:
        """Return the certificate the release will carry; nothing is drawn."""
        return self._noted(self.mechanism.certificate(epsilon=self.epsilon, **self._options))

    def release(self) -> Release:
        """Draw the value; it may leave."""
        return self._finished(self.mechanism.release(epsilon=self.epsilon, **self._options))

    def study(self, seed: int | Sequence[int]) -> Release:
        """Draw the value from a seeded stream, with a certificate that says so: never a release."""
        return self._finished(
            self.mechanism.study(epsilon=self.epsilon, seed=seed, **self._options)
        )

    @property
    def _options(self) -> dict[str, Any]:
        return {} if isinstance(self.mechanism, NoisyMean) else {"sampler": self.sampler}

    def _finished(self, drawn: Release) -> Release:
        return Release(value=self.finish(drawn.value), certificate=self._noted(drawn.certificate))

    def _noted(self, certificate: Certificate) -> Certificate:
        return replace(certificate, assumptions=(*certificate.assumptions, *self.notes))
