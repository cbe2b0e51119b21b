"""Record what mechanisms return on one data set, replay it on a neighbour, and compare the runs.

Whatever a run shows besides its draws must then be equal: docs/theory/replay.md. What entered each
draw is caught where the coins are flipped, and its privacy loss is computed here, by formulas of
this file.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import math
import os
import pickle
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from expmech.certificates.certificate import Certificate
from expmech.certificates.mechanism import Mechanism, PreparedDraw
from expmech.cli.main import app
from expmech.core.bits import Bits, seeded_bits
from expmech.core.coins import Coins
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.mechanisms.directions.components import ComponentLaw, draw_variances
from expmech.mechanisms.noisy_sums import CubeNoise, HullNoise
from expmech.mechanisms.optimum import RegressionRows
from expmech.mechanisms.optimum.constant_time import draw_constant_time
from expmech.mechanisms.optimum.draw import draw_cells
from expmech.mechanisms.optimum.in_engine import draw_in_engine
from expmech.mechanisms.optimum.row_norm import NormSearch
from expmech.mechanisms.quantiles.draw import JointDraw
from expmech.mechanisms.selection.permute_and_flip import first_of_a_random_order
from expmech.mechanisms.selection.top_k import PeelingDraw, SequenceDraw
from support import optimum

SLACK = 1e-6
"""Of the losses, which are sums of float64 numbers."""
NAT = 2.0**40
_FEW = 4096
DATA = "data"
"""The folder of a room that the data are in: what is there is not written by a run."""


@dataclass(frozen=True, kw_only=True)
class Entered:
    """What a draw depends on: public ``terms``, and confidential ``numbers``.

    ``kind`` says how far apart two laws are: "sums" with noise of the rates in ``terms``; the logs
    of a whole "law", or of a density at some points; logs of "weights" that are not normalised; a
    "form" ``eta v'Av``. ``besides`` is what the draw costs whatever the numbers are.
    """

    kind: str
    terms: Any
    numbers: Any
    besides: float = 0.0

    def loss(self, other: Entered) -> float:
        """Return the privacy loss between the two laws, or a part of it that can be computed."""
        if self.kind == "sums":
            pairs = zip(self.terms[0], self.numbers, other.numbers, strict=True)
            return float(sum(rate * abs(one - two) for rate, one, two in pairs))
        if self.kind in ("cube", "moment hull"):
            changes = [abs(one - two) for one, two in zip(self.numbers, other.numbers, strict=True)]
            rate, half = self.terms
            if self.kind == "cube":
                return float(rate * max(changes))
            moments = zip(changes[::2], changes[1::2], strict=True)
            return float(rate) * max(_hull_norm(x / half, y / half**2) for x, y in moments)
        moved = self.numbers - other.numbers
        if self.kind == "form":
            ends = np.append(np.linalg.eigvalsh(moved), 0.0)
            return float(sum(map(float, self.terms)) * (ends.max() - ends.min()))
        if self.kind == "weights":
            return float(moved.max() - moved.min())
        assert self.kind == "law"
        return float(np.abs(moved).max()) + self.besides


def _hull_norm(x: float, y: float) -> float:
    """Return the least s with (x, y) in s times the hull of all (z - z', z^2 - z'^2)."""
    if x <= y:
        return y
    # beyond |x| = s the height is s - (x - s)^2 / s, so s is the root of x (2 s - x) = y s
    return max(y, x * x / (2.0 * x - y))


@dataclass
class Run:
    """What a run told, by name; the files it wrote; and what entered its draws."""

    told: dict[str, Any] = field(default_factory=dict)
    entered: list[Entered] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)


class UnmatchedError(Exception):
    """Raised where a replay draws what was not recorded."""


@dataclass
class Tape:
    """Hands out what was recorded ``before``, or records."""

    run: Run
    before: Run | None
    noises: list[tuple[Any, list[int]]] = field(default_factory=list)

    def keep(self, value: Any) -> Any:
        """Return the value, or what was recorded in its place."""
        place = len(self.run.kept)
        self.run.kept.append(value)
        if self.before is None:
            return value
        if place >= len(self.before.kept):
            raise UnmatchedError
        return self.before.kept[place]

    def enter(self, kind: str, terms: Any, numbers: Any, besides: float = 0.0) -> None:
        """Note what a draw depends on."""
        self.run.entered.append(Entered(kind=kind, terms=terms, numbers=numbers, besides=besides))

    def tell(self, name: str, value: object) -> None:
        """Note what is public."""
        self.run.told.setdefault(name, []).append(value)


def command(*words: object) -> tuple[int, str, str, str]:
    """Run a command; return its exit code, what it printed, and how it ended."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.stdout, done.stderr, repr(done.exception)


Pipeline = Callable[[Path, Any], Any]


def observe(pipeline: Pipeline, data: Any, room: Path, before: Run | None = None) -> Run:
    """Run ``pipeline(room, data)`` in an emptied room; its draws are those of ``before``."""
    room.mkdir(exist_ok=True)
    for old in room.iterdir():
        if old.name != DATA:  # whose files stay, with their inodes, and are written anew
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    run, out, err = Run(), io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("EXPMECH_STATE", str(room / "register"))
        patch.chdir(room)
        _frozen(patch)
        _taped(patch, Tape(run=run, before=before))
        warned = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        for kind in (ResourceWarning, DeprecationWarning):  # of engines, about themselves
            warnings.simplefilter("ignore", kind)
        logged = stack.enter_context(_logging())
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            run.told["returned"] = _plain(pipeline(room, data))
        except UnmatchedError:
            run.told["draws"] = "more than were recorded"
        except AssertionError:  # of a test or of this file
            raise
        except Exception as error:
            run.told["raised"] = _chain(error)
    run.told |= {"stdout": out.getvalue(), "stderr": err.getvalue(), "logged": logged.getvalue()}
    run.told["warned"] = [str(one.message) for one in warned]
    run.told["number of draws"] = len(run.kept)
    for path in sorted(room.rglob("*")):
        if DATA not in path.relative_to(room).parts and path.is_file():
            # a ledger is known by its inode and time of birth, which two files never share
            written = re.sub(rb"birth \d+:\d+", b"birth", path.read_bytes())
            run.told[f"file {path.relative_to(room)}"] = written
    return run


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What ``differs`` between a run and its replay, by name, and the ``loss`` of all draws."""

    differs: list[str]
    loss: float
    first: Run
    second: Run

    def __str__(self) -> str:
        """Return what differs, both ways, for a test that fails."""
        told = [(name, run.told.get(name)) for name in self.differs for run in self.runs]
        return "\n".join([f"loss {self.loss}", *(f"{name}: {text}" for name, text in told)])

    @property
    def runs(self) -> tuple[Run, Run]:
        """The run and its replay."""
        return self.first, self.second


def replayed(pipeline: Pipeline, one: Any, other: Any, room: Path) -> Compared:
    """Run on ``one``, replay its draws on ``other``, and compare."""
    first = observe(pipeline, one, room)
    second = observe(pipeline, other, room, before=first)
    names = list(dict.fromkeys([*first.told, *second.told]))
    differs = [name for name in names if first.told.get(name) != second.told.get(name)]
    total = 0.0
    for before, after in itertools.zip_longest(first.entered, second.entered):
        if None in (before, after):
            differs.append("draws")
            break
        if (before.kind, before.terms) != (after.kind, after.terms):
            differs.append("terms")
        else:
            total += before.loss(after)
    return Compared(differs=differs, loss=total, first=first, second=second)


def _plain(value: Any) -> Any:
    """Return a value as bytes or text: all that it holds."""
    if isinstance(value, str | bytes | int | float | None):
        return value
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return [[_plain(key), _plain(part)] for key, part in value.items()]
    return pickle.dumps(value)


def _chain(error: BaseException | None) -> list[str]:
    """Return what an exception says, and all that it holds on to."""
    found: list[str] = []
    while error is not None:
        found.append(f"{type(error).__name__}: {error}")
        found += getattr(error, "__notes__", [])
        error = error.__cause__ or error.__context__
    return found


@contextlib.contextmanager
def _logging() -> Iterator[io.StringIO]:
    """Catch what is logged: warnings of anybody, everything of the package."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    ours, level = logging.getLogger("expmech"), logging.getLogger("expmech").level
    logging.getLogger().addHandler(handler)
    ours.setLevel(logging.DEBUG)
    try:
        yield text
    finally:
        ours.setLevel(level)
        logging.getLogger().removeHandler(handler)


def _frozen(patch: pytest.MonkeyPatch) -> None:
    """Let neither clock nor randomness differ between two runs."""

    class Clock:
        @staticmethod
        def now(zone: Any) -> Any:
            import datetime

            return datetime.datetime(2026, 1, 1, tzinfo=zone)

    streams = itertools.count()

    def bits() -> Bits:
        return seeded_bits([19, next(streams)])

    patch.setattr("expmech.ledger.file.datetime", Clock)
    patch.setattr("expmech.certificates.mechanism.operating_system_bits", bits)


def _taped(patch: pytest.MonkeyPatch, tape: Tape) -> None:
    """Put a tape between all mechanisms and their draws."""
    _tape_releases(patch, tape)
    _tape_lists(patch, tape)
    _tape_quantiles(patch, tape)
    _tape_optima(patch, tape)
    _tape_directions(patch, tape)


_SEEN: dict[int, tuple[Certificate, Mechanism, dict[str, Any], Any]] = {}
"""Of a certificate, which copies of its release share: what it was made of."""


def _tape_releases(patch: pytest.MonkeyPatch, tape: Tape) -> None:
    """Catch every draw of a release with all that is public about it, noise and energies."""
    prepare, choose = Mechanism.prepare, ExponentialMechanism._choose
    with_data = PreparedDraw.with_data
    laplace = Coins.discrete_laplace

    def prepared(self: Mechanism, **asked: Any) -> PreparedDraw:
        ready = prepare(self, **asked)
        _SEEN[id(ready.certificate)] = (ready.certificate, self, asked, vars(self).get("seen"))
        return ready

    def with_other_data(self: PreparedDraw, data: Any) -> PreparedDraw:
        """Put the data in it and, to see what depends on them, prepare what they are in again."""
        mechanism = with_data(self, data).mechanism
        _, _, asked, _ = _SEEN[id(self.certificate)]
        ready = mechanism.prepare(**asked | {"sampler": self.sampler or "auto"})
        return replace(ready, accuracy_statement=self.accuracy_statement, reading=self.reading)

    def chosen(self: ExponentialMechanism, asked: Any, owner: str) -> Any:
        found = choose(self, asked, owner)
        self.seen = found[1]  # type: ignore[attr-defined]
        return found

    def noise(self: Coins, rate: Any, size: int) -> Any:
        before = len(tape.noises)
        found = laplace(self, rate, size)
        tape.noises[before:] = [(rate, found.tolist())]  # what is drawn again calls itself
        return found

    def vector(kind: Any) -> None:
        real = kind.draw

        def drawn(self: Any, coins: Coins, size: int) -> Any:
            found = real(self, coins, size)
            half = getattr(self, "half", getattr(self, "parts", None))
            tape.noises[:] = [((self.name, self.rate, half), found[0].tolist())]
            return found

        patch.setattr(kind, "draw", drawn)

    vector(CubeNoise)
    vector(HullNoise)

    def draw(ready: PreparedDraw) -> Any:
        _, mechanism, asked, target = _SEEN[id(ready.certificate)]
        epsilon, timing = asked["epsilon"], asked.get("timing")
        known = len(tape.run.entered)
        tape.tell("certificate", ready.certificate.to_json())
        tape.tell("forecast", ready.seconds)
        tape.tell("plan", mechanism.plan(epsilon, timing=timing or "unprotected").in_full())
        made = ready.fit_mechanism(ready.mechanism)

        def once(coins: Coins, size: int) -> Any:
            tape.noises.clear()
            found = made(coins, size)
            if found.noisy is not None:
                _enter_sums(tape, found.noisy[0])
            if target is not None:
                _enter_energies(tape, target)
            assert len(tape.run.entered) > known, f"nothing is known of {mechanism}"
            return tape.keep(found)

        return once

    patch.setattr(Mechanism, "prepare", prepared)
    patch.setattr(PreparedDraw, "with_data", with_other_data)
    patch.setattr(ExponentialMechanism, "_choose", chosen)
    patch.setattr(Coins, "discrete_laplace", noise)
    lazily = cached_property(draw)
    lazily.__set_name__(PreparedDraw, "draw")
    patch.setattr(PreparedDraw, "draw", lazily)


def _enter_sums(tape: Tape, noisy: Sequence[int]) -> None:
    """Note sums by what was shown less the noise on it, and the rates that the noise had."""
    drawn = [(rate, extra) for rate, extras in tape.noises for extra in extras]
    rates = tuple(rate for rate, _ in drawn)
    sums = [int(one) - extra for one, (_, extra) in zip(noisy, drawn, strict=True)]
    if isinstance(rates[0], tuple):
        name, *terms = rates[0]
        tape.enter(name, tuple(terms), sums)
    else:
        tape.enter("sums", (rates,), sums)


def _enter_energies(tape: Tape, target: Any) -> None:
    """Note the law of an exponential mechanism, or its weights at some points."""
    indices = target.all_indices(_FEW)
    some = indices is None
    if some:
        indices = target.domain.draw_uniform(Coins(seeded_bits(7)), 256)
    logs = target.energy(indices) * (-1.0 / target.units_per_nat)
    terms = (indices.tolist(), target.eta, target.units_per_nat)
    tape.enter("weights" if some else "law", terms, logs if some else _normalised(logs))


def _normalised(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    most = logs.max()
    return np.asarray(logs - most - math.log(np.exp(logs - most).sum()))


def _tape_lists(patch: pytest.MonkeyPatch, tape: Tape) -> None:
    """Catch the energies of permute-and-flip, and counts of which sequences are drawn."""

    def flip(coins: Coins, energies: NDArray[np.int64]) -> int:
        tape.enter("law", len(energies), np.log(_first_winner(np.exp(energies / -NAT))))
        return first_of_a_random_order(coins, energies)

    patch.setattr("expmech.mechanisms.selection.permute_and_flip.first_of_a_random_order", flip)
    laws: tuple[tuple[Any, Callable[..., Any]], ...] = (
        (PeelingDraw, _log_peeled),
        (SequenceDraw, _log_joint),
    )
    for kind, law in laws:
        _tape_sequences(patch, tape, kind, law)


def _tape_sequences(patch: pytest.MonkeyPatch, tape: Tape, kind: Any, law: Any) -> None:
    make, draw = kind.__init__, kind.draw

    def made(self: Any, counts: NDArray[np.int64], k: int, units: int) -> None:
        make(self, counts, k, units)
        self.given = counts.tolist()

    def once(self: Any, coins: Coins) -> Any:
        every = itertools.permutations(range(len(self.given)), self.k)
        logs = [law(self.given, sequence, self.units / NAT) for sequence in every]
        tape.enter("law", (len(self.given), self.k, self.units), _normalised(np.array(logs)))
        return draw(self, coins)

    patch.setattr(kind, "__init__", made)
    patch.setattr(kind, "draw", once)


def _first_winner(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return who wins first in a random order, by inclusion and exclusion of the others' wins."""
    found = np.zeros(len(chances))
    for j, chance in enumerate(chances):
        others = np.delete(chances, j)
        for size in range(len(chances)):
            parts = itertools.combinations(others, size)
            found[j] += (-1) ** size * sum(math.prod(part) for part in parts) / (size + 1)
        found[j] *= chance
    return found


def _log_peeled(counts: list[int], sequence: Sequence[int], rate: float) -> float:
    """Return the log probability of items that are drawn one after the other."""
    left, total = list(range(len(counts))), 0.0
    for item in sequence:
        best = max(counts[one] for one in left)
        chances = np.array([math.exp(-rate * (best - counts[one])) for one in left])
        total += math.log(_first_winner(chances)[left.index(item)])
        left.remove(item)
    return total


def _log_joint(counts: list[int], sequence: Sequence[int], rate: float) -> float:
    best = sorted(counts, reverse=True)
    return -rate * max(best[place] - counts[item] for place, item in enumerate(sequence))


def _tape_quantiles(patch: pytest.MonkeyPatch, tape: Tape) -> None:
    """Catch ranks: the law of all tuples, or the weights of some.

    Equal values are spread in a fixed order, which keeps neighbours neighbours: the law of a
    release is a mixture over such orders, drawn by coins alone.
    """
    draw = JointDraw.draw

    def in_order(coins: Coins, points: int, size: int, many: int) -> Any:
        return np.tile(np.arange(size), (many, 1))

    def once(self: JointDraw, coins: Coins) -> Any:
        groups, many = self.groups, len(self.levels.numerators)
        points = int(groups.sizes.sum())
        if some := math.comb(points + many - 1, many) > _FEW:
            chosen = np.sort(np.random.default_rng(7).integers(0, points, (256, many)), axis=1)
        else:
            every = itertools.combinations_with_replacement(range(points), many)
            chosen = np.array(list(every))
        ranks = groups.ranks[np.searchsorted(groups.first, chosen, side="right") - 1]
        ends = np.column_stack([np.zeros(len(ranks)), ranks, np.full(len(ranks), groups.count)])
        whole = self.levels.denominator
        widths = np.diff([0, *self.levels.numerators, whole])
        missed = np.abs(whole * np.diff(ends, axis=1) - widths * groups.count).sum(axis=1)
        logs = missed * (-self.units / NAT)
        terms = (chosen.tolist(), self.levels, self.units)
        tape.enter("weights" if some else "law", terms, logs if some else _normalised(logs))
        return draw(self, coins)

    patch.setattr(JointDraw, "draw", once)
    patch.setattr("expmech.mechanisms.quantiles.base.draw_subsets", in_order)


def _tape_optima(patch: pytest.MonkeyPatch, tape: Tape) -> None:
    """Catch rows in memory, and sums in an engine: the density of the optimum at some points."""

    def enter(terms: Any, points: Any, logs: Any) -> None:
        public = (points.tolist(), str(terms), terms.rate, terms.penalties, terms.dither)
        # on the grid of a fixed amount of work the optimum may be off by a step either way
        tape.enter("law", public, logs, besides=2.0 * float(terms.dither))

    def in_memory(terms: Any, rows: RegressionRows, found: Any, lattice: Any) -> None:
        dense = rows.matrix if isinstance(rows.matrix, np.ndarray) else rows.matrix.toarray()
        points = _points(terms, found, lattice, 4)
        held = RegressionRows(matrix=np.asarray(dense), targets=rows.targets)
        enter(terms, points, optimum.log_density(held, terms, points))

    def drawn(terms: Any, rows: RegressionRows, lattice: Any, coins: Coins) -> Any:
        found, boxes = draw_cells(terms, rows, lattice, coins)
        found = tape.keep(found)
        in_memory(terms, rows, found, lattice)
        return found, boxes

    def drawn_evenly(
        terms: Any, schedule: Any, rows: RegressionRows, lattice: Any, coins: Coins
    ) -> Any:
        found = tape.keep(draw_constant_time(terms, schedule, rows, lattice, coins))
        in_memory(terms, rows, found, lattice)
        tape.tell("work", str(schedule))
        return found

    def drawn_in_engine(terms: Any, passes: Any, count: int, lattice: Any, coins: Coins) -> Any:
        found = tape.keep(draw_in_engine(terms, passes, count, lattice, coins))
        points, logs = _points(terms, found, lattice, 4), []
        penalties = np.array([float(one) for one in terms.penalties])
        for point in points:
            sums = passes.sums(point)
            pull = sums.score.to_floats() + (penalties * point).ravel()
            matrix = sums.curvature + np.diag(np.tile(penalties, terms.risk.margins))
            noise = optimum.log_noise(terms, -pull[None, :])[0]
            logs.append(noise + np.linalg.slogdet(matrix)[1])
        enter(terms, points, np.array(logs))
        return found

    def drawn_norm(self: Any, within: Any, coins: Coins) -> Any:
        found = tape.keep(draw_norm(self, within, coins))
        upto = np.array(within, dtype=np.float64)
        below = np.concatenate([[0.0], upto[:-1]])
        off = np.maximum(0.0, np.maximum(below - upto[-1] / 2, upto[-1] / 2 - upto))
        rate = float(self.epsilon) / (2.0 if self.adjacency == "replace" else 1.0)
        tape.enter("law", (str(self), self.grid), _normalised(-rate * off))
        return found

    draw_norm = NormSearch.draw
    patch.setattr(NormSearch, "draw", drawn_norm)
    patch.setattr("expmech.mechanisms.optimum.draw.draw_cells", drawn)
    patch.setattr("expmech.mechanisms.optimum.perturbed_optimum.draw_constant_time", drawn_evenly)
    patch.setattr("expmech.tables.engines.regression.draw_in_engine", drawn_in_engine)


def _points(terms: Any, found: Any, lattice: Any, many: int) -> NDArray[np.float64]:
    """Return what was drawn, and random points on a grid that every pass can be made at."""
    generator = np.random.default_rng(7)
    scales = np.resize([0.1, 1.0, 4.0], many)[:, None, None]
    points = np.rint(generator.normal(size=(many, *terms.shape)) * scales * 2.0**12) * 2.0**-12
    return np.concatenate([points, np.reshape(found, terms.shape)[None] * 2.0**-lattice.bits])


def _tape_directions(patch: pytest.MonkeyPatch, tape: Tape) -> None:
    """Catch the matrix of principal directions, and the sums of the variances along them."""
    draw = ComponentLaw.draw

    def directed(self: ComponentLaw, coins: Coins, size: int) -> Any:
        matrix = self._moments.whole.approximate(self._moments.bits)
        tape.enter("form", self._etas, np.asarray(matrix, dtype=np.float64))
        return tape.keep(draw(self, coins, size))

    def varied(coins: Coins, sums: Sequence[int], rate: Any, count: int | None) -> Any:
        tape.noises.clear()
        found = draw_variances(coins, sums, rate, count)
        ((used, noise),) = tape.noises
        tape.enter("sums", ((used,) * len(noise), count), list(sums[: len(noise)]))
        return found

    patch.setattr(ComponentLaw, "draw", directed)
    patch.setattr("expmech.mechanisms.directions.principal_direction.draw_variances", varied)


NAN, INF = float("nan"), float("inf")
HARD: tuple[Any, ...] = (
    *(NAN, INF, -INF, 1e308, -1e308, 5e-324, None, "", "no number", " 7 ", "1e400"),
    *(0.0, 10.0, -3.0, 13.0, "7", -0.0, 1e16),
)
"""Values that bounds of 0 and 10 meet badly."""
LABELS: tuple[Any, ...] = ("a", "b", "c", " b ", None, "", "other", 7, "A", 'b"', "a" * 300)


def pairs(adjacency: str, seed: int, *, unit: bool = False) -> tuple[list[Any], list[Any]]:
    """Return two neighbouring tables of rows (x, y, label, who), in either order.

    With ``unit`` they differ in all rows of one who.
    """
    generator = np.random.default_rng([seed, len(adjacency), unit])

    def row() -> tuple[Any, ...]:
        values: list[Any] = [round(float(one), 3) for one in generator.uniform(0, 10, 2)]
        for place in range(2):
            if generator.random() < 0.5:
                values[place] = HARD[generator.integers(len(HARD))]
        hard = LABELS[generator.integers(len(LABELS))] if generator.random() < 0.4 else None
        label = "abc"[generator.integers(3)] if hard is None else hard
        return (*values, label, f"p{generator.integers(3)}")

    rows = [row() for _ in range(int(generator.integers(3, 8)))]
    rows += [rows[0]] * int(generator.integers(3))  # equal rows
    place = int(generator.integers(len(rows)))
    if unit:
        other = [one for one in rows if one[3] != rows[place][3]]
    elif adjacency == "replace":
        other = [*rows[:place], row(), *rows[place + 1 :]]
    else:
        other = [*rows[:place], *rows[place + 1 :]]
    return (rows, other) if generator.random() < 0.5 else (other, rows)


def write_rows(room: Path, rows: Sequence[Sequence[Any]], name: str = "rows.csv") -> Path:
    """Write rows into the same file as before, whose inode stays."""
    (room / DATA).mkdir(exist_ok=True)
    path = room / DATA / name
    lines = [",".join("" if one is None else str(one) for one in row) for row in rows]
    path.write_text("\n".join(["x,y,label,who", *lines]) + "\n")
    os.utime(path, (0, 0))
    return path


def number(value: Any) -> float:
    """Return what a column of numbers can hold of a value."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return NAN


def release_by_command(
    asked: str, *, place: Callable[[Path, Any], list[Any]], adjacency: str, epsilon: str
) -> Pipeline:
    """Return a run that makes a ledger of what ``place`` fills, and charges it with a release.

    Words of ``asked`` have a ``|`` where they have a blank.
    """
    statistic, *words = [word.replace("|", " ") for word in asked.split()]
    unit = ("--unit", words[words.index("--unit") + 1]) if "--unit" in words else ()
    budget = ("--epsilon", "10", "--adjacency", adjacency, *unit)
    words += ["--adjacency", adjacency, "--epsilon", epsilon, "--ledger", "ledger"]

    def run(room: Path, rows: Any) -> Any:
        source = place(room, rows)
        made = command("budget", "init", "ledger", *source, *budget)
        if "--query" in words:  # which names the table itself
            source = source[:1]
        asked = ("release", statistic, *source, *words, "--output", "out.json", "--json")
        return [made, command(*asked)]

    return run
