"""Public finite universes of keys: texts up to a length, whole numbers, texts of a pattern.

A universe knows how many keys it has, whether a text is one of them, and the key at each place.
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from expmech.core.errors import ParameterError, ParameterTypeError

_MOST_BYTES = 255
_MOST_BITS = 54  # whole numbers up to 2^53 are told apart as float64, by which keys are compared
_MOST_PLACES = 64  # of a pattern
_MOST_STATES = 4096  # of the automaton of a pattern
_KINDS = "text:20 (up to 20 bytes), int:32 (32 bits) or a pattern such as [A-Z]{2}[0-9]{4}"

_CHARACTERS = (
    ((0x20, 0x7F),),
    ((0xA0, 0x800),),
    ((0x800, 0xD800), (0xE000, 0x10000)),
    ((0x10000, 0x110000),),
)
"""The characters of a text by their number of bytes in UTF-8, without control characters."""

_SIZES = tuple(sum(end - start for start, end in ranges) for ranges in _CHARACTERS)


class Universe(ABC):
    """A public finite set of texts, each with a place."""

    text: str
    size: int
    longest: int

    @abstractmethod
    def at(self, place: int) -> str:
        """Return the key at a place below :attr:`size`."""

    @abstractmethod
    def __contains__(self, key: object) -> bool:
        """Tell whether a text is a key."""

    def __eq__(self, other: object) -> bool:
        """Compare by what describes it."""
        return isinstance(other, Universe) and self.text == other.text

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.text)


class Texts(Universe):
    """Texts of 1 to ``length`` bytes in UTF-8, without control characters."""

    def __init__(self, length: int) -> None:
        self.text, self.longest = f"text:{length}", length
        self.size = sum(_texts_of(n) for n in range(1, length + 1))

    def at(self, place: int) -> str:
        left = 1
        while place >= _texts_of(left):
            place, left = place - _texts_of(left), left + 1
        text = ""
        while left:
            width = 1
            while place >= _SIZES[width - 1] * _texts_of(left - width):
                place, width = place - _SIZES[width - 1] * _texts_of(left - width), width + 1
            character, place = divmod(place, _texts_of(left - width))
            for start, end in _CHARACTERS[width - 1]:
                if character < end - start:
                    text += chr(start + character)
                    break
                character -= end - start
            left -= width
        return text

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str) or not key:
            return False
        try:
            length = len(key.encode())
        except UnicodeEncodeError:
            return False
        return length <= self.longest and all(
            "\x20" <= mark < "\x7f" or mark >= "\xa0" for mark in key
        )


@functools.cache
def _texts_of(length: int) -> int:
    """Return how many texts have exactly ``length`` bytes."""
    if length <= 0:
        return int(length == 0)
    return sum(size * _texts_of(length - width) for width, size in enumerate(_SIZES, start=1))


class Integers(Universe):
    """Whole numbers of ``bits`` bits: ``-2^(bits-1) .. 2^(bits-1) - 1``."""

    def __init__(self, bits: int) -> None:
        self.text, self.size, self.longest = f"int:{bits}", 1 << bits, 20
        self._half = self.size // 2

    def at(self, place: int) -> str:
        return str(place - self._half)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str) or not re.fullmatch("0|-?[1-9][0-9]{0,18}", key):
            return False
        return -self._half <= int(key) < self._half


@dataclass(frozen=True)
class _State:
    """A state of an automaton: how many texts lead from it to an end, and its next states."""

    accepts: bool
    count: int
    steps: tuple[tuple[str, _State], ...]


class Pattern(Universe):
    """Texts of a pattern: characters and classes such as ``[A-Z0-9]``, with ``{m}``, ``{m,n}``, ?.

    Every text counts once, in however many ways the pattern reads it.
    """

    _ATOM: ClassVar[re.Pattern[str]] = re.compile(
        r"(?P<characters>\[(?:\\.|[^\]\\])+\]|\\.|[^\[\]{}?*+()|.^$\\])"
        r"(?:\{(?P<least>[0-9]{1,2})(?:,(?P<most>[0-9]{1,2}))?\}|(?P<optional>\?))?",
        re.DOTALL,
    )

    def __init__(self, text: str) -> None:
        self.text = text
        self._places = self._read(text)
        self.longest = len(self._places)
        if not 1 <= self.longest <= _MOST_PLACES:
            raise _bad_pattern(text)
        self._states: dict[frozenset[int], _State] = {}
        self._start = self._state(self._reachable({0}))
        if self._start.accepts:  # a key is never empty
            raise _bad_pattern(text)
        self.size = self._start.count

    def at(self, place: int) -> str:
        state, key = self._start, ""
        while True:
            if state.accepts:
                if place == 0:
                    return key
                place -= 1
            for marks, following in state.steps:
                if place < len(marks) * following.count:
                    which, place = divmod(place, following.count)
                    key, state = key + marks[which], following
                    break
                place -= len(marks) * following.count

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        state = self._start
        for mark in key:
            following = [after for marks, after in state.steps if mark in marks]
            if not following:
                return False
            state = following[0]
        return state.accepts

    @classmethod
    def _read(cls, text: str) -> list[tuple[frozenset[str], bool]]:
        """Return the characters that may stand at each place, and whether it may be left out."""
        places: list[tuple[frozenset[str], bool]] = []
        at = 0
        while at < len(text):
            atom = cls._ATOM.match(text, at)
            if atom is None:
                raise _bad_pattern(text)
            marks, at = _read_class(atom["characters"], text), atom.end()
            least = int(atom["least"] or 1) if atom["optional"] is None else 0
            most = int(atom["most"] or atom["least"] or 1)
            if least > most or len(places) + most > _MOST_PLACES:
                raise _bad_pattern(text)
            places += [(marks, k >= least) for k in range(most)]
        return places

    def _reachable(self, places: Iterable[int]) -> frozenset[int]:
        """Return these places and those that leaving out optional ones leads to."""
        reachable = set()
        for place in places:
            reachable.add(place)
            while place < len(self._places) and self._places[place][1]:
                place += 1
                reachable.add(place)
        return frozenset(reachable)

    def _state(self, places: frozenset[int]) -> _State:
        if places in self._states:
            return self._states[places]
        if len(self._states) >= _MOST_STATES:
            raise _bad_pattern(self.text)
        by_mark: dict[str, list[int]] = {}
        for place in sorted(places - {len(self._places)}):
            for mark in self._places[place][0]:
                by_mark.setdefault(mark, []).append(place + 1)
        marks: dict[frozenset[int], list[str]] = {}
        for mark, after in by_mark.items():
            marks.setdefault(self._reachable(after), []).append(mark)
        steps = sorted(("".join(sorted(several)), after) for after, several in marks.items())
        following = tuple((several, self._state(after)) for several, after in steps)
        accepts = len(self._places) in places
        count = int(accepts) + sum(len(several) * after.count for several, after in following)
        return self._states.setdefault(
            places, _State(accepts=accepts, count=count, steps=following)
        )


def _read_class(part: str, text: str) -> frozenset[str]:
    """Return the characters of a class, or the one character that stands for itself."""
    if not part.startswith("["):
        return frozenset(part.removeprefix("\\"))
    inner = re.findall(r"\\.|[^\\]", part[1:-1], re.DOTALL)
    if inner[0] == "^":
        raise _bad_pattern(text)
    marks: set[str] = set()
    at = 0
    while at < len(inner):
        first = inner[at][-1]
        if inner[at + 1 : at + 2] == ["-"] and at + 2 < len(inner):
            last, at = inner[at + 2][-1], at + 3
            if last < first:
                raise _bad_pattern(text)
            marks.update(map(chr, range(ord(first), ord(last) + 1)))
        else:
            marks.add(first)
            at += 1
    return frozenset(marks)


def _bad_pattern(text: str) -> ParameterError:
    return ParameterError(
        f"`universe` must be {_KINDS}: characters and classes of them, each with {{m}}, {{m,n}} or"
        f" ? after it, up to {_MOST_PLACES} characters in all; got {text!r}."
    )


@functools.lru_cache(maxsize=64)
def parse_universe(text: str) -> Universe:
    """Return the universe that a text describes.

    Parameters
    ----------
    text : str
        ``text:20`` for texts of up to 20 bytes in UTF-8 (1 to 255), ``int:32`` for whole numbers of
        32 bits (1 to 54), or a pattern such as ``[A-Z]{2}[0-9]{4}``.

    Returns
    -------
    Universe

    Raises
    ------
    ParameterError
        If it is none of these.

    Examples
    --------
    >>> plates = parse_universe("[A-Z]{2}[0-9]{4}")
    >>> plates.size, plates.at(0), "BE1234" in plates, "B1234" in plates
    (6760000, 'AA0000', True, False)
    >>> parse_universe("int:8").size, "Zürich" in parse_universe("text:7")
    (256, True)
    """
    if not isinstance(text, str):
        raise ParameterTypeError(f"`universe` must be text: {_KINDS}; got {text!r}.")
    known = re.fullmatch("(text|int):([0-9]{1,3})", text)
    if known is None:
        if re.match("(text|int):", text):
            raise ParameterError(f"`universe` must be {_KINDS}; got {text!r}.")
        return Pattern(text)
    most = _MOST_BYTES if known[1] == "text" else _MOST_BITS
    if not 1 <= int(known[2]) <= most:
        raise ParameterError(f"`universe` {known[1]}:N must have N in 1..{most}; got {text!r}.")
    return Texts(int(known[2])) if known[1] == "text" else Integers(int(known[2]))
