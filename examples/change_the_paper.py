"""The paper's algorithm with another q, another k, another loss and another grid.

Nothing here touches the package: a kernel of moves, a loss and a study are made outside it. Run it
with `python examples/change_the_paper.py`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import expmech as em
from expmech.core.coins import Coins
from expmech.domains import Domain, Indices
from expmech.paper.options import Options
from expmech.paper.studies import run_paper
from expmech.paper.study import Backend
from expmech.paper.verdict import mean_interval, ratio_interval

EPSILON, DRAWS = 1.0, 600
READINGS = np.array([0.31, 0.34, 0.38, 0.40, 0.47, 0.55, 0.58, 0.90])  # in [0, 1], n public


class Triangle(em.kernels.SymmetricKernel):
    """Steps x with mass proportional to ``reach + 1 - |x|``: the difference of two uniforms."""

    name = "triangle"

    def __init__(self, reach: int) -> None:
        self.reach = reach

    def propose(self, domain: Domain, coins: Coins, indices: Indices) -> Indices:
        """Add the difference of two uniform integers to each coordinate."""
        size = indices.size
        one, other = (coins.integers_below(self.reach + 1, size) for _ in range(2))
        return indices + (one - other).reshape(indices.shape)

    def log_mass(self, domain: Domain, start: Indices, end: Indices) -> NDArray[np.float64]:
        """Return the log mass, coordinates added up."""
        left = np.maximum(0, self.reach + 1 - np.abs(end - start))
        with np.errstate(divide="ignore"):
            return np.log(left / (self.reach + 1) ** 2).sum(axis=1)

    def describe(self) -> dict[str, object]:
        """Return name and reach."""
        return {"kernel": self.name, "reach": self.reach}


class Tilted:
    """L(y) = mean of max(3 (x - y), y - x): answers below the readings cost three times as much.

    Replacing a reading moves the loss by at most 3/n, and the loss grows at least by |y - y*|/n
    from its minimiser; only what is true for every data set is declared.
    """

    def __init__(self, readings: NDArray[np.float64]) -> None:
        self.readings = np.clip(readings, 0.0, 1.0)

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean cost of each answer."""
        away = self.readings[None, :] - y[:, :1]
        return np.asarray(np.maximum(3.0 * away, -away).mean(axis=1))

    def facts(self, domain: Domain) -> em.Facts:
        """Declare the sensitivity and the slope."""
        return em.Facts(sensitivity=3.0 / len(self.readings), lipschitz=[3.0], minimum=0.0)


def compare(mechanism: em.ExponentialMechanism) -> None:
    """Print mean steps and mean loss for several moves and shares of the atom."""
    moves = {
        "uniform": em.kernels.UniformMoves(),
        "gaussian": em.kernels.Gaussian(scale=0.1),
        "triangle": Triangle(reach=40),
        "mixture": em.kernels.Mixture([Triangle(40), em.kernels.UniformMoves()], weights=[4, 1]),
    }
    points, law = mechanism.law(epsilon=EPSILON)
    print(f"exact mean of the answer {float(law @ points[:, 0]):.3f}")
    for name, kernel in moves.items():
        for k in (0.2, 0.5, 0.8):
            sampler = em.ConfAtomPerfect(k, proposal="uniform", kernel=kernel)
            drawn = mechanism.sample(epsilon=EPSILON, size=DRAWS, sampler=sampler, seed=7)
            answer, steps = (
                mean_interval(drawn.values, 12),
                mean_interval(drawn.proposals),
            )
            print(
                f"moves {name:9s} k {k:.1f}: steps {steps.estimate:6.2f}, mean answer"
                f" {answer.low:.3f} to {answer.high:.3f}"
            )


def count_apart(mechanism: em.ExponentialMechanism) -> None:
    """Print the four counts of Algorithm 1 under one's own moves."""
    sampler = em.ConfAtomPerfect(0.5, proposal="uniform", kernel=Triangle(40), factory=True)
    counts = mechanism.sample(epsilon=EPSILON, size=DRAWS // 4, sampler=sampler, seed=8).counts
    calls = counts["outer"] - counts["nonatomic"]
    for name, above, below in (
        ("outer steps a run", counts["outer"], counts["nonatomic"]),
        ("flips a call", counts["bern"], calls),
        ("tries an entry", counts["inner"], counts["entered"]),
    ):
        found = ratio_interval(above, below)
        print(f"{name}: {found.estimate:.2f} ({found.low:.2f} to {found.high:.2f})")


def study(folder: Path) -> None:
    """Run Figure 2 on a grid of one's own, and print what it says."""
    options = Options(
        quick=True,
        n=(20,),
        epsilon=(0.5,),
        k=(0.25, 0.6),
        beta=((2.0, 5.0),),
        runs=40,
        most=60.0,
    )
    quiet = Console(file=sys.stderr, quiet=True)
    run_paper("fig2", options, out=folder, backend=Backend(), seed=3, console=quiet)
    verdicts = (folder / "verdicts.csv").read_text().splitlines()
    print(f"a study of one's own grid: {len(verdicts) - 1} verdicts, for instance")
    print(next(line for line in verdicts if line.startswith("E[N_prop]")))


def main() -> None:
    """Change q, k, the loss and the grid."""
    mechanism = em.ExponentialMechanism(loss=Tilted(READINGS), domain=em.Box([0.0], [1.0], bits=8))
    compare(mechanism)
    count_apart(mechanism)
    certificate = mechanism.certificate(
        epsilon=EPSILON,
        sampler=em.ConfAtomPerfect(0.5, proposal="uniform", kernel=Triangle(40)),
    )
    print(f"the certificate names the moves: {certificate.sampler['kernel']}")
    with tempfile.TemporaryDirectory() as folder:
        study(Path(folder))


if __name__ == "__main__":
    main()
