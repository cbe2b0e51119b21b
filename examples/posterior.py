"""A private draw from a posterior: a success rate with a Beta prior, at several epsilons.

Run: python examples/posterior.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import expmech as em

ROWS = np.repeat([1.0, 0.0], [30, 10])  # made-up: 30 successes of 40
LOW = 0.05  # rates are known to lie between 0.05 and 0.95


def log_likelihood(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-likelihood of each row, one column per row, at each rate."""
    return np.where(ROWS == 1.0, np.log(y[:, :1]), np.log1p(-y[:, :1]))


def beta_prior(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-density of Beta(3, 3) up to a constant, at most 0."""
    return np.asarray(2.0 * np.log(4.0 * y[:, 0] * (1.0 - y[:, 0])))


def main() -> None:
    """Print what a draw is like as epsilon grows to that of the posterior itself."""
    rate = em.posterior(
        log_likelihood,
        domain=em.Box([LOW], [1.0 - LOW]),
        prior=em.BaseMeasure(beta_prior, name="Beta(3, 3)", lipschitz=[2.0 / LOW]),
        bound=(np.log(LOW), np.log(1.0 - LOW)),
        lipschitz=[1.0 / LOW],
    )
    print(f"{'epsilon':>8}  {'power':>6}  {'mean':>6}  {'spread':>6}")
    for epsilon in (0.1, 1.0, rate.full_epsilon):
        draws = rate.sample(epsilon=epsilon, size=4000, seed=1).values[:, 0]
        power = rate.power(epsilon=epsilon)
        print(f"{epsilon:8.3f}  {power:6.3f}  {draws.mean():6.3f}  {draws.std():6.3f}")
    spread = np.sqrt(33 * 13 / (46**2 * 47))
    print(f"the posterior itself: mean {33 / 46:.3f}, spread {spread:.3f}")
    print(rate.release(epsilon=1.0).certificate)


if __name__ == "__main__":
    main()
