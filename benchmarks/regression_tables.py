"""Data sets for regressions: features, targets and public bounds, fixed before a score was seen.

The tables of ``known`` were looked at while the rule for defaults was made (its derivation uses
synthetic problems only, docs/theory/perturbed_optimum.md, 8); those of ``unseen`` were chosen and
bounded afterwards, from their descriptions, and the rule was not changed since.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import statsmodels.datasets as bundled
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
    make_classification,
    make_friedman1,
    make_regression,
)

Floats = NDArray[np.float64]
Bounds = list[tuple[float, float]]
_PUBLIC = json.loads(Path(__file__).with_name("optimum_bounds.json").read_text())

# Clinical reference ranges, from normal (or low) to very high.
DIABETES: Bounds = [
    (20.0, 80.0),  # age: adults
    (1.0, 2.0),  # sex
    (18.5, 40.0),  # body mass index: underweight below, class III obesity above
    (70.0, 130.0),  # mean arterial pressure
    (100.0, 300.0),  # total cholesterol
    (50.0, 200.0),  # LDL
    (20.0, 90.0),  # HDL
    (2.0, 8.0),  # total cholesterol / HDL
    (3.9, 6.2),  # log triglycerides
    (60.0, 126.0),  # glucose
]
CANCER = {
    "mean radius": (5.0, 25.0),
    "mean texture": (10.0, 35.0),
    "mean smoothness": (0.05, 0.15),
    "mean compactness": (0.0, 0.3),
    "mean concavity": (0.0, 0.4),
}
FAIR: Bounds = [
    (1.0, 5.0),  # how one rates the marriage
    (17.0, 45.0),  # age
    (0.0, 25.0),  # years married
    (0.0, 6.0),  # children
    (1.0, 4.0),  # religiousness
    (9.0, 20.0),  # years of education
    (1.0, 6.0),  # occupation
    (1.0, 6.0),  # the husband's
]
ELECTION: Bounds = [
    (0.0, 8000.0),  # population of the place, thousands
    (0.0, 7.0),  # days of news a week
    *[(1.0, 7.0)] * 3,  # self, Clinton, Dole from left to right
    (0.0, 6.0),  # party
    (18.0, 91.0),  # age
    (1.0, 7.0),  # education
    (1.0, 24.0),  # income bracket
]
VISITS: Bounds = [
    (0.0, 5.0),  # log of the coinsurance rate plus one
    (0.0, 1.0),  # individual deductible plan
    (0.0, 8.0),  # log of the participation payment
    (0.0, 9.0),  # log of the maximal expenditure
    (0.0, 1.0),  # a limitation
    (0.0, 60.0),  # chronic diseases
    *[(0.0, 1.0)] * 3,  # health good, fair, poor
]
HOUSES: Bounds = [
    (0.0, 15.0),  # income
    (0.0, 52.0),  # age of the house
    (1.0, 10.0),  # rooms
    (0.5, 2.0),  # bedrooms
    (0.0, 5000.0),  # population of the block
    (1.0, 6.0),  # members of a household
    (0.0, 100.0),  # distance to the coast
    (0.0, 1.0),  # share of new houses
]


@dataclass(frozen=True)
class Table:
    """Features with public bounds; ``target_bounds`` is None for a classification."""

    name: str
    features: Floats
    target: NDArray[Any]
    bounds: Bounds
    target_bounds: tuple[float, float] | None = None

    def scaled(self) -> Floats:
        """Return the features clipped to their bounds and scaled to [-1, 1]."""
        lower, upper = np.array(self.bounds).T
        clipped = np.clip(self.features, lower, upper)
        return np.asarray(2.0 * (clipped - lower) / (upper - lower) - 1.0)


def known() -> list[Table]:
    """Return the six tables of the comparison."""
    cancer, wine, digits = load_breast_cancer(), load_wine(), load_digits()
    diabetes = load_diabetes(scaled=False)
    five = [list(cancer.feature_names).index(name) for name in CANCER]
    two = wine.target < 2
    wide = [(low, high) for low, high in _PUBLIC["breast_cancer_30"]]
    tasted = [(low, high) for low, high in _PUBLIC["wine"]]
    return [
        Table("breast cancer, 5", cancer.data[:, five], cancer.target, list(CANCER.values())),
        Table("breast cancer, 30", cancer.data, cancer.target, wide),
        Table("wine 0-1, 13", wine.data[two], wine.target[two], tasted),
        Table("digits even-odd, 64", digits.data, digits.target % 2, [(0.0, 16.0)] * 64),
        Table("diabetes, 10", diabetes.data, diabetes.target, DIABETES, (25.0, 346.0)),
        houses(),
    ]


def houses(n: int = 20_000) -> Table:
    """Return prices of houses on eight skewed columns, capped at 5 as surveys do."""
    g = np.random.default_rng(20)
    income = g.lognormal(1.2, 0.5, n)
    age = np.minimum(g.gamma(3.0, 10.0, n), 52.0)
    rooms = g.lognormal(1.65, 0.3, n)
    bedrooms = g.lognormal(0.05, 0.15, n)
    people = g.lognormal(7.0, 0.8, n)
    household = g.lognormal(1.05, 0.25, n)
    coast = g.exponential(30.0, n)
    new = g.beta(0.5, 3.0, n)
    price = 0.42 * income + 0.008 * age + 0.05 * rooms - 0.2 * (household - 3.0) - 0.008 * coast
    price = np.clip(price + 0.4 + g.gumbel(0.0, 0.45, n), 0.15, 5.0)
    columns = np.column_stack([income, age, rooms, bedrooms, people, household, coast, new])
    return Table("houses (synthetic), 8", columns, price, HOUSES, (0.0, 5.0))


def ten_digits() -> Table:
    """Return the digits with all their classes."""
    digits = load_digits()
    return Table("digits, ten classes", digits.data, digits.target, [(0.0, 16.0)] * 64)


def unseen() -> list[Table]:
    """Return tables that nobody looked at before: small, skewed, wide, and hardly linear ones."""
    iris, linnerud = load_iris(), load_linnerud()
    petals = iris.target > 0
    fair, vote = bundled.fair.load_pandas().data, bundled.anes96.load_pandas().data
    visits, engel = bundled.randhie.load_pandas().data, bundled.engel.load_pandas().data
    asked = ["popul", "TVnews", "selfLR", "ClinLR", "DoleLR", "PID", "age", "educ", "income"]
    made, labels = make_classification(n_samples=2000, n_features=20, random_state=11)
    curved, heights = make_friedman1(n_samples=3000, n_features=10, noise=1.0, random_state=12)
    straight, sums = make_regression(n_samples=500, n_features=15, noise=20.0, random_state=13)
    jumps, weight = linnerud.data, linnerud.target[:, 0]
    return [
        Table(
            "iris 1-2, 4",
            iris.data[petals],
            iris.target[petals] - 1,
            [(4.0, 8.0), (2.0, 4.5), (1.0, 7.0), (0.0, 2.5)],
        ),
        Table(
            "affairs, 8",
            fair.drop(columns="affairs").to_numpy(float),
            (fair["affairs"] > 0).to_numpy(int),
            FAIR,
        ),
        Table(
            "election of 1996, 9", vote[asked].to_numpy(float), vote["vote"].to_numpy(int), ELECTION
        ),
        Table("make_classification, 20", made, labels, [(-4.0, 4.0)] * 20),
        Table("make_friedman1, 10", curved, heights, [(0.0, 1.0)] * 10, (0.0, 30.0)),
        Table("make_regression, 15", straight, sums, [(-3.0, 3.0)] * 15, (-800.0, 800.0)),
        Table(
            "visits to a doctor, 9",
            visits.drop(columns="mdvis").to_numpy(float),
            visits["mdvis"].to_numpy(float),
            VISITS,
            (0.0, 30.0),
        ),
        Table(
            "Engel's food, 1",
            engel[["income"]].to_numpy(float),
            engel["foodexp"].to_numpy(float),
            [(0.0, 3000.0)],
            (0.0, 2000.0),
        ),
        Table(
            "linnerud, 3",
            jumps,
            weight,
            [(0.0, 20.0), (0.0, 250.0), (0.0, 250.0)],
            (100.0, 250.0),
        ),
    ]
