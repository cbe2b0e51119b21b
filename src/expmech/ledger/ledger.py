"""The ledger: one SQLite file per data set, charged durably before a value is drawn.

Page: docs/guides/budgets.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from expmech.certificates.card import usual_name
from expmech.core.adjacency import validate_relation
from expmech.core.errors import ParameterError
from expmech.core.markup import card, values_table, visible
from expmech.core.strict_json import read_json
from expmech.ledger import register
from expmech.ledger.amounts import BASIC, CONCENTRATED, Amount, Limits, show_amount
from expmech.ledger.entries import Charge, Entry, LedgerError, largest, price
from expmech.ledger.file import (
    begin,
    connect,
    insert_charges,
    ledger_exists,
    read_budget,
    read_charges,
    total_of,
    write_ledger,
)
from expmech.ledger.outbox import deliver, read_outbox, redeemable, refuse_again
from expmech.theory.concentrated import RhoBudget, rho_of_bounded_range

_OWNER = "Ledger"
_BOTH = "both"  # the adjacency of a ledger of an earlier version that was charged with either


class Ledger:
    """The privacy budget of one data set: charges never compose to more than the total, exactly.

    Parameters
    ----------
    path : str or path-like
        The file; make it once with :meth:`create`.
    data_set : str or sequence of str, optional
        Identity of the data about to be used, or all the names that they have; the ledger must
        have been made for one of them. None skips the check.
    members : sequence of str, default ()
        The files or tables of the data about to be used (``Source.members``): those that were
        renamed since the ledger was made are recognised by the register of budgets.

    Attributes
    ----------
    path : Path
        The file.
    data_set : str
        The data set that it was made for.
    created : str
        When it was made, in UTC.
    limits : Limits
        The total and the composition in force.
    settings : dict
        What is known of the table since the ledger was made, such as its source, its encoding and
        the column that names people; empty where nothing was noted.

    Raises
    ------
    LedgerError
        If there is no ledger at ``path``, or it belongs to another data set.

    Notes
    -----
    :meth:`charge` commits with ``synchronous=EXTRA`` inside ``BEGIN IMMEDIATE`` before it returns:
    two processes cannot both take the last of a budget, and a crash afterwards wastes budget but
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
        self.data_set, self.created = row["data_set"], row["created"]
        self._stated_adjacency = row["adjacency"]
        self.settings: dict[str, Any] = read_json(row["settings"], name="`settings` of a ledger")
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
        settings: Mapping[str, Any] | None = None,
    ) -> Ledger:
        """Make the ledger of a data set.

        Parameters
        ----------
        path : str or path-like
            The file to make; an existing file is never overwritten.
        data_set : str
            A name that tells the data set from others.
        epsilon : str, int, Fraction or float
            Total epsilon of all releases.
        delta : str, int, Fraction or float, default 0
            Total delta.
        adjacency : str, default "replace"
            The neighbouring relation of the total, "replace" or "add-remove"; releases under the
            other one are refused.
        composition : str, optional
            "basic": epsilons of releases add up, and so do deltas. "concentrated", the default if
            delta is positive: delta pays for a tighter sum, and releases have no delta.
        members : sequence of str, default ()
            The files or tables of the data set (``Source.members``); a second ledger for one of
            them is refused.
        again : bool, default False
            Make a second ledger for the same data all the same.
        settings : mapping of str to str or int, optional
            What every release of the table shares, for the command line: ``source``, ``table``,
            ``unit``, ``max_rows``, ``encoding``, ``delimiter`` and the like. They are public and
            hold no password.

        Returns
        -------
        Ledger
            The new ledger.

        Raises
        ------
        LedgerError
            If the file exists or cannot be written, or the data have a ledger already.
        ParameterError
            If an amount, the name, the adjacency or the composition is none.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = folder.name + "/many.ledger"
        >>> Ledger.create(path, data_set="many", epsilon=2, delta="1e-6").limits.composition
        'concentrated'
        >>> folder.cleanup()
        """
        if not isinstance(data_set, str) or not data_set.strip():
            raise ParameterError(
                f"`data_set` of {_OWNER} must be a name that tells the data set from others; got"
                f" {data_set!r}."
            )
        limits = Limits.parse(epsilon, delta, composition)
        relation, target = validate_relation(adjacency, owner=_OWNER), Path(path)
        if target.exists():
            raise ledger_exists(target)
        if not target.parent.is_dir():
            raise LedgerError(f"There is no folder {target.parent} to put the ledger in.")
        with register.claimed(members, target, data_set, again=again):
            write_ledger(target, data_set, limits, relation, settings or {})
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
        """Charge a release durably; draw the value only after this returns.

        Parameters
        ----------
        epsilon, delta, statement, certificate
            As for :class:`Entry`.
        adjacency : str, optional
            Its neighbouring relation; by default the certificate's, or else the ledger's.

        Returns
        -------
        Charge
            The charge, with its number.

        Raises
        ------
        LedgerError
            If the budget does not allow it, or the ledger has another adjacency.
        ParameterError
            If an amount is out of range or less than the certificate says.
        """
        entry = Entry(
            epsilon=epsilon,
            delta=delta,
            statement=statement,
            certificate=certificate,
            adjacency=adjacency,
        )
        (charge,) = self.charge_all([entry])
        return charge

    def charge_all(self, entries: Sequence[Entry]) -> list[Charge]:
        """Charge several releases durably, all or none.

        Parameters
        ----------
        entries : sequence of Entry
            The releases.

        Returns
        -------
        list of Charge
            Their charges, in the same order.

        Raises
        ------
        LedgerError
            If the budget does not allow their sum, or the ledger has another adjacency.
        """
        # All or none: what was charged for half of a release would be spent for nothing.
        return self._enter([price(entry, owner=f"{_OWNER}.charge") for entry in entries])

    def charge_parallel(
        self,
        *,
        epsilons: Mapping[str, object],
        deltas: Mapping[str, object] | None = None,
        adjacency: str,
        statement: str = "",
        certificate: str = "",
    ) -> Charge:
        """Charge the largest of the amounts spent on disjoint groups (parallel composition).

        A row that is added or removed lies in one group, so only that group's release changes. A
        row that is *replaced* may leave one group and enter another, and moves both group sizes:
        under "replace" parallel composition is refused.

        Parameters
        ----------
        epsilons : mapping of str to amount
            The epsilon of each group; the names are public and fixed beforehand.
        deltas : mapping of str to amount, optional
            The deltas, where releases have any.
        adjacency : str
            "add-remove", or that of a unit.
        statement, certificate : str, default ""
            As in :meth:`charge`.

        Returns
        -------
        Charge
            One charge for all groups.

        Raises
        ------
        LedgerError
            If the budget does not allow it.
        ParameterError
            If no group is named, or the adjacency is "replace".
        """
        owner = f"{_OWNER}.charge_parallel"
        if not epsilons:
            raise ParameterError(f"`epsilons` of {owner} must name at least one group; got none.")
        entry = Entry(
            # Each row is in one group, so it is in the release of one of these amounts only
            # (docs/theory/composition.md).
            epsilon=largest(epsilons.values(), name="epsilons", owner=owner),
            delta=largest((deltas or {}).values(), name="deltas", owner=owner, zero=True),
            statement=statement,
            certificate=certificate,
            adjacency=adjacency,
            groups=tuple(epsilons),
        )
        (charge,) = self._enter([price(entry, owner=owner)])
        return charge

    @property
    def total(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that all releases together never exceed."""
        return self.limits.epsilon, self.limits.delta

    @property
    def adjacency(self) -> str:
        """The neighbouring relation of the total, fixed when the ledger was made.

        A ledger of an earlier version has that of its charges: empty before the first, "both" if
        it was charged under either.
        """
        return self._adjacency_with(self.history())

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that the charges so far have together, by the composition in force."""
        return self.limits.composed(total_of(self.history()))

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """The largest epsilon and delta that one more release of any kind may have."""
        return self.limits.left(total_of(self.history()))

    def times(self, charge: Amount) -> int:
        """Return how many more charges of this cost are allowed, at most a million."""
        return self.limits.times(total_of(self.history()), charge)

    @property
    def wants_bounded_range(self) -> bool:
        """Whether a mechanism of bounded range costs less here than another of the same epsilon."""
        return self.limits.composition == CONCENTRATED

    def rho_budget(self, before: int | None = None) -> RhoBudget | None:
        """Return what decides whether a release is paid for in rho; None under basic composition.

        Parameters
        ----------
        before : int, optional
            Only charges below this number count, so that a charge is redeemed as it was made.

        Returns
        -------
        RhoBudget or None
        """
        limits = self.limits
        if limits.composition != CONCENTRATED:
            return None
        # Choosing the noise by the budget left is allowed: the ledger is a filter for adaptive
        # releases (docs/theory/composition.md, section 4).
        charges = [each for each in self.history() if before is None or each.number < before]
        return RhoBudget(
            delta=limits.delta,
            per_epsilon=limits.rho / limits.epsilon,
            left=limits.rho - total_of(charges).rho,
        )

    def require_adjacency(self, adjacency: str) -> None:
        """Raise LedgerError where the total refers to another neighbouring relation."""
        self._refuse_adjacency(self.adjacency, [adjacency])

    def require_all(self, entries: Sequence[Entry]) -> None:
        """Raise LedgerError where :meth:`charge_all` would now; nothing is charged."""
        charges = [price(entry, owner=f"{_OWNER}.charge") for entry in entries]
        self._refuse(charges, self.history())

    def history(self) -> list[Charge]:
        """Return every charge, oldest first."""
        with connect(self.path) as connection:
            return read_charges(connection)

    def deliver(self, number: int, record: str) -> str:
        """Put the record of a charge's value into the outbox, durably, before it is shown.

        Parameters
        ----------
        number : int
            The number of the charge.
        record : str
            The record as JSON.

        Returns
        -------
        str
            The first record that was put there for this charge: show that one, never another, so
            that one charge gives one value.
        """
        with connect(self.path) as connection:
            begin(connection)
            kept = deliver(connection, number, record)
            connection.execute("COMMIT")
        return kept

    def outbox(self) -> dict[int, str]:
        """Return the records of released values, by the number of their charge."""
        with connect(self.path) as connection:
            return read_outbox(connection)

    def redeem(self, number: int, entry: Entry) -> Charge:
        """Return a charge whose value was never drawn, so that it can be drawn now.

        Draw once after this and :meth:`deliver`: no more is spent, as no value was shown.

        Parameters
        ----------
        number : int
            The number of the charge.
        entry : Entry
            The release that is asked for.

        Returns
        -------
        Charge
            The charge.

        Raises
        ------
        LedgerError
            If there is no such charge, its value is in the outbox, or it was made for another
            release.
        """
        return redeemable(self.path, self.history(), self.outbox(), number, entry)

    def costs(self) -> list[Fraction]:
        """Return what each charge added to the epsilon spent, by the composition in force."""
        return self.limits.costs([charge.amount for charge in self.history()])

    def __repr__(self) -> str:
        """Return the call that opens it."""
        return f"Ledger({str(self.path)!r})"

    def __str__(self) -> str:
        """Return the budget: the total, what was spent, what is left, and every charge."""
        title, rows, lines = self._card()
        texts = [title, *(f"  {label:<8}{text}" for label, text in rows)]
        widths = [max((len(line[k]) for line in lines), default=0) for k in range(4)]
        for number, released, epsilon, cost in lines:
            texts.append(
                f"  {number.rjust(widths[0])}  {visible(released).ljust(widths[1])}"
                f"  {epsilon.rjust(widths[2])}  {cost.rjust(widths[3])}"
            )
        return "\n".join(texts)

    def _repr_html_(self) -> str:
        """Return the budget for a notebook."""
        title, rows, lines = self._card()
        heads, *charges = lines or [()]
        return card(title, rows, after=values_table(heads, charges, names=2) if charges else "")

    def _card(self) -> tuple[str, list[tuple[str, str]], list[tuple[str, ...]]]:
        """Return title, labelled rows, and the table of charges under its heads."""
        charges, costs = self.history(), self.costs()
        relation = self._adjacency_with(charges)
        counts = f"{relation} adjacency" if relation else "the adjacency of the first charge"
        amounts = (("total", self.total), ("spent", self.spent), ("left", self.left))
        rows = [
            (name, f"epsilon = {show_amount(epsilon)}, delta = {show_amount(delta)}")
            for name, (epsilon, delta) in amounts
        ]
        rows.append(("counts", f"{counts}, {self.limits.composition} composition"))
        lines = [
            (
                str(charge.number),
                usual_name(charge.statement),
                show_amount(charge.epsilon),
                show_amount(cost),
            )
            for charge, cost in zip(charges, costs, strict=True)
        ]
        heads = ("number", "released", "epsilon", "cost here")
        return f"Budget of {visible(self.data_set)}", rows, [heads, *lines] if lines else []

    def _enter(self, charges: Sequence[Charge]) -> list[Charge]:
        with connect(self.path) as connection:
            begin(connection)
            # In the same transaction as the charge: two programs cannot both see the budget as it
            # was before.
            before = read_charges(connection)
            refuse_again(self.path, before, [charge.run for charge in charges])
            self._refuse(charges, before)
            insert_charges(connection, charges)
            entered = read_charges(connection, after=before[-1].number if before else 0)
            connection.execute("COMMIT")  # the last step: what fails before it charges nothing
        return entered

    def _adjacency_with(self, charges: Sequence[Charge]) -> str:
        relations = sorted({charge.adjacency for charge in charges} - {""})
        return self._stated_adjacency or (_BOTH if len(relations) > 1 else "".join(relations))

    def _refuse(self, charges: Sequence[Charge], before: Sequence[Charge]) -> None:
        relations = [charge.adjacency for charge in charges]
        self._refuse_adjacency(self._adjacency_with(before), relations)
        for charge in charges:
            if charge.delta and not charge.rho:  # else the rho of others would speak for it
                self._refuse_amount(charge.amount, total_of(before))
        self._refuse_amount(total_of(charges), total_of(before))

    def _refuse_adjacency(self, own: str, relations: Sequence[str]) -> None:
        """Raise where a charge is private under another adjacency than the ledger counts."""
        if own == _BOTH:
            raise LedgerError(
                f"The ledger {self.path} was made before ledgers had an adjacency and holds charges"
                " of both: the two kinds of guarantee cannot be added. Make a new one for what is"
                " to come. Nothing was charged."
            )
        for adjacency in relations:
            if own and adjacency and adjacency != own:
                raise LedgerError(
                    f"The ledger {self.path} counts under {own} adjacency, and this release is"
                    f" private under {adjacency}: the two kinds of guarantee cannot be added."
                    f" Release under {own}, or make a ledger for {adjacency}. Nothing was charged."
                )
            own = own or adjacency

    def _refuse_amount(self, amount: Amount, spent: Amount) -> None:
        """Raise, with what is left, where the budget does not allow an amount."""
        limits = self.limits
        without = limits.composition == CONCENTRATED and amount.delta and not amount.rho
        if not without and limits.allows(spent + amount):
            return
        if without:
            raise LedgerError(
                f"The delta of the ledger {self.path} pays for composition, so that a release"
                " cannot have one of its own: leave --delta out, or make a ledger with"
                f" --composition {BASIC}. Nothing was charged."
            )
        if limits.composition == CONCENTRATED:
            any_kind = show_amount(limits.left(spent)[0])
            bounded = show_amount(limits.left(spent, rho_of_bounded_range)[0])
            raise LedgerError(
                f"The budget does not allow epsilon = {show_amount(amount.epsilon)}: one more"
                f" release may have at most {bounded} if its range is bounded, and else {any_kind},"
                f" in {self.path}. Nothing was charged."
            )
        left = limits.left(spent)
        name, size, available, total = "epsilon", amount.epsilon, left[0], limits.epsilon
        if amount.epsilon <= left[0]:
            name, size, available, total = "delta", amount.delta, left[1], limits.delta
        raise LedgerError(
            f"The budget does not allow {name} = {show_amount(size)}: {show_amount(available)} is"
            f" left of {show_amount(total)} in {self.path}. Nothing was charged."
        )
