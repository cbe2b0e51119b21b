"""Bounds that nobody knows, on the command line and in Python: what is found, charged, refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from support.shell import fail_draw
from typer.testing import CliRunner

import expmech as em
from expmech.cli import release
from expmech.cli.main import app
from expmech.core.errors import DataError, ParameterError, ParameterTypeError
from expmech.core.markup import number_text
from expmech.estimators import (
    PrivateLogisticRegression,
    PrivateMean,
    PrivateQuantile,
    PrivateScaler,
    PrivateSum,
    PrivateVariance,
    check_pipeline,
)
from expmech.ledger import Ledger, LedgerError
from expmech.ledger.verification import verify_certificate

ROWS = 3000
AGES = np.random.default_rng(5).integers(18, 90, ROWS)
INCOMES = np.random.default_rng(6).uniform(17_000, 32_000, ROWS)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [
        f"person {k},{age},{income:.2f},"
        for k, (age, income) in enumerate(zip(AGES, INCOMES, strict=True))
    ]
    path.write_text("\n".join(["name,age,income,note", *rows]) + "\n")
    return path


@pytest.fixture
def account(people: Path) -> Path:
    path = people.with_suffix(".ledger")
    result = call("budget", "init", path, people, "--epsilon", "3")
    assert result.exit_code == 0, result.output
    return path


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


def shown(*arguments: object) -> Any:
    result = call("release", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def spent(account: Path) -> Fraction:
    return Ledger(account).spent[0]


def test_bounds_of_several_columns_are_charged_together_and_verified(
    people: Path, account: Path, tmp_path: Path
) -> None:
    columns = ("--column", "age", "--column", "income")
    written = tmp_path / "bounds.json"
    ages, incomes = shown(
        "bounds", people, *columns, "--epsilon", "1", "--ledger", account, "--output", written
    )
    assert [ages["statement"], incomes["statement"]] == ["bounds of age", "bounds of income"]
    assert ages["value"]["lower"] <= 18 < 89 <= ages["value"]["upper"] <= 256
    assert incomes["value"]["lower"] <= 17_000 < 32_000 <= incomes["value"]["upper"] <= 65_536
    assert [each["certificate"]["epsilon"] for each in (ages, incomes)] == [0.5, 0.5]
    assert spent(account) == 1
    checked = call("verify", written)
    assert checked.exit_code == 0, checked.output
    assert json.loads(written.read_text()) == [ages, incomes]


def test_a_record_of_other_bounds_is_not_verified(people: Path, tmp_path: Path) -> None:
    written = tmp_path / "bounds.json"
    shown("bounds", people, "--column", "age", "--epsilon", "1", "--output", written)
    record = json.loads(written.read_text())
    record["value"]["upper"] = 100.3  # no edge of a cell
    written.write_text(json.dumps(record))
    assert call("verify", written).exit_code != 0


@pytest.mark.parametrize("column", ["name", "note"])
def test_none_are_found_where_no_value_is_a_number_and_epsilon_is_spent(
    people: Path, account: Path, column: str
) -> None:
    arguments = ("bounds", people, "--column", column, "--epsilon", "1", "--ledger", account)
    result = call("release", *arguments)
    assert result.exit_code == 0, result.output
    assert f"bounds of {column}: none found" in result.output
    assert spent(account) == 1


def test_none_are_found_in_a_table_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("age\n")
    arguments = ("bounds", path, "--column", "age", "--epsilon", "1")
    assert shown(*arguments, "--adjacency", "add-remove")["value"] == "none found"
    refused = call("release", *arguments, "--adjacency", "replace")
    assert refused.exit_code != 0
    assert "no rows" in refused.output


def test_too_few_public_rows_are_refused_before_the_charge(people: Path, tmp_path: Path) -> None:
    account = tmp_path / "replace.ledger"
    made = call("budget", "init", account, people, "--epsilon", "3", "--adjacency", "replace")
    assert made.exit_code == 0, made.output
    arguments = ("bounds", people, "--column", "age", "--ledger", account, "--epsilon", "0.001")
    refused = call("release", *arguments)
    assert refused.exit_code != 0
    assert "rows are needed" in " ".join(refused.output.split())
    assert spent(account) == 0


PRIVATE = ("--bounds", "private", "--epsilon", "1")


@pytest.mark.parametrize("statistic", ["mean", "sum", "variance", "median", "quantile"])
def test_a_command_finds_bounds_first_and_the_ledger_holds_both_certificates(
    people: Path, account: Path, tmp_path: Path, statistic: str
) -> None:
    written = tmp_path / "release.json"
    given = ("--column", "age", *PRIVATE, "--ledger", account, "--output", written)
    bounds, record = shown(statistic, people, *given)
    assert bounds["statement"] == "bounds of age"
    assert [each["certificate"]["epsilon"] for each in (bounds, record)] == [0.2, 0.8]
    note = f"age from {number_text(bounds['value']['lower'])} to"
    assert any(note in text for text in record["certificate"]["assumptions"])
    history = Ledger(account).history()
    assert [charge.epsilon for charge in history] == [Fraction(1, 5), Fraction(4, 5)]
    assert [record["charge"] for record in (bounds, record)] == [1, 2]
    checked = call("verify", written, "--ledger", account)
    assert checked.exit_code == 0, checked.output


def test_a_command_shows_one_card_and_says_before_it_spends_when_it_will_fail(
    people: Path, account: Path
) -> None:
    result = call(
        *("release", "mean", people, "--column", "age", *PRIVATE, "--bounds-share", "0.3"),
        *("--ledger", account),
    )
    text = " ".join(result.output.split())
    assert "Private bounds need about 75 values of similar size in a column" in text
    assert "together cost epsilon = 1 by basic composition, of which the bounds cost 0.3" in text
    assert text.count("guarantee") == 1


def test_regressions_and_components_find_the_bounds_that_are_private(
    people: Path, account: Path
) -> None:
    target = ("--target", "income", "--target-bounds", "private")
    given = ("--column", "age", *target, "--ledger", account, "--epsilon", "1")
    bounds, record = shown("linear", people, "--bounds", "0,100", *given)
    assert [bounds["statement"], set(record["value"])] == [
        "bounds of income",
        {"intercept", "age"},
    ]
    both = shown("ridge", people, "--bounds", "private", *given)
    assert [each["certificate"]["epsilon"] for each in both] == [0.1, 0.1, 0.8]
    columns = ("--column", "age", "--column", "income", "--bounds", "0,100", "--bounds", "private")
    _, record = shown("pca", people, *columns, "--epsilon", "1", "--ledger", account)
    assert set(record["value"]["component 1"]) == {"age", "income"}


def test_private_bounds_are_of_the_whole_table_where_there_are_groups_or_people(
    tmp_path: Path,
) -> None:
    path = tmp_path / "visits.csv"
    rows = [f"{k % 1500},{'ab'[k % 2]},{age}" for k, age in enumerate(AGES)]
    path.write_text("\n".join(["who,side,age", *rows]) + "\n")
    given = ("--column", "age", "--bounds", "private", "--epsilon", "4")
    groups = ("--by", "side", "--groups", "a,b")
    bounds, record = shown("mean", path, *given, *groups, "--unit", "who", "--max-rows", "2")
    assert set(record["value"]) == {"a", "b"} and set(bounds["value"]) == {"lower", "upper"}
    assert [each["unit"]["epsilon"] for each in (bounds, record)] == ["0.8", "3.2"]


def test_a_command_that_finds_no_bounds_spends_their_share_and_no_more(
    people: Path, account: Path
) -> None:
    result = call("release", "mean", people, "--column", "note", *PRIVATE, "--ledger", account)
    assert result.exit_code != 0
    text = " ".join(result.output.split())
    assert "found no private bounds of note" in text and "Epsilon = 0.2 was spent" in text
    assert "go on with" not in text and spent(account) == Fraction(1, 5)


def test_a_command_is_refused_as_a_whole_before_bounds_are_paid(
    people: Path, account: Path
) -> None:
    for wrong in (
        ("mean", people, "--column", "age", "--bounds", "private", "--epsilon", "3.5"),
        ("median", people, "--column", "age", *PRIVATE, "--step", "0"),
        ("mean", people, "--column", "age", *PRIVATE, "--bounds-share", "1"),
        (
            "mean",
            people,
            "--column",
            "age",
            "--bounds",
            "0,9",
            "--bounds-share",
            ".1",
            *PRIVATE[2:],
        ),
        ("mean", people, "--column", "agee", *PRIVATE),
        ("mean", people, "--column", "age", *PRIVATE, "--sampler", "ConfAtomPerfectX"),
    ):
        refused = call("release", *wrong, "--ledger", account)
        assert refused.exit_code != 0, wrong
        assert Ledger(account).history() == [], wrong


@pytest.mark.parametrize("failing", [0, 1])
def test_a_charge_that_was_never_drawn_is_redeemed(
    people: Path, account: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Of the bounds: they are drawn, and the rest is released; of the statistic: it is drawn."""
    fail_draw(monkeypatch, failing)
    given = ("release", "mean", people, "--column", "age", *PRIVATE, "--ledger", account)
    stopped = call(*given)
    assert stopped.exit_code != 0 and f"--redeem {failing + 1}" in stopped.output
    again = call(*given, "--redeem", failing + 1, "--json")
    assert again.exit_code == 0, again.output
    bounds, record = json.loads(again.stdout)
    assert [bounds["charge"], record["charge"]] == [1, 2] and spent(account) == 1
    assert call(*given, "--redeem", failing + 1).exit_code != 0
    assert call(*given, "--bounds-share", "0.3", "--redeem", 2).exit_code != 0
    assert spent(account) == 1


def test_a_command_that_ended_between_its_charges_goes_on_once(
    people: Path, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds are charged and kept, and the statistic was not charged: --redeem charges it."""
    given = ("release", "mean", people, "--column", "age", *PRIVATE, "--ledger", account)
    charge_all = Ledger.charge_all

    def charge_bounds_alone(ledger: Ledger, entries: Any) -> Any:
        if ledger.history():
            raise KeyboardInterrupt
        return charge_all(ledger, entries)

    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "charge_all", charge_bounds_alone)
        stopped = call(*given)
    assert stopped.exit_code == 130 and "go on with" in stopped.output
    assert "--redeem 1" in stopped.output
    assert list(Ledger(account).outbox()) == [1] and spent(account) == Fraction(1, 5)
    again = call(*given, "--redeem", 1, "--json")
    assert again.exit_code == 0, again.output
    bounds, record = json.loads(again.stdout)
    assert [bounds["charge"], record["charge"]] == [1, 2] and spent(account) == 1
    refused = call(*given, "--redeem", 1)
    assert refused.exit_code != 0 and "was released already" in refused.output
    assert spent(account) == 1


def test_a_command_whose_second_charge_is_refused_does_not_say_that_nothing_was_charged(
    people: Path, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = release.draw

    def drawn(*arguments: Any) -> Any:  # while bounds are drawn, another process spends the rest
        left = Ledger(account).left[0]
        Ledger(account).charge(epsilon=left, statement="another", adjacency="add-remove")
        return draw(*arguments)

    monkeypatch.setattr(release, "draw", drawn)
    given = ("release", "mean", people, "--column", "age", *PRIVATE, "--ledger", account)
    refused = call(*given)
    text = " ".join(refused.output.split())
    assert refused.exit_code == 3, text
    assert "Nothing was charged" not in text and "Nothing more was charged." in text
    assert "Charge 1 was made; its value is kept" in text and "go on with" not in text


def test_a_charge_is_redeemed_between_its_own_bounds_though_another_run_came_between(
    people: Path, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("release", "mean", people, "--column", "age", *PRIVATE, "--ledger", account)
    draw = release.draw
    wide = {"lower": 0.0, "upper": 2.0**20}

    def interrupted(*arguments: Any) -> Any:  # while the bounds of one run are drawn, another runs
        with monkeypatch.context() as other:
            drawn: list[Any] = []

            def widened(*inner: Any) -> Any:
                drawn.append(draw(*inner))
                return drawn[0] | {"value": wide} if len(drawn) == 1 else drawn[-1]

            other.setattr(release, "draw", widened)
            assert call(*given).exit_code == 0
        monkeypatch.setattr(release, "draw", lambda *rest: refuse(DataError("It stopped.")))
        return draw(*arguments)

    with monkeypatch.context():
        monkeypatch.setattr(release, "draw", interrupted)
        stopped = call(*given)
    assert "--redeem 4" in " ".join(stopped.output.split()), stopped.output
    monkeypatch.setattr(release, "draw", draw)
    again = call(*given, "--redeem", 4, "--json")
    assert again.exit_code == 0, again.output
    assert [record["charge"] for record in json.loads(again.stdout)] == [1, 4]
    assert spent(account) == 2


def test_bounds_that_were_charged_together_are_redeemed_together(
    people: Path, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = ("--column", "age", "--column", "income", "--bounds", "private")
    given = ("release", "mean", people, *several, "--epsilon", 1, "--ledger", account)
    for _ in range(2):  # two runs that ended between the charge of their bounds and the draw
        with monkeypatch.context() as broken:
            broken.setattr(release, "aggregate_together", lambda _: refuse(DataError("No.")))
            assert call(*given).exit_code != 0
    again = call(*given, "--redeem", 3, "--json")
    assert again.exit_code == 0, again.output
    records = json.loads(again.stdout)
    assert [record["charge"] for record in records] == [3, 4, 5]


def refuse(error: Exception) -> None:
    raise error


PLAN = """
source = "people.csv"
ledger = "people.ledger"
[defaults]
epsilon = 0.5
bounds = "private"
[[release]]
statistic = "mean"
column = ["age", "income"]
bounds = [[0, 100], "private"]
[[release]]
statistic = "median"
column = "{column}"
bounds_share = 0.3
"""


def test_a_plan_file_finds_bounds_and_can_be_continued(people: Path, account: Path) -> None:
    plan = people.with_suffix(".toml")
    plan.write_text(PLAN.format(column="age"))
    forecast = call("release", "--plan", plan, "--dry-run")
    assert forecast.exit_code == 0 and "epsilon = 1. Nothing was charged" in forecast.output
    records = call("release", "--plan", plan, "--json")
    assert records.exit_code == 0, records.output
    statements = [record["statement"] for record in json.loads(records.stdout)]
    assert statements == [
        *("bounds of income", "mean of age, income"),
        *("bounds of age", "0.5-quantile of age"),
    ]
    assert spent(account) == 1
    again = call("release", "--plan", plan)
    assert again.exit_code != 0 and "--again" in again.output
    assert spent(account) == 1


def test_a_plan_whose_bounds_are_not_found_releases_the_others(people: Path, account: Path) -> None:
    plan = people.with_suffix(".toml")
    plan.write_text(PLAN.format(column="note"))
    for _ in range(2):  # to continue it charges nothing
        result = call("release", "--plan", plan)
        assert result.exit_code != 0
        text = " ".join(result.output.split())
        assert "found no private bounds of note" in text and "3 of 4 values" in text
        assert spent(account) == Fraction(65, 100)


def test_a_plan_whose_bounds_were_not_found_can_be_run_again(people: Path, account: Path) -> None:
    """No value of its run is to come, so --again charges for the whole plan, as for any other."""
    plan = people.with_suffix(".toml")
    plan.write_text(PLAN.format(column="note"))
    first = call("release", "--plan", plan)
    assert "--again charges for a new run" in " ".join(first.output.split())
    assert "nothing is charged a second time" not in " ".join(first.output.split())
    assert call("release", "--plan", plan, "--again").exit_code != 0
    assert spent(account) == 2 * Fraction(65, 100)
    assert call("release", "--plan", plan).exit_code != 0
    assert spent(account) == 2 * Fraction(65, 100)


def test_a_plan_with_a_value_to_come_is_continued_even_with_again(
    people: Path, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = people.with_suffix(".toml")
    plan.write_text(PLAN.format(column="age"))
    with monkeypatch.context() as broken:
        broken.setattr(release, "draw", lambda *given: refuse(DataError("The engine stopped.")))
        stopped = call("release", "--plan", plan)
    assert "nothing is charged a second time" in " ".join(stopped.output.split())
    assert call("release", "--plan", plan, "--again").exit_code == 0
    assert spent(account) == 1


def test_a_plan_says_from_which_epsilon_bounds_are_found() -> None:
    text = call("plan", "mean", "--bounds", "private", "--shown-from", 200).output
    assert text.startswith("epsilon = 0.555 is enough")
    found = json.loads(
        call("plan", "mean", "--bounds", "private", "--epsilon", "0.56", "--json").stdout
    )
    assert found[0]["shown_from"] <= 200 and [each["epsilon"] for each in found] == [0.112, 0.448]
    few = ("--adjacency", "replace", "--rows", 1000)
    assert call("plan", "bounds", *few, "--shown-from", 500).exit_code == 0
    assert call("plan", "count", "--universe", "text:8", "--shown-from", 100).exit_code == 0
    for wrong in (
        ("mean", "--bounds", "0,1", "--shown-from", 100),
        ("mean", "--bounds", "private", "--error", 1),
        ("mean", "--bounds", "private", "--epsilon", 1, "--shown-from", 100),
        ("bounds", *few, "--shown-from", 2000, "--epsilon", 1),
    ):
        assert call("plan", *wrong).exit_code != 0, wrong


FUNCTIONS = {
    "mean": em.mean,
    "sum": em.sum,
    "variance": em.variance,
    "median": em.median,
    "quantiles": em.quantiles,
}


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_function_finds_bounds_first_and_spends_the_epsilon_asked_for(
    tmp_path: Path, name: str, adjacency: str
) -> None:
    ledger = Ledger.create(
        tmp_path / "a.ledger", data_set="incomes", epsilon=1, adjacency=adjacency
    )
    release = FUNCTIONS[name](
        INCOMES, epsilon=1, bounds="private", bounds_share="0.3", adjacency=adjacency, ledger=ledger
    )
    (bounds,) = release.bounds
    assert [bounds.certificate.epsilon, release.certificate.epsilon] == [0.3, 0.7]
    statements = [charge.statement for charge in ledger.history()]
    assert statements[0] == f"{name}: bounds of x"
    assert len(statements) == 2
    assert ledger.left[0] == 0
    for each in (bounds, release):
        assert all(check.holds for check in verify_certificate(each.certificate))
    lower, upper = bounds.value["lower"], bounds.value["upper"]
    note = f"x from {number_text(lower)} to {number_text(upper)}"
    assert any(
        "found privately" in text and note in text for text in release.certificate.assumptions
    )
    assert "together cost epsilon = 1 by basic composition" in " ".join(str(release).split())


def test_a_function_reads_a_file_with_private_bounds(people: Path, account: Path) -> None:
    release = em.mean(
        people, column="age", epsilon=1, bounds="private", adjacency="add-remove", ledger=account
    )
    assert [charge.epsilon for charge in Ledger(account).history()] == [
        Fraction(1, 5),
        Fraction(4, 5),
    ]
    assert abs(release.value - AGES.mean()) < 10
    assert release.accuracy is not None
    assert em.mean(AGES, epsilon=1, bounds=(0, 100)).bounds == ()


def test_bounds_that_are_not_found_spend_their_share_and_no_more(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", data_set="few", epsilon=1, adjacency="add-remove")
    given: dict[str, Any] = {"epsilon": 1, "bounds": "private", "adjacency": "add-remove"}
    with pytest.raises(DataError, match=r"no private bounds of x.*Epsilon = 0\.2 was spent"):
        em.mean(INCOMES[:2], ledger=ledger, **given)
    assert ledger.spent[0] == Fraction(1, 5)


def test_what_the_ledger_cannot_pay_in_all_is_refused_before_bounds_are_paid(
    tmp_path: Path,
) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", data_set="incomes", epsilon="0.5")
    with pytest.raises(LedgerError):
        em.mean(INCOMES, epsilon=1, bounds="private", ledger=ledger)
    assert ledger.history() == []


def test_an_error_after_the_bounds_says_which_bounds_were_found(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", data_set="incomes", epsilon=1)
    # multiples of 1e-6 are few between 0 and 1 and too many between the bounds that are found
    with pytest.raises(ParameterError, match="step") as caught:
        em.median(INCOMES, epsilon=1, bounds="private", step="0.000001", ledger=ledger)
    assert "Give these as public bounds" in caught.value.__notes__[-1]
    assert ledger.spent[0] == Fraction(1, 5)


@pytest.mark.parametrize("share", [0, 1, "1.5", -0.1])
def test_a_share_is_strictly_between_0_and_1(share: Any) -> None:
    with pytest.raises(ParameterError, match="bounds_share"):
        em.mean(INCOMES, epsilon=1, bounds="private", bounds_share=share)


def test_a_seed_makes_both_releases_a_study() -> None:
    first, again = (em.mean(INCOMES, epsilon=1, bounds="private", random_state=3) for _ in range(2))
    assert first.value == again.value and first.bounds[0].value == again.bounds[0].value
    assert {each.certificate.kind for each in (first, *first.bounds)} == {"study, not a release"}


TABLE = np.column_stack([AGES, INCOMES])
ESTIMATORS: list[Any] = [
    PrivateMean(bounds="private"),
    PrivateSum(bounds="private"),
    PrivateVariance(bounds="private"),
    PrivateQuantile(bounds="private", joint=False),
    PrivateQuantile(q=[0.25, 0.75], bounds="private"),
]


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_an_estimator_finds_bounds_of_each_column_and_spends_epsilon(
    tmp_path: Path, estimator: Any, adjacency: str
) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", data_set="people", epsilon=2, adjacency=adjacency)
    fitted = clone(estimator).set_params(epsilon=2, ledger=ledger, adjacency=adjacency).fit(TABLE)
    first, second, *rest = ledger.history()
    owner = type(estimator).__name__
    assert [first.statement, second.statement] == [
        f"{owner}: bounds of column 0",
        f"{owner}: bounds of column 1",
    ]
    assert first.epsilon == second.epsilon == Fraction(1, 5)
    assert ledger.left[0] == 0 and len(rest) >= 1
    (low, high), (least, largest) = fitted.bounds_
    assert low <= 18 < 89 <= high <= 512 and least <= 17_000 < 32_000 <= largest <= 131_072
    certificates = [fitted.certificate_, *fitted.bounds_certificates_]
    assert len(certificates) == 3
    for certificate in certificates:
        assert all(check.holds for check in verify_certificate(certificate))
    assert any("found privately" in text for text in fitted.certificate_.assumptions)


def test_an_estimator_that_finds_bounds_of_some_columns_says_which() -> None:
    few = np.column_stack([INCOMES, np.full(ROWS, np.nan)])
    mean = PrivateMean(bounds="private", adjacency="add-remove", epsilon=2)
    with pytest.raises(DataError, match=r"of column 1: .*now: column 0 from [\d,]+ to"):
        mean.fit(few)
    assert not hasattr(mean, "mean_")


def test_estimators_of_given_bounds_keep_them() -> None:
    mean = PrivateMean(bounds=(0, 100)).fit(TABLE)
    assert mean.bounds_ == ((0.0, 100.0), (0.0, 100.0))
    assert mean.bounds_certificates_ == ()


def test_an_estimator_refuses_other_words_for_bounds() -> None:
    with pytest.raises(ParameterTypeError, match="bounds"):
        PrivateMean(bounds="secret").fit(TABLE)
    with pytest.raises(ParameterError, match="bounds_share"):
        PrivateMean(bounds="private", bounds_share=2).fit(TABLE)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_scaler_maps_private_bounds_to_a_range_and_stands_before_a_model(
    tmp_path: Path, adjacency: str
) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", data_set="people", epsilon=5, adjacency=adjacency)
    scaler = PrivateScaler(epsilon=2, ledger=ledger, adjacency=adjacency, feature_range=(0, 1))
    model = PrivateLogisticRegression(
        epsilon=3, bounds_X=(0, 1), classes=[False, True], ledger=ledger, adjacency=adjacency
    )
    if adjacency == "add-remove":
        model.set_params(rows=ROWS)
    pipeline = make_pipeline(scaler, model)
    assert check_pipeline(pipeline).stands
    pipeline.fit(TABLE, AGES > 50)
    assert [charge.epsilon for charge in ledger.history()] == [1, 1, 3] and ledger.left[0] == 0
    for certificate in scaler.bounds_certificates_:
        assert all(check.holds for check in verify_certificate(certificate))
    (low, high), _ = scaler.bounds_
    rows = [[low - 5, 20_000], [high + 5, 20_000], [(low + high) / 2, np.nan]]
    scaled = scaler.transform(rows)
    assert scaled[:, 0].tolist() == [0.0, 1.0, 0.5] and np.isnan(scaled[2, 1])
    assert pipeline.score(TABLE, AGES > 50) > 0.6


def test_a_scaler_refuses_what_is_no_range_and_says_what_it_spent(tmp_path: Path) -> None:
    for wrong in ((1, 0), (0, 0), "ab", (0, 1, 2), (0, float("inf"))):
        with pytest.raises(ParameterError, match="feature_range"):
            PrivateScaler(feature_range=wrong).fit(TABLE)
    ledger = Ledger.create(tmp_path / "a.ledger", data_set="few", epsilon=1, adjacency="add-remove")
    with pytest.raises(DataError, match=r"Epsilon = 1 was spent on bounds\. Give"):
        PrivateScaler(adjacency="add-remove", ledger=ledger).fit([[1.0], [2.0]])
