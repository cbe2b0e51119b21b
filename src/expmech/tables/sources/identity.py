"""What a data set is called in a ledger, so that a second path does not open a second budget.

An edited copy, or a view of a table, cannot be recognised: docs/ledger.md says so.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from expmech.core.errors import DataError
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


def file_identity(source: str, paths: Sequence[str]) -> Identity:
    """Return what the files of a path or a pattern are called: links are followed.

    A pattern that finds one file is that file. Raise where a pattern finds a file under two names:
    each of its rows would count twice.
    """
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        status = os.stat(path)
        first = seen.setdefault((status.st_dev, status.st_ino), path)
        if first != path:
            raise DataError(
                f"{first!r} and {path!r} are the same file, by a link: every row would count twice."
                " Name the files so that the pattern finds each once."
            )
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
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(plain, None)}
    except (OSError, UnicodeError):
        return plain
    numbers = map(_number, addresses)
    return "localhost" if any(number and number.is_loopback for number in numbers) else plain


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
    return table if "." in table else f"{schema}.{table}"


_PARTITIONS = """
    WITH RECURSIVE part(oid) AS (
        SELECT to_regclass(format('%%I.%%I', %s::text, %s::text))::oid
        UNION SELECT inhrelid FROM pg_inherits JOIN part ON inhparent = part.oid)
    SELECT json_agg(json_build_array(nspname || '.' || relname, part.oid::text)
        ORDER BY nspname, relname)::text FROM part
    JOIN pg_class USING (oid) JOIN pg_namespace AS space ON space.oid = relnamespace
"""
_DATABASE = "SELECT oid FROM pg_database WHERE datname = current_database()"


def postgres_identity(
    connection: Any, tables: Sequence[str], address: tuple[str, int, str]
) -> Identity:
    """Return what tables are called where the connection leads, however that was addressed."""
    info = connection.con.info
    # a socket is a folder: its server is on this machine
    host = "localhost" if info.host.startswith("/") else canonical_host(info.host)
    server = f"postgresql://{host}:{info.port}/{info.dbname}"
    earlier = []  # names by the address, where it says the same
    if (canonical_host(address[0]), *address[1:]) == (host, info.port, f"/{info.dbname}"):
        earlier = [server, f"postgresql://{address[0]}:{info.port}/{info.dbname}"]
    schema = _catalogue_value(connection, "SELECT current_schema()") or "public"
    whole = [qualified(name, schema) for name in tables]
    parts = dict(part for name in whole for part in _partitions(connection, name))
    names = dict.fromkeys((*whole, *parts))
    members = [f"table {server}/{name}" for name in names]
    cluster = _catalogue_value(connection, "SELECT system_identifier FROM pg_control_system()")
    database = _catalogue_value(connection, _DATABASE)
    # the number of a table stays with it under every name and in every schema
    numbers = [f"{database}/{number}" for number in parts.values()]
    place = f"{host}:{info.port}"
    members += [f"table {place}/{number}" for number in numbers]
    if cluster is not None:  # the same under every name and address of the server
        members += [f"table cluster {cluster}/{info.dbname}/{name}" for name in names]
        place = f"cluster {cluster}"
    members += [f"oid {place}/{number}" for number in numbers]
    return Identity(
        name=f"{server}/{'+'.join(whole)}",
        aliases=tuple(f"{place}/{'+'.join(tables)}" for place in earlier),
        members=tuple(members),
    )


def _partitions(connection: Any, table: str) -> list[tuple[str, str]]:
    """Return name and number of a table and of the tables whose rows it has, its partitions."""
    schema, _, name = table.rpartition(".")
    pairs = _catalogue_value(connection, _PARTITIONS, schema, name)
    return [] if pairs is None else [(str(part), str(oid)) for part, oid in json.loads(pairs) or []]


def _catalogue_value(connection: Any, query: str, *values: str) -> str | None:
    """Return what a PostgreSQL server says about itself, None where it does not."""
    try:
        with connection.con.cursor() as cursor:
            value = cursor.execute(query, values or None).fetchone()[0]
            return None if value is None else str(value)
    except Exception:  # no rights, or an old server: only a register of budgets uses it
        connection.con.rollback()
        return None
