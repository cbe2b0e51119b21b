"""What a release promises, in public terms only."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expmech.core.errors import ParameterError, ParameterTypeError
from expmech.core.markup import text_card
from expmech.core.strict_json import read_json

_OF_UNITS = re.compile(r"is epsilon = (\S+) for one (.+?) added or removed with all its rows")
RELEASE, STUDY = "release", "study, not a release"

_TIMING = {
    "constant": "constant: the number of proposals is fixed beforehand",
    "data-independent": (
        "data-independent: the number of proposals is random, by a law that does not depend on the"
        " data"
    ),
    "data-dependent": (
        "data-dependent: the running time may tell an observer about the data; do not expose it"
    ),
}

_KINDS: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "mechanism": str,
    "statistic": str,
    "epsilon": (int, float),
    "delta": (int, float),
    "adjacency": str,
    "sensitivity": (int, float),
    "loss_error": (int, float),
    "eta": (int, float),
    "unit": (int, type(None)),
    "domain": dict,
    "sampler": dict,
    "postprocessing": dict,
    "timing": str,
    "randomness": str,
    "assumptions": tuple,
    "version": str,
    "assumptions_digest": str,
}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The guarantee of one release: what was promised, by which means, and under which assumptions.

    Nothing in it is computed from confidential data.

    Parameters
    ----------
    kind : {"release", "study, not a release"}
        A study was drawn from a seeded stream and must not be published as a release.
    mechanism, statistic : str
        The mechanism by its name, and what was released.
    epsilon : float
        The budget, read as its decimal text, which is never below what was spent.
    delta : float
        0 for a pure guarantee.
    adjacency : {"replace", "add-remove"}
        Which data sets are neighbours.
    sensitivity, loss_error : float
        How much the loss (or the sums) may change between neighbours, and how far the computed loss
        may be from the true one.
    eta : float
        The energy scale, or the rate of the noise, in nats per unit of loss.
    unit : int or None
        Energies are whole multiples of ``2^unit`` nats; None where there are no energies.
    domain : dict
        What values are drawn from; ``domain["kind"]`` names it.
    sampler : dict
        How values are drawn; ``sampler["sampler"]`` names it.
    postprocessing : dict
        The public map that was applied to the draw.
    timing : str
        Timing class: "constant", "data-independent" or "data-dependent".
    randomness : str
        The source of random bits.
    assumptions : tuple of str
        What the guarantee rests on.
    version : str
        The version of expmech that wrote it.
    assumptions_digest : str, default ""
        A digest of the assumptions, so that a lost one is noticed.

    Examples
    --------
    >>> import expmech as em
    >>> loss = em.losses.L1Mean([0.2, 0.4, 0.9])
    >>> mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    >>> certificate = mechanism.certificate(epsilon=0.5)
    >>> em.Certificate.from_json(certificate.to_json()) == certificate
    True
    """

    kind: str
    mechanism: str
    statistic: str
    epsilon: float
    delta: float
    adjacency: str
    sensitivity: float
    loss_error: float
    eta: float
    unit: int | None
    domain: dict[str, Any]
    sampler: dict[str, Any]
    postprocessing: dict[str, Any]
    timing: str
    randomness: str
    assumptions: tuple[str, ...]
    version: str
    assumptions_digest: str = ""

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate written by :meth:`to_json`.

        Parameters
        ----------
        text : str
            JSON text with exactly the fields of a certificate.

        Returns
        -------
        Certificate

        Raises
        ------
        ParameterError, ParameterTypeError
            If a field is missing, unknown or of the wrong type.
        """
        fields = read_json(text, name="`text` of Certificate.from_json")
        if not isinstance(fields, dict):
            raise ParameterTypeError(
                "`text` of Certificate.from_json must be a JSON object; it is not."
            )
        fields.setdefault("assumptions_digest", "")  # earlier versions wrote none
        if "finish" in fields and "postprocessing" not in fields:
            fields["postprocessing"] = fields.pop("finish")  # its name in earlier versions
        for name in sorted(_KINDS.keys() ^ fields.keys()):
            state = "missing" if name in _KINDS else "unknown"
            raise ParameterError(
                "`text` of Certificate.from_json must hold exactly a certificate's fields;"
                f" {name!r} is {state}."
            )
        if isinstance(fields["assumptions"], list):
            fields["assumptions"] = tuple(fields["assumptions"])
        certificate = cls(**fields)
        certificate.check_types()
        return certificate

    def check_types(self) -> None:
        """Raise ParameterTypeError where a field is of the wrong type."""
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            wrong = not isinstance(value, kind) or isinstance(value, bool)
            if name == "assumptions":
                wrong = wrong or not all(isinstance(text, str) for text in value)
            if wrong:
                raise ParameterTypeError(
                    f"`{name}` of a certificate has the wrong type: {type(value).__name__}."
                )

    def __str__(self) -> str:
        """Return a readable card."""
        parts = {
            name: ", ".join(f"{key} = {_show(value)}" for key, value in fields.items() if key != no)
            for name, fields, no in (
                ("sampler", self.sampler, "sampler"),
                ("domain", self.domain, "kind"),
                ("postprocessing", self.postprocessing, "map"),
            )
        }
        unit = "" if self.unit is None else f", in units of 2^{self.unit}"
        scale = f"energy scale {self.eta:.6g}{unit}"
        inner = [
            ("sensitivity", f"{self.sensitivity:.6g}, loss error {self.loss_error:.3g}, {scale}"),
            ("domain", f"{self.domain['kind']}: {parts['domain']}"),
            ("sampler", _with(self.sampler["sampler"], parts["sampler"])),
            ("then", _with(self.postprocessing["map"], parts["postprocessing"])),
        ]
        return self._card(inner)

    def summary(self) -> str:
        """Return the promise, and what it rests on, without the numbers it is computed from."""
        return self._card([])

    def _card(self, inner: list[tuple[str, str]]) -> str:
        """Return the promise, the rows of ``inner`` and the terms as lines of text."""
        purity = f", delta = {self.delta:.3g}" if self.delta else " (pure)"
        of_units = next(filter(None, map(_OF_UNITS.search, self.assumptions)), None)
        epsilon = f"{self.epsilon:g}{purity}"
        if of_units is not None:  # what was asked for is the epsilon of a person, not of a row
            epsilon = f"{of_units[1]}{purity} for one {of_units[2]} with all rows"
        guarantee = f"epsilon = {epsilon}, {self.adjacency} adjacency"
        rows = [
            ("guarantee", guarantee),
            ("statistic", f"{self.statistic}, by {self.mechanism}"),
            *inner,
            ("timing", _TIMING.get(self.timing, self.timing)),
            ("randomness", self.randomness),
            *(("" if j else "assumes", text) for j, text in enumerate(self.assumptions)),
            ("version", f"expmech {self.version}"),
        ]
        lines = [f"Differential privacy certificate ({self.kind})"]
        for label, text in rows:
            wrapped = textwrap.wrap(text, width=84) or [""]
            lines.append(f"  {label:<12}{wrapped[0]}")
            lines.extend(f"  {'':<12}{more}" for more in wrapped[1:])
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the card for a notebook."""
        return text_card(str(self))


def epsilon_up(epsilon: float | Fraction) -> float:
    """Return a float whose decimal text is at least ``epsilon``; a float stands for itself."""
    if isinstance(epsilon, float):
        return epsilon
    nearest = float(epsilon)
    return nearest if Fraction(repr(nearest)) >= epsilon else math.nextafter(nearest, math.inf)


def digest_of(assumptions: Sequence[str]) -> str:
    """Return a digest of the assumptions, in their order."""
    return hashlib.sha256(json.dumps(list(assumptions)).encode()).hexdigest()[:32]


def _with(name: Any, more: str) -> str:
    return f"{name}: {more}" if more else str(name)


def _show(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.6g}"
