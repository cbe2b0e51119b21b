"""A mechanism with its budget: everything is settled but the draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.release import Certificate, ExponentialMechanism, NoisyMean, Release
from expmech.samplers import Sampler


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A mechanism, what it may spend, its sampler, and the way back from the lattice to the units of the data.

    Charge ``epsilon`` before :meth:`release`. ``finish`` is public: it is a function of bounds alone.
    """

    mechanism: ExponentialMechanism | NoisyMean
    epsilon: Fraction
    sampler: Sampler | str = "auto"
    finish: Callable[[Any], Any] = lambda value: value

    def certificate(self) -> Certificate:
        """Return the certificate the release will carry; nothing is drawn."""
        return self.mechanism.certificate(epsilon=self.epsilon, **self._options)

    def release(self) -> Release:
        """Draw the value; it may leave."""
        return self._finished(self.mechanism.release(epsilon=self.epsilon, **self._options))

    def study(self, seed: int | Sequence[int]) -> Release:
        """Draw the value from a seeded stream, with a certificate that says so: never a release."""
        return self._finished(self.mechanism.study(epsilon=self.epsilon, seed=seed, **self._options))

    @property
    def _options(self) -> dict[str, Any]:
        return {} if isinstance(self.mechanism, NoisyMean) else {"sampler": self.sampler}

    def _finished(self, drawn: Release) -> Release:
        return Release(value=self.finish(drawn.value), certificate=drawn.certificate)
