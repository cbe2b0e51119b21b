"""The ledger: one SQLite file a data set, charged durably before a value is drawn.

Page: docs/ledger.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from expmech.adjacency import validate_relation
from expmech.errors import ParameterError
from expmech.ledger import register
from expmech.ledger.amounts import exact_amount
from expmech.ledger.card import ledger_card
from expmech.ledger.entries import Priced, largest, price
from expmech.ledger.file import begin, connect, now, read_budget, read_charges, read_spent
from expmech.ledger.limits import CONCENTRATED, Amount, Limits
from expmech.ledger.making import make_limits, validate_name, validate_target, write_ledger
from expmech.ledger.outbox import deliver, read_outbox, redeemable, refuse_again
from expmech.ledger.records import Charge, Entry, LedgerError
from expmech.ledger.refusals import common_adjacency, refuse_beyond, refuse_other
from expmech.theory.concentrated import PURE

_OWNER = "Ledger"


class Ledger:
    """The budget of one data set: charges never compose to more than the total, exactly.

    Parameters
    ----------
    path
        The file; make it once with :meth:`create`.
    data_set
        Identity of the data about to be used, or all the names they have; the ledger must have
        been made for one of them. None skips the check.
    members
        The files or tables of the data about to be used (``Source.members``): those that were
        renamed since the ledger was made are recognised by the register of budgets.

    Attributes
    ----------
    limits : Limits
        The total and the composition in force.
    adjacency : str
        The neighbours that the total speaks of; empty for a ledger of an earlier version that was
        not charged yet, whose first charge decides.

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

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        data_set: str | Sequence[str] | None = None,
        members: Sequence[str] = (),
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise LedgerError(
                f"There is no ledger at {self.path}. Make one with Ledger.create or `expmech budget"
                " init`."
            )
        with connect(self.path) as connection:
            row = read_budget(connection, self.path)
        self.data_set, self.created, self._stated = (
            row["data_set"],
            row["created"],
            row["adjacency"],
        )
        self.limits = Limits(
            epsilon=Fraction(row["epsilon"]),
            delta=Fraction(row["delta"]),
            composition=row["composition"],
            rho=Fraction(row["rho"]),
        )
        names = [data_set] if isinstance(data_set, str) else data_set
        if names is None or self.data_set in names:
            return
        if not register.follows(members, self.path):
            raise LedgerError(
                f"The ledger {self.path} belongs to another data set: it was made for"
                f" {self.data_set!r}, not for {names[0]!r}. Nothing was charged."
            )

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        data_set: str,
        epsilon: object,
        delta: object = 0,
        adjacency: str = "replace",
        composition: str | None = None,
        members: Sequence[str] = (),
        again: bool = False,
    ) -> Ledger:
        """Make the ledger of ``data_set`` with a total of ``epsilon`` and ``delta``.

        Parameters
        ----------
        adjacency
            The neighbours that the total speaks of; charges of the other are refused.
        composition
            "basic": epsilons add up, and deltas of releases. "concentrated", the default where
            there is a delta: the delta pays for a tighter sum, and releases have none of their own.
        members
            The files or tables of the data set (``Source.members``): a second ledger for one of
            them is refused, unless ``again`` asks for one all the same.
        """
        name = validate_name(data_set)
        limits = make_limits(epsilon, delta, composition)
        relation = validate_relation(adjacency, owner=_OWNER)
        target = validate_target(Path(path))
        with register.claimed(members, target, name, again=again):
            write_ledger(target, name, limits, relation)
        return cls(target)

    def charge(
        self,
        *,
        epsilon: object,
        delta: object = 0,
        statement: str = "",
        certificate: str = "",
        adjacency: str | None = None,
    ) -> Charge:
        """Charge ``epsilon`` and ``delta`` durably, or raise LedgerError.

        Draw the value only after this returns. The adjacency is the certificate's, or else that of
        the ledger, unless it is given.
        """
        (charged,) = self.charge_all(
            [
                Entry(
                    epsilon=epsilon,
                    delta=delta,
                    statement=statement,
                    certificate=certificate,
                    adjacency=adjacency,
                )
            ]
        )
        return charged

    def charge_all(self, entries: Sequence[Entry]) -> list[Charge]:
        """Charge every entry durably, or none of them: their sum fits, or LedgerError is raised."""
        owner = f"{_OWNER}.charge"
        return self._enter([price(entry, owner=owner) for entry in entries])

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
        owner = f"{_OWNER}.charge_parallel"
        if not epsilons:
            raise ParameterError(f"`epsilons` of {owner} must name at least one group; got none.")
        entry = Entry(
            epsilon=largest(dict(epsilons), name="epsilons", owner=owner, zero=False),
            delta=largest(dict(deltas or {}), name="deltas", owner=owner, zero=True),
            statement=statement,
            certificate=certificate,
            adjacency=adjacency,
            groups=tuple(epsilons),
        )
        (charged,) = self._enter([price(entry, owner=owner)])
        return charged

    @property
    def total(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that all releases together never exceed."""
        return self.limits.epsilon, self.limits.delta

    @property
    def adjacency(self) -> str:
        """The neighbours that the total speaks of."""
        return self._stated or common_adjacency(self.history())

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that the charges so far have together, by the composition in force."""
        return self.limits.composed(read_spent(self.history()))

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """The largest epsilon and delta that one more release of any kind may have."""
        return self.limits.left(read_spent(self.history()))

    def times(self, charge: Amount) -> int:
        """Return how many more charges of the same cost are allowed, at most a million."""
        return self.limits.times(read_spent(self.history()), charge)

    @property
    def wants_bounded_range(self) -> bool:
        """Whether a release whose range is bounded costs less than another pure one here."""
        return self.limits.composition == CONCENTRATED

    def require_adjacency(self, adjacency: str) -> None:
        """Raise LedgerError where the total speaks of other neighbours."""
        refuse_other(self.path, self.adjacency, [adjacency])

    def require(self, *, epsilon: object, delta: object = 0) -> None:
        """Raise LedgerError, with what is left, where a pure charge of this size is refused now."""
        amount = exact_amount(epsilon, name="epsilon", owner=_OWNER)
        failure = exact_amount(delta, name="delta", owner=_OWNER, zero=True)
        one = Amount(epsilon=amount, delta=failure, rho=PURE * amount**2)
        refuse_beyond(self.path, self.limits, one, read_spent(self.history()))

    def require_all(self, entries: Sequence[Entry]) -> None:
        """Raise LedgerError where :meth:`charge_all` would now; nothing is charged."""
        self._refuse([price(entry, owner=f"{_OWNER}.charge") for entry in entries], self.history())

    def history(self) -> list[Charge]:
        """Return every charge, oldest first."""
        with connect(self.path) as connection:
            return read_charges(connection)

    def deliver(self, number: int, record: str) -> str:
        """Put the record of a charge's value into the outbox, durably, before it is shown.

        Return what the outbox holds, the first record that was put there: show that one, never the
        other, so that one charge gives one value.
        """
        with connect(self.path) as connection:
            begin(connection)
            held = deliver(connection, number, record)
            connection.execute("COMMIT")
        return held

    def outbox(self) -> dict[int, str]:
        """Return the records of released values, by the number of their charge."""
        with connect(self.path) as connection:
            return read_outbox(connection)

    def redeem(self, number: int, entry: Entry) -> Charge:
        """Return a charge whose value was never shown; raise unless ``entry`` is what it was for.

        Draw once after this and :meth:`deliver`: no more is spent, as no value was shown.
        """
        return redeemable(self.path, self.history(), self.outbox(), number, entry)

    def costs(self) -> list[Fraction]:
        """Return what each charge added to the epsilon spent, by the composition in force."""
        return self.limits.costs([charge.amount for charge in self.history()])

    def _repr_html_(self) -> str:
        """Return the budget for a notebook."""
        return ledger_card(self.data_set, self.limits, self.adjacency, self.history(), self.costs())

    def _enter(self, priced: Sequence[Priced]) -> list[Charge]:
        with connect(self.path) as connection:
            begin(connection)
            before = read_charges(connection)
            refuse_again(self.path, before, [one.entry.run for one in priced])
            self._refuse(priced, before)
            time = now()
            for one in priced:
                connection.execute(
                    "INSERT INTO charges (time, epsilon, delta, statement, parallel, certificate,"
                    " rho, adjacency, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    one.row(time),
                )
            last = before[-1].number if before else 0
            charges = read_charges(connection, after=last)
            connection.execute("COMMIT")  # the last step: what fails before it charges nothing
        return charges

    def _refuse(self, priced: Sequence[Priced], before: list[Charge]) -> None:
        held = self._stated or common_adjacency(before)
        refuse_other(self.path, held, [one.adjacency for one in priced])
        wanted = sum((one.amount for one in priced), Amount())
        refuse_beyond(self.path, self.limits, wanted, read_spent(before))
