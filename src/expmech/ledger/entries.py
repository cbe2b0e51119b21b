"""Entries and charges: what a release asks a ledger for, and what the ledger then holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from expmech.certificates.certificate import Certificate
from expmech.core.adjacency import Adjacency, unit_of, validate_relation
from expmech.core.errors import ExpmechError, ParameterError
from expmech.ledger.amounts import Amount, exact_amount, show_amount
from expmech.ledger.verification import rho_of
from expmech.theory.concentrated import rho_of_pure

_NEARLY = 1 + Fraction(1, 1 << 50)
_KEPT = re.compile(r"of each .* at most (\d+) rows are kept, ", re.DOTALL)


class LedgerError(ExpmechError, ValueError):
    """The ledger refused: exhausted, of another data set, or not a ledger."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One of several releases that are charged together.

    Parameters
    ----------
    epsilon : str, int, Fraction or float
        Epsilon of the release, read as the decimal number that it prints as.
    delta : str, int, Fraction or float, default 0
        Delta of the release.
    statement : str, default ""
        What is released, for the history.
    certificate : str, default ""
        Certificate of the release as JSON; its mechanism says what it costs under concentrated
        composition.
    adjacency : str, optional
        The neighbouring relation; by default the certificate's.
    groups : tuple of str, default ()
        Disjoint parts of the table that are released at this cost together.
    run : str, default ""
        The plan that the release belongs to, and its place there.

    Examples
    --------
    >>> Entry(epsilon="0.5", statement="mean of age").delta
    0
    """

    epsilon: object
    delta: object = 0
    statement: str = ""
    certificate: str = ""
    adjacency: str | None = None
    groups: tuple[str, ...] = ()
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A charge of a ledger.

    Parameters
    ----------
    number : int
        Number of the charge in the ledger, from 1.
    time : str
        When it was made, in UTC.
    epsilon, delta, rho : Fraction
        What it adds to what was spent; rho under concentrated composition.
    statement : str
        What was released.
    groups : tuple of str
        The disjoint groups that it covers; empty for an ordinary charge.
    certificate : str
        The certificate as JSON, or a note of the caller's own.
    adjacency : str
        The neighbouring relation; empty where the charge did not say.
    run : str
        The plan that it belongs to; empty if the ledger does not keep its value.
    """

    number: int
    time: str
    epsilon: Fraction
    delta: Fraction
    statement: str
    groups: tuple[str, ...]
    certificate: str
    rho: Fraction
    adjacency: str
    run: str

    @property
    def amount(self) -> Amount:
        """What it adds to what was spent."""
        return Amount(epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    def is_for(self, entry: Entry) -> bool:
        """Return whether the charge was made for exactly this release."""
        return (self.statement, self.groups) == (entry.statement, entry.groups) and (
            self.certificate == entry.certificate
            or self.certifies(read_certificate(entry.certificate))
        )

    def certifies(self, certificate: Certificate | None) -> bool:
        """Return whether it was made with this certificate, whatever the names of its fields were.

        The text of an earlier version differs from that of the same certificate now.
        """
        own = read_certificate(self.certificate)
        return (
            own is not None and certificate is not None and own.to_json() == certificate.to_json()
        )


def read_certificate(text: str) -> Certificate | None:
    """Return the certificate in a charge; None where there is none, or a note of the caller's."""
    try:
        return Certificate.from_json(text) if text else None
    except ExpmechError:
        return None


def price(entry: Entry, *, owner: str) -> Charge:
    """Return the charge that an entry makes, before it has a number and a time.

    The mechanism of its certificate says what rho it has.
    """
    epsilon = exact_amount(entry.epsilon, name="epsilon", owner=owner)
    delta = exact_amount(entry.delta, name="delta", owner=owner, zero=True)
    certificate = read_certificate(entry.certificate)
    if certificate is not None:
        _check_certificate(certificate, Amount(epsilon=epsilon, delta=delta), entry, owner=owner)
    # Without a certificate a charge costs what any pure release does; the text of a caller proves
    # no less.
    rho = rho_of_pure(epsilon) if certificate is None else rho_of(certificate, epsilon)
    if certificate is None and delta:
        rho = Fraction(0)  # none is known
    stated = entry.adjacency or (certificate.adjacency if certificate else "")
    adjacency = validate_relation(stated, owner=owner) if stated else ""
    if entry.groups and not adjacency.startswith(Adjacency.ADD_REMOVE):
        raise ParameterError(
            f"`adjacency` of {owner} must be 'add-remove' where there are groups; got"
            f" {adjacency!r}. Under 'replace' a row can change group, which costs twice and moves"
            " the group sizes."
        )
    return Charge(
        number=0,
        time="",
        epsilon=epsilon,
        delta=delta,
        statement=entry.statement,
        groups=entry.groups,
        certificate=entry.certificate,
        rho=rho,
        adjacency=adjacency,
        run=entry.run,
    )


def largest(values: Iterable[object], *, name: str, owner: str, zero: bool = False) -> Fraction:
    """Return the largest of the amounts of disjoint groups."""
    amounts = [exact_amount(value, name=name, owner=owner, zero=zero) for value in values]
    return max(amounts, default=Fraction(0))


def _check_certificate(
    certificate: Certificate, charged: Amount, entry: Entry, *, owner: str
) -> None:
    """Raise where less is charged than the certificate says, or for other neighbours.

    The epsilon of a certificate is that of one row; where all rows of a unit are charged, it is
    multiplied by how many of them were kept.
    """
    rows = _rows_kept(certificate) if unit_of(entry.adjacency or "") else 1
    for name, certified, paid, times in (
        ("epsilon", certificate.epsilon, charged.epsilon, rows),
        ("delta", certificate.delta, charged.delta, 1),
    ):
        if not certified <= paid / times * _NEARLY:  # the certificate has the nearest float64
            each = "" if times == 1 else f" for each of {times} rows"
            raise ParameterError(
                f"`{name}` of {owner} must be at least that of the certificate, {certified!r}{each}"
                f"; got {show_amount(paid)}."
            )
    if entry.adjacency and not entry.adjacency.startswith(certificate.adjacency):
        raise ParameterError(
            f"`adjacency` of {owner} must be that of the certificate, {certificate.adjacency!r};"
            f" got {entry.adjacency!r}."
        )


def _rows_kept(certificate: Certificate) -> int:
    """Return how many rows of a unit a certificate says were kept; 1 where it says nothing."""
    matches = [_KEPT.match(text) for text in certificate.assumptions]
    return max((int(match[1]) for match in matches if match), default=1)
