"""What a release asks for, checked before the table is touched."""

from __future__ import annotations

import copy
from fractions import Fraction

from expmech.adjacency import Adjacency, validate_adjacency
from expmech.cli.common import parse_epsilon
from expmech.cli.options import Budgeted, ReleaseOptions, TableOptions
from expmech.cli.parsing import split
from expmech.cli.place import open_table, read_units
from expmech.cli.shared import Made, Shared, parts_of
from expmech.data.source import Source
from expmech.errors import ParameterError, validate_choice
from expmech.ledger import Entry, Ledger, exact_amount, show_amount
from expmech.release import Certificate
from expmech.samplers import Metropolis, Sampler, names, validate_sampler
from expmech.samplers.base import CONSTANT
from expmech.statistics import Statistic
from expmech.statistics.base import check_missing, one_of_several
from expmech.statistics.keys import canonical_key
from expmech.target.calibration import EPSILON_MIN

_OWNER = "release"


class Request:
    """What a release asks for, checked before the table is touched."""

    def __init__(self, budgeted: Budgeted, place: TableOptions, asked: ReleaseOptions) -> None:
        self.epsilon = parse_epsilon(budgeted.epsilon, owner=_OWNER)
        self.delta = exact_amount(asked.delta or "0", name="--delta", owner=_OWNER, zero=True)
        self.adjacency = validate_adjacency(budgeted.adjacency, name="--adjacency", owner=_OWNER)
        self.sampler = choose(asked.sampler, asked.delta)
        self.missing = check_missing(asked.missing, self.adjacency, owner=_OWNER)
        self.by, self.groups = _groups(asked, self.adjacency)
        self.timing, self.as_json, self.file = budgeted.timing, budgeted.as_json, asked.output
        self.units = read_units(place, self.adjacency, delta=asked.delta is not None)
        self.redeem, self.budget_seconds = asked.redeem, budgeted.budget_seconds
        self.verbose = asked.verbose
        self.shares: tuple[str, ...] = ()
        self.place, self.ledger_file = place, asked.ledger
        if self.redeem is not None and asked.ledger is None:
            raise ParameterError("`--redeem` needs --ledger: a charge of it is redeemed.")

    @property
    def shared(self) -> Shared:
        """What the statistic is told."""
        composed = self.ledger_file is not None and Ledger(self.ledger_file).wants_bounded_range
        return Shared(
            self.adjacency,
            missing=self.missing,
            sampler_named=self.sampler != "auto",
            bounded_range=composed and self.timing != CONSTANT,
        )

    def divided(self, made: Made) -> Divided:
        """Return each statistic with the request for it: together they cost this one's epsilon."""
        parts = parts_of(made)
        return [(self._one_of(len(parts)), statistic) for statistic in parts]

    def _one_of(self, count: int) -> Request:
        if count == 1:
            return self
        if self.delta:
            raise ParameterError("`--delta` belongs to one column: ask for each column by itself.")
        one = copy.copy(self)
        one.epsilon = self.epsilon / count
        if one.epsilon < EPSILON_MIN:
            raise ParameterError(
                "`--epsilon` of release must leave each column at least 2^-20; got"
                f" {show_amount(self.epsilon)} for {count} columns."
            )
        one.shares = (one_of_several(count, "call", show_amount(self.epsilon)),)
        return one

    @property
    def notes(self) -> tuple[str, ...]:
        """What a certificate says about the request: one of several, and units."""
        units = () if self.units is None else self.units.notes(self.epsilon)
        return (*self.shares, *units)

    @property
    def row_epsilon(self) -> Fraction:
        """The epsilon of a row: all of it, unless people have several."""
        return self.epsilon if self.units is None else self.units.of_a_row(self.epsilon)

    @property
    def relation(self) -> str:
        """The neighbours that a ledger is told: by rows, or by units."""
        return str(self.adjacency) if self.units is None else self.units.adjacency

    @property
    def whom(self) -> str:
        """What one is protected: a row, or a unit."""
        return "row" if self.units is None else self.units.column

    def open(self) -> Source:
        """Open the table; its schema is public."""
        source = open_table(self.place)
        if self.adjacency.count_is_public and not source.keeps_all:
            raise ParameterError(
                "`--query` needs --adjacency add-remove unless it only computes columns: how many"
                " rows its result has depends on the data."
            )
        return source

    def ledger(self, source: Source) -> Ledger | None:
        """Return the ledger; raise where it is another's or of the other adjacency."""
        if self.ledger_file is None:
            return None
        ledger = Ledger(self.ledger_file, data_set=source.names, members=source.members)
        ledger.require_adjacency(self.relation)
        return ledger

    def entry(self, statement: str, certificate: Certificate, *, run: str = "") -> Entry:
        """Return what is charged, once for all groups: they are disjoint."""
        return Entry(
            epsilon=self.epsilon,
            delta=self.delta,
            statement=statement,
            certificate=certificate.to_json(),
            adjacency=self.relation,
            groups=tuple(self.groups),
            run=run,
        )


Divided = list[tuple[Request, Statistic]]
"""Statistics, each with the request for it."""


def _groups(asked: ReleaseOptions, adjacency: Adjacency) -> tuple[str | None, list[str]]:
    if (asked.by is None) != (asked.groups is None):
        raise ParameterError(
            "`--by` and `--groups` belong together: a column, and the public list of its groups."
        )
    if asked.by is None or asked.groups is None:
        return None, []
    if adjacency != Adjacency.ADD_REMOVE:
        raise ParameterError(
            "`--by` needs --adjacency add-remove: under 'replace' a row can change group, which"
            " costs twice and moves the group sizes."
        )
    groups = split(asked.groups)
    if not groups:
        raise ParameterError(f"`--groups` must name at least one group; got {asked.groups!r}.")
    if len({canonical_key(group) for group in groups}) != len(groups):
        raise ParameterError(f"`--groups` must differ from each other; got {asked.groups}.")
    return asked.by, groups


def choose(sampler: str | None, delta: str | None) -> Sampler | str:
    """Return the sampler asked for by name, or the Metropolis chain of a delta."""
    if sampler is not None:
        validate_choice(
            sampler, name="--sampler", owner=_OWNER, choices=[*names(), Metropolis.name()]
        )
    if delta is None:
        if sampler == Metropolis.name():
            return Metropolis(pure=True)
        return validate_sampler(sampler or "auto")
    if sampler not in (None, Metropolis.name()):
        raise ParameterError(f"`--delta` belongs to --sampler Metropolis; got {sampler!r}.")
    return Metropolis(delta=float(exact_amount(delta, name="--delta", owner=_OWNER)))
