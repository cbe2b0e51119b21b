"""The public half of a principal direction: shares of epsilon, eta, and their verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.directions.bingham import ROUNDING_BITS
from expmech.directions.proposal import eta_below
from expmech.directions.rows import MOST_ROWS, ROW_BITS
from expmech.directions.whole import MOST_COLUMNS

NAME = "Bingham"
MOST_DIMENSION = MOST_COLUMNS
MOST_ETA = Fraction(256)
"""A larger eta would not pay: with 2^32 rows float64 eigenpairs could not follow it."""

VARIANCE_SHARE = Fraction(1, 10)

Claim = tuple[str, bool, str]
"""What is claimed, whether it holds, and what was compared."""


@dataclass(frozen=True, kw_only=True)
class DirectionTerms:
    """Shares of epsilon and what they buy; nothing here is computed from confidential data."""

    epsilon: Fraction
    dimension: int
    n_components: int
    variances: bool
    adjacency: str

    @property
    def sensitivity(self) -> int:
        """Width of the interval in which one row moves ``v'Av``: ``epsilon = eta * width``."""
        return 2 if self.adjacency == "replace" else 1

    @property
    def variance_epsilon(self) -> Fraction:
        """The part of epsilon that pays for noisy variances."""
        return self.epsilon * VARIANCE_SHARE if self.variances else Fraction(0)

    @property
    def component_epsilon(self) -> Fraction:
        """The part of epsilon that pays for one component."""
        return (self.epsilon - self.variance_epsilon) / self.n_components

    @property
    def eta(self) -> Fraction:
        """Concentration of the law of a component, rounded down to 22 bits."""
        return eta_below(min(self.component_epsilon / self.sensitivity, MOST_ETA))

    def describe(self) -> dict[str, Any]:
        """Return the sampler's part of a certificate; fractions as exact text."""
        return {
            "sampler": NAME,
            "components": self.n_components,
            "component_epsilon": str(self.component_epsilon),
            "variance_epsilon": str(self.variance_epsilon),
        }


def verify_terms(certificate: Mapping[str, Any]) -> list[Claim]:
    """Recompute what follows from other fields of a certificate of a principal direction.

    Parameters
    ----------
    certificate
        Its fields by name (``dataclasses.asdict``, or the JSON object).

    Examples
    --------
    >>> import dataclasses
    >>> from expmech.release.principal_direction import PrincipalDirection
    >>> found = PrincipalDirection.from_rows([[1.0, 0.0]]).certificate(epsilon=1.0)
    >>> all(holds for _, holds, _ in verify_terms(dataclasses.asdict(found)))
    True
    """
    try:
        return _claims(certificate)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return [("fields", False, "a field is missing, of the wrong type or out of range")]


def _claims(certificate: Mapping[str, Any]) -> list[Claim]:
    sampler, domain = certificate["sampler"], certificate["domain"]
    replace = certificate["adjacency"] == "replace"
    width = 2 if replace else 1
    n_components, d = sampler["components"], domain["dimension"]
    each, noise = Fraction(sampler["component_epsilon"]), Fraction(sampler["variance_epsilon"])
    budget, eta = Fraction(certificate["epsilon"]), Fraction(certificate["eta"])
    spent = n_components * each + noise
    limit = eta_below(min(each / width, MOST_ETA))
    count = domain.get("count")
    counted = count is not None and 1 <= count <= MOST_ROWS if replace else count is None
    return [
        ("sampler", sampler["sampler"] == NAME, repr(sampler["sampler"])),
        ("adjacency", certificate["adjacency"] in ("replace", "add-remove"), f"width {width}"),
        ("sensitivity", certificate["sensitivity"] == width, f"recomputed {width}"),
        ("components", _is_count(n_components, d), f"{n_components!r} of {d!r}"),
        ("shares", each > 0 and noise >= 0 and spent <= budget, f"spent {float(spent)!r}"),
        ("eta", 0 < eta <= limit, f"{float(eta)!r}, recomputed {float(limit)!r}"),
        ("cost", n_components * eta * width + noise <= budget, f"of {float(budget)!r}"),
        ("pure", certificate["delta"] == 0 and certificate["loss_error"] == 0, "no delta"),
        ("rows", domain["row_bits"] == ROW_BITS, f"snapped to 2^-{domain['row_bits']}"),
        ("rounding", domain["rounding_bits"] == ROUNDING_BITS, f"2^-{domain['rounding_bits']}"),
        ("domain", domain["kind"] == "Sphere" and _is_count(d, MOST_DIMENSION), repr(d)),
        ("public count", counted, "told under 'replace' only"),
        ("timing", certificate["timing"] == "data-dependent", repr(certificate["timing"])),
    ]


def _is_count(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
