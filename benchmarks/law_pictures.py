"""Pictures of five laws, from their definitions, with draws of the shipped code beside them.

    pip install 'expmech[paper]'
    python benchmarks/law_pictures.py [--output docs/figures]

Small made-up data; each law is enumerated, and crosses are frequencies of seeded draws.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import Counter
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import expmech as em

BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"  # Okabe and Ito
Law = NDArray[np.float64]


def one_row(file: Path) -> None:
    """Show a private mean at three budgets, and how little one row changes its law."""
    rows = np.append(np.random.default_rng(7).beta(2, 4, 19), 0.0)
    other = np.append(rows[:-1], 1.0)
    box = em.Box([0.0], [1.0], bits=8)
    mean, changed = (
        em.ExponentialMechanism(loss=em.losses.L1Mean(data), domain=box) for data in (rows, other)
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3))
    for place, (epsilon, color) in enumerate(zip((0.25, 1, 4), (ORANGE, GREEN, BLUE), strict=True)):
        points, law = mean.law(epsilon=epsilon)
        left.fill_between(points[:, 0], law * 256, color=color, alpha=0.25)
        left.plot(points[:, 0], law * 256, color=color, label=f"epsilon = {epsilon:g}")
        drawn = mean.sample(epsilon=epsilon, size=20, seed=place).values
        left.plot(drawn[:, 0], np.full(20, -1 - place), ".", color=color)
    left.axvline(rows.mean(), color="black", linewidth=0.8, linestyle=":")
    left.set(title="More budget, nearer answers: 20 draws each", xlabel="released mean", yticks=[])
    left.set_ylabel("density; draws below")
    left.legend(fontsize=8)
    points, here = mean.law(epsilon=1)
    _, there = changed.law(epsilon=1)
    right.fill_between([0, 1], -1, 1, color=BLUE, alpha=0.12, label="what epsilon = 1 allows")
    right.plot(points[:, 0], np.log(here / there), color=BLUE, label="a 0 in one row against a 1")
    right.set(title="What one person's row can change", xlabel="released mean", ylim=(-1.3, 1.3))
    right.set_ylabel("log ratio of the two laws (nats)")
    right.legend(fontsize=8, loc="lower right")
    _save(figure, file)


def product(file: Path) -> None:
    """Show the law of a column and a threshold, drawn together by the box tree."""
    names, random = ["age", "income", "tenure"], np.random.default_rng(3)
    columns = random.random((100, 3))
    answers = columns[:, 1] + 0.15 * random.normal(size=100) > 0.6

    def mistakes(lower: Law, upper: Law) -> Law:
        at = columns[:, lower[:, 1].astype(int)].T
        missed = ((at <= lower[:, :1]) & answers).sum(axis=1)
        return np.asarray(missed + ((at > upper[:, :1]) & ~answers).sum(axis=1), dtype=float)

    mechanism = em.ExponentialMechanism(
        loss=lambda y: mistakes(y, y),
        sensitivity=1,
        bound=100,
        lower_bound=mistakes,
        domain=em.Product(em.Box([0.0], [1.0], bits=5), em.Candidates(names)),
    )
    pairs, law = mechanism.law(epsilon=0.1)
    drawn = mechanism.sample(epsilon=0.1, size=10_000, sampler=em.BoxTree(), seed=1).values
    seen = Counter((pair.point[0], pair.label) for pair in drawn)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
    for axis, name in zip(axes, names, strict=True):
        here = [j for j, pair in enumerate(pairs) if pair.label == name]
        at = [pairs[j].point[0] for j in here]
        axis.step(at, law[here], where="mid", color=BLUE, label="law, epsilon = 0.1")
        share = [seen[x, name] / len(drawn) for x in at]
        axis.plot(at, share, "x", color=GREEN, markersize=4, label="10,000 draws, box tree")
        axis.set(title=name, xlabel="threshold (share of the column's range)")
    axes[0].set_ylabel("probability of column and threshold")
    axes[0].legend(fontsize=7)
    _save(figure, file)


def joint_quantiles(file: Path) -> None:
    """Show where each of three quantiles falls, jointly and at a third of epsilon each."""
    points, epsilon, levels = 32, 2.0, ("1/4", "1/2", "3/4")
    cells = np.clip(np.random.default_rng(5).normal(16, 5, 60).astype(int), 0, points - 1)
    ranks = np.array([(cells < point).sum() for point in range(points)])
    joint = _joint_marginals(ranks, len(cells), epsilon / 4)
    mechanism = em.JointQuantiles.from_counts(
        np.bincount(cells, minlength=points), levels=levels, lower=0, upper=points
    )
    values = mechanism.sample(epsilon=epsilon, size=10_000, seed=1)
    drawn = mechanism.lattice.locate(values.reshape(-1, 1)).reshape(values.shape)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
    for j, (axis, level) in enumerate(zip(axes, levels, strict=True)):
        share = np.exp(-epsilon / 3 / 2 * np.abs(ranks - (j + 1) / 4 * len(cells)))
        seen = np.bincount(drawn[:, j], minlength=points) / len(drawn)
        axis.step(range(points), joint[j], where="mid", color=BLUE, label="joint law, epsilon = 2")
        axis.step(
            range(points),
            share / share.sum(),
            where="mid",
            color=ORANGE,
            linestyle="--",
            label="one by one, epsilon = 2/3 each",
        )
        axis.plot(range(points), seen, "x", color=GREEN, markersize=4, label="10,000 draws, joint")
        axis.set(title=f"quantile {level} of 60 values", xlabel="answer (cell)")
    axes[0].set_ylabel("probability")
    axes[2].legend(fontsize=7, loc="upper left")
    _save(figure, file)


def _joint_marginals(ranks: Law, count: int, eta: float) -> Law:
    """Return the law of each of three outputs, by summing over all nondecreasing tuples."""
    points = len(ranks)
    marginals = np.zeros((3, points))
    for outputs in itertools.combinations_with_replacement(range(points), 3):
        ends = [0, *(ranks[output] for output in outputs), count]
        loss = sum(abs(b - a - count / 4) for a, b in itertools.pairwise(ends))
        for j, output in enumerate(outputs):
            marginals[j, output] += math.exp(-eta * loss)
    return np.asarray(marginals / marginals[0].sum())


def permute_and_flip(file: Path) -> None:
    """Show the chance of each of ten candidates beside the exponential mechanism's."""
    scores, epsilon = np.array([30, 29, 27, 26, 24, 22, 20, 17, 13, 8.0]), 1.0
    chances = np.exp(-epsilon / 2 * (scores.max() - scores))
    exponential = chances / chances.sum()
    flip = np.array([_first(chances, j) for j in range(len(scores))])
    best = em.PermuteAndFlip.from_scores(scores, sensitivity=1)
    drawn = best.sample(epsilon=epsilon, size=40_000, seed=1)
    seen = np.bincount(drawn, minlength=len(scores)) / len(drawn)
    place = np.arange(len(scores))
    figure, axis = plt.subplots(figsize=(6.5, 3.4))
    axis.bar(place - 0.2, flip, 0.4, color=BLUE, label="permute-and-flip")
    axis.bar(place + 0.2, exponential, 0.4, color=ORANGE, label="exponential mechanism")
    axis.plot(place - 0.2, seen, "x", color=GREEN, label="40,000 draws of permute-and-flip")
    axis.set(xlabel="score of the candidate", ylabel="probability (epsilon = 1, D = 1)")
    axis.set_xticks(place, [f"{score:g}" for score in scores])
    axis.legend(fontsize=8)
    _save(figure, file)


def _first(chances: Law, j: int) -> float:
    product = np.polynomial.Polynomial([1.0])
    for other in np.delete(chances, j):
        product *= np.polynomial.Polynomial([1.0, -other])
    return float(chances[j] * product.integ()(1.0))


def top_k(file: Path) -> None:
    """Show how often each of eight items is listed at each of three places."""
    counts, k, epsilon = [60, 52, 50, 41, 30, 28, 15, 3], 3, 0.6
    best = sorted(counts, reverse=True)
    law: dict[tuple[int, ...], float] = {}
    for items in itertools.permutations(range(len(counts)), k):
        loss = max(best[i] - counts[item] for i, item in enumerate(items))
        law[items] = math.exp(-epsilon / 2 * loss)
    everything = sum(law.values())
    places = np.zeros((k, len(counts)))
    for items, weight in law.items():
        for place, item in enumerate(items):
            places[place, item] += weight / everything
    top = em.TopK.from_counts(counts, k=k, adjacency="add-remove")
    drawn = top.sample(epsilon=epsilon, size=20_000, seed=1)
    figure, axis = plt.subplots(figsize=(6.5, 3.4))
    for place, color in enumerate((BLUE, ORANGE, GREEN)):
        at = np.arange(len(counts)) + 0.25 * (place - 1)
        seen = Counter(drawn[:, place].tolist())
        axis.bar(at, places[place], 0.25, color=color, label=f"place {place + 1}")
        shown = [seen[item] / len(drawn) for item in range(len(counts))]
        axis.plot(at, shown, "kx", markersize=4, label="20,000 draws" if place == 2 else None)
    axis.set(xlabel="count of the item", ylabel="probability (epsilon = 0.6)")
    axis.set_xticks(range(len(counts)), [str(count) for count in counts])
    axis.legend(fontsize=8)
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    figure.tight_layout()
    figure.savefig(file, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/figures"))
    folder = parser.parse_args().output
    one_row(folder / "one_row.png")
    product(folder / "product.png")
    joint_quantiles(folder / "joint_quantiles.png")
    permute_and_flip(folder / "permute_and_flip.png")
    top_k(folder / "top_k.png")


if __name__ == "__main__":
    main()
