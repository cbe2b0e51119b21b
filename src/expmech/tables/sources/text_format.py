"""How a text file is written: public arguments with public defaults, never guessed from records.

Why nothing may be guessed: docs/theory/reading.md.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from expmech.core.errors import ParameterError, ParameterTypeError, validate_integer

_PACKED = ("", ".gz", ".bz2", ".xz")
RECORD_IS_A_LINE = (
    "a record of the text file is one line of it, and belongs to whom that line names: a line break"
    " inside quotes makes two rows of a record, so that whoever has one may move two rows"
)
"""What a certificate lists of every release from a text file."""

ENDINGS = {
    f".{kind}{packed}": mark for kind, mark in (("csv", ","), ("tsv", "\t")) for packed in _PACKED
}
"""Endings of text files, and the delimiter each stands for."""

_ENCODINGS = """
    utf-8 ascii iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8
    iso8859-9 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp1250 cp1251 cp1252
    cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp437 cp720 cp737 cp775 cp850 cp852 cp855 cp856 cp857
    cp858 cp860 cp861 cp862 cp863 cp865 cp866 cp869 cp874 cp1125 cp1006 koi8-r koi8-t koi8-u kz1048
    mac-roman mac-latin2 mac-cyrillic mac-greek mac-iceland mac-turkish mac-croatian mac-romanian
    tis-620 hp-roman8 palmos ptcp154
"""
"""Encodings of text files: UTF-8, and those of one byte a character in which ASCII is ASCII."""

_MOST_COLUMNS = 10_000
_OWNER = "TextFormat"


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """How the lines of a text file are cut into fields.

    Parameters
    ----------
    delimiter : str, optional
        One ASCII character between fields. None: a tab for ``.tsv``, a comma for ``.csv``.
    quote : str or None, default '"'
        One ASCII character around fields that hold a delimiter; doubled it stands for itself. None:
        no character is special.
    comment : str, optional
        A line that starts with it is a row of missing values. It still counts as a row: under
        'replace' the number of rows is public, and a record may start with any character.
    header : bool, default True
        Whether the first line holds the names of the columns.
    names : tuple of str or int, optional
        The names of the columns, or how many there are (``column1``, ``column2``, ...). Needed
        without header: their number must not be read off a record.
    encoding : str, default "utf-8"
        UTF-8, or an encoding of one byte a character that contains ASCII, such as Latin-1 (an error
        lists them). In UTF-8 a byte order mark at the start of a line is passed over.
    decimal : str, default "."
        The decimal mark, ``.`` or ``,``.
    skip : int, default 0
        How many lines to pass over at the start of each file.

    Examples
    --------
    >>> TextFormat(delimiter=";", decimal=",").completed("prices.csv").delimiter
    ';'
    """

    delimiter: str | None = None
    quote: str | None = '"'
    comment: str | None = None
    header: bool = True
    names: Sequence[str] | int | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    skip: int = 0

    def __post_init__(self) -> None:
        marks = [("delimiter", self.delimiter), ("quote", self.quote), ("comment", self.comment)]
        given = [(name, mark) for name, mark in marks if mark is not None]
        for name, mark in given:
            plain = isinstance(mark, str) and len(mark) == 1 and mark.isascii()
            if not plain or mark.isalnum() or mark in "\n\r\0+-.":
                raise ParameterError(
                    f"`{name}` of TextFormat must be one ASCII character that is no letter, digit,"
                    f" sign, dot, NUL or line end; got {mark!r}."
                )
        if len({mark for _, mark in given}) < len(given):
            raise ParameterError(
                "`delimiter`, `quote` and `comment` of TextFormat must differ from each other; got"
                f" {', '.join(repr(mark) for _, mark in given)}."
            )
        if self.decimal not in (".", ","):
            raise ParameterError(f"`decimal` of TextFormat must be . or ,; got {self.decimal!r}.")
        if not isinstance(self.header, bool):
            raise ParameterTypeError(
                f"`header` of TextFormat must be true or false; got {self.header!r}."
            )
        validate_integer(self.skip, name="skip", owner=_OWNER, low=0, high=10**6)
        object.__setattr__(self, "encoding", _known_encoding(self.encoding))
        if self.names is not None:
            object.__setattr__(self, "names", _listed_names(self.names))
        if not self.header and self.names is None:
            raise ParameterError(
                "`names` of TextFormat must be given where there is no header: the names of the"
                " columns, or how many there are."
            )

    def completed(self, path: str) -> TextFormat:
        """Return the format with the delimiter that the ending of ``path`` stands for."""
        if self.delimiter is not None:
            return self
        return replace(self, delimiter=ENDINGS[text_ending(path)])


def text_ending(path: str) -> str:
    """Return the ending of a text file, or nothing where ``path`` names another kind of file."""
    return next((ending for ending in ENDINGS if path.lower().endswith(ending)), "")


def _known_encoding(encoding: Any) -> str:
    """Return the codec's own name; refuse encodings in which one byte changes what others mean."""
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError):
        name = ""
    if name == "utf-8-sig":  # a byte order mark is passed over anyway
        return "utf-8"
    if name in _ENCODINGS.split():
        return name
    raise ParameterError(
        "`encoding` of TextFormat must be one in which every line is read alone:"
        f" {', '.join(_ENCODINGS.split())}; got {encoding!r}. Convert the file to utf-8."
    )


def _listed_names(names: Any) -> tuple[str, ...]:
    if isinstance(names, int) and not isinstance(names, bool):
        validate_integer(names, name="names", owner=_OWNER, low=1, high=_MOST_COLUMNS)
        return tuple(f"column{j + 1}" for j in range(names))
    listed = () if isinstance(names, str) else tuple(names)
    if not listed or not all(isinstance(name, str) and name.strip() for name in listed):
        raise ParameterError(
            "`names` of TextFormat must be the names of the columns, or how many there are; got"
            f" {names!r}."
        )
    return listed
