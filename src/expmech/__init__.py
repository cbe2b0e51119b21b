"""expmech draws exactly from the exponential mechanism of differential privacy on bounded continuous output spaces."""

from expmech import theory
from expmech._version import __version__
from expmech.domains import Box, Candidates, L1Ball, L2Ball, Simplex
from expmech.envelopes import ProductLaplace, Uniform
from expmech.errors import (
    EnvelopeViolatedError,
    ExpmechError,
    LossError,
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
)
from expmech.mechanism import Growth, losses
from expmech.release import Certificate, ExponentialMechanism, Release
from expmech.samplers import (
    ConfAtomAndRuntimePerfect,
    ConfAtomPerfect,
    Draws,
    Metropolis,
    RandomAtomPerfect,
    Rejection,
    Tabulated,
)

__all__ = [
    "Box",
    "Candidates",
    "Certificate",
    "ConfAtomAndRuntimePerfect",
    "ConfAtomPerfect",
    "Draws",
    "EnvelopeViolatedError",
    "ExpmechError",
    "ExponentialMechanism",
    "Growth",
    "L1Ball",
    "L2Ball",
    "LossError",
    "Metropolis",
    "ParameterError",
    "ParameterTypeError",
    "ProductLaplace",
    "RandomAtomPerfect",
    "Rejection",
    "Release",
    "Simplex",
    "Tabulated",
    "Uniform",
    "UnsupportedError",
    "__version__",
    "losses",
    "theory",
]
