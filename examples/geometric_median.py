"""A central place of made-up households, released privately: the geometric median.

Run it with `python examples/geometric_median.py`.
"""

from __future__ import annotations

import numpy as np

import expmech as em

LOWER, UPPER = [0.0, 0.0], [40.0, 25.0]  # public: the limits of the county, in kilometres


def main() -> None:
    """Release the point with the least sum of distances at epsilon = 1; print it and its terms."""
    generator = np.random.default_rng(0)
    town = generator.normal([12.0, 9.0], 2.0, size=(600, 2))
    villages = generator.uniform(LOWER, UPPER, size=(200, 2))
    homes = np.concatenate([town, villages])
    mechanism = em.ExponentialMechanism(
        loss=em.losses.GeometricMedian(homes, lower=LOWER, upper=UPPER),
        domain=em.Box(LOWER, UPPER),
    )
    print(mechanism.plan(epsilon=1.0))
    release = mechanism.release(epsilon=1.0)
    east, north = release.value
    print(f"\na place for the station: {east:.2f} km east, {north:.2f} km north\n")
    print(release.certificate)


if __name__ == "__main__":
    main()
