"""Every error the library raises, and the checks that raise them.

A message names the parameter, the rule and the value. Where an error can be caused by confidential
data its text is one fixed sentence, so that reading it tells an observer nothing but that the
caller's assumption failed.
"""

from __future__ import annotations

import difflib
import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from numbers import Integral, Rational, Real
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from expmech.core.arrays import Array, Floats

Result = TypeVar("Result")


class ExpmechError(Exception):
    """Base class of every error of the library.

    Each is also a ValueError or a TypeError.

    Examples
    --------
    >>> import expmech as em
    >>> try:
    ...     em.Box(lower=[0.0], upper=[0.0])
    ... except em.ExpmechError as error:
    ...     print(error)
    `lower` of Box must be below `upper` on every axis; got 0.0 and 0.0 on axis 0.
    """


class ParameterError(ExpmechError, ValueError):
    """A parameter has a value that its rule does not allow; the message names all three."""


class ParameterTypeError(ExpmechError, TypeError):
    """A parameter has a type that its rule does not allow."""


class UnsupportedError(ExpmechError, ValueError):
    """A sampler or envelope cannot serve this problem; the message says why and what would."""


class LossError(ExpmechError, ValueError):
    """A loss broke its contract (shape, type, finiteness, declared range, repeatability)."""


class DataError(ExpmechError, ValueError):
    """A table cannot be read as requested. The message never holds a value of the table."""


class EnvelopeViolatedError(ExpmechError, ValueError):
    """A loss was below the envelope that its declarations certify: one of them is false.

    No value is released.
    """

    def __init__(self) -> None:
        super().__init__(
            "The loss fell below the envelope that its declared growth, minimum or loss_error"
            " certifies; the declaration is wrong and no value was released."
        )


def validate_number(
    value: object, *, name: str, owner: str, rule: str = "a finite number"
) -> Fraction:
    """Return ``value``, a finite real number that is no bool, as an exact fraction.

    Errors name the parameter, the function or class that owns it, and the rule in words.

    >>> validate_number(0.5, name="epsilon", owner="Mine")
    Fraction(1, 2)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (Real, np.floating, np.integer)
    ):
        raise ParameterTypeError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    if isinstance(value, (Integral, Rational)):
        return Fraction(int(value)) if isinstance(value, Integral) else Fraction(value)
    number = float(value)
    if not math.isfinite(number):
        raise ParameterError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    return Fraction(number)


def validate_positive(value: object, *, name: str, owner: str) -> Fraction:
    """Return ``value`` as an exact positive fraction."""
    rule = "a positive finite number"
    number = validate_number(value, name=name, owner=owner, rule=rule)
    if number <= 0:
        raise ParameterError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    return number


def validate_scale(value: object, *, name: str, owner: str) -> Fraction:
    """Return ``value`` as an exact positive fraction of usual size, 2^-400 to 2^400."""
    number = validate_positive(value, name=name, owner=owner)
    if not Fraction(1, 1 << 400) <= number <= 1 << 400:
        raise ParameterError(
            f"`{name}` of {owner} must be a number of usual size, between 1e-120 and 1e120; got"
            f" {float(value) if isinstance(value, Fraction) else value!r}."
        )
    return number


def validate_nonnegative(value: object, *, name: str, owner: str) -> Fraction:
    """Return ``value`` as an exact fraction of at least zero."""
    rule = "a finite number that is at least 0"
    number = validate_number(value, name=name, owner=owner, rule=rule)
    if number < 0:
        raise ParameterError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    return number


def validate_fraction(value: object, *, name: str, owner: str) -> Fraction:
    """Return ``value`` as an exact fraction strictly between zero and one."""
    rule = "a number strictly between 0 and 1"
    number = validate_number(value, name=name, owner=owner, rule=rule)
    if not 0 < number < 1:
        raise ParameterError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    return number


def validate_list(values: object, *, name: str, owner: str) -> tuple[Any, ...]:
    """Return the values of a list; a text is none, although its letters could be taken for it."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ParameterTypeError(
            f"`{name}` of {owner} must be a list of values, such as ['yes', 'no']; got {values!r}."
        )
    return tuple(values)


def validate_integer(value: object, *, name: str, owner: str, low: int, high: int) -> int:
    """Return ``value`` as an int in ``low..high``."""
    rule = f"a whole number in {low}..{high}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Integral, np.integer)):
        raise ParameterTypeError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    if not low <= int(value) <= high:
        raise ParameterError(f"`{name}` of {owner} must be {rule}; got {value!r}.")
    return int(value)


def validate_flag(value: object, *, name: str, owner: str) -> bool:
    """Return ``value`` as a bool; raise unless it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterTypeError(f"`{name}` of {owner} must be True or False; got {value!r}.")
    return bool(value)


def validate_choice(value: object, *, name: str, owner: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``; the error suggests the nearest one."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(repr(choice) for choice in known)
        hint = did_you_mean(str(value), known)
        raise ParameterError(f"`{name}` of {owner} must be one of {listed}; got {value!r}.{hint}")
    return value


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return a sentence with the public name nearest to ``name``, or nothing; case is ignored.

    ``cutoff`` is how alike they must be, from 0 to 1.

    >>> did_you_mean("Median", ["mean", "median"]), did_you_mean("x", ["mean"])
    (" Did you mean 'median'?", '')
    """
    lowered = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=cutoff)
    return f" Did you mean {lowered[close[0]]!r}?" if close else ""


def validate_vector(
    value: Any, *, name: str, owner: str, length: int | None = None, confidential: bool = False
) -> Floats:
    """Return ``value`` as a finite float64 vector; a confidential one is not shown in errors."""
    rule = "a list of finite numbers" if length is None else f"a list of {length} finite numbers"

    def wrong(kind: type[ExpmechError]) -> ExpmechError:  # an array takes long to write
        shown = "something else" if confidential else repr(value)
        return kind(f"`{name}` of {owner} must be {rule}; got {shown}.")

    plain = type(value) is list and all(type(entry) is float for entry in value)
    if plain or type(value) is np.ndarray:
        vector = np.asarray(value)
    else:
        vector = _array_of(value, wrong(ParameterTypeError))
    if vector.dtype.kind not in "fiu":
        raise wrong(ParameterTypeError)
    vector = np.array(vector, dtype=np.float64, order="C")
    if vector.ndim != 1 or vector.size == 0 or (length is not None and vector.size != length):
        raise ParameterError(f"`{name}` of {owner} must be {rule}; got shape {vector.shape}.")
    if not np.isfinite(vector).all():
        raise wrong(ParameterError)
    return vector


def confidential_array(values: Any, *, name: str, owner: str, kinds: str = "fiu") -> Array:
    """Return confidential numbers as an array; ``kinds`` are the dtype kinds allowed.

    Anything else raises one fixed sentence: NumPy's message may quote a record, and the dtype of
    text tells how long the longest one is.
    """
    error = ParameterTypeError(f"`{name}` of {owner} must be an array of numbers.")
    array = _array_of(values, error)
    if array.dtype.kind not in kinds:
        raise error
    return array


def confidential_integers(values: Iterable[Any], error: ExpmechError) -> list[int]:
    """Return confidential whole numbers as Python integers; raise ``error`` where one is none."""
    plain = isinstance(values, (list, tuple))  # which cannot fail
    listed = list(values) if plain else shielded(lambda: list(values), error)
    if set(map(type, listed)) <= {int}:
        return listed
    return shielded(lambda: [int(value) for value in listed], error)


def _array_of(values: Any, error: ExpmechError) -> Array:
    """Return ``values`` as an array; one that is an array already cannot fail, so it is quick."""
    if type(values) is np.ndarray:
        return values
    array: Array = shielded(lambda: np.asarray(values), error)
    return array


def shielded(work: Callable[[], Result], error: ExpmechError) -> Result:
    """Return ``work()``; raise ``error`` in the place of whatever it raises, and nothing else.

    An engine's message may quote a record, and ``raise ... from None`` only hides it: it stays in
    ``__context__``. Here the error is raised after the other is gone. Errors of the library pass.
    Engines turn Ctrl-C into errors of their own: after a signal KeyboardInterrupt is raised again.
    """
    with _recorded_signals() as received:
        try:
            return work()
        except ExpmechError:
            if not received:
                raise
        except Exception:
            pass
    if received:
        raise KeyboardInterrupt
    # Raised outside of the `except`: else the exception it replaces, whose text may hold a value,
    # would be chained to it.
    raise error


@contextmanager
def _recorded_signals() -> Iterator[list[int]]:
    """Record which signals arrive inside; their handlers run as before."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread handles signals
        return
    before: dict[int, Any] = {}

    def record(number: int, frame: FrameType | None) -> None:
        received.append(number)
        before[number](number, frame)

    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if callable(handler):
            before[number] = handler
            signal.signal(number, record)
    try:
        yield received
    finally:
        for installed, handler in before.items():
            if signal.getsignal(installed) is record:  # Spark sets one of its own as it starts
                signal.signal(installed, handler)
