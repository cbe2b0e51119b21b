"""The law of a principal direction in the plane: draw docs/figures/principal_direction.png.

    python -m benchmarks.principal_direction_figure [--draws 20000]

Lines are the density exp(eta v'Av), normalised by quadrature; bars are draws of the shipped code.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech.mechanisms.directions.principal_direction import PrincipalDirection
from expmech.mechanisms.directions.rows import row_products, unit_rows
from expmech.paper.plotting import BLACK, BLUE, GREY, ORANGE, VERMILION, new_figure

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "principal_direction.png"
COLOURS = {0.1: ORANGE, 0.5: BLUE, 2.0: VERMILION}
N_ROWS, N_CELLS = 120, 45
Vector = NDArray[np.float64]


def made_up_rows() -> Vector:
    """Return rows of norm one, longer along 35 degrees than across."""
    generator = np.random.default_rng(4)
    angle = np.radians(35.0)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return unit_rows(generator.normal(size=(N_ROWS, 2)) * [1.0, 0.6] @ turn)


def density(matrix: Vector, eta: float, degrees: Vector) -> Vector:
    """Return the density of the angle, per degree; an axis has one angle in 0 .. 180."""
    angles = np.radians(degrees)
    v = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    energy = eta * np.einsum("ni,ij,nj->n", v, matrix, v)
    weight = np.exp(energy - energy.max())
    return np.asarray(weight / (weight.mean() * 180.0))


def angles_of(directions: Vector) -> Vector:
    """Return the angles of axes, 0 to 180 degrees."""
    return np.asarray(np.degrees(np.arctan2(directions[:, 1], directions[:, 0])) % 180.0)


def draw_circle(axes: Any, rows: Vector, matrix: Vector, etas: dict[float, float]) -> None:
    """Show rows on the circle, and the law as its distance from it."""
    degrees = np.linspace(0.0, 360.0, 721)
    circle = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    axes.plot(*circle, color=GREY, linewidth=0.8)
    axes.plot(*rows.T, "o", color=BLACK, markersize=2.0, alpha=0.5, label=f"{N_ROWS} rows")
    for epsilon, eta in etas.items():
        radius = 1.0 + 25.0 * density(matrix, eta, degrees)
        axes.plot(*(radius * circle), color=COLOURS[epsilon])
    axes.set_aspect("equal")
    axes.set(
        xlabel="first column", ylabel="second column", title="distance from the circle: density"
    )
    axes.legend(loc="lower right", fontsize=6.0)


def draw_angles(
    axes: Any, mechanism: PrincipalDirection, matrix: Vector, etas: dict[float, float], draws: int
) -> None:
    """Show the density of the angle and the shares of draws."""
    degrees = np.linspace(0.0, 180.0, 721)
    cells = np.linspace(0.0, 180.0, N_CELLS + 1)
    for seed, (epsilon, eta) in enumerate(etas.items()):
        found = mechanism.sample(epsilon=epsilon, size=draws, seed=seed)[:, 0]
        shares, _ = np.histogram(angles_of(found), cells, density=True)
        axes.stairs(shares, cells, color=COLOURS[epsilon], fill=True, alpha=0.25)
        label = f"epsilon = {epsilon:g}"
        axes.plot(degrees, density(matrix, eta, degrees), color=COLOURS[epsilon], label=label)
    best = angles_of(np.linalg.eigh(matrix)[1][:, -1][None, :])[0]
    axes.axvline(best, color=BLACK, linewidth=0.8, linestyle=":", label="first eigenvector")
    axes.set(
        xlabel="angle of the released axis (degrees)",
        ylabel="density per degree",
        title=f"lines: density exp(eta v'Av); bars: {draws} draws",
        xlim=(0.0, 180.0),
    )
    axes.legend(loc="upper right")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20_000)
    draws = parser.parse_args().draws
    rows = made_up_rows()
    mechanism = PrincipalDirection.from_rows(rows)
    matrix = row_products(rows).astype(np.float64) * 2.0**-40
    etas = {epsilon: mechanism.certificate(epsilon=epsilon).eta for epsilon in COLOURS}
    figure = new_figure(2.9)
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.35])
    draw_circle(left, rows, matrix, etas)
    draw_angles(right, mechanism, matrix, etas, draws)
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=170, metadata={"Software": None})


if __name__ == "__main__":
    main()
