"""What a data set is called in a ledger, so that a second path does not open a second budget.

An edited copy, or a view of a table, cannot be recognised: docs/ledger.md says so.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from expmech.errors import DataError
from expmech.ledger.register import file_members


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The canonical name of a data set.

    ``aliases`` is what earlier versions called it, and ``members`` are the files or the table it is
    made of, each by every name that a register of budgets should know it by.
    """

    name: str
    aliases: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


def refuse_twice(paths: Sequence[str]) -> None:
    """Raise where a pattern finds a file under two names: each of its rows would count twice."""
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        found = os.stat(path)
        first = seen.setdefault((found.st_dev, found.st_ino), path)
        if first != path:
            raise DataError(
                f"{first!r} and {path!r} are the same file, by a link: every row would count twice."
                " Name the files so that the pattern finds each once."
            )


def file_identity(source: str, paths: Sequence[str]) -> Identity:
    """Return what the files of a path or a pattern are called: links are followed.

    A pattern that finds one file is that file.
    """
    real = [os.path.realpath(path) for path in paths]
    name = real[0]
    if len(set(real)) > 1:
        folder, pattern = os.path.split(os.path.abspath(source))
        name = os.path.join(os.path.realpath(folder), pattern)
    members = [member for path in dict.fromkeys(real) for member in file_members(path)]
    return Identity(name=name, members=tuple(members))


def canonical_host(host: str) -> str:
    """Return ``localhost`` for every name of this machine's loopback, else one name of a host.

    Numbers are written in one way, names in lower case and without a last dot.

    Examples
    --------
    >>> canonical_host("127.0.0.1"), canonical_host("LOCALHOST"), canonical_host("::1")
    ('localhost', 'localhost', 'localhost')
    >>> canonical_host("::ffff:192.0.2.7"), canonical_host("2001:DB8:0::1")
    ('192.0.2.7', '2001:db8::1')
    """
    plain = host.strip("[]").lower().rstrip(".")
    number = _number(plain)
    if number is not None:
        return "localhost" if number.is_loopback else str(number)
    try:
        plain = plain.encode("idna").decode()
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(plain, None)}
    except (OSError, UnicodeError):
        return plain
    numbers = [_number(one) for one in found]
    return "localhost" if any(one and one.is_loopback for one in numbers) else plain


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a number says, however it is written; None for a name."""
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))  # 127.1 and 0x7f000001 too
    except OSError:
        pass
    try:
        number = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return None
    return number.ipv4_mapped or number


def qualified(table: str, schema: str) -> str:
    """Return the name of a table with its schema."""
    return table if "." in table else f"{schema}.{table}"
