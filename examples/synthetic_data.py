"""Synthetic rows by the pMSE mechanism: draw the parameters of a model, then make rows from them.

Run: python examples/synthetic_data.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import expmech as em

ROWS, MADE, EPSILON = 1000, 1000, 1.0
PUBLIC = np.random.default_rng(0).standard_normal(size=(MADE, 2))  # fixed before any data is seen


def synthetic(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return two correlated columns with mean y[0] and correlation y[1], from the public draws."""
    second = y[1] * PUBLIC[:, 0] + np.sqrt(1.0 - y[1] ** 2) * PUBLIC[:, 1]
    return np.column_stack([PUBLIC[:, 0], second]) + y[0]


def main() -> None:
    """Draw the parameters of a bivariate normal model privately and show what they make."""
    generator = np.random.default_rng(1)
    noise = generator.standard_normal(size=(ROWS, 2))
    rows = np.column_stack([noise[:, 0], 0.6 * noise[:, 0] + 0.8 * noise[:, 1]]) + 0.5  # made-up
    edges = [np.linspace(-1.5, 2.5, 5)] * 2
    loss = em.losses.PMSE(rows, synthetic=synthetic, edges=edges)
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([-1.0, -0.9], [1.0, 0.9], bits=5))
    release = mechanism.release(epsilon=EPSILON)
    made = synthetic(np.asarray(release.value))
    print(f"parameters drawn: mean {release.value[0]:.2f}, correlation {release.value[1]:.2f}")
    print(
        f"{len(made)} synthetic rows: means {np.round(made.mean(axis=0), 2)}, correlation"
        f" {np.corrcoef(made.T)[0, 1]:.2f}; real rows have {np.round(rows.mean(axis=0), 2)} and"
        f" {np.corrcoef(rows.T)[0, 1]:.2f}"
    )


if __name__ == "__main__":
    main()
