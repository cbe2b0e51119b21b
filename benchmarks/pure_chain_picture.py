"""Pure steps beside steps for a delta: draw docs/figures/pure_chain.png.

Example 1 with ten rows at epsilon = 1 and uniform proposals, exactly, on 64 points; how many steps
`Metropolis(pure=True)` and `Metropolis(delta=1e-9)` take does not depend on the lattice. Run it
with `python -m benchmarks.pure_chain_picture`.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import expmech as em

ROWS, EPSILON = 10, 1.0
PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "pure_chain.png"


def main() -> None:
    """Compute the curves, mark the public numbers of steps and save the picture."""
    tables = [[1.0] * ones + [0.0] * (ROWS - ones) for ones in range(ROWS + 1)]
    pairs, box = list(itertools.pairwise(tables)), em.Box([0.0], [1.0], bits=6)
    mechanism = em.ExponentialMechanism(loss=em.losses.L1Mean(tables[0]), domain=box)
    marks = {
        label: mechanism.certificate(epsilon=EPSILON, sampler=sampler).sampler["steps"]
        for label, sampler in (
            ("pure", em.Metropolis(pure=True)),
            ("delta 1e-9", em.Metropolis(delta=1e-9)),
        )
    }
    lab = em.laboratory(
        em.kernels.UniformMoves(), em.losses.L1Mean, box, pairs, epsilon=EPSILON, steps=110
    )
    figure = lab.plot()
    for axes in figure.axes:
        for label, steps in marks.items():
            axes.axvline(steps, color="#CC79A7", linewidth=1.0)
            top = axes.get_ylim()[1]
            axes.text(steps - 1, top, label, rotation=90, ha="right", va="top", fontsize=8)
    figure.savefig(PICTURE, dpi=130)
    print(marks, lab, sep="\n")


if __name__ == "__main__":
    main()
