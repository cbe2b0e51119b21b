"""The bounds on cost that the paper prints: docs/theory/bounds.md, section 4."""

from __future__ import annotations


def paper_bound_conf_atom(k: float, acceptance_infimum: float) -> float:
    """Return Theorem 2's ``48 / (k^2 (1-k)^2 inf p_Accept)``.

    The paper multiplies counts that should be added.

    >>> paper_bound_conf_atom(0.5, 1.0)
    768.0
    """
    return 48.0 / (k**2 * (1.0 - k) ** 2 * acceptance_infimum)


def paper_bound_random_atom(k: float, acceptance_infimum: float) -> float:
    """Return Corollary 1's ``48 / (k^2 (1-k) inf p_Accept)``.

    It is Theorem 2's without the repetition that avoids the atom, and has its faults: the counts
    add where it multiplies, the inner loop does not cost ``1/((1-k) inf p_Accept)``, and the chain
    it bounds has the constant weight k only if the normaliser is known.

    >>> paper_bound_random_atom(0.5, 1.0)
    384.0
    """
    return 48.0 / (k**2 * (1.0 - k) * acceptance_infimum)


def paper_bound_runtime(k: float, acceptance_floor: float) -> float:
    """Return Corollary 2's ``48 / (k^2 (1-k)^2 eta)``, eta half of the floor over all data sets.

    The half is not needed: a padded geometric count has mean 1/p_0, since ``1/p + (1 - p_0/p)/p_0 =
    1/p_0``. What is wrong is not the bound but what is bounded: padding by the infimum over points
    leaves the count dependent on the data, and value and count are dependent (errata, row 6).

    >>> paper_bound_runtime(0.5, 1.0)
    1536.0
    """
    return 96.0 / (k**2 * (1.0 - k) ** 2 * acceptance_floor)


def paper_counts(k: float, acceptance_infimum: float) -> dict[str, float]:
    """Return the four numbers of Theorem 2's proof, whose product is its bound.

    N_outer and N_nonatomic are printed as means, N_bern and N_inner as bounds.

    >>> import math
    >>> math.prod(paper_counts(0.5, 1.0).values()) == paper_bound_conf_atom(0.5, 1.0)
    True
    """
    return {
        "outer": 2.0 / k,
        "inner": 1.0 / ((1.0 - k) * acceptance_infimum),
        "bern": 24.0 / k,
        "nonatomic": 1.0 / (1.0 - k),
    }
