"""Pipelines and searches: what else learns from the data, and what a search costs in all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.estimators.base import PrivateEstimator
from expmech.ledger import Ledger
from expmech.ledger.amounts import show_amount

PRIVATE, BY_ROW = "private", "row by row"
LEARNS, MAY_LEARN = "learns from the data", "may learn from the data"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a pipeline and what it does with the data: one of the four kinds above.

    ``refuses`` is whether a row can stop it by a missing or an infinite value.
    """

    name: str
    kind: str
    refuses: bool = False


@dataclass(frozen=True, kw_only=True)
class PipelineCheck:
    """What the steps of a pipeline do with the data.

    Parameters
    ----------
    steps : tuple of Step
        Each step by its name, with its kind: "private", "row by row", "learns from the data" or
        "may learn from the data".
    """

    steps: tuple[Step, ...]

    @property
    def stands(self) -> bool:
        """Whether there is a private model and nothing beside it learns from the data."""
        return {PRIVATE} <= {step.kind for step in self.steps} <= {PRIVATE, BY_ROW}

    def __str__(self) -> str:
        """Return one line per step, and the verdict."""
        width = max(len(step.name) for step in self.steps)
        lines = [f"{step.name:<{width}}  {step.kind}" for step in self.steps]
        learning = [step.name for step in self.steps if step.kind == LEARNS]
        unknown = [step.name for step in self.steps if step.kind == MAY_LEARN]
        if learning:
            lines.append(
                f"Not private: {', '.join(learning)} would be fitted to the data without a"
                " guarantee. Use public numbers (`bounds`, explicit `categories` with"
                ' `handle_unknown="ignore"`), or fit it to other data.'
            )
        if unknown:
            lines.append(
                f"Not known to be private: {', '.join(unknown)} may use several rows at once. Name"
                " functions that treat each row alone in `by_row` of check_pipeline."
            )
        if not any(step.kind == PRIVATE for step in self.steps):
            lines.append("Not private: no step is a model of expmech.")
        refusing = [step.name for step in self.steps if step.refuses]
        if refusing:
            lines.append(
                f"Fill missing values and clip numbers before {', '.join(refusing)}: a missing or"
                " infinite value may end the fit there, which would tell about its row."
            )
        if self.stands:
            lines.append("Private: nothing learns from the data but the private model.")
        return "\n".join(lines)


def check_pipeline(pipeline: Any, *, by_row: Collection[Callable[..., Any]] = ()) -> PipelineCheck:
    """Say which steps of a pipeline learn from the data beside its private model.

    Parameters
    ----------
    pipeline : Pipeline
        A scikit-learn Pipeline; its unions and column transformers are looked into.
    by_row : collection of callable, default ()
        Functions of FunctionTransformer steps that treat each row alone. That they do is the
        caller's promise; functions of NumPy such as ``np.log1p`` need not be named.

    Returns
    -------
    PipelineCheck
        Each step with its kind; ``stands`` where nothing learns but a private model.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from expmech.estimators import PrivateMean
    >>> check_pipeline(make_pipeline(StandardScaler(), PrivateMean(bounds=(0, 1)))).stands
    False
    """
    if not isinstance(pipeline, Pipeline):
        raise ParameterTypeError(
            "`pipeline` of check_pipeline must be a scikit-learn Pipeline; got"
            f" {type(pipeline).__name__}."
        )
    return PipelineCheck(steps=tuple(_steps("", pipeline, by_row)))


def _steps(prefix: str, part: Any, by_row: Collection[Callable[..., Any]]) -> Iterator[Step]:
    """Yield the steps of a pipeline, of a union and of a transformer by columns, and theirs."""
    inner = _parts(part)
    if inner is None:
        yield Step(name=prefix, kind=_kind(part, by_row), refuses=_refuses(part))
        return
    for name, step in inner:
        yield from _steps(f"{prefix}.{name}" if prefix else name, step, by_row)


def _parts(part: Any) -> list[tuple[str, Any]] | None:
    """Return the named parts of what only combines others; None for what does not."""
    if type(part) is ColumnTransformer:
        inner = [(name, step) for name, step, _ in part.transformers]
        # a function that picks columns sees the data; by dtype and name it sees their types
        pickers = [columns for *_, columns in part.transformers if callable(columns)]
        if any(type(picker) is not make_column_selector for picker in pickers):
            inner.append(("columns", pickers))
        return [*inner, ("remainder", part.remainder)]
    if isinstance(part, Pipeline):
        return list(part.steps)
    return list(part.transformer_list) if type(part) is FeatureUnion else None


def _kind(part: Any, by_row: Collection[Callable[..., Any]]) -> str:
    if part is None or isinstance(part, str):  # "passthrough", "drop"
        return BY_ROW
    if isinstance(part, PrivateEstimator):
        return PRIVATE
    if isinstance(part, list):
        return MAY_LEARN
    if type(part) is FunctionTransformer:
        # without a check that the inverse fits, fit looks at nothing; what func does is its own
        known = part.func is None or isinstance(part.func, np.ufunc) or part.func in by_row
        return BY_ROW if known else MAY_LEARN
    rule = _BY_ROW.get(type(part))
    return BY_ROW if rule is not None and rule(part) else LEARNS


def _refuses(part: Any) -> bool:
    """Return whether a step checks by itself that numbers are finite, or are there."""
    if type(part) is FunctionTransformer:
        return bool(part.validate)
    if type(part) in (OneHotEncoder, OrdinalEncoder):  # a column of numbers is checked
        return any(not isinstance(name, str) for column in part.categories for name in column)
    return type(part) in (
        Binarizer,
        MissingIndicator,
        Normalizer,
        PolynomialFeatures,
        SimpleImputer,
    )


def _has_public_categories(encoder: Any) -> bool:
    """Return whether categories are given, none are merged, and no value is refused."""
    merged = (encoder.min_frequency, encoder.max_categories) != (None, None)
    named = not isinstance(encoder.categories, str)
    return named and not merged and encoder.handle_unknown in {"ignore", "use_encoded_value"}


def _always(_: Any) -> bool:
    return True


# What treats each row alone, by its own documentation, and under which parameters.
_BY_ROW: dict[type, Callable[[Any], bool]] = {
    Binarizer: _always,
    FeatureHasher: _always,
    HashingVectorizer: _always,
    Normalizer: _always,
    PolynomialFeatures: _always,
    OneHotEncoder: _has_public_categories,
    OrdinalEncoder: _has_public_categories,
    MissingIndicator: lambda step: step.features == "all",
    SimpleImputer: lambda step: (
        step.strategy == "constant" and step.keep_empty_features and not step.add_indicator
    ),
}


def reserve(search: Any, ledger: Ledger) -> Any:
    """Set the whole cost of a GridSearchCV aside, before the first fit.

    Every candidate is fitted to every fold and the best one to all rows; each fit is a release.
    The sum is charged at once, or LedgerError is raised and nothing is. The search that is
    returned charges its fits to a ledger of its own, beside the other, that holds this sum and no
    more; what a search leaves of it is not given back.

    Parameters
    ----------
    search : GridSearchCV
        The search, not fitted yet, of a model of this package or a pipeline that ends in one.
    ledger : Ledger
        The ledger that is charged.

    Returns
    -------
    GridSearchCV
        A copy of the search that charges its fits to a ledger of its own.

    Raises
    ------
    LedgerError
        If the ledger holds less than the search may cost.

    Notes
    -----
    Models are private, scores are not: ``cv_results_`` and the choice of ``best_params_`` read the
    rows that were held out. Choose among models by public rows, or treat the scores as confidential
    and count the choice (:class:`PrivateSelector`).
    """
    grid = getattr(search, "param_grid", None)
    estimator = getattr(search, "estimator", None)
    if grid is None or estimator is None:
        raise ParameterTypeError(
            f"`search` of reserve must be a GridSearchCV; got {type(search).__name__}."
        )
    if not isinstance(ledger, Ledger):
        raise ParameterTypeError("`ledger` of reserve must be a Ledger.")
    costs = [_cost(clone(estimator).set_params(**settings)) for settings in ParameterGrid(grid)]
    folds = check_cv(search.cv).get_n_splits()
    total = folds * sum(costs, Fraction(0)) + (max(costs) if search.refit else 0)
    statement = f"a search: {len(costs)} candidates, {folds} folds"
    charge = ledger.charge(epsilon=total, statement=statement)
    own = Ledger.create(
        ledger.path.with_name(f"{ledger.path.name}.search-{charge.number}"),
        data_set=f"{ledger.data_set}, charge {charge.number}: {statement}",
        epsilon=show_amount(total),
        adjacency=ledger.adjacency or "replace",
        composition="basic",
    )
    copy = clone(search)
    names = [name for name in copy.estimator.get_params() if name.split("__")[-1] == "ledger"]
    copy.estimator.set_params(**dict.fromkeys(names, str(own.path)))
    return copy


def _cost(estimator: Any) -> Fraction:
    """Return the epsilon of a fit: of the private models in it."""
    parts = [estimator, *estimator.get_params().values()]
    models = {id(model): model for model in parts if isinstance(model, PrivateEstimator)}
    if not models:
        raise ParameterError("`search` of reserve must hold a private model; it holds none.")
    return sum((model.cost_of_a_fit for model in models.values()), Fraction(0))
