"""Kernels of moves: symmetric proposals that Metropolis and the atom's chains take."""

from expmech.exponential.kernels.base import Kernel, check_kernel
from expmech.exponential.kernels.mixture import KERNELS, Mixture, UniformMoves
from expmech.exponential.kernels.steps import Ball, Exchange, Gaussian, Laplace

__all__ = [
    "KERNELS",
    "Ball",
    "Exchange",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Mixture",
    "UniformMoves",
    "check_kernel",
]
