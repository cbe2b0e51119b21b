"""Release statistics of confidential tables with exact differential privacy.

Names are loaded on first use, so that ``import expmech`` and ``expmech --help`` stay quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from expmech._version import __version__
from expmech.core.on_demand import names_on_demand as _names_on_demand

if _TYPE_CHECKING:
    from expmech import estimators, interop, tables
    from expmech.auditing import Claim, audit, laboratory
    from expmech.certificates.certificate import Certificate
    from expmech.certificates.mechanism import Draws
    from expmech.core.adjacency import Adjacency
    from expmech.core.errors import ExpmechError, ParameterError, UnsupportedError
    from expmech.domains import Box, Candidates, Domain, L1Ball, L2Ball, Multiples, Product, Simplex
    from expmech.exponential import kernels
    from expmech.exponential.envelopes import (
        Affine,
        Convex,
        Cross,
        ProductLaplace,
        Tangent,
        Uniform,
    )
    from expmech.exponential.mechanism import ExponentialMechanism
    from expmech.exponential.posterior import posterior
    from expmech.exponential.samplers import (
        BoxTree,
        ConfAtomAndRuntimePerfect,
        ConfAtomPerfect,
        ConstantMixture,
        ConstantTabulated,
        Ergodicity,
        Metropolis,
        RandomAtomPerfect,
        Rejection,
        Separable,
        Tabulated,
    )
    from expmech.exponential.target import BaseMeasure
    from expmech.ledger import Ledger
    from expmech.losses import Facts, Growth
    from expmech.mechanisms.bounds.private_bounds import PrivateBounds
    from expmech.mechanisms.directions.principal_direction import PrincipalDirection
    from expmech.mechanisms.groups.unknown_groups import UnknownGroups
    from expmech.mechanisms.k_norm import bodies
    from expmech.mechanisms.k_norm.k_norm import KNorm
    from expmech.mechanisms.noisy_sums.noisy_sums import NoisyMean, NoisySums
    from expmech.mechanisms.optimum import risks
    from expmech.mechanisms.optimum.perturbed_optimum import PerturbedOptimum
    from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles
    from expmech.mechanisms.quantiles.recursive_quantiles import RecursiveQuantiles
    from expmech.mechanisms.selection.permute_and_flip import PermuteAndFlip
    from expmech.mechanisms.selection.top_k import TopK
    from expmech.tables.functions import count, histogram, mean, median, quantiles, sum, variance

__all__ = [
    "Adjacency",
    "Affine",
    "BaseMeasure",
    "Box",
    "BoxTree",
    "Candidates",
    "Certificate",
    "Claim",
    "ConfAtomAndRuntimePerfect",
    "ConfAtomPerfect",
    "ConstantMixture",
    "ConstantTabulated",
    "Convex",
    "Cross",
    "Domain",
    "Draws",
    "Ergodicity",
    "ExpmechError",
    "ExponentialMechanism",
    "Facts",
    "Growth",
    "JointQuantiles",
    "KNorm",
    "L1Ball",
    "L2Ball",
    "Ledger",
    "Metropolis",
    "Multiples",
    "NoisyMean",
    "NoisySums",
    "ParameterError",
    "PermuteAndFlip",
    "PerturbedOptimum",
    "PrincipalDirection",
    "PrivateBounds",
    "Product",
    "ProductLaplace",
    "RandomAtomPerfect",
    "RecursiveQuantiles",
    "Rejection",
    "Separable",
    "Simplex",
    "Tabulated",
    "Tangent",
    "TopK",
    "Uniform",
    "UnknownGroups",
    "UnsupportedError",
    "__version__",
    "audit",
    "bodies",
    "count",
    "estimators",
    "histogram",
    "interop",
    "kernels",
    "laboratory",
    "mean",
    "median",
    "posterior",
    "quantiles",
    "risks",
    "sum",
    "tables",
    "variance",
]

__getattr__, __dir__ = _names_on_demand(
    __name__,
    {
        "auditing": "Claim audit laboratory",
        "certificates.certificate": "Certificate",
        "certificates.mechanism": "Draws",
        "core.adjacency": "Adjacency",
        "core.errors": "ExpmechError ParameterError UnsupportedError",
        "domains": "Box Candidates Domain L1Ball L2Ball Multiples Product Simplex",
        "exponential.envelopes": "Affine Convex Cross ProductLaplace Tangent Uniform",
        "exponential.mechanism": "ExponentialMechanism",
        "exponential.posterior": "posterior",
        "exponential.samplers": """
            BoxTree ConfAtomAndRuntimePerfect ConfAtomPerfect ConstantMixture
            ConstantTabulated Ergodicity Metropolis RandomAtomPerfect Rejection
            Separable Tabulated
        """,
        "exponential.target": "BaseMeasure",
        "ledger": "Ledger",
        "losses": "Facts Growth",
        "mechanisms.directions.principal_direction": "PrincipalDirection",
        "mechanisms.bounds.private_bounds": "PrivateBounds",
        "mechanisms.groups.unknown_groups": "UnknownGroups",
        "mechanisms.k_norm.k_norm": "KNorm",
        "mechanisms.noisy_sums.noisy_sums": "NoisyMean NoisySums",
        "mechanisms.optimum.perturbed_optimum": "PerturbedOptimum",
        "mechanisms.quantiles.joint_quantiles": "JointQuantiles",
        "mechanisms.quantiles.recursive_quantiles": "RecursiveQuantiles",
        "mechanisms.selection.permute_and_flip": "PermuteAndFlip",
        "mechanisms.selection.top_k": "TopK",
        "tables.functions": "count histogram mean median quantiles sum variance",
    },
    modules={
        "auditing": "auditing",
        "bodies": "mechanisms.k_norm.bodies",
        "estimators": "estimators",
        "interop": "interop",
        "kernels": "exponential.kernels",
        "losses": "losses",
        "risks": "mechanisms.optimum.risks",
        "tables": "tables",
        "theory": "theory",
    },
)
