"""ConfAtomPerfect: perfect simulation at an artificial atom, on the corrected kernel.

It is the paper's algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Self

import flint
import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech.coins import UNITS_PER_NAT, LinearFactory
from expmech.cost import Forecast
from expmech.envelopes import Envelope
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    validate_choice,
    validate_fraction,
    validate_vector,
)
from expmech.kernels import Kernel
from expmech.samplers.atom import AtomKernel, forecast_atom, need_weight, weight_for
from expmech.samplers.atom_chains import ConfAtomChain, FactoryChain
from expmech.samplers.atom_places import PlacedChain, minimisers, need_minimisers
from expmech.samplers.atom_sampler import AtomSampler
from expmech.samplers.base import Terms
from expmech.target import Target

LOCATIONS = ("answer", "public", "minimiser")


class ConfAtomPerfect(AtomSampler):
    """Draw exactly from f(y) ~ exp(-E(y)) by perfect simulation at an artificial atom.

    The paper's Algorithm 2, corrected.

    Parameters
    ----------
    k
        Share of the atom in the mixture, in (0, 1). Exact where the normaliser is known, nominal
        elsewhere; the law of the release is f for every k.
    proposal
        Re-entry law and moves: "laplace" about the atom (the loss declares its growth) or
        "uniform".
    center
        Where the atom of a Laplace re-entry lies; None takes the center of the loss's growth.
    location
        "answer": the center is confidential and stands nowhere. "public": ``center`` was chosen
        without looking at the data and stands in the certificate. "minimiser": drawn uniformly
        among the minimisers of the loss, on lattices small enough to be listed.
    kernel
        Moves in the place of those of ``proposal``, see :mod:`expmech.kernels`.
    rate
        Short for ``kernel=Laplace(rate)``.
    reentry
        A re-entry law in the place of that of ``proposal``: an envelope that is a law of points.
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

    bounded_range = True
    serves_base = True

    def __init__(
        self,
        k: float = 0.5,
        *,
        proposal: str = "laplace",
        center: ArrayLike | None = None,
        location: str = "answer",
        kernel: Kernel | None = None,
        rate: float | None = None,
        reentry: Envelope | None = None,
        factory: bool = False,
    ) -> None:
        self.k = validate_fraction(k, name="k", owner="ConfAtomPerfect")
        self._take_laws(proposal, kernel, rate, reentry)
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
        self._take_location(location)

    def _take_location(self, location: str) -> None:
        """Store where the atom lies; raise where that does not fit the rest."""
        self.location = validate_choice(
            location, name="location", owner="ConfAtomPerfect", choices=LOCATIONS
        )
        centred = self.proposal == "laplace" and self.reentry is None
        if location != "answer" and not centred:
            raise ParameterError(
                "`location` of ConfAtomPerfect is that of a Laplace re-entry law; with another one"
                f" it must be 'answer'; got {location!r}."
            )
        if (location == "public") > (self.center is not None):
            raise ParameterError(
                "`center` of ConfAtomPerfect must be given with location='public'; got None."
            )
        if location == "minimiser" and (self.center is not None or self.factory):
            raise ParameterError(
                "`location` of ConfAtomPerfect can be 'minimiser' without `center` and `factory`"
                " only: each draw has an atom of its own."
            )

    @property
    def label(self) -> str:
        """The name and the re-entry law."""
        return f"{self.name()}, {self.proposal}"

    def describe(self) -> dict[str, Any]:
        """Return the parameters; where the atom lies only if that is public."""
        told = super().describe() | {"factory": self.factory, "location": self.location}
        if self.location == "public" and self.center is not None:
            told["center"] = self.center.tolist()
        return told

    @classmethod
    def rebuild(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the sampler with the k, laws, location and form of a certificate."""
        return cls(
            parameters["k"],
            **cls.laws_in(parameters),
            center=parameters.get("center"),
            location=parameters["location"],
            factory=parameters["factory"],
        )

    def terms(self, target: Target) -> Terms:
        """Refuse, on public grounds, where the re-entry law or the atom's weight is unknown."""
        need_weight(target, self.name())
        if self.location == "minimiser":
            need_minimisers(target)
        return super().terms(target)

    def prepare(self, target: Target) -> ConfAtomChain | FactoryChain | PlacedChain:
        """Bind the re-entry law and find the atom's weight."""
        target.problem.check_repeatable()
        if self.location == "minimiser":
            places = target.domain.points(minimisers(target))
            at = cache(lambda place: self._atom(target, places[place]))
            return PlacedChain(at, len(places))
        kernel = self._atom(target, self.center)
        if not self.factory:
            return ConfAtomChain(kernel)
        beta, gap = factory_constants(kernel.tag_energy, target.units_per_nat)
        return FactoryChain(kernel, beta, LinearFactory(1 / (1 - beta), gap))

    def _atom(self, target: Target, center: NDArray[np.float64] | None) -> AtomKernel:
        """Return the kernel with the atom about ``center``."""
        envelope, moves = self.bind_law(target, center)
        weight = weight_for(target, envelope, self.k, self.name())
        return AtomKernel(target, envelope, weight, moves)

    def forecast(self, target: Target) -> Forecast:
        """Return ``e^B (1 + w / Z_f)`` evaluations, from the mean proposals of the re-entry law.

        Whatever the moves; unknown for a law or a place of one's own.
        """
        if self.reentry is not None or self.location == "public":
            return super().forecast(target)
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
