"""A release of a table from Python: what is public is settled, charged, and only then read.

>>> import pyarrow
>>> from expmech.adjacency import Adjacency
>>> from expmech.data import open_frame
>>> from expmech.statistics import CountOf
>>> visits = open_frame(pyarrow.table({"who": ["a", "a", "b"]}), name="visits")
>>> count = CountOf(adjacency=Adjacency.ADD_REMOVE)
>>> release(visits, count, epsilon=1000, unit="who", max_rows=1).value
2
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from expmech.adjacency import Adjacency
from expmech.data.rows import TableRows
from expmech.data.source import Source
from expmech.data.units import MOST_ROWS, Units
from expmech.errors import ParameterError, validate_integer
from expmech.ledger import Charge, Entry, Ledger, charges_noted, exact_amount
from expmech.release import Release
from expmech.samplers import Sampler
from expmech.samplers.choose import AUTO
from expmech.statistics import Settled, Statistic, public_count, settle

_OWNER = "release"


def release(
    source: Source,
    statistic: Statistic,
    *,
    epsilon: Any,
    ledger: Ledger | str | Path | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    sampler: Sampler | str = "auto",
    timing: str = AUTO,
    budget_seconds: float | None = None,
) -> Release:
    """Draw one statistic of a table, computed where the rows are.

    Parameters
    ----------
    source
        A table, from :func:`open_source` or :func:`open_frame`.
    statistic
        What is released: one of :mod:`expmech.statistics`.
    epsilon
        Budget: a number, or decimal text.
    ledger
        Charged before a row is read; a ledger of another data set or adjacency refuses. An error
        after that, Ctrl-C too, has a note that names the charge.
    unit, max_rows
        Where people have several rows: the column that names them, and how many rows of each
        count. Epsilon is then that of one unit added or removed, which the certificate says.
    sampler, timing, budget_seconds
        As for the estimators.
    """
    amount = exact_amount(epsilon, name="epsilon", owner=_OWNER)
    units = _units(unit, max_rows, statistic.adjacency)
    rows = TableRows(source=source if units is None else units.bound(source))
    options = {"sampler": sampler, "timing": timing, "budget_seconds": budget_seconds}
    settled = _settle(rows, statistic, amount, units, options)
    if ledger is None:
        return settled.release(rows.find(settled.request))
    path = ledger.path if isinstance(ledger, Ledger) else Path(ledger)
    with charges_noted(path, _charge(path, source, settled, amount, units)):
        return settled.release(rows.find(settled.request))


def _settle(
    rows: TableRows,
    statistic: Statistic,
    amount: Fraction,
    units: Units | None,
    options: dict[str, Any],
) -> Settled:
    """Return the public half; raise, before a row is read, where a release cannot be."""
    source = rows.source
    if statistic.adjacency.count_is_public and not source.keeps_all:
        raise ParameterError(
            "`query` needs 'add-remove' adjacency unless it only computes columns: how many rows"
            " its result has depends on the data."
        )
    of_a_row = amount if units is None else units.of_a_row(amount)
    request = statistic.request(of_a_row)
    rows.check(request)
    own = () if units is None else units.notes(amount)
    settled = settle(
        statistic,
        epsilon=of_a_row,
        count=public_count(rows, statistic.adjacency),
        premises=source.notes,
        notes=(*own, *rows.notes(request)),
        **options,
    )
    if units is not None and settled.certificate.delta:
        raise ParameterError("`unit` needs a pure release: name no sampler with a delta.")
    return settled


def _charge(
    path: Path,
    source: Source,
    settled: Settled,
    amount: Fraction,
    units: Units | None,
) -> list[Charge]:
    certificate, statistic = settled.certificate, settled.statistic
    entry = Entry(
        epsilon=amount,
        delta=certificate.delta,
        statement=statistic.name,
        certificate=certificate.to_json(),
        adjacency=str(statistic.adjacency) if units is None else units.adjacency,
    )
    return Ledger(path, data_set=source.names, members=source.members).charge_all([entry])


def _units(unit: str | None, max_rows: int | None, adjacency: Adjacency) -> Units | None:
    if (unit is None) != (max_rows is None):
        raise ParameterError(
            "`unit` and `max_rows` belong together: a column that names people, and how many rows"
            " of each count."
        )
    if unit is None or max_rows is None:
        return None
    if adjacency != Adjacency.ADD_REMOVE:
        raise ParameterError(
            "`unit` needs a statistic of 'add-remove' adjacency: neighbours differ by one unit more"
            " or less."
        )
    most = validate_integer(max_rows, name="max_rows", owner=_OWNER, low=1, high=MOST_ROWS)
    return Units(column=unit, max_rows=most)
