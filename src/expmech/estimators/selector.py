"""The private choice of a best candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from expmech.errors import ParameterError, validate_scale
from expmech.estimators.base import PrivateEstimator, column_names
from expmech.estimators.tables import Unread, only_column
from expmech.samplers import Sampler
from expmech.statistics import ArrayRows, BestScore, LargestTotal, MostFrequent, Statistic
from expmech.statistics.keys import canonical_key
from expmech.statistics.reading import read_numbers


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
    sampler, timing, accountant, adjacency, missing, random_state
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
        missing: str = "middle",
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
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PrivateSelector:
        """Draw the best candidate; y goes to ``scoring`` and is otherwise ignored."""
        budget = self._validate_parameters()
        if self.scoring is None and self.sensitivity is not None:
            raise ParameterError(
                f"`sensitivity` of {self._name} must be None without `scoring`; got"
                f" {self.sensitivity!r}."
            )
        table, d = self._table(X)
        names = column_names(self).tolist() if self.candidates is None else list(self.candidates)
        statistic, read = self._statistic(table, y, d, names)
        (release,) = self._draw([statistic], Unread(table=table, read=read), epsilon=budget)
        self.best_index_ = int(release.value)
        self.best_ = names[self.best_index_]
        self.certificate_ = release.certificate
        return self

    def _statistic(
        self, table: Any, y: Any, d: int, names: list[Any]
    ) -> tuple[Statistic, Callable[[], ArrayRows]]:
        """Return the choice that the parameters ask for, and what reads the rows for it."""
        positions, relation = tuple(range(len(names))), self._relation
        if self.scoring is not None:
            sensitivity = validate_scale(self.sensitivity, name="sensitivity", owner=self._name)
            chosen = BestScore(
                labels=positions,
                candidates=tuple(self._different(names, names)),
                function=self.scoring,
                sensitivity=sensitivity,
                adjacency=relation,
                missing=self.missing,
            )
            return chosen, lambda: ArrayRows(raw=table, target=y)
        if self.candidates is None:
            bounds = self._validate_column_bounds(self.bounds, d)
            total = LargestTotal(
                columns=positions,
                bounds=bounds,
                labels=positions,
                adjacency=relation,
                missing=self.missing,
            )
            return total, lambda: ArrayRows(numbers=read_numbers(table, columns=d))
        if d != 1:
            raise ParameterError(
                f"`X` of {self._name} must have one column, whose values are counted; got {d}."
            )
        frequent = MostFrequent(
            column=0,
            candidates=tuple(self._different(names, list(map(canonical_key, names)))),
            labels=positions,
            adjacency=relation,
            missing=self.missing,
        )
        return frequent, lambda: ArrayRows(raw=only_column(table))

    def _different(self, names: list[Any], keys: list[Any]) -> list[Any]:
        """Return the candidates; raise unless there are two, and their keys differ."""
        try:
            repeated = len(set(keys)) < len(keys)
        except TypeError:  # a scoring may take candidates that cannot be compared by a hash
            repeated = False
        if len(names) < 2 or repeated:
            raise ParameterError(
                f"`candidates` of {self._name} must be at least two different values; got"
                f" {self.candidates!r}."
            )
        return names
