"""What the samplers of an artificial atom share: the law it is left by, and the moves between."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from expmech.envelopes import Envelope, ProductLaplace, ReentryLaw, Uniform
from expmech.errors import ParameterError, ParameterTypeError, validate_choice
from expmech.kernels import Kernel, Laplace, check_kernel, validate_kernel
from expmech.samplers.atom import moves_of
from expmech.samplers.base import Check, Claimed, Sampler, Terms
from expmech.samplers.kernel_checks import find_kernel, verify_envelope, verify_kernel
from expmech.samplers.rejection import VIOLATION
from expmech.target import Target

PROPOSALS = ("laplace", "uniform")
REPEATABLE = "the loss gives the same float for the same point in any batch (spot-checked)"
_OWN_LAW = "the re-entry law draws exactly, with the energies it states, as its author declares"
_OWN_LAWS = (Uniform, ProductLaplace)


class AtomSampler(Sampler):
    """A sampler with an artificial atom: a share, a re-entry law and moves."""

    assumptions: tuple[str, ...] = (VIOLATION, REPEATABLE)
    k: Fraction

    def _take_laws(
        self, proposal: str, kernel: Kernel | None, rate: float | None, reentry: Envelope | None
    ) -> None:
        """Store the re-entry law and the moves; raise where two of them are asked for at once."""
        owner = self.name()
        self.proposal = validate_choice(proposal, name="proposal", owner=owner, choices=PROPOSALS)
        if kernel is not None and rate is not None:
            raise ParameterError(
                f"`rate` of {owner} is that of Laplace moves: give it or `kernel`, not both; got"
                f" {rate!r}."
            )
        if rate is not None:
            kernel = Laplace(rate)
        self.kernel = None if kernel is None else validate_kernel(kernel, owner=owner)
        if reentry is not None and not (isinstance(reentry, Envelope) and reentry.is_law):
            raise ParameterTypeError(
                f"`reentry` of {owner} must be an envelope that is a law of points, such as"
                f" Uniform() or ProductLaplace(); got {reentry!r}."
            )
        self.reentry = reentry

    def describe(self) -> dict[str, Any]:
        """Return the share, the proposals, and the kernel and re-entry law asked for by name."""
        told = super().describe() | {"k": float(self.k), "proposal": self.proposal}
        if self.kernel is not None:
            told["kernel"] = self.kernel.describe()
        if self.reentry is not None:
            told["reentry"] = self.reentry.name
        return told

    @staticmethod
    def laws_in(parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the proposal and the kernel of a certificate, for :meth:`rebuild`."""
        return {
            "proposal": parameters["proposal"],
            "kernel": find_kernel(parameters.get("kernel")),
        }

    def terms(self, target: Target) -> Terms:
        """Refuse, on public grounds, a re-entry law or a kernel that does not apply."""
        self.law_about(None).validate(target)
        told = super().terms(target)
        more: list[str] = []
        if self.kernel is not None:
            check_kernel(self.kernel, target.domain)
            more += self.kernel.assumptions
        if self.reentry is not None and type(self.reentry) not in _OWN_LAWS:
            more.append(_OWN_LAW)
        return dataclasses.replace(told, assumptions=(*told.assumptions, *more))

    def assumed(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return those of the sampler, and what the kernel rests on."""
        return (*self.assumptions, *(() if self.kernel is None else self.kernel.assumptions))

    def law_about(self, center: NDArray[Any] | None) -> Envelope:
        """Return the law by which the atom is left: one's own, uniform, or Laplace about a point.

        The point is the center of the loss's growth where none is given.
        """
        if self.reentry is not None:
            return self.reentry
        return Uniform() if self.proposal == "uniform" else ProductLaplace(center)

    def bind_law(self, target: Target, center: NDArray[Any] | None) -> tuple[ReentryLaw, Kernel]:
        """Fit the re-entry law; return it with the moves."""
        # a base measure adds to energies: what lies below those of the loss lies below the sum
        bound = self.law_about(center).bind(target.loss_only)
        if not isinstance(bound, ReentryLaw):
            raise ParameterTypeError(
                f"`reentry` of {self.name()} must bind to a law with rates, energy, mass and"
                f" log_mass; {type(bound).__name__} lacks one of them."
            )
        return bound, moves_of(bound) if self.kernel is None else self.kernel

    def verify(self, claimed: Claimed) -> list[Check]:
        """Recompute timing and delta; make the kernel again; look for the re-entry law."""
        checks, told = super().verify(claimed), claimed.parameters
        checks += verify_kernel(told.get("kernel"), claimed.domain)
        if "reentry" in told:
            checks.append(verify_envelope(str(told["reentry"]), "reentry"))
        return checks
