"""What a command finds first, with a share of epsilon: `--bounds private` and `--max-rows auto`.

The options are read twice: with bounds or a limit that stand in, so that what is refused is refused
before anything is charged, and with those that were found. Pages:
docs/guides/bounds_nobody_knows.md and people_with_several_rows.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from expmech.certificates.postprocessing import FoundBounds
from expmech.cli.columns import for_each, unnamed
from expmech.core.adjacency import Adjacency
from expmech.core.errors import ParameterError
from expmech.core.rounding import EPSILON_MIN
from expmech.domains.regions import decimal_fraction
from expmech.ledger.amounts import show_amount
from expmech.ledger.entries import read_certificate
from expmech.tables.release import PreparedRelease, ReleaseRequest
from expmech.tables.scaling import Bounds
from expmech.tables.searches import (
    DEFAULT_SHARE,
    PRIVATE,
    BoundsSearch,
    RowLimitSearch,
    Search,
    parse_share,
)

if TYPE_CHECKING:
    from expmech.cli.release import ReleaseCommand, ReleaseLine


@dataclass(frozen=True, kw_only=True)
class SearchCommand(ABC):
    """How something that a command needs is found first, and the command that follows."""

    search: Search
    line: ReleaseLine
    found: ClassVar[str]

    @abstractmethod
    def request(self, command: ReleaseRequest) -> ReleaseRequest:
        """Return what is asked of the release of what is found."""

    @abstractmethod
    def announcement(self, prepared: Sequence[PreparedRelease]) -> str:
        """Return what is said before it is spent."""

    @abstractmethod
    def command(self, given: Any, notes: tuple[str, ...], redeem: int | None) -> ReleaseCommand:
        """Return the command for what was found, or for what stands in for it."""

    def stand_in(self) -> ReleaseCommand:
        """Return the command for what stands in for what is not known yet."""
        later = self.command(self.search.stand_in, (), None)
        return replace(later, bounded=(self, *later.bounded), options=self.line.options)

    def after(self, values: Sequence[Any], redeem: int | None) -> ReleaseCommand:
        """Return the command for released values; raise where nothing was found."""
        given = self.search.given(values)
        return self.command(given, (self.search.note(given),), redeem)

    def stands_in(self, certificate: str, values: Sequence[Any]) -> bool:
        """Return whether a certificate of the statistic notes these released values."""
        read = read_certificate(certificate)
        if read is None or FoundBounds.none in values:
            return False
        return self.search.note(self.search.given(values)) in read.assumptions


@dataclass(frozen=True, kw_only=True)
class BoundedCommand(SearchCommand):
    """How the bounds of a command are found, and the command that follows."""

    search: BoundsSearch
    found = "bounds"

    def request(self, command: ReleaseRequest) -> ReleaseRequest:
        return ReleaseRequest(
            epsilon=self.search.search_epsilon,
            timing=command.timing,
            units=command.units,
            notes=command.notes,
        )

    def announcement(self, prepared: Sequence[PreparedRelease]) -> str:
        """Return from how many rows on bounds are found."""
        shown_from = max(each.certificate.sampler["shown_from"] for each in prepared)
        return (
            f"Private bounds need about {shown_from} values of similar size in a column: they are"
            " then found in at least 95% of releases. Their share of epsilon is spent in any case."
        )

    def command(self, given: Any, notes: tuple[str, ...], redeem: int | None) -> ReleaseCommand:
        own = with_bounds(self.line.own, dict(zip(self.search.labels, given, strict=True)))
        return self.line.later(self.search.rest, notes, redeem, own=own).between_bounds()


@dataclass(frozen=True, kw_only=True)
class LimitedCommand(SearchCommand):
    """How the row limit of a command is found, and the command that follows."""

    search: RowLimitSearch
    found = "row limit"

    def request(self, command: ReleaseRequest) -> ReleaseRequest:
        return ReleaseRequest(
            epsilon=self.search.search_epsilon, timing=command.timing, units=self.search.units
        )

    def announcement(self, prepared: Sequence[PreparedRelease]) -> str:
        return self.search.announcement

    def command(self, given: Any, notes: tuple[str, ...], redeem: int | None) -> ReleaseCommand:
        place = replace(self.line.place, max_rows=str(given))
        return self.line.later(self.search.rest, notes, redeem, place=place).command()


def bounds_search(
    own: Mapping[str, Any],
    share: str | None,
    *,
    epsilon: Fraction,
    adjacency: Adjacency,
    missing: str,
    owner: str,
) -> BoundsSearch | None:
    """Return how private bounds are found; None where all bounds are public."""
    names = tuple(name for name, text in _bounds_of(own) if text.strip().lower() == PRIVATE)
    if not names:
        if share is not None:
            raise ParameterError(
                f"`--bounds-share` of {owner} belongs to private bounds: give --bounds private, or"
                " leave it out."
            )
        return None
    step = own.get("step")
    search = BoundsSearch(
        columns=names,
        labels=names,
        epsilon=epsilon,
        share=parse_share(share or DEFAULT_SHARE, name="--bounds-share", owner=owner),
        adjacency=adjacency,
        missing=missing,
        owner=owner,
        step=None if step is None else decimal_fraction(step, name="--step", owner=owner),
    )
    if min(search.column_epsilon, search.rest) < EPSILON_MIN:
        raise ParameterError(
            f"`--epsilon` of {owner} must leave the bounds of each column, and the statistic, at"
            f" least 2^-20; got {show_amount(epsilon)}."
        )
    return search


def with_bounds(own: Mapping[str, Any], pairs: Mapping[str, Bounds]) -> dict[str, Any]:
    """Return the options of a statistic with these bounds in the place of private ones."""
    texts = {name: f"{lower!r},{upper!r}" for name, (lower, upper) in pairs.items()}
    given = [
        texts[name] if text.strip().lower() == PRIVATE else text for name, text in _bounds_of(own)
    ]
    if "table" not in own:
        return {**own, "bounds": given}
    changed: dict[str, Any] = {"bounds": given}
    if hasattr(own["table"], "target_bounds"):
        *changed["bounds"], changed["target_bounds"] = given
    return {**own, "table": replace(own["table"], **changed)}


def _bounds_of(own: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return every column with its bounds as they were given, the target last; a plan has none."""
    fields = vars(own["table"]) if "table" in own else own
    bounds = fields.get("bounds")
    if not bounds:
        return []
    columns = fields["column"] if "column" in fields else unnamed(bounds)
    pairs = list(zip(columns, for_each(columns, bounds, "--bounds"), strict=True))
    if "target_bounds" in fields:
        pairs.append((fields["target"], fields["target_bounds"]))
    return pairs
