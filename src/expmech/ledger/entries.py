"""What is written for an entry: exact amounts, rho by its certificate, and its adjacency."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

from expmech.adjacency import Adjacency, validate_relation
from expmech.errors import ExpmechError, ParameterError
from expmech.ledger.amounts import exact_amount, show_amount
from expmech.ledger.limits import Amount
from expmech.ledger.records import Entry
from expmech.release import Certificate
from expmech.release.verification import concentration
from expmech.theory.concentrated import PURE

_NEARLY = 1 + Fraction(1, 1 << 50)


@dataclass(frozen=True, kw_only=True)
class Priced:
    """An entry with its cost and its adjacency, empty where nothing says which."""

    entry: Entry
    amount: Amount
    adjacency: str

    def row(self, time: str) -> tuple[str, ...]:
        """Return what the table of charges holds of it."""
        amount, entry = self.amount, self.entry
        groups = json.dumps(entry.groups)
        amounts = (str(amount.epsilon), str(amount.delta))
        rest = (str(amount.rho), self.adjacency, entry.run)
        return (time, *amounts, entry.statement, groups, entry.certificate, *rest)


def price(entry: Entry, *, owner: str) -> Priced:
    """Return an entry with its cost; the mechanism of its certificate says what rho it has."""
    epsilon = exact_amount(entry.epsilon, name="epsilon", owner=owner)
    delta = exact_amount(entry.delta, name="delta", owner=owner, zero=True)
    certificate = _certificate(entry.certificate)
    if certificate is not None:
        _check_certificate(certificate, Amount(epsilon=epsilon, delta=delta), entry, owner=owner)
    factor = PURE if certificate is None else concentration(certificate)
    stated = entry.adjacency or (certificate.adjacency if certificate else "")
    adjacency = validate_relation(stated, owner=owner) if stated else ""
    _check_groups(entry, adjacency, owner=owner)
    amount = Amount(epsilon=epsilon, delta=delta, rho=factor * epsilon**2)
    return Priced(entry=entry, amount=amount, adjacency=adjacency)


def largest(values: dict[str, object], *, name: str, owner: str, zero: bool) -> Fraction:
    """Return the largest of the amounts of disjoint groups."""
    amounts = [exact_amount(value, name=name, owner=owner, zero=zero) for value in values.values()]
    return max(amounts, default=Fraction(0))


def _certificate(text: str) -> Certificate | None:
    try:
        return Certificate.from_json(text) if text else None
    except ExpmechError:
        return None  # a note of the caller's own: nothing follows from it


def _check_certificate(
    certificate: Certificate, charged: Amount, entry: Entry, *, owner: str
) -> None:
    """Raise where less is charged than the certificate says, or for other neighbours."""
    for name, told, paid in (
        ("epsilon", certificate.epsilon, charged.epsilon),
        ("delta", certificate.delta, charged.delta),
    ):
        if not told <= paid * _NEARLY:  # the certificate has the nearest float64
            raise ParameterError(
                f"`{name}` of {owner} must be at least that of the certificate, {told!r}; got"
                f" {show_amount(paid)}."
            )
    if entry.adjacency and not entry.adjacency.startswith(certificate.adjacency):
        raise ParameterError(
            f"`adjacency` of {owner} must be that of the certificate, {certificate.adjacency!r};"
            f" got {entry.adjacency!r}."
        )


def _check_groups(entry: Entry, adjacency: str, *, owner: str) -> None:
    if entry.groups and not adjacency.startswith(Adjacency.ADD_REMOVE):
        raise ParameterError(
            f"`adjacency` of {owner} must be 'add-remove' where there are groups; got"
            f" {adjacency!r}. Under 'replace' a row can change group, which costs twice and moves"
            " the group sizes."
        )
