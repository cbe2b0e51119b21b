"""The contract of a loss: a function of points, and one record of what it knows about itself."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, Protocol, Self, TypedDict, runtime_checkable

import numpy as np

from expmech.core.adjacency import Adjacency
from expmech.core.arrays import Array, Floats, Integers
from expmech.core.errors import ParameterError, ParameterTypeError, confidential_array
from expmech.domains import Domain, Region

NO_NAN = "no row holds nan, which this loss refuses"
MOST_ROWS = 1 << 32
"""The most rows there may be; a public bound uses it where their number is confidential."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The promise ``L(y) >= sum_j rates_j |y_j - center_j| - slack`` at every point of the domain.

    The center and the slack may be confidential: they steer the running time and never the law. The
    rates must be public.

    Parameters
    ----------
    center : ndarray of shape (d,)
        Where the loss is about least.
    rates : ndarray of shape (d,)
        Loss per unit of each coordinate.
    slack : float, default 0.0
        It may be negative, for a loss whose least value is far above zero.
    public_slack : bool, default False
        Whether the slack is the same number for every data set, so that a plan may use it.

    Examples
    --------
    >>> growth = Growth(center=np.array([0.5]), rates=np.array([3.0]), slack=0.1)
    >>> growth.public_slack
    False
    """

    center: Floats
    rates: Floats
    slack: float = 0.0
    public_slack: bool = False


@dataclass(frozen=True, kw_only=True)
class IntegerForm:
    """The identity ``L(i) = sum_j scales_j |count i_j - sums_j|`` on a box lattice.

    It makes the normaliser a product of geometric sums, computable to any precision.

    Parameters
    ----------
    count : int
        The number of rows.
    sums : tuple of int
        The sum of the rows along each axis, in lattice steps; confidential.
    scales : tuple of float
        Loss per unit of each axis; public.
    """

    count: int
    sums: tuple[int, ...]
    scales: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class AffineForm:
    """The identity ``L(y) = |matrix y - vector|``, up to ``loss_error``; confidential.

    The affine envelope is fitted to it: entries steer the running time and never the law.

    Parameters
    ----------
    matrix : ndarray of shape (m, d)
        Confidential.
    vector : ndarray of shape (m,)
        Confidential.
    norm : {"l1", "linf"}
        The norm; public.
    """

    matrix: Floats
    vector: Floats
    norm: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Curvature:
    """The promise of a smooth convex loss about one point a; confidential.

    At every point ``y = a + v`` of the domain ``L(y) >= value + g.v + (exp(-k r) + k r - 1) / k^2``
    with ``r^2 = v' hessian v``, k the ``skew``, and some vector g within ``gradient_error`` of
    ``gradient`` in every entry. With ``k = 0`` the last term is ``r^2 / 2``: a quadratic, or any
    loss with ``hessian`` below its second derivatives everywhere. A sum of logistic terms has k the
    largest ``|x_i.v| / r``.

    The convex envelope is fitted to it: entries steer the running time and never the law. Proofs:
    docs/theory/convex.md.

    Parameters
    ----------
    center : ndarray of shape (d,)
        The point a.
    value : float
        A lower bound on the loss there.
    gradient : ndarray of shape (d,)
        The gradient there.
    hessian : ndarray of shape (d, d)
        A symmetric, positive definite matrix.
    skew : float
        k, at least 0.
    gradient_error : float, default 0.0
        How far each entry of ``gradient`` may be from the true one.
    """

    center: Floats
    value: float
    gradient: Floats
    hessian: Floats
    skew: float
    gradient_error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything a loss may know about itself on one domain; None where it does not know.

    A custom loss returns this from its method ``facts(domain)``, or simply has attributes of
    these names (numbers and records may also be methods of the domain). Names that are not in this
    record are refused. What each fact means to a sampler: docs/adding_a_loss.md.

    Parameters
    ----------
    sensitivity : float or Fraction
        ``D``: how much the loss may change at any point between neighbouring data sets.
    adjacency : str
        The neighbours that the sensitivity refers to.
    minimum, bound : float
        Public: ``minimum <= L <= bound`` for every data set. The minimum is 0 unless said.
    gap : float
        Public bound on how far the least loss lies above ``minimum``.
    loss_error : float
        Public bound on the difference between the computed and the true loss.
    lipschitz : array-like
        One constant per coordinate, true for every data set.
    growth, integer_form, affine : Growth, IntegerForm, AffineForm
        See there.
    convex : bool, default False
        Whether the loss is convex.
    gradient : callable
        ``gradient(points)`` returns one row per point.
    gradient_error : float
        How far the entries of the gradient may be from the true ones.
    lower_bound : callable
        ``lower_bound(lower, upper)`` bounds the loss from below over boxes of points.
    exact_lower_bound : bool, default False
        Whether that bound is attained.
    terms : callable
        ``terms(coordinates, values)``: the loss is the sum of these over the coordinates.
    terms_lower_bound : callable
        ``terms_lower_bound(coordinates, lower, upper)`` bounds a term over intervals.
    on_lattice : callable
        The loss of rows that were moved to points of the domain one by one; it is then the loss of
        the mechanism, and the other facts are about it.
    curvature : callable
        ``curvature()`` returns a :class:`Curvature`; it is called only where it is needed.
    evaluation_seconds : float
        Public: about how long one point takes, the same number for every data set; a forecast of
        the running time uses it, and nothing is promised by it.
    proved : bool, default False
        Whether the library proves that the loss keeps its contract, so that it is not probed.
    assumptions : tuple of str, default ()
        What the guarantee rests on besides, for the certificate.

    Raises
    ------
    ParameterError
        If a name is no fact; the message suggests the nearest one.
    ParameterTypeError
        If a fact is of the wrong type.

    Examples
    --------
    >>> Facts(sensitivity=1.0, lipschitz=[2.0], minimum=0.0, bound=10.0).bound
    10.0
    """

    sensitivity: Any = None
    adjacency: Any = None
    minimum: Any = None
    bound: Any = None
    gap: Any = None
    loss_error: Any = None
    lipschitz: Any = None
    growth: Growth | None = None
    integer_form: IntegerForm | None = None
    affine: AffineForm | None = None
    convex: bool = False
    gradient: Callable[[Floats], Any] | None = None
    gradient_error: Any = None
    lower_bound: Callable[[Floats, Floats], Any] | None = None
    exact_lower_bound: bool = False
    terms: Callable[[Integers, Floats], Any] | None = None
    terms_lower_bound: Callable[[Integers, Floats, Floats], Any] | None = None
    on_lattice: Callable[[Floats], Any] | None = None
    curvature: Callable[[], Curvature] | None = None
    evaluation_seconds: Any = None
    proved: bool = False
    assumptions: tuple[str, ...] = ()

    def __new__(cls, **facts: Any) -> Self:
        """Refuse unknown names, and suggest the nearest fact."""
        for name in facts:
            if name not in cls.__dataclass_fields__:
                raise ParameterError(_no_such_fact(name, "Facts"))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, (kind, rule) in _KINDS.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ParameterTypeError(
                    f"`{name}` of a loss must be {rule}; got {type(value).__name__}."
                )


_NUMBERS = (
    *("sensitivity", "minimum", "bound", "gap"),
    *("loss_error", "gradient_error", "evaluation_seconds"),
)
_FUNCTIONS = ("gradient", "lower_bound", "terms", "terms_lower_bound", "on_lattice", "curvature")
_KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(_NUMBERS, (Real, "a number")),
    **dict.fromkeys(_FUNCTIONS, (Callable, "a function")),
    **dict.fromkeys(("convex", "exact_lower_bound"), (bool, "True or False")),
    "growth": (Growth, "an expmech.Growth"),
    "integer_form": (IntegerForm, "an expmech.losses.IntegerForm"),
    "affine": (AffineForm, "an expmech.losses.AffineForm"),
}


class Declared(TypedDict, total=False):
    """Facts that a caller may declare for a loss; each is an assumption of the certificate."""

    sensitivity: float | Fraction | None
    minimum: float | None
    bound: float | None
    gap: float | None
    loss_error: float | None
    lipschitz: Any
    growth: Growth | None
    convex: bool
    gradient: Callable[[Floats], Any] | None
    gradient_error: float | None
    lower_bound: Callable[[Floats, Floats], Any] | None
    terms: Callable[[Integers, Floats], Any] | None
    terms_lower_bound: Callable[[Integers, Floats, Floats], Any] | None
    evaluation_seconds: float | None


def validate_declared(declared: Mapping[str, Any], *, owner: str) -> None:
    """Raise unless every name is one of :class:`Declared`."""
    for name in declared:
        if name not in Declared.__annotations__:
            raise ParameterError(_no_such_fact(name, owner, Declared.__annotations__))


class Loss(Protocol):
    """A function from points, one row each, to as many numbers."""

    def __call__(self, points: Array, /) -> Any:
        """Return the loss of each row."""


@runtime_checkable
class KnowingLoss(Loss, Protocol):
    """A loss that says what it knows."""

    def facts(self, domain: Domain) -> Facts:
        """Return what the loss knows about itself on ``domain``; raise where it does not fit."""


def facts_of(loss: Loss, domain: Domain) -> Facts:
    """Return what a loss knows: what its ``facts`` says, or what it has as attributes."""
    if not isinstance(loss, KnowingLoss):
        return _from_attributes(loss, domain)
    facts = loss.facts(domain)
    if not isinstance(facts, Facts):
        raise ParameterTypeError(
            f"`facts` of a loss must return an expmech.Facts; got {type(facts).__name__}."
        )
    return facts


def _from_attributes(loss: Loss, domain: Domain) -> Facts:
    """Read facts off an object: attributes, or methods of the domain; refuse a misspelt one."""
    facts: dict[str, Any] = {}
    names = Facts.__dataclass_fields__.keys()
    for name in (public for public in dir(loss) if not public.startswith("_")):
        if name not in names:
            if difflib.get_close_matches(name, names, n=1, cutoff=_NEAR):
                remedy = " Rename it, or let a method `facts(domain)` say what the loss knows."
                raise ParameterError(_no_such_fact(name, type(loss).__name__) + remedy)
            continue
        fact = getattr(loss, name)
        if name == "curvature":
            fact = _called_later(fact, domain)
        elif callable(fact) and name not in _FUNCTIONS:
            fact = fact(domain)
        if fact is not None:
            facts[name] = fact
    return Facts(**facts)


def _called_later(curvature: Any, domain: Domain) -> Callable[[], Any]:
    """Return a function that computes the curvature only where it is needed."""
    return lambda: curvature(domain) if callable(curvature) else curvature


_NEAR = 0.8  # of difflib's similarity: two letters swapped in a word of six


def _no_such_fact(name: str, owner: str, names: Iterable[str] | None = None) -> str:
    known = list(Facts.__dataclass_fields__ if names is None else names)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"Did you mean `{close[0]}`?" if close else f"The facts are {', '.join(known)}."
    return f"`{name}` of {owner} is no fact that a loss can declare. {hint}"


_NORMS = {"l1": "L1", "l2": "Euclidean"}


def validate_region(domain: Domain, dimension: int, *, owner: str) -> Region:
    """Return the domain; raise unless it is a region of this dimension."""
    if not isinstance(domain, Region) or domain.dimension != dimension:
        raise ParameterError(
            f"`domain` of {owner} must be a Box, L1Ball, L2Ball or Simplex of dimension"
            f" {dimension}; got {type(domain).__name__} of dimension {domain.dimension}."
        )
    return domain


def validate_within(
    domain: Domain, dimension: int, norm: str, radius: Fraction, *, owner: str
) -> Region:
    """Return the domain; raise unless it is a region on which the norm is at most ``radius``."""
    region = validate_region(domain, dimension, owner=owner)
    if region.largest_square(norm) > radius**2:
        raise ParameterError(
            f"`radius` of {owner} must be at least the largest {_NORMS[norm]} norm on the domain;"
            f" got {float(radius)!r}."
        )
    return region


def validate_function(value: Any, *, name: str, owner: str) -> Any:
    """Return ``value``; raise unless it can be called."""
    if not callable(value):
        kind = type(value).__name__
        raise ParameterTypeError(f"`{name}` of {owner} must be a function; got {kind}.")
    return value


def validate_count(rows: int, adjacency: Adjacency, *, name: str, owner: str) -> int:
    """Return the number of rows where it is public, else the most there may be."""
    if rows > MOST_ROWS or (rows == 0 and adjacency.count_is_public):
        raise ParameterError(
            f"`{name}` of {owner} must have at most 2^32 rows, and at least one under 'replace'."
        )
    return rows if adjacency.count_is_public else MOST_ROWS


def validate_rows(
    values: Any,
    *,
    name: str,
    owner: str,
    dimensions: int = 2,
    columns: int | None = None,
    finite: bool = False,
) -> Floats:
    """Return confidential rows as floats without nan, or finite; no message names a value."""
    table = confidential_array(values, name=name, owner=owner)
    width = table.shape[1:]
    if table.ndim != dimensions or 0 in width or (columns is not None and width != (columns,)):
        rule = "at least one column" if columns is None else f"{columns} columns"
        raise ParameterError(f"`{name}` of {owner} must have {dimensions} dimensions and {rule}.")
    with np.errstate(all="ignore"):  # a longer float may be beyond float64
        rows = np.ascontiguousarray(table, dtype=np.float64)
    if np.isnan(rows).any() and not finite:
        raise ParameterError(f"`{name}` of {owner} must not hold nan.")
    if finite and not np.isfinite(rows).all():
        raise ParameterError(f"`{name}` of {owner} must hold finite numbers only.")
    return rows
