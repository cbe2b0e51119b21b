"""Pipelines and searches: what else learns from the data, and what a search costs in all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import get_tags

from expmech.errors import ParameterError, ParameterTypeError
from expmech.estimators.base import PrivateEstimator
from expmech.ledger import Ledger, show_amount

PRIVATE, STATELESS, LEARNS = "private", "stateless", "learns from the data"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a pipeline and what it does with the data: one of the three words above."""

    name: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class PipelineCheck:
    """What the steps of a pipeline do with the data."""

    steps: tuple[Step, ...]

    @property
    def stands(self) -> bool:
        """Whether there is a private model and nothing beside it learns from the data."""
        kinds = {step.kind for step in self.steps}
        return PRIVATE in kinds and LEARNS not in kinds

    def __str__(self) -> str:
        """Return a line a step, and what follows."""
        width = max(len(step.name) for step in self.steps)
        lines = [f"{step.name:<{width}}  {step.kind}" for step in self.steps]
        learning = [step.name for step in self.steps if step.kind == LEARNS]
        if learning:
            lines.append(
                f"Not private: {', '.join(learning)} would be fitted to the data without a"
                " guarantee. Use public numbers (FunctionTransformer, `bounds`), or fit it to other"
                " data."
            )
        elif not self.stands:
            lines.append("Not private: no step is a model of expmech.")
        else:
            lines.append("Private: nothing learns from the data but the private model.")
        return "\n".join(lines)


def check_pipeline(pipeline: Any) -> PipelineCheck:
    """Say which steps of a pipeline learn from the data beside its private model.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from expmech.estimators import PrivateMean
    >>> check_pipeline(make_pipeline(StandardScaler(), PrivateMean(bounds=(0, 1)))).stands
    False
    """
    if not hasattr(pipeline, "steps"):
        raise ParameterTypeError(
            "`pipeline` of check_pipeline must be a scikit-learn Pipeline; got"
            f" {type(pipeline).__name__}."
        )
    return PipelineCheck(steps=tuple(_steps("", pipeline)))


def _steps(prefix: str, part: Any) -> Iterator[Step]:
    """Yield the steps of a pipeline, of a union and of a transformer by columns, and theirs."""
    inner = [(one[0], one[1]) for one in _parts(part)]
    if not inner:
        yield Step(name=prefix, kind=_kind(part))
    for name, one in inner:
        yield from _steps(f"{prefix}.{name}" if prefix else name, one)


def _parts(part: Any) -> list[Any]:
    for attribute in ("steps", "transformer_list", "transformers"):
        found = getattr(part, attribute, None)
        if isinstance(found, list):
            return found
    return []


def _kind(part: Any) -> str:
    if part is None or isinstance(part, str):  # "passthrough", "drop"
        return STATELESS
    if isinstance(part, PrivateEstimator):
        return PRIVATE
    return LEARNS if get_tags(part).requires_fit else STATELESS


def reserve(search: Any, ledger: Ledger) -> Any:
    """Set the whole cost of a GridSearchCV aside, before the first fit.

    Every candidate is fitted to every fold and the best one to all rows; each fit is a release.
    The sum is charged at once, or LedgerError is raised and nothing is. The search that is
    returned charges its fits to a ledger of its own, beside the other, that holds this sum and no
    more; what a search leaves of it is not given back.

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
    costs = [_cost(clone(estimator).set_params(**one)) for one in ParameterGrid(grid)]
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
    made = clone(search)
    names = [name for name in made.estimator.get_params() if name.split("__")[-1] == "accountant"]
    made.estimator.set_params(**dict.fromkeys(names, str(own.path)))
    return made


def _cost(estimator: Any) -> Fraction:
    """Return the epsilon of a fit: of the private models in it."""
    found = [estimator, *estimator.get_params().values()]
    models = {id(one): one for one in found if isinstance(one, PrivateEstimator)}
    if not models:
        raise ParameterError("`search` of reserve must hold a private model; it holds none.")
    return sum((one.cost_of_a_fit for one in models.values()), Fraction(0))
