"""The private choice of a best candidate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.errors import ParameterError, validate_positive
from expmech.estimators.base import PrivateEstimator, column_names
from expmech.rounding import float_up
from expmech.samplers import Sampler
from expmech.statistics import moments_of, select
from expmech.statistics.aggregates import PRODUCT_BITS

Scoring = tuple[list[float], Fraction, Fraction | None]
"""Scores up to a shift, their sensitivity, and a public bound on their differences."""


class PrivateSelector(PrivateEstimator):
    """The best of a public list of candidates by score: the classical exponential mechanism.

    Parameters
    ----------
    candidates
        Public list of what may be chosen. None: the columns of X.
    scoring
        ``scoring(X, y, candidate)``, higher is better. None: for columns, their totals; for
        candidates, how many rows of the single column X equal them, numbers by their value whether
        they are written as numbers or as text.
    sensitivity
        How much a score may change between adjacent data sets (half of it where all scores move the
        same way): the caller's promise, and an assumption of the certificate. Only with
        ``scoring``.
    epsilon
        Budget of one fit: a number, or decimal text.
    bounds
        Public bounds of the columns, for their totals: a pair ``(lower, upper)``, or one pair a
        column.
    sampler, timing, accountant, adjacency, random_state
        As for :class:`PrivateMean`.

    Attributes
    ----------
    best_ : object
        The chosen candidate: one of ``candidates``, or the name (position, where there are no
        names) of a column.
    best_index_ : int
        Its position.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> answers = [["yes"], ["no"], ["yes"], ["yes"]]
    >>> PrivateSelector(candidates=["yes", "no"], epsilon=1.0).fit(answers).best_ in ("yes", "no")
    True
    """

    def __init__(
        self,
        *,
        candidates: Sequence[Any] | None = None,
        scoring: Callable[[Any, Any, Any], float] | None = None,
        sensitivity: float | Fraction | None = None,
        epsilon: Any = 1.0,
        bounds: Any = None,
        sampler: Sampler | str = "auto",
        timing: str = "unprotected",
        accountant: Any = None,
        adjacency: str = "replace",
        random_state: int | None = None,
    ) -> None:
        self.candidates = candidates
        self.scoring = scoring
        self.sensitivity = sensitivity
        self.epsilon = epsilon
        self.bounds = bounds
        self.sampler = sampler
        self.timing = timing
        self.accountant = accountant
        self.adjacency = adjacency
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PrivateSelector:
        """Draw the best candidate; y goes to ``scoring`` and is otherwise ignored."""
        budget = self._validate_parameters()
        if self.scoring is None and self.sensitivity is not None:
            raise ParameterError(
                f"`sensitivity` of {self._name} must be None without `scoring`; got"
                f" {self.sensitivity!r}."
            )
        totals = self.candidates is None and self.scoring is None
        table = self._validate_training(X, dtype=np.float64 if totals else None)
        names = (
            column_names(self).tolist()
            if self.candidates is None
            else self._different(self.candidates)
        )
        scores, sensitivity, bound = (
            self._totals(table) if totals else self._scores(table, y, names)
        )
        ready = select(
            scores,
            range(len(names)),
            epsilon=budget,
            sensitivity=sensitivity,
            adjacency=self.adjacency,
            bound=None if bound is None else float_up(bound),
            sampler=self.sampler,
        )
        (release,) = self._draw([ready], [f"best of {len(names)} candidates"])
        self.best_index_ = int(release.value)
        self.best_ = names[self.best_index_]
        self.certificate_ = release.certificate
        return self

    def _different(self, candidates: Sequence[Any]) -> list[Any]:
        names = list(candidates)
        keys = names if self.scoring is not None else [_key(name) for name in names]
        if len(names) < 2 or _repeats(keys):
            raise ParameterError(
                f"`candidates` of {self._name} must be at least two different values; got"
                f" {candidates!r}."
            )
        return names

    def _scores(self, table: NDArray[Any], y: Any, names: list[Any]) -> Scoring:
        if self.scoring is not None:
            sensitivity = validate_positive(self.sensitivity, name="sensitivity", owner=self._name)
            try:
                return [float(self.scoring(table, y, name)) for name in names], sensitivity, None
            except Exception:
                raise ParameterError(
                    f"`scoring` of {self._name} failed on the data; nothing was charged or"
                    " released."
                ) from None
        if table.shape[1] != 1:
            raise ParameterError(
                f"`X` of {self._name} must have one column, whose values are counted; got"
                f" {table.shape[1]}."
            )
        found = Counter(map(_key, table[:, 0]))
        counts = [float(found[_key(name)]) for name in names]
        # Under add-remove all counts move the same way, which halves the sensitivity: see Scores.
        return (
            (counts, Fraction(1), Fraction(len(table)))
            if self.adjacency == "replace"
            else (counts, Fraction(1, 2), None)
        )

    def _totals(self, table: NDArray[np.float64]) -> Scoring:
        """Return column totals of clipped and snapped values.

        Computed exactly and shifted by the best before they are rounded.
        """
        bounds = self._validate_column_bounds(self.bounds, table.shape[1])
        found = moments_of(table, bounds, bits=PRODUCT_BITS)
        lower, upper = ([Fraction(pair[side]) for pair in bounds] for side in (0, 1))
        totals = [
            found.count * low + (high - low) * total / (1 << found.bits)
            for low, high, total in zip(lower, upper, found.sums, strict=True)
        ]
        scores = [float(total - max(totals)) for total in totals]
        if self.adjacency == "replace":
            widest = max(high - low for low, high in zip(lower, upper, strict=True))
            return scores, widest, found.count * (max(upper) - min(lower))
        # A row adds points of [0, most - least] to each total, up to the same shift for all: as in
        # Scores, half of that is D.
        return scores, (max(upper) - min(lower)) / 2, None


def _key(value: Any) -> float | str:
    """Return what a value is compared by: the number it is or spells, else its text.

    NumPy turns a whole column into text, or floats, for the sake of one row. Keys that do not
    depend on the type of the column keep that row from moving the counts of the others.
    """
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    try:
        number = float({"True": "1", "False": "0"}.get(text, text))
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _repeats(keys: Sequence[Hashable]) -> bool:
    try:
        return len(set(keys)) < len(keys)
    except TypeError:  # a scoring may take candidates that cannot be compared by a hash
        return False
