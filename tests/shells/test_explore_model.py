"""The page without a browser: every number on it is what the library says."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
import shlex
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from support.explore import VARIANTS, panel_of, state_of
from typer.testing import CliRunner

import expmech as em
from expmech import theory
from expmech.auditing import enumerate_law
from expmech.certificates.timing import CONSTANT
from expmech.cli.main import app
from expmech.core.errors import ExpmechError
from expmech.explore.laws import noisy_cells, noisy_log_chances
from expmech.explore.panels import PANELS
from expmech.explore.panels.paper import CELLS
from expmech.explore.state import read_state
from expmech.explore.view import epsilon_for, error_of, plan_at, view_of
from expmech.mechanisms.noisy_sums import Counts
from expmech.paper.errata.kernel_rows import printed_epsilon
from expmech.tables.plan import enough

QUICK = [name for name in PANELS if name != "enumerated"]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("width", [280, 900])
def test_every_panel_of_every_question_is_a_picture_with_a_message(
    variant: str, width: int
) -> None:
    for name in QUICK:
        panel = panel_of(name, width, **VARIANTS[variant])
        assert panel.title[-1] in ".r", name  # a sentence, but for the code's heading
        json.dumps(panel.describe(), allow_nan=False)
        if name == "code":
            continue
        picture = ElementTree.fromstring(panel.figure)
        assert picture.get("role") == "img"
        assert picture.get("aria-label") == panel.title
        assert float(str(picture.get("width"))) == width
        places = [float(one.get("cx", 0.0)) for one in picture.iter()]
        assert -1.0 <= min(places) <= max(places) <= width


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_python_on_the_screen_prints_the_dots_on_the_screen(variant: str) -> None:
    state = state_of(**VARIANTS[variant])
    (_, script), *_ = panel_of("code", **VARIANTS[variant]).code
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(script, "snippet", "exec"), {})
    lines = printed.getvalue().splitlines()
    values = lines if state.question == "selection" else list(map(ast.literal_eval, lines))
    drawn = panel_of("answers", **VARIANTS[variant]).numbers["draws"]
    assert len(drawn) == 20
    assert state.chosen_question.numbers(values, state).tolist() == drawn


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_commands_on_the_screen_print_the_plan_on_the_screen(variant: str) -> None:
    panel = panel_of("code", **VARIANTS[variant])
    if len(panel.code) == 1:
        assert VARIANTS[variant]["question"] in ("example1", "example2", "selection")
        return
    first, *back = panel.code[1][1].splitlines()
    shown = _run(f"{first} --json")
    planned = panel_of("samplers", **VARIANTS[variant]).numbers
    assert {name: shown[name] for name in planned} == planned
    for line in back:  # the error is shown with three digits, so epsilon returns within them
        again = _run(f"{line} --json")
        assert again["epsilon"] <= 1.02 * planned["epsilon"]
        if planned["error"] is not None:
            assert again["error"] == pytest.approx(planned["error"], rel=0.01)


def _run(line: str) -> Any:
    done = CliRunner().invoke(app, shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_belief_moves_by_more_than_epsilon_allows(variant: str) -> None:
    for epsilon in ("0.2", "2"):
        given = VARIANTS[variant] | {"epsilon": epsilon, "prior": "30"}
        numbers = panel_of("attacker", **given).numbers
        odds = 3.0 / 7.0
        assert numbers["most"] == pytest.approx(1.0 / (1.0 + math.exp(-float(epsilon)) / odds))
        for belief in numbers["beliefs"] or []:
            assert numbers["least"] - 1e-9 <= belief <= numbers["most"] + 1e-9


def test_beliefs_are_known_where_the_law_is_and_some_answer_moves_them() -> None:
    for variant, given in VARIANTS.items():
        beliefs = panel_of("attacker", **given).numbers["beliefs"]
        known = variant not in ("quartiles", "regression", "ridge", "example2")
        assert (beliefs is not None) == known, variant
        if known:
            assert max(abs(belief - 0.5) for belief in beliefs) > 1e-3, variant


@pytest.mark.parametrize("variant", ["mean", "histogram", "selection", "example1"])
def test_answers_turn_an_attacker_away_from_what_is_not_so(variant: str) -> None:
    given = VARIANTS[variant] | {"epsilon": "4", "rows": "40"}
    beliefs = panel_of("attacker", **given).numbers["beliefs"]
    assert np.mean(beliefs) < 0.5  # the suspected row is not the one that is there


def _known(ratios: Any) -> list[float]:
    assert ratios is not None
    return list(map(float, ratios))


def test_log_ratios_of_a_median_and_of_a_choice_are_those_of_the_enumerated_laws() -> None:
    for given in (VARIANTS["selection"], VARIANTS["exponential selection"]):
        view = view_of(state_of(**given))
        laws = [
            enumerate_law(view.mechanism(neighbour=neighbour), epsilon=view.state.epsilon)[0]
            for neighbour in (False, True)
        ]
        names = view.question.names(view.state)
        for value, ratio in zip(view.numbers[:, 0], _known(view.log_ratios), strict=True):
            keys = [names[int(value)], (int(value),)]
            key = next(one for one in keys if one in laws[0])
            assert ratio == pytest.approx(math.log(laws[0][key] / laws[1][key]), abs=1e-6)
    view = view_of(state_of(question="quantiles"))
    tables = [view.mechanism(neighbour=one).law(epsilon=1) for one in (False, True)]  # type: ignore[attr-defined]
    places = np.searchsorted(tables[0][0][:, 0], view.numbers[:, 0] - 1e-9)
    expected = np.log(tables[0][1][places] / tables[1][1][places])
    assert np.allclose(_known(view.log_ratios), expected, atol=1e-6)


def test_chances_of_noisy_counts_are_those_of_the_enumerated_release() -> None:
    mechanism = em.NoisySums(totals=[1, 4], interpretation=Counts(size=2, disjoint=True, count=5))
    law, rest = enumerate_law(mechanism, epsilon=4.0)
    assert rest < 1e-9
    rate = mechanism.certificate(epsilon=4.0).eta
    alone = np.zeros(6)
    for key, mass in law.items():
        counts = np.array([key], dtype=object)
        stated = noisy_log_chances(counts, [1, 4], rate, 5)
        assert math.exp(stated[0]) == pytest.approx(mass, rel=1e-6)
        alone[int(counts[0, 0])] += mass
    cells = noisy_cells(1, rate, 5, np.array([0.0, 0.5, 1.5, 5.0]))
    assert cells[:2].tolist() == pytest.approx(alone[:2].tolist(), rel=1e-6)
    assert cells.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("variant", ["mean", "means", "quantiles", "example1", "three columns"])
def test_a_law_in_a_picture_sums_to_one_and_explains_many_draws(variant: str) -> None:
    view = view_of(state_of(**VARIANTS[variant]))
    edges = np.linspace(view.state.lower, view.state.upper, 9)
    laws = view.chances(edges)
    assert laws is not None
    values = view.ready.sample(2000, 5).values
    numbers = view.question.numbers(
        [view.ready.postprocessing.apply(value) for value in values], view.state
    )
    for law, column in zip(laws, numbers.T, strict=True):
        assert law.sum() == pytest.approx(1.0)
        counts, _ = np.histogram(column, bins=edges)
        away = np.abs(counts / 2000 - law)
        assert away.max() < 6.0 * math.sqrt(0.25 / 2000)


@pytest.mark.parametrize("question", ["mean", "quantiles", "histogram", "selection", "example2"])
def test_the_accuracy_slider_finds_the_least_epsilon_and_comes_back(question: str) -> None:
    state = state_of(question=question)
    wanted = Fraction(error_of(plan_at(state, Fraction(2))) or 0.0).limit_denominator(10**6)
    found = epsilon_for(state, wanted * Fraction(1001, 1000))
    assert found <= 2
    assert (error_of(plan_at(state, found)) or 0.0) <= wanted * Fraction(1001, 1000)
    same = enough(
        state.chosen_question.statistic(state),
        error=wanted * Fraction(1001, 1000),
        count=state.rows,
    )
    assert found == same


def test_the_trade_off_draws_the_plans_at_every_epsilon() -> None:
    numbers = panel_of("tradeoff", question="example1").numbers
    state = state_of(question="example1")
    for epsilon, error in numbers["error"]:
        assert error == error_of(plan_at(state, Fraction(str(epsilon))))
    silent = dict(numbers["silent"])
    made = plan_at(state, Fraction(1))
    assert silent[1.0] == min(
        one.seconds for one in made.options if one.applies and one.timing != "data-dependent"
    )


def test_the_stopwatch_counts_what_the_theory_says() -> None:
    numbers = panel_of("stopwatch", rows=100, epsilon=2).numbers
    assert numbers["rows"] == 100
    for counts, mean in zip(numbers["counts"]["unprotected"], numbers["exact"], strict=True):
        assert np.mean(counts) == pytest.approx(mean, rel=6.0 / math.sqrt(len(counts)))
    means = [1.0 / theory.acceptance_uniform([share], 100.0) for share in (0.0, 0.01)]
    assert numbers["exact"] == means
    both = [*numbers["counts"]["constant"][0], *numbers["counts"]["constant"][1]]
    assert set(both) == {numbers["constant"]}
    sampler = em.ConfAtomAndRuntimePerfect("constant")
    assert sampler.timing == CONSTANT


def test_many_releases_cost_what_a_ledger_charges(tmp_path: Any) -> None:
    numbers = panel_of("composition", question="quantiles", epsilon="0.1").numbers
    assert numbers["own"] == "bounded"
    assert dict(numbers["curves"]["bounded"])[50] == pytest.approx(1.66, abs=0.005)
    assert dict(numbers["curves"]["basic"])[50] == pytest.approx(5.0)
    ledger = em.Ledger.create(
        tmp_path / "ledger", data_set="made up", epsilon="20", delta="0.000001"
    )
    certificate = view_of(state_of(question="quantiles", epsilon="0.1")).ready.certificate
    for _ in range(50):
        ledger.charge(epsilon="0.1", statement="a median", certificate=certificate.to_json())
    shown = float(ledger.spent[0])
    assert shown == pytest.approx(dict(numbers["curves"]["bounded"])[50], abs=1e-5)
    assert panel_of("composition", question="mean").numbers["own"] == "pure"


def test_the_code_of_the_printed_chain_breaks_its_claim_where_the_corrected_one_keeps_it() -> None:
    numbers = panel_of("enumerated", people=4, epsilon=2, pace=2).numbers
    assert numbers["corrected"] < numbers["claimed"] == 2.0 < numbers["printed"]
    mechanism = em.ExponentialMechanism(
        loss=em.losses.L1Mean([[1.0], [0.0], [0.0], [0.0]]), domain=em.Box([0.0], [1.0], bits=3)
    )
    other = em.ExponentialMechanism(
        loss=em.losses.L1Mean([[1.0], [1.0], [0.0], [0.0]]), domain=em.Box([0.0], [1.0], bits=3)
    )
    laws = [one.law(epsilon=2)[1] for one in (mechanism, other)]
    exact = float(np.abs(np.log(laws[0] / laws[1])).max())
    assert numbers["corrected"] == pytest.approx(exact, abs=1e-6)  # it settles on the mechanism


def test_the_printed_chain_is_that_of_the_errata() -> None:
    numbers = panel_of("paper", people=10, epsilon=1).numbers
    assert numbers["printed"] == pytest.approx(printed_epsilon(10, 1.0, CELLS)[0], rel=1e-9)
    assert numbers["printed"] > 1.0 > numbers["corrected"]
    assert sum(numbers["printed_law"]) == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", ["0.01", "100"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_ends_of_epsilon_are_drawn_too(variant: str, epsilon: str) -> None:
    given = VARIANTS[variant] | {"epsilon": epsilon, "people": "30", "releases": "1000"}
    for name in QUICK:
        assert panel_of(name, **given).title


def test_an_address_holds_the_whole_state() -> None:
    for given in VARIANTS.values():
        state = state_of(**given, seed=4, prior=20, weight="0.3")
        assert read_state(state.settings()) == state


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"question": "income"}, "question"),
        ({"rows": "abc"}, "rows"),
        ({"rows": "999999999999"}, "rows"),
        ({"rows": "5"}, "rows"),
        ({"size": "9"}, "size"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "1e99999"}, "epsilon"),
        ({"epsilon": "101"}, "epsilon"),
        ({"lower": "5", "upper": "5"}, "upper"),
        ({"lower": "nan"}, "lower"),
        ({"upper": "1e300"}, "upper"),
        ({"question": "selection", "lower": "3"}, "bounds"),
        ({"method": "guess"}, "method"),
        ({"file": "secrets.csv"}, "file"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused_with_its_reason(
    given: dict[str, str], word: str
) -> None:
    with pytest.raises(ExpmechError, match=word):
        read_state(given)
