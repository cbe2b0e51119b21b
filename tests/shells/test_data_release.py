"""Releases of tables from Python: charged first, and people with several rows bounded."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas
import pytest

import expmech as em
from expmech.core.adjacency import Adjacency, adjacency_of_units
from expmech.core.errors import ExpmechError
from expmech.ledger import Ledger, LedgerError
from expmech.ledger.verification import verify_certificate
from expmech.tables.release import release
from expmech.tables.sources.opening import open_frame, open_source
from expmech.tables.sources.source import Source
from expmech.tables.statistics import CountOf, Mean, QuantileOf

ADDED = Adjacency.ADD_REMOVE


def frame() -> pandas.DataFrame:
    """Return three visits of each of a hundred people, and some that name nobody."""
    who = [f"p{k % 100}" for k in range(300)] + [None] * 20
    return pandas.DataFrame({"who": who, "cost": [float(k % 50) for k in range(320)]})


@pytest.fixture(params=["frame", "csv"])
def visits(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    if request.param == "frame":
        return open_frame(frame(), name="visits")
    frame().to_csv(tmp_path / "visits.csv", index=False)
    return open_source(str(tmp_path / "visits.csv"))


def cost(adjacency: Adjacency) -> Mean:
    return Mean(columns=("cost",), bounds=((0.0, 50.0),), adjacency=adjacency, named=True)


def test_a_bound_on_units_is_that_of_the_command_line(visits: Source, tmp_path: Path) -> None:
    ledger = Ledger.create(
        tmp_path / "ledger",
        data_set=visits.identity,
        epsilon="6000",
        adjacency=adjacency_of_units("who"),
    )
    with closing(visits):
        for most, expected in ((1, 100), (2, 200), (9, 300)):
            asked: dict[str, Any] = {"epsilon": 2000, "unit": "who", "max_rows": most}
            found = release(visits, CountOf(adjacency=ADDED), ledger=ledger, **asked)
            assert found.value == expected
            certificate = found.certificate
            assert certificate.epsilon == pytest.approx(2000 / most)
            told = " ".join(certificate.assumptions)
            assert f"at most {most} rows are kept" in told
            assert "epsilon = 2000 for one who added or removed" in told
            assert all(check.holds for check in verify_certificate(certificate))
        assert ledger.spent[0] == 6000
        with pytest.raises(LedgerError, match="who"):  # a ledger of people, not of rows
            release(visits, CountOf(adjacency=ADDED), epsilon="0.001", ledger=ledger.path)


def test_a_release_of_rows_is_charged_and_near_the_truth(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", data_set="visits", epsilon="1000")
    with closing(open_frame(frame(), name="visits")) as source:
        found = release(source, cost(Adjacency.REPLACE), epsilon="999.5", ledger=ledger)
        assert found.value == pytest.approx(frame()["cost"].mean(), abs=0.1)
        assert found.accuracy is not None
        assert ledger.spent[0] == Fraction("999.5")
        median = QuantileOf(
            column="cost", bounds=(0.0, 50.0), q=Fraction(1, 2), adjacency=Adjacency.REPLACE
        )
        assert 20.0 < release(source, median, epsilon=50).value < 28.0
    with closing(open_frame(frame(), name="another")) as source, pytest.raises(LedgerError):
        release(source, cost(Adjacency.REPLACE), epsilon="0.1", ledger=ledger)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"unit": "who"}, "belong together"),
    ({"max_rows": 2}, "belong together"),
    ({"unit": "whom", "max_rows": 2}, "no column 'whom'"),
    ({"unit": "who", "max_rows": 0}, "max_rows"),
    ({"unit": "who", "max_rows": 1 << 20, "epsilon": "0.1"}, "at least 2\\^-20"),
    ({"unit": "who", "max_rows": 2, "sampler": em.Metropolis(delta=1e-6)}, "sampler|pure"),
    ({"epsilon": -1}, "epsilon"),
]


@pytest.mark.parametrize(("asked", "told"), WRONG, ids=lambda one: str(one)[:30])
def test_mistakes_are_told_and_cost_nothing(
    asked: dict[str, Any], told: str, tmp_path: Path
) -> None:
    relation = adjacency_of_units("who")
    ledger = Ledger.create(
        tmp_path / "ledger",
        data_set="visits",
        epsilon="9",
        adjacency=relation,
        delta=1e-3,
        composition="basic",
    )
    given: dict[str, Any] = {"epsilon": 1, "ledger": ledger} | asked
    with closing(open_frame(frame(), name="visits")) as source:
        with pytest.raises(ExpmechError, match=told):
            release(source, cost(ADDED), **given)
        with pytest.raises(ExpmechError, match="add-remove"):
            release(source, cost(Adjacency.REPLACE), epsilon=1, unit="who", max_rows=2)
    assert ledger.spent[0] == 0
