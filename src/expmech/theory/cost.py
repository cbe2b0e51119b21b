"""Expected numbers of proposals of each sampler. Derivations: docs/theory/bounds.md."""

from __future__ import annotations

import math


def expected_proposals_rejection(acceptance: float) -> float:
    """Return ``1 / p``: the mean of the geometric number of proposals."""
    return 1.0 / acceptance


def expected_steps_conf_atom(
    offset: float, log_weight: float, log_atom_mass: float, log_normaliser: float
) -> float:
    """Return ``2 e^B (1 + w / Z_f)``, ``B = max(0, m - W)``.

    Mean steps of ConfAtomPerfect, all in nats.

    Examples
    --------
    At W = m the atom is rejection with a detour: 2 (1 + M/Z) steps.

    >>> expected_steps_conf_atom(0.0, 0.0, math.log(3.0), 0.0)
    8.0
    """
    tag = max(0.0, offset - log_weight)
    return 2.0 * math.exp(tag) * (1.0 + math.exp(log_atom_mass - log_normaliser))


def expected_steps_random_atom(offset: float, log_weight: float) -> float:
    """Return ``2 e^B``.

    Mean steps of RandomAtomPerfect, whose first tag ends the run wherever it falls.
    """
    return 2.0 * math.exp(max(0.0, offset - log_weight))


def expected_steps_factory(offset: float, log_weight: float, k: float) -> float:
    """Return an upper bound on the mean transitions of ConfAtomPerfect with ``factory=True``.

    Outer steps 1/beta with ``beta = e^-B / 4``, each with a linear Bernoulli factory (at most 9.5 C
    / gap flips, Huber 2016, Theorem 1) and an inner loop of 1/(1 - beta) tries on average, all over
    again 1/(1 - k) times.
    """
    least = math.exp(-max(0.0, offset - log_weight)) / 2.0
    beta = least / 2.0
    gap = (least - beta) / (1.0 - beta)
    flips = 9.5 / ((1.0 - beta) * min(gap, 0.644))
    return (flips + 1.0 / (1.0 - beta)) / beta / (1.0 - k)


def expected_proposals_pad(floor: float) -> float:
    """Return ``1 / p_0``.

    The padded count is geometric with the public floor, whatever the data.
    """
    return 1.0 / floor


def expected_proposals_constant(rounds: int) -> float:
    """Return the number of rounds, which is constant."""
    return float(rounds)


def paper_bound_conf_atom(k: float, acceptance_infimum: float) -> float:
    """Return the paper's Theorem 2 bound ``48 / (k^2 (1-k)^2 inf p_Accept)``.

    It multiplies counts that add.
    """
    return 48.0 / (k**2 * (1.0 - k) ** 2 * acceptance_infimum)
