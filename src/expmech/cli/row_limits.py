"""`--max-rows auto`: a release of a row limit, then that of the statistic of the rows it keeps.

The command of the statistic is read twice: with a limit that stands in, so that what is refused is
refused before anything is charged, and with the limit that was found. Page:
docs/guides/people_with_several_rows.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from expmech.ledger.entries import read_certificate
from expmech.tables.release import PreparedRelease, ReleaseRequest
from expmech.tables.row_limits import STAND_IN, RowLimitSearch

if TYPE_CHECKING:
    from expmech.cli.release import ReleaseCommand


@dataclass(frozen=True, kw_only=True)
class LimitedCommand:
    """How the row limit of a command is found, and the command that follows.

    ``make`` takes the limit, notes, and the charge that is redeemed, if any.
    """

    search: RowLimitSearch
    make: Callable[[int, tuple[str, ...], int | None], ReleaseCommand]
    found: ClassVar[str] = "row limit"

    def request(self, command: ReleaseRequest) -> ReleaseRequest:
        """Return what is asked of the release of the limit."""
        return ReleaseRequest(
            epsilon=self.search.search_epsilon, timing=command.timing, units=self.search.units
        )

    def announcement(self, prepared: Sequence[PreparedRelease]) -> str:
        """Return what is said before it is spent."""
        return self.search.announcement

    def stand_in(self) -> ReleaseCommand:
        """Return the command for a limit that stands in for the one that is not known yet."""
        later = self.make(STAND_IN, (), None)
        return replace(later, bounded=(self, *later.bounded))

    def after(self, values: Sequence[Any], redeem: int | None) -> ReleaseCommand:
        """Return the command for the released limit."""
        (limit,) = values
        return self.make(limit, (self.search.note(limit),), redeem)

    def stands_in(self, certificate: str, values: Sequence[Any]) -> bool:
        """Return whether a certificate of what follows notes this released limit."""
        read = read_certificate(certificate)
        return read is not None and self.search.note(values[0]) in read.assumptions
