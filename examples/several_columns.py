"""Means of several columns at once, and totals with a body of one's own.

A row that may move every sum moves them inside a cube: noise in that shape has about half the error
of independent noise. Run it: ``python examples/several_columns.py``.
"""

import numpy as np

import expmech as em


def main() -> None:
    """Release ten means with intervals for all at once, then two totals that share a limit."""
    table = np.random.default_rng(1).uniform(0, 10, (2000, 10))
    mean = em.NoisyMean.from_rows(table, lower=[0.0] * 10, upper=[10.0] * 10).release(epsilon=1.0)
    near = mean.accuracy
    print("one mean:", mean.value[0].round(3), "in", near.lower[0].round(3), near.upper[0].round(3))
    print("all at once:", (near.joint_upper - near.joint_lower).round(3))

    # a person has at most 3 visits in all, of two kinds: changes lie in a cross-polytope
    visits = em.KNorm(
        totals=[1200, 340], body=em.bodies.CrossPolytope([3, 3]), adjacency="add-remove"
    )
    print("visits:", visits.release(epsilon=1.0).value)


if __name__ == "__main__":
    main()
