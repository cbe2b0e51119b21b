"""The ledger: one SQLite file a data set, charged durably before a value is drawn.

Page: docs/ledger.md.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from expmech.errors import ParameterError
from expmech.ledger.amounts import exact_amount, show_amount
from expmech.ledger.file import (
    SCHEMA,
    connect,
    now,
    read_budget,
    read_charge,
    read_spent,
    sync_folder,
)
from expmech.ledger.records import Charge, Entry, LedgerError

_OWNER = "Ledger"


class Ledger:
    """The budget of one data set under basic composition.

    The charges never sum to more than the total, exactly.

    Parameters
    ----------
    path
        The file; make it once with :meth:`create`.
    data_set
        Identity of the data about to be used; must be the one the ledger was made for. None skips
        the check.

    Notes
    -----
    :meth:`charge` commits with ``synchronous=EXTRA`` inside ``BEGIN IMMEDIATE`` before it returns,
    so two processes cannot both take the last of a budget, and a crash after it wastes budget but
    never overspends. Triggers refuse changes to past charges.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/trial.ledger", data_set="trial 7", epsilon="1")
    >>> for _ in range(10):
    ...     _ = ledger.charge(epsilon="0.1", statement="a mean")
    >>> ledger.left
    (Fraction(0, 1), Fraction(0, 1))
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, data_set: str | None = None) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise LedgerError(
                f"There is no ledger at {self.path}. Make one with Ledger.create or `expmech budget"
                " init`."
            )
        with connect(self.path) as connection:
            row = read_budget(connection, self.path)
        self.data_set = str(row[0])
        self.total = (Fraction(row[1]), Fraction(row[2]))
        self.created = str(row[3])
        if data_set is not None and data_set != self.data_set:
            raise LedgerError(
                f"The ledger {self.path} belongs to another data set: it was made for"
                f" {self.data_set!r}, not for {data_set!r}. Nothing was charged."
            )

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, data_set: str, epsilon: object, delta: object = 0
    ) -> Ledger:
        """Make the ledger of ``data_set`` with a total of ``epsilon`` and ``delta``.

        Refuse to overwrite a file.
        """
        if not isinstance(data_set, str) or not data_set.strip():
            raise ParameterError(
                f"`data_set` of {_OWNER} must be a name that tells the data set from others; got"
                f" {data_set!r}."
            )
        total = exact_amount(epsilon, name="epsilon", owner=_OWNER)
        failure = exact_amount(delta, name="delta", owner=_OWNER, zero=True)
        if failure >= 1:
            raise ParameterError(f"`delta` of {_OWNER} must be below 1; got {delta!r}.")
        target = Path(path)
        if target.exists():
            raise LedgerError(
                f"{target} exists already, and a ledger is never overwritten. Choose another name."
            )
        if not target.parent.is_dir():
            raise LedgerError(f"There is no folder {target.parent} to put the ledger in.")
        # Built under another name and linked into place: a crash leaves either no ledger or a whole
        # one.
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            connection = sqlite3.connect(draft, isolation_level=None)
            connection.executescript("PRAGMA synchronous = EXTRA; BEGIN;" + SCHEMA)
            row = (data_set, str(total), str(failure), now())
            connection.execute("INSERT INTO budget VALUES (1, ?, ?, ?, ?)", row)
            connection.execute("COMMIT")
            connection.close()
            os.link(draft, target)
        except FileExistsError:
            raise LedgerError(
                f"{target} exists already, and a ledger is never overwritten. Choose another name."
            ) from None
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"The ledger {target} cannot be written: {error}.") from None
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(target.parent)
        return cls(target)

    def charge(
        self, *, epsilon: object, delta: object = 0, statement: str = "", certificate: str = ""
    ) -> Charge:
        """Charge ``epsilon`` and ``delta`` durably, or raise LedgerError.

        Draw the value only after this returns.
        """
        (charged,) = self.charge_all(
            [Entry(epsilon=epsilon, delta=delta, statement=statement, certificate=certificate)]
        )
        return charged

    def charge_all(self, entries: Sequence[Entry]) -> list[Charge]:
        """Charge every entry durably, or none of them: their sum fits, or LedgerError is raised."""
        owner = f"{_OWNER}.charge"
        rows = []
        for entry in entries:
            amount = exact_amount(entry.epsilon, name="epsilon", owner=owner)
            failure = exact_amount(entry.delta, name="delta", owner=owner, zero=True)
            rows.append((amount, failure, entry.statement, (), entry.certificate))
        return self._enter(rows)

    def charge_parallel(
        self,
        *,
        epsilons: Mapping[str, object],
        deltas: Mapping[str, object] | None = None,
        adjacency: str,
        statement: str = "",
        certificate: str = "",
    ) -> Charge:
        """Charge the largest of the amounts spent on disjoint groups, named in public beforehand.

        It is written down as one parallel charge.

        A row that is added or removed lies in one group, so only that group's release changes. A
        row that is *replaced* may leave one group and enter another, and moves both group sizes:
        under "replace" parallel composition is refused.
        """
        if adjacency != "add-remove":
            raise ParameterError(
                f"`adjacency` of {_OWNER}.charge_parallel must be 'add-remove'; got {adjacency!r}."
                " Under 'replace' a row can change group, which costs twice and moves the group"
                " sizes."
            )
        if not epsilons:
            raise ParameterError(
                f"`epsilons` of {_OWNER}.charge_parallel must name at least one group; got none."
            )
        owner = f"{_OWNER}.charge_parallel"
        amount = max(
            exact_amount(value, name="epsilons", owner=owner) for value in epsilons.values()
        )
        failures = (deltas or {}).values()
        failure = max(
            (exact_amount(value, name="deltas", owner=owner, zero=True) for value in failures),
            default=Fraction(0),
        )
        (charged,) = self._enter([(amount, failure, statement, tuple(epsilons), certificate)])
        return charged

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta charged so far."""
        with connect(self.path) as connection:
            return read_spent(connection)

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that may still be charged."""
        spent = self.spent
        return self.total[0] - spent[0], self.total[1] - spent[1]

    def require(self, *, epsilon: object, delta: object = 0) -> None:
        """Raise LedgerError, with what is left, where such a charge would be refused now."""
        amount = exact_amount(epsilon, name="epsilon", owner=_OWNER)
        failure = exact_amount(delta, name="delta", owner=_OWNER, zero=True)
        self._refuse_beyond(amount, failure, self.left)

    def history(self) -> list[Charge]:
        """Return every charge, oldest first."""
        with connect(self.path) as connection:
            rows = connection.execute("SELECT * FROM charges ORDER BY number").fetchall()
        return [read_charge(row) for row in rows]

    def _enter(
        self, rows: Sequence[tuple[Fraction, Fraction, str, tuple[str, ...], str]]
    ) -> list[Charge]:
        charged = []
        with connect(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            spent = read_spent(connection)
            epsilons, deltas = (
                sum((row[0] for row in rows), Fraction(0)),
                sum((row[1] for row in rows), Fraction(0)),
            )
            self._refuse_beyond(
                epsilons, deltas, (self.total[0] - spent[0], self.total[1] - spent[1])
            )
            for epsilon, delta, statement, groups, certificate in rows:
                row = (now(), str(epsilon), str(delta), statement, json.dumps(groups), certificate)
                cursor = connection.execute(
                    "INSERT INTO charges (time, epsilon, delta, statement, parallel, certificate)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    row,
                )
                charged.append(read_charge((cursor.lastrowid, *row)))
            connection.execute("COMMIT")
        return charged

    def _refuse_beyond(
        self, epsilon: Fraction, delta: Fraction, left: tuple[Fraction, Fraction]
    ) -> None:
        for name, wanted, available in (("epsilon", epsilon, left[0]), ("delta", delta, left[1])):
            if wanted > available:
                raise LedgerError(
                    f"The budget does not allow {name} = {show_amount(wanted)}:"
                    f" {show_amount(available)} is left of"
                    f" {show_amount(self.total[0] if name == 'epsilon' else self.total[1])} in"
                    f" {self.path}. Nothing was charged."
                )
