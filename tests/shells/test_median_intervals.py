"""What a median says of its accuracy, and what its interval costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import expmech as em
from expmech.cli.main import app
from expmech.ledger.verification import verify_certificate
from expmech.tables.release import PreparedRelease
from expmech.tables.sources import open_source

AGES = [31.0, 48.0, 52.0, 77.0, 64.0, 23.0, 40.0, 35.0]


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


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
            assert "together cost epsilon = 0.9" in " ".join(str(each.certificate).split())
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


def test_the_command_shows_one_card_of_three_releases_that_verify(tmp_path: Path) -> None:
    file, ledger, kept = (str(tmp_path / name) for name in ("a.csv", "a.ledger", "kept.json"))
    Path(file).write_text("age\n" + "\n".join(str(k % 90) for k in range(1000)) + "\n")
    asked = ["release", "median", file, "--column", "age", "--bounds", "0,100", "--step", "1"]
    asked += ["--epsilon", "0.9", "--interval-share", "0.6", "--ledger", ledger]
    assert invoke("budget", "init", ledger, file, "--epsilon", "2").exit_code == 0
    assert "`--rows` of a quantile must be given" in invoke(*asked).output
    assert (
        "needs one level and one column"
        in invoke(*asked, "--rows", "9", "--by", "age", "--groups", "9").output
    )
    for wrong in (["--rows", "9"], ["--rows", "1000", "--interval-share", "1"]):
        result = invoke(*asked, *wrong)
        assert result.exit_code == 1 and "`--interval-share` of a quantile must" in result.output
    assert not list(em.Ledger(Path(ledger)).history())

    shown = invoke(*asked, "--rows", "1000", "--output", kept)
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    assert shown.output.count("guarantee") == 1 and "guarantee epsilon = 0.9:" in text
    assert [float(charge.epsilon) for charge in em.Ledger(Path(ledger)).history()] == [
        0.36,
        0.27,
        0.27,
    ]
    values = [record["value"] for record in json.loads(Path(kept).read_text())]
    interval = f"95% interval {min(values):g} to {max(values):g}"
    assert text.startswith(f"median of age: {values[0]:g} {interval} In at least 95%")
    assert "if at least 1,000 rows have a value" in text
    assert "All 3 releases stand" in invoke("verify", kept, "--ledger", ledger).output
    report = invoke("report", ledger).output
    assert f"| {values[0]:g} | {min(values):g} to {max(values):g} |" in report

    verbose = invoke(*asked[:-2], "--rows", "1000", "--verbose").output
    assert verbose.count("Differential privacy certificate") == 3
    assert "epsilon = 0.36 (pure)" in verbose and "epsilon = 0.9 (pure)" not in verbose

    plan = tmp_path / "day.toml"
    plan.write_text(
        f'source = "{file}"\nledger = "{ledger}"\nadjacency = "add-remove"\n[[release]]\n'
        'statistic = "median"\ncolumn = "age"\nbounds = [0, 100]\nstep = "1"\nepsilon = "0.9"\n'
        'interval_share = "0.6"\nrows = 1000\n'
    )
    result = invoke("release", "--plan", str(plan))
    assert result.exit_code == 0 and "95% interval" in result.output, result.output
    assert result.output.count("median of age") == 1
    assert invoke("report", ledger).output.count("| Value | 95% interval |") == 2


def test_a_stop_between_the_draws_names_each_charge_and_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, ledger = str(tmp_path / "s.csv"), str(tmp_path / "s.ledger")
    pd.DataFrame({"v": np.arange(2000) % 101}).to_csv(source, index=False)
    assert invoke("budget", "init", ledger, source, "--epsilon", "1").exit_code == 0
    asked = ["release", "median", source, "--ledger", ledger, "--column", "v", "--bounds", "0,100"]
    asked += ["--step", "1", "--epsilon", "0.9", "--interval-share", "0.5", "--rows", "1500"]
    draw, drawn = PreparedRelease.release, list[PreparedRelease]()

    def stopped(prepared: PreparedRelease, aggregate: Any) -> Any:
        drawn.append(prepared)
        if len(drawn) == 2:
            raise KeyboardInterrupt
        return draw(prepared, aggregate)

    with monkeypatch.context() as patch:
        patch.setattr(PreparedRelease, "release", stopped)
        result = invoke(*asked)
    assert result.exit_code == 130
    assert "Charge 1 was made; its value is kept" in result.stderr
    for number in ("2", "3"):
        assert f"--redeem {number}" in result.stderr
        redeemed = invoke(*asked, "--redeem", number)
        assert redeemed.exit_code == 0 and "quantile of v" in redeemed.stdout
        assert "95% interval" not in redeemed.stdout.splitlines()[1]  # it is one end alone
        assert invoke(*asked, "--redeem", number).exit_code != 0
    assert float(em.Ledger(ledger).spent[0]) == 0.9
