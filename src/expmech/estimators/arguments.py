"""What estimators take or refuse in the same way: weights, and bounds by column."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from expmech.errors import ParameterError

_WEIGHTS = (
    "`sample_weight` of {0} is refused: a row with a large weight moves the answer by more than the"
    " guarantee allows for one row. Repeat nobody: bound what a person adds, or release groups."
)


def without_weights(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fit`` that refuses weights of rows; its signature stays as it is."""

    @functools.wraps(fit)
    def refusing(self: Any, *given: Any, **named: Any) -> Any:
        if named.pop("sample_weight", None) is not None:
            raise ParameterError(_WEIGHTS.format(type(self).__name__))
        return fit(self, *given, **named)

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
    missing = [str(one) for one in names if one not in bounds]
    unknown = [str(one) for one in bounds if one not in set(names)]
    if missing or unknown:
        told = f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        raise ParameterError(f"`{name}` of {owner} must name every column of X once; {told}.")
    return [bounds[one] for one in names]
