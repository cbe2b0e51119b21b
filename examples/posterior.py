"""A private draw from a posterior: a success rate with a Beta prior, at several epsilons.

Run: python examples/posterior.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import expmech as em

SUCCESSES, ROWS, LOW = 30, 40, 0.05


def minus_log_likelihood(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus the log-likelihood of the rows at each rate."""
    rate = y[:, 0]
    return np.asarray(-(SUCCESSES * np.log(rate) + (ROWS - SUCCESSES) * np.log1p(-rate)))


def beta_prior(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-density of Beta(3, 3) up to a constant, at most 0."""
    return np.asarray(2.0 * np.log(4.0 * y[:, 0] * (1.0 - y[:, 0])))


def main() -> None:
    """Print what a draw is like as epsilon grows to that of the posterior itself."""
    sensitivity = np.log((1.0 - LOW) / LOW)
    mechanism = em.ExponentialMechanism(
        loss=minus_log_likelihood,
        sensitivity=sensitivity,
        domain=em.Box([LOW], [1.0 - LOW]),
        minimum=0.0,
        bound=-ROWS * np.log(LOW),
        lipschitz=[ROWS / LOW],
        base=em.BaseMeasure(beta_prior, name="Beta(3, 3)", lipschitz=[2.0 / LOW]),
    )
    whole = em.theory.posterior_epsilon(sensitivity, loss_error=-(2.0**-44) * ROWS * np.log(LOW))
    print(f"{'epsilon':>8}  {'eta':>6}  {'mean':>6}  {'spread':>6}")
    for epsilon in (0.1, 1.0, whole):
        draws = mechanism.sample(epsilon=epsilon, size=4000, seed=1).values[:, 0]
        eta = mechanism.certificate(epsilon=epsilon).eta
        print(f"{epsilon:8.3f}  {eta:6.3f}  {draws.mean():6.3f}  {draws.std():6.3f}")
    print(f"posterior: mean {33 / 46:.3f}, spread {np.sqrt(33 * 13 / (46**2 * 47)):.3f}")
    print(mechanism.release(epsilon=1.0).certificate)


if __name__ == "__main__":
    main()
