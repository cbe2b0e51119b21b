"""Pairs of neighbouring data sets on which mechanisms tend to fail.

Rows at the bounds move a sum most, ties and empty tables meet special cases, and a lone row of a
class changes what a fit can see. Also mechanisms whose outputs hold how long they took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expmech.core.adjacency import Adjacency, validate_adjacency
from expmech.core.arrays import Floats
from expmech.core.errors import ParameterError, validate_integer
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.samplers import Sampler

_OWNER = "neighbours"


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets, and a name for the pair.

    Parameters
    ----------
    name : str
        Shown in reports.
    first, second : object
        The data sets.
    """

    name: str
    first: Any
    second: Any


def as_pairs(neighbours: Sequence[Pair | tuple[Any, Any]]) -> list[Pair]:
    """Return pairs of data sets as Pair records."""
    return [pair if isinstance(pair, Pair) else Pair("given", *pair) for pair in neighbours]


def numbers(lower: float, upper: float, *, rows: int = 8, adjacency: str = "replace") -> list[Pair]:
    """Return pairs of arrays of numbers within public bounds.

    Parameters
    ----------
    lower, upper : float
        The bounds.
    rows : int, default 8
        Rows of a data set.
    adjacency : {"replace", "add-remove"}, default "replace"
        Which data sets are neighbours.

    Returns
    -------
    list of Pair
        Arrays of shape (rows,).

    Examples
    --------
    >>> [pair.name for pair in numbers(0.0, 1.0, rows=4)][:3]
    ['all low, one high', 'all high, one low', 'half and half']
    """
    pairs = tables([(lower, upper)], rows=rows, adjacency=adjacency)
    return [Pair(pair.name, pair.first[:, 0], pair.second[:, 0]) for pair in pairs]


def tables(
    bounds: Sequence[tuple[float, float]], *, rows: int = 8, adjacency: str = "replace"
) -> list[Pair]:
    """Return pairs of tables within public bounds, with rows at the corners.

    Parameters
    ----------
    bounds : sequence of (float, float)
        One pair per column.
    rows, adjacency
        As for :func:`numbers`.

    Returns
    -------
    list of Pair
        Arrays of shape (rows, columns).

    Examples
    --------
    >>> tables([(0.0, 1.0), (0.0, 5.0)], rows=4)[0].first.shape
    (4, 2)
    """
    rows = validate_integer(rows, name="rows", owner=_OWNER, low=1, high=1 << 20)
    relation = validate_adjacency(adjacency, owner=_OWNER)
    low, high = _ends(bounds)
    middle = low + (high - low) / 2
    steps = np.linspace(0.0, 1.0, rows)[:, None]
    bases = [
        ("all low, one high", np.tile(low, (rows, 1)), high),
        ("all high, one low", np.tile(high, (rows, 1)), low),
        ("half and half", np.where(np.arange(rows)[:, None] % 2, high, low), middle),
        ("ties in the middle", np.tile(middle, (rows, 1)), high),
        ("evenly spread", low + (high - low) * steps, low),
    ]
    if relation is Adjacency.REPLACE:
        last = np.arange(rows)[:, None] == rows - 1
        return [Pair(name, base, np.where(last, row, base)) for name, base, row in bases]
    added = [Pair(name, base, np.vstack([base, row])) for name, base, row in bases]
    return [*added, Pair("nothing and one row", np.zeros((0, len(low))), high[None, :])]


def labelled(
    bounds: Sequence[tuple[float, float]],
    classes: Sequence[Any],
    *,
    rows: int = 8,
    adjacency: str = "replace",
) -> list[Pair]:
    """Return pairs of ``(features, labels)``; in some, one row is the only one of its class.

    Parameters
    ----------
    bounds : sequence of (float, float)
        One pair per feature.
    classes : sequence
        Two labels or more.
    rows, adjacency
        As for :func:`numbers`.

    Returns
    -------
    list of Pair
        Each data set is an array of shape (rows, features) and a list of labels.

    Examples
    --------
    >>> labelled([(0.0, 1.0)], ["no", "yes"], rows=2)[-1].second[1]
    ['no', 'yes']
    """
    if len(classes) < 2:
        raise ParameterError("`classes` of neighbours must be two labels or more.")
    pairs = []
    for pair in tables(bounds, rows=rows, adjacency=adjacency):
        first, second = ((side, [classes[0]] * len(side)) for side in (pair.first, pair.second))
        pairs.append(Pair(pair.name, first, second))
    relation = validate_adjacency(adjacency, owner=_OWNER)
    if relation.count_is_public:
        _, high = _ends(bounds)
        table = np.tile(high, (rows, 1))
        usual = [classes[0]] * rows
        changed = [*usual[:-1], classes[1]]
        pairs.append(Pair("one label flips", (table, usual), (table, changed)))
    return pairs


def values(candidates: Sequence[Any], *, rows: int = 8, adjacency: str = "replace") -> list[Pair]:
    """Return pairs of lists of values of a public list: a tie that one row breaks, and others.

    Parameters
    ----------
    candidates : sequence
        Two values or more.
    rows, adjacency
        As for :func:`numbers`.

    Returns
    -------
    list of Pair
        Each data set is a list of values.

    Examples
    --------
    >>> values(["a", "b"], rows=2)[0].second
    ['a', 'a']
    """
    if len(candidates) < 2:
        raise ParameterError("`candidates` of neighbours must be two values or more.")
    rows = validate_integer(rows, name="rows", owner=_OWNER, low=1, high=1 << 20)
    relation = validate_adjacency(adjacency, owner=_OWNER)
    usual, other = candidates[0], candidates[1]
    tie = [candidates[j % 2] for j in range(rows)]
    bases = [("a tie", tie), ("all alike", [usual] * rows)]
    if relation is Adjacency.REPLACE:
        return [
            Pair(f"{name}, one changes", base, [*base[:-1], other if base[-1] == usual else usual])
            for name, base in bases
        ]
    added = [Pair(f"{name}, one more", base, [*base, other]) for name, base in bases]
    return [*added, Pair("nothing and one row", [], [usual])]


def _ends(bounds: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    pairs = np.array(bounds, dtype=np.float64).reshape(-1, 2)
    if not len(pairs) or not np.isfinite(pairs).all() or not (pairs[:, 0] < pairs[:, 1]).all():
        raise ParameterError(f"`bounds` of neighbours must be pairs low < high; got {bounds}.")
    return pairs[:, 0], pairs[:, 1]


def as_json(data: Any) -> Any:
    """Return a data set as JSON holds it: arrays as lists, objects without a JSON form as text."""
    if isinstance(data, np.ndarray | np.generic):
        return data.tolist()
    if isinstance(data, list | tuple):
        return [as_json(part) for part in data]
    return data if isinstance(data, bool | int | float | str | None) else repr(data)


def timed(
    release: Callable[[Any], Any], *, clock: Callable[[], float] = time.perf_counter
) -> Callable[[Any, int], list[list[float]]]:
    """Return a mechanism whose outputs are the number released and the seconds it took.

    Audit it with ``interleave=True``: a clock drifts.

    Parameters
    ----------
    release : callable
        Maps a data set to one value.
    clock : callable, optional
        Returns seconds.

    Returns
    -------
    callable
        A function (data, n) for :func:`audit`.

    Examples
    --------
    >>> mechanism = timed(lambda data: sum(data), clock=iter([0.0, 2.0]).__next__)
    >>> mechanism([1.0, 2.0], 1)
    [[3.0, 2.0]]
    """

    def mechanism(data: Any, n: int) -> list[list[float]]:
        outputs = []
        for _ in range(n):
            start = clock()
            value = release(data)
            seconds = clock() - start
            outputs.append([*np.ravel(np.asarray(value, dtype=np.float64)).tolist(), seconds])
        return outputs

    return mechanism


def counted(
    make: Callable[[Any], ExponentialMechanism],
    *,
    epsilon: float | Fraction,
    sampler: Sampler | str = "auto",
    seed: int = 0,
) -> Callable[[Any, int], Any]:
    """Return a mechanism whose outputs are a value and its number of proposals.

    Parameters
    ----------
    make : callable
        Maps a data set to its ExponentialMechanism.
    epsilon, sampler
        The budget and the sampler of a draw, as in :meth:`ExponentialMechanism.sample`.
    seed : int, default 0
        Seed of the first call's stream of random bits; every later call uses another stream.

    Returns
    -------
    callable
        As for :func:`timed`.

    Examples
    --------
    >>> import expmech as em
    >>> box = em.Box([0.0], [1.0], bits=4)
    >>> make = lambda rows: em.ExponentialMechanism(loss=em.losses.L1Mean(rows), domain=box)
    >>> counted(make, epsilon=1.0)([0.2, 0.4], 3).shape
    (3, 2)
    """
    calls = [0]

    def mechanism(data: Any, n: int) -> Any:
        calls[0] += 1
        draws = make(data).sample(epsilon=epsilon, size=n, sampler=sampler, seed=[seed, calls[0]])
        values = np.asarray(draws.values, dtype=np.float64).reshape(n, -1)
        return np.column_stack([values, draws.proposals])

    return mechanism
