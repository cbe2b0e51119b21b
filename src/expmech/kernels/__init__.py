"""Kernels of moves: symmetric proposals that Metropolis and the atom's chains take."""

from expmech.kernels.ball import Ball
from expmech.kernels.base import Kernel
from expmech.kernels.check import check_kernel
from expmech.kernels.gaussian import Gaussian
from expmech.kernels.mixture import Mixture, Uniform
from expmech.kernels.registry import KERNELS, rebuild_kernel, validate_kernel
from expmech.kernels.steps import Exchange, Laplace, LaplaceSteps

__all__ = [
    "KERNELS",
    "Ball",
    "Exchange",
    "Gaussian",
    "Kernel",
    "Laplace",
    "LaplaceSteps",
    "Mixture",
    "Uniform",
    "check_kernel",
    "rebuild_kernel",
    "validate_kernel",
]
