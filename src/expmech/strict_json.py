"""JSON as this program writes it: one value per name, finite numbers, a bounded depth and size.

Two readers of a file with a name written twice may read two different things; so nobody reads it.
"""

from __future__ import annotations

import json
import math
from typing import Any

from expmech.errors import ParameterError

_MOST_DIGITS = 1000  # of a whole number: noisy sums have a few hundred at most
_MOST_DEPTH = 32  # a certificate in a list of records has eight levels


def read_json(text: str, *, name: str) -> Any:
    """Return the value that ``text`` holds; raise ParameterError, with the reason, where it is not.

    Refused besides what is no JSON: a name written twice in one object, NaN and infinities (also
    ``1e999``), whole numbers of more than 1000 digits, more than 32 levels, and text that is no
    Unicode.
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


def differences(one: Any, other: Any, name: str = "") -> list[str]:
    """Return where two values of JSON differ, by the names that lead there; 1, 1.0, true differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        found = []
        for key in keys:
            inner = f"{name}.{key}" if name else str(key)
            both = key in one and key in other
            found += differences(one[key], other[key], inner) if both else [inner]
        return found
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True), start=1)
        return [where for k, (a, b) in pairs for where in differences(a, b, f"{name}[{k}]")]
    return [] if type(one) is type(other) and repr(one) == repr(other) else [name]


class _RefusedError(ValueError):
    """Text that is JSON to others and not here."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise _RefusedError(f"the name {twice!r} stands twice in one object")
    return found


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
        parts = [one for one in level if isinstance(one, (dict, list))]
        level = [part for one in parts for part in (one.values() if isinstance(one, dict) else one)]
    return not level
