"""Expected numbers of proposals of each sampler. Derivations: docs/theory/bounds.md."""

from __future__ import annotations

import math


def expected_steps_conf_atom(
    offset: float, log_weight: float, log_atom_mass: float, log_normaliser: float
) -> float:
    """Return ``2 e^B (1 + w / Z_f)``, ``B = max(0, m - W)``: mean steps of ConfAtomPerfect.

    Parameters
    ----------
    offset, log_weight : float
        m, the certified offset of the re-entry law, and W, the atom's log weight, in nats.
    log_atom_mass, log_normaliser : float
        Logarithms of the atom's mass w and of the normaliser Z_f.

    Returns
    -------
    float

    Examples
    --------
    At W = m the atom is rejection with a detour: 2 (1 + M/Z) steps.

    >>> expected_steps_conf_atom(0.0, 0.0, math.log(3.0), 0.0)
    8.0
    """
    tag = max(0.0, offset - log_weight)
    return 2.0 * math.exp(tag) * (1.0 + math.exp(log_atom_mass - log_normaliser))


def paper_bound_conf_atom(k: float, acceptance_infimum: float) -> float:
    """Return the paper's Theorem 2 bound ``48 / (k^2 (1-k)^2 inf p_Accept)``.

    The paper multiplies counts that should be added.

    Parameters
    ----------
    k : float
        Share of the atom in the mixture.
    acceptance_infimum : float
        The least acceptance probability over all points.

    Returns
    -------
    float

    Examples
    --------
    >>> paper_bound_conf_atom(0.5, 1.0)
    768.0
    """
    return 48.0 / (k**2 * (1.0 - k) ** 2 * acceptance_infimum)


def paper_bound_random_atom(k: float, acceptance_infimum: float) -> float:
    """Return the paper's Corollary 1 bound ``48 / (k^2 (1-k) inf p_Accept)``.

    It is Theorem 2's without the repetition that avoids the atom, and has its faults: the counts
    add where it multiplies, the inner loop does not cost ``1/((1-k) inf p_Accept)``, and the chain
    it bounds has the constant weight k only if the normaliser is known.

    Parameters
    ----------
    k, acceptance_infimum : float
        As in :func:`paper_bound_conf_atom`.

    Returns
    -------
    float

    Examples
    --------
    >>> paper_bound_random_atom(0.5, 1.0)
    384.0
    """
    return 48.0 / (k**2 * (1.0 - k) * acceptance_infimum)


def paper_bound_runtime(k: float, acceptance_floor: float) -> float:
    """Return the paper's Corollary 2 bound ``48 / (k^2 (1-k)^2 eta)``, eta half of the floor.

    The half is not needed: a padded geometric count has mean 1/p_0, since ``1/p + (1 - p_0/p)/p_0 =
    1/p_0``. What is wrong is not the bound but what is bounded: padding by the infimum over points
    leaves the count dependent on the data, and value and count are dependent (errata, row 6).

    Parameters
    ----------
    k : float
        As in :func:`paper_bound_conf_atom`.
    acceptance_floor : float
        The infimum of p_Accept over all points *and* all data sets.

    Returns
    -------
    float

    Examples
    --------
    >>> paper_bound_runtime(0.5, 1.0)
    1536.0
    """
    return 96.0 / (k**2 * (1.0 - k) ** 2 * acceptance_floor)


def paper_counts(k: float, acceptance_infimum: float) -> dict[str, float]:
    """Return the four numbers of Theorem 2's proof, whose product is its bound.

    N_outer and N_nonatomic are printed as means, N_bern and N_inner as bounds.

    Parameters
    ----------
    k, acceptance_infimum : float
        As in :func:`paper_bound_conf_atom`.

    Returns
    -------
    dict from str to float

    Examples
    --------
    >>> math.prod(paper_counts(0.5, 1.0).values()) == paper_bound_conf_atom(0.5, 1.0)
    True
    """
    return {
        "outer": 2.0 / k,
        "inner": 1.0 / ((1.0 - k) * acceptance_infimum),
        "bern": 24.0 / k,
        "nonatomic": 1.0 / (1.0 - k),
    }


def expected_cost_constant_mixture(k: float, continuous: float, points: int) -> float:
    """Return the mean loss evaluations of ``(1-k) f + k g`` with constant k, drawn by one coin.

    Parameters
    ----------
    k : float
        Probability that all points are evaluated and one of them is drawn.
    continuous : float
        Mean evaluations of a draw from f.
    points : int
        Number of public points, the support of g.

    Returns
    -------
    float

    Examples
    --------
    >>> expected_cost_constant_mixture(0.5, 10.0, 4)
    7.0
    """
    return (1.0 - k) * continuous + k * points
