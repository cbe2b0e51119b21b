"""The picture of the README: released medians of the example survey beside the true one.

    pip install 'expmech[paper,estimators]'
    python -m benchmarks.median_picture [--output docs/figures]

Seeded draws of the shipped code. Bars hold 95% of 400 of them, of which 30 are shown.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt

import expmech as em

SURVEY = Path(__file__).parents[1] / "examples" / "data" / "survey.csv"
BLUE, ORANGE = "#0072B2", "#D55E00"  # Okabe and Ito
EPSILONS = (0.05, 0.1, 0.3, 1.0)
DRAWS, SHOWN = 400, 30


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=Path("docs/figures"))
    minutes = np.loadtxt(SURVEY, delimiter=",", skiprows=1, usecols=6)
    median = em.ExponentialMechanism(
        loss=em.losses.Quantile(minutes, q=0.5, lower=0.0, upper=150.0),
        domain=em.Multiples(step=1, lower=0.0, upper=150.0),
    )
    figure, axes = plt.subplots(figsize=(8, 3.1), layout="constrained")
    axes.axhline(np.median(minutes), color=ORANGE, linewidth=1.5, label="true median of the table")
    for place, epsilon in enumerate(EPSILONS):
        values = median.sample(epsilon=epsilon, size=DRAWS, seed=place).values[:, 0]
        low, high = np.quantile(values, [0.025, 0.975])
        words = "95% of releases" if place == 0 else None
        axes.bar(place, high - low, 0.7, bottom=low, color=BLUE, alpha=0.15, label=words)
        across = place + np.linspace(-0.3, 0.3, SHOWN)
        words = f"{SHOWN} released medians" if place == 0 else None
        axes.plot(across, values[:SHOWN], ".", color=BLUE, label=words)
    axes.set_xticks(range(len(EPSILONS)), [f"epsilon = {epsilon:g}" for epsilon in EPSILONS])
    axes.set(ylabel="commute in minutes", title="The median of 1,000 people, released with privacy")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    figure.savefig(parser.parse_args().output / "medians.png", dpi=110)


if __name__ == "__main__":
    main()
