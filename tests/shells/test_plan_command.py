"""`expmech plan`: public quantities in, a plan out."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import expmech as em
from expmech.cli.main import app

COMMANDS = {
    "mean": "mean --bounds 0,100 --bounds 0,1 --rows 1000 --epsilon 1",
    "quantile": "quantile --bounds 0,100 --rows 1000 --epsilon 0.5 --q 0.9",
    "ridge": "ridge --features 3 --rows 1000 --epsilon 1 --radius 1 --penalty 1",
    "ridge, add-remove": "ridge --features 3 --epsilon 1 --adjacency add-remove",
    "linear": "linear --features 3 --rows 1000 --epsilon 1",
    "logistic": "logistic --features 3 --rows 1000 --epsilon 1",
    "pca": "pca --features 3 --rows 1000 --epsilon 1 --components 2",
    "ten classes": "logistic --features 3 --classes 10 --epsilon 1 --adjacency add-remove",
    "log-likelihood": "logistic --features 3 --rows 1000 --epsilon 1 --law log-likelihood",
    "select": "select --candidates 20 --rows 1000 --epsilon 1",
    "select, add-remove": "select --candidates 20 --epsilon 1 --adjacency add-remove",
}


def run(command: str) -> Any:
    """Plan; where the number of rows is given, it is public."""
    name, *words = command.split()
    public = ["--adjacency", "replace"] if "--rows" in words else []
    return CliRunner().invoke(app, ["plan", name, *public, *words])


def planned(command: str) -> dict[str, Any]:
    result = run(f"{command} --json")
    assert result.exit_code == 0, result.output
    record: dict[str, Any] = json.loads(result.output)
    return record


@pytest.mark.parametrize("name", COMMANDS)
def test_plan_names_what_auto_takes_and_why_others_do_not_apply(name: str) -> None:
    result, record = run(COMMANDS[name]), planned(COMMANDS[name])
    assert result.exit_code == 0
    if name == "mean":
        assert record["chosen"] == "NoisyMean"  # which is what `release mean` takes
    else:
        assert record["chosen"] in [
            option["name"] for option in record["options"] if option["applies"]
        ]
        assert result.output.splitlines()[1].startswith(f"  method        {record['chosen']}")
        assert result.output.splitlines()[2].startswith("  error         ")
    assert "Does not apply" not in result.output and "years" not in result.output
    verbose = run(f"{COMMANDS[name]} --verbose").output
    assert verbose.startswith(result.output) and f"* {record['chosen']}" in verbose
    assert all(option["name"] in verbose for option in record["options"])
    for option in record["options"]:
        assert option["applies"] == ("reason" not in option)
        if option["applies"]:
            low, high = option["expected"]
            # noise on a sum or a gradient, or a direction, evaluates no loss
            direct = ("NoisyMean", "PerturbedOptimum", "PrincipalDirection")
            least = 0 if record["chosen"] in direct else 1
            assert low is None or high is None or least <= low <= high


def test_plan_of_a_ridge_is_that_of_the_release() -> None:
    """Whatever the data: the same mechanism on real rows has the same plan."""
    rng = np.random.default_rng(1)
    features = np.column_stack([np.ones(1000), rng.uniform(-1, 1, (1000, 3))])
    loss = em.losses.RidgeGradient(features, rng.uniform(-1, 1, 1000), penalty=1.0, radius=1.0)
    plan = em.ExponentialMechanism(loss=loss, domain=em.L1Ball(4, 1.0)).plan(Fraction(1))
    record = planned(COMMANDS["ridge"])
    assert {name: record[name] for name in plan.describe()} == json.loads(
        json.dumps(plan.describe())
    )


def test_constant_timing_takes_a_constant_sampler() -> None:
    record = planned("quantile --bounds 0,100 --rows 100 --epsilon 1 --bits 8 --timing constant")
    chosen = next(option for option in record["options"] if option["name"] == record["chosen"])
    assert chosen["timing"] == "constant" and chosen["delta"] == 0.0


def test_a_ridge_in_constant_time_is_planned_on_the_domain_it_is_released_on(
    tmp_path: Path,
) -> None:
    record = planned(
        "ridge --features 1 --rows 60 --epsilon 0.1 --radius 0.5 --penalty 1 --timing constant"
    )
    source = tmp_path / "line.csv"
    source.write_text("x,z\n" + "".join(f"{k},{k / 2}\n" for k in range(60)))
    asked = (
        f"release ridge {source} --column x --bounds 0,60 --target z --target-bounds 0,30 --epsilon"
        " 0.1 --radius 0.5 --penalty 1 --adjacency replace"
    )
    result = CliRunner().invoke(app, [*asked.split(), "--timing", "constant", "--json"])
    assert result.exit_code == 0, result.output
    certificate = json.loads(result.stdout)["certificate"]
    assert certificate["domain"]["kind"] == "Box" and certificate["timing"] == "constant"
    assert (
        record["chosen"] == "Metropolis, pure" and certificate["sampler"]["sampler"] == "Metropolis"
    )
    chosen = next(option for option in record["options"] if option["name"] == record["chosen"])
    assert (
        chosen["typical"] == certificate["sampler"]["steps"] + 1
    )  # its starting point is evaluated too


def test_mean_under_add_remove_needs_no_sampler() -> None:
    result = run("mean --bounds 0,1 --epsilon 1")  # the default
    assert result.exit_code == 0 and "noisy count" in result.output


def test_a_plan_says_that_a_guess_of_rows_would_tell_the_error() -> None:
    hint = "depends on the number of rows: give a guess by --rows"
    assert hint in run("mean --bounds 0,1 --epsilon 1").output
    assert hint not in run("mean --bounds 0,1 --epsilon 1 --rows 100").output
    assert hint not in run("count --epsilon 1").output
    linear = run("linear --features 2 --epsilon 1").output
    assert "not known before the release" in linear and hint not in linear


@pytest.mark.parametrize("columns", [1, 3])
def test_a_guess_of_rows_tells_the_error_of_a_mean_and_nothing_else(columns: int) -> None:
    bounds = " ".join(["--adjacency add-remove", *["--bounds 0,100"] * columns])
    without, few, many = (
        json.loads(run(f"mean {bounds} --epsilon 0.5 --json{rows}").output)
        for rows in ("", " --rows 1000", " --rows 100000")
    )
    assert without["error"] is None
    assert {**few, "error": None} == {**many, "error": None} == without
    enough = run(f"mean {bounds} --error {1.001 * few['error']:.6f} --rows 1000").output
    assert re.search(r"^epsilon = 0\.(5|49\d) is enough", enough)
    rows = np.random.default_rng(4).uniform(0.0, 100.0, (1000, columns))
    mean = em.NoisyMean.from_rows(
        rows, lower=[0.0] * columns, upper=[100.0] * columns, adjacency="add-remove"
    )
    errors = np.abs(mean.sample(epsilon=0.5, size=500, seed=5) - rows.mean(0)).max(axis=1)
    assert 0.3 * few["error"] < np.quantile(errors, 0.95) <= 1.5 * few["error"]  # of all at once
    assert 50.0 < few["error"] / many["error"] < 200.0


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("mean --bounds 0,1 --epsilon 1 --adjacency replace", "`--rows` must be given"),
        ("mean --bounds 1,0 --epsilon 1 --rows 10", "must be LOWER < UPPER"),
        ("mean --bounds 0,1 --epsilon -1 --rows 10", "`--epsilon` of plan"),
        ("mean --bounds 0,1 --epsilon 1 --rows 1", "`--rows` of plan"),
        ("quantile --bounds 0,1 --epsilon 1 --rows 10 --q 1.5", "`q` of a quantile"),
        ("quantile --bounds 0,1 --epsilon 1 --rows 10 --bits 40", "`bits` of a quantile"),
        ("ridge --features 0 --epsilon 1 --rows 10", "`--features` of plan"),
        ("select --candidates 1 --epsilon 1 --rows 10", "`--candidates` of plan"),
        ("select --candidates 3 --epsilon 1 --rows 10 --timing fast", "`timing` of plan"),
    ],
)
def test_mistakes_get_one_message(command: str, complaint: str) -> None:
    result = run(command)
    assert result.exit_code == 1
    assert complaint in result.stderr and "Traceback" not in result.output


def test_a_plan_of_quantiles_has_no_caution_about_losses_that_no_table_has() -> None:
    """Some rank is always near, so that the least loss is small whatever the table."""
    median = run("median --bounds 0,150 --epsilon 1")
    assert median.exit_code == 0 and "caution" not in median.output, median.output
    loss = em.ExponentialMechanism(
        loss=lambda points: points[:, 0], sensitivity=1, domain=em.Box([0.0], [1.0], bits=4)
    )
    assert "caution" in str(loss.plan(epsilon=1.0))


def test_the_plan_of_a_choice_says_its_error_in_rows() -> None:
    printed = " ".join(
        run("select --candidates 5 --epsilon 1 --adjacency add-remove").output.split()
    )
    assert "the value occurs in at most 4.61 fewer rows than the most frequent one" in printed
    assert "loss is at most" not in printed
