"""How the cost of one exact draw grows with the dimension, with epsilon n and with n.

The mean of Example 1, and a median.

    python -m benchmarks.growth

Writes benchmarks/results/growth.md and growth_d.png, growth_epsilon_n.png, growth_n.png beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import expmech as em
from benchmarks.support import RESULTS, best_of, count, duration, environment, prose, table, write
from expmech.losses import AffineForm
from expmech.paper.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, new_figure

DIMENSIONS = tuple(range(1, 9))
ROWS = 200  # with epsilon = 1, of the table over d
PRODUCTS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FIXED_PRODUCT, FIXED_EPSILON = 100.0, 0.1
DRAWS, TREES, TIMED, REPEATS = 400, 12, 8, 5
MOST = 30_000.0  # mean proposals beyond which uniform rejection is computed
# evaluations of a first draw beyond which the box tree is not run in the next dimension
MOST_CELLS = 30_000.0
MOST_TIMED = 10_000.0  # evaluations beyond which a draw is not timed


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Mean loss evaluations of a draw, and whether they were computed rather than measured."""

    evaluations: float
    computed: bool = False

    def __str__(self) -> str:
        return count(self.evaluations) + (" (c)" if self.computed else "")


class CountedMean(em.losses.L1Mean):
    """The loss that counts the points it is asked for."""

    evaluated = 0
    affine: AffineForm

    def __call__(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        self.evaluated += len(y)
        return super().__call__(y)


def center_of(d: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng([d, seed]).uniform(0.3, 0.7, d)


def make_problem(d: int, n: int, seed: int) -> tuple[CountedMean, em.ExponentialMechanism]:
    """Return the loss of n rows with that mean.

    Which also says that it is the norm of an affine function, and its mechanism.
    """
    sums = [int(x * 2**30) * n for x in center_of(d, seed)]
    loss = CountedMean.from_sums(count=n, sums=sums, scale=1 << 30)
    assert isinstance(loss, CountedMean)
    loss.affine = AffineForm(matrix=np.eye(d), vector=np.array(sums) / (n * 2.0**30), norm="l1")
    return loss, em.ExponentialMechanism(loss=loss, domain=em.Box([0.0] * d, [1.0] * d))


def tree_evaluations(d: int, n: int, epsilon: float) -> float:
    """Return the mean evaluations of a first draw: middles of cells and proposals."""
    found = []
    for seed in range(TREES):
        loss, mechanism = make_problem(d, n, seed)
        loss.evaluated = 0
        mechanism.sample(epsilon=epsilon, sampler=em.BoxTree(), seed=seed)
        found.append(loss.evaluated)
    return float(np.mean(found))


def uniform_proposals(d: int, n: int, epsilon: float) -> float:
    return 1.0 / em.theory.acceptance_uniform(center_of(d, 0).tolist(), epsilon * n / (2 * d))


def best_atom(d: int, n: int, epsilon: float) -> em.ConfAtomPerfect:
    """Return the atom at W = m, where it is cheapest.

    There its mass is M = e^m Z_r, which a Laplace envelope keeps near Z. The k asked for refers to
    the public floor of Z.
    """
    floor = make_problem(d, n, 0)[1].target(epsilon=epsilon).log_floor()
    assert floor is not None
    odds = math.exp(-floor) / uniform_proposals(d, n, epsilon)
    return em.ConfAtomPerfect(odds / (1.0 + odds))


def costs(d: int, n: int, epsilon: float, *, tree: bool) -> dict[str, Cost]:
    """Return what a draw costs by every method."""
    mechanism = make_problem(d, n, 0)[1]

    def proposals(sampler: Any, size: int = DRAWS) -> float:
        return float(
            mechanism.sample(epsilon=epsilon, size=size, sampler=sampler, seed=1).proposals.mean()
        )

    uniform = uniform_proposals(d, n, epsilon)
    measured = uniform <= MOST
    target = mechanism.target(epsilon=epsilon)
    steps = em.Metropolis(pure=True).terms(target).parameters["steps"]
    return {
        "uniform rejection": Cost(
            evaluations=proposals(em.Rejection(em.Uniform()), DRAWS // 4) if measured else uniform,
            computed=not measured,
        ),
        "box tree": Cost(evaluations=tree_evaluations(d, n, epsilon) if tree else math.nan),
        "Laplace rejection": Cost(evaluations=proposals(em.Rejection(em.ProductLaplace()))),
        "separable": Cost(evaluations=proposals(em.Separable()) / d),
        "affine": Cost(evaluations=proposals(em.Rejection(em.Affine()))),
        "atom, best k": Cost(
            evaluations=proposals(best_atom(d, n, epsilon)) / 2
        ),  # every other step is an evaluation
        "pure Metropolis": Cost(evaluations=float(steps), computed=True),
    }


def sweep(settings: Sequence[tuple[int, int, float]]) -> list[dict[str, Cost]]:
    """Return the costs at each (d, n, epsilon).

    The box tree is left out once it has grown too large.
    """
    rows: list[dict[str, Cost]] = []
    for d, n, epsilon in settings:
        tree = not rows or rows[-1]["box tree"].evaluations < MOST_CELLS
        rows.append(costs(d, n, epsilon, tree=tree))
    return rows


def cost_table(label: str, keys: Sequence[str], rows: Sequence[dict[str, Cost]]) -> list[str]:
    cells = [
        [key, *(str(cost).replace("nan", "-") for cost in row.values())]
        for key, row in zip(keys, rows, strict=True)
    ]
    return table([label, *rows[0]], cells)


def time_ratios(rows: Sequence[dict[str, Cost]]) -> list[list[str]]:
    """Return the wall time of one draw, a mean over seeds, in units of the same method's at d = 1.

    Where it was measured.
    """
    samplers: dict[str, Callable[[int], Any]] = {
        "uniform rejection": lambda d: em.Rejection(em.Uniform()),
        "box tree": lambda d: em.BoxTree(),
        "Laplace rejection": lambda d: em.Rejection(em.ProductLaplace()),
        "separable": lambda d: em.Separable(),
        "affine": lambda d: em.Rejection(em.Affine()),
        "atom, best k": lambda d: best_atom(d, ROWS, 1.0),
    }

    def draws(d: int, sampler: Any) -> Callable[[], None]:
        mechanism = make_problem(d, ROWS, 0)[1]

        def run() -> None:
            for seed in range(TIMED):
                mechanism.sample(epsilon=1.0, sampler=sampler, seed=seed)

        return run

    functions = {
        f"{name} {d}": draws(d, make(d))
        for d, row in zip(DIMENSIONS, rows, strict=True)
        for name, make in samplers.items()
        if not row[name].computed and row[name].evaluations < MOST_TIMED
    }
    spent = best_of(functions, REPEATS)
    lines = [["1 (time)", *(duration(spent[f"{name} 1"] / TIMED) for name in samplers)]]
    for d in DIMENSIONS[1:]:
        ratios = (spent.get(f"{name} {d}", math.nan) / spent[f"{name} 1"] for name in samplers)
        lines.append([str(d), *("-" if math.isnan(ratio) else count(ratio) for ratio in ratios)])
    return [["d", *samplers], *lines]


def read_and_release(n: int, kind: str, epsilon: float) -> tuple[float, float]:
    """Return the seconds it takes to turn n rows into a loss, and to release from it."""
    generator = np.random.default_rng(n)
    rows = generator.beta(5, 5, (n, 2)) if kind == "mean" else generator.normal(size=n)

    def read() -> Any:
        if kind == "mean":
            return em.losses.L1Mean(rows)
        return em.losses.Quantile(rows, q=0.5, lower=-10.0, upper=10.0, adjacency="replace")

    domain = em.Box([0.0] * 2, [1.0] * 2) if kind == "mean" else em.Box([-10.0], [10.0])
    mechanism = em.ExponentialMechanism(loss=read(), domain=domain)
    sampler: Any = "auto" if kind == "mean" else em.BoxTree()
    release = best_of(
        {"": lambda: mechanism.release(epsilon=epsilon, sampler=sampler)}, 3 * REPEATS
    )[""]
    return best_of({"": read}, REPEATS)[""], release


LOOKS = {
    "uniform rejection": (VERMILION, "o", 5.0),
    "box tree": (BLUE, "s", 5.0),
    "Laplace rejection": (
        GREEN,
        "^",
        9.0,
    ),  # this and the next two lie on top of each other: the sizes keep them visible
    "separable": (SKY, "v", 6.5),
    "affine": (PURPLE, "D", 3.0),
    "atom, best k": (ORANGE, "P", 5.0),
    "pure Metropolis": (BLACK, "X", 5.0),
}


def draw(axes: Axes, x: Sequence[float], rows: Sequence[dict[str, Cost]]) -> None:
    """Draw evaluations against x; hollow markers are computed."""
    for name, (colour, marker, size) in LOOKS.items():
        y = [row[name].evaluations for row in rows]
        axes.plot(x, y, color=colour, linewidth=1.0)
        axes.plot([], [], color=colour, marker=marker, markersize=size, label=name)
        for hollow in (False, True):
            at = [i for i, row in enumerate(rows) if row[name].computed is hollow]
            face = "white" if hollow else colour
            axes.plot(
                [x[i] for i in at],
                [y[i] for i in at],
                marker,
                color=colour,
                markerfacecolor=face,
                markersize=size,
            )
    axes.set_yscale("log")
    axes.set_ylabel("loss evaluations of a draw (hollow: computed)")


def draw_over_d(rows: Sequence[dict[str, Cost]]) -> None:
    figure = new_figure(3.2)
    axes = figure.subplots()
    draw(axes, DIMENSIONS, rows)
    axes.set_xlabel(f"dimension d (epsilon n = {ROWS})")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(RESULTS / "growth_d.png", dpi=150)


def draw_over_product(tables: dict[int, list[dict[str, Cost]]]) -> None:
    figure = new_figure(3.2)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (d, rows) in zip(panels, tables.items(), strict=True):
        draw(axes, PRODUCTS, rows)
        axes.set_xscale("log")
        axes.set_xlabel(f"epsilon n, d = {d}")
    panels[1].set_ylabel("")
    panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(RESULTS / "growth_epsilon_n.png", dpi=150)


def size_rows() -> list[list[str]]:
    """Measure times over n, draw them, and return the table."""
    labels = {
        ("mean", "fixed epsilon n"): (GREEN, "^"),
        ("mean", "fixed epsilon"): (SKY, "v"),
        ("median", "fixed epsilon n"): (BLUE, "s"),
        ("median", "fixed epsilon"): (ORANGE, "P"),
    }
    found = {
        (kind, what): [
            read_and_release(
                n, kind, FIXED_PRODUCT / n if what == "fixed epsilon n" else FIXED_EPSILON
            )
            for n in SIZES
        ]
        for kind, what in labels
    }
    figure = new_figure(3.2)
    axes = figure.subplots()
    for (kind, what), (colour, marker) in labels.items():
        axes.plot(
            SIZES,
            [one[1] * 1e3 for one in found[kind, what]],
            color=colour,
            marker=marker,
            label=f"release, {kind}, {what}",
        )
    for kind, style in (("mean", "--"), ("median", ":")):
        label = f"rows into a loss, {kind}"
        axes.plot(
            SIZES,
            [one[0] * 1e3 for one in found[kind, "fixed epsilon n"]],
            color=BLACK,
            linestyle=style,
            label=label,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rows n")
    axes.set_ylabel("time (ms)")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(RESULTS / "growth_n.png", dpi=150)
    lines = []
    for i, n in enumerate(SIZES):
        cells = []
        for kind in ("mean", "median"):
            cells += [duration(found[kind, "fixed epsilon n"][i][0])]
            cells += [
                duration(found[kind, what][i][1]) for what in ("fixed epsilon n", "fixed epsilon")
            ]
        lines.append([f"{n:,}", *cells])
    whats = ("rows into a loss", "release at fixed epsilon n", "release at fixed epsilon")
    header = [f"{kind}: {what}" for kind in ("mean", "median") for what in whats]
    return [["n", *header], *lines]


INTRODUCTION = f"""Loss evaluations of one draw for the mean of rows in [0, 1]^d (Example 1; L1 loss, D = d/n, one row replaced),
whose energy rises by epsilon n / 2d nats along each axis. Uniform and Laplace rejection, affine and the atom: mean proposals
over {DRAWS} draws ({DRAWS // 4} with uniform proposals); the atom makes one evaluation every other step. Separable: evaluations
of one coordinate, divided by d. Box tree: middles of cells and proposals of a first draw, default batch, Lipschitz bounds only,
{TREES} seeds. (c): computed, not measured: uniform rejection from `expmech.theory.acceptance_uniform`, pure Metropolis from its
public number of steps, which is constant. The atom is at its best k, where its mass is that of the envelope."""

SIZES_TEXT = f"""Evaluations depend on n only through epsilon n. Mean, d = 2, at fixed epsilon n = {FIXED_PRODUCT:g}, then at
fixed epsilon = {FIXED_EPSILON:g}:"""

READING = f"""What grows with n itself is reading the rows: for the mean in d = 2 one pass, for the median a sort, after which a
release looks at the rows only by binary search. Times for n rows in memory, of a release at epsilon n = {FIXED_PRODUCT:g} or at
epsilon = {FIXED_EPSILON:g}:"""


def main() -> None:
    over_d = sweep([(d, ROWS, 1.0) for d in DIMENSIONS])
    over_product = {d: sweep([(d, product, 1.0) for product in PRODUCTS]) for d in (1, 2)}
    draw_over_d(over_d)
    draw_over_product(over_product)
    times, sizes = time_ratios(over_d), size_rows()
    keys = [f"{n:,}" for n in SIZES]
    lines = [
        "# How the cost of an exact draw grows",
        "",
        *environment("growth"),
        "",
        *prose(INTRODUCTION),
        "",
    ]
    lines += [
        f"## With d, at epsilon n = {ROWS}",
        "",
        *cost_table("d", [str(d) for d in DIMENSIONS], over_d),
        "",
    ]
    lines += ["![evaluations against d](growth_d.png)", ""]
    lines += [
        (
            f"Wall time of one draw, calibration included, mean over {TIMED} seeds, in units of the"
            " same method's at d = 1:"
        ),
        "",
    ]
    lines += [*table(times[0], times[1:]), ""]
    for d, rows in over_product.items():
        lines += [
            f"## With epsilon n, d = {d}",
            "",
            *cost_table("epsilon n", [f"{product:,}" for product in PRODUCTS], rows),
            "",
        ]
    lines += [
        "![evaluations against epsilon n](growth_epsilon_n.png)",
        "",
        "## With n",
        "",
        *prose(SIZES_TEXT),
        "",
    ]
    lines += [*cost_table("n", keys, sweep([(2, n, FIXED_PRODUCT / n) for n in SIZES])), ""]
    lines += [
        *cost_table("n", keys, sweep([(2, n, FIXED_EPSILON) for n in SIZES])),
        "",
        *prose(READING),
        "",
    ]
    write("growth", [*lines, *table(sizes[0], sizes[1:]), "", "![time against n](growth_n.png)"])


if __name__ == "__main__":
    main()
