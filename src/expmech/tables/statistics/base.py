"""A statistic says everything about itself: what it needs of the rows, its mechanism, its units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from expmech.certificates.mechanism import CertificateContext, Mechanism
from expmech.certificates.postprocessing import ByName, Dates, OneNumber, Postprocessing, Unchanged
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.tables import reading
from expmech.tables.aggregates import Aggregation, Column
from expmech.theory.concentrated import RhoBudget


class Statistic(ABC):
    """What is released about a table: its aggregation, its mechanism and its units, in one file.

    A statistic of one's own gives :attr:`name`, :meth:`aggregation`, :meth:`public_half` and, where
    an aggregate is not yet what the mechanism draws from, :meth:`data`; it is then planned,
    charged, released and certified like the library's.

    Attributes
    ----------
    adjacency : Adjacency
        The neighbours that the guarantee refers to.
    missing : str
        What a missing value counts as: one of :data:`~expmech.tables.reading.MISSING_RULES`, or
        "auto", which the adjacency decides.
    """

    adjacency: Adjacency
    missing: str = reading.AUTO_MISSING
    shortfall: ClassVar[str | None] = None
    """A sentence on how far the loss of a draw may lie above the least, with a place for it."""
    no_interval: ClassVar[str] = "No interval can be given without looking at the data again."
    """Why there is no interval, where there is none."""
    takes_delta: ClassVar[bool] = False
    """Whether a delta is the statistic's own, and not that of a sampler."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the name that certificates and ledgers use."""

    @abstractmethod
    def aggregation(self, epsilon: Fraction) -> Aggregation:
        """Return what is computed from the rows; it depends on public quantities only."""

    @abstractmethod
    def public_half(self, count: int, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the mechanism, made before a row is read, of some public rows.

        Everything public about a release is read from it. What it draws from is put in the place of
        these rows later, by :meth:`~expmech.certificates.mechanism.Mechanism.with_data`.

        Parameters
        ----------
        count : int
            The number of rows. Where it is confidential it is 1, and nothing depends on it.
        epsilon : Fraction
            The budget.
        timing : {"auto", "constant", "unprotected"}
            The timing requirement.

        Returns
        -------
        Mechanism
        """

    def data(self, aggregate: Any, epsilon: Fraction) -> Any:
        """Return what the mechanism draws from: the aggregate, unless a statistic says otherwise.

        Parameters
        ----------
        aggregate : object
            What :meth:`aggregation` computed; confidential.
        epsilon : Fraction
            The budget.

        Returns
        -------
        object
            What the ``with_data`` of :meth:`public_half` takes; confidential.
        """
        return aggregate

    def count_of(self, aggregate: Any) -> int | None:
        """Return the number of rows of an aggregate, which is compared where it is public.

        Parameters
        ----------
        aggregate : object
            What :meth:`aggregation` computed.

        Returns
        -------
        int or None
            None where an aggregate does not tell.
        """
        count: int = aggregate.count
        return count

    def for_units(self, column: str, most: int) -> Statistic:
        """Return the statistic of people with several rows: here the same.

        Parameters
        ----------
        column : str
            The column that names them.
        most : int
            How many rows of each are kept.

        Returns
        -------
        Statistic
        """
        return self

    def over_groups(
        self, by: tuple[str, ...], groups: Mapping[str, tuple[Any, ...]]
    ) -> Statistic | None:
        """Return one statistic of all groups; here None: each group is aggregated by itself.

        Parameters
        ----------
        by : tuple of str
            The columns whose values tell the groups apart.
        groups : mapping from str to tuple
            The name of each group, and its value in each of these columns.

        Returns
        -------
        Statistic or None
        """
        return None

    def with_rho(self, concentrated: RhoBudget) -> Statistic:
        """Return the statistic for a ledger that counts in rho: here the same.

        Parameters
        ----------
        concentrated : RhoBudget
            What the ledger has of it.

        Returns
        -------
        Statistic
        """
        return self

    def rank_error(self, epsilon: Fraction, count: int | None) -> float | None:
        """Return how many ranks each value is from its quantile in 95% of releases.

        Parameters
        ----------
        epsilon : Fraction
            The budget.
        count : int or None
            The number of rows where it is public.

        Returns
        -------
        float or None
            None for what is no quantile.
        """
        return None

    def error_at(self, epsilon: Fraction, rows: int) -> float | None:
        """Return how far a release is from the exact value in 95% of releases, for a guess of rows.

        Parameters
        ----------
        epsilon : Fraction
            The budget.
        rows : int
            A guess of the number of rows, made without the table.

        Returns
        -------
        float or None
            None where the number of rows does not decide it.
        """
        return None

    @property
    def covers(self) -> str | None:
        """Return what the intervals hold, where it takes another sentence; by default None."""
        return None

    @property
    def postprocessing(self) -> Postprocessing:
        """Return the public map from a draw to the units of the data."""
        return Unchanged()

    @property
    def missing_rule(self) -> str:
        """Return what a missing value counts as, decided: one that needs whole rows drops them."""
        rule = check_missing(self.missing, self.adjacency, owner="a statistic")
        return "drop" if rule == "skip" else rule

    @property
    def missing_statement(self) -> str:
        """Return the rule for missing values as a sentence; empty where there is none."""
        return reading.MISSING_STATEMENTS[self.missing_rule]

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the guarantee rests on besides the mechanism's own assumptions."""
        return (reading.NOTHING_MISSING,) if self.missing == "error" else ()

    @property
    def context(self) -> CertificateContext:
        """Return what the certificate says about the statistic."""
        return CertificateContext(
            statistic=self.name, postprocessing=self.postprocessing, notes=self.notes
        )

    def public_mechanism(self, epsilon: Fraction, count: int | None, timing: str) -> Mechanism:
        """Return the mechanism before a row is read: what it says in public holds for every table.

        Parameters
        ----------
        epsilon : Fraction
            The budget.
        count : int or None
            The number of rows; it is looked at under 'replace' only, where it is public.
        timing : {"auto", "constant", "unprotected"}
            The timing requirement.

        Returns
        -------
        Mechanism

        Raises
        ------
        ParameterError
            If ``count`` is None under 'replace'.
        """
        if not self.adjacency.count_is_public:
            count = 1  # nothing public may depend on it, and any number will do
        elif count is None:
            raise ParameterError(
                "The number of rows must be given under replace, where it is public."
            )
        return self.public_half(count, epsilon, timing)

    def mechanism(self, aggregate: Any, epsilon: Fraction, timing: str) -> Mechanism:
        """Return the mechanism of an aggregate.

        Parameters
        ----------
        aggregate : object
            What :meth:`aggregation` computed; confidential.
        epsilon, timing
            As for :meth:`public_half`.

        Returns
        -------
        Mechanism
        """
        public = self.public_mechanism(epsilon, self.count_of(aggregate) or 0, timing)
        return public.with_data(self.data(aggregate, epsilon))


def listed(columns: Sequence[Column], labels: Sequence[str]) -> str:
    """Return the columns as certificates call them: by their labels, if they have any."""
    return ", ".join(labels or map(str, columns))


def named_or_one(columns: Sequence[Column], *, named: bool) -> Postprocessing:
    """Return the map to numbers by name, to the only number, or to the numbers as they are."""
    if not named:
        return Unchanged()
    return OneNumber() if len(columns) == 1 else ByName(labels=tuple(map(str, columns)))


def as_dates(shape: Postprocessing, *, dates: bool) -> Postprocessing:
    """Return the map to dates in this shape where numbers are days, else the shape itself."""
    return Dates(shape=shape) if dates else shape


def one_of_several(count: int, whole: str, epsilon: str) -> str:
    """Return the note of a certificate that was charged together with others."""
    return (
        f"one of {count} releases of this {whole}, which together cost epsilon = {epsilon} by basic"
        " composition"
    )


def check_missing(missing: str, adjacency: Adjacency, *, owner: str) -> str:
    """Return the rule for missing values, that of "auto" decided by the adjacency.

    Raise where it would move a public number of rows.
    """
    if missing == reading.AUTO_MISSING:
        return "middle" if adjacency.count_is_public else "skip"
    rule = reading.validate_missing(missing, owner=owner)
    if rule in ("drop", "skip") and adjacency.count_is_public:
        raise ParameterError(
            f"`missing` must not be {rule!r} under 'replace' adjacency: whether a value is left out"
            " would change the number of rows, which 'replace' treats as public. Use 'middle' or"
            " 'lower', or 'add-remove' adjacency."
        )
    return rule
