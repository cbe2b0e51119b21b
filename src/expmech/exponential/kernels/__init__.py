"""Kernels of moves that Metropolis and the atom's chains take: exact draws with exact ratios."""

from expmech.exponential.kernels.base import Kernel, Moves, SymmetricKernel
from expmech.exponential.kernels.check import check_kernel
from expmech.exponential.kernels.hastings import MALA, Independence
from expmech.exponential.kernels.mixture import KERNELS, Mixture, UniformMoves
from expmech.exponential.kernels.steps import Ball, Exchange, Gaussian, Laplace

__all__ = [
    "KERNELS",
    "MALA",
    "Ball",
    "Exchange",
    "Gaussian",
    "Independence",
    "Kernel",
    "Laplace",
    "Mixture",
    "Moves",
    "SymmetricKernel",
    "UniformMoves",
    "check_kernel",
]
