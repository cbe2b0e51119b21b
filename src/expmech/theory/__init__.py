"""Every bound of the paper in corrected form, as functions of public quantities.

Derivations: docs/theory/bounds.md. Probabilities come back as logarithms where they can underflow.
"""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
    from expmech.theory.bounds import (
        acceptance_laplace,
        acceptance_laplace_infimum,
        acceptance_uniform,
        beta_laplace,
        beta_uniform,
        delta_from_steps,
        density_distance,
        expected_cost_constant_mixture,
        expected_steps_conf_atom,
        laplace_integral,
        log_acceptance_floor_box,
        log_acceptance_floor_walk,
        log_beta_laplace,
        posterior_epsilon,
        steps_from_delta,
    )
    from expmech.theory.divergence import (
        delta_from_ergodicity,
        delta_from_tv,
        hockey_stick,
        renyi_divergence,
        steps_from_ergodicity,
        true_delta,
        true_epsilon,
        true_renyi,
    )
    from expmech.theory.utility import (
        excess_loss_log_concave,
        excess_loss_tail_log_concave,
        utility_corollary,
        utility_discrete,
        utility_mcsherry_talwar,
    )

__all__ = [
    "acceptance_laplace",
    "acceptance_laplace_infimum",
    "acceptance_uniform",
    "beta_laplace",
    "beta_uniform",
    "delta_from_ergodicity",
    "delta_from_steps",
    "delta_from_tv",
    "density_distance",
    "excess_loss_log_concave",
    "excess_loss_tail_log_concave",
    "expected_cost_constant_mixture",
    "expected_steps_conf_atom",
    "hockey_stick",
    "laplace_integral",
    "log_acceptance_floor_box",
    "log_acceptance_floor_walk",
    "log_beta_laplace",
    "posterior_epsilon",
    "renyi_divergence",
    "steps_from_delta",
    "steps_from_ergodicity",
    "true_delta",
    "true_epsilon",
    "true_renyi",
    "utility_corollary",
    "utility_discrete",
    "utility_mcsherry_talwar",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "bounds": """
            acceptance_laplace acceptance_laplace_infimum acceptance_uniform
            beta_laplace beta_uniform delta_from_steps density_distance
            expected_cost_constant_mixture expected_steps_conf_atom laplace_integral
            log_acceptance_floor_box log_acceptance_floor_walk log_beta_laplace
            posterior_epsilon steps_from_delta
        """,
        "divergence": """
            delta_from_ergodicity delta_from_tv hockey_stick renyi_divergence
            steps_from_ergodicity true_delta true_epsilon true_renyi
        """,
        "utility": """
            excess_loss_log_concave excess_loss_tail_log_concave utility_corollary
            utility_discrete utility_mcsherry_talwar
        """,
    },
)
