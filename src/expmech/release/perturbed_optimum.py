"""The optimum of a perturbed objective, drawn exactly. Theory: docs/theory/perturbed_optimum.md."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expmech._version import __version__
from expmech.adjacency import Adjacency, validate_adjacency
from expmech.bits import Bits, operating_system_bits, seeded_bits
from expmech.coins import Coins
from expmech.errors import (
    ParameterError,
    validate_choice,
    validate_integer,
    validate_scale,
)
from expmech.optimum.calibration import CLASS_NORM, NOISES, SUM_NORM, Terms, calibrate
from expmech.optimum.draw import Lattice, draw_cells
from expmech.optimum.rows import Rows, prepare_rows
from expmech.optimum.rule import default_noise, default_share, default_squared_norm
from expmech.optimum.verification import describe_terms
from expmech.release.certificate import RELEASE, STUDY, Certificate
from expmech.release.exponential import Release
from expmech.risks import Custom, Risk
from expmech.samplers.base import DATA_DEPENDENT
from expmech.target import validate_epsilon

_OWNER = "PerturbedOptimum"
_ASSUMPTIONS = (
    "rows were clipped to [-1, 1], shortened to the public norms and snapped to 2^-20 one by one",
    "float64 is IEEE 754 with sums of products in any order; numpy's exp is within 16 units in the"
    " last place",
    "the operating system's random key is secret",
)
_DECLARED = "the derivative of the custom risk is monotone and has the declared bounds and error"


class PerturbedOptimum:
    """Release the y, rounded, at which ``sum_i x_i phi'(x_i.y) + Lambda y + b = 0``, b noise.

    Parameters
    ----------
    risk
        A risk of :mod:`expmech.risks`.
    features, targets
        Confidential rows, shape (n, d), entries in [-1, 1] (they are clipped; missing ones are 0),
        the constant first if there is one; a sparse matrix of scipy is accepted. Targets as the
        risk has them. Each row is shortened and snapped by itself: see
        :func:`expmech.optimum.prepare_rows`.
    penalty, intercept_penalty
        Ridge penalties of the columns and of the first one; None takes the public rule, and the
        same penalty for the first column.
    share
        The share of epsilon that the penalty is chosen to spend; None takes the public rule.
    squared_norm, sum_norm
        Public bounds on ``|x|^2`` and ``|x|_1``; rows are shortened to them. None: the rule; no
        bound.
    noise
        "max", "sum", "class" or "auto", by the public rule.
    lattice
        The grid of released parameters; its outermost cells are infinite.
    adjacency, rows
        "replace" or "add-remove". Under the latter the number of rows is confidential, and rules
        that need one take the public guess ``rows``.

    Notes
    -----
    Pure epsilon-DP: ``epsilon = 2 c r + ln(1 + a s2 / lambda)`` and its kin. The law is that of
    real numbers, then rounded. Time depends on the data.

    Examples
    --------
    >>> import expmech.risks as risks
    >>> rows = np.array([[1.0, -0.5], [1.0, 0.25], [1.0, 0.5], [1.0, -0.75]])
    >>> mechanism = PerturbedOptimum(risks.Logistic(), rows, [0, 1, 1, 0])
    >>> mechanism.release(epsilon=1.0).value.shape
    (2,)
    """

    def __init__(
        self,
        risk: Risk,
        features: Any,
        targets: Any,
        *,
        penalty: float | Fraction | None = None,
        intercept_penalty: float | Fraction | None = None,
        share: float | Fraction | None = None,
        squared_norm: float | Fraction | None = None,
        sum_norm: float | Fraction | None = None,
        noise: str = "auto",
        lattice: Lattice | None = None,
        adjacency: str = "replace",
        rows: int | None = None,
    ) -> None:
        self.risk = risk
        self.adjacency = validate_adjacency(adjacency, owner=_OWNER)
        self.lattice = Lattice() if lattice is None else lattice
        self.dimension = _columns(features)
        self.squared_norm = _norm(squared_norm, "squared_norm")
        if self.squared_norm is None:
            self.squared_norm = default_squared_norm(self.dimension)
        self.sum_norm = _norm(sum_norm, "sum_norm")
        self.penalty = _optional(penalty, "penalty")
        self.intercept_penalty = _optional(intercept_penalty, "intercept_penalty")
        self.share = _optional(share, "share")
        choices = ("auto", *NOISES)
        self.noise = validate_choice(noise, name="noise", owner=_OWNER, choices=choices)
        if self.noise == "auto":
            self.noise = default_noise(risk, self.dimension, self.sum_norm)
        if self.noise == CLASS_NORM and risk.margins == 1:
            raise ParameterError(f"`noise` of {_OWNER} can be 'class' for several classes only.")
        if self.noise == SUM_NORM and self.sum_norm is None:
            raise ParameterError(f"`sum_norm` of {_OWNER} must be given for noise='sum'.")
        self._rows: Rows = prepare_rows(
            features,
            targets,
            risk=risk,
            squared_norm=self.squared_norm,
            sum_norm=self.sum_norm,
        )
        self.public_rows = self._validate_rows(rows)

    def _validate_rows(self, rows: int | None) -> int | None:
        """Return the public number of rows, or None; under replace it is the true one."""
        if self.adjacency is Adjacency.REPLACE:
            if rows is not None:
                raise ParameterError(
                    f"`rows` of {_OWNER} must be left out under 'replace', where the number of"
                    " rows is public."
                )
            return self._rows.count
        if rows is None:
            return None
        return validate_integer(rows, name="rows", owner=_OWNER, low=1, high=1 << 40)

    def terms(self, *, epsilon: float | Fraction) -> Terms:
        """Return the public half: norms, penalties and rates at this epsilon."""
        budget = validate_epsilon(epsilon, owner=_OWNER)
        share = self.share
        if share is None:
            share = default_share(self.risk, self.dimension, self.public_rows, budget)
        assert self.squared_norm is not None  # for the type checker: set by the constructor
        return calibrate(
            risk=self.risk,
            dimension=self.dimension,
            epsilon=budget,
            adjacency=self.adjacency,
            squared_norm=self.squared_norm,
            sum_norm=self.sum_norm,
            noise=self.noise,
            share=share,
            penalty=self.penalty,
            intercept_penalty=self.intercept_penalty,
        )

    def release(self, *, epsilon: float | Fraction) -> Release:
        """Draw one optimum with randomness from the operating system; it may leave."""
        return self._draw_one(epsilon, RELEASE, operating_system_bits())

    def study(self, *, epsilon: float | Fraction, seed: int | Sequence[int]) -> Release:
        """Draw one optimum from a seeded stream; its certificate says that it is a study."""
        return self._draw_one(epsilon, STUDY, seeded_bits(seed))

    def sample(
        self, *, epsilon: float | Fraction, size: int = 1, seed: int | Sequence[int]
    ) -> NDArray[np.float64]:
        """Draw ``size`` independent optima from a seeded stream: for studies, never a release."""
        size = validate_integer(size, name="size", owner=f"{_OWNER}.sample", low=1, high=1 << 40)
        return self.draw(Coins(seeded_bits(seed)), epsilon=epsilon, size=size)

    def certificate(self, *, epsilon: float | Fraction) -> Certificate:
        """Return the certificate a release would carry, without drawing anything."""
        return self._certify(epsilon, RELEASE, operating_system_bits())

    def draw(self, coins: Coins, *, epsilon: float | Fraction, size: int) -> NDArray[np.float64]:
        """Draw ``size`` optima from ``coins``, shape (size, d) or (size, classes, d)."""
        terms = self.terms(epsilon=epsilon)
        cells = [draw_cells(terms, self._rows, self.lattice, coins)[0] for _ in range(size)]
        values = np.stack(cells) * 2.0**-self.lattice.bits
        return np.asarray(values[:, 0, :] if self.risk.margins == 1 else values)

    def _draw_one(self, epsilon: float | Fraction, kind: str, bits: Bits) -> Release:
        certificate = self._certify(epsilon, kind, bits)
        value = self.draw(Coins(bits), epsilon=epsilon, size=1)[0]
        return Release(value=value, certificate=certificate)

    def _certify(self, epsilon: float | Fraction, kind: str, bits: Bits) -> Certificate:
        terms = self.terms(epsilon=epsilon)
        domain: dict[str, Any] = {
            "kind": "Optimum",
            "classes": self.risk.margins,
            "columns": self.dimension,
            "bits": self.lattice.bits,
            "reach_bits": self.lattice.reach_bits,
        }
        if self.adjacency.count_is_public:
            domain["count"] = self._rows.count
        custom = (_DECLARED,) if isinstance(self.risk, Custom) else ()
        return Certificate(
            kind=kind,
            epsilon=float(epsilon),
            delta=0.0,
            adjacency=str(self.adjacency),
            sensitivity=float(self.risk.bound) * (2 if self.adjacency.count_is_public else 1),
            loss_error=0.0,
            eta=float(terms.rate),
            domain=domain,
            sampler=describe_terms(terms),
            timing=DATA_DEPENDENT,
            randomness=bits.source,
            assumptions=(*_ASSUMPTIONS, *custom),
            version=__version__,
        )


def _columns(features: Any) -> int:
    shape = np.shape(features) if not hasattr(features, "shape") else features.shape
    if len(shape) != 2:
        raise ParameterError(f"`features` of {_OWNER} must have 2 dimensions.")
    return int(shape[1])


def _optional(value: float | Fraction | None, name: str) -> Fraction | None:
    return None if value is None else validate_scale(value, name=name, owner=_OWNER)


def _norm(value: float | Fraction | None, name: str) -> Fraction | None:
    """Return a norm that a float64 holds exactly, as the certificate does."""
    found = _optional(value, name)
    if found is not None and Fraction(float(found)) != found:
        raise ParameterError(f"`{name}` of {_OWNER} must be a float64 number; got {value!r}.")
    return found
