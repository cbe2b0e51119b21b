"""What noisy sums mean, one idea a file."""

from collections.abc import Mapping
from typing import Any

from expmech.errors import ParameterError
from expmech.release.meanings.base import Meaning
from expmech.release.meanings.counts import Counts
from expmech.release.meanings.means import Means, Shares
from expmech.release.meanings.totals import Totals
from expmech.release.meanings.variances import ThreeSums, Variances

MEANINGS: dict[str, type[Meaning]] = {
    kind.kind: kind for kind in (Counts, Means, Totals, Variances, ThreeSums)
}

__all__ = [
    "MEANINGS",
    "Counts",
    "Meaning",
    "Means",
    "Shares",
    "ThreeSums",
    "Totals",
    "Variances",
    "rebuild_meaning",
]


def rebuild_meaning(described: Mapping[str, Any]) -> Meaning:
    """Return the meaning that a certificate's domain describes; raise where there is none."""
    kind = MEANINGS.get(str(described["kind"]))
    if kind is None:
        raise ParameterError(f"`domain` must be of a known kind; got {described['kind']!r}.")
    return kind.rebuild(described)
