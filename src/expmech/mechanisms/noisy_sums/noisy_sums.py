"""Exact noise on integer sums, and the mean that is read from them.

Theory pages: docs/theory/noisy_sums.md and docs/theory/noisy_mean.md.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from expmech.certificates.accuracy import Accuracy
from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    SECRET_KEY,
    Check,
    check_assumed,
    check_described,
    check_equal,
)
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.timing import DATA_INDEPENDENT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import ArrayLike, Floats, Integers
from expmech.core.coins import Coins
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    confidential_array,
    confidential_integers,
    validate_integer,
    validate_vector,
)
from expmech.core.rounding import float_down, float_up
from expmech.mechanisms.noisy_sums.centred import CentredMeans, CentredTotals
from expmech.mechanisms.noisy_sums.gaussian import DiscreteGaussian
from expmech.mechanisms.noisy_sums.interpretations import (
    ConsistentCounts,
    Counts,
    Interpretation,
    Means,
    Shares,
    Totals,
)
from expmech.mechanisms.noisy_sums.moments import MomentVariances
from expmech.mechanisms.noisy_sums.noise import LEAST_RATE, DiscreteLaplace, Noise
from expmech.mechanisms.noisy_sums.variances import ThreeSums, Variances
from expmech.theory.concentrated import (
    RhoBudget,
    check_concentrated,
    epsilon_from_rho,
    rho_of_discrete_laplace,
    rho_of_pure,
)

MOST_BITS = 32


@np.errstate(all="ignore")
def snap(rows: Floats, lower: Floats, upper: Floats, bits: int) -> Integers:
    """Return ``floor((clip(x) - lower) 2^bits / (upper - lower) + 1/2)`` for every entry.

    A whole number in ``0 .. 2^bits``. Clipped first: then nothing but a denormal value can raise a
    flag, an underflow, and it snaps to the right step.
    """
    shares = (np.minimum(np.maximum(rows, lower), upper) - lower) * (2.0**bits / (upper - lower))
    return np.floor(shares + 0.5).astype(np.int64)


def affordable_bits(epsilon: Fraction, dimension: int, most: int = MOST_BITS) -> int:
    """Return the most bits, up to ``most``, whose noise fits in int64.

    ``epsilon / (d 2^bits) >= 2^-55``. A public choice.
    """
    return max(1, min(most, (epsilon / (dimension * LEAST_RATE)).__floor__().bit_length() - 1))


def affordable_cube_bits(epsilon: Fraction, dimension: int) -> int:
    """Return the most bits whose cube noise fits: ``epsilon / 2^bits >= (d + 1) 2^-45``."""
    return affordable_bits(epsilon, (dimension + 1) << 10)


_ALONE = "what a row adds to the sums was decided from that row alone and public numbers"
_CLIPPED = (
    "rows were clipped to the public bounds and snapped to 2^bits steps one by one before they were"
    " summed"
)
_SUMS: dict[tuple[str, str], str] = {
    (Adjacency.REPLACE, Means.kind): "one",
    (Adjacency.ADD_REMOVE, Means.kind): "two",
    (Adjacency.ADD_REMOVE, CentredMeans.kind): "one, and the count",
}
"""The noisy sums of each column: from below, also from above, or about the middle."""

_OWN_COUNTS = "one, and a count of its own"

_INTERPRETATIONS: dict[str, type[Interpretation]] = {
    kind.kind: kind
    for kind in (
        Counts,
        ConsistentCounts,
        Means,
        Totals,
        Variances,
        ThreeSums,
        CentredMeans,
        CentredTotals,
        MomentVariances,
    )
}
_TOLERANCE = 2.0**-40  # certificates hold float64 numbers printed in full


class NoisySums(Mechanism):
    """Release what integer sums mean after noise with ``P(N) ~ exp(-epsilon |N| / D)``.

    D is how far one row can move the sums in the norm of the noise, which their interpretation
    states: the L1 norm, which makes independent discrete Laplace noise, or the largest of all
    (cube noise) where that has the smaller error by public numbers.

    Parameters
    ----------
    totals : sequence of int
        The sums: Python integers, confidential.
    interpretation : Interpretation
        What they are sums of and what is read from them; public.
    adjacency : {"replace", "add-remove"}, default "replace"
        Which data sets are neighbours.
    concentrated : RhoBudget, optional
        Where a ledger counts in rho: noise is then discrete Gaussian where that has the smaller
        error at the same rho and is the cheaper way to pay. By default noise is pure.

    Examples
    --------
    >>> from expmech.mechanisms.noisy_sums import Counts
    >>> cells = NoisySums(totals=[3, 5], interpretation=Counts(size=2, disjoint=True, count=8))
    >>> cells.release(epsilon=1.0).value.shape
    (2,)
    """

    name = "NoisySums"
    gives_intervals = True
    summed: ClassVar[str] = _ALONE  # what the guarantee assumes of the sums

    def __init__(
        self,
        *,
        totals: Sequence[int],
        interpretation: Interpretation,
        adjacency: str = "replace",
        concentrated: RhoBudget | None = None,
    ) -> None:
        self.adjacency = validate_adjacency(adjacency, owner=self.name)
        self.concentrated = concentrated
        self.interpretation = interpretation
        # A count that is confidential must not reach the certificate, and one that is public
        # bounds values.
        if self.adjacency.count_is_public != (interpretation.count is not None):
            raise ParameterError(
                f"`interpretation` of {self.name} must hold the number of rows under"
                " 'replace', where it is public, and only there."
            )
        if interpretation.only_under not in (None, self.adjacency):
            raise ParameterError(
                f"`interpretation` of {self.name} must be one for {str(self.adjacency)!r};"
                f" {type(interpretation).__name__} is for {str(interpretation.only_under)!r}."
            )
        self._noises: dict[Fraction, Noise] = {}
        self._totals = self._checked(totals)

    def _checked(self, totals: Sequence[int]) -> list[int]:
        return confidential_integers(
            totals, ParameterTypeError(f"`totals` of {self.name} must be whole numbers.")
        )

    def with_data(self, totals: Sequence[int]) -> Self:
        """Return the same noise, on as many other sums."""
        made = copy.copy(self)
        made._totals = self._checked(totals)
        if len(made._totals) != len(self._totals):
            raise ParameterTypeError(f"`totals` of {self.name} must be as many as before.")
        return made

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return what is public about a draw: everything but the sums."""
        noise = self.noise(budget)
        epsilon, delta, sensitivity = None, Fraction(0), float_up(budget / noise.rate)
        if isinstance(noise, DiscreteGaussian) and self.concentrated is not None:
            delta, sensitivity = Fraction(repr(float(self.concentrated.delta))), noise.sensitivity
            epsilon = epsilon_from_rho(noise.rho, delta)
        try:
            error = self.interpretation.error(noise)
        except OverflowError:
            raise ParameterError(
                f"The bounds of {self.name} are too far apart for this epsilon: its noise is beyond"
                " the range of float64."
            ) from None
        return PublicTerms(
            adjacency=self.adjacency,
            epsilon=epsilon,
            delta=float(delta),
            sensitivity=sensitivity,
            eta=float_down(noise.rate),
            domain=self.interpretation.domain,
            parameters={**noise.parameters, **self._parameters},
            assumptions=(self.summed, SECRET_KEY),
            timing=DATA_INDEPENDENT,
            seconds=self.seconds(),
            note=self.interpretation.note,
            error=error,
        )

    @property
    def _parameters(self) -> dict[str, str]:
        """What a certificate states besides."""
        return {}

    def seconds(self) -> float:
        """Return about how long a draw takes, by a public table; measured."""
        return 1.5e-4 + self.interpretation.seconds_per_sum * len(self._totals)

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw: noise on the sums, and what they are then."""
        noise = self.noise(budget)

        def draw(coins: Coins, size: int) -> Draws:
            # Here epsilon is spent. All that follows sees the noisy sums alone:
            # docs/theory/noisy_sums.md.
            noisy = self.interpretation.noisy_sums(self._totals, noise.draw(coins, size))
            values = self.interpretation.values(noisy)
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64), noisy=noisy)

        return draw

    def interval(self, budget: Fraction) -> Callable[[Sequence[int]], Accuracy]:
        """Return the interval of noisy sums, with the sums where the value does not tell them."""
        noise, interpretation = self.noise(budget), self.interpretation

        def accuracy(noisy: Sequence[int]) -> Accuracy:
            ends = interpretation.accuracy(noisy, noise)
            if interpretation.shows_sums:
                return ends
            return dataclasses.replace(ends, noisy=tuple(int(total) for total in noisy))

        return accuracy

    def farthest_end(self, budget: Fraction) -> float:
        """Return how far an interval reaches from its value, for sums without noise: of stand-ins.

        A mean at a bound has the longest interval: errors of sum and count add up there.
        """
        near = self.interval(budget)(self._totals)
        value = np.asarray(self.interpretation.value(self._totals), dtype=np.float64)
        upper, lower = np.asarray(near.upper) - value, value - np.asarray(near.lower)
        return float(np.maximum(upper, lower).max())

    def noise(self, budget: Fraction) -> Noise:
        """Return the law of the noise at an epsilon; raise where it does not fit in 64 bits."""
        if budget not in self._noises:  # a public choice, made once
            self._noises[budget] = self._choose_noise(budget)
        return self._noises[budget]

    def _choose_noise(self, budget: Fraction) -> Noise:
        noise = self.interpretation.noise(self.adjacency, budget)
        if not noise.fits:
            raise ParameterError(self._too_fine(budget))
        # Which noise is chosen by public numbers only: the sums are not looked at.
        squared = self.interpretation.squared_change(self.adjacency)
        if self.concentrated is None or squared is None:
            return noise
        rho = _rho_of_pure_noise(noise.name, self.interpretation, self.adjacency, budget)
        gaussian = DiscreteGaussian.of_rho(rho, size=noise.size, squared_change=squared)
        better = gaussian.fits and gaussian.scale < noise.scale
        return gaussian if better and self.concentrated.prefers(budget, rho) else noise

    def _too_fine(self, budget: Fraction) -> str:
        return (
            f"`epsilon` of {self.name} is too small for so many sums: their noise does not fit in"
            f" 64 bits; got {float(budget):g}."
        )

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute the rate of the noise and the sensitivity of the sums."""
        parameters = certificate.sampler
        kind = _INTERPRETATIONS.get(str(certificate.domain["kind"]))
        if kind is None or kind.mechanism != cls.name:
            other = f"{certificate.domain['kind']!r} is not what {cls.name} releases"
            return [Check(claim="domain", holds=False, detail=other)]
        interpretation = _rebuild(certificate.domain)
        names = ("noise", "parts", "slope", "rho")
        stated = {name: parameters[name] for name in names if name in parameters}
        public = certificate.adjacency == Adjacency.REPLACE
        timing = parameters.get("sampler") == cls.name and certificate.timing == DATA_INDEPENDENT
        epsilon = Fraction(repr(certificate.epsilon))
        rate = float(epsilon / Fraction(certificate.sensitivity))
        holds = rate * (1.0 - _TOLERANCE) <= certificate.eta <= rate * (1.0 + _TOLERANCE)
        relation = _relation(certificate)
        try:
            noise = interpretation.stated_noise(parameters, relation, epsilon)
        except ParameterError:
            noise = interpretation.laplace(relation, epsilon)  # then the check of noise fails
        if isinstance(noise, DiscreteGaussian):
            rate, holds = float(noise.rate), certificate.eta == float(noise.rate)
            moved, delta = noise.sensitivity, certificate.delta
            paid = check_concentrated(float(noise.rho), certificate.epsilon, delta)
        else:
            moved, delta, paid = float_up(epsilon / noise.rate), 0.0, True
        return [
            Check(claim="domain", holds=True, detail=interpretation.kind),
            Check(claim="timing", holds=timing, detail=f"{certificate.timing!r} of {cls.name}"),
            Check(claim="eta", holds=holds, detail=f"{certificate.eta!r}, recomputed {rate!r}"),
            check_equal("delta", float(certificate.delta), float(delta)),
            Check(claim="epsilon of rho", holds=paid, detail="at the delta that is stated"),
            check_equal("unit", certificate.unit, None),
            check_described("noise", stated, noise.parameters),
            check_equal("sensitivity", certificate.sensitivity, moved),
            check_equal("public count", interpretation.count is not None, public),
            check_equal("adjacency", str(relation), str(interpretation.only_under or relation)),
            check_equal("loss error", float(certificate.loss_error), 0.0),
            check_described("sums", certificate.domain, interpretation.domain),
            check_assumed(certificate, (cls.summed, SECRET_KEY)),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Floats | None) -> bool:
        """Tell whether a point can be what sums of the certificate mean."""
        return point is not None and _rebuild(certificate.domain).admits(point)

    @classmethod
    def rho(cls, certificate: Certificate, epsilon: Fraction) -> Fraction:
        """Return that of Gaussian noise, exactly; else that of pure noise at epsilon."""
        interpretation, relation = _rebuild(certificate.domain), _relation(certificate)
        stated = certificate.sampler
        if cls.concentrated_only(certificate):
            noise = interpretation.stated_noise(stated, relation, epsilon)
            return noise.rho if isinstance(noise, DiscreteGaussian) else rho_of_pure(epsilon)
        return _rho_of_pure_noise(str(stated.get("noise")), interpretation, relation, epsilon)

    @classmethod
    def concentrated_only(cls, certificate: Certificate) -> bool:
        """Tell whether the noise is Gaussian."""
        return certificate.sampler.get("noise") == DiscreteGaussian.name

    @classmethod
    def explains(cls, certificate: Certificate, point: Floats, stated: Accuracy) -> bool:
        interpretation = _rebuild(certificate.domain)
        implied = interpretation.sums_of(point.tolist())
        sums = implied if implied is not None else [int(total) for total in stated.noisy or ()]
        step = 0.0 if interpretation.unit is None else float(interpretation.unit)
        bounds = [*certificate.domain.get("lower", ()), *certificate.domain.get("upper", ())]
        spare = step / 2 + _TOLERANCE * max(map(abs, [*point.tolist(), *bounds]))
        if not np.allclose(interpretation.value(sums), point, rtol=0.0, atol=spare):
            return False
        # a certificate's epsilon may be a share rounded up to a float: the exact one is between
        epsilons = certificate.epsilon, np.nextafter(certificate.epsilon, 0.0)
        noises = [
            interpretation.stated_noise(
                certificate.sampler, _relation(certificate), Fraction(repr(float(epsilon)))
            )
            for epsilon in epsilons
        ]
        # earlier versions had this noise alone, and stated no intervals for all numbers at once
        earlier = noises[0].name == DiscreteLaplace.name
        return noises[0].confirms() and any(
            _same(interpretation.accuracy(sums, noise), stated, spare, earlier=earlier)
            for noise in noises
        )


def _rho_of_pure_noise(
    name: str, interpretation: Interpretation, adjacency: Adjacency, epsilon: Fraction
) -> Fraction:
    """Return the rho of pure noise: of Laplace noise a row moves each sum by a share of steps."""
    if name != DiscreteLaplace.name:
        return rho_of_pure(epsilon)
    steps = int(interpretation.sensitivity(adjacency))
    most = steps
    if isinstance(interpretation, Counts):
        most = 1
    elif isinstance(interpretation, Means):
        most = 1 << interpretation.bits
    # Rho of Laplace noise is convex in the change of a sum, so the worst row moves as few sums as
    # it can by as much as it can.
    whole, rest = divmod(steps, most)  # the most costly change: as few sums as can be, by most
    shares = [(whole, most), (1, rest)] if rest else [(whole, most)]
    return sum(
        (
            count * rho_of_discrete_laplace(epsilon * moved / steps, moved)
            for count, moved in shares
        ),
        Fraction(0),
    )


def _same(expected: Accuracy, stated: Accuracy, spare: float, *, earlier: bool) -> bool:
    """Compare ends and scale, up to half a step and what float64 loses of a value."""
    if (expected.scale is None) != (stated.scale is None):
        return False
    scales = expected.scale is None or np.allclose(
        expected.scale, stated.scale, rtol=1e-9, atol=0.0
    )
    pairs = [(expected.lower, stated.lower), (expected.upper, stated.upper)]
    joint = stated.joint_lower is not None or stated.joint_upper is not None
    if joint or not earlier:
        pairs += [
            (expected.joint_lower, stated.joint_lower),
            (expected.joint_upper, stated.joint_upper),
        ]
    if any((one is None) != (other is None) for one, other in pairs):
        return False
    near = all(
        np.allclose(end, other, rtol=_TOLERANCE, atol=spare)
        for end, other in pairs
        if end is not None  # of one number there is nothing to say for all at once
    )
    return scales and near


def _rebuild(described: Mapping[str, Any]) -> Interpretation:
    """Return the interpretation that a certificate's domain describes; raise if there is none."""
    kind = _INTERPRETATIONS.get(str(described["kind"]))
    if kind is None:
        raise ParameterError(f"`domain` must be of a known kind; got {described['kind']!r}.")
    return kind.rebuild(described)


def _relation(certificate: Certificate) -> Adjacency:
    public = certificate.adjacency == Adjacency.REPLACE
    return Adjacency.REPLACE if public else Adjacency.ADD_REMOVE


class NoisyMean(NoisySums):
    """Release ``lower + width clamp((S + noise) / (n 2^bits))``.

    S the integer sum of snapped rows; the noise of one column is discrete Laplace, of several it
    is ``P(u) ~ exp(-epsilon |u|_inf / 2^bits)``, with about half the error.

    Either way there is no factor 2 as in the exponential mechanism with L1 loss. Under "add-remove"
    the number of rows n is confidential. Of one column the sums from below ``U = S`` and from above
    ``V = n 2^bits - S`` both get noise, and ``U / (U + V)`` is a noisy sum over a noisy count. Of
    several columns the sums about the middle of the bounds and one count get cube noise.

    Parameters
    ----------
    count : int or sequence of int
        Number of rows. Confidential, except under "replace". Under "add-remove" also one number
        per column, that of the values which are present in it.
    sums : sequence of int
        For each column the sum of the whole numbers that :func:`snap` gives. Confidential.
    bits : int
        Rows were snapped to ``2^bits`` steps, 1 to 32.
    lower, upper : array-like
        Public bounds, one pair per column.
    adjacency : {"replace", "add-remove"}
        Which data sets are neighbours.
    concentrated : RhoBudget, optional
        As for :class:`NoisySums`.

    Examples
    --------
    >>> rows = np.array([[0.2], [0.4], [0.9]])
    >>> NoisyMean.from_rows(rows, lower=[0.0], upper=[1.0]).release(epsilon=1.0).value.shape
    (1,)
    """

    name = "NoisyMean"
    summed = _CLIPPED

    def __init__(
        self,
        *,
        count: int | Sequence[int],
        sums: Sequence[int],
        bits: int,
        lower: ArrayLike,
        upper: ArrayLike,
        adjacency: str = "replace",
        concentrated: RhoBudget | None = None,
    ) -> None:
        name = self.name
        relation = validate_adjacency(adjacency, owner=name)
        self.bits = validate_integer(bits, name="bits", owner=name, low=1, high=MOST_BITS)
        self.lower = validate_vector(lower, name="lower", owner=name, length=len(sums))
        self.upper = validate_vector(upper, name="upper", owner=name, length=len(sums))
        if not (self.lower < self.upper).all():
            raise ParameterError(
                f"`lower` of {name} must be below `upper`; got {lower!r} and {upper!r}."
            )
        if any(
            not 1e-290 <= float(up) - float(lo) < float("inf")
            for lo, up in zip(self.lower, self.upper, strict=True)
        ):
            raise ParameterError(
                f"`lower` and `upper` of {name} must differ by a number of usual size; got"
                f" {lower!r}, {upper!r}."
            )
        counts, listed = self._checked_rows(count, sums, relation)
        columns: dict[str, Any] = {
            "lower": tuple(self.lower.tolist()),
            "upper": tuple(self.upper.tolist()),
            "bits": self.bits,
        }
        self._means: Means | CentredMeans
        if relation.count_is_public:
            self._means = Means(**columns, count=counts[0])
        elif len(listed) == 1:
            self._means = Shares(**columns, count=None)
        else:
            self._means = CentredMeans(**columns, own_counts=isinstance(count, Sequence))
        super().__init__(
            totals=self._means.sums(counts, listed),
            interpretation=self._means,
            adjacency=relation,
            concentrated=concentrated,
        )

    def _checked_rows(
        self, count: int | Sequence[int], sums: Sequence[int], relation: Adjacency
    ) -> tuple[list[int], list[int]]:
        """Return the number of rows of each column, and their sums."""
        name, public = self.name, relation.count_is_public  # then one sum per column does
        counts = list(count) if isinstance(count, Sequence) else [count] * len(sums)
        several = isinstance(count, Sequence) and len(sums) > 1
        if len(counts) != len(sums) or len(sums) != len(self.lower) or (several and public):
            raise ParameterError(
                f"`count` of {name} must be a number or, under 'add-remove', one number per column."
            )
        if public:
            counts = [
                validate_integer(n, name="count", owner=name, low=1, high=1 << 62) for n in counts
            ]
        elif any(type(n) is not int or not 0 <= n <= 1 << 62 for n in counts):
            # it is confidential, so it is not repeated
            raise ParameterError(f"`count` of {name} must be a whole number from 0 to 2^62.")
        listed = confidential_integers(
            sums, ParameterTypeError(f"`sums` of {name} must be whole numbers.")
        )
        pairs = zip(listed, counts, strict=True)
        if any(not 0 <= total <= n << self.bits for total, n in pairs):
            raise ParameterError(
                f"`sums` of {name} must lie in 0 .. count * 2^bits, which sums of snapped rows do."
            )
        return counts, listed

    def with_data(self, data: Any) -> Self:
        """Return the mean of other rows: of a pair of their ``count`` and their ``sums``."""
        count, totals = data
        counts, sums = self._checked_rows(count, totals, self.adjacency)
        if self._means.count not in (None, counts[0]):
            raise ParameterError(f"`count` of {self.name} is public and cannot change.")
        made = copy.copy(self)
        made._totals = self._means.sums(counts, sums)
        return made

    @classmethod
    def from_rows(
        cls,
        rows: ArrayLike,
        *,
        lower: ArrayLike,
        upper: ArrayLike,
        bits: int = MOST_BITS,
        adjacency: str = "replace",
    ) -> NoisyMean:
        """Clip, snap and sum confidential rows.

        Parameters
        ----------
        rows : array-like of shape (n, d)
            Numbers without nan; confidential.
        lower, upper, bits, adjacency
            As for the class; public.

        Returns
        -------
        NoisyMean
        """
        name = cls.name
        numbers = confidential_array(rows, name="rows", owner=name, kinds="fiub")
        with np.errstate(all="ignore"):  # a longer float may become infinite
            table = numbers.astype(np.float64)
        if table.ndim != 2 or table.shape[1] == 0 or np.isnan(table).any():
            raise ParameterTypeError(
                f"`rows` of {name} must be numbers of shape (n, d) without nan."
            )
        low = validate_vector(lower, name="lower", owner=name, length=table.shape[1])
        high = validate_vector(upper, name="upper", owner=name, length=table.shape[1])
        empty = cls(
            count=1, sums=[0] * low.size, bits=bits, lower=low, upper=high, adjacency=adjacency
        )  # checks before use
        sums = snap(table, low, high, empty.bits).sum(
            axis=0
        )  # below 2^63: fewer than 2^31 rows fit in memory
        return cls(
            count=len(table),
            sums=sums.tolist(),
            bits=empty.bits,
            lower=low,
            upper=high,
            adjacency=adjacency,
        )

    def _too_fine(self, budget: Fraction) -> str:
        return (
            f"`bits` of {self.name} must be at most {affordable_bits(budget, len(self.lower))} at"
            f" this epsilon and dimension; got {self.bits}."
        )

    @property
    def _parameters(self) -> dict[str, str]:
        own = self.interpretation.domain.get("own_counts")
        return {"sums": _OWN_COUNTS if own else _SUMS[self.adjacency, self.interpretation.kind]}

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute what noise on sums claims, and how many sums there are."""
        expected = _SUMS.get((certificate.adjacency, str(certificate.domain["kind"])))
        if expected is not None and certificate.domain.get("own_counts"):
            expected = _OWN_COUNTS
        sums = certificate.sampler.get("sums")
        return [*super().verify(certificate), check_equal("sums", sums, expected)]
