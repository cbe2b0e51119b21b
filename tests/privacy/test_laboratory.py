"""The laboratory: its laws are those of the shipped code, and one call finds what is wrong."""

from __future__ import annotations

import itertools
import json
import math
import sys
import types
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point, law_after
from expmech.auditing.laboratory import regeneration
from expmech.cli.main import app
from expmech.core.coins import Coins
from expmech.core.errors import ParameterError, ParameterTypeError, UnsupportedError
from expmech.domains import Indices
from expmech.exponential.kernels import (
    MALA,
    Ball,
    Independence,
    Kernel,
    Laplace,
    Mixture,
    Moves,
    UniformMoves,
)
from expmech.exponential.target import Target
from expmech.theory import true_delta, true_epsilon, true_renyi

BOX = em.Box([0.0], [1.0], bits=3)
TABLES = [[1.0] * ones + [0.0] * (4 - ones) for ones in range(5)]
PAIRS = list(itertools.pairwise(TABLES))
KERNELS: dict[str, Kernel] = {
    "uniform": UniformMoves(),
    "laplace": Laplace(4.0),
    "ball": Ball(0.3),
    "mala": MALA(0.2, law="laplace"),
    "independence": Independence(em.ProductLaplace()),
    "mixture": Mixture([MALA(0.2, law="laplace"), UniformMoves()], weights=[3, 1]),
}


def by_point(law: dict[Hashable, float]) -> NDArray[np.float64]:
    return np.array([law.get((j,), 0.0) for j in range(8)])


@pytest.mark.parametrize("name", KERNELS)
def test_laws_are_those_of_the_shipped_chain(name: str) -> None:
    """After every number of steps, by the masses and by the coins, against the sampler itself."""
    kernel = KERNELS[name]
    lab = em.laboratory(kernel, em.losses.L1Mean, BOX, PAIRS, epsilon=3.0, steps=12)
    coins = em.laboratory(
        kernel, em.losses.L1Mean, BOX, PAIRS[:1], epsilon=3.0, steps=12, follow_coins=True
    )
    assert lab.laws[:2] == pytest.approx(coins.laws, abs=1e-9)
    assert len(lab.laws) == len(TABLES)  # each data set once
    for number in (0, 3):
        mechanism = em.ExponentialMechanism(loss=em.losses.L1Mean(TABLES[number]), domain=BOX)
        chain = mechanism.chain(epsilon=3.0, sampler=em.Metropolis(kernel, steps=40, beta=0.1))
        for m in (0, 1, 5, 12):
            shipped = by_point(law_after(chain, m, lattice_point))
            assert lab.laws[number, m] == pytest.approx(shipped, abs=1e-9)
        assert lab.targets[number] == pytest.approx(mechanism.law(epsilon=3.0)[1], rel=1e-9)
    assert (lab.keeps_target and lab.findings() == []) or lab.exact_epsilon[-1] > 3.0


@pytest.mark.parametrize("name", KERNELS)
def test_curves_are_the_divergences_of_the_laws(name: str) -> None:
    lab = em.laboratory(KERNELS[name], em.losses.L1Mean, BOX, PAIRS, epsilon=3.0, steps=30)
    for m in (0, 3, 30):
        laws = [(lab.laws[a, m], lab.laws[b, m]) for a, b in lab.pairs]
        assert lab.exact_epsilon[m] == pytest.approx(true_epsilon(laws), abs=1e-12)
        assert lab.exact_delta[m] == pytest.approx(true_delta(laws, 3.0), abs=1e-15)
        assert lab.delta_at(0.2)[m] == pytest.approx(true_delta(laws, 0.2), abs=1e-15)
        assert lab.renyi(2.0)[m] == pytest.approx(true_renyi(laws, 2.0), abs=1e-12)
        assert lab.rho[m] == pytest.approx(
            max(true_renyi(laws, a) / a for a in (1.01, 1.1, 1.5, 2, 3, 4, 8, 16, 32, 64)),
            abs=1e-12,
        )
        away = max(0.5 * np.abs(lab.laws[:, m] - lab.targets).sum(axis=1))
        assert lab.total_variation[m] == pytest.approx(away)
    assert (lab.exact_delta <= lab.minami + 1e-15).all()
    left = (1.0 - lab.beta) ** np.arange(31)
    assert (lab.total_variation <= left + 1e-12).all()
    assert lab.minorisation == pytest.approx(np.minimum(1.0, (1 + math.exp(3.0)) * left))
    for matrix in lab.matrices:  # beta nu lies below every row
        nu = matrix.min(axis=0)
        assert lab.beta <= nu.sum() + 1e-12
    assert lab.reversible
    assert (lab.exact_epsilon <= lab.pure_bound + 1e-9).all()
    if lab.beta > 0.3:
        assert lab.pure_bound[-1] < 3.0  # the bound is not idle
    assert lab.exact_epsilon[0] == 0.0  # a uniform start tells nothing


@pytest.mark.parametrize("name", KERNELS)
def test_a_regeneration_is_that_of_the_shipped_atom(name: str) -> None:
    kernel = KERNELS[name]
    lab = em.laboratory(kernel, em.losses.L1Mean, BOX, PAIRS[:1], epsilon=3.0, steps=25)
    assert lab.joint is not None
    sampler = em.ConfAtomPerfect(0.5, proposal="uniform", kernel=kernel)
    for number in range(2):
        mechanism = em.ExponentialMechanism(loss=em.losses.L1Mean(TABLES[number]), domain=BOX)
        found = ChainLaw(
            mechanism.chain(epsilon=3.0, sampler=sampler), lattice_point, most_steps=25, ignore=0.0
        )
        for m in (1, 2, 3, 10, 25):
            shipped = by_point(found.by_step[m - 1])
            assert lab.joint[number, m] == pytest.approx(shipped, abs=2e-7)
    assert lab.joint_epsilon >= lab.count_epsilon > 0.0


def test_a_regeneration_ends_with_the_target_and_its_mean_number_of_steps() -> None:
    lab = em.laboratory(KERNELS["laplace"], em.losses.L1Mean, BOX, PAIRS, epsilon=3.0, steps=600)
    assert lab.joint is not None
    assert lab.joint.sum(axis=1) == pytest.approx(lab.targets, abs=1e-9)
    # 2 e^B (1 + w / Z_f) with w = Z_f
    for energies, mean in zip(lab.energies, lab.mean_steps, strict=True):
        acceptance = np.exp(-energies).mean()  # the declared minimum is 0
        assert mean == pytest.approx(4.0 / acceptance, rel=1e-6)
    matrix = np.eye(2)
    assert regeneration(matrix, np.zeros(2), 5, 0.0).sum() < 1.0


# What is wrong is found in one call.


class Forgetful(Kernel):
    """MALA, accepted as if it were symmetric."""

    name = "forgetful"

    def bind(self, target: Target) -> Moves:
        return ForgetfulMoves(MALA(0.3).bind(target))


class ForgetfulMoves(Moves):
    def __init__(self, right: Moves) -> None:
        self.right = right

    def propose(self, coins: Coins, indices: Indices) -> Indices:
        return self.right.propose(coins, indices)

    def log_mass(self, start: Indices, end: Indices) -> NDArray[np.float64]:
        return self.right.log_mass(start, end)


def test_a_forgotten_hastings_factor_is_found() -> None:
    for kernel, right in ((Forgetful(), False), (MALA(0.3), True)):
        lab = em.laboratory(kernel, em.losses.L1Mean, BOX, PAIRS, epsilon=4.0, steps=200)
        assert lab.keeps_target is right
        assert lab.reversible is right
        assert (lab.findings() == []) is right
        assert (lab.limit_epsilon <= 4.0) is right
        assert lab.limit_epsilon == pytest.approx(lab.exact_epsilon[-1], abs=1e-3)


def printed(
    points: NDArray[np.float64], energies: NDArray[np.float64], *, factor: bool = False
) -> NDArray[np.float64]:
    """The kernel of the paper at k = 1/2, as printed, or with the factor that it lacks."""
    y, density = points[:, 0], np.exp(-energies) / np.exp(-energies).mean()
    at, alpha = int(energies.argmin()), 5.0
    walk = alpha / 2 / len(y) * np.exp(-alpha * np.abs(y[:, None] - y))
    atom = density[at] + 1.0
    ratio = (walk[at] * len(y) if factor else 1.0) * atom / density
    moves = np.zeros((len(y) + 1, len(y) + 1))
    moves[:-1, :-1] = walk / 2 * np.minimum(1.0, density[None, :] / density[:, None])
    moves[:-1, -1] = np.minimum(1.0, ratio) / 2
    moves[-1, :-1] = walk[at] / 2 * np.minimum(1.0, 1.0 / ratio)
    np.fill_diagonal(moves, 0.0)
    np.fill_diagonal(moves, 1.0 - moves.sum(axis=1))
    return moves


def test_the_printed_kernel_is_found() -> None:
    rows = [[1.0] * ones + [0.0] * (10 - ones) for ones in range(11)]
    near, box = list(itertools.pairwise(rows)), em.Box([0.0], [1.0], bits=6)
    paper = em.laboratory(printed, em.losses.L1Mean, box, near, epsilon=1.0, steps=60)
    assert not paper.keeps_target
    assert paper.limit_epsilon == pytest.approx(1.28, abs=0.02)  # 1.38 in the continuum
    assert any("does not go to f" in text for text in paper.findings())
    fixed = em.laboratory(
        lambda points, energies: printed(points, energies, factor=True),
        em.losses.L1Mean,
        box,
        near,
        epsilon=1.0,
        steps=60,
    )
    assert fixed.keeps_target and fixed.limit_epsilon == pytest.approx(0.8, abs=0.01)
    assert not fixed.reversible  # with the atom it is no chain on the lattice alone
    # its tours are those of a matrix that leaves the atom, and all come back
    assert fixed.counted == "tours from the atom" and fixed.joint is not None
    assert fixed.joint.sum() < len(rows) and fixed.joint[:, :2].sum() == 0.0


def test_a_runtime_that_tells_is_found_and_a_padded_one_is_not() -> None:
    small = em.Box([0.0], [1.0], bits=2)
    watched, padded = (
        em.laboratory(sampler, em.losses.L1Mean, small, PAIRS, epsilon=1.0, steps=120)
        for sampler in (em.ConfAtomPerfect(), em.ConfAtomAndRuntimePerfect("pad"))
    )
    assert watched.exact_epsilon[-1] <= 1.0 < watched.joint_epsilon
    assert [text for text in watched.findings() if "number of steps" in text]
    assert watched.keeps_target and padded.keeps_target
    assert padded.joint_epsilon == pytest.approx(padded.target_epsilon, abs=1e-6)
    assert padded.count_epsilon == pytest.approx(0.0, abs=1e-6)
    assert padded.findings() == []


def test_too_few_steps_are_found_and_a_pure_chain_is_not() -> None:
    def hard(rows: Any) -> Any:
        return em.losses.L1Mean(rows)

    few = em.laboratory(Laplace(60.0), hard, BOX, PAIRS, epsilon=0.5, steps=3)
    assert few.keeps_target
    pure = em.laboratory(em.Metropolis(pure=True), hard, BOX, PAIRS, epsilon=0.5)
    certificate = em.ExponentialMechanism(loss=hard(TABLES[0]), domain=BOX).certificate(
        epsilon=0.5, sampler=em.Metropolis(pure=True)
    )
    assert pure.steps == certificate.sampler["steps"]
    assert pure.exact_epsilon[-1] <= 0.5 and pure.density_distance[-1] <= 0.5 / 4000
    assert pure.findings() == []
    one = em.laboratory(em.Metropolis(steps=7), hard, BOX, PAIRS, epsilon=0.5)
    assert one.steps == 7


def split(points: NDArray[np.float64], energies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keep f, fast but for the last point, which some data sets leave slowly."""
    law = np.exp(-energies)
    alone = (np.arange(len(law)) == len(law) - 1) & (energies.argmin() == 0)
    same = alone[:, None] == alone[None, :]
    near = same * law / (same * law).sum(axis=1)[:, None]
    return np.asarray(0.999 * near + 0.001 * law / law.sum())


def test_a_value_that_is_still_on_its_way_is_a_finding() -> None:
    """The limit keeps epsilon; a few steps after a uniform start do not."""
    lab = em.laboratory(split, em.losses.L1Mean, BOX, PAIRS, epsilon=6.0, steps=5)
    assert lab.keeps_target and lab.reversible and lab.limit_epsilon <= 6.0
    assert lab.exact_epsilon[-1] > 6.0 and lab.exact_delta[-1] > 0.0
    (found,) = lab.findings()
    assert found.startswith("After 5 steps the value still has epsilon")
    longer = em.laboratory(split, em.losses.L1Mean, BOX, PAIRS, epsilon=6.0, steps=9000)
    assert longer.findings() == []


def test_two_dimensions_and_hundreds_of_states() -> None:
    ball = em.L1Ball(2, 1.0, bits=5)
    count = len(ball.all_indices(1024))  # type: ignore[arg-type]
    assert count > 400
    rows = np.zeros((4, 2))
    moved = rows.copy()
    moved[0] = [0.5, 0.5]

    def loss(table: NDArray[np.float64]) -> Any:
        mean = table.mean(axis=0)
        return lambda y: np.abs(y - mean).sum(axis=1)

    lab = em.laboratory(
        MALA(0.2), loss, ball, [(rows, moved)], epsilon=1.0, steps=50, sensitivity=0.5, bound=4.0
    )
    assert lab.laws.shape == (2, 51, count) and lab.keeps_target
    assert lab.exact_epsilon[-1] < 1.0 and (lab.exact_delta <= lab.minami + 1e-15).all()


def test_what_is_exported_is_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = em.laboratory(Laplace(4.0), em.losses.L1Mean, BOX, PAIRS, epsilon=1.0, steps=9)
    frame = lab.to_frame()
    assert list(frame.index) == list(range(10))
    assert frame["delta"].to_numpy() == pytest.approx(lab.exact_delta)
    assert frame["pure_bound"].to_numpy() == pytest.approx(lab.pure_bound)
    figure = lab.plot(tmp_path / "curves.svg")
    assert "hockey stick" in (tmp_path / "curves.svg").read_text()
    labels = [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]
    assert "delta, Minami by true TV" in labels and "epsilon, true" in labels
    made: dict[str, Any] = {}
    stub = types.ModuleType("arviz")
    stub.from_dict = lambda **groups: made.update(groups) or "inference data"  # type: ignore
    monkeypatch.setitem(sys.modules, "arviz", stub)
    longer = em.laboratory(Laplace(4.0), em.losses.L1Mean, BOX, PAIRS, epsilon=9.0, steps=400)
    assert longer.to_arviz(data=4, chains=50, seed=3) == "inference data"
    drawn = made["posterior"]["y"]
    assert drawn.shape == (50, 400, 1)
    mean = float(longer.targets[4] @ longer.points[:, 0])
    assert float(drawn.mean()) == pytest.approx(mean, abs=0.01)
    with pytest.raises(UnsupportedError, match="this chain has no code"):
        em.laboratory(split, em.losses.L1Mean, BOX, PAIRS, epsilon=1.0, steps=2).to_arviz()


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"kernel": "uniform"}, ParameterTypeError, "`kernel` of laboratory must be a kernel"),
        ({"kernel": lambda y, e: np.eye(3)}, ParameterError, "one row and one column per point"),
        ({"kernel": lambda y, e: 2 * np.eye(8)}, ParameterError, "rows that sum to 1"),
        ({"neighbours": []}, ParameterError, "at least one pair"),
        ({"steps": 0}, ParameterError, "`steps` of laboratory"),
        ({"domain": em.Box([0.0], [1.0])}, UnsupportedError, "at most 1024 points"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], kind: type[Exception], text: str) -> None:
    given: dict[str, Any] = {
        "kernel": UniformMoves(),
        "loss": em.losses.L1Mean,
        "domain": BOX,
        "neighbours": PAIRS,
        "epsilon": 1.0,
    }
    with pytest.raises(kind, match=text):
        em.laboratory(**(given | change))


MODULE = """
import expmech as em

uniform, atom = em.kernels.UniformMoves(), em.ConfAtomPerfect()
pairs = [([0.0, 0.0], [0.0, 1.0])]


def loss(rows):
    return lambda y: abs(y[:, 0] - sum(rows) / len(rows))
"""


def test_the_command_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "chained", raising=False)
    Path("chained.py").write_text(MODULE)
    words = ["laboratory", "chained:uniform", "--loss", "expmech.losses:L1Mean", "--bits", "3"]
    done = CliRunner().invoke(app, [*words, "--output", "curves.json", "--plot", "curves.png"])
    assert done.exit_code == 0, done.output
    assert "after 100 steps: epsilon" in done.stdout and Path("curves.png").stat().st_size > 1000
    curves = json.loads(Path("curves.json").read_text())
    assert len(curves["delta"]) == 101 and curves["findings"] == []
    told = ["laboratory", "chained:atom", "--loss", "expmech.losses:L1Mean", "--bits", "2"]
    done = CliRunner().invoke(app, [*told, "--pairs", "chained:pairs"])
    assert done.exit_code == 4 and "! Value and number of steps" in done.stdout
    own = ["laboratory", "chained:uniform", "--loss", "chained:loss", "--bits", "3"]
    refused = CliRunner().invoke(app, [*own, "--pairs", "chained:pairs"])
    assert refused.exit_code != 0 and "`sensitivity`" in refused.stderr
    done = CliRunner().invoke(
        app, [*own, "--pairs", "chained:pairs", "--sensitivity", "0.5", "--json"]
    )
    assert done.exit_code == 0 and json.loads(done.stdout)["steps"][-1] == 100
