"""The private choice of a best candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.certificates.timing import CONSTANT
from expmech.core.errors import (
    ParameterError,
    validate_choice,
    validate_flag,
    validate_integer,
    validate_list,
    validate_scale,
)
from expmech.estimators.base import PrivateEstimator, SamplerParameters, column_names
from expmech.estimators.tables import only_column
from expmech.tables.arrays import ArrayRows, DeferredRows
from expmech.tables.keys import canonical_key
from expmech.tables.reading import read_numbers
from expmech.tables.release import account_of
from expmech.tables.statistics import BestScore, LargestTotal, MostFrequent, Statistic, TopOf


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSelector(SamplerParameters, PrivateEstimator):
    """The best of a public list of candidates by score, by permute-and-flip; or the k best.

    Parameters
    ----------
    candidates : sequence, optional
        Public list of what may be chosen. None: the columns of X.
    scoring : callable, optional
        ``scoring(X, y, candidate)``, higher is better. None: for columns, their totals; for
        candidates, how many rows of the single column X equal them, numbers by their value whether
        they are written as numbers or as text.
    sensitivity : float, optional
        How much a score may change between adjacent data sets: the caller's promise, and an
        assumption of the certificate. Only with ``scoring``.
    monotone : bool, default False
        Whether all scores move the same way between adjacent data sets, as counts do when a row is
        added: a promise too, which halves what they cost. Only with ``scoring``.
    k : int, optional
        None: the best. A number: so many of ``candidates``, the most frequent first. Not with
        ``scoring``.
    objective : {"worst", "mean"}, default "worst"
        With ``k``, what is to be small: "worst", how far the worst place falls short (one joint
        draw of the list), or "mean", how far places do on average (one place after the other).
    epsilon : float, int, Fraction or str, default 1.0
        Budget of one fit: a number, or decimal text.
    bounds : pair of float, sequence of pairs, or dict, optional
        Public bounds of the columns, for their totals: a pair ``(lower, upper)``, or one pair a
        column.
    sampler : Sampler or str, default "auto"
        "auto" is permute-and-flip, whose expected loss is never above that of the exponential
        mechanism; a sampler asks for the latter, and so does a ledger under concentrated
        composition, where its bounded range costs less.
    timing, budget_seconds, ledger, adjacency, missing, random_state
        As for :class:`PrivateMean`. Permute-and-flip flips one coin per candidate, whatever the
        data.

    Attributes
    ----------
    best_ : object
        The chosen candidate: one of ``candidates``, or the name (position, where there are no
        names) of a column. With ``k`` a list of them, the first place first.
    best_index_ : int
        Its position; with ``k`` a list of positions.
    certificate_ : Certificate
        What was promised.

    Examples
    --------
    >>> answers = [["yes"], ["no"], ["yes"], ["yes"]]
    >>> PrivateSelector(candidates=["yes", "no"], epsilon=1.0).fit(answers).best_ in ("yes", "no")
    True
    """

    candidates: Sequence[Any] | None = None
    scoring: Callable[[Any, Any, Any], float] | None = None
    sensitivity: float | Fraction | None = None
    monotone: bool = False
    k: int | None = None
    objective: str = "worst"
    bounds: Any = None

    def fit(self, X: Any, y: Any = None) -> PrivateSelector:
        """Draw the best candidate, and charge the ledger before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; confidential.
        y : array-like, optional
            Passed to `scoring`; otherwise ignored.

        Returns
        -------
        PrivateSelector
            The fitted estimator itself.
        """
        budget = self._validate_parameters()
        self._validate_choice()
        table, d = self._table(X)
        if self.candidates is None:
            names = column_names(self).tolist()
        else:
            names = list(validate_list(self.candidates, name="candidates", owner=self._name))
        statistic, read = self._statistic(table, y, d, names)
        rows = DeferredRows(table=table, read=read)
        (release,) = self._draw(self._prepare([statistic], rows, budget), rows)
        if self.k is None:
            self.best_index_: Any = int(release.value)
            self.best_ = names[self.best_index_]
        else:
            self.best_index_ = [int(place) for place in release.value]
            self.best_ = [names[place] for place in self.best_index_]
        self.certificate_ = release.certificate
        return self

    def _validate_choice(self) -> None:
        """Raise where parameters do not belong together."""
        if self.scoring is None and self.sensitivity is not None:
            raise ParameterError(
                f"`sensitivity` of {self._name} must be None without `scoring`; got"
                f" {self.sensitivity!r}."
            )
        monotone = validate_flag(self.monotone, name="monotone", owner=self._name)
        if self.scoring is None and monotone:
            raise ParameterError(
                f"`monotone` of {self._name} must be False without `scoring`: how counts and totals"
                " move is known."
            )
        validate_choice(
            self.objective, name="objective", owner=self._name, choices=("worst", "mean")
        )
        if self.k is None:
            return
        if self.scoring is not None or self.candidates is None:
            raise ParameterError(
                f"`k` of {self._name} must be None unless `candidates` are counted; got {self.k!r}."
            )
        places = len(self.candidates)
        validate_integer(self.k, name="k", owner=self._name, low=1, high=places)

    def _statistic(
        self, table: Any, y: Any, d: int, names: list[Any]
    ) -> tuple[Statistic, Callable[[], ArrayRows]]:
        """Return the choice that the parameters ask for, and what reads the rows for it."""
        exponential = self._exponential
        positions = tuple(range(len(names)))
        common: dict[str, Any] = {
            "labels": positions,
            "adjacency": self._relation,
            "missing": self.missing,
        }
        if self.scoring is not None:
            sensitivity = validate_scale(self.sensitivity, name="sensitivity", owner=self._name)
            chosen = BestScore(
                candidates=tuple(self._different(names, names)),
                function=self.scoring,
                sensitivity=sensitivity,
                monotone=bool(self.monotone),
                exponential=exponential,
                **common,
            )
            return chosen, lambda: ArrayRows(raw=table, target=y)
        if self.candidates is None:
            bounds = self._validate_column_bounds(self.bounds, d)
            total = LargestTotal(
                columns=positions, bounds=bounds, exponential=exponential, **common
            )
            return total, lambda: ArrayRows(numbers=read_numbers(table, columns=d))
        if d != 1:
            raise ParameterError(
                f"`X` of {self._name} must have one column, whose values are counted; got {d}."
            )
        self._different(names, list(map(canonical_key, names)))
        common |= {"column": 0, "candidates": tuple(names)}
        counted: Statistic = (
            MostFrequent(exponential=exponential, **common)
            if self.k is None
            else TopOf(k=int(self.k), objective=self.objective, **common)
        )
        return counted, lambda: ArrayRows(raw=only_column(table))

    @property
    def _exponential(self) -> bool:
        """Whether a sampler is named, or a ledger counts laws of bounded range for less."""
        if self.sampler != "auto":
            return True
        ledger = account_of(self.ledger)
        return ledger is not None and ledger.wants_bounded_range and self.timing != CONSTANT

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
