"""K-norm gradient mechanisms beyond ridge: a median, a quantile regression, a Poisson regression.

Run: python examples/gradient_norm.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import expmech as em

EPSILON = 1.0


def poisson_slope(
    margins: NDArray[np.float64], targets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the derivative of exp(t) - z t, the Poisson risk, by its margin t."""
    return np.asarray(np.exp(margins) - targets)


def main() -> None:
    """Release three estimates, each by the norm of its own gradient."""
    generator = np.random.default_rng(4)
    ages = generator.normal(45.0, 12.0, size=2000)  # made-up
    features = generator.uniform(-1.0, 1.0, size=(2000, 2))
    incomes = features @ [0.8, -0.4] + 0.3 * generator.standard_normal(2000)
    visits = generator.poisson(np.exp(features @ [0.5, 0.25])).astype(float)
    problems = {
        "median age": (
            em.losses.GradientNorm.quantile(None, ages, q=0.5),
            em.Box([0.0], [120.0]),
            [np.median(ages)],
        ),
        "quantile regression, 90%": (
            em.losses.GradientNorm.quantile(features, incomes, q=0.9, norm="linf"),
            em.Box([-2.0] * 2, [2.0] * 2, bits=20),
            [0.8, -0.4],
        ),
        "Poisson regression": (
            em.losses.GradientNorm(
                features, visits, slope=poisson_slope, slope_bounds=(-4.0, 4.0), norm="l2"
            ),
            em.Box([-2.0] * 2, [2.0] * 2, bits=20),
            [0.5, 0.25],
        ),
    }
    for name, (loss, domain, truth) in problems.items():
        mechanism = em.ExponentialMechanism(loss=loss, domain=domain)
        value = mechanism.release(epsilon=EPSILON).value
        chosen = mechanism.plan(epsilon=EPSILON).chosen
        print(
            f"{name}: released {np.round(value, 3)} (data made with {np.round(truth, 3)}), by"
            f" {chosen}, sensitivity {float(loss.sensitivity):g}"
        )


if __name__ == "__main__":
    main()
