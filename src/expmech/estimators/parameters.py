"""Parameters that estimators share, each declared once: fields that their classes inherit.

A class is a dataclass for the sake of its ``__init__``, which stores what it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expmech.estimators.base import PrivateEstimator
from expmech.samplers import Sampler


@dataclass(kw_only=True, eq=False, repr=False)
class Budgeted(PrivateEstimator):
    """What every estimator takes."""

    epsilon: Any = 1.0
    accountant: Any = None
    adjacency: str = "replace"
    random_state: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class Reading(Budgeted):
    """Numbers that are clipped, so that something has to stand for one that is missing."""

    missing: str = "middle"


@dataclass(kw_only=True, eq=False, repr=False)
class Timed(Reading):
    """A draw whose time is forecast in public."""

    timing: str = "auto"
    budget_seconds: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class Sampled(Timed):
    """A draw by a sampler that can be named."""

    sampler: Sampler | str = "auto"


@dataclass(kw_only=True, eq=False, repr=False)
class Optimised(Sampled):
    """A regression by a perturbed optimum."""

    bounds_X: Any = None
    penalty: float | None = None
    data_norm: float | None = None
    sum_norm: float | None = None
    intercept_penalty: float | None = None
    center: bool | None = None
    rows: int | None = None
