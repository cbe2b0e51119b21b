"""The law of a private geometric median in the plane: draw docs/figures/geometric_median.png.

    python benchmarks/cross_picture.py [--draws 2000]

Lines hold half and nine tenths of the density, by quadrature; dots are draws of the shipped code.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import expmech as em
from expmech.paper.plotting import BLACK, BLUE, GREY, ORANGE, make_panels

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "geometric_median.png"
EPSILONS = (0.3, 1.0, 3.0)
CELLS = 200


def made_up_rows() -> NDArray[np.float64]:
    """Return a cluster and a few rows far from it."""
    generator = np.random.default_rng(3)
    near = generator.normal([0.35, 0.45], [0.1, 0.07], size=(240, 2))
    rows = np.concatenate([near, generator.uniform(size=(60, 2))])
    return np.asarray(np.clip(rows, 0.0, 1.0))


def levels(density: NDArray[np.float64]) -> list[float]:
    """Return the densities above which nine tenths and half of the mass lie."""
    heights = np.sort(density.ravel())[::-1]
    held = np.cumsum(heights) / heights.sum()
    return [float(heights[np.searchsorted(held, share)]) for share in (0.9, 0.5)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    n_draws = parser.parse_args().draws
    rows = made_up_rows()
    loss = em.losses.GeometricMedian(rows, lower=[0.0, 0.0], upper=[1.0, 1.0])
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0, 0.0], [1.0, 1.0]))
    middles = (np.arange(CELLS) + 0.5) / CELLS
    grid = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    figure, axes = make_panels(len(EPSILONS), len(EPSILONS), 2.2)
    for axis, epsilon in zip(axes, EPSILONS, strict=True):
        energies = mechanism.target(epsilon=epsilon).eta * loss(grid)
        density = np.exp(energies.min() - energies).reshape(CELLS, CELLS)
        drawn = mechanism.sample(
            epsilon=epsilon, size=n_draws, sampler=em.Rejection(em.Cross()), seed=1
        ).values
        axis.plot(*rows.T, ".", color=GREY, markersize=2.0, label="300 rows")
        axis.plot(*drawn.T, ".", color=BLUE, markersize=1.5, alpha=0.4, label=f"{n_draws} draws")
        axis.contour(middles, middles, density, levels=levels(density), colors=[ORANGE, BLACK])
        axis.set(title=f"epsilon = {epsilon:g}", xlabel="first column", xlim=(0, 1), ylim=(0, 1))
        axis.set_aspect("equal")
    axes[0].set_ylabel("second column")
    axes[0].legend(fontsize=7, loc="upper right")
    figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main()
