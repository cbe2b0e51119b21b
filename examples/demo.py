"""A private release end to end: the mean commute and rent share of a small synthetic survey.

Run it with `make demo`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import expmech as em

LOWER, UPPER = [0.0, 0.0], [120.0, 1.0]  # public bounds, chosen without looking at the data


def main() -> None:
    """Release the two means at epsilon = 1 and print the certificate."""
    rows = np.loadtxt(
        Path(__file__).parent / "data" / "survey.csv", delimiter=",", skiprows=1, usecols=(6, 7)
    )
    shares = (rows - LOWER) / (
        np.array(UPPER) - LOWER
    )  # both columns on [0, 1], so that they share the budget evenly
    mechanism = em.ExponentialMechanism(
        loss=em.losses.L1Mean(shares), domain=em.Box([0.0, 0.0], [1.0, 1.0])
    )
    release = mechanism.release(epsilon=1.0)
    minutes, share = np.array(LOWER) + release.value * (np.array(UPPER) - LOWER)
    print(f"mean commute     {minutes:.1f} minutes")
    print(f"mean rent share  {share:.3f}")
    print()
    print(release.certificate)


if __name__ == "__main__":
    main()
