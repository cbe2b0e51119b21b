"""Private regressions against diffprivlib.

Test scores over 20 seeds with the same splits, bounds and adjacency for both.

.venv-benchmark/bin/python benchmarks/utility_benchmark.py [--output benchmarks/results/utility.md]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diffprivlib.models as diffprivlib
import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split

from expmech.estimators import PrivateLogisticRegression, PrivateRidge

EPSILONS = (0.1, 1.0, 10.0)
SEEDS, DRAWS = range(20), 10
Bounds = list[tuple[float, float]]

# Clinical reference ranges, from normal (or low) to very high: values beyond are clipped, for both
# libraries. They are the second choice; FIRST came before, and NOTES tells the order of events.
DIABETES: dict[str, tuple[float, float]] = {
    "age": (20.0, 80.0),  # adults
    "sex": (1.0, 2.0),
    "bmi": (18.5, 40.0),  # WHO: underweight below, class III obesity above
    "bp": (70.0, 130.0),  # mean arterial pressure
    "s1": (100.0, 300.0),  # total cholesterol
    "s2": (50.0, 200.0),  # LDL
    "s3": (20.0, 90.0),  # HDL
    "s4": (2.0, 8.0),  # total cholesterol / HDL
    "s5": (3.9, 6.2),  # log triglycerides: 50 to 500 mg/dL
    "s6": (60.0, 126.0),  # glucose, up to the diagnostic threshold
}
PROGRESSION = (25.0, 346.0)  # the range the data set's description states
FIRST: dict[str, tuple[float, float]] = {
    "age": (18.0, 80.0),
    "sex": (1.0, 2.0),
    "bmi": (15.0, 45.0),
    "bp": (60.0, 140.0),
    "s1": (90.0, 310.0),
    "s2": (40.0, 250.0),
    "s3": (20.0, 100.0),
    "s4": (1.0, 10.0),
    "s5": (3.0, 6.5),
    "s6": (55.0, 130.0),
}
FIRST_PROGRESSION = (0.0, 350.0)
# Five of the ten "mean" features, fixed by what they are: size, surface, outline. Round ranges for
# imaged nuclei.
CANCER: dict[str, tuple[float, float]] = {
    "mean radius": (5.0, 25.0),
    "mean texture": (10.0, 35.0),
    "mean smoothness": (0.05, 0.15),
    "mean compactness": (0.0, 0.3),
    "mean concavity": (0.0, 0.4),
}


@dataclass(frozen=True)
class Problem:
    """A data set with public bounds; ``target_bounds`` is None for a classification."""

    name: str
    features: NDArray[np.float64]
    target: NDArray[np.float64]
    bounds: Bounds
    target_bounds: tuple[float, float] | None


def problems() -> list[Problem]:
    diabetes, cancer = load_diabetes(scaled=False), load_breast_cancer()
    bmi = diabetes.feature_names.index("bmi")
    generator = np.random.default_rng(5)
    rows = generator.uniform(-1.0, 1.0, (10_000, 5))
    weights = np.array([0.4, -0.3, 0.2, 0.1, 0.0])
    answers = np.clip(0.1 + rows @ weights + generator.normal(0.0, 0.3, len(rows)), -1.0, 1.0)
    features = [list(cancer.feature_names).index(name) for name in CANCER]
    return [
        Problem(
            "diabetes, BMI",
            diabetes.data[:, [bmi]],
            diabetes.target,
            [DIABETES["bmi"]],
            PROGRESSION,
        ),
        Problem(
            "diabetes, 10 features",
            diabetes.data,
            diabetes.target,
            list(DIABETES.values()),
            PROGRESSION,
        ),
        Problem(
            "diabetes, BMI, first bounds",
            diabetes.data[:, [bmi]],
            diabetes.target,
            [FIRST["bmi"]],
            FIRST_PROGRESSION,
        ),
        Problem(
            "diabetes, 10 features, first bounds",
            diabetes.data,
            diabetes.target,
            list(FIRST.values()),
            FIRST_PROGRESSION,
        ),
        Problem("synthetic, p = 5, n = 10^4", rows, answers, [(-1.0, 1.0)] * 5, (-1.0, 1.0)),
        Problem(
            "breast cancer, 5 features",
            cancer.data[:, features],
            cancer.target,
            list(CANCER.values()),
            None,
        ),
    ]


def scaled(problem: Problem) -> NDArray[np.float64]:
    """Clip to the bounds and scale to [-1, 1]: the one public preprocessing."""
    lower, upper = np.array(problem.bounds).T
    return np.asarray(
        2.0 * (np.clip(problem.features, lower, upper) - lower) / (upper - lower) - 1.0
    )


def ours(problem: Problem, epsilon: float, seed: int) -> Any:
    options: dict[str, Any] = {"epsilon": epsilon, "bounds_X": (-1.0, 1.0), "random_state": seed}
    if problem.target_bounds is None:
        return PrivateLogisticRegression(classes=[0, 1], **options)
    return PrivateRidge(bounds_y=problem.target_bounds, **options)


def theirs(problem: Problem, epsilon: float, seed: int) -> Any:
    columns = len(problem.bounds)
    if problem.target_bounds is None:
        norm = np.sqrt(columns) / 2  # rows are shortened to it by both libraries
        return diffprivlib.LogisticRegression(
            epsilon=epsilon, data_norm=norm, random_state=seed, max_iter=1000
        )
    return diffprivlib.LinearRegression(
        epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=problem.target_bounds, random_state=seed
    )


def plain(problem: Problem, epsilon: float, seed: int) -> Any:
    return (
        LogisticRegression(C=1e3, max_iter=1000)
        if problem.target_bounds is None
        else LinearRegression()
    )


def scores(
    problem: Problem, epsilon: float, make: Callable[[Problem, float, int], Any]
) -> tuple[NDArray[np.float64], float]:
    """Return the test score of each seed's split, the mean of ten fits.

    And the longest fit in seconds.
    """
    found, longest = [], 0.0
    for seed in SEEDS:
        train, test, target, answers = train_test_split(
            scaled(problem), problem.target, test_size=0.25, random_state=seed
        )
        fits = []
        for draw in range(DRAWS):
            started = time.perf_counter()
            model = make(problem, epsilon, DRAWS * seed + draw).fit(train, target)
            longest = max(longest, time.perf_counter() - started)
            fits.append(model.score(test, answers))
        found.append(np.mean(fits))
    return np.array(found), longest


def shown(number: float) -> str:
    return f"{number:.4f}" if abs(number) < 100.0 else f"{number:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", default="", help="run the problems whose name holds this text")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # diffprivlib on a newer scikit-learn
    lines = [
        (
            "| data | epsilon | expmech | diffprivlib | difference | paired standard error |"
            " non-private | longest exact fit (s) |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for problem in problems():
        if arguments.only not in problem.name:
            continue
        best = scores(problem, 1.0, plain)[0].mean()
        for epsilon in EPSILONS:
            mine, longest = scores(problem, epsilon, ours)
            other, _ = scores(problem, epsilon, theirs)
            gap = mine - other
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            numbers = " | ".join(
                shown(float(x)) for x in (mine.mean(), other.mean(), gap.mean(), error, best)
            )
            lines.append(f"| {problem.name} | {epsilon:g} | {numbers} | {longest:.2f} |")
            print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text(
            HEADING.format(sklearn=sklearn.__version__) + "\n".join(lines) + "\n" + NOTES
        )


HEADING = """# Utility against diffprivlib 0.6.6

One run of `benchmarks/utility_benchmark.py` (scikit-learn {sklearn}): mean test score over 20 splits (seeds), ten fits a split; R2
for the regressions, accuracy for breast cancer. A quarter of the rows is the test set; the standard error is over splits.
Both libraries get the same splits, the same columns (clipped to public bounds and scaled to [-1, 1]; for breast cancer rows are
shortened to norm sqrt(5)/2) and the same adjacency (one row replaced, n public).
expmech's estimators are used with their defaults: radius and penalty by one rule of n, p and epsilon, see docs/estimators.md. Every
fit is an exact draw; the seeds make it a study.

"""
NOTES = """
## What was chosen after looking

The choices below are not blind, so small differences in the table deserve less trust than their standard errors suggest.

- Diabetes bounds. The first, wider ones were scored with expmech alone (BMI at epsilon = 1: R2 0.11, then 0.16 with a corrected
  penalty). The clinical reference ranges replaced them after that, before diffprivlib was run. Rows for both are in the table.
- Ridge defaults. Three versions of the rule for radius and penalty, each fitted on synthetic regressions, were scored on diabetes
  on the way. The second corrected a wrong noise variance, which the BMI score had shown; the third changed the radius.
- Logistic defaults. Radius 8 and penalty 0.1 came first (accuracy 0.687, 0.874, 0.918). The rule now used was fitted on synthetic
  data because the last of these was behind.
- Fits a split. At one fit a split BMI at epsilon = 1 was 0.239 against 0.225, a difference of 0.014 with standard error 0.032: not
  resolved. Ten fits a split were introduced then, for every row and both libraries.

The five features of breast cancer and their ranges, the synthetic problem, the splits and the epsilons were not changed.

## Where expmech is behind

Breast cancer at epsilon = 10. The exponential mechanism with the log-likelihood has an error that falls like 1/sqrt(n epsilon),
that of objective perturbation, which diffprivlib uses, like 1/(n epsilon).

## diffprivlib's epsilon

Its LinearRegression with an intercept spends more than its epsilon: the means of X and of y take epsilon/(p + 1) each, and the
objective p epsilon/(p + 1), together (p + 2)/(p + 1) of it, 1.5 epsilon for BMI. Its LogisticRegression does not penalise the
intercept, which the proof of objective perturbation needs. Both are compared at their nominal epsilon.
"""

if __name__ == "__main__":
    main()
