"""What a median says of its accuracy, and what its interval costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expmech as em
from expmech.ledger.verification import verify_certificate
from expmech.tables.sources import open_source

AGES = [31.0, 48.0, 52.0, 77.0, 64.0, 23.0, 40.0, 35.0]


def test_an_interval_of_a_median_is_three_releases_that_cost_epsilon(tmp_path: Path) -> None:
    table = pd.DataFrame({"age": np.arange(1000) % 90})
    table.to_csv(tmp_path / "many.csv", index=False)
    given: dict[str, Any] = {"epsilon": "0.9", "bounds": (0, 100), "step": 1, "column": "age"}
    file = tmp_path / "many.csv"
    listed: dict[str, Any] = {"adjacency": "add-remove", "rows": 1000}
    for data, names, more in (
        (table, "many", {}),
        (file, open_source(str(file)).names[0], listed),
    ):
        ledger = em.Ledger.create(
            tmp_path / f"{len(more)}.ledger",
            data_set=names,
            epsilon=1,
            adjacency=more.get("adjacency", "replace"),
        )
        release = em.median(data, **given, **more, interval_share="0.6", ledger=ledger)
        assert [float(each.epsilon) for each in ledger.history()] == [0.36, 0.27, 0.27]
        assert release.accuracy is not None
        lower, upper = release.accuracy.lower, release.accuracy.upper
        assert {lower, upper} <= {release.value, *(end.value for end in release.ends)}
        assert 0 <= lower <= release.value <= upper <= 100
        for each in (release, *release.ends):
            assert all(check.holds for check in verify_certificate(each.certificate))
            assert "together cost epsilon = 0.9" in str(each.certificate)
        shown = " ".join(str(release).split())
        assert "epsilon = 0.9:" in shown and "95% interval" in shown
        assert ("if at least 1,000 rows have a value" in shown) is bool(more)


def test_an_interval_that_cannot_be_is_refused_for_nothing(tmp_path: Path) -> None:
    ledger = em.Ledger.create(tmp_path / "a.ledger", data_set="ages", epsilon=1)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"interval_share": 0.5}, "inside the bounds"),
        ({"interval_share": 1}, "below 1"),
        ({"interval_share": -0.1}, "interval_share"),
        ({"interval_share": 0.5, "adjacency": "add-remove"}, "`rows` of median must be given"),
        ({"interval_share": 0.5, "rows": 100}, "leave it out"),
        ({"rows": 100}, "leave it out"),
        ({"interval_share": 0.5, "adjacency": "add-remove", "rows": 0}, "rows"),
    ]
    for more, words in wrong:
        with pytest.raises(em.ParameterError, match=words):
            em.median(AGES, epsilon=1, bounds=(0, 100), ledger=ledger, **more)
    assert not list(ledger.history())


def test_the_text_of_a_quantile_says_how_near_it_is_in_ranks() -> None:
    given: dict[str, Any] = {"epsilon": 1, "bounds": (0, 100), "random_state": 1}
    for release in (em.median(AGES, **given), em.quantiles(AGES, **given)):
        assert "ranks of the true quantile" in " ".join(str(release).split())
        assert "ranks of the true quantile" in release._repr_html_()
    other = em.median([1.0] * 8, **given)  # the same sentence for any data
    assert other.accuracy_statement == em.median(AGES, **given).accuracy_statement
    assert em.mean(AGES, **given).accuracy_statement == ""
