"""Exact draws from the exponential mechanism of differential privacy."""

from typing import Any as _Any

from expmech import auditing, kernels, losses, risks, theory
from expmech._version import __version__
from expmech.adjacency import Adjacency
from expmech.auditing import Claim, audit
from expmech.domains import (
    Box,
    Candidates,
    Domain,
    Grid,
    L1Ball,
    L2Ball,
    Product,
    Region,
    Simplex,
)
from expmech.envelopes import Affine, Convex, Cross, Envelope, ProductLaplace, Tangent, Uniform
from expmech.errors import (
    EnvelopeViolatedError,
    ExpmechError,
    LossError,
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
)
from expmech.ledger import Ledger
from expmech.losses import AffineForm, Curvature, Facts, Growth
from expmech.optimum import Lattice
from expmech.release import (
    Accuracy,
    Certificate,
    ExponentialMechanism,
    JointQuantiles,
    NoisyMean,
    NoisySums,
    PermuteAndFlip,
    PerturbedOptimum,
    PrincipalDirection,
    Release,
    TopK,
)
from expmech.samplers import (
    BoxTree,
    ConfAtomAndRuntimePerfect,
    ConfAtomPerfect,
    ConstantMixture,
    ConstantTabulated,
    Draws,
    Ergodicity,
    Metropolis,
    Option,
    Plan,
    RandomAtomPerfect,
    Rejection,
    Sampler,
    Separable,
    Tabulated,
    Terms,
)
from expmech.target import BaseMeasure

__all__ = [
    "Accuracy",
    "Adjacency",
    "Affine",
    "AffineForm",
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
    "Curvature",
    "Domain",
    "Draws",
    "Envelope",
    "EnvelopeViolatedError",
    "Ergodicity",
    "ExpmechError",
    "ExponentialMechanism",
    "Facts",
    "Grid",
    "Growth",
    "JointQuantiles",
    "L1Ball",
    "L2Ball",
    "Lattice",
    "Ledger",
    "LossError",
    "Metropolis",
    "NoisyMean",
    "NoisySums",
    "Option",
    "ParameterError",
    "ParameterTypeError",
    "PermuteAndFlip",
    "PerturbedOptimum",
    "Plan",
    "PrincipalDirection",
    "Product",
    "ProductLaplace",
    "RandomAtomPerfect",
    "Region",
    "Rejection",
    "Release",
    "Sampler",
    "Separable",
    "Simplex",
    "Tabulated",
    "Tangent",
    "Terms",
    "TopK",
    "Uniform",
    "UnsupportedError",
    "__version__",
    "audit",
    "auditing",
    "kernels",
    "losses",
    "risks",
    "theory",
]

_OPTIONAL = (
    "data",
    "dp_accounting",
    "estimators",
    "opendp",
)  # loaded on first use: what they need is large, and optional


def __getattr__(name: str) -> _Any:
    if name in _OPTIONAL:
        import importlib

        return importlib.import_module(f"expmech.{name}")
    raise AttributeError(f"module 'expmech' has no attribute {name!r}")
