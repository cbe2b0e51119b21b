"""Groups that nobody listed: noisy counts that reach a threshold, over a public universe of keys.

Without a delta every key of the universe may be shown, also one that no row has; with a delta only
keys that rows have are. Theory page: docs/theory/unknown_groups.md.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from expmech.certificates.accuracy import LEVEL, Accuracy, first_integer, half_width, is_below
from expmech.certificates.certificate import Certificate
from expmech.certificates.checks import (
    SECRET_KEY,
    Check,
    budgets,
    check_assumed,
    check_between,
    check_described,
    check_noise,
)
from expmech.certificates.mechanism import Draw, Draws, Mechanism, PublicTerms
from expmech.certificates.timing import DATA_DEPENDENT
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import Array
from expmech.core.balls import real
from expmech.core.coins import Coins
from expmech.core.coins.laws import draw_binomial, draw_subset
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    shielded,
    validate_integer,
    validate_nonnegative,
)
from expmech.core.rounding import float_down, float_up
from expmech.mechanisms.groups.universe import Universe, parse_universe
from expmech.theory.concentrated import rho_of_discrete_laplace

_OWNER, _KIND = "UnknownGroups", "Keys"
INVENTED = Fraction(1, 1000)
"""Invented keys that a release has on average, at most, unless a threshold is named."""
_MOST_INVENTED = 1000
_MOST_KEYS = 1 << 20
_MOST_THRESHOLD = 1 << 60
_MOST_POWER = 1200  # of two, in a number that becomes a float
_ONE_KEY = "a row counts for one key at most, and which one was decided from that row alone"
_KEYS_PER_PERSON = (
    "each person counts once for each of at most {keys} keys: epsilon is that of one key, and delta"
    " that of all of them"
)
_KEYS_OF_ROWS = (
    "only keys that rows have can be shown; that somebody is the only one to have a shown key is"
    " what delta covers"
)
_KEYS_INVENTED = (
    "a shown key may be invented: every key of the universe, also one that no row has, is shown if"
    " its noisy count reaches the threshold; that happens in at most {share} of releases"
)
_DETECTION = (
    "a key is shown if its noisy count reaches {least}: groups of {shown_from} and more are in at"
    " least 95% of releases"
)


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The public half: the rate of the noise, the threshold, and what follows from them."""

    rate: Fraction
    least: int
    keys: int
    size: int
    pure: bool

    @property
    def delta(self) -> Fraction:
        """Return ``1 - (1 - p)^keys``, ``p = P(1 + Z >= t)``, rounded up; 0 where it is pure."""
        if self.pure:
            return Fraction(0)
        return _rounded_up(lambda: _delta(self.rate, self.least, self.keys))

    @property
    def invented(self) -> float:
        """Return a bound on the number of invented keys, and the probability that there are any."""
        if not self.pure:
            return 0.0
        number = _rounded_up(lambda: self.size * tail(self.rate, self.least))
        return float_up(min(number, Fraction(1 << 1000)))  # refused long before

    @property
    def shown_from(self) -> int:
        """Return the size from which a group is shown in at least 95% of releases."""
        return self.least + _first_at_most(lambda w: tail(self.rate, w), 1 - LEVEL) - 1

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what a certificate states."""
        return {
            "noise": "discrete Laplace",
            "threshold": self.least,
            "shown_from": self.shown_from,
            "invented": self.invented,
            "keys": self.keys,
        }

    @property
    def note(self) -> str:
        """Return what a plan says."""
        seen = _DETECTION.format(least=self.least, shown_from=self.shown_from)
        if self.pure:
            share = _share_text(self.invented)
            return f"{seen}; a key that no row has is shown in at most {share} of them"
        return f"{seen}; no key that no row has is ever shown"


def _validate_counts(counts: Mapping[str, int], universe: Universe) -> dict[str, int]:
    """Return the counts of keys of the universe, in order; no message names one."""
    return shielded(
        lambda: {str(k): int(n) for k, n in sorted(counts.items()) if n > 0 and k in universe},
        ParameterTypeError(f"`counts` of {_OWNER} must be whole numbers by key."),
    )


@dataclass(frozen=True, kw_only=True)
class UnknownGroups(Mechanism):
    """Show the keys whose counts, with discrete Laplace noise, reach a threshold.

    Without a delta every key of a public universe gets noise, so a shown key may be invented; how
    often stands in the certificate. With a delta keys that no row has are never shown, and the
    threshold is lower. Make one with :meth:`from_counts`.

    Parameters
    ----------
    universe : Universe
        The public set of keys.
    adjacency : Adjacency
        Which data sets are neighbours.
    delta : Fraction
        0 for a pure guarantee.
    keys : int
        How many keys a person may count for; ``epsilon`` is then that of each.
    threshold : int or None
        The least noisy count that is shown; None for the least with the promised delta, or with
        an invented key in at most one release of 1000.
    counts : mapping from str to int
        Rows, or people, of each key that has any; confidential.

    Examples
    --------
    >>> towns = {"Bern": 900, "Chur": 340, "Soglio": 2}
    >>> groups = UnknownGroups.from_counts(towns, universe="text:20")
    >>> sorted(dict(groups.study(epsilon=1.0, seed=1).value))
    ['Bern', 'Chur']
    """

    name = _OWNER
    gives_intervals = True

    universe: Universe
    adjacency: Adjacency
    delta: Fraction = Fraction(0)
    keys: int = 1
    threshold: int | None = None
    counts: Mapping[str, int] = field(repr=False)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        universe: Universe | str,
        adjacency: str = "add-remove",
        delta: float | Fraction = 0,
        keys: int = 1,
        threshold: int | None = None,
    ) -> UnknownGroups:
        """Take confidential counts by key; keys outside of the universe are left out.

        Parameters
        ----------
        counts : mapping from str to int
            How many rows, or people, have each key; confidential.
        universe : Universe or str
            The public set of keys: ``text:20``, ``int:32`` or a pattern, see
            :func:`expmech.mechanisms.groups.parse_universe`.
        adjacency : {"add-remove", "replace"}, default "add-remove"
            Which data sets are neighbours.
        delta : float or Fraction, default 0
            Where it is above 0, no key is invented and the threshold is lower.
        keys : int, default 1
            How many keys a person may count for, once each; add-remove only. ``epsilon`` is then
            that of one key, and ``delta`` that of all of them.
        threshold : int, optional
            The least noisy count that is shown; by default a public rule chooses it.

        Returns
        -------
        UnknownGroups

        Raises
        ------
        ParameterError, ParameterTypeError
            Where an argument breaks its rule.
        """
        relation = validate_adjacency(adjacency, owner=_OWNER)
        most = validate_integer(keys, name="keys", owner=_OWNER, low=1, high=_MOST_KEYS)
        if most > 1 and relation.count_is_public:
            raise ParameterError(f"`keys` of {_OWNER} above 1 needs 'add-remove' adjacency.")
        allowed = validate_nonnegative(delta, name="delta", owner=_OWNER)
        if allowed >= 1:
            raise ParameterError(f"`delta` of {_OWNER} must be below 1; got {delta!r}.")
        least = threshold
        if least is not None:
            least = validate_integer(
                least, name="threshold", owner=_OWNER, low=1, high=_MOST_THRESHOLD
            )
        known = universe if isinstance(universe, Universe) else parse_universe(universe)
        return cls(
            universe=known,
            adjacency=relation,
            delta=allowed,
            keys=most,
            threshold=least,
            counts=_validate_counts(counts, known),
        )

    def with_data(self, counts: Mapping[str, int]) -> UnknownGroups:
        """Return the same rule for other counts."""
        return dataclasses.replace(self, counts=_validate_counts(counts, self.universe))

    def terms(self, budget: Fraction) -> Threshold:
        """Return rate and threshold at an epsilon; raise where there is no such draw."""
        rate = budget / self.adjacency.rows_moved
        threshold_at = functools.partial(
            Threshold, rate=rate, keys=self.keys, size=self.universe.size, pure=self.delta == 0
        )
        if self.threshold is None:
            return threshold_at(least=self._lowest(rate))
        stated = threshold_at(least=self.threshold)
        if stated.pure and stated.invented > _MOST_INVENTED:
            raise ParameterError(
                f"`threshold` of {_OWNER} is too low for the universe {self.universe.text}: more"
                f" than {_MOST_INVENTED} keys of a release would be invented. Use a higher"
                f" threshold ({self._lowest(rate)} invents one in 1000 releases), a smaller"
                f" universe or a delta; got {self.threshold}."
            )
        # Below the least threshold a new key would be shown with more than the promised delta.
        if not stated.pure and (stated.delta > self.delta or not _covered(rate, stated.least)):
            raise ParameterError(
                f"`threshold` of {_OWNER} must be at least {self._lowest(rate)} at this epsilon and"
                f" delta; got {self.threshold}."
            )
        return stated

    def _lowest(self, rate: Fraction) -> int:
        if self.delta == 0:
            return _first_at_most(lambda t: self.universe.size * tail(rate, t), INVENTED)
        # A small delta is not enough: that a new key is *not* shown may reveal only its share of
        # epsilon, 1 - p >= exp(-rate). Theorem 3, and the example after it
        covered = _first_at_most(lambda t: tail(rate, t - 1) + (-real(rate)).exp(), Fraction(1))
        return max(covered, _first_at_most(lambda t: _delta(rate, t, self.keys), self.delta))

    def public_terms(self, budget: Fraction) -> PublicTerms:
        """Return what is public about a draw: everything but the counts and their keys."""
        terms = self.terms(budget)
        return PublicTerms(
            adjacency=self.adjacency,
            sensitivity=float(self.adjacency.rows_moved),
            eta=float_down(terms.rate),
            domain=_domain(self.universe),
            parameters=terms.parameters,
            assumptions=_assumed(terms.parameters, pure=terms.pure),
            timing=DATA_DEPENDENT,
            delta=float_up(terms.delta),
            seconds=1e-3,
            note=terms.note,
            shown_from=terms.shown_from,
        )

    def fit(self, budget: Fraction) -> Draw:
        """Return the draw of lists of (key, noisy count), the largest count first."""
        terms = self.terms(budget)

        def draw(coins: Coins, size: int) -> Draws:
            values = np.empty(size, dtype=object)
            for j in range(size):
                values[j] = self._draw_shown(coins, terms)
            return Draws(values=values, proposals=np.zeros(size, dtype=np.int64), noisy=values)

        return draw

    def _draw_shown(self, coins: Coins, terms: Threshold) -> tuple[tuple[str, int], ...]:
        # How many keys there are is confidential, and so is the time of a draw: its class says so.
        noise = coins.discrete_laplace(terms.rate, len(self.counts)).tolist()
        noisy = [(key, n + z) for (key, n), z in zip(self.counts.items(), noise, strict=True)]
        shown = [pair for pair in noisy if pair[1] >= terms.least]
        if terms.pure:
            chance = functools.partial(_tail_at, terms.rate, terms.least)
            number = draw_binomial(coins, terms.size, chance)
            # Theorem 2 of docs/theory/unknown_groups.md: drawn from all keys of the universe, and
            # keys that rows have are dropped afterwards, so that no coin depends on the data
            places = draw_subset(coins, terms.size, number)
            # what noise that reaches the threshold has beyond it is geometric: such a law has no
            # memory
            beyond = coins.geometric(terms.rate, number).tolist()
            invented = [
                (self.universe.at(p), terms.least + b) for p, b in zip(places, beyond, strict=True)
            ]
            shown += [pair for pair in invented if pair[0] not in self.counts]
        return tuple(sorted(shown, key=lambda pair: (-pair[1], pair[0])))

    def interval(self, budget: Fraction) -> Callable[[Any], Accuracy]:
        """Return the intervals of shown counts: a group is shown with a wrong one in 5% at most."""
        rate = self.terms(budget).rate
        return lambda pairs: _accuracy(rate, pairs)

    @classmethod
    def verify(cls, certificate: Certificate) -> list[Check]:
        """Recompute rate, threshold, delta, and what is said of invented and of shown keys."""
        c, parameters = certificate, certificate.sampler
        pure = c.delta == 0
        adjacency = validate_adjacency(c.adjacency, owner=_OWNER)
        universe = parse_universe(c.domain["universe"])
        least = validate_integer(
            parameters["threshold"], name="threshold", owner=_OWNER, low=1, high=_MOST_THRESHOLD
        )
        most = 1 if adjacency.count_is_public else _MOST_KEYS
        keys = validate_integer(parameters["keys"], name="keys", owner=_OWNER, low=1, high=most)
        low, high = (
            Threshold(
                rate=budget / adjacency.rows_moved,
                least=least,
                keys=keys,
                size=universe.size,
                pure=pure,
            )
            for budget in budgets(c)
        )
        covered = pure or _covered(low.rate, least)
        expected = {"sampler": _OWNER, **high.parameters, "invented": parameters["invented"]}
        expected["shown_from"] = parameters["shown_from"]
        return [
            *check_noise(c, _OWNER, DATA_DEPENDENT, float(adjacency.rows_moved)),
            check_between("eta", c.eta, float_down(low.rate), float_down(high.rate)),
            check_between("delta", c.delta, float_up(high.delta), float_up(low.delta)),
            Check(claim="one new key", holds=covered, detail="within its share of epsilon"),
            check_between("invented", parameters["invented"], high.invented, low.invented),
            Check(claim="threshold", holds=low.invented <= _MOST_INVENTED, detail=repr(least)),
            check_between("shown from", parameters["shown_from"], high.shown_from, low.shown_from),
            check_described("domain", c.domain, _domain(universe)),
            check_described("parameters", dict(parameters), expected),
            check_assumed(c, _assumed(parameters, pure=pure)),
        ]

    @classmethod
    def admits(cls, certificate: Certificate, point: Array | None) -> bool:
        """Tell whether the pairs are different keys of the universe that reach the threshold."""
        universe = parse_universe(certificate.domain["universe"])
        least = certificate.sampler["threshold"]
        if point is None or point.ndim != 2 or point.shape[1] != 2:
            return False
        keys, counts = point.T.tolist()
        return len(set(keys)) == len(keys) and all(
            key in universe and type(count) is int and count >= least
            for key, count in zip(keys, counts, strict=True)
        )

    @classmethod
    def explains(cls, certificate: Certificate, point: Array, stated: Accuracy) -> bool:
        moved = Adjacency(certificate.adjacency).rows_moved
        pairs = [tuple(pair) for pair in point.tolist()]
        alone = stated.noisy is None and stated.joint_lower is None and stated.joint_upper is None
        return alone and any(
            all(
                _as_pairs(getattr(near, end)) == _as_pairs(getattr(stated, end))
                for end in ("lower", "upper")
            )
            and all(
                math.isclose(float(one), float(other), rel_tol=1e-9)
                for (_, one), (_, other) in zip(near.scale, stated.scale, strict=True)
            )
            for near in (_accuracy(budget / moved, pairs) for budget in budgets(certificate))
        )

    @classmethod
    def rho(cls, certificate: Certificate, epsilon: Fraction) -> Fraction:
        """Return the rho of one count moved by one, or of two at half of epsilon."""
        moved = Adjacency(certificate.adjacency).rows_moved
        return moved * rho_of_discrete_laplace(epsilon / moved, 1)


def tail(rate: Fraction, least: int) -> flint.arb:
    """Enclose ``P(Z >= t) = exp(-rate t) / (1 + exp(-rate))`` for a whole t of at least 0."""
    return (-real(rate) * least).exp() / (1 + (-real(rate)).exp())


def _tail_at(rate: Fraction, least: int, precision: int) -> flint.arb:
    with flint.ctx.workprec(precision):
        return tail(rate, least)


def _delta(rate: Fraction, least: int, keys: int) -> flint.arb:
    """Enclose ``1 - (1 - p)^keys``, p that a key of one person is shown."""
    return -((-tail(rate, least - 1)).log1p() * keys).expm1()


def _covered(rate: Fraction, least: int) -> bool:
    """Tell whether ``p <= 1 - exp(-rate)``: then a key that is not shown hides who is new to it."""
    return is_below(lambda _: tail(rate, least - 1) + (-real(rate)).exp(), Fraction(1))


def _first_at_most(number: Callable[[int], flint.arb], limit: Fraction) -> int:
    """Return the least whole t of at least 1 whose falling number is at most the limit."""
    return first_integer(lambda t: is_below(lambda _: number(t), limit), above=0)


def _rounded_up(number: Callable[[], flint.arb]) -> Fraction:
    with flint.ctx.workprec(256):
        mantissa, exponent = map(int, number().upper().mid().man_exp())
    # what float64 cannot tell from 0 or from infinity may have more digits than memory
    if mantissa.bit_length() + exponent < -_MOST_POWER:
        return Fraction(1, 1 << _MOST_POWER)
    return mantissa * Fraction(2) ** min(exponent, _MOST_POWER)


def _assumed(parameters: Mapping[str, Any], *, pure: bool) -> tuple[str, ...]:
    """Return what a certificate lists, from the parameters that it states."""
    keys = parameters["keys"]
    people = (_KEYS_PER_PERSON.format(keys=keys),) if keys > 1 else ()
    share = _share_text(parameters["invented"])
    kind = _KEYS_INVENTED.format(share=share) if pure else _KEYS_OF_ROWS
    seen = _DETECTION.format(least=parameters["threshold"], shown_from=parameters["shown_from"])
    return (_ONE_KEY, *people, seen, kind, SECRET_KEY)


def _share_text(number: float) -> str:
    """Return a share of releases in two digits, rounded up."""
    if number >= 1.0:
        return "all"
    unit = 10.0 ** (math.floor(math.log10(max(number, 1e-300))) - 1)
    return f"{math.ceil(number / unit) * unit:.2g}"


def _domain(universe: Universe) -> dict[str, Any]:
    return {"kind": _KIND, "universe": universe.text, "log_size": math.log(universe.size)}


def _accuracy(rate: Fraction, pairs: Any) -> Accuracy:
    wide, scale = half_width(rate), float(1 / rate)
    return Accuracy(
        lower=tuple((key, max(0, count - wide)) for key, count in pairs),
        upper=tuple((key, count + wide) for key, count in pairs),
        scale=tuple((key, scale) for key, _ in pairs),
    )


def _as_pairs(ends: Any) -> list[tuple[str, int]]:
    return [(key, end) for key, end in (ends.tolist() if hasattr(ends, "tolist") else ends)]
