"""JSON as this program writes it: one value per name, finite numbers, a bounded depth and size.

Two readers of a file with a name written twice may read two different things; so nobody reads it.
"""

from __future__ import annotations

import json
import math
from typing import Any

from expmech.core.errors import ParameterError

_MOST_DIGITS = 1000  # of a whole number: noisy sums have a few hundred at most
_MOST_DEPTH = 32  # a certificate in a list of records has eight levels


def read_json(text: str, *, name: str) -> Any:
    """Return the value that ``text`` holds; raise ParameterError with the reason where it has none.

    Besides what is no JSON, it refuses a name written twice in one object, NaN and infinities
    (also ``1e999``), whole numbers of more than 1000 digits, more than 32 levels, and text that is
    no Unicode.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
        json.dumps(value, ensure_ascii=False).encode()
        problem = "" if _is_shallow(value) else f"it has more than {_MOST_DEPTH} levels"
    except _RefusedError as refused:
        problem = str(refused)
    except RecursionError:
        problem = f"it has more than {_MOST_DEPTH} levels"
    except UnicodeEncodeError:
        problem = "it holds text that is no Unicode"
    except (ValueError, TypeError):
        problem = "it is not"
    if problem:
        raise ParameterError(f"{name} must be JSON; {problem}.")
    return value


def differences(first: Any, second: Any, name: str = "") -> list[str]:
    """Return the names that lead to where two JSON values differ; 1, 1.0 and true differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = [*first, *(key for key in second if key not in first)]
        names = []
        for key in keys:
            inner = f"{name}.{key}" if name else str(key)
            both = key in first and key in second
            names += differences(first[key], second[key], inner) if both else [inner]
        return names
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = enumerate(zip(first, second, strict=True), start=1)
        return [where for k, (a, b) in pairs for where in differences(a, b, f"{name}[{k}]")]
    return [] if type(first) is type(second) and repr(first) == repr(second) else [name]


class _RefusedError(ValueError):
    """Text that is JSON for other readers but not for this one."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    # Other readers would take the other value, and two people would read two certificates.
    if len(values) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise _RefusedError(f"the name {twice!r} stands twice in one object")
    return values


def _constant(text: str) -> float:
    raise _RefusedError(f"{text} is no number there")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _RefusedError("a number is beyond what float64 holds")
    return number


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise _RefusedError(f"a number has more than {_MOST_DIGITS} digits")
    return int(text)


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_MOST_DEPTH):
        containers = [value for value in level if isinstance(value, (dict, list))]
        level = []
        for container in containers:
            level += container.values() if isinstance(container, dict) else container
    return not level
