"""The best of a list by permute-and-flip. Theory page: docs/theory/permute_and_flip.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expmech._version import __version__
from expmech.adjacency import Adjacency, validate_adjacency
from expmech.bits import Bits, operating_system_bits, seeded_bits
from expmech.coins import UNITS_PER_NAT, Coins
from expmech.domains import Candidates
from expmech.errors import ParameterTypeError, validate_integer, validate_scale, validate_vector
from expmech.lists import first_of_a_random_order
from expmech.release.certificate import RELEASE, STUDY, Certificate
from expmech.release.exponential import Release
from expmech.rounding import float_up
from expmech.samplers.base import CONSTANT
from expmech.target import calibrate, validate_epsilon
from expmech.target.calibration import ENERGY_CAP, Calibration

NAME = "PermuteAndFlip"
KIND = "Candidates"
_DECLARED = (
    "a score moves by at most the stated sensitivity between neighbouring data sets, as the caller"
    " declares"
)
_ONE_WAY = "between neighbouring data sets all scores move the same way, as the caller declares"
_PLATFORM = (
    "NumPy's exp is accurate to 16 units in the last place; the operating system's random key is"
    " secret"
)


@dataclass(frozen=True, kw_only=True)
class SelectionTerms:
    """The public half: what is promised, for whatever scores.

    ``sensitivity`` is that of a score; ``monotone`` says that between neighbours all move the same
    way, which halves what counts.
    """

    count: int
    sensitivity: Fraction
    monotone: bool
    adjacency: Adjacency

    def calibration(self, epsilon: float | Fraction) -> Calibration:
        """Return the energy scale: ``epsilon / 2D``, or ``epsilon / D`` where monotone.

        Rounded down, with room for the rounding of energies.
        """
        half = self.sensitivity / 2 if self.monotone else self.sensitivity
        budget = validate_epsilon(epsilon, owner=NAME)
        return calibrate(budget, Fraction(float_up(half)), None)

    def certificate(
        self, epsilon: float | Fraction, *, kind: str = RELEASE, bits: Bits | None = None
    ) -> Certificate:
        """Return the certificate of a draw, which no score enters."""
        calibration = self.calibration(epsilon)
        assumed = (_DECLARED, _ONE_WAY) if self.monotone else (_DECLARED,)
        return Certificate(
            kind=kind,
            epsilon=float(epsilon),
            delta=0.0,
            adjacency=self.adjacency.value,
            sensitivity=float_up(self.sensitivity),
            loss_error=calibration.loss_error,
            eta=calibration.eta,
            domain={"kind": KIND, "count": self.count},
            sampler={"sampler": NAME, "monotone": self.monotone, "coins": self.count},
            timing=CONSTANT,
            randomness=(operating_system_bits() if bits is None else bits).source,
            assumptions=(*assumed, _PLATFORM),
            version=__version__,
        )


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip:
    """Draw the first candidate of a random order that wins a coin of ``exp(-eta (best - score))``.

    Epsilon-DP at ``eta = epsilon / 2D`` (``epsilon / D`` where all scores move the same way), and
    its expected loss is never above that of the exponential mechanism. Make one with
    :meth:`from_scores`.

    Examples
    --------
    >>> best = PermuteAndFlip.from_scores([3, 5, 4], candidates=["a", "b", "c"], sensitivity=1)
    >>> best.release(epsilon=1.0).value in ("a", "b", "c")
    True
    """

    public: SelectionTerms
    candidates: Candidates | None
    losses: NDArray[np.float64] = field(repr=False)

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        *,
        sensitivity: float | Fraction,
        candidates: Sequence[Any] | None = None,
        monotone: bool = False,
        adjacency: str = "replace",
    ) -> PermuteAndFlip:
        """Take confidential scores, higher is better, of a public list.

        Parameters
        ----------
        scores
            One a candidate.
        sensitivity
            How far one score may move between neighbouring data sets.
        candidates
            Public labels; None: positions.
        monotone
            Whether between neighbours all scores move the same way (or stay), as counts do under
            "add-remove": a promise of the caller's.
        adjacency
            What the sensitivity refers to.
        """
        if not isinstance(monotone, bool):
            raise ParameterTypeError(f"`monotone` of {NAME} must be True or False.")
        values = validate_vector(scores, name="scores", owner=NAME, confidential=True)
        labels = None if candidates is None else Candidates(candidates)
        if labels is not None and len(labels.labels) != values.size:
            raise ParameterTypeError(f"`candidates` of {NAME} must be as many as the scores.")
        public = SelectionTerms(
            count=values.size,
            sensitivity=validate_scale(sensitivity, name="sensitivity", owner=NAME),
            monotone=monotone,
            adjacency=validate_adjacency(adjacency, owner=NAME),
        )
        with np.errstate(over="ignore"):  # an infinite loss saturates like any other
            losses = values.max() - values
        return cls(public=public, candidates=labels, losses=losses)

    def release(self, *, epsilon: float | Fraction) -> Release:
        """Draw one candidate with randomness from the operating system; it may leave."""
        return self._draw_one(epsilon, RELEASE, operating_system_bits())

    def study(self, *, epsilon: float | Fraction, seed: int | Sequence[int]) -> Release:
        """Draw one candidate from a seeded stream; its certificate says that it is a study."""
        return self._draw_one(epsilon, STUDY, seeded_bits(seed))

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.int64]:
        """Draw ``size`` independent positions from a seeded stream: never a release."""
        size = validate_integer(size, name="size", owner=f"{NAME}.sample", low=1, high=1 << 40)
        return self.draw(Coins(seeded_bits(seed)), epsilon=epsilon, size=size)

    def certificate(self, *, epsilon: float | Fraction) -> Certificate:
        """Return the certificate a release would carry, without drawing anything."""
        return self.public.certificate(epsilon)

    def draw(self, coins: Coins, *, epsilon: float | Fraction, size: int) -> NDArray[np.int64]:
        """Draw ``size`` positions in the list from ``coins``."""
        energies = self.energies(epsilon)
        return np.array(
            [first_of_a_random_order(coins, energies) for _ in range(size)], dtype=np.int64
        )

    def energies(self, epsilon: float | Fraction) -> NDArray[np.int64]:
        """Return ``round(eta (best - score) 2^40)``, at most 2^60."""
        scaled = self.losses * (self.public.calibration(epsilon).eta * UNITS_PER_NAT)
        return np.rint(np.minimum(scaled, float(ENERGY_CAP), out=scaled), out=scaled).astype(
            np.int64
        )

    def _draw_one(self, epsilon: float | Fraction, kind: str, bits: Bits) -> Release:
        certificate = self.public.certificate(epsilon, kind=kind, bits=bits)
        position = int(self.draw(Coins(bits), epsilon=epsilon, size=1)[0])
        value = position if self.candidates is None else self.candidates.labels[position]
        return Release(value=value, certificate=certificate)


def verify_terms(certificate: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """Return ``(claim, holds, detail)`` for what follows from a certificate's other fields."""
    sampler, count = certificate["sampler"], certificate["domain"]["count"]
    terms = SelectionTerms(
        count=count,
        sensitivity=Fraction(certificate["sensitivity"]),
        monotone=sampler["monotone"],
        adjacency=validate_adjacency(certificate["adjacency"], owner=NAME),
    )
    high = terms.calibration(Fraction(math.nextafter(certificate["epsilon"], math.inf)))
    low = terms.calibration(certificate["epsilon"])
    assumed = _ONE_WAY in certificate["assumptions"]
    return [
        ("eta", low.eta <= certificate["eta"] <= high.eta, f"recomputed {low.eta!r}"),
        (
            "loss error",
            high.loss_error <= certificate["loss_error"] <= low.loss_error,
            f"recomputed {low.loss_error!r}",
        ),
        ("coins", sampler["coins"] == count, f"{sampler['coins']}, one a candidate"),
        ("monotone", sampler["monotone"] is assumed, f"{sampler['monotone']}"),
        ("pure", certificate["delta"] == 0.0, "delta = 0"),
        ("timing", certificate["timing"] == CONSTANT, f"{certificate['timing']!r}"),
    ]
