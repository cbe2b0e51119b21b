"""What the estimators share.

Checks that quote no record, the sampler that the timing asks for, and charge before draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from expmech.errors import ParameterError, ParameterTypeError, validate_choice
from expmech.ledger import Entry, Ledger, exact_amount
from expmech.release import Release
from expmech.samplers import Sampler
from expmech.samplers.plan import TIMINGS
from expmech.statistics import Bounds, Prepared, validate_bounds
from expmech.target.problem import ADJACENCIES

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
    sampler: Sampler | str
    timing: str
    accountant: Any
    adjacency: str
    random_state: int | None

    @property
    def _name(self) -> str:
        return type(self).__name__

    def __sklearn_tags__(self) -> Any:
        """Say that two fits differ unless a seed is given."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags

    def _validate_parameters(self) -> Fraction:
        """Check what every estimator takes.

        Return epsilon as the rational its decimal text denotes.
        """
        validate_choice(self.timing, name="timing", owner=self._name, choices=TIMINGS)
        validate_choice(self.adjacency, name="adjacency", owner=self._name, choices=ADJACENCIES)
        seed = self.random_state
        if seed is not None and (
            isinstance(seed, (bool, np.bool_))
            or not isinstance(seed, (int, np.integer))
            or seed < 0
        ):
            raise ParameterTypeError(
                f"`random_state` of {self._name} must be None, for a release, or a whole number"
                f" that is at least 0, for a study; got {seed!r}."
            )
        if seed is not None and self.accountant is not None:
            raise ParameterError(
                f"`accountant` of {self._name} must be None when `random_state` is given: what is"
                " drawn from a seed is a study and never a release, so no budget is charged"
                " for it."
            )
        if (
            self.accountant is not None
            and not isinstance(self.accountant, (Ledger, str))
            and not hasattr(self.accountant, "__fspath__")
        ):
            raise ParameterTypeError(
                f"`accountant` of {self._name} must be a Ledger or the path of one; got"
                f" {self.accountant!r}."
            )
        return self._amount(self.epsilon, "epsilon")

    def _amount(self, value: Any, name: str) -> Fraction:
        """Return the rational that the shortest decimal text of a number denotes.

        NumPy's shorter floats included.
        """
        return exact_amount(
            str(value) if isinstance(value, np.floating) else value, name=name, owner=self._name
        )

    def _validate_training(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Check the training data."""
        # Under add-remove, refusing an empty table would betray that it is empty; a study has
        # nothing to betray.
        least = 0 if self.adjacency == "add-remove" and self.random_state is None else 1
        return self._validate(X, y, ensure_min_samples=least, **options)

    def _validate_new(self, X: Any) -> Any:
        """Check the rows of a prediction, of a fitted estimator."""
        check_is_fitted(self)
        return self._validate(X, reset=False, dtype=np.float64)

    def _validate(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Check data as scikit-learn does.

        An error says what is wrong and never quotes the data.
        """
        try:
            return validate_data(self, X, y, **options)
        except Exception as error:
            text, kind = str(error), TypeError if isinstance(error, TypeError) else ValueError
            if text.startswith(_ON_COLUMNS):
                raise kind(text) from None
            sentence = next((fixed for word, fixed in _SENTENCES if word in text), _OTHERWISE)
            raise kind(sentence.format(name=self._name)) from None

    def _validate_column_bounds(
        self, bounds: Any, columns: int, *, name: str = "bounds"
    ) -> list[Bounds]:
        """Return one pair a column, from one pair for all of them or one pair each."""
        rule = (
            f"`{name}` of {self._name} must be a pair (LOWER, UPPER), or one pair for each of the"
            f" {columns} columns"
        )
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
        return [
            validate_bounds(pair, name=self._name, parameter=name)
            for pair in np.broadcast_to(table, (columns, 2)).tolist()
        ]

    def _draw(self, prepared: Sequence[Prepared], statements: Sequence[str]) -> list[Release]:
        """Choose samplers, certify, charge and draw, in this order.

        With a seed nothing is charged and nothing is a release.
        """
        timed = [ready.timed(self.timing, owner=self._name) for ready in prepared]
        if self.random_state is not None:
            return [ready.study((int(self.random_state), k)) for k, ready in enumerate(timed)]
        if self.accountant is not None:
            ledger = (
                self.accountant if isinstance(self.accountant, Ledger) else Ledger(self.accountant)
            )
            certificates = [ready.certificate() for ready in timed]
            ledger.charge_all(
                [
                    Entry(
                        epsilon=ready.epsilon,
                        delta=certificate.delta,
                        statement=f"{self._name}: {statement}",
                        certificate=certificate.to_json(),
                    )
                    for ready, certificate, statement in zip(
                        timed, certificates, statements, strict=True
                    )
                ]
            )
        return [ready.release() for ready in timed]


def column_names(estimator: PrivateEstimator) -> NDArray[Any]:
    """Return the names of the columns, or their positions where they have none."""
    return np.asarray(getattr(estimator, "feature_names_in_", np.arange(estimator.n_features_in_)))
