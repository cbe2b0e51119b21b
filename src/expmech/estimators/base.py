"""What the estimators share.

Parameters are checked, the public half is settled and charged, and only then is a value of the data
looked at. Nothing about a value can be refused: docs/theory/reading.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.errors import (
    ParameterError,
    ParameterTypeError,
    validate_choice,
    validate_positive,
)
from expmech.estimators.arguments import bounds_by_name, without_weights
from expmech.estimators.tables import Unread, as_table, assumed, column_count, filled_table
from expmech.ledger import Entry, Ledger, charges_noted, exact_amount
from expmech.release import Release
from expmech.samplers import TIMINGS, Sampler
from expmech.samplers.choose import AUTO, UNPROTECTED
from expmech.statistics import (
    Bounds,
    Settled,
    Statistic,
    find_all,
    public_count,
    settle,
    validate_bounds,
)
from expmech.statistics.base import check_missing
from expmech.statistics.reading import stand_in

# scikit-learn's own messages may quote rows ("could not convert string to float: ...") and row
# counts. Each is replaced by a fixed sentence, found by a word of the original.
_SENTENCES = (
    ("requires y to be passed", "{name} requires y to be passed, but the target y is None."),
    ("Complex data", "Complex data not supported."),
    ("parse", "Sparse data was passed, but dense data is required."),
    ("feature(s)", "Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required."),
    ("sample(s)", "Found array with too few samples: at least 1 sample is required."),
    ("NaN", "The data of {name} must not contain NaN or infinity."),
    ("infinity", "The data of {name} must not contain NaN or infinity."),
    ("1d array", "y should be a 1d array of one target a row."),
    (
        "2D array",
        (
            "X must be a 2D array, one row a record. Reshape your data, with array.reshape(-1, 1)"
            " for a single column."
        ),
    ),
    (
        "dim",
        (
            "X must be a 2D array, one row a record. Reshape your data, with array.reshape(-1, 1)"
            " for a single column."
        ),
    ),
    ("inconsistent", "X and y must have one entry a row each."),
    (
        "argument must be",
        "Each value of the data must be a number: the argument must be a string or a real number.",
    ),
)
_ON_COLUMNS = (
    "X has",
    "The feature names should match",
)  # number and names of the columns are public
_OTHERWISE = (
    "The data of {name} must be numbers in a 2D array X, and one target a row where there is a y."
)


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters are stored by ``__init__`` and checked by ``fit``.

    What ``fit`` sets is private, and nothing else is kept.
    """

    epsilon: Any
    sampler: Sampler | str = "auto"
    timing: str = AUTO
    budget_seconds: float | None = None
    accountant: Any
    adjacency: str
    missing: str = "middle"
    random_state: int | None

    def __init_subclass__(cls, **options: Any) -> None:
        """Let ``fit`` refuse weights of rows with the reason; it takes no such parameter."""
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = without_weights(vars(cls)["fit"])

    @property
    def _name(self) -> str:
        return type(self).__name__

    @property
    def cost_of_a_fit(self) -> Fraction:
        """The epsilon that a fit with these parameters charges."""
        return self._validate_parameters()

    @property
    def _relation(self) -> Adjacency:
        return validate_adjacency(self.adjacency, owner=self._name)

    def __sklearn_tags__(self) -> Any:
        """Say that missing values are allowed, and that two fits differ unless a seed is given."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _validate_parameters(self) -> Fraction:
        """Check what every estimator takes; return epsilon as its decimal text denotes it."""
        validate_choice(self.timing, name="timing", owner=self._name, choices=TIMINGS)
        check_missing(self.missing, self._relation, owner=self._name)
        self._validate_seed()
        if self.budget_seconds is not None:
            validate_positive(self.budget_seconds, name="budget_seconds", owner=self._name)
        by_path = isinstance(self.accountant, str) or hasattr(self.accountant, "__fspath__")
        if self.accountant is not None and not isinstance(self.accountant, Ledger) and not by_path:
            raise ParameterTypeError(
                f"`accountant` of {self._name} must be a Ledger or the path of one; got"
                f" {self.accountant!r}."
            )
        return self._amount(self.epsilon, "epsilon")

    def _validate_seed(self) -> None:
        seed = self.random_state
        if seed is None:
            return
        if (
            isinstance(seed, (bool, np.bool_))
            or not isinstance(seed, (int, np.integer))
            or seed < 0
        ):
            raise ParameterTypeError(
                f"`random_state` of {self._name} must be None, for a release, or a whole number"
                f" that is at least 0, for a study; got {seed!r}."
            )
        if self.accountant is not None:
            raise ParameterError(
                f"`accountant` of {self._name} must be None when `random_state` is given: what is"
                " drawn from a seed is a study and never a release, so no budget is charged for it."
            )

    def _amount(self, value: Any, name: str) -> Fraction:
        """Return the rational that a number's shortest text denotes, NumPy's floats included."""
        shown = str(value) if isinstance(value, np.floating) else value
        return exact_amount(shown, name=name, owner=self._name)

    _takes_sparse = False

    def _table(self, X: Any) -> tuple[Any, int]:
        """Return the table and its number of columns, and remember the columns' names.

        All of it is public: no value is looked at.
        """
        table = as_table(X, sparse=self._takes_sparse)
        columns = column_count(table)
        self._validate(table, skip_check_array=True)
        return table, columns

    def _validate_new(self, X: Any, bounds: Any) -> Any:
        """Return the rows of a prediction, of a fitted estimator.

        What is missing counts as at the fit, where that gives it a value; else it is refused.
        """
        check_is_fitted(self)
        filled = self.missing in ("middle", "lower", "clip")
        finite = "allow-nan" if filled else True
        kinds = "csr" if self._takes_sparse else False
        table = self._validate(
            X, reset=False, dtype=np.float64, ensure_all_finite=finite, accept_sparse=kinds
        )
        pairs = self._validate_column_bounds(bounds, table.shape[1], name="bounds_X")
        stands = np.array([stand_in(pair, self.missing) for pair in pairs])
        return filled_table(table, stands)

    def _validate(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Check data as scikit-learn does; an error says what is wrong and quotes nothing."""
        try:
            return validate_data(self, X, y, **options)
        except Exception as error:
            text, kind = str(error), TypeError if isinstance(error, TypeError) else ValueError
        # raised when the other one is gone, which may hold a row in its context
        if text.startswith(_ON_COLUMNS):
            raise kind(text)
        sentence = next((fixed for word, fixed in _SENTENCES if word in text), _OTHERWISE)
        raise kind(sentence.format(name=self._name))

    def _validate_column_bounds(
        self, bounds: Any, columns: int, *, name: str = "bounds"
    ) -> tuple[Bounds, ...]:
        """Return one pair a column, from one pair for all of them or one pair each."""
        rule = (
            f"`{name}` of {self._name} must be a pair (LOWER, UPPER), or one pair for each of the"
            f" {columns} columns, in order or by name"
        )
        if isinstance(bounds, dict):
            bounds = bounds_by_name(self, bounds, name)
        if bounds is None:
            raise ParameterError(
                f"{rule}; got None. Bounds are public: they come from what the quantity can be,"
                " never from the data, and values outside are clipped."
            )
        try:
            table = np.array(bounds, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterTypeError(f"{rule}; got {bounds!r}.") from None
        if table.shape not in ((2,), (columns, 2)):
            raise ParameterError(f"{rule}; got {bounds!r}.")
        pairs = np.broadcast_to(table, (columns, 2)).tolist()
        return tuple(validate_bounds(pair, name=self._name, parameter=name) for pair in pairs)

    def _draw(
        self, statistics: Sequence[Statistic], rows: Unread, *, epsilon: Fraction
    ) -> list[Release]:
        """Settle, charge, read and draw, in this order; ``epsilon`` is that of each statistic.

        With a seed nothing is charged and nothing is a release.
        """
        settled = self._settle(statistics, rows, epsilon)
        if self.random_state is not None:
            found = find_all(settled, rows)
            return [
                one.study(answer, (int(self.random_state), k))
                for k, (one, answer) in enumerate(zip(settled, found, strict=True))
            ]
        with self._charged(settled):
            found = find_all(settled, rows)
            return [one.release(answer) for one, answer in zip(settled, found, strict=True)]

    def _settle(
        self, statistics: Sequence[Statistic], rows: Unread, epsilon: Fraction
    ) -> list[Settled]:
        """Return the public half of each release, which is what is charged."""
        if self._relation.count_is_public and rows.count() == 0:
            raise ParameterError(f"{self._name} found no rows: at least 1 sample is required.")
        count = public_count(rows, self._relation, least=1)
        return [
            settle(
                one,
                epsilon=epsilon,
                count=count,
                sampler=self.sampler,
                timing=self._timing,
                budget_seconds=self.budget_seconds,
                owner=self._name,
                notes=assumed(rows.table),
            )
            for one in statistics
        ]

    @property
    def _timing(self) -> str:
        """What is asked of the running time: nothing of a study, unless it is named."""
        studied = self.random_state is not None and self.timing == AUTO
        return UNPROTECTED if studied else self.timing

    @property
    def _ledger(self) -> Ledger | None:
        given = self.accountant
        return given if given is None or isinstance(given, Ledger) else Ledger(given)

    @contextmanager
    def _charged(self, settled: Sequence[Settled]) -> Iterator[None]:
        """Charge all draws before the first; with a seed there is no accountant."""
        ledger = self._ledger
        if ledger is None:
            yield
            return
        charges = ledger.charge_all([self._entry(one.epsilon, one.certificate) for one in settled])
        with charges_noted(ledger.path, charges):
            yield

    def _entry(self, epsilon: Fraction, certificate: Any) -> Entry:
        return Entry(
            epsilon=epsilon,
            delta=certificate.delta,
            statement=f"{self._name}: {certificate.statistic}",
            certificate=certificate.to_json(),
        )


def column_names(estimator: PrivateEstimator) -> NDArray[Any]:
    """Return the names of the columns, or their positions where they have none."""
    positions = np.arange(estimator.n_features_in_)
    return np.asarray(getattr(estimator, "feature_names_in_", positions))
