"""What PostgreSQL says of its tables, and a session that only reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from expmech.data.identity import Identity, canonical_host, qualified

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
    told = connection.con.info
    # a socket is a folder: its server is on this machine
    host = "localhost" if told.host.startswith("/") else canonical_host(told.host)
    server = f"postgresql://{host}:{told.port}/{told.dbname}"
    earlier = []  # names by the address, where it says the same
    if (canonical_host(address[0]), *address[1:]) == (host, told.port, f"/{told.dbname}"):
        earlier = [server, f"postgresql://{address[0]}:{told.port}/{told.dbname}"]
    schema = _asked(connection, "SELECT current_schema()") or "public"
    whole = [qualified(name, schema) for name in tables]
    parts = dict(part for name in whole for part in _partitions(connection, name))
    names = dict.fromkeys((*whole, *parts))
    members = [f"table {server}/{name}" for name in names]
    cluster = _asked(connection, "SELECT system_identifier FROM pg_control_system()")
    database = _asked(connection, _DATABASE)
    # the number of a table stays with it under every name and in every schema
    numbers = [f"{database}/{number}" for number in parts.values()]
    place = f"{host}:{told.port}"
    members += [f"table {place}/{number}" for number in numbers]
    if cluster is not None:  # the same under every name and address of the server
        members += [f"table cluster {cluster}/{told.dbname}/{name}" for name in names]
        place = f"cluster {cluster}"
    members += [f"oid {place}/{number}" for number in numbers]
    return Identity(
        name=f"{server}/{'+'.join(whole)}",
        aliases=tuple(f"{place}/{'+'.join(tables)}" for place in earlier),
        members=tuple(members),
    )


def read_only(connection: Any) -> None:
    """Let a session change nothing, and show numbers with all their digits."""
    with connection.con.cursor() as cursor:
        cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
        cursor.execute("SET extra_float_digits = 3")  # as text, numbers that differ must differ
    connection.con.commit()


def _partitions(connection: Any, table: str) -> list[tuple[str, str]]:
    """Return name and number of a table and of the tables whose rows it has, its partitions."""
    schema, _, name = table.rpartition(".")
    found = _asked(connection, _PARTITIONS, schema, name)
    return [] if found is None else [(str(one), str(oid)) for one, oid in json.loads(found) or []]


def _asked(connection: Any, query: str, *values: str) -> str | None:
    """Return what a PostgreSQL server says about itself, None where it does not."""
    try:
        with connection.con.cursor() as cursor:
            found = cursor.execute(query, values or None).fetchone()[0]
            return None if found is None else str(found)
    except Exception:  # no rights, or an old server: only a register of budgets uses it
        connection.con.rollback()
        return None
