"""What the estimators share.

Parameters are checked, the public half is prepared and charged, and only then is a value of the
data looked at. No value can cause a refusal: docs/theory/reading.md.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from expmech.certificates.certificate import Certificate
from expmech.certificates.mechanism import Release
from expmech.certificates.timing import AUTO, TIMINGS, UNPROTECTED
from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import Floats
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    validate_choice,
    validate_positive,
)
from expmech.estimators.tables import as_table, filled_table
from expmech.exponential.samplers import Sampler
from expmech.ledger import Ledger, exact_amount
from expmech.tables.arrays import DeferredRows
from expmech.tables.reading import AUTO_MISSING, EQUAL_ROWS, read_numbers, stand_in
from expmech.tables.release import PreparedRelease, ReleaseRequest, account_of, release_all
from expmech.tables.scaling import Bounds, validate_bounds
from expmech.tables.searches import (
    DEFAULT_SHARE,
    BoundsSearch,
    are_private,
    parse_share,
    release_after,
)
from expmech.tables.statistics import Statistic
from expmech.tables.statistics.base import check_missing

_WEIGHTS = (
    "`sample_weight` of {0} is refused: a row with a large weight moves the answer by more than the"
    " guarantee allows for one row. Repeat nobody: bound what a person adds, or release groups."
)


_MANY_FITS = (
    "Clones of this {name} are fitted again and again without a ledger, as a search over parameters"
    " or a cross-validation does. Each fit on the same rows costs epsilon = {epsilon:g}: together m"
    " settings on k folds cost up to m k + 1 times that, and nothing counts it. Give `ledger=` a"
    " budget, or choose parameters on public data."
)


def without_weights(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fit`` that refuses weights of rows and counts fits of clones without a ledger.

    Its signature stays as it is.
    """

    @functools.wraps(fit)
    def refusing(self: Any, *given: Any, **named: Any) -> Any:
        if named.pop("sample_weight", None) is not None:
            raise ParameterError(_WEIGHTS.format(type(self).__name__))
        fitted = fit(self, *given, **named)
        fits = vars(self).get("_clone_fits")
        if fits is not None and self.random_state is None and self.ledger is None:
            fits.note(type(self).__name__, self.cost_of_a_fit)
        return fitted

    return refusing


def bounds_by_name(estimator: Any, bounds: Mapping[Any, Any], name: str) -> list[Any]:
    """Return the pairs in the order of the columns of the fit; raise unless each has one."""
    owner = type(estimator).__name__
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise ParameterError(
            f"`{name}` of {owner} must be in the order of the columns: X has no names of columns,"
            " and a dict needs them."
        )
    missing = [str(column) for column in names if column not in bounds]
    unknown = [str(column) for column in bounds if column not in set(names)]
    if missing or unknown:
        wrong = f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        raise ParameterError(f"`{name}` of {owner} must name every column of X once; {wrong}.")
    return [bounds[column] for column in names]


_TWO_DIMENSIONS = (
    "X must be a 2D array, one row per record. Reshape your data, with array.reshape(-1, 1) for a"
    " single column."
)
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
    ("1d array", "y should be a 1d array of one target per row."),
    ("2D array", _TWO_DIMENSIONS),
    ("dim", _TWO_DIMENSIONS),
    ("inconsistent", "X and y must have one entry per row each."),
    (
        "argument must be",
        "Each value of the data must be a number: the argument must be a string or a real number.",
    ),
)
# number and names of the columns are public
_ON_COLUMNS = ("X has", "The feature names should match")
_OTHERWISE = (
    "The data of {name} must be numbers in a 2D array X, and one target per row where there is a y."
)


@dataclass(kw_only=True)
class CloneFits:
    """How many fits without a ledger an estimator and its clones had; clones share it."""

    count: int = 0

    def note(self, name: str, epsilon: Fraction) -> None:
        """Count a fit; warn at the second, which is where a search or cross-validation shows."""
        self.count += 1
        if self.count == 2:
            warnings.warn(_MANY_FITS.format(name=name, epsilon=float(epsilon)), stacklevel=4)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters are stored by ``__init__`` and checked by ``fit``.

    What ``fit`` sets is private, and nothing else is kept. A class is a dataclass for the sake of
    its ``__init__``; parameters that several estimators share are the records at the end.
    """

    epsilon: Any = 1.0
    ledger: Any = None
    adjacency: str = "replace"
    random_state: int | None = None

    # what some estimators take as parameters, by the records below
    missing: ClassVar[str] = AUTO_MISSING
    sampler: ClassVar[Sampler | str] = "auto"
    timing: ClassVar[str] = AUTO
    budget_seconds: ClassVar[float | None] = None
    _takes_sparse: ClassVar[bool] = False
    _name: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        """Let ``fit`` refuse weights of rows with the reason; it takes no such parameter."""
        super().__init_subclass__(**options)
        cls._name = cls.__name__
        if "fit" in vars(cls):
            cls.fit = without_weights(vars(cls)["fit"])

    def __sklearn_clone__(self) -> Any:
        """Return a clone that shares the count of fits without a ledger; nothing else is shared."""
        made = super().__sklearn_clone__()
        self._clone_fits = made._clone_fits = vars(self).get("_clone_fits") or CloneFits()
        return made

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
        seed = self.random_state
        whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, (bool, np.bool_))
        if seed is not None and (not whole or seed < 0):
            raise ParameterTypeError(
                f"`random_state` of {self._name} must be None, for a release, or a whole number"
                f" that is at least 0, for a study; got {seed!r}."
            )
        if seed is not None and self.ledger is not None:
            raise ParameterError(
                f"`ledger` of {self._name} must be None when `random_state` is given: what is"
                " drawn from a seed is a study and never a release, so no budget is charged for it."
            )
        if self.budget_seconds is not None:
            validate_positive(self.budget_seconds, name="budget_seconds", owner=self._name)
        by_path = isinstance(self.ledger, str) or hasattr(self.ledger, "__fspath__")
        if self.ledger is not None and not isinstance(self.ledger, Ledger) and not by_path:
            raise ParameterTypeError(
                f"`ledger` of {self._name} must be a Ledger or the path of one; got"
                f" {self.ledger!r}."
            )
        return exact_amount(self.epsilon, name="epsilon", owner=self._name)

    def _table(self, X: Any) -> tuple[Any, int]:
        """Return the table and its number of columns, and remember the columns' names.

        All of it is public: no value is looked at.
        """
        table, columns = as_table(X, sparse=self._takes_sparse)
        self._validate(table, skip_check_array=True)
        return table, columns

    def _validate_new(self, X: Any, bounds: Any) -> Any:
        """Return the rows of a prediction, of a fitted estimator.

        What is missing counts as at the fit, where that gives it a value, and by default as the
        middle of its bounds; else it is refused.
        """
        check_is_fitted(self)
        rule = "middle" if self.missing == AUTO_MISSING else self.missing
        filled = rule in ("middle", "lower", "clip")
        finite = "allow-nan" if filled else True
        kinds = "csr" if self._takes_sparse else False
        table = self._validate(
            X, reset=False, dtype=np.float64, ensure_all_finite=finite, accept_sparse=kinds
        )
        pairs = self._validate_column_bounds(bounds, table.shape[1], name="bounds_X")
        stands = np.array([stand_in(pair, rule) for pair in pairs])
        return filled_table(table, stands)

    def _rows_to_transform(self, X: Any) -> Floats:
        """Return rows as a fit reads them: NaN for what is no number, and no value is refused.

        In a pipeline they are what the model behind it is fitted to, so that a refusal would tell
        of a record.
        """
        check_is_fitted(self)
        table, columns = as_table(X, sparse=False)
        self._validate(table, reset=False, skip_check_array=True)
        return read_numbers(table, columns=columns)

    def _validate(self, X: Any, **options: Any) -> Any:
        """Check data as scikit-learn does; an error says what is wrong and quotes nothing."""
        try:
            return validate_data(self, X, **options)
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
        """Return one pair per column, from one pair for all of them or one pair each."""
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
        pairs = np.atleast_2d(table).tolist()
        checked = tuple(validate_bounds(pair, name=self._name, parameter=name) for pair in pairs)
        return checked * columns if table.ndim == 1 else checked

    def _draw(
        self, prepared: Sequence[PreparedRelease], rows: DeferredRows, before: int = 0
    ) -> list[Release]:
        """Charge, aggregate and draw; ``before`` is how many releases the fit had already."""
        account = account_of(self.ledger)
        return release_all(prepared, rows, ledger=account, seed=self.random_state, before=before)

    def _prepare(
        self,
        statistics: Sequence[Statistic],
        rows: DeferredRows,
        epsilon: Fraction,
        notes: tuple[str, ...] = (),
    ) -> list[PreparedRelease]:
        """Return the public half of each release, which is what is charged."""
        count, timing = rows.count() if self._relation.count_is_public else None, self.timing
        if count == 0:
            raise ParameterError(f"{self._name} found no rows: at least 1 sample is required.")
        # a list of rows is read as if all had the length of the first
        if isinstance(rows.table, (list, tuple)):
            notes = (EQUAL_ROWS, *notes)
        if self.random_state is not None and timing == AUTO:
            timing = UNPROTECTED  # nothing is required of the running time of a study
        request = ReleaseRequest(
            epsilon=epsilon,
            sampler=self.sampler,
            timing=timing,
            budget_seconds=self.budget_seconds,
            owner=self._name,
            notes=notes,
        )
        return [request.prepare_rows(statistic, count) for statistic in statistics]


def column_names(estimator: PrivateEstimator) -> NDArray[Any]:
    """Return the names of the columns, or their positions where they have none."""
    positions = np.arange(estimator.n_features_in_)
    return np.asarray(getattr(estimator, "feature_names_in_", positions))


def column_labels(estimator: PrivateEstimator) -> tuple[str, ...]:
    """Return what certificates call the columns: the names of a frame's, "column 0" otherwise."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return tuple(f"column {j}" for j in range(estimator.n_features_in_))
    return tuple(map(str, names))


@dataclass(kw_only=True, eq=False, repr=False)
class BoundedColumns(PrivateEstimator):
    """Columns that are clipped to bounds, which are given or found privately."""

    bounds: Any = None
    bounds_share: Any = DEFAULT_SHARE

    def _draw_bounded(
        self,
        make: Callable[[tuple[Bounds, ...], Fraction], Sequence[Statistic]],
        rows: DeferredRows,
        epsilon: Fraction,
    ) -> list[Release]:
        """Return releases of the statistics that ``make`` gives for bounds, which share epsilon.

        Private bounds are found first; ``make`` then gets the rest of epsilon.
        """
        columns = self.n_features_in_
        share = parse_share(self.bounds_share, name="bounds_share", owner=self._name)
        if not are_private(self.bounds):
            pairs = self._validate_column_bounds(self.bounds, columns)
            self.bounds_: tuple[Bounds, ...] = pairs
            self.bounds_certificates_: tuple[Certificate, ...] = ()
            statistics = make(pairs, epsilon)
            return self._draw(self._prepare(statistics, rows, epsilon / len(statistics)), rows)
        search = BoundsSearch(
            columns=tuple(range(columns)),
            labels=column_labels(self),
            epsilon=epsilon,
            share=share,
            adjacency=self._relation,
            missing=self.missing,
            owner=self._name,
        )

        def prepare(given: tuple[Bounds, ...], notes: tuple[str, ...]) -> list[PreparedRelease]:
            statistics = make(given, search.rest)
            return self._prepare(statistics, rows, search.rest / len(statistics), notes)

        releases = release_after(
            search,
            self._prepare(search.statistics, rows, search.column_epsilon, search.notes),
            prepare,
            lambda prepared, before: self._draw(prepared, rows, before),
            account_of(self.ledger),
        )
        found = releases[0].bounds
        self.bounds_ = search.given([each.value for each in found])
        self.bounds_certificates_ = tuple(each.certificate for each in found)
        return releases


@dataclass(kw_only=True, eq=False, repr=False)
class MissingParameter:
    """Numbers that are clipped, so that something has to stand for one that is missing."""

    missing: str = AUTO_MISSING


@dataclass(kw_only=True, eq=False, repr=False)
class TimingParameters:
    """Clipped numbers, and a draw whose time is forecast in public."""

    missing: str = AUTO_MISSING
    timing: str = "auto"
    budget_seconds: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class SamplerParameters:
    """Clipped numbers, and a draw by a sampler that can be named."""

    missing: str = AUTO_MISSING
    timing: str = "auto"
    budget_seconds: float | None = None
    sampler: Sampler | str = "auto"
