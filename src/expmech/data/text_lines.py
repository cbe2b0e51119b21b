"""The lines of text files, block by block, each judged alone.

A record is one physical line: it ends at LF. A line whose bytes do not decode, or that is longer
than :data:`LONGEST`, is replaced by an empty line, which is a row of missing values.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable, Iterator
from typing import IO, Any

LONGEST = 1 << 22
"""Bytes of the longest line that is read: longer ones are rows of missing values."""

_BLOCK = 112_000  # what is computed from a block is then too small to be mapped afresh each time
_MARK = b"\xef\xbb\xbf"


def text_blocks(path: str, *, encoding: str, skip: int) -> Iterator[bytes]:
    """Yield the lines of a file after the first ``skip``, in blocks of UTF-8 that end with LF."""
    with _opened(path) as file:
        for block in _past(_whole_lines(file), skip):
            yield decoded(block, encoding)


def decoded(block: bytes, encoding: str) -> bytes:
    """Return whole lines as UTF-8; lines that do not decode, or are too long, become empty.

    In the encodings of :class:`TextFormat` LF is LF and no part of another character, so a block
    decodes if and only if each of its lines does.
    """
    if encoding == "utf-8":
        block = _without_marks(block)
    if len(block) <= LONGEST:
        found = _decoded(block, encoding)
        if found is not None:
            return found
    lines = block.removesuffix(b"\n").split(b"\n")
    kept = (None if len(line) > LONGEST else _decoded(line, encoding) for line in lines)
    return b"".join((line or b"") + b"\n" for line in kept)


def _without_marks(block: bytes) -> bytes:
    """Return lines without a byte order mark at their start: on every line, not the first alone.

    Without a header the first line is a record, and with it gone the second would be the first.
    """
    if _MARK not in block:
        return block
    return block.removeprefix(_MARK).replace(b"\n" + _MARK, b"\n")


def _decoded(text: bytes, encoding: str) -> bytes | None:
    try:
        found = text.decode(encoding)
    except UnicodeDecodeError:
        return None
    return text if encoding == "utf-8" else found.encode()


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield blocks that end with LF, in memory that no line can exhaust."""
    carry, lost = b"", False  # lost: inside a line that is already too long
    while piece := file.read(_BLOCK):
        end = piece.rfind(b"\n") + 1
        if not end:
            carry = b"" if lost else carry + piece
            lost = lost or len(carry) > LONGEST + len(_MARK)  # too long without its mark, too
            carry = b"" if lost else carry
            continue
        start = piece.find(b"\n") if lost else 0  # what is left of a long line: its end
        yield carry + piece[start:end]
        carry, lost = piece[end:], False
    if carry or lost:
        yield carry + b"\n"


def _past(blocks: Iterator[bytes], skip: int) -> Iterator[bytes]:
    """Pass over the first ``skip`` lines."""
    for block in blocks:
        while skip and block:
            block = block[block.find(b"\n") + 1 :]
            skip -= 1
        if block:
            yield block


def _opened(path: str) -> IO[bytes]:
    packed: dict[str, Callable[[str, Any], Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
    }
    opened: IO[bytes] = packed.get(os.path.splitext(path.lower())[1], open)(path, "rb")
    return opened
