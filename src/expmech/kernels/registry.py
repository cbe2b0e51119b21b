"""Kernels by the name in a certificate: one list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expmech.errors import ParameterError, ParameterTypeError
from expmech.extensions import Registry
from expmech.kernels.ball import Ball
from expmech.kernels.base import Kernel
from expmech.kernels.gaussian import Gaussian
from expmech.kernels.mixture import Mixture, Uniform
from expmech.kernels.steps import Exchange, Laplace

BUILT_IN: tuple[type[Kernel], ...] = (Uniform, Laplace, Gaussian, Ball, Exchange, Mixture)

KERNELS: Registry[type[Kernel]] = Registry(
    "expmech.kernels", [(kernel.name, kernel) for kernel in BUILT_IN]
)


def rebuild_kernel(description: Mapping[str, Any]) -> Kernel:
    """Return the kernel of a certificate; raise where its name is unknown."""
    name = str(description["kernel"])
    kind = KERNELS.find(name)
    if kind is None:
        raise ParameterError(f"`kernel` must be the name of a known kernel; got {name!r}.")
    return kind.rebuild(description)


def validate_kernel(kernel: object, *, owner: str) -> Kernel:
    """Return ``kernel`` if it is one."""
    if not isinstance(kernel, Kernel):
        raise ParameterTypeError(
            f"`kernel` of {owner} must be a kernel such as expmech.kernels.Gaussian(scale=0.1);"
            f" got {kernel!r}."
        )
    return kernel
