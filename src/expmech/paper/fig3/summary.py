"""The results of Figure 3, put together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expmech.paper.fig3.law import realised_k
from expmech.paper.study import Results
from expmech.paper.work import Result


class CellSummary:
    """The results of all cells, put together; grids are those of the run."""

    def __init__(self, results: Results) -> None:
        first = next(p for p, _ in results if p["part"] == "points")
        self.epsilons, self.counts = tuple(first["epsilon"]), tuple(first["points"])
        self.exact = {p["epsilon"]: r for p, r in results if p["part"] == "continuous"}
        batches = [r for p, r in results if p["part"] == "points"]
        self.survival = np.concatenate([batch["survival"] for batch in batches])
        self.printed, self.meant = np.quantile(self.survival, [0.05, 0.95], axis=0)
        self.curves = np.array([self.exact[epsilon]["survival"] for epsilon in self.epsilons])
        shares = np.array([float(self.exact[epsilon]["log_share"]) for epsilon in self.epsilons])
        log_mean = np.concatenate([batch["log_mean"] for batch in batches])
        k = realised_k(log_mean, shares)[..., None]  # type: ignore[arg-type]
        self.mixture = np.quantile((1.0 - k) * self.curves + k * self.survival, 0.95, axis=0)
        redrawn = [r["survival"] for p, r in results if p["part"] == "data"]
        self.redrawn = np.quantile(np.concatenate(redrawn), 0.95, axis=0)
        self.drawn = {p["epsilon"]: p["draws"] for p, _ in results if p["part"] == "continuous"}
        atoms = [(p, r) for p, r in results if p["part"] == "random atom"]
        self.atoms = {(p["epsilon"], p["points"]): r for p, r in atoms}
        self.draws = {(p["epsilon"], p["points"]): p["draws"] for p, _ in atoms}
        self.laws = {key: mixture_law(r, self.exact[key[0]]) for key, r in self.atoms.items()}


def mixture_law(atom: Result, exact: Result) -> NDArray[np.float64]:
    """Return the survival function RandomAtomPerfect has on one set of points."""
    share = float(realised_k(atom["log_mean"], float(exact["log_share"])))
    return np.asarray((1.0 - share) * exact["survival"] + share * atom["discrete"])


def largest_gap(atom: Result, law: NDArray[np.float64]) -> float:
    """Return the largest distance of the draws from the law; nan where there are none."""
    return float(np.abs(atom["sampled"] - law).max())
