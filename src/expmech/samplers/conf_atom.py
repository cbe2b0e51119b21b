"""ConfAtomPerfect: perfect simulation at an artificial atom, on the corrected kernel.

It is the paper's algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

import flint
from numpy.typing import ArrayLike

from expmech.coins import UNITS_PER_NAT, LinearFactory
from expmech.cost import Forecast
from expmech.errors import ParameterTypeError, validate_choice, validate_fraction, validate_vector
from expmech.samplers.atom import (
    AtomKernel,
    bind_reentry,
    forecast_atom,
    need_weight,
    reentry_law,
    weight_for,
)
from expmech.samplers.atom_chains import ConfAtomChain, FactoryChain
from expmech.samplers.base import Sampler, Terms
from expmech.samplers.rejection import VIOLATION
from expmech.target import Target

PROPOSALS = ("laplace", "uniform")
REPEATABLE = "the loss gives the same float for the same point in any batch (spot-checked)"


class ConfAtomPerfect(Sampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by perfect simulation at an artificial atom.

    The paper's Algorithm 2, corrected.

    Parameters
    ----------
    k
        Share of the atom in the mixture, in (0, 1). Exact where the normaliser is known, nominal
        elsewhere; the law of the release is f for every k.
    proposal
        Re-entry law and moves: "laplace" about the confidential answer (the loss declares its
        growth) or "uniform".
    center
        Center of the Laplace re-entry; None takes the center of the loss's growth.
    factory
        Run Algorithm 1 as printed (Bernoulli factory, inner rejection loop) instead of the direct
        form, for comparing counts.

    Notes
    -----
    Precondition: a certified offset, checked at every step. Law: f. Expected steps of the direct
    form: ``2 e^B (1 + w/Z_f)``. It is the paper's algorithm and a research instrument: at its best
    it costs more than rejection from the same envelope. Theory page:
    docs/theory/conf_atom_perfect.md.

    References
    ----------
    Seeman, Reimherr, Slavkovic (2021), Theorem 2; Lee, Doucet, Latuszynski (2014); Huber (2016).
    """

    assumptions = (VIOLATION, REPEATABLE)
    bounded_range = True
    serves_base = True

    def __init__(
        self,
        k: float = 0.5,
        *,
        proposal: str = "laplace",
        center: ArrayLike | None = None,
        factory: bool = False,
    ) -> None:
        self.k = validate_fraction(k, name="k", owner="ConfAtomPerfect")
        self.proposal = validate_choice(
            proposal, name="proposal", owner="ConfAtomPerfect", choices=PROPOSALS
        )
        self.center = (
            None
            if center is None
            else validate_vector(center, name="center", owner="ConfAtomPerfect", confidential=True)
        )
        if not isinstance(factory, bool):
            raise ParameterTypeError(
                f"`factory` of ConfAtomPerfect must be True or False; got {factory!r}."
            )
        self.factory = factory

    @property
    def label(self) -> str:
        """The name and the re-entry law."""
        return f"{self.name()}, {self.proposal}"

    def describe(self) -> dict[str, Any]:
        """Return the parameters; where the atom lies is confidential."""
        return super().describe() | {
            "k": float(self.k),
            "proposal": self.proposal,
            "factory": self.factory,
        }

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the sampler with the k, proposal and form of a certificate."""
        return cls(parameters["k"], proposal=parameters["proposal"], factory=parameters["factory"])

    def terms(self, target: Target) -> Terms:
        """Refuse, on public grounds, where the re-entry law or the atom's weight is unknown."""
        reentry_law(self.proposal).validate(target)
        need_weight(target, self.name())
        return super().terms(target)

    def prepare(self, target: Target) -> ConfAtomChain | FactoryChain:
        """Bind the re-entry law and find the atom's weight."""
        target.problem.check_repeatable()
        envelope = bind_reentry(target, self.proposal, self.center)
        kernel = AtomKernel(target, envelope, weight_for(target, envelope, self.k, self.name()))
        if not self.factory:
            return ConfAtomChain(kernel)
        beta, gap = factory_constants(kernel.tag_energy, target.units_per_nat)
        return FactoryChain(kernel, beta, LinearFactory(1 / (1 - beta), gap))

    def forecast(self, target: Target) -> Forecast:
        """Return ``e^B (1 + w / Z_f)`` evaluations, from the mean proposals of the re-entry law."""
        self.terms(target)
        return forecast_atom(target, proposal=self.proposal, k=float(self.k))


def factory_constants(
    tag_energy: int, units_per_nat: int = UNITS_PER_NAT
) -> tuple[Fraction, Fraction]:
    """Return beta, about a quarter of exp(-B), and the gap it leaves.

    Short rationals, both rounded down.

    The atom probability is at least ``p = exp(-B)/2 >= 2 beta``, and ``(1 - p)/(1 - beta) <= 1 -
    gap``.
    """
    with flint.ctx.workprec(128):
        least = flint.arb(flint.fmpq(-tag_energy, units_per_nat)).exp() / 2
        scale = 1 << (12 + math.ceil(tag_energy / units_per_nat / math.log(2.0)))
        beta = Fraction(_floor(least / 2 * scale), scale)
        rest = flint.arb(flint.fmpq((1 - beta).numerator, (1 - beta).denominator))
        return beta, Fraction(_floor((1 - (1 - least) / rest) * scale), scale)


def _floor(number: flint.arb) -> int:
    """Return the floor of a lower bound on ``number``."""
    return int(number.lower().floor().fmpq())
