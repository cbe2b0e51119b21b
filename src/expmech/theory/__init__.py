"""Every bound of the paper in corrected form, as functions of public quantities.

Derivations: docs/theory/bounds.md. Probabilities come back as logarithms where they can underflow.
"""

from expmech.theory.acceptance import (
    acceptance_laplace,
    acceptance_laplace_infimum,
    acceptance_uniform,
    laplace_integral,
)
from expmech.theory.bounds import (
    beta_laplace,
    beta_uniform,
    constant_rounds,
    delta_from_steps,
    log_acceptance_floor_box,
    log_acceptance_floor_finite,
    log_beta_laplace,
    pure_steps,
    steps_from_delta,
)
from expmech.theory.cost import (
    expected_proposals_constant,
    expected_proposals_pad,
    expected_proposals_rejection,
    expected_steps_conf_atom,
    expected_steps_factory,
    expected_steps_random_atom,
    paper_bound_conf_atom,
)
from expmech.theory.utility import utility_corollary, utility_discrete, utility_mcsherry_talwar

__all__ = [
    "acceptance_laplace",
    "acceptance_laplace_infimum",
    "acceptance_uniform",
    "beta_laplace",
    "beta_uniform",
    "constant_rounds",
    "delta_from_steps",
    "expected_proposals_constant",
    "expected_proposals_pad",
    "expected_proposals_rejection",
    "expected_steps_conf_atom",
    "expected_steps_factory",
    "expected_steps_random_atom",
    "laplace_integral",
    "log_acceptance_floor_box",
    "log_acceptance_floor_finite",
    "log_beta_laplace",
    "paper_bound_conf_atom",
    "pure_steps",
    "steps_from_delta",
    "utility_corollary",
    "utility_discrete",
    "utility_mcsherry_talwar",
]
