"""`expmech paper --quick`.

Its numbers against closed forms, quadrature and matrices written here, not against stored output.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.paper.example2 import make_loss
from expmech.paper.fig2.counts import spread_means
from expmech.paper.fig3.law import THRESHOLDS, discrete_law

SEED = 5


def run(*arguments: str) -> None:
    result = CliRunner().invoke(app, ["paper", *arguments])
    assert result.exit_code == 0, result.output


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("paper")
    run("all", "--quick", "--out", str(out), "--jobs", "1", "--seed", str(SEED))
    return out


def numbers(folder: Path) -> dict[tuple[int, str], float]:
    return {
        (int(row["row"]), row["quantity"]): float(row["value"])
        for row in table(folder, "errata_numbers")
    }


def test_every_study_writes_figures_tables_and_a_report_that_needs_no_network(quick: Path) -> None:
    tables = ("fig1", "fig1_truth", "fig2", "fig3", "fig3_random_atom", "delta", "tradeoff")
    for name in (*tables, "errata", "fig2_readings", "fig2_k_sweep"):
        assert (quick / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (quick / f"{name}.svg").read_text(encoding="utf-8")
    for name in tables:
        assert len(table(quick, name)) > 10
    report = (quick / "report.html").read_text(encoding="utf-8")
    assert report.count("data:image/png;base64,") == 10
    assert "http" not in report
    style = report[report.index("<style>") : report.index("</style>")]
    assert "img { width: 100%; height: auto; }" in style  # on a phone too: nothing is cut off
    assert "min-width" not in style and "overflow-x" not in style
    for name in ("fig1", "fig2", "fig3", "delta", "claims", "tradeoff", "errata"):
        assert f'id="{name}"' in report


def test_bounds_of_figure_1_are_the_formulas(quick: Path) -> None:
    for row in table(quick, "fig1_steps"):
        n, epsilon, d = int(row["n"]), float(row["epsilon"]), int(row["d"])
        c = n * epsilon / 2 / d
        beta = {
            "uniform": ((1 - math.exp(-c)) / c) ** d,
            "laplace printed": (
                (2 * c) ** d * math.exp(-(c * d + epsilon * n / 2)) * ((1 - math.exp(-c)) / c) ** d
            ),
            "laplace corrected": (c / 2) ** d * math.exp(-c * d) * ((1 - math.exp(-c)) / c) ** d,
        }.get(row["bound"])
        if beta is not None and beta > 1e-280:
            assert float(row["log10_beta"]) == pytest.approx(math.log10(beta), abs=1e-6)
            needed = (math.log(1 + math.exp(epsilon)) + 1074 * math.log(2)) / -math.log1p(-beta)
            assert float(row["steps_to_smallest_double"]) == pytest.approx(needed, rel=1e-6)


def test_truth_of_figure_1_is_between_the_bounds(quick: Path) -> None:
    rows = [row for row in table(quick, "fig1_truth") if float(row["slope"]) == 0.5]
    assert len(rows) > 20
    for row in rows:
        steps, true = int(row["steps"]), float(row["true_tv_laplace"])
        if 1 < steps < 60:
            assert float(row["printed_tv"]) < true < float(row["corrected_tv"])
        if (
            steps < 12
            # uniform proposals from the mode: P^m = f + (1 - beta)^m (point mass - f) on its
            # own grid
        ):
            beta = (1 - math.exp(-0.5)) / (160 * (1 - math.exp(-0.5 / 160)))
            assert float(row["true_tv_uniform"]) == pytest.approx(
                (1 - beta) ** steps * (1 - 1 / (160 * beta)), rel=1e-6
            )


def walk(cells: int, c: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Laplace walk at alpha = c from its density at midpoints, mean 0.

    Another discretisation than the study's.
    """
    y = (np.arange(cells) + 0.5) / cells
    law = np.exp(-c * y) / np.exp(-c * y).sum()
    kernel = c / 2 * np.exp(-c * np.abs(y[:, None] - y)) / cells * np.minimum(1, law / law[:, None])
    kernel += np.diag(1 - kernel.sum(axis=1))
    return kernel, law


def test_row_8_true_distance_agrees_with_another_discretisation(quick: Path) -> None:
    kernel, law = walk(600, 0.5)
    true = 0.5 * np.abs(np.linalg.matrix_power(kernel, 10) - law).sum(axis=1).max()
    found = numbers(quick)
    assert found[8, "true"] == pytest.approx(true, rel=0.01)
    assert found[8, "printed"] == pytest.approx(0.033, abs=5e-4)
    assert found[8, "corrected"] == pytest.approx(
        (1 - 0.25 * math.exp(-0.5) * (1 - math.exp(-0.5)) / 0.5) ** 10
    )
    assert found[8, "printed"] < true < found[8, "corrected"]


def printed_release(cells: int, c: float, mean: float) -> NDArray[np.float64]:
    """The printed kernel by its flows at k = 1/2, solved by iterating the chain.

    The law it releases.
    """
    y = (np.arange(cells) + 0.5) / cells
    f = np.exp(-c * np.abs(y - mean))
    f /= f.mean()
    peak = c / (2 - math.exp(-c * mean) - math.exp(-c * (1 - mean)))
    proposal = c / 2 * np.exp(-c * np.abs(y[:, None] - y)) / cells
    kernel = np.zeros((cells + 1, cells + 1))
    kernel[:-1, :-1] = proposal * np.minimum(1, f / f[:, None]) / 2
    kernel[:-1, -1] = 0.5
    kernel[-1, :-1] = c / 2 * np.exp(-c * np.abs(y - mean)) / cells * f / (peak + 1) / 2
    kernel += np.diag(1 - kernel.sum(axis=1))
    law = np.linalg.matrix_power(kernel, 4096)[0, :-1]
    return np.asarray(law / law.sum())


def test_row_1_an_auditor_of_the_printed_kernel_sees_more_than_was_claimed(quick: Path) -> None:
    found, sizes = numbers(quick), (150, 300)
    for n, epsilon, corrected in ((10, 1.0, 0.831), (20, 0.5, 0.449)):
        c = n * epsilon / 2
        seen = []
        for cells in sizes:  # the worst pair is at the edge: means 0 and 1/n
            edge, next_ = printed_release(cells, c, 0.0), printed_release(cells, c, 1 / n)
            seen.append(float(np.abs(np.log(edge / next_)).max()))
        assert found[1, f"epsilon_{n}"] == pytest.approx(2 * seen[1] - seen[0], abs=0.02)
        assert found[1, f"epsilon_{n}"] > 1.3 * epsilon
        assert found[1, f"corrected_{n}"] == pytest.approx(corrected, abs=5e-4)
        assert found[1, f"corrected_{n}"] < epsilon


def test_errata_rows_agree_with_quadrature_and_algebra(quick: Path) -> None:
    found = numbers(quick)
    whole = integrate.quad(lambda y: math.exp(-5 * abs(y - 0.3)), 0, 1, points=[0.3])[0]
    assert (
        found[9, "corrected"]
        == pytest.approx(whole)
        == pytest.approx(found[9, "quadrature"], rel=1e-4)
    )
    assert abs(found[9, "printed"] - whole) > 0.1
    peak = 1 / integrate.quad(lambda y: math.exp(-5 * abs(y - 0.5)), 0, 1, points=[0.5])[0]
    assert found[2, "share"] == pytest.approx((0.5 + 0.5 * peak) / (1 + 0.5 * peak))
    assert found[7, "ours"] <= 1 + 1e-9
    assert 1.45 < found[7, "constant"] <= 1.5
    edge = integrate.quad(
        lambda y: 2.5 * math.exp(-5 * y) * min(1, math.exp(-0.5 * (abs(y - 0.5) - 0.5))),
        0,
        1,
        points=[0.5],
    )[0]
    assert (
        found[13, "corrected"]
        == pytest.approx(edge)
        == pytest.approx(found[13, "quadrature"], rel=1e-3)
    )
    assert found[13, "printed"] > 1.5 * edge
    assert found[6, "joint"] > 1.0 > found[6, "corrected"]
    assert (
        found[3, "density_k"] < 0.25 and found[3, "corrected"] < 0.25 < found[3, "printed_kernel"]
    )
    flips = [found[4, f"flips_{gap}"] for gap in (0.2, 0.1, 0.05, 0.025)]
    assert flips == sorted(flips) and flips[-1] > 5 * flips[0]
    generator = np.random.default_rng(3)
    distance = np.abs(np.abs(generator.laplace(scale=0.1, size=(400_000, 5))))
    distance = distance[(distance < 0.5).all(axis=1)].sum(axis=1)
    assert found[10, "true"] == pytest.approx(float((distance >= 0.6).mean()), abs=0.01)
    assert found[10, "printed"] < found[10, "true"] <= found[10, "corrected"]
    assert found[10, "quantile_05"] < found[10, "quantile_95"]


def test_errata_table_has_every_row_and_privacy_rows_name_two_epsilons(quick: Path) -> None:
    rows = table(quick, "errata")
    assert [int(row["row"]) for row in rows] == list(range(1, 14))
    assert {int(row["row"]) for row in rows if row["claimed_epsilon"]} == {1, 6, 7, 8, 12}
    for row in rows:
        assert all(row[name] for name in ("claim", "printed", "measured", "corrected", "sentence"))


CLOSED_FORMS = ("Rejection", "ConfAtomAndRuntimePerfect", "ConfAtomPerfect, direct")


def test_proposal_counts_of_figure_2_have_their_closed_form_means(quick: Path) -> None:
    excess = {method: [0.0, 0.0] for method in CLOSED_FORMS}
    for row in table(quick, "fig2"):
        elsewhere = row["reading"] == "scale" or row["part"] == "narrow"
        assert float(row["computed_mean"]) < float(row["theorem_bound"]) or elsewhere
        if row["method"] not in CLOSED_FORMS or row["part"] != "grid" or not row["mean"]:
            continue
        c = int(row["n"]) * float(row["epsilon"]) / 2
        a, b = map(float, row["beta"].split(":"))
        means = spread_means((a, b), 2)
        accepted = (2 - np.exp(-c * means) - np.exp(-c * (1 - means))) / 2
        mean = {
            "Rejection": (1 / accepted).mean(),
            "ConfAtomPerfect, direct": (4 / accepted).mean(),
            "ConfAtomAndRuntimePerfect": 2 / (1 - math.exp(-c)),
        }[row["method"]]
        assert float(row["computed_mean"]) == pytest.approx(mean, rel=1e-6)
        runs = float(row["runs"])
        excess[row["method"]][0] += runs * (float(row["mean"]) / mean - 1)
        excess[row["method"]][1] += runs
    for method, (total, runs) in excess.items():
        # each count's relative variance is at most 1: geometric, or a sum of such
        score = total / math.sqrt(runs)
        assert abs(score) < 5, (method, score)
        assert abs(score + 0.6 * math.sqrt(runs)) > 5, (
            "a sampler with more than half as many proposals again must be noticed"
        )


def test_quick_verdicts_are_settled_by_what_is_computed(quick: Path) -> None:
    rows = table(quick, "verdicts")
    assert len(rows) > 60
    assert all(row["under"] for row in rows)
    named = [(row["sentence"], row["where"], row["under"]) for row in rows]
    assert len(set(named)) == len(named)
    open_ = [row["sentence"] for row in rows if row["verdict"] == "too few runs to say"]
    # a quick run has 20 discretisations: only what Figure 3 estimates from them may stay open
    assert all(
        row["command"] == "expmech paper fig3"
        for row in rows
        if row["verdict"] == "too few runs to say"
    ), open_
    found = {(row["sentence"], row["under"]): row["verdict"] for row in rows}
    center = {found[key] for key in found if key[0].startswith("the runtime for the")}
    assert center == {"holds"}
    grows = {under: verdict for (text, under), verdict in found.items() if "run-time" in text}
    for start, verdict in (
        ("printed kernel, Laplace proposals of rate", "does not hold"),
        ("printed kernel, Laplace proposals of scale", "holds"),
        ("corrected kernel, uniform proposals", "holds"),
    ):
        assert {grows[under] for under in grows if under.startswith(start)} == {verdict}
    bound = {
        under: verdict for (text, under), verdict in found.items() if text.startswith("E[N_prop]")
    }
    corrected = {under: bound[under] for under in bound if under.startswith("corrected")}
    assert {"rate 20" in under: verdict for under, verdict in corrected.items()} == {
        False: "holds",
        True: "does not hold",
    }
    errata = {row["verdict"] for row in rows if row["command"] == "expmech paper errata"}
    assert errata == {"does not hold"}


def test_the_true_delta_is_below_every_bound(quick: Path) -> None:
    rows = table(quick, "delta")
    assert len(rows) > 40
    for row in rows:
        true = float(row["true_delta"])
        assert true <= float(row["delta_from_true_tv"]) + 1e-12
        assert true <= float(row["delta_from_minorisation"]) * (1 + 1e-9) + 1e-12
        assert float(row["true_delta_at_claimed"]) <= true + 1e-12


def test_laws_of_figure_3_agree_with_brute_force(quick: Path) -> None:
    loss = make_loss(SEED)
    generator = np.random.default_rng(11)
    simplex = generator.dirichlet(np.ones(6), size=400_000)[:, :5]
    uniform = np.ascontiguousarray(simplex * generator.choice([-1.0, 1.0], size=simplex.shape))
    losses = loss(uniform)
    for epsilon in (0.1, 1.0, 10.0):
        weights = np.exp(-epsilon / 40 * losses)
        rows = [
            row
            for row in table(quick, "fig3")
            if float(row["epsilon"]) == epsilon and row["points"] == "1000"
        ]
        for row in rows[::6]:
            true = weights[losses >= float(row["loss"])].sum() / weights.sum()
            assert float(row["continuous"]) == pytest.approx(true, abs=5 * 0.5 / math.sqrt(500))
            assert (
                float(row["err_q05_printed"]) - 0.03 <= true <= float(row["err_q95_meant"]) + 0.03
            )
    survival, log_mean = discrete_law(losses[:50], 10.0)
    weights = np.exp(-0.25 * losses[:50])
    assert log_mean == pytest.approx(math.log(weights.mean()))
    for t, value in zip(THRESHOLDS[::10], survival[::10], strict=True):
        assert value == pytest.approx(weights[losses[:50] >= t].sum() / weights.sum(), abs=1e-12)


def test_draws_of_random_atom_follow_the_mixture(quick: Path) -> None:
    gaps = [float(row["largest_gap_of_draws_from_law"]) for row in table(quick, "fig3_random_atom")]
    drawn = [gap for gap in gaps if not math.isnan(gap)]
    assert len(drawn) >= 8
    # 100 draws against a law itself estimated from 500: Kolmogorov's bound at 1e-7 a cell
    assert max(drawn) < 2.9 * math.sqrt(1 / 100 + 1 / 500)


def test_tradeoff_has_the_exact_loss_and_says_where_no_bound_exists(quick: Path) -> None:
    rows = {(row["example"], row["method"]): row for row in table(quick, "tradeoff")}
    weight = integrate.quad(lambda y: math.exp(-50 * abs(y - 0.3)), 0, 1, points=[0.3])[0]
    exact = (
        integrate.quad(lambda y: abs(y - 0.3) * math.exp(-50 * abs(y - 0.3)), 0, 1, points=[0.3])[0]
        / weight
    )
    for method in (
        "Metropolis, pure",
        "ConfAtomPerfect, direct",
        "ConfAtomPerfect, corrected",
        "Rejection",
    ):
        row = rows["Example 1", method]
        assert float(row["delta"]) == 0.0
        assert float(row["mean_loss"]) == pytest.approx(
            exact, abs=2.7 * float(row["mean_loss_ci95"])
        )
    few = rows["Example 1", "Metropolis, 20 steps"]
    assert float(few["delta"]) == 1.0
    y = (np.arange(500) + 0.5) / 500
    law = np.exp(-50 * np.abs(y - 0.3))
    kernel = np.minimum(1, law / law[:, None]) / 500
    kernel += np.diag(1 - kernel.sum(axis=1))
    after = float(np.linalg.matrix_power(kernel, 20).mean(axis=0) @ np.abs(y - 0.3))
    assert after > 1.2 * exact
    assert float(few["mean_loss"]) == pytest.approx(after, abs=2.7 * float(few["mean_loss_ci95"]))
    for method in (
        "Metropolis, pure",
        "ConfAtomAndRuntimePerfect, pad",
        "ConfAtomAndRuntimePerfect, constant",
    ):
        assert rows["Example 2", method]["reason_for_no_draws"]
        assert not rows["Example 2", method]["mean_proposals"]


def test_sections_carry_the_seed_and_the_kind_of_run(quick: Path) -> None:
    facts = json.loads((quick / "fig1.json").read_text(encoding="utf-8"))
    assert facts["quick"] is True
    assert facts["seed"] == SEED
